/* Operations over many numbers, one node each or one per output. They compute what the rows of composites.py
 * compute, in the same order, so that the engines agree to the bit. Sums run from left to right. */

#include "value.h"

const char *const composite_names[] = {
#define ENTRY(name) #name,
    FOR_EACH_COMPOSITE(ENTRY)
#undef ENTRY
};

/* ---------------------------------------------------------------- inputs */

/* The numbers of a list, and the nodes to be children. Small lists need no allocation. */
enum { SMALL = 64 };
typedef struct {
    Py_ssize_t count;
    int has_value; /* without a Value among them, the result is a plain float */
    double *data;
    Value **nodes; /* owned; NULL for a plain number until inputs_lift */
    double small_data[SMALL];
    Value *small_nodes[SMALL];
} Inputs;

static void inputs_release(Inputs *inputs)
{
    for (Py_ssize_t i = 0; i < inputs->count; i++)
        Py_XDECREF(inputs->nodes[i]);
    if (inputs->data != inputs->small_data) {
        PyMem_Free(inputs->data);
        PyMem_Free(inputs->nodes);
    }
}

/* A list or tuple as it is, anything else that can be iterated over as a list. New. */
static PyObject *list_from(PyObject *given)
{
    if (PyList_CheckExact(given) || PyTuple_CheckExact(given)) {
        Py_INCREF(given);
        return given;
    }
    return PySequence_List(given);
}

static int inputs_gather(Inputs *inputs, PyObject *given, const char *name)
{
    inputs->count = 0;
    inputs->has_value = 0;
    inputs->data = inputs->small_data;
    inputs->nodes = inputs->small_nodes;
    PyObject *list = list_from(given);
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
        PyObject *item = item_of(list, i);
        if (item == NULL)
            goto failed;
        if (is_value(item)) {
            inputs->nodes[i] = (Value *)item;
            inputs->data[i] = ((Value *)item)->data;
            inputs->has_value = 1;
        }
        else {
            inputs->nodes[i] = NULL;
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
    inputs_release(inputs);
    return -1;
}

/* Plain numbers become constants, one each, once it is known that a node will be recorded over them. */
static int inputs_lift(Inputs *inputs)
{
    for (Py_ssize_t i = 0; i < inputs->count; i++) {
        if (inputs->nodes[i] == NULL && (inputs->nodes[i] = value_constant(inputs->data[i])) == NULL)
            return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------- outputs; each returns a new reference */

/* A node over all inputs; the caller fills its local gradients. */
static Value *node_over(unsigned op, Inputs *inputs, double data)
{
    Value *out = inputs_lift(inputs) < 0 ? NULL : value_many(op, data, inputs->count);
    if (out == NULL)
        return NULL;
    Details *details = details_of(out);
    for (Py_ssize_t i = 0; i < inputs->count; i++) {
        Py_INCREF(inputs->nodes[i]);
        details->children[i] = inputs->nodes[i];
    }
    return out;
}

/* Fills local_grads for output i and returns its data. `facts` is what all outputs share. */
typedef double (*Row)(const double *x, Py_ssize_t count, Py_ssize_t i, const double *facts, double *local_grads);

/* Output i: a node, or a float if no input is a Value. `scratch` has room for `count` local gradients. */
static PyObject *output(unsigned op, Inputs *inputs, Row row, Py_ssize_t i, double eps, const double *facts,
                        double *scratch)
{
    double data = row(inputs->data, inputs->count, i, facts, scratch);
    if (!inputs->has_value)
        return PyFloat_FromDouble(data);
    Value *out = node_over(op, inputs, data);
    if (out == NULL)
        return NULL;
    Details *details = details_of(out);
    memcpy(details->local_grads, scratch, (size_t)inputs->count * sizeof(double));
    details->parameters[0] = (double)i;
    details->parameters[1] = eps;
    return (PyObject *)recorded(out);
}

/* ---------------------------------------------------------------- parts the rows share */

static double total(const double *x, Py_ssize_t count)
{
    double sum = x[0];
    for (Py_ssize_t i = 1; i < count; i++)
        sum = sum + x[i];
    return sum;
}

static Py_ssize_t position(const double *x, Py_ssize_t count, double sign)
{
    Py_ssize_t best = 0;
    for (Py_ssize_t i = 1; i < count; i++) {
        double candidate = sign * x[i], champion = sign * x[best];
        if (candidate > champion || (candidate != candidate && champion == champion))
            best = i;
    }
    return best;
}

/* facts of the softmax family: shift, total, log(total), then the exponentials */
enum { SHIFT, TOTAL, LOG_TOTAL, EXPONENTIALS };

static void softmax_facts(const double *x, Py_ssize_t count, double *facts)
{
    double largest = x[position(x, count, 1.0)];
    facts[SHIFT] = isfinite(largest) ? largest : 0.0;
    for (Py_ssize_t i = 0; i < count; i++)
        facts[EXPONENTIALS + i] = exp(x[i] - facts[SHIFT]);
    facts[TOTAL] = total(facts + EXPONENTIALS, count);
    facts[LOG_TOTAL] = log(facts[TOTAL]);
}

static inline double probability(const double *facts, Py_ssize_t i)
{
    return facts[EXPONENTIALS + i] / facts[TOTAL];
}

/* facts of the norms: scale, then the entries as the row wants them (centred or not) */
enum { SCALE, ENTRIES };

static void norm_facts(const double *x, Py_ssize_t count, int centre, double eps, double *facts)
{
    double mean = centre ? total(x, count) / (double)count : 0.0;
    for (Py_ssize_t i = 0; i < count; i++)
        facts[ENTRIES + i] = centre ? x[i] - mean : x[i];
    double squares = facts[ENTRIES] * facts[ENTRIES];
    for (Py_ssize_t i = 1; i < count; i++)
        squares = squares + facts[ENTRIES + i] * facts[ENTRIES + i];
    facts[SCALE] = pow(squares / (double)count + eps, -0.5);
}

/* ---------------------------------------------------------------- the rows */

#define ROW(name) \
    static double name##_row(const double *x, Py_ssize_t count, Py_ssize_t i, const double *facts, \
                             double *local_grads)
#define FOR_EACH_INPUT(j) for (Py_ssize_t j = 0; j < count; j++)
#define UNUSED(what) (void)(what)

ROW(sum)
{
    UNUSED(i), UNUSED(facts);
    FOR_EACH_INPUT(j)
        local_grads[j] = 1.0;
    return total(x, count);
}

ROW(mean)
{
    UNUSED(i), UNUSED(facts);
    FOR_EACH_INPUT(j)
        local_grads[j] = 1.0 / (double)count;
    return total(x, count) / (double)count;
}

ROW(norm)
{
    UNUSED(i), UNUSED(facts);
    double scale = 0.0, squares, out;
    FOR_EACH_INPUT(j)
        scale = fabs(x[j]) > scale ? fabs(x[j]) : scale;
    if (scale == 0.0 || !isfinite(scale)) {
        out = fabs(x[0]);
        for (Py_ssize_t j = 1; j < count; j++)
            out = out + fabs(x[j]);
    }
    else {
        squares = (x[0] / scale) * (x[0] / scale);
        for (Py_ssize_t j = 1; j < count; j++)
            squares = squares + (x[j] / scale) * (x[j] / scale);
        out = sqrt(squares) * scale;
    }
    FOR_EACH_INPUT(j)
        local_grads[j] = out == 0.0 ? 0.0 : x[j] / out;
    return out;
}

ROW(logsumexp)
{
    UNUSED(i), UNUSED(x);
    FOR_EACH_INPUT(j)
        local_grads[j] = probability(facts, j);
    return facts[LOG_TOTAL] + facts[SHIFT];
}

ROW(softmax)
{
    UNUSED(x);
    double out = probability(facts, i);
    FOR_EACH_INPUT(j)
        local_grads[j] = out * ((j == i ? 1.0 : 0.0) - probability(facts, j));
    return out;
}

ROW(log_softmax)
{
    FOR_EACH_INPUT(j)
        local_grads[j] = (j == i ? 1.0 : 0.0) - probability(facts, j);
    return (x[i] - facts[SHIFT]) - facts[LOG_TOTAL];
}

ROW(cross_entropy)
{
    FOR_EACH_INPUT(j)
        local_grads[j] = probability(facts, j) - (j == i ? 1.0 : 0.0);
    return facts[LOG_TOTAL] - (x[i] - facts[SHIFT]);
}

ROW(rmsnorm)
{
    double scale = facts[SCALE], out = x[i] * scale, slope = out * scale * scale / (double)count;
    FOR_EACH_INPUT(j)
        local_grads[j] = (j == i ? scale : 0.0) - slope * x[j];
    return out;
}

ROW(layernorm)
{
    UNUSED(x);
    double scale = facts[SCALE], out = facts[ENTRIES + i] * scale, share = 1.0 / (double)count;
    FOR_EACH_INPUT(j)
        local_grads[j] = scale * (((j == i ? 1.0 : 0.0) - share) - out * (facts[ENTRIES + j] * scale) * share);
    return out;
}

static double extreme(const double *x, Py_ssize_t count, double sign, double *local_grads)
{
    Py_ssize_t best = position(x, count, sign);
    FOR_EACH_INPUT(j)
        local_grads[j] = j == best ? 1.0 : 0.0;
    return x[best];
}

ROW(largest)
{
    UNUSED(i), UNUSED(facts);
    return extreme(x, count, 1.0, local_grads);
}

ROW(smallest)
{
    UNUSED(i), UNUSED(facts);
    return extreme(x, count, -1.0, local_grads);
}

/* ---------------------------------------------------------------- any row, for compiled functions */

_Static_assert(COMPOSITE_FACTS == EXPONENTIALS, "room for the facts of every row");

INTERNAL void composite_facts(unsigned op, const double *x, Py_ssize_t count, double eps, double *facts)
{
    switch (op) {
    case COMPOSITE_logsumexp:
    case COMPOSITE_softmax:
    case COMPOSITE_log_softmax:
    case COMPOSITE_cross_entropy: softmax_facts(x, count, facts); break;
    case COMPOSITE_rmsnorm: norm_facts(x, count, 0, eps, facts); break;
    case COMPOSITE_layernorm: norm_facts(x, count, 1, eps, facts); break;
    default: break;
    }
}

INTERNAL double composite_output(unsigned op, const double *x, Py_ssize_t count, Py_ssize_t i, const double *facts,
                                 double *local_grads)
{
    switch (op) {
#define ENTRY(name) case COMPOSITE_##name: return name##_row(x, count, i, facts, local_grads);
    ENTRY(sum) ENTRY(mean) ENTRY(norm) ENTRY(largest) ENTRY(smallest) ENTRY(logsumexp) ENTRY(softmax)
    ENTRY(log_softmax) ENTRY(cross_entropy) ENTRY(rmsnorm)
    default: return layernorm_row(x, count, i, facts, local_grads);
#undef ENTRY
    }
}

/* ---------------------------------------------------------------- the functions */

/* Room for the facts and for one output's local gradients; released with PyMem_Free. */
static double *scratch_for(Py_ssize_t count)
{
    double *scratch = PyMem_Malloc((size_t)(2 * count + EXPONENTIALS) * sizeof *scratch);
    if (scratch == NULL)
        PyErr_NoMemory();
    return scratch;
}

static PyObject *one_output(unsigned op, Row row, PyObject *given)
{
    Inputs inputs;
    const char *name = op == COMPOSITE_largest    ? "maximum"
                     : op == COMPOSITE_smallest ? "minimum"
                                                : composite_names[op - OP_COUNT];
    if (inputs_gather(&inputs, given, name) < 0)
        return NULL;
    double *scratch = scratch_for(inputs.count);
    PyObject *out = NULL;
    if (scratch != NULL) {
        if (op == COMPOSITE_logsumexp)
            softmax_facts(inputs.data, inputs.count, scratch + inputs.count);
        out = output(op, &inputs, row, 0, 0.0, scratch + inputs.count, scratch);
    }
    PyMem_Free(scratch);
    inputs_release(&inputs);
    return out;
}

/* A list with one output per input. */
static PyObject *all_outputs(unsigned op, Row row, PyObject *given, double eps)
{
    Inputs inputs;
    if (inputs_gather(&inputs, given, composite_names[op - OP_COUNT]) < 0)
        return NULL;
    double *scratch = scratch_for(inputs.count);
    PyObject *list = scratch ? PyList_New(inputs.count) : NULL;
    if (list != NULL) {
        double *facts = scratch + inputs.count;
        if (op == COMPOSITE_rmsnorm || op == COMPOSITE_layernorm)
            norm_facts(inputs.data, inputs.count, op == COMPOSITE_layernorm, eps, facts);
        else
            softmax_facts(inputs.data, inputs.count, facts);
        for (Py_ssize_t i = 0; list != NULL && i < inputs.count; i++) {
            PyObject *out = output(op, &inputs, row, i, eps, facts, scratch);
            if (out == NULL)
                Py_CLEAR(list);
            else
                PyList_SET_ITEM(list, i, out);
        }
    }
    PyMem_Free(scratch);
    inputs_release(&inputs);
    return list;
}

#define ONE_OUTPUT(name) \
    static PyObject *composite_##name(PyObject *module, PyObject *given) \
    { \
        UNUSED(module); \
        return one_output(COMPOSITE_##name, name##_row, given); \
    }
ONE_OUTPUT(sum)
ONE_OUTPUT(mean)
ONE_OUTPUT(norm)
ONE_OUTPUT(logsumexp)
ONE_OUTPUT(largest)
ONE_OUTPUT(smallest)

#define ALL_OUTPUTS(name) \
    static PyObject *composite_##name(PyObject *module, PyObject *given) \
    { \
        UNUSED(module); \
        return all_outputs(COMPOSITE_##name, name##_row, given, 0.0); \
    }
ALL_OUTPUTS(softmax)
ALL_OUTPUTS(log_softmax)

#define NORMALISED(name) \
    static PyObject *composite_##name(PyObject *module, PyObject *args, PyObject *keywords) \
    { \
        UNUSED(module); \
        static char *names[] = {"xs", "eps", NULL}; \
        PyObject *given, *given_eps = NULL; \
        double eps = 1e-5; \
        if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O:" #name, names, &given, &given_eps) \
            || (given_eps != NULL && number_from(given_eps, #name, NULL, &eps) < 0)) \
            return NULL; \
        return all_outputs(COMPOSITE_##name, name##_row, given, eps); \
    }
NORMALISED(rmsnorm)
NORMALISED(layernorm)

/* A checked index from 0 to count - 1; -1 with an exception set. */
static Py_ssize_t index_from(PyObject *given, const char *name, Py_ssize_t count)
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

static PyObject *composite_cross_entropy(PyObject *module, PyObject *args, PyObject *keywords)
{
    UNUSED(module);
    static char *names[] = {"logits", "target", NULL};
    PyObject *given, *target;
    Inputs inputs;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO:cross_entropy", names, &given, &target)
        || inputs_gather(&inputs, given, "cross_entropy") < 0)
        return NULL;
    Py_ssize_t index = index_from(target, "cross_entropy", inputs.count);
    double *scratch = index < 0 ? NULL : scratch_for(inputs.count);
    PyObject *out = NULL;
    if (scratch != NULL) {
        softmax_facts(inputs.data, inputs.count, scratch + inputs.count);
        out = output(COMPOSITE_cross_entropy, &inputs, cross_entropy_row, index, 0.0, scratch + inputs.count, scratch);
    }
    PyMem_Free(scratch);
    inputs_release(&inputs);
    return out;
}

/* One dot node (or float). The children are xs, then ys; the local gradients are ys, then xs. */
static PyObject *dot_of(Inputs *xs, Inputs *ys)
{
    Py_ssize_t count = xs->count;
    if (count != ys->count) {
        PyErr_Format(PyExc_ValueError, "dot: expected two lists of the same length, got %zd and %zd", count,
                     ys->count);
        return NULL;
    }
    double sum = xs->data[0] * ys->data[0];
    for (Py_ssize_t i = 1; i < count; i++)
        sum = sum + xs->data[i] * ys->data[i];
    if (!xs->has_value && !ys->has_value)
        return PyFloat_FromDouble(sum);
    Value *out = inputs_lift(xs) < 0 || inputs_lift(ys) < 0 ? NULL : value_many(COMPOSITE_dot, sum, 2 * count);
    if (out == NULL)
        return NULL;
    Details *details = details_of(out);
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_INCREF(xs->nodes[i]);
        Py_INCREF(ys->nodes[i]);
        details->children[i] = xs->nodes[i];
        details->children[count + i] = ys->nodes[i];
    }
    memcpy(details->local_grads, ys->data, (size_t)count * sizeof(double));
    memcpy(details->local_grads + count, xs->data, (size_t)count * sizeof(double));
    return (PyObject *)recorded(out);
}

static PyObject *composite_dot(PyObject *module, PyObject *args, PyObject *keywords)
{
    UNUSED(module);
    static char *names[] = {"xs", "ys", NULL};
    PyObject *left, *right, *out = NULL;
    Inputs xs, ys;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO:dot", names, &left, &right)
        || inputs_gather(&xs, left, "dot") < 0)
        return NULL;
    if (inputs_gather(&ys, right, "dot") == 0) {
        out = dot_of(&xs, &ys);
        inputs_release(&ys);
    }
    inputs_release(&xs);
    return out;
}

static PyObject *composite_matvec(PyObject *module, PyObject *args, PyObject *keywords)
{
    UNUSED(module);
    static char *names[] = {"rows", "x", NULL};
    PyObject *given_rows, *given_x;
    Inputs row, x;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO:matvec", names, &given_rows, &given_x))
        return NULL;
    if (inputs_gather(&x, given_x, "dot") < 0)
        return NULL;
    PyObject *rows = list_from(given_rows);
    if (rows == NULL) {
        inputs_release(&x);
        return NULL;
    }
    Py_ssize_t count = PySequence_Fast_GET_SIZE(rows);
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *out = NULL;
        PyObject *given_row = item_of(rows, i);
        if (given_row != NULL && inputs_gather(&row, given_row, "dot") == 0) {
            out = dot_of(&row, &x);
            inputs_release(&row);
        }
        Py_XDECREF(given_row);
        if (out == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, out);
    }
    inputs_release(&x);
    Py_DECREF(rows);
    return list;
}

/* One take node over one number; a plain number stays a float. */
static PyObject *take_one(PyObject *item, Py_ssize_t index)
{
    if (!is_value(item)) {
        double number;
        return number_from(item, "take", NULL, &number) < 0 ? NULL : PyFloat_FromDouble(number);
    }
    Value *out = value_many(COMPOSITE_take, ((Value *)item)->data, 1);
    if (out == NULL)
        return NULL;
    Details *details = details_of(out);
    Py_INCREF(item);
    details->children[0] = (Value *)item;
    details->local_grads[0] = 1.0;
    details->parameters[0] = (double)index;
    return (PyObject *)recorded(out);
}

static PyObject *composite_take(PyObject *module, PyObject *args, PyObject *keywords)
{
    UNUSED(module);
    static char *names[] = {"rows", "index", NULL};
    PyObject *given_rows, *given_index, *out = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO:take", names, &given_rows, &given_index))
        return NULL;
    PyObject *rows = PySequence_Tuple(given_rows);
    if (rows == NULL)
        return NULL;
    if (PyTuple_GET_SIZE(rows) == 0) {
        PyErr_SetString(PyExc_ValueError, "take: expected at least one number, got an empty list");
        Py_DECREF(rows);
        return NULL;
    }
    Py_ssize_t index = index_from(given_index, "take", PyTuple_GET_SIZE(rows));
    PyObject *row = index < 0 ? NULL : PyTuple_GET_ITEM(rows, index);
    if (row != NULL && (PyList_Check(row) || PyTuple_Check(row))) {
        PyObject *items = PySequence_Tuple(row);
        out = items ? PyList_New(PyTuple_GET_SIZE(items)) : NULL;
        for (Py_ssize_t i = 0; out != NULL && i < PyTuple_GET_SIZE(items); i++) {
            PyObject *taken = take_one(PyTuple_GET_ITEM(items, i), index);
            if (taken == NULL)
                Py_CLEAR(out);
            else
                PyList_SET_ITEM(out, i, taken);
        }
        Py_XDECREF(items);
    }
    else if (row != NULL) {
        out = take_one(row, index);
    }
    Py_DECREF(rows);
    return out;
}

#define SINGLE(name) {#name, composite_##name, METH_O, NULL}
#define KEYWORDS(name) {#name, (PyCFunction)(void (*)(void))composite_##name, METH_VARARGS | METH_KEYWORDS, NULL}

PyMethodDef composite_functions[] = {
    SINGLE(sum), SINGLE(mean), SINGLE(norm), SINGLE(logsumexp), SINGLE(softmax), SINGLE(log_softmax),
    SINGLE(largest), SINGLE(smallest),
    KEYWORDS(dot), KEYWORDS(matvec), KEYWORDS(cross_entropy), KEYWORDS(rmsnorm), KEYWORDS(layernorm), KEYWORDS(take),
    {NULL, NULL, 0, NULL},
};
