/* What a training step does to all parameters at once. The loops are those of optim.py, in the same order of
 * operations, so that the engines agree to the bit. Moments live in buffers of doubles, one for each parameter. */

#include "kernels.h"
#include "value.h"

/* Sets a gradient to a plain number, also where it was a Value. */
static void gradient_set(Value *v, double grad)
{
    if (careful_nodes != 0 && kind_of(v) == MANY && details_of(v)->grad_value != NULL)
        grad_value_set(v, NULL);
    v->grad = grad;
}

/* ---------------------------------------------------------------- arguments */

/* The parameters as a tuple of Values, which nobody can change meanwhile. New, or NULL. */
static PyObject *parameters_from(PyObject *given)
{
    PyObject *parameters = PySequence_Tuple(given);
    for (Py_ssize_t i = 0; parameters != NULL && i < PyTuple_GET_SIZE(parameters); i++) {
        PyObject *parameter = PyTuple_GET_ITEM(parameters, i);
        if (!is_value(parameter)) {
            PyErr_Format(PyExc_TypeError, "optim: expected a Value of the native engine as parameter %zd, got %R", i,
                         parameter);
            Py_CLEAR(parameters);
        }
    }
    return parameters;
}

/* A writable buffer of `count` doubles, to be released with PyBuffer_Release. */
static int moments_from(PyObject *given, Py_ssize_t count, Py_buffer *moments)
{
    if (PyObject_GetBuffer(given, moments, PyBUF_CONTIG | PyBUF_FORMAT) < 0)
        return -1;
    if (moments->format == NULL || strcmp(moments->format, "d") != 0
        || moments->len != count * (Py_ssize_t)sizeof(double)) {
        PyErr_Format(PyExc_ValueError, "optim: expected a buffer of %zd doubles", count);
        PyBuffer_Release(moments);
        return -1;
    }
    return 0;
}

#define PARAMETER(parameters, i) ((Value *)PyTuple_GET_ITEM(parameters, i))
#define AT_A_TIME 512 /* parameters whose numbers are brought side by side, where the first-level cache holds them */

/* ---------------------------------------------------------------- steps; each returns None */

static PyObject *optim_adam(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *given, *given_means, *given_squares;
    double settings[ADAM_SETTINGS];
    if (!PyArg_ParseTuple(args, "OOOddddddd:adam", &given, &given_means, &given_squares, &settings[ADAM_RATE],
                          &settings[ADAM_BETA], &settings[ADAM_BETA_SQUARE], &settings[ADAM_CORRECTION],
                          &settings[ADAM_CORRECTION_SQUARE], &settings[ADAM_EPSILON], &settings[ADAM_SHRINK]))
        return NULL;
    PyObject *parameters = parameters_from(given);
    if (parameters == NULL)
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(parameters);
    Py_buffer means, squares;
    if (moments_from(given_means, count, &means) < 0) {
        Py_DECREF(parameters);
        return NULL;
    }
    if (moments_from(given_squares, count, &squares) < 0) {
        PyBuffer_Release(&means);
        Py_DECREF(parameters);
        return NULL;
    }
    const Kernels *kernels = kernels_best();
    double data[AT_A_TIME], grads[AT_A_TIME];
    for (Py_ssize_t first = 0; first < count; first += AT_A_TIME) {
        Py_ssize_t here = count - first < AT_A_TIME ? count - first : AT_A_TIME;
        for (Py_ssize_t i = 0; i < here; i++) {
            data[i] = PARAMETER(parameters, first + i)->data;
            grads[i] = PARAMETER(parameters, first + i)->grad;
        }
        kernels->adam(here, data, grads, (double *)means.buf + first, (double *)squares.buf + first, settings);
        for (Py_ssize_t i = 0; i < here; i++)
            PARAMETER(parameters, first + i)->data = data[i];
    }
    PyBuffer_Release(&squares);
    PyBuffer_Release(&means);
    Py_DECREF(parameters);
    Py_RETURN_NONE;
}

static PyObject *optim_sgd(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *given, *given_velocities;
    double rate, momentum, decay;
    int nesterov;
    if (!PyArg_ParseTuple(args, "OOdddp:sgd", &given, &given_velocities, &rate, &momentum, &decay, &nesterov))
        return NULL;
    PyObject *parameters = parameters_from(given);
    if (parameters == NULL)
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(parameters);
    Py_buffer velocities;
    if (moments_from(given_velocities, momentum != 0.0 ? count : 0, &velocities) < 0) {
        Py_DECREF(parameters);
        return NULL;
    }
    double *velocity = velocities.buf;
    for (Py_ssize_t i = 0; i < count; i++) {
        Value *parameter = PARAMETER(parameters, i);
        double direction = parameter->grad;
        if (decay != 0.0)
            direction = direction + decay * parameter->data;
        if (momentum != 0.0) {
            velocity[i] = momentum * velocity[i] + direction;
            direction = nesterov ? direction + momentum * velocity[i] : velocity[i];
        }
        parameter->data = parameter->data - rate * direction;
    }
    PyBuffer_Release(&velocities);
    Py_DECREF(parameters);
    Py_RETURN_NONE;
}

/* ---------------------------------------------------------------- gradients */

static PyObject *optim_zero_grad(PyObject *module, PyObject *given)
{
    (void)module;
    PyObject *parameters = parameters_from(given);
    if (parameters == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parameters); i++)
        gradient_set(PARAMETER(parameters, i), 0.0);
    Py_DECREF(parameters);
    Py_RETURN_NONE;
}

/* The Euclidean length of all gradients, scaled by the largest so that squares neither overflow nor vanish. */
static PyObject *optim_gradient_norm(PyObject *module, PyObject *given)
{
    (void)module;
    PyObject *parameters = parameters_from(given);
    if (parameters == NULL)
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(parameters);
    double largest = 0.0, total = 0.0;
    for (Py_ssize_t i = 0; i < count; i++) {
        double size = fabs(PARAMETER(parameters, i)->grad);
        if (size > largest || size != size)
            largest = size;
        if (size != size)
            break;
    }
    for (Py_ssize_t i = 0; largest > 0.0 && largest < INFINITY && i < count; i++) {
        double ratio = PARAMETER(parameters, i)->grad / largest;
        total = total + ratio * ratio;
    }
    Py_DECREF(parameters);
    return PyFloat_FromDouble(total > 0.0 ? sqrt(total) * largest : largest);
}

static PyObject *optim_scale_gradients(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *given;
    double factor;
    if (!PyArg_ParseTuple(args, "Od:scale_gradients", &given, &factor))
        return NULL;
    PyObject *parameters = parameters_from(given);
    if (parameters == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parameters); i++)
        gradient_set(PARAMETER(parameters, i), PARAMETER(parameters, i)->grad * factor);
    Py_DECREF(parameters);
    Py_RETURN_NONE;
}

/* ---------------------------------------------------------------- finding parameters */

/* Appends the leaves in nested lists, tuples and dicts to `found`, and calls visit(owner) for each `owner_type`. */
static int leaves_gather(PyObject *nested, PyObject *found, PyObject *owner_type, PyObject *visit)
{
    if (is_value(nested))
        return is_leaf((Value *)nested) ? PyList_Append(found, nested) : 0;
    int failed = 0;
    if (PyList_Check(nested) || PyTuple_Check(nested) || PyDict_Check(nested)) {
        /* a copy: visit() is Python code, which may change the list */
        PyObject *items = PyDict_Check(nested) ? PyDict_Values(nested) : PySequence_Tuple(nested);
        if (items == NULL || Py_EnterRecursiveCall(" while looking for parameters")) {
            Py_XDECREF(items);
            return -1;
        }
        for (Py_ssize_t i = 0; !failed && i < PySequence_Fast_GET_SIZE(items); i++)
            failed = leaves_gather(PySequence_Fast_GET_ITEM(items, i), found, owner_type, visit) < 0;
        Py_LeaveRecursiveCall();
        Py_DECREF(items);
        return failed ? -1 : 0;
    }
    int is_owner = PyObject_IsInstance(nested, owner_type);
    if (is_owner <= 0)
        return is_owner;
    PyObject *visited = PyObject_CallOneArg(visit, nested);
    Py_XDECREF(visited);
    return visited == NULL ? -1 : 0;
}

static PyObject *optim_gather_leaves(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *nested, *found, *owner_type, *visit;
    if (!PyArg_ParseTuple(args, "OO!OO:gather_leaves", &nested, &PyList_Type, &found, &owner_type, &visit)
        || leaves_gather(nested, found, owner_type, visit) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyMethodDef optim_functions[] = {
    {"adam", optim_adam, METH_VARARGS, NULL},
    {"sgd", optim_sgd, METH_VARARGS, NULL},
    {"zero_grad", optim_zero_grad, METH_O, NULL},
    {"gradient_norm", optim_gradient_norm, METH_O, NULL},
    {"scale_gradients", optim_scale_gradients, METH_VARARGS, NULL},
    {"gather_leaves", optim_gather_leaves, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
