/* Executor: runs a Program (compiler/program.py) forward and in reverse, with no allocation per call.
 *
 * One call at a time works in an executor's memory; a lock sees to that, because the GIL is released while a long
 * program runs. The buffers that callers hand in are held meanwhile. */

#include "program.h"

/* ---------------------------------------------------------------- memory */

static void memory_release(Memory *memory)
{
    doubles_free(memory->values);
    doubles_free(memory->grads);
    doubles_free(memory->scratch);
    doubles_free(memory->facts);
    doubles_free(memory->shared_grads);
    *memory = (Memory){.width = 0};
}

static int memory_make(Executor *self, Memory *memory, Count width)
{
    memory->values = doubles_new(self->size * width);
    memory->grads = doubles_new(self->size * width);
    memory->scratch = doubles_new(self->scratch_count * width + 2 * MOST_INPUTS * CHUNK);
    memory->facts = doubles_new(self->fact_count * width);
    memory->shared_grads = width > 1 ? doubles_new(self->size) : NULL;
    if (!memory->values || !memory->grads || !memory->scratch || !memory->facts
        || (width > 1 && !memory->shared_grads)) {
        memory_release(memory);
        PyErr_NoMemory();
        return -1;
    }
    memory->width = width;
    for (Count slot = 0; slot < self->size; slot++) {
        for (Count lane = 0; lane < width; lane++)
            memory->values[slot * width + lane] = self->initial[slot];
    }
    return 0;
}

/* ---------------------------------------------------------------- running */

/* A call that the plain function would come to as well; where it raises, the plain function will say so. */
static unsigned call_guarded(const Executor *self, const Step *step, const Memory *memory)
{
    Count count = step->guards < self->guard_count ? step->guards : self->guard_count;
    unsigned failed = guards_failed(self, memory, count, step->out);
    if (failed)
        return failed;
    unsigned long before = self->inside;
    ((Executor *)self)->inside = PyThread_get_thread_ident();
    int raised = call_forward(step, memory) < 0;
    ((Executor *)self)->inside = before;
    if (raised && PyErr_ExceptionMatches(PyExc_Exception)) /* not an interrupt from the keyboard */
        PyErr_Clear();
    return raised ? FAILED(0) : 0;
}

static unsigned forward(const Executor *self, const Memory *memory)
{
    unsigned failed = 0;
    Count width = memory->width;
    for (Count i = 0; i < self->step_count; i++) {
        const Step *step = &self->steps[i];
        if (step->tape != NULL && width == 1) {
            failed |= tape_forward(step, memory) ? 0 : FAILED(0);
            i += step->joined - 1;
            continue;
        }
        if (step->kind == STEP_CALL && (failed || (failed = call_guarded(self, step, memory)) != 0))
            return failed; /* also where the plain function has raised before it comes to the call */
        step_forward(self->kernels, step, memory, self->exact);
        const double *out = memory->values + step->out * width;
        Count count = step->rows * step->columns * width;
        if (step->checked && !self->kernels->finite(count, out)) {
            for (Count j = 0; j < count; j++)
                failed |= (unsigned)!isfinite(out[j]) << (j % width);
        }
    }
    /* what is not finite does not apply, whatever the guards say */
    return failed | (guards_failed(self, memory, self->guard_count, self->size) & ~(failed << BATCH));
}

/* Whether a gradient has come to the step, from an output that has a seed or a row that was taken: from others, 0 times
 * an infinite local gradient must not go on. */
static int is_reached(const Step *step, const Memory *memory)
{
    const double *grad = memory->grads + step->out * memory->width;
    Count count = step->rows * step->columns * memory->width, i = 0;
    while (i < count && grad[i] == 0.0)
        i++;
    return i < count;
}

static void grads_clear(const Memory *memory, Count first, Count end)
{
    memset(memory->grads + first * memory->width, 0, (size_t)((end - first) * memory->width) * sizeof(double));
}

/* From the gradients of the outputs to all others; those before `first` and from `end` on begin with 0. */
static void reverse_keeping(const Executor *self, const Memory *memory, const double *seeds, Count first, Count end)
{
    grads_clear(memory, 0, first);
    grads_clear(memory, end, self->size);
    for (Count i = 0; i < self->output_count; i++) {
        for (Count lane = 0; lane < memory->width; lane++)
            memory->grads[self->outputs[i] * memory->width + lane] += seeds[i];
    }
    for (Count i = self->step_count; i-- > 0;) {
        if (self->steps[i].joined_before > 0 && memory->width == 1) {
            i -= self->steps[i].joined_before - 1;
            tape_reverse(&self->steps[i], memory, self->partial);
            continue;
        }
        if (self->steps[i].needed && (!self->partial || is_reached(&self->steps[i], memory)))
            step_reverse(self->kernels, &self->steps[i], memory, self->exact, self->partial);
    }
}

static void reverse(const Executor *self, const Memory *memory, const double *seeds)
{
    reverse_keeping(self, memory, seeds, 0, 0);
}

/* 0 where the program applies. What it called may have left an exception. */
static unsigned run_forward(Executor *self, const Memory *memory)
{
    unsigned failed;
    if (!self->long_enough) {
        failed = forward(self, memory);
    }
    else {
        Py_BEGIN_ALLOW_THREADS
        failed = forward(self, memory);
        Py_END_ALLOW_THREADS
    }
    self->undecided = failed >> BATCH != 0;
    return failed;
}

/* Whether it did, as a bool; NULL with an exception set. New. */
static PyObject *applied(unsigned failed) { return PyErr_Occurred() ? NULL : PyBool_FromLong(failed == 0); }

static void run_reverse(Executor *self, const Memory *memory, const double *seeds)
{
    if (!self->long_enough) {
        reverse(self, memory, seeds);
        return;
    }
    Py_BEGIN_ALLOW_THREADS
    reverse(self, memory, seeds);
    Py_END_ALLOW_THREADS
}

static void executor_lock(Executor *self)
{
    if (!PyThread_acquire_lock(self->lock, NOWAIT_LOCK)) {
        Py_BEGIN_ALLOW_THREADS
        PyThread_acquire_lock(self->lock, WAIT_LOCK);
        Py_END_ALLOW_THREADS
    }
}

/* executor_lock for whoever begins a run; -1 with an exception set where it would wait for itself. */
static int executor_begin(Executor *self)
{
    if (self->calls && self->inside != 0 && self->inside == PyThread_get_thread_ident()) {
        PyErr_SetString(PyExc_RecursionError, "compile: expected a custom_op that leaves the compiled function alone "
                                              "which calls it, got one that calls it again; call the plain function");
        return -1;
    }
    executor_lock(self);
    return 0;
}

static void executor_unlock(Executor *self) { PyThread_release_lock(self->lock); }

/* ---------------------------------------------------------------- numbers in and out */

/* Slots mostly lie side by side, stretch by stretch: of each, with how many of those after it. New, or NULL. Those that
 * are not among the program's, which all have its size for a number, make stretches of their own. */
static int32_t *stretches_of(const int32_t *slots, Count count, Count size)
{
    int32_t *stretches = PyMem_Malloc((size_t)(count + 1) * sizeof *stretches);
    if (stretches == NULL)
        PyErr_NoMemory();
    for (Count i = count; stretches != NULL && i-- > 0;) {
        int known = slots[i] < size;
        int goes_on = i + 1 < count && (slots[i + 1] < size) == known && slots[i + 1] == slots[i] + known;
        stretches[i] = goes_on ? stretches[i + 1] + 1 : 1;
    }
    return stretches;
}

/* The first `count` inputs, from the slots in `from`. */
static void read_inputs(const Executor *self, const double *from, Count count, double *into)
{
    for (Count i = 0, here; i < count; i += here) {
        here = self->stretches[i] < count - i ? self->stretches[i] : count - i;
        memcpy(into + i, from + self->inputs[i], (size_t)here * sizeof *into);
    }
}

/* The inputs from `first` to before `end`. */
static void write_inputs(const Executor *self, double *to, Count first, Count end, const double *from)
{
    for (Count i = first, here; i < end; i += here, from += here) {
        here = self->stretches[i] < end - i ? self->stretches[i] : end - i;
        memcpy(to + self->inputs[i], from, (size_t)here * sizeof *to);
    }
}

static void read_outputs(const Executor *self, double *into)
{
    for (Count i = 0; i < self->output_count; i++)
        into[i] = self->single.values[self->outputs[i]];
}

/* The leaves must be a tuple of Values, as many as expected; the executor need not have seen it before. */
static int values_check(const Executor *self, PyObject *leaves, Count expected)
{
    if (!PyTuple_Check(leaves) || PyTuple_GET_SIZE(leaves) != expected) {
        PyErr_Format(PyExc_ValueError, "Executor: expected a tuple of %zd leaves, got %R", expected,
                     (PyObject *)Py_TYPE(leaves));
        return -1;
    }
    for (Py_ssize_t i = 0; leaves != self->known_leaves && i < expected; i++) {
        if (!is_value(PyTuple_GET_ITEM(leaves, i))) {
            PyErr_Format(PyExc_TypeError, "Executor: expected a Value of the native engine as leaf %zd, got %R", i,
                         PyTuple_GET_ITEM(leaves, i));
            return -1;
        }
    }
    return 0;
}

/* The same for what is behind the arguments among the inputs. */
static int leaves_check(const Executor *self, PyObject *leaves, Count arguments)
{
    return values_check(self, leaves, self->input_count - arguments);
}

#define LEAF_AT(leaves, i) ((Value *)PyTuple_GET_ITEM(leaves, i))

static int arguments_count_check(const Executor *self, Count count)
{
    if (count <= self->input_count)
        return 0;
    PyErr_Format(PyExc_ValueError, "Executor: expected at most %zd arguments, got %zd", self->input_count, count);
    return -1;
}

static int expect_arguments(const char *name, Py_ssize_t count, Py_ssize_t expected)
{
    if (count == expected)
        return 0;
    PyErr_Format(PyExc_TypeError, "Executor.%s: expected %zd arguments, got %zd", name, expected, count);
    return -1;
}

/* ---------------------------------------------------------------- one example */

/* The numbers of the leaves, behind `first` other inputs. Mostly it is the same tuple at every call, and nobody has
 * changed any since they were read. The executor is locked. */
static void fill_leaves(Executor *self, Count first, PyObject *leaves)
{
    if (leaves != self->known_leaves) {
        Py_XSETREF(self->known_leaves, Py_NewRef(leaves));
        self->read_at = 0;
    }
    for (Count i = first; self->read_at != data_writes && i < self->input_count; i++)
        self->single.values[self->inputs[i]] = LEAF_AT(leaves, i - first)->data;
    self->read_at = data_writes;
}

/* Whether the program applies to these arguments. */
static PyObject *executor_run(Executor *self, PyObject *given)
{
    Py_buffer arguments;
    if (doubles_from(given, "inputs", self->input_count, 0, &arguments) < 0)
        return NULL;
    PyObject *result = NULL;
    if (executor_begin(self) == 0) {
        write_inputs(self, self->single.values, 0, self->input_count, arguments.buf);
        self->read_at = 0;
        result = applied(run_forward(self, &self->single));
        executor_unlock(self);
    }
    PyBuffer_Release(&arguments);
    return result;
}

static PyObject *executor_run_values(Executor *self, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer arguments;
    if (expect_arguments("run_values", count, 2) < 0 || doubles_from(args[0], "arguments", -1, 0, &arguments) < 0)
        return NULL;
    Count given = arguments.len / (Count)sizeof(double);
    PyObject *result = NULL;
    if (arguments_count_check(self, given) == 0 && leaves_check(self, args[1], given) == 0
        && executor_begin(self) == 0) {
        write_inputs(self, self->single.values, 0, given, arguments.buf);
        fill_leaves(self, given, args[1]);
        result = applied(run_forward(self, &self->single));
        executor_unlock(self);
    }
    PyBuffer_Release(&arguments);
    return result;
}

static PyObject *executor_outputs(Executor *self, PyObject *into)
{
    Py_buffer outputs;
    if (doubles_from(into, "outputs", self->output_count, 1, &outputs) < 0)
        return NULL;
    executor_lock(self);
    read_outputs(self, outputs.buf);
    executor_unlock(self);
    PyBuffer_Release(&outputs);
    Py_RETURN_NONE;
}

static PyObject *executor_gradients(Executor *self, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer seeds, gradients;
    if (expect_arguments("gradients", count, 2) < 0
        || doubles_from(args[0], "seeds", self->output_count, 0, &seeds) < 0)
        return NULL;
    if (doubles_from(args[1], "gradients", self->input_count, 1, &gradients) < 0) {
        PyBuffer_Release(&seeds);
        return NULL;
    }
    executor_lock(self);
    run_reverse(self, &self->single, seeds.buf);
    read_inputs(self, self->single.grads, self->input_count, gradients.buf);
    executor_unlock(self);
    PyBuffer_Release(&gradients);
    PyBuffer_Release(&seeds);
    Py_RETURN_NONE;
}

/* The gradients are added to the leaves' own; the arguments' are written to a buffer. */
static PyObject *executor_gradients_into(Executor *self, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer seeds, gradients;
    if (expect_arguments("gradients_into", count, 3) < 0
        || doubles_from(args[0], "seeds", self->output_count, 0, &seeds) < 0)
        return NULL;
    if (doubles_from(args[2], "gradients", -1, 1, &gradients) < 0) {
        PyBuffer_Release(&seeds);
        return NULL;
    }
    Count given = gradients.len / (Count)sizeof(double);
    PyObject *result = NULL, *leaves = args[1];
    if (arguments_count_check(self, given) == 0 && leaves_check(self, leaves, given) == 0) {
        executor_lock(self);
        run_reverse(self, &self->single, seeds.buf);
        read_inputs(self, self->single.grads, given, gradients.buf);
        for (Count i = given; i < self->input_count; i++) {
            Value *leaf = LEAF_AT(leaves, i - given);
            gradient_set(leaf, leaf->grad + self->single.grads[self->inputs[i]]);
        }
        grad_writes++;
        executor_unlock(self);
        result = Py_NewRef(Py_None);
    }
    PyBuffer_Release(&gradients);
    PyBuffer_Release(&seeds);
    return result;
}

/* Forward and reverse in one call, which no other thread can come between: whether the program applies. */
static PyObject *executor_value_and_gradients(Executor *self, PyObject *const *args, Py_ssize_t count)
{
    enum { ARGUMENTS, OUTPUTS, SEEDS, GRADIENTS, BUFFERS };
    static const char *const names[BUFFERS] = {"arguments", "outputs", "seeds", "gradients"};
    Py_buffer buffers[BUFFERS];
    if (expect_arguments("value_and_gradients", count, 5) < 0)
        return NULL;
    PyObject *const given[BUFFERS] = {args[0], args[2], args[3], args[4]};
    Count expected[BUFFERS] = {-1, self->output_count, self->output_count, self->input_count};
    int held = 0;
    while (held < BUFFERS
           && doubles_from(given[held], names[held], expected[held], held == OUTPUTS || held == GRADIENTS,
                           &buffers[held]) == 0)
        held++;
    PyObject *result = NULL;
    Count arguments = held == BUFFERS ? buffers[ARGUMENTS].len / (Count)sizeof(double) : 0;
    if (held == BUFFERS && arguments_count_check(self, arguments) == 0 && leaves_check(self, args[1], arguments) == 0
        && executor_begin(self) == 0) {
        write_inputs(self, self->single.values, 0, arguments, buffers[ARGUMENTS].buf);
        fill_leaves(self, arguments, args[1]);
        unsigned failed = run_forward(self, &self->single);
        if (!failed) {
            read_outputs(self, buffers[OUTPUTS].buf);
            run_reverse(self, &self->single, buffers[SEEDS].buf);
            read_inputs(self, self->single.grads, self->input_count, buffers[GRADIENTS].buf);
        }
        executor_unlock(self);
        result = applied(failed);
    }
    while (held > 0)
        PyBuffer_Release(&buffers[--held]);
    return result;
}

/* The leaves' numbers as they are now, as bytes of doubles. New. */
static PyObject *executor_leaf_numbers(Executor *self, PyObject *leaves)
{
    Count count = PyTuple_Check(leaves) ? PyTuple_GET_SIZE(leaves) : -1;
    PyObject *numbers = values_check(self, leaves, count) < 0
        ? NULL : PyBytes_FromStringAndSize(NULL, count * (Count)sizeof(double));
    for (Count i = 0; numbers != NULL && i < count; i++) {
        double number = LEAF_AT(leaves, i)->data;
        memcpy(PyBytes_AS_STRING(numbers) + i * (Count)sizeof number, &number, sizeof number);
    }
    return numbers;
}

/* Adds to the leaves' gradients. */
static PyObject *executor_add_gradients(Executor *self, PyObject *const *args, Py_ssize_t count)
{
    if (expect_arguments("add_gradients", count, 2) < 0)
        return NULL;
    Py_buffer gradients;
    if (doubles_from(args[1], "gradients", -1, 0, &gradients) < 0)
        return NULL;
    Count leaves = gradients.len / (Count)sizeof(double);
    int failed = values_check(self, args[0], leaves) < 0;
    for (Count i = 0; !failed && i < leaves; i++) {
        Value *leaf = LEAF_AT(args[0], i);
        gradient_set(leaf, leaf->grad + ((const double *)gradients.buf)[i]);
    }
    grad_writes++;
    PyBuffer_Release(&gradients);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* The only result of the last run as a node over these children, which were the inputs at `places`. New. */
static PyObject *executor_node(Executor *self, PyObject *const *args, Py_ssize_t count)
{
    if (expect_arguments("node", count, 2) < 0)
        return NULL;
    Count places_count;
    int32_t *places = slots_from(args[1], "the children", self->input_count, -1, &places_count);
    Value *node = NULL;
    PyObject *op = PyUnicode_InternFromString("compiled");
    if (places == NULL || op == NULL || values_check(self, args[0], places_count) < 0)
        goto done;
    if (self->output_count != 1) {
        PyErr_Format(PyExc_ValueError, "Executor: expected a program with one result, got %zd", self->output_count);
        goto done;
    }
    if ((node = value_over(args[0])) == NULL)
        goto done;
    Details *details = details_of(node);
    details->op = Py_NewRef(op);
    static const double one = 1.0;
    executor_lock(self);
    run_reverse(self, &self->single, &one);
    node->data = self->single.values[self->outputs[0]];
    for (Count i = 0; i < places_count; i++)
        details->local_grads[i] = self->single.grads[self->inputs[places[i]]];
    executor_unlock(self);
    node = recorded(node);
done:
    Py_XDECREF(op);
    PyMem_Free(places);
    return (PyObject *)node;
}
