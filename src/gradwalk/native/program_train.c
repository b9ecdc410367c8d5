/* A training step: the reverse pass, and Adam along what it found, without a detour through the Values' gradients. */

#include "program_steps.h"

/* The parameters' slots, one past the last for a parameter that the program does not read: no gradient ever comes there.
 * Mostly the same array at every call. */
static int slots_check(Executor *self, PyObject *given, Count count, Py_buffer *buffer)
{
    if (PyObject_GetBuffer(given, buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0)
        return -1;
    const int32_t *slots = buffer->buf;
    int right = buffer->itemsize == sizeof *slots && buffer->len == count * (Count)sizeof *slots;
    for (Count i = 0; right && given != self->known_slots && i < count; i++)
        right = slots[i] >= 0 && slots[i] <= self->size;
    if (!right) {
        PyErr_Format(PyExc_ValueError, "Executor: expected the slots of %zd parameters as int32", count);
        PyBuffer_Release(buffer);
        return -1;
    }
    if (given != self->known_slots)
        Py_XSETREF(self->known_slots, Py_NewRef(given));
    return 0;
}

/* Reverse over the last run of a program with one result, and a step of Adam. */
static PyObject *executor_train(Executor *self, PyObject *args)
{
    PyObject *given, *given_slots, *given_means, *given_squares;
    double settings[ADAM_SETTINGS];
    if (!PyArg_ParseTuple(args, "OOOOdddddd:train", &given, &given_slots, &given_means, &given_squares,
                          &settings[ADAM_BETA], &settings[ADAM_BETA_SQUARE], &settings[ADAM_STEP],
                          &settings[ADAM_SCALE], &settings[ADAM_EPSILON], &settings[ADAM_SHRINK]))
        return NULL;
    if (self->output_count != 1) {
        PyErr_Format(PyExc_ValueError, "Executor: expected a program with one result, got %zd", self->output_count);
        return NULL;
    }
    PyObject *parameters = PySequence_Tuple(given), *result = NULL;
    if (parameters == NULL)
        return NULL;
    Count count = PyTuple_GET_SIZE(parameters);
    Py_buffer slots, means, squares;
    if (slots_check(self, given_slots, count, &slots) < 0)
        goto no_slots;
    if (moments_from(given_means, count, &means) < 0)
        goto no_means;
    if (moments_from(given_squares, count, &squares) < 0)
        goto no_squares;
    static const double one = 1.0;
    executor_lock(self);
    run_reverse(self, &self->single, &one);
    if (adam_move(self->kernels, parameters, slots.buf, self->single.grads, means.buf, squares.buf, settings) == 0)
        result = Py_NewRef(Py_None);
    executor_unlock(self);
    PyBuffer_Release(&squares);
no_squares:
    PyBuffer_Release(&means);
no_means:
    PyBuffer_Release(&slots);
no_slots:
    Py_DECREF(parameters);
    return result;
}
