/* From any Python object to a double. */

#include "value.h"

/* The long way: NumPy scalars, fractions, integers beyond a double, and everything that is no number. */
COLD static int number_from_object(PyObject *given, const char *operation, Value *beside, double *number)
{
    if (PyFloat_Check(given)) {
        *number = PyFloat_AS_DOUBLE(given);
        return 1;
    }
    PyObject *errors = errors_module();
    PyObject *known = errors == NULL ? NULL : PyObject_CallMethod(errors, "number_from", "OsO", given, operation,
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
    PyObject *errors = errors_module();
    PyObject *known = errors == NULL ? NULL : PyObject_CallMethod(errors, "number_to_compare", "OsO", given,
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
