/* A graph that is cut off, for checkpoints. */

#include "value.h"

/* A leaf for the time being. The gradient stays with the node, so that what is done to it meanwhile stays. */
static int cut_apart(Value *node, uint64_t *link)
{
    PyObject *grad_value = kind_of(node) == MANY ? Py_XNewRef(details_of(node)->grad_value) : NULL;
    if (kind_of(node) == MANY)
        cycles_unwatch(details_of(node));
    *link = node->link;
    node->link = make_link(NULL, NO_OP, LEAF) | (node->link & COLLECTED);
    int failed = grad_value != NULL && cycles_set_grad_value(node, grad_value) < 0;
    Py_XDECREF(grad_value);
    return failed ? -1 : 0;
}

/* What it was before, but for its gradient; a label that it was given meanwhile goes. */
static int cut_joined(Value *node, uint64_t link)
{
    Details *meanwhile = kind_of(node) == MANY ? details_of(node) : NULL;
    PyObject *grad_value = meanwhile ? Py_XNewRef(meanwhile->grad_value) : NULL;
    if (meanwhile != NULL)
        cycles_unwatch(meanwhile);
    node->link = link;
    int failed = 0;
    if (kind_of(node) == MANY && cycles_may_lead_back(details_of(node)))
        failed = cycles_watch(node) < 0;
    failed |= cycles_set_grad_value(node, grad_value) < 0;
    if (meanwhile != NULL)
        details_release(meanwhile);
    Py_XDECREF(grad_value);
    return failed ? -1 : 0;
}

/* A backward pass inside the function ends at the cut nodes, and adds to their gradients as to those of leaves. New. */
PyObject *cut_run(PyObject *unused, PyObject *args)
{
    (void)unused;
    PyObject *given, *function;
    if (!PyArg_ParseTuple(args, "OO:_cut", &given, &function))
        return NULL;
    PyObject *nodes = PySequence_Tuple(given);
    Py_ssize_t count = nodes ? PyTuple_GET_SIZE(nodes) : 0, cut = 0;
    uint64_t *links = nodes ? PyMem_RawMalloc(((size_t)count + 1) * sizeof *links) : NULL;
    if (links == NULL) {
        Py_XDECREF(nodes);
        return nodes ? PyErr_NoMemory() : NULL;
    }
    PyObject *result = NULL;
    int failed = 0;
    for (Py_ssize_t i = 0; i < count && !failed; i++) {
        failed = !is_value(PyTuple_GET_ITEM(nodes, i));
        if (failed)
            PyErr_SetString(PyExc_TypeError, "_cut: expected Values");
    }
    for (; cut < count && !failed; cut++)
        failed = cut_apart((Value *)PyTuple_GET_ITEM(nodes, cut), &links[cut]) < 0;
    if (!failed)
        result = PyObject_CallNoArgs(function);
    PyObject *kind, *error, *traceback; /* the function's, if it failed */
    PyErr_Fetch(&kind, &error, &traceback);
    while (cut-- > 0) /* in reverse, in case one is there twice */
        failed |= cut_joined((Value *)PyTuple_GET_ITEM(nodes, cut), links[cut]) < 0;
    if (failed)
        Py_CLEAR(result);
    if (kind != NULL)
        PyErr_Restore(kind, error, traceback);
    PyMem_RawFree(links);
    Py_DECREF(nodes);
    return result;
}
