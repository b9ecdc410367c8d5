/* What is refused, and what is said then: the checks and their texts are in errors.py. */

#include "value.h"

/* Borrowed; NULL with an exception set. */
PyObject *errors_module(void)
{
    static PyObject *errors;
    if (errors == NULL)
        errors = PyImport_ImportModule("gradwalk.errors");
    return errors;
}

PyObject *errors_call(const char *function, PyObject *argument)
{
    PyObject *errors = errors_module();
    return errors == NULL ? NULL : PyObject_CallMethod(errors, function, "O", argument);
}

/* A list of the first `count` numbers. New. */
static PyObject *errors_list(const double *numbers, Py_ssize_t count)
{
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *number = PyFloat_FromDouble(numbers[i]);
        if (number == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, number);
    }
    return list;
}

COLD int errors_check(unsigned op, const double *in, double out, PyObject *const *inputs)
{
    Py_ssize_t count = op_inputs[op];
    PyObject *numbers = errors_list(in, count + op_parameters[op]);
    PyObject *nodes = PyList_New(count);
    PyObject *errors = errors_module();
    if (errors == NULL || numbers == NULL || nodes == NULL) {
        Py_XDECREF(numbers);
        Py_XDECREF(nodes);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_INCREF(inputs[i]);
        PyList_SET_ITEM(nodes, i, inputs[i]);
    }
    PyObject *passed = PyObject_CallMethod(errors, "check_op", "sNdN", op_names[op], numbers, out, nodes);
    Py_XDECREF(passed);
    return passed == NULL ? -1 : 0;
}
