/* What a training step does to all parameters at once. The loops are those of optim.py, in the same order of
 * operations, so that the engines agree to the bit. Moments live in buffers of doubles, one for each parameter. */

#include "optim.h"

/* Sets a gradient to a plain number, also where it was a Value. */
INTERNAL void optim_set_gradient(Value *v, double grad)
{
    v->grad = grad;
    if (careful_nodes != 0 && kind_of(v) == MANY && details_of(v)->grad_value != NULL)
        cycles_set_grad_value(v, NULL); /* last: it may run Python code */
}

/* ---------------------------------------------------------------- arguments */

/* A parameter; NULL with an exception set if it is no Value. */
INTERNAL inline Value *optim_parameter(PyObject *parameters, Py_ssize_t i)
{
    PyObject *parameter = PyTuple_GET_ITEM(parameters, i);
    if (LIKELY(is_value(parameter)))
        return (Value *)parameter;
    PyErr_Format(PyExc_TypeError, "optim: expected a Value of the native engine as parameter %zd, got %R", i,
                 parameter);
    return NULL;
}

/* Whoever wants to know of what is read or set is told of all parameters, before any of them is changed. */
static inline int optim_parameters_may_be_used(PyObject *parameters)
{
    return LIKELY(!(modes_in_use & MODES_READ)) || modes_read_all(parameters) == 0;
}

/* The parameters as a tuple of Values, which nobody can change meanwhile. New, or NULL. (What is done at every step
 * checks each as it comes to it: going through all of them once more takes longer than the arithmetic.) */
COLD static PyObject *optim_parameters_from(PyObject *given)
{
    PyObject *parameters = PySequence_Tuple(given);
    if (parameters != NULL && !optim_parameters_may_be_used(parameters))
        Py_CLEAR(parameters);
    for (Py_ssize_t i = 0; parameters != NULL && i < PyTuple_GET_SIZE(parameters); i++) {
        if (optim_parameter(parameters, i) == NULL)
            Py_CLEAR(parameters);
    }
    return parameters;
}

/* A writable buffer of `count` doubles, to be released with PyBuffer_Release. */
static int optim_moments_from(PyObject *given, Py_ssize_t count, Py_buffer *moments)
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
#define AT_A_TIME 32 /* parameters whose numbers are brought side by side: few, so that their loads overlap the divisions */

INTERNAL void optim_adam_release(Adam *adam)
{
    if (adam->squares != NULL)
        PyBuffer_Release(&adam->square_buffer);
    if (adam->means != NULL)
        PyBuffer_Release(&adam->mean_buffer);
    Py_CLEAR(adam->parameters);
}

/* Until optim_adam_release. */
INTERNAL int optim_adam_hold(Adam *adam, PyObject *parameters, PyObject *means, PyObject *squares)
{
    if ((adam->parameters = PySequence_Tuple(parameters)) == NULL)
        return -1;
    Py_ssize_t count = PyTuple_GET_SIZE(adam->parameters);
    if (optim_moments_from(means, count, &adam->mean_buffer) == 0) {
        adam->means = adam->mean_buffer.buf;
        if (optim_moments_from(squares, count, &adam->square_buffer) == 0) {
            adam->squares = adam->square_buffer.buf;
            return 0;
        }
    }
    optim_adam_release(adam);
    return -1;
}

/* ---------------------------------------------------------------- steps; each returns None */

/* Moves the parameters from `first` to before `end`; -1, with an exception set, where one is no Value. With `slots`,
 * along the gradients found[slot] besides their own, which are 0 afterwards: what backward(), step() and zero_grad()
 * do, in one walk over the Values. */
static ALWAYS_INLINE int optim_adam_move_in(const Adam *adam, Py_ssize_t first, Py_ssize_t end, const int32_t *slots,
                                            const double *found, int careful)
{
    double data[AT_A_TIME], grads[AT_A_TIME];
    PyObject *parameters = adam->parameters;
    for (; first < end; first += AT_A_TIME) {
        Py_ssize_t here = end - first < AT_A_TIME ? end - first : AT_A_TIME;
        int have_gradients = 0;
        for (Py_ssize_t i = 0; i < here; i++) {
            const Value *parameter = optim_parameter(parameters, first + i);
            if (parameter == NULL)
                return -1;
            data[i] = parameter->data;
            grads[i] = careful ? gradient_of(parameter) : parameter->grad;
            if (slots != NULL) {
                have_gradients |= grads[i] != 0.0;
                grads[i] += found[slots[first + i]];
            }
        }
        adam->kernels->adam(here, data, grads, adam->means + first, adam->squares + first, adam->settings);
        data_writes++;
        for (Py_ssize_t i = 0; i < here; i++)
            PARAMETER(parameters, first + i)->data = data[i];
        for (Py_ssize_t i = 0; slots != NULL && (have_gradients || careful) && i < here; i++)
            optim_set_gradient(PARAMETER(parameters, first + i), 0.0);
    }
    return 0;
}

INTERNAL int optim_adam_move(const Adam *adam, Py_ssize_t first, Py_ssize_t end, const int32_t *slots,
                             const double *found)
{
    return careful_nodes != 0 ? optim_adam_move_in(adam, first, end, slots, found, 1)
         : slots != NULL ? optim_adam_move_in(adam, first, end, slots, found, 0)
                         : optim_adam_move_in(adam, first, end, NULL, NULL, 0);
}

/* The same where data and gradients are at hand: Values are written only, which takes half the time. */
INTERNAL void optim_adam_move_known(const Adam *adam, Py_ssize_t first, Py_ssize_t end, double *data,
                                    const double *grads)
{
    for (Py_ssize_t here; first < end; first += here, data += here, grads += here) {
        here = end - first < AT_A_TIME ? end - first : AT_A_TIME;
        adam->kernels->adam(here, data, grads, adam->means + first, adam->squares + first, adam->settings);
        for (Py_ssize_t i = 0; i < here; i++)
            PARAMETER(adam->parameters, first + i)->data = data[i];
    }
    data_writes++;
}

static PyObject *optim_adam(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *parameters, *means, *squares;
    Adam adam = {.kernels = kernels_best()};
    if (!PyArg_ParseTuple(args, "O" ADAM_FORMAT "OO:adam", &parameters, ADAM_SETTINGS_OF(&adam), &means, &squares)
        || optim_adam_hold(&adam, parameters, means, squares) < 0)
        return NULL;
    PyObject *lock = NULL;
    int failed = !optim_parameters_may_be_used(adam.parameters) || pass_begin(&lock) < 0
              || optim_adam_move(&adam, 0, PyTuple_GET_SIZE(adam.parameters), NULL, NULL) < 0;
    pass_end(lock);
    optim_adam_release(&adam);
    return failed ? NULL : Py_NewRef(Py_None);
}

static PyObject *optim_sgd(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *given, *given_velocities = NULL;
    double rate, momentum, decay;
    int nesterov;
    if (!PyArg_ParseTuple(args, "Odddp|O:sgd", &given, &rate, &momentum, &decay, &nesterov, &given_velocities))
        return NULL;
    PyObject *parameters = optim_parameters_from(given);
    if (parameters == NULL)
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(parameters);
    Py_buffer velocities = {.buf = NULL};
    if (momentum != 0.0 && given_velocities == NULL)
        PyErr_SetString(PyExc_TypeError, "optim: expected velocities where there is a momentum");
    if (momentum != 0.0 && (given_velocities == NULL || optim_moments_from(given_velocities, count, &velocities) < 0)) {
        Py_DECREF(parameters);
        return NULL;
    }
    double *velocity = velocities.buf;
    PyObject *lock;
    int failed = pass_begin(&lock) < 0;
    for (Py_ssize_t i = 0; i < count && !failed; i++) {
        Value *parameter = PARAMETER(parameters, i);
        double direction = gradient_of(parameter);
        if (decay != 0.0)
            direction = direction + decay * parameter->data;
        if (momentum != 0.0) {
            velocity[i] = momentum * velocity[i] + direction;
            direction = nesterov ? direction + momentum * velocity[i] : velocity[i];
        }
        parameter->data = parameter->data - rate * direction;
    }
    data_writes++;
    pass_end(lock);
    if (velocity != NULL)
        PyBuffer_Release(&velocities);
    Py_DECREF(parameters);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* ---------------------------------------------------------------- gradients */

static PyObject *optim_zero_grad(PyObject *module, PyObject *given)
{
    (void)module;
    PyObject *parameters = PySequence_Tuple(given);
    if (parameters == NULL || !optim_parameters_may_be_used(parameters)) {
        Py_XDECREF(parameters);
        return NULL;
    }
    PyObject *lock;
    int failed = pass_begin(&lock) < 0, careful = careful_nodes != 0;
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(parameters); i++) {
        Value *parameter = optim_parameter(parameters, i);
        failed = parameter == NULL;
        if (failed)
            break;
        leaves_to_come(parameter);
        if (careful)
            optim_set_gradient(parameter, 0.0);
        else
            parameter->grad = 0.0;
    }
    pass_end(lock);
    Py_DECREF(parameters);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* The Euclidean length of all gradients, scaled by the largest so that squares neither overflow nor vanish. */
COLD static PyObject *optim_gradient_norm(PyObject *module, PyObject *given)
{
    (void)module;
    PyObject *parameters = optim_parameters_from(given);
    if (parameters == NULL)
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(parameters);
    double largest = 0.0, total = 0.0;
    for (Py_ssize_t i = 0; i < count; i++) {
        double size = fabs(gradient_of(PARAMETER(parameters, i)));
        if (size > largest || size != size)
            largest = size;
        if (size != size)
            break;
    }
    for (Py_ssize_t i = 0; largest > 0.0 && largest < INFINITY && i < count; i++) {
        double ratio = gradient_of(PARAMETER(parameters, i)) / largest;
        total = total + ratio * ratio;
    }
    Py_DECREF(parameters);
    return PyFloat_FromDouble(total > 0.0 ? sqrt(total) * largest : largest);
}

COLD static PyObject *optim_scale_gradients(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *given;
    double factor;
    if (!PyArg_ParseTuple(args, "Od:scale_gradients", &given, &factor))
        return NULL;
    PyObject *parameters = optim_parameters_from(given);
    if (parameters == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parameters); i++)
        optim_set_gradient(PARAMETER(parameters, i), gradient_of(PARAMETER(parameters, i)) * factor);
    grad_writes++; /* 0 times infinity is not 0 */
    Py_DECREF(parameters);
    Py_RETURN_NONE;
}

/* ---------------------------------------------------------------- finding parameters */

/* Appends the leaves in nested lists, tuples and dicts to `found`, and calls visit(owner) for each `owner_type`. */
COLD static int optim_gather(PyObject *nested, PyObject *found, PyObject *owner_type, PyObject *visit)
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
            failed = optim_gather(PySequence_Fast_GET_ITEM(items, i), found, owner_type, visit) < 0;
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

COLD static PyObject *optim_gather_leaves(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *nested, *found, *owner_type, *visit;
    if (!PyArg_ParseTuple(args, "OO!OO:gather_leaves", &nested, &PyList_Type, &found, &owner_type, &visit)
        || optim_gather(nested, found, owner_type, visit) < 0)
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
