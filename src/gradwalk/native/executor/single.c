/* One example: run forward, and gradients, into buffers, into Values, as a node. */

#include "program.h"
#include "value/optim.h"

/* ---------------------------------------------------------------- numbers in and out */

/* The first `count` inputs, from the slots in `from`. */
static void single_read_inputs(const Executor *self, const double *from, Count count, double *into)
{
    for (Count i = 0, here; i < count; i += here) {
        here = self->stretches[i] < count - i ? self->stretches[i] : count - i;
        memcpy(into + i, from + self->inputs[i], (size_t)here * sizeof *into);
    }
}

static void single_read_outputs(const Executor *self, double *into)
{
    for (Count i = 0; i < self->output_count; i++)
        into[i] = self->single.values[self->outputs[i]];
}

static int single_check_arguments(const Executor *self, Count count)
{
    if (count <= self->input_count)
        return 0;
    PyErr_Format(PyExc_ValueError, "Executor: expected at most %zd arguments, got %zd", self->input_count, count);
    return -1;
}

/* Whether it did, as a bool; NULL with an exception set. New. */
static PyObject *single_applied(unsigned failed) { return PyErr_Occurred() ? NULL : PyBool_FromLong(failed == 0); }

/* ---------------------------------------------------------------- the methods */

/* Whether the program applies to these arguments. */
INTERNAL PyObject *executor_run(Executor *self, PyObject *given)
{
    Py_buffer arguments;
    if (read_doubles(given, "inputs", self->input_count, 0, &arguments) < 0)
        return NULL;
    PyObject *result = NULL;
    if (program_begin(self) == 0) {
        program_write_inputs(self, self->single.values, 0, self->input_count, arguments.buf);
        self->read_at = 0;
        result = single_applied(program_run_forward(self, &self->single));
        program_unlock(self);
    }
    PyBuffer_Release(&arguments);
    return result;
}

/* Writes arguments, floats and ints in a list, to their slots; -1 with an exception set. Nothing here runs Python code. */
static int single_write_list(Executor *self, PyObject *given, Count count)
{
    for (Count i = 0; i < count; i++) {
        PyObject *number = i < PyList_GET_SIZE(given) ? PyList_GET_ITEM(given, i) : Py_None;
        if (PyFloat_CheckExact(number))
            self->single.values[self->inputs[i]] = PyFloat_AS_DOUBLE(number);
        else if (PyLong_CheckExact(number))
            self->single.values[self->inputs[i]] = PyLong_AsDouble(number);
        else
            PyErr_Format(PyExc_TypeError, "Executor: expected a list of floats and ints, got %R", Py_TYPE(number));
        if (!PyFloat_CheckExact(number) && PyErr_Occurred())
            return -1;
    }
    return 0;
}

/* Forward on arguments, a list or a buffer, and the leaves' current data: what failed. The executor is locked afterwards,
 * to be unlocked; -1, and it is not, with an exception set. */
static int64_t single_run(Executor *self, PyObject *given, PyObject *leaves)
{
    Py_buffer buffer = {.buf = NULL};
    int in_list = PyList_CheckExact(given);
    if (!in_list && read_doubles(given, "arguments", -1, 0, &buffer) < 0)
        return -1;
    Count count = in_list ? PyList_GET_SIZE(given) : buffer.len / (Count)sizeof(double);
    int64_t failed = -1;
    if (single_check_arguments(self, count) == 0 && program_check_leaves(self, leaves, count) == 0
        && program_begin(self) == 0) {
        if (!in_list)
            program_write_inputs(self, self->single.values, 0, count, buffer.buf);
        if (in_list && single_write_list(self, given, count) < 0) {
            program_unlock(self);
        }
        else {
            program_fill_leaves(self, count, leaves);
            failed = program_run_forward(self, &self->single);
        }
    }
    if (!in_list)
        PyBuffer_Release(&buffer);
    return failed;
}

INTERNAL PyObject *executor_run_values(Executor *self, PyObject *const *args, Py_ssize_t count)
{
    int64_t failed = program_expect("run_values", count, 2) < 0 ? -1 : single_run(self, args[0], args[1]);
    if (failed < 0)
        return NULL;
    PyObject *result = single_applied((unsigned)failed);
    program_unlock(self);
    return result;
}

/* -1 with an exception set where it was not to wait for another thread's pass any longer. */
static int single_add_to_leaves(const Executor *self, PyObject *leaves)
{
    PyObject *lock;
    if (pass_begin(&lock) < 0)
        return -1;
    Count first = self->input_count - PyTuple_GET_SIZE(leaves);
    const double *grads = self->single.grads;
    const int32_t *slots = self->inputs + first;
    Count count = self->input_count - first;
    int careful = careful_nodes != 0; /* the last of them may become an ordinary one on the way */
    for (Count i = 0; i < count && !careful; i++)
        LEAF_AT(leaves, i)->grad += grads[slots[i]];
    for (Count i = 0; i < count && careful; i++)
        optim_set_gradient(LEAF_AT(leaves, i), gradient_of(LEAF_AT(leaves, i)) + grads[slots[i]]);
    grad_writes++;
    pass_end(lock);
    return 0;
}

/* The only result, and in the same call, which no other thread can come between, its gradients: added to the leaves' own,
 * or all written to a buffer. None where the program does not apply. */
static PyObject *single_value(Executor *self, PyObject *const *args, int backward, const Py_buffer *gradients)
{
    static const double one = 1.0;
    PyObject *held = NULL;
    if (program_expect_one(self) < 0 || (backward && program_hold_gradients(args[1], &held) < 0))
        return NULL;
    int64_t failed = single_run(self, args[0], args[1]);
    if (failed < 0) {
        Py_XDECREF(held);
        return NULL;
    }
    double value = self->single.values[self->outputs[0]];
    int raised = PyErr_Occurred() != NULL;
    if (!raised && failed == 0 && (backward || gradients != NULL)) {
        raised = program_run_reverse(self, &one) < 0;
        if (!raised && backward)
            raised = single_add_to_leaves(self, args[1]) < 0;
        else if (!raised)
            single_read_inputs(self, self->single.grads, self->input_count, gradients->buf);
    }
    program_unlock(self);
    Py_XDECREF(held);
    return raised ? NULL : failed != 0 ? Py_NewRef(Py_None) : PyFloat_FromDouble(value);
}

INTERNAL PyObject *executor_value(Executor *self, PyObject *const *args, Py_ssize_t count)
{
    return program_expect("value", count, 2) < 0 ? NULL : single_value(self, args, 0, NULL);
}

INTERNAL PyObject *executor_backward(Executor *self, PyObject *const *args, Py_ssize_t count)
{
    return program_expect("backward", count, 2) < 0 ? NULL : single_value(self, args, 1, NULL);
}

INTERNAL PyObject *executor_value_and_gradients(Executor *self, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer gradients;
    if (program_expect("value_and_gradients", count, 3) < 0
        || read_doubles(args[2], "gradients", self->input_count, 1, &gradients) < 0)
        return NULL;
    PyObject *value = single_value(self, args, 0, &gradients);
    PyBuffer_Release(&gradients);
    return value;
}

INTERNAL PyObject *executor_outputs(Executor *self, PyObject *into)
{
    Py_buffer outputs;
    if (read_doubles(into, "outputs", self->output_count, 1, &outputs) < 0)
        return NULL;
    program_lock(self);
    single_read_outputs(self, outputs.buf);
    program_unlock(self);
    PyBuffer_Release(&outputs);
    Py_RETURN_NONE;
}

INTERNAL PyObject *executor_gradients(Executor *self, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer seeds, gradients;
    if (program_expect("gradients", count, 2) < 0
        || read_doubles(args[0], "seeds", self->output_count, 0, &seeds) < 0)
        return NULL;
    if (read_doubles(args[1], "gradients", self->input_count, 1, &gradients) < 0) {
        PyBuffer_Release(&seeds);
        return NULL;
    }
    program_lock(self);
    int failed = program_run_reverse(self, seeds.buf) < 0;
    single_read_inputs(self, self->single.grads, self->input_count, gradients.buf);
    program_unlock(self);
    PyBuffer_Release(&gradients);
    PyBuffer_Release(&seeds);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* The leaves' numbers as they are now, as bytes of doubles. New. */
INTERNAL PyObject *executor_leaf_numbers(Executor *self, PyObject *leaves)
{
    Count count = PyTuple_Check(leaves) ? PyTuple_GET_SIZE(leaves) : -1;
    PyObject *numbers = program_check_values(self, leaves, count) < 0
        ? NULL : PyBytes_FromStringAndSize(NULL, count * (Count)sizeof(double));
    for (Count i = 0; numbers != NULL && i < count; i++) {
        double number = LEAF_AT(leaves, i)->data;
        memcpy(PyBytes_AS_STRING(numbers) + i * (Count)sizeof number, &number, sizeof number);
    }
    return numbers;
}

/* Adds to the leaves' gradients. */
INTERNAL PyObject *executor_add_gradients(Executor *self, PyObject *const *args, Py_ssize_t count)
{
    if (program_expect("add_gradients", count, 2) < 0)
        return NULL;
    Py_buffer gradients;
    if (read_doubles(args[1], "gradients", -1, 0, &gradients) < 0)
        return NULL;
    Count leaves = gradients.len / (Count)sizeof(double);
    PyObject *lock = NULL;
    int failed = program_check_values(self, args[0], leaves) < 0 || pass_begin(&lock) < 0;
    for (Count i = 0; !failed && i < leaves; i++) {
        Value *leaf = LEAF_AT(args[0], i);
        optim_set_gradient(leaf, gradient_of(leaf) + ((const double *)gradients.buf)[i]);
    }
    grad_writes++;
    pass_end(lock);
    PyBuffer_Release(&gradients);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* The only result of the last run as a node over these children, which were the inputs at `places`. New. */
INTERNAL PyObject *executor_node(Executor *self, PyObject *const *args, Py_ssize_t count)
{
    if (program_expect("node", count, 2) < 0)
        return NULL;
    Count places_count;
    int32_t *places = read_slots(args[1], "the children", self->input_count, -1, &places_count);
    Value *node = NULL;
    PyObject *op = PyUnicode_InternFromString("compiled");
    if (places == NULL || op == NULL || program_check_values(self, args[0], places_count) < 0
        || program_expect_one(self) < 0)
        goto done;
    if ((node = value_over(args[0])) == NULL)
        goto done;
    Details *details = details_of(node);
    details->op = Py_NewRef(op);
    static const double one = 1.0;
    program_lock(self);
    int failed = program_run_reverse(self, &one) < 0;
    node->data = self->single.values[self->outputs[0]];
    for (Count i = 0; i < places_count; i++)
        details->local_grads[i] = self->single.grads[self->inputs[places[i]]];
    program_unlock(self);
    if (failed)
        Py_CLEAR(node);
    else
        node = recorded(node);
done:
    Py_XDECREF(op);
    PyMem_Free(places);
    return (PyObject *)node;
}
