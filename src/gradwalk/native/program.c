/* Executor: runs a Program (compiler/program.py) forward and in reverse, with no allocation per call.
 *
 * One call at a time works in an executor's memory; a lock sees to that, because the GIL is released while a long
 * program runs. The buffers that callers hand in are held meanwhile. */

#include "program_steps.h"

#include <pythread.h>

typedef struct {
    int32_t left, right;
    int sign; /* Py_LT … */
    int outcome;
    int rounded; /* a side may differ in the last bits from what the eager engine compares */
} Guard;

/* The parameters of the last training step. */
typedef struct {
    PyObject *parameters, *slots_given; /* a tuple of Values; an array with the slot of each, which nobody may change */
    int32_t *slots, *stretches; /* of each, with how many of those after it its slot lies side by side */
    uint64_t clear_at; /* grad_writes when their gradients were last seen to be 0; 0: never */
} Trained;

typedef struct {
    PyObject_HEAD
    const Kernels *kernels;
    PyThread_type_lock lock;
    int exact, long_enough; /* long enough for other threads to be let in */
    int doubtful; /* a guard or a jump looks at numbers that the eager engine rounds otherwise */
    int partial; /* there are several results, of which some may have no seed, or rows that are not taken */
    int calls, undecided; /* whether it calls Python; whether the last run could not tell if the program applies */
    unsigned long inside; /* the thread that runs a Python function called from here, or 0 */
    Count size, input_count, output_count, step_count, guard_count, scratch_count, fact_count, work;
    int32_t *inputs, *stretches, *outputs; /* stretches: see stretches_of the inputs */
    double *initial;
    Step *steps;
    Guard *guards;
    Jump *jumps;
    Count jump_count;
    Count moving_from; /* the first input of a direction, as the steps are marked for; 0: they are not */
    PyObject *known_leaves; /* the last tuple that was found to be one of Values: it stays one */
    uint64_t read_at; /* data_writes when their numbers were last seen to be in their slots; 0: never */
    Trained trained;
    Memory single, batch[2]; /* for one example; for a batch, by this thread and by a second: made when first needed */
} Executor;

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

static int compare(double left, int sign, double right)
{
    switch (sign) {
    case Py_LT: return left < right;
    case Py_LE: return left <= right;
    case Py_GT: return left > right;
    case Py_GE: return left >= right;
    case Py_EQ: return left == right;
    default: return left != right;
    }
}

/* A bit per example of the memory: the program does not apply to it. BATCH bits higher, that this is only because two
 * numbers are so close that the plain function, which rounds otherwise, may find them in another order. */
#define FAILED(lane) (1u << (lane))
#define UNDECIDED(lane) (FAILED(lane) | FAILED(lane) << BATCH)

/* The guards over slots before `end` once more for one example, with the doubt about each side. */
static unsigned guards_judged(const Executor *self, const Memory *memory, Count lane, Count count, Count end)
{
    double *values = PyMem_RawCalloc((size_t)self->size, 2 * sizeof *values), *doubt = values + self->size;
    unsigned verdict = values == NULL ? UNDECIDED(lane) : 0;
    if (values == NULL)
        return verdict;
    for (Count slot = 0; slot < self->size; slot++)
        values[slot] = memory->values[slot * memory->width + lane];
    Memory one = {.width = 1, .values = values, .scratch = memory->scratch, .facts = memory->facts};
    for (Count i = 0; i < self->step_count && self->steps[i].out < end; i++)
        step_doubt(&self->steps[i], &one, doubt);
    for (Count i = 0; i < count && verdict != FAILED(lane); i++) {
        const Guard *guard = &self->guards[i];
        double left = values[guard->left], right = values[guard->right];
        if (guard->left >= end || guard->right >= end)
            continue;
        if (guard->rounded && !(fabs(left - right) > SAFETY * (doubt[guard->left] + doubt[guard->right])))
            verdict = UNDECIDED(lane);
        else if (compare(left, guard->sign, right) != guard->outcome)
            verdict = FAILED(lane);
    }
    for (Count i = 0; i < self->jump_count && verdict == 0; i++) {
        const Jump *jump = &self->jumps[i];
        if (jump->slot < end && jump->other < end
            && !(jump_distance(jump, values, 1, 0) > SAFETY * jump_doubt(jump, values, doubt)))
            verdict = UNDECIDED(lane);
    }
    PyMem_RawFree(values);
    return verdict;
}

/* Closer than that, it is worth asking for the doubt. Generous: in products of two numbers, most digits may have
 * cancelled. */
static double margin_of(const Executor *self, const Memory *memory)
{
    double most = self->kernels->most(self->size * memory->width, memory->values);
    return 1e-9 * (most > 1.0 ? most * most : most);
}

/* Of the first `count` guards, those over slots before `end`; and jumps over such slots. */
static unsigned guards_failed(const Executor *self, const Memory *memory, Count count, Count end)
{
    unsigned failed = 0, close = 0;
    Count width = memory->width;
    double margin = self->doubtful ? margin_of(self, memory) : 0.0;
    for (Count i = 0; i < count; i++) {
        const Guard *guard = &self->guards[i];
        if (guard->left >= end || guard->right >= end)
            continue;
        for (Count lane = 0; lane < width; lane++) {
            double left = memory->values[guard->left * width + lane];
            double right = memory->values[guard->right * width + lane];
            failed |= (unsigned)(compare(left, guard->sign, right) != guard->outcome) << lane;
            int apart = !guard->rounded || fabs(left - right) > 1e-6 * (fabs(left) + fabs(right)) + margin;
            close |= (unsigned)!apart << lane;
        }
    }
    for (Count i = 0; i < self->jump_count; i++) {
        const Jump *jump = &self->jumps[i];
        for (Count lane = 0; jump->slot < end && jump->other < end && lane < width; lane++) {
            double size = fabs(memory->values[jump->slot * width + lane]);
            close |= (unsigned)!(jump_distance(jump, memory->values, width, lane) > 1e-6 * size + margin) << lane;
        }
    }
    for (Count lane = 0; close >> lane != 0; lane++) {
        if (close >> lane & 1)
            failed = (failed & ~FAILED(lane)) | guards_judged(self, memory, lane, count, end);
    }
    return failed;
}

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

#include "program_batch.c"
#include "program_train.c"
#include "program_directions.c"

/* ---------------------------------------------------------------- the type */

static int executor_traverse(PyObject *object, visitproc visit, void *arg)
{
    Executor *self = (Executor *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->known_leaves);
    Py_VISIT(self->trained.parameters);
    for (Count i = 0; self->calls && i < self->step_count; i++)
        Py_VISIT(self->steps[i].function);
    return 0;
}

static int executor_clear(PyObject *object)
{
    Executor *self = (Executor *)object;
    Py_CLEAR(self->known_leaves);
    Py_CLEAR(self->trained.parameters);
    for (Count i = 0; self->calls && i < self->step_count; i++)
        Py_CLEAR(self->steps[i].function);
    return 0;
}

static void executor_dealloc(PyObject *object)
{
    Executor *self = (Executor *)object;
    PyObject_GC_UnTrack(object);
    for (Count i = 0; self->steps != NULL && i < self->step_count; i++)
        step_release(&self->steps[i]);
    PyMem_Free(self->steps);
    PyMem_Free(self->guards);
    PyMem_Free(self->jumps);
    PyMem_Free(self->inputs);
    PyMem_Free(self->stretches);
    PyMem_Free(self->outputs);
    PyMem_Free(self->initial);
    memory_release(&self->single);
    memory_release(&self->batch[0]);
    memory_release(&self->batch[1]);
    Py_XDECREF(self->known_leaves);
    trained_release(&self->trained);
    if (self->lock != NULL)
        PyThread_free_lock(self->lock);
    PyTypeObject *type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

static int sign_from(PyObject *guard, int *sign)
{
    static const char *const signs[] = {"<", "<=", "==", "!=", ">", ">="}; /* Py_LT is 0, Py_LE 1, … */
    PyObject *given = PyObject_GetAttrString(guard, "sign");
    int found = 0;
    for (*sign = 0; given != NULL && *sign < 6 && !found; ++*sign)
        found = PyUnicode_Check(given) && PyUnicode_CompareWithASCIIString(given, signs[*sign]) == 0;
    --*sign;
    if (given != NULL && !found)
        PyErr_Format(PyExc_ValueError, "Executor: expected a guard's sign to be a comparison, got %R", given);
    Py_XDECREF(given);
    return found ? 0 : -1;
}

static int guards_from(Executor *self, PyObject *given)
{
    PyObject *guards = PySequence_Tuple(given);
    if (guards == NULL)
        return -1;
    Count count = PyTuple_GET_SIZE(guards);
    self->guards = PyMem_Calloc((size_t)count + 1, sizeof *self->guards);
    int failed = self->guards == NULL;
    if (failed)
        PyErr_NoMemory();
    for (Count i = 0; !failed && i < count; i++) {
        PyObject *guard = PyTuple_GET_ITEM(guards, i), *outcome = NULL;
        Count left, right;
        failed = count_from(guard, "left", &left) < 0 || count_from(guard, "right", &right) < 0
              || sign_from(guard, &self->guards[i].sign) < 0
              || (outcome = PyObject_GetAttrString(guard, "outcome")) == NULL;
        if (!failed && (left < 0 || left >= self->size || right < 0 || right >= self->size)) {
            PyErr_Format(PyExc_ValueError, "Executor: expected a guard over slots, got %zd and %zd", left, right);
            failed = 1;
        }
        if (!failed) {
            self->guards[i].left = (int32_t)left;
            self->guards[i].right = (int32_t)right;
            self->guards[i].outcome = PyObject_IsTrue(outcome);
            failed = self->guards[i].outcome < 0;
        }
        Py_XDECREF(outcome);
    }
    unsigned char *rounded = PyMem_Calloc((size_t)self->size + 1, 1);
    if (rounded == NULL) {
        PyErr_NoMemory();
        failed = 1;
    }
    Count jumps = 0;
    int asked = count > 0; /* or nobody wants to know what is rounded */
    for (Count i = 0; !failed && !asked && i < self->step_count; i++)
        asked = jumping_operand(&self->steps[i]) >= 0;
    for (Count i = 0; !failed && asked && i < self->step_count; i++) {
        step_mark_rounded(&self->steps[i], rounded);
        jumps += step_jumps(&self->steps[i], rounded, NULL);
    }
    if (!failed && (self->jumps = PyMem_Calloc((size_t)jumps + 1, sizeof *self->jumps)) == NULL) {
        PyErr_NoMemory();
        failed = 1;
    }
    for (Count i = 0; !failed && self->jump_count < jumps; i++)
        self->jump_count += step_jumps(&self->steps[i], rounded, self->jumps + self->jump_count);
    self->doubtful = jumps > 0;
    for (Count i = 0; !failed && i < count; i++) {
        Guard *guard = &self->guards[i];
        guard->rounded = guard->left != guard->right && (rounded[guard->left] || rounded[guard->right]);
        self->doubtful |= guard->rounded;
    }
    PyMem_Free(rounded);
    self->guard_count = failed ? 0 : count;
    Py_DECREF(guards);
    return failed ? -1 : 0;
}

static int steps_from(Executor *self, PyObject *given, PyObject *functions)
{
    PyObject *instructions = PySequence_Tuple(given);
    if (instructions == NULL)
        return -1;
    Count count = PyTuple_GET_SIZE(instructions);
    self->steps = PyMem_Calloc((size_t)count + 1, sizeof *self->steps);
    unsigned char *depends = PyMem_Calloc((size_t)self->size + 1, 1);
    unsigned char *written = PyMem_Calloc((size_t)self->size + 1, 1);
    int failed = !self->steps || !depends || !written;
    if (failed)
        PyErr_NoMemory();
    for (Count i = 0; !failed && i < self->input_count; i++)
        depends[self->inputs[i]] = written[self->inputs[i]] = 1;
    for (Count i = 0; !failed && i < count; i++) {
        Step *step = &self->steps[i];
        self->step_count = i + 1;
        failed = step_from(PyTuple_GET_ITEM(instructions, i), self->size, self->kernels, self->exact, functions,
                           step) < 0
              || step_follow(step, depends, written, self->initial, self->exact) < 0;
        if (!failed) {
            Count scratch = step_scratch(step);
            self->scratch_count = scratch > self->scratch_count ? scratch : self->scratch_count;
            self->calls |= step->kind == STEP_CALL;
            self->partial |= step->kind == STEP_TAKE || self->output_count > 1;
            step->facts = self->fact_count;
            if (self->exact)
                step_find_facts(self->steps, i);
            self->fact_count += step_facts(step, self->exact);
            self->work += step->rows * step->columns * (step->kind == STEP_ENTRIES ? 2 : step->operands[0].columns);
        }
    }
    if (!failed) {
        memset(depends, 0, (size_t)self->size);
        for (Count i = 0; i < self->output_count; i++)
            depends[self->outputs[i]] = 1;
        for (Count i = count; i-- > 0;)
            step_follow_back(&self->steps[i], depends);
        failed = steps_join(self->steps, count, self->exact) < 0;
    }
    self->long_enough = self->work > 20000 && !self->calls;
    PyMem_Free(depends);
    PyMem_Free(written);
    Py_DECREF(instructions);
    return failed ? -1 : 0;
}

static int initial_from(Executor *self, PyObject *given)
{
    Py_buffer initial;
    if (self->size < 0 || self->size > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "Executor: expected a size from 0 to %d, got %zd", INT32_MAX, self->size);
        return -1;
    }
    if (doubles_from(given, "initial", self->size, 0, &initial) < 0)
        return -1;
    self->initial = PyMem_Malloc((size_t)initial.len + 1);
    if (self->initial == NULL)
        PyErr_NoMemory();
    else
        memcpy(self->initial, initial.buf, (size_t)initial.len);
    PyBuffer_Release(&initial);
    return self->initial == NULL ? -1 : 0;
}

/* New. */
static PyObject *executor_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"size", "initial", "inputs", "outputs", "instructions", "guards", "exact", "kernels",
                            "functions", NULL};
    PyObject *initial, *inputs, *outputs, *instructions, *guards, *functions = NULL;
    Count size;
    int exact = 0;
    const char *kernels = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "nOOOOO|pzO!:Executor", names, &size, &initial, &inputs, &outputs,
                                     &instructions, &guards, &exact, &kernels, &PyTuple_Type, &functions))
        return NULL;
    Executor *self = (Executor *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->size = size;
    self->exact = exact;
    self->kernels = kernels ? kernels_named(kernels) : kernels_best();
    if (self->kernels == NULL)
        PyErr_Format(PyExc_ValueError, "Executor: expected kernels that this machine can run, got '%s'", kernels);
    else if ((self->lock = PyThread_allocate_lock()) == NULL)
        PyErr_NoMemory();
    if (PyErr_Occurred() || initial_from(self, initial) < 0
        || (self->inputs = slots_from(inputs, "inputs", size, -1, &self->input_count)) == NULL
        || (self->stretches = stretches_of(self->inputs, self->input_count, size)) == NULL
        || (self->outputs = slots_from(outputs, "outputs", size, -1, &self->output_count)) == NULL
        || steps_from(self, instructions, functions) < 0 || guards_from(self, guards) < 0
        || memory_make(self, &self->single, 1) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

/* The instruction set in use. New. */
static PyObject *executor_kernels(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(((Executor *)self)->kernels->name);
}

/* New. */
static PyObject *executor_undecided(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((Executor *)self)->undecided);
}

#define METHOD(name, flags, doc) {#name, (PyCFunction)(void (*)(void))executor_##name, flags, doc}

static PyMethodDef executor_methods[] = {
    METHOD(run, METH_O, "run(inputs, /)\n--\n\nForward; False where a guard fails or a number is not finite."),
    METHOD(run_values, METH_FASTCALL,
           "run_values(arguments, leaves, /)\n--\n\nrun() with the leaves' current data after the arguments."),
    METHOD(outputs, METH_O, "outputs(into, /)\n--\n\nWrites the results of the last run."),
    METHOD(gradients, METH_FASTCALL,
           "gradients(seeds, into, /)\n--\n\nReverse over the last run; writes the gradient of every input."),
    METHOD(gradients_into, METH_FASTCALL,
           "gradients_into(seeds, leaves, argument_gradients, /)\n--\n\n"
           "Reverse over the last run; adds to the leaves' gradients and writes those of the arguments."),
    METHOD(value_and_gradients, METH_FASTCALL,
           "value_and_gradients(arguments, leaves, outputs, seeds, gradients, /)\n--\n\n"
           "Forward and reverse in one call; False, and nothing written, where run() would say False."),
    METHOD(leaf_numbers, METH_O, "leaf_numbers(leaves, /)\n--\n\nThe leaves' current data, as bytes of doubles."),
    METHOD(add_gradients, METH_FASTCALL, "add_gradients(leaves, gradients, /)\n--\n\nAdds to the leaves' gradients."),
    METHOD(node, METH_FASTCALL,
           "node(children, places, /)\n--\n\n"
           "Reverse over the last run; its only result as a node over children that were the inputs at these places."),
    METHOD(run_directions, METH_FASTCALL,
           "run_directions(point, leaves, directions, outputs, /)\n--\n\n"
           "The results along many directions, which are the arguments after the point; False as run() says it."),
    METHOD(train, METH_VARARGS,
           "train(parameters, slots, means, squares, beta, beta_square, step, scale, epsilon, shrink, /)\n--\n\n"
           "Reverse over the last run, and a step of Adam; what the program does not read has the slot after the last."),
    METHOD(run_batch, METH_VARARGS | METH_KEYWORDS,
           "run_batch(arguments, leaves, outputs, seeds=None, argument_gradients=None, leaf_gradients=None, "
           "threads=1)\n--\n\n"
           "Many examples that share the leaves; returns the numbers of those to which the program does not apply.\n"
           "With seeds, also gradients; the leaves' are summed, or one row an example, as the buffer has room for.\n"
           "Where it returns any numbers, the gradients mean nothing. A second thread takes half of a long batch."),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef executor_getset[] = {
    {"kernels", executor_kernels, NULL, "The instruction set in use.", NULL},
    {"undecided", executor_undecided, NULL,
     "Whether the last run said False only because it compared two numbers that are too close to tell.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static int executor_ready(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_doc, "Runs a program of vector instructions, forward and in reverse."},
        {Py_tp_new, executor_new},
        {Py_tp_dealloc, executor_dealloc},
        {Py_tp_traverse, executor_traverse},
        {Py_tp_clear, executor_clear},
        {Py_tp_methods, executor_methods},
        {Py_tp_getset, executor_getset},
        {0, NULL},
    };
    PyType_Spec spec = {.name = "gradwalk._native.Executor", .basicsize = sizeof(Executor),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, .slots = slots};
    PyObject *type = PyType_FromSpec(&spec);
    return type == NULL ? -1 : PyModule_AddObject(module, "Executor", type);
}
