/* Value(...): both families' constructors. */

#include "value.h"

static int construct_fill_children(Details *details, PyObject *children)
{
    for (Py_ssize_t i = 0; i < details->count; i++) {
        PyObject *child = PyTuple_GET_ITEM(children, i);
        if (is_value(child)) {
            details->children[i] = (Value *)Py_NewRef(child);
            continue;
        }
        double number;
        if (number_from(child, "Value", NULL, &number) < 0
            || (details->children[i] = value_constant(number)) == NULL) {
            details->count = i;
            return -1;
        }
    }
    return 0;
}

static int construct_fill_local_grads(Details *details, PyObject *local_grads)
{
    Py_ssize_t count = PyTuple_GET_SIZE(local_grads);
    details->local_count = count;
    for (Py_ssize_t i = 0; i < count && i < details->count; i++) {
        if (number_from(PyTuple_GET_ITEM(local_grads, i), "Value", NULL, &details->local_grads[i]) < 0)
            return -1;
    }
    if (count != 0 && count != details->count) {
        PyErr_Format(PyExc_ValueError, "Value: expected one local gradient per child, got %zd for %zd", count,
                     details->count);
        return -1;
    }
    return 0;
}

/* New Details for Value(data, children, ...); NULL with an exception set. */
static Details *construct_details(PyObject *children, PyObject *local_grads, PyObject *op, PyObject *label)
{
    Details *details = details_new(PyTuple_GET_SIZE(children));
    if (details == NULL)
        return NULL;
    if (construct_fill_children(details, children) < 0 || construct_fill_local_grads(details, local_grads) < 0) {
        details->local_count = details->count; /* not counted as a node without local gradients yet */
        details_release(details);
        return NULL;
    }
    details->op = PyUnicode_GET_LENGTH(op) ? Py_NewRef(op) : NULL;
    details->label = PyUnicode_GET_LENGTH(label) ? Py_NewRef(label) : NULL;
    if (scopes_in_use) {
        modes_look();
        details->scope = modes.scope;
    }
    careful_nodes += details->local_count < details->count;
    return details;
}

/* What was given as a tuple, which nobody can change meanwhile. New. */
static PyObject *construct_tuple(PyObject *given)
{
    return given == NULL ? PyTuple_New(0) : PySequence_Tuple(given);
}

/* Fills v, or a new node if there is none yet, from arguments that were made sure of. */
static Value *construct_fill(Value *v, PyTypeObject *type, PyObject *data, PyObject *children, PyObject *local_grads,
                             PyObject *op, PyObject *label)
{
    double number;
    Details *details = NULL;
    int plain = PyTuple_GET_SIZE(children) == 0 && PyTuple_GET_SIZE(local_grads) == 0
             && PyUnicode_GET_LENGTH(op) == 0 && PyUnicode_GET_LENGTH(label) == 0;
    if (!plain && (details = construct_details(children, local_grads, op, label)) == NULL)
        return NULL;
    int made = v == NULL;
    if (number_from(data, "data", NULL, &number) < 0)
        goto failed;
    if (made && details != NULL && details->count > 0) {
        v = cycles_ready() < 0 ? NULL : PyObject_GC_New(Value, type);
        if (v != NULL) {
            v->link = make_link(NULL, NO_OP, LEAF) | COLLECTED;
            collected_nodes++;
        }
    }
    else if (made) {
        v = value_leaf(0.0);
        if (v != NULL)
            v->ob_base.ob_type = type;
    }
    if (v == NULL)
        goto failed;
    Details *before = kind_of(v) == MANY ? details_of(v) : NULL; /* __init__ called once more */
    v->data = number;
    v->grad = 0.0;
    data_writes += !made;
    v->link = make_link(NULL, NO_OP, LEAF) | (v->link & COLLECTED);
    if (Py_TYPE(v) != value_type)
        v->link |= stand_in_fresh(Py_TYPE(v), data);
    if (details != NULL)
        details_attach(v, details, NO_OP);
    if (before != NULL)
        details_release(before);
    if (made && (v->link & COLLECTED))
        PyObject_GC_Track(v);
    if (!plain && (cycles_about_to_hold(v, op) < 0 || cycles_about_to_hold(v, label) < 0)) {
        if (made)
            Py_DECREF(v);
        return NULL;
    }
    return v;
failed:
    if (details != NULL)
        details_release(details);
    return NULL;
}

/* The constructor's work, on a new node or on an instance of a subclass. */
COLD static Value *construct_value(PyObject *args, PyObject *kwargs, PyTypeObject *type, Value *target)
{
    static char *names[] = {"data", "_children", "_op", "label", "children", "local_grads", NULL};
    PyObject *data, *given_children = NULL, *op = NULL, *label = NULL, *more_children = NULL, *given_local = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOO$OO:Value", names, &data, &given_children, &op, &label,
                                     &more_children, &given_local))
        return NULL;
    if (label != NULL && attributes_refuse_label(label))
        return NULL;
    if (given_children != NULL && type != value_type && PyUnicode_Check(given_children))
        given_children = NULL; /* Value(2.0, 'a'): in a script's class no harm comes of it */
    if (op != NULL && !PyUnicode_Check(op)) {
        /* the microgpt family passes local gradients where micrograd passes the op */
        given_local = op;
        op = NULL;
    }
    Value *v = NULL;
    PyObject *nothing = PyUnicode_FromString("");
    PyObject *children = construct_tuple(more_children ? more_children : given_children);
    PyObject *local_grads = children ? construct_tuple(given_local) : NULL;
    if (nothing != NULL && local_grads != NULL)
        v = construct_fill(target, type, data, children, local_grads, op ? op : nothing, label ? label : nothing);
    if (v != NULL && modes_in_use & MODES_CONSTRUCT && !is_leaf(v) && modes_constructed((PyObject *)v) < 0) {
        if (target == NULL)
            Py_DECREF(v);
        v = NULL;
    }
    Py_XDECREF(nothing);
    Py_XDECREF(children);
    Py_XDECREF(local_grads);
    return v;
}

PyObject *value_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (is_node_type(type))
        return (PyObject *)construct_value(args, kwargs, type, NULL);
    Value *v = cycles_ready() < 0 ? NULL : (Value *)type->tp_alloc(type, 0);
    if (v != NULL) {
        v->link = make_link(NULL, NO_OP, LEAF) | COLLECTED;
        collected_nodes++;
    }
    return (PyObject *)v;
}

int value_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    if (is_node_type(Py_TYPE(self)) && value_details((Value *)self) == NULL) /* lets go of what it was made of */
        return -1;
    return construct_value(args, kwargs, Py_TYPE(self), (Value *)self) == NULL ? -1 : 0;
}

/* Value(3.0) without a tuple of arguments; everything else goes the long way. New. */
PyObject *value_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    newfunc make = ((PyTypeObject *)type)->tp_new; /* a stand-in may have been given one in Python */
    if (count == 1 && names == NULL && make == value_new
        && (PyFloat_CheckExact(args[0]) || PyLong_CheckExact(args[0]))) {
        double number;
        if (number_from(args[0], "data", NULL, &number) < 0)
            return NULL;
        Value *leaf = value_leaf(number);
        if (leaf != NULL && type != (PyObject *)value_type) {
            leaf->ob_base.ob_type = (PyTypeObject *)type;
            leaf->link |= stand_in_fresh((PyTypeObject *)type, args[0]);
        }
        return (PyObject *)leaf;
    }
    PyObject *positional = PyTuple_New(count);
    if (positional == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_INCREF(args[i]);
        PyTuple_SET_ITEM(positional, i, args[i]);
    }
    PyObject *keywords = NULL;
    if (names != NULL) {
        keywords = PyDict_New();
        for (Py_ssize_t i = 0; keywords != NULL && i < PyTuple_GET_SIZE(names); i++) {
            if (PyDict_SetItem(keywords, PyTuple_GET_ITEM(names, i), args[count + i]) < 0)
                Py_CLEAR(keywords);
        }
        if (keywords == NULL) {
            Py_DECREF(positional);
            return NULL;
        }
    }
    PyObject *made = make((PyTypeObject *)type, positional, keywords);
    Py_DECREF(positional);
    Py_XDECREF(keywords);
    return made;
}

/* ---------------------------------------------------------------- many at once, for functional.py */

static PyObject *construct_leaves_of_array(PyObject *array)
{
    Py_buffer view;
    if (structure_doubles_of(array, &view, 0) < 0)
        return NULL;
    PyObject *leaves = PyList_New(view.len / (Py_ssize_t)sizeof(double));
    for (Py_ssize_t i = 0; leaves != NULL && i < PyList_GET_SIZE(leaves); i++) {
        Value *leaf = value_leaf(((const double *)view.buf)[i]);
        if (leaf == NULL)
            Py_CLEAR(leaves);
        else
            PyList_SET_ITEM(leaves, i, (PyObject *)leaf);
    }
    PyBuffer_Release(&view);
    return leaves;
}

/* list(map(Value, numbers)), for a list or an array of doubles. New. */
PyObject *construct_leaves(PyObject *unused, PyObject *numbers)
{
    (void)unused;
    if (!PyList_Check(numbers))
        return construct_leaves_of_array(numbers);
    PyObject *leaves = PyList_New(PyList_GET_SIZE(numbers));
    for (Py_ssize_t i = 0; leaves != NULL && i < PyList_GET_SIZE(leaves); i++) {
        double number = 0.0;
        PyObject *given = structure_item(numbers, i);
        Value *leaf = given == NULL || number_from(given, "data", NULL, &number) < 0 ? NULL : value_leaf(number);
        Py_XDECREF(given);
        if (leaf == NULL)
            Py_CLEAR(leaves);
        else
            PyList_SET_ITEM(leaves, i, (PyObject *)leaf);
    }
    return leaves;
}
