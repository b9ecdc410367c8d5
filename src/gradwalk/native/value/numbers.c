/* From any Python object to a double, and what to say when that fails. The texts are in errors.py. */

#include "value.h"

static PyObject *errors; /* the module gradwalk.errors */

static int errors_ready(void)
{
    if (errors == NULL)
        errors = PyImport_ImportModule("gradwalk.errors");
    return errors == NULL ? -1 : 0;
}

PyObject *errors_call(const char *function, PyObject *argument)
{
    return errors_ready() < 0 ? NULL : PyObject_CallMethod(errors, function, "O", argument);
}

/* The long way: NumPy scalars, fractions, integers beyond a double, and everything that is no number. */
COLD static int number_from_object(PyObject *given, const char *operation, Value *beside, double *number)
{
    if (PyFloat_Check(given)) {
        *number = PyFloat_AS_DOUBLE(given);
        return 1;
    }
    if (errors_ready() < 0)
        return -1;
    PyObject *known = PyObject_CallMethod(errors, "number_from", "OsO", given, operation,
                                          beside ? (PyObject *)beside : Py_None);
    if (known == NULL)
        return -1;
    int is_number = known != Py_NotImplemented;
    if (is_number)
        *number = PyFloat_AsDouble(known);
    Py_DECREF(known);
    return is_number;
}

int number_from(PyObject *given, const char *operation, Value *beside, double *number)
{
    /* the exact types first: asking for a subclass walks the type's ancestors */
    if (PyFloat_CheckExact(given)) {
        *number = PyFloat_AS_DOUBLE(given);
        return 1;
    }
    if (beside != NULL && is_value(given)) {
        *number = ((Value *)given)->data;
        return 1;
    }
    if (PyLong_Check(given)) {
        double converted = PyLong_AsDouble(given);
        if (converted != -1.0 || !PyErr_Occurred()) {
            *number = converted;
            return 1;
        }
        PyErr_Clear();
    }
    return number_from_object(given, operation, beside, number);
}

/* The float to compare with instead of a number of another type, and how: `*comparison` may become another one. New;
 * NotImplemented where the other side has to know. */
PyObject *number_to_compare(PyObject *given, int *comparison, PyObject *beside, double *number)
{
    static const char *const signs[] = {"<", "<=", "==", "!=", ">", ">="}; /* Py_LT is 0, Py_LE 1, … */
    if (PyLong_CheckExact(given)) {
        *number = PyLong_AsDouble(given);
        if (fabs(*number) < 0x1p53 && !(*number == -1.0 && PyErr_Occurred()))
            return PyFloat_FromDouble(*number);
        PyErr_Clear();
    }
    PyObject *known = errors_ready() < 0 ? NULL : PyObject_CallMethod(errors, "number_to_compare", "OsO", given,
                                                                      signs[*comparison], beside);
    if (known == NULL || known == Py_NotImplemented)
        return known;
    PyObject *bound = NULL;
    const char *sign;
    if (PyArg_ParseTuple(known, "sO!", &sign, &PyFloat_Type, &bound)) {
        for (*comparison = 0; strcmp(signs[*comparison], sign) != 0;)
            ++*comparison;
        *number = PyFloat_AS_DOUBLE(bound);
        Py_INCREF(bound);
    }
    Py_DECREF(known);
    return bound;
}

/* Item i; a list may have changed meanwhile, because turning an object into a number can run Python code. New. */
PyObject *item_of(PyObject *list, Py_ssize_t i)
{
    if (i >= PySequence_Fast_GET_SIZE(list)) {
        PyErr_SetString(PyExc_RuntimeError, "expected a list that stays as it is, got one that changed while being read");
        return NULL;
    }
    return Py_NewRef(PySequence_Fast_GET_ITEM(list, i));
}

/* A list of the first `count` numbers. New. */
static PyObject *list_of(const double *numbers, Py_ssize_t count)
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

COLD int number_check(unsigned op, const double *in, double out, PyObject *const *inputs)
{
    Py_ssize_t count = op_inputs[op];
    PyObject *numbers = list_of(in, count + op_parameters[op]);
    PyObject *nodes = PyList_New(count);
    if (errors_ready() < 0 || numbers == NULL || nodes == NULL) {
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
