/* Operations over many numbers, one node each or one per output: numbers in, nodes out. What they compute is made from
 * row_ops.py, so that the engines agree to the bit. */

#include "value.h"

/* ---------------------------------------------------------------- inputs */

/* The numbers of a list, and the nodes to be children. Small lists need no allocation. */
enum { SMALL = 64 };
typedef struct {
    Py_ssize_t count;
    int has_value; /* without a Value among them, the result is a plain float */
    int has_number;
    double *data;
    Value **nodes; /* owned, `count` of them; NULL for a plain number until composites_inputs_lift */
    double small_data[SMALL];
    Value *small_nodes[SMALL];
} Inputs;

static void composites_inputs_release(Inputs *inputs)
{
    for (Py_ssize_t i = 0; i < inputs->count; i++)
        Py_XDECREF(inputs->nodes[i]);
    if (inputs->data != inputs->small_data) {
        PyMem_Free(inputs->data);
        PyMem_Free(inputs->nodes);
    }
}

/* A list or tuple as it is, anything else that can be iterated over as a list. New. */
static PyObject *composites_list(PyObject *given)
{
    if (PyList_CheckExact(given) || PyTuple_CheckExact(given)) {
        Py_INCREF(given);
        return given;
    }
    return PySequence_List(given);
}

static int composites_inputs_gather(Inputs *inputs, PyObject *given, const char *name)
{
    inputs->count = 0;
    inputs->has_value = inputs->has_number = 0;
    inputs->data = inputs->small_data;
    inputs->nodes = inputs->small_nodes;
    PyObject *list = composites_list(given);
    if (list == NULL)
        return -1;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
    if (count == 0) {
        PyErr_Format(PyExc_ValueError, "%s: expected at least one number, got an empty list", name);
        goto failed;
    }
    if (count > SMALL) {
        inputs->data = PyMem_Malloc((size_t)count * sizeof *inputs->data);
        inputs->nodes = PyMem_Malloc((size_t)count * sizeof *inputs->nodes);
        if (inputs->data == NULL || inputs->nodes == NULL) {
            PyErr_NoMemory();
            goto failed;
        }
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = structure_item(list, i);
        if (item == NULL)
            goto failed;
        if (is_value(item)) {
            inputs->nodes[i] = (Value *)item;
            inputs->data[i] = ((Value *)item)->data;
            inputs->has_value = 1;
        }
        else {
            inputs->nodes[i] = NULL;
            inputs->has_number = 1;
            int known = number_from(item, name, NULL, &inputs->data[i]);
            Py_DECREF(item);
            if (known < 0)
                goto failed;
        }
        inputs->count = i + 1;
    }
    Py_DECREF(list);
    return 0;
failed:
    Py_DECREF(list);
    composites_inputs_release(inputs);
    return -1;
}

/* Plain numbers become constants, one each, once it is known that a node will be recorded over them. */
static int composites_inputs_lift(Inputs *inputs)
{
    for (Py_ssize_t i = 0; inputs->has_number && i < inputs->count; i++) {
        if (inputs->nodes[i] == NULL && (inputs->nodes[i] = value_constant(inputs->data[i])) == NULL)
            return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------- outputs; each returns a new reference */

/* A node over all inputs of one list, or of two; the caller fills its local gradients. The last node over a list takes
 * its nodes away. */
static Value *composites_node_over(unsigned op, Inputs *xs, Inputs *ys, double data, int is_last)
{
    Py_ssize_t count = xs->count;
    if (composites_inputs_lift(xs) < 0 || (ys != NULL && composites_inputs_lift(ys) < 0))
        return NULL;
    Value *out = value_many(op, data, ys != NULL ? 2 * count : count);
    if (out == NULL)
        return NULL;
    Value **children = details_of(out)->children;
    if (is_last)
        xs->count = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        children[i] = is_last ? xs->nodes[i] : (Value *)Py_NewRef(xs->nodes[i]);
    for (Py_ssize_t i = 0; ys != NULL && i < count; i++)
        children[count + i] = (Value *)Py_NewRef(ys->nodes[i]);
    return out;
}

/* Output i: a node, or a float if no input is a Value. */
static PyObject *composites_output(unsigned op, Inputs *xs, Inputs *ys, Py_ssize_t i, const double *parameters,
                                   const double *kept)
{
    const Composite *composite = composite_of(op);
    Py_ssize_t count = xs->count;
    const double *right = ys != NULL ? ys->data : NULL;
    double data = composite->forward(count, xs->data, right, i, parameters, kept);
    if (!xs->has_value && (ys == NULL || !ys->has_value))
        return PyFloat_FromDouble(data);
    Value *out = composites_node_over(op, xs, ys, data, !composite->per_entry || i == count - 1);
    if (out == NULL)
        return NULL;
    Details *details = details_of(out);
    composite->local_grads(count, xs->data, right, i, parameters, kept, data, details->local_grads);
    int placed = composite_is_placed(composite);
    if (placed)
        details->parameters[0] = (double)i;
    for (int k = 0; k < composite->parameters; k++)
        details->parameters[placed + k] = parameters[k];
    return (PyObject *)recorded(out);
}

/* One output, or a list of one per entry. */
static PyObject *composites_outputs(unsigned op, Inputs *xs, Inputs *ys, Py_ssize_t target, const double *parameters)
{
    const Composite *composite = composite_of(op);
    if (ys != NULL && xs->count != ys->count) {
        PyErr_Format(PyExc_ValueError, "%s: expected two lists of the same length, got %zd and %zd", composite->called,
                     xs->count, ys->count);
        return NULL;
    }
    double small[2 * SMALL], *kept = small;
    Py_ssize_t size = composite->kept_numbers + composite->kept_rows * xs->count;
    if (size > 2 * SMALL && (kept = PyMem_Malloc((size_t)size * sizeof *kept)) == NULL)
        return PyErr_NoMemory();
    if (composite->keep != NULL)
        composite->keep(xs->count, xs->data, ys != NULL ? ys->data : NULL, parameters, kept);
    Py_ssize_t count = xs->count;
    PyObject *made = composite->per_entry ? PyList_New(count) : composites_output(op, xs, ys, target, parameters, kept);
    for (Py_ssize_t i = 0; composite->per_entry && made != NULL && i < count; i++) {
        PyObject *out = composites_output(op, xs, ys, i, parameters, kept);
        if (out == NULL)
            Py_CLEAR(made);
        else
            PyList_SET_ITEM(made, i, out);
    }
    if (kept != small)
        PyMem_Free(kept);
    return made;
}

/* ---------------------------------------------------------------- the functions */

/* A checked index from 0 to count - 1; -1 with an exception set. */
COLD static Py_ssize_t composites_index(PyObject *given, const char *name, Py_ssize_t count)
{
    PyObject *number = PyNumber_Index(given);
    if (number == NULL)
        return -1;
    Py_ssize_t index = PyLong_AsSsize_t(number);
    if (index == -1)
        PyErr_Clear(); /* too large for any list */
    if (index < 0 || index >= count) {
        PyErr_Format(PyExc_IndexError, "%s: expected an index from 0 to %zd, got %S", name, count - 1, number);
        index = -1;
    }
    Py_DECREF(number);
    return index;
}

enum { MOST_ARGUMENTS = 4 };

/* The arguments in the order of `names`, borrowed; those that were not given are NULL. -1: an exception is set. */
static NEVER_INLINE int composites_arguments(const char *function, const char *const *names, int required, PyObject *const *given,
                          Py_ssize_t count, PyObject *keywords, PyObject **found)
{
    Py_ssize_t known = 0, named = keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0;
    while (known < MOST_ARGUMENTS && names[known] != NULL)
        known++;
    if (count + named > known) {
        PyErr_Format(PyExc_TypeError, "%s: expected at most %zd arguments, got %zd", function, known, count + named);
        return -1;
    }
    for (Py_ssize_t i = 0; i < MOST_ARGUMENTS; i++)
        found[i] = i < count ? given[i] : NULL;
    for (Py_ssize_t k = 0; k < named; k++) {
        PyObject *keyword = PyTuple_GET_ITEM(keywords, k);
        Py_ssize_t i = 0;
        while (i < known && PyUnicode_CompareWithASCIIString(keyword, names[i]) != 0)
            i++;
        if (i == known || found[i] != NULL) {
            PyErr_Format(PyExc_TypeError, "%s: expected each argument once, by a name it has, got %R", function, keyword);
            return -1;
        }
        found[i] = given[count + k];
    }
    for (int i = 0; i < required; i++) {
        if (found[i] == NULL) {
            PyErr_Format(PyExc_TypeError, "%s: expected the argument '%s', got none", function, names[i]);
            return -1;
        }
    }
    return 0;
}

static PyObject *composites_call(unsigned op, PyObject *const *given, Py_ssize_t count, PyObject *keywords)
{
    const Composite *composite = composite_of(op);
    const char *name = composite->called;
    PyObject *found[MOST_ARGUMENTS];
    int lists = composite->inputs, first = lists + composite->has_target;
    int required = first + composite->parameters - composite->default_count;
    if (composites_arguments(name, composite->arguments, required, given, count, keywords, found) < 0)
        return NULL;
    double parameters[2] = {composite->defaults[0], composite->defaults[1]};
    for (int i = 0; i < composite->parameters; i++) {
        if (found[first + i] != NULL && number_from(found[first + i], name, NULL, &parameters[i]) < 0)
            return NULL;
    }
    Inputs xs, ys;
    if (composites_inputs_gather(&xs, found[0], name) < 0)
        return NULL;
    PyObject *made = NULL;
    if (lists == 1 || composites_inputs_gather(&ys, found[1], name) == 0) {
        Py_ssize_t target = composite->has_target ? composites_index(found[1], name, xs.count) : 0;
        made = target < 0 ? NULL : composites_outputs(op, &xs, lists == 1 ? NULL : &ys, target, parameters);
        if (lists > 1)
            composites_inputs_release(&ys);
    }
    composites_inputs_release(&xs);
    return made;
}

#define THUNK(name, doc) \
    static PyObject *composite_##name(PyObject *module, PyObject *const *given, Py_ssize_t count, PyObject *keywords) \
    { \
        (void)module; \
        return composites_call(COMPOSITE_##name, given, count, keywords); \
    }
FOR_EACH_COMPOSITE(THUNK)
#undef THUNK

static PyObject *composites_matvec(PyObject *module, PyObject *const *given, Py_ssize_t count, PyObject *keywords)
{
    (void)module;
    static const char *const names[] = {"rows", "x", NULL};
    PyObject *found[MOST_ARGUMENTS];
    Inputs row, x;
    if (composites_arguments("matvec", names, 2, given, count, keywords, found) < 0
        || composites_inputs_gather(&x, found[1], "dot") < 0)
        return NULL;
    PyObject *rows = composites_list(found[0]);
    Py_ssize_t row_count = rows ? PySequence_Fast_GET_SIZE(rows) : 0;
    PyObject *list = rows ? PyList_New(row_count) : NULL;
    for (Py_ssize_t i = 0; list != NULL && i < row_count; i++) {
        PyObject *out = NULL;
        PyObject *given_row = structure_item(rows, i);
        if (given_row != NULL && composites_inputs_gather(&row, given_row, "dot") == 0) {
            out = composites_outputs(COMPOSITE_dot, &row, &x, 0, NULL);
            composites_inputs_release(&row);
        }
        Py_XDECREF(given_row);
        if (out == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, out);
    }
    composites_inputs_release(&x);
    Py_XDECREF(rows);
    return list;
}

/* One take node over one number; a plain number stays a float. */
static PyObject *composites_take_one(PyObject *item, Py_ssize_t index)
{
    Inputs inputs;
    PyObject *list = PyTuple_Pack(1, item);
    if (list == NULL || composites_inputs_gather(&inputs, list, "take") < 0) {
        Py_XDECREF(list);
        return NULL;
    }
    PyObject *out = composites_output(COMPOSITE_take, &inputs, NULL, index, NULL, NULL);
    composites_inputs_release(&inputs);
    Py_DECREF(list);
    return out;
}

/* In place of composite_take, which knows nothing of rows. */
static PyObject *composites_take(PyObject *module, PyObject *const *given, Py_ssize_t count, PyObject *keywords)
{
    (void)module;
    PyObject *found[MOST_ARGUMENTS], *out = NULL;
    if (composites_arguments("take", composite_of(COMPOSITE_take)->arguments, 2, given, count, keywords, found) < 0)
        return NULL;
    PyObject *rows = PySequence_Tuple(found[0]);
    if (rows == NULL)
        return NULL;
    if (PyTuple_GET_SIZE(rows) == 0) {
        PyErr_SetString(PyExc_ValueError, "take: expected at least one number, got an empty list");
        Py_DECREF(rows);
        return NULL;
    }
    Py_ssize_t index = composites_index(found[1], "take", PyTuple_GET_SIZE(rows));
    PyObject *row = index < 0 ? NULL : PyTuple_GET_ITEM(rows, index);
    if (row != NULL && (PyList_Check(row) || PyTuple_Check(row))) {
        PyObject *items = PySequence_Tuple(row);
        out = items ? PyList_New(PyTuple_GET_SIZE(items)) : NULL;
        for (Py_ssize_t i = 0; out != NULL && i < PyTuple_GET_SIZE(items); i++) {
            PyObject *taken = composites_take_one(PyTuple_GET_ITEM(items, i), index);
            if (taken == NULL)
                Py_CLEAR(out);
            else
                PyList_SET_ITEM(out, i, taken);
        }
        Py_XDECREF(items);
    }
    else if (row != NULL) {
        out = composites_take_one(row, index);
    }
    Py_DECREF(rows);
    return out;
}

#define FUNCTION(name, function, doc) \
    {#name, (PyCFunction)(void (*)(void))function, METH_FASTCALL | METH_KEYWORDS, doc}
#define ENTRY(name, doc) FUNCTION(name, composite_##name, doc),

PyMethodDef composite_functions[] = {
    FOR_EACH_COMPOSITE(ENTRY)
    FUNCTION(take, composites_take, /* after composite_take, so it counts */
             "take(rows, index)\n--\n\n`rows[index]` as recorded nodes: one for a Value, a list of them for a row."),
    FUNCTION(matvec, composites_matvec,
             "matvec(rows, x)\n--\n\nThe matrix, given as rows, times the vector: one dot node per row."),
    {NULL, NULL, 0, NULL},
};
#undef ENTRY
#undef FUNCTION
