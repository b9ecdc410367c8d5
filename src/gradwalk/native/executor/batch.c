/* A batch of examples, BATCH of them side by side in one pass. */

#include "program.h"

/* ---------------------------------------------------------------- many examples */

typedef struct {
    Count count, arguments, leaves; /* examples; inputs of each kind */
    const double *given;
    double *outputs, *argument_gradients, *leaf_gradients; /* NULL where not asked for */
    const double *seeds;
    int leaf_rows; /* a row of leaf gradients an example, instead of their sum */
    Count kept_from, kept_to; /* slots whose gradients add up from one run to the next: the leaves', if any */
} Batch;

/* A stretch of the batch, run by one thread in a memory of its own, without the GIL. */
typedef struct {
    const Executor *self;
    Memory memory;
    Batch batch;
    Count first, end;
    unsigned char *failed; /* of all examples: the program does not apply */
    PyThread_type_lock done;
} Stretch;

/* Adds the gradients of the leaves of `present` examples to their sums, or writes them row by row. */
static void batch_leaf_gradients(const Executor *self, const Memory *memory, const Batch *batch, Count first,
                                 Count present)
{
    for (Count i = 0; i < batch->leaves; i++) {
        const double *g = memory->grads + self->inputs[batch->arguments + i] * memory->width;
        if (batch->leaf_rows) {
            for (Count lane = 0; lane < present; lane++)
                batch->leaf_gradients[(first + lane) * batch->leaves + i] = g[lane];
        }
        else if (present == BATCH) {
            batch->leaf_gradients[i] += ((g[0] + g[4]) + (g[2] + g[6])) + ((g[1] + g[5]) + (g[3] + g[7]));
        }
        else {
            for (Count lane = 0; lane < present; lane++)
                batch->leaf_gradients[i] += g[lane];
        }
    }
}

/* Runs as many examples from `first` on as the memory is wide. */
static void batch_run(const Stretch *stretch, Count first)
{
    const Executor *self = stretch->self;
    Memory here = stretch->memory, *memory = &here;
    const Batch *batch = &stretch->batch;
    Count width = memory->width, present = stretch->end - first < width ? stretch->end - first : width;
    if (present < width)
        memory->shared_grads = NULL; /* those of the places left over would be among them */
    for (Count i = 0; i < batch->arguments; i++) {
        for (Count lane = 0; lane < width; lane++) {
            Count example = first + (lane < present ? lane : 0); /* places left over repeat the first */
            memory->values[self->inputs[i] * width + lane] = batch->given[example * batch->arguments + i];
        }
    }
    unsigned failed = program_forward(self, memory) & ((1u << present) - 1);
    for (Count lane = 0; lane < present; lane++) {
        stretch->failed[first + lane] = failed >> lane & 1;
        for (Count i = 0; i < self->output_count; i++)
            batch->outputs[(first + lane) * self->output_count + i] = memory->values[self->outputs[i] * width + lane];
    }
    if (batch->seeds == NULL || failed)
        return;
    int carried = present == width && first > stretch->first; /* a run that is not full begins and ends by itself */
    program_reverse(self, memory, batch->seeds, carried ? batch->kept_from : 0, carried ? batch->kept_to : 0);
    for (Count i = 0; batch->argument_gradients != NULL && i < batch->arguments; i++) {
        for (Count lane = 0; lane < present; lane++)
            batch->argument_gradients[(first + lane) * batch->arguments + i] =
                memory->grads[self->inputs[i] * width + lane];
    }
    int carries = batch->kept_to > 0 && first + 2 * width <= stretch->end;
    if (batch->leaf_gradients != NULL && !carries)
        batch_leaf_gradients(self, memory, batch, first, present);
}

static void stretch_run(void *given)
{
    const Stretch *stretch = given;
    const Executor *self = stretch->self;
    const Memory *memory = &stretch->memory;
    int summed = memory->shared_grads != NULL;
    if (summed)
        memset(memory->shared_grads, 0, (size_t)self->size * sizeof(double));
    for (Count first = stretch->first; first < stretch->end && !(self->calls && PyErr_Occurred());
         first += memory->width)
        batch_run(stretch, first);
    for (Count i = 0; summed && i < stretch->batch.leaves; i++)
        stretch->batch.leaf_gradients[i] += memory->shared_grads[self->inputs[stretch->batch.arguments + i]];
    if (stretch->done != NULL)
        PyThread_release_lock(stretch->done);
}

/* This thread runs the first stretch and a second one, if there is another, the other. */
static void stretches_run(Stretch *stretches, int count)
{
    if (stretches[0].self->calls) { /* one stretch, with the GIL held */
        stretch_run(&stretches[0]);
        return;
    }
    int started = 0;
    if (count == 2 && (stretches[1].done = PyThread_allocate_lock()) != NULL) {
        PyThread_acquire_lock(stretches[1].done, WAIT_LOCK);
        started = PyThread_start_new_thread(stretch_run, &stretches[1]) != PYTHREAD_INVALID_THREAD_ID;
    }
    Py_BEGIN_ALLOW_THREADS
    stretch_run(&stretches[0]);
    if (started)
        PyThread_acquire_lock(stretches[1].done, WAIT_LOCK);
    else if (count == 2)
        stretch_run(&stretches[1]);
    Py_END_ALLOW_THREADS
    if (count == 2 && stretches[1].done != NULL) {
        if (started)
            PyThread_release_lock(stretches[1].done);
        PyThread_free_lock(stretches[1].done);
    }
}

/* The memories for a batch, with the leaves in place; how many of them, or 0 with an exception set. */
static int batch_memories(Executor *self, const Batch *batch, PyObject *leaves, int threads, Memory **memories)
{
    /* an exact program sums in one order only, Python is called for one example after the other, and a single example
     * is not worth the width */
    int wide = !self->exact && !self->calls && batch->count > 1;
    int count = wide && threads > 1 && batch->count >= 4 * BATCH && self->work * batch->count > 500000 ? 2 : 1;
    program_fill_leaves(self, batch->arguments, leaves);
    for (int i = 0; i < count; i++) {
        Memory *memory = memories[i] = wide ? &self->batch[i] : &self->single;
        if (memory->values == NULL && program_memory_make(self, memory, BATCH) < 0)
            return 0;
        for (Count leaf = 0; wide && leaf < batch->leaves; leaf++) {
            Count slot = self->inputs[batch->arguments + leaf];
            for (Count lane = 0; lane < BATCH; lane++)
                memory->values[slot * BATCH + lane] = self->single.values[slot];
        }
    }
    return count;
}

/* What is the same for all examples is read once, and gradients of it are summed over the examples at the end of the
 * stretch only: going through the leaves takes as long as some of the instructions. */
static void stretch_share(Stretch *stretch, int summed)
{
    Memory *memory = &stretch->memory;
    Count from = stretch->self->leaves_from, to = stretch->self->leaves_to;
    if (memory->width == BATCH && from < to) {
        memory->shared = stretch->self->single.values;
        memory->shared_from = from, memory->shared_to = to;
        if (summed)
            stretch->batch.kept_from = from, stretch->batch.kept_to = to;
    }
    if (memory->shared == NULL || !summed)
        memory->shared_grads = NULL;
}

/* The numbers of the examples that are marked. New. */
static PyObject *numbers_of(const unsigned char *marked, Count count)
{
    PyObject *numbers = PyList_New(0);
    for (Count i = 0; numbers != NULL && i < count; i++) {
        if (!marked[i])
            continue;
        PyObject *number = PyLong_FromSsize_t(i);
        if (number == NULL || PyList_Append(numbers, number) < 0)
            Py_CLEAR(numbers);
        Py_XDECREF(number);
    }
    return numbers;
}

/* A list of examples to which the program does not apply. New. */
static PyObject *batch_run_all(Executor *self, const Batch *batch, PyObject *leaves, int threads)
{
    Memory *memories[2];
    unsigned char *failed = PyMem_Calloc((size_t)batch->count + 1, 1);
    double *sums = PyMem_Calloc((size_t)batch->leaves + 1, sizeof *sums); /* of the second stretch */
    PyObject *result = NULL;
    if (failed == NULL || sums == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    int summed = batch->leaf_gradients != NULL && !batch->leaf_rows;
    if (summed)
        memset(batch->leaf_gradients, 0, (size_t)batch->leaves * sizeof(double));
    if (program_begin(self) < 0)
        goto done;
    int count = batch_memories(self, batch, leaves, threads, memories);
    if (count > 0) {
        Count half = count == 2 ? batch->count / (2 * BATCH) * BATCH : batch->count;
        Stretch stretches[2] = {
            {self, *memories[0], *batch, 0, half, failed, NULL},
            {self, *memories[count - 1], *batch, half, batch->count, failed, NULL},
        };
        for (int i = 0; i < 2; i++)
            stretch_share(&stretches[i], summed);
        if (summed)
            stretches[1].batch.leaf_gradients = sums;
        stretches_run(stretches, count);
        if (summed && count == 2)
            self->kernels->add(batch->leaves, sums, batch->leaf_gradients);
    }
    program_unlock(self);
    if (count > 0 && !PyErr_Occurred())
        result = numbers_of(failed, batch->count);
done:
    PyMem_Free(sums);
    PyMem_Free(failed);
    return result;
}

enum { BATCH_ARGUMENTS, BATCH_OUTPUTS, BATCH_SEEDS, BATCH_ARGUMENT_GRADIENTS, BATCH_LEAF_GRADIENTS, BATCH_BUFFERS };

/* Holds the buffers that are not None, and fills the batch from them; -1 with an exception set. The caller releases
 * those that have an object, in either case. */
static int batch_hold(const Executor *self, PyObject *const *given, Batch *batch, Py_buffer *buffers)
{
    static const char *const names[] = {"arguments", "outputs", "seeds", "argument_gradients", "leaf_gradients"};
    for (int i = 0; i < BATCH_BUFFERS; i++)
        buffers[i] = (Py_buffer){.buf = NULL, .obj = NULL};
    for (int i = 0; i < BATCH_BUFFERS; i++) {
        Count expected[BATCH_BUFFERS] = {-1, batch->count * self->output_count, self->output_count,
                                         batch->count * batch->arguments, -1};
        int writable = i != BATCH_ARGUMENTS && i != BATCH_SEEDS;
        if (given[i] != Py_None && read_doubles(given[i], names[i], expected[i], writable, &buffers[i]) < 0)
            return -1;
        Count length = buffers[i].len / (Count)sizeof(double), one = batch->leaves, all = batch->count * one;
        if (i == BATCH_ARGUMENTS) {
            Count rows = buffers[i].ndim == 2 ? buffers[i].shape[0] : 1; /* of no arguments there may be many */
            batch->count = batch->arguments > 0 ? length / batch->arguments : rows;
            if (length != batch->count * batch->arguments) {
                PyErr_Format(PyExc_ValueError, "Executor: expected rows of %zd arguments, got %zd numbers",
                             batch->arguments, length);
                return -1;
            }
        }
        if (i == BATCH_LEAF_GRADIENTS && buffers[i].obj != NULL && length != one && length != all) {
            PyErr_Format(PyExc_ValueError, "Executor: expected %zd or %zd leaf gradients, got %zd", one, all,
                         length);
            return -1;
        }
        batch->leaf_rows = length != one;
    }
    batch->given = buffers[BATCH_ARGUMENTS].buf;
    batch->outputs = buffers[BATCH_OUTPUTS].buf;
    batch->seeds = buffers[BATCH_SEEDS].buf;
    batch->argument_gradients = buffers[BATCH_ARGUMENT_GRADIENTS].buf;
    batch->leaf_gradients = buffers[BATCH_LEAF_GRADIENTS].buf;
    return 0;
}

INTERNAL PyObject *executor_run_batch(Executor *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"arguments", "leaves", "outputs", "seeds", "argument_gradients", "leaf_gradients",
                            "threads", NULL};
    PyObject *given[BATCH_BUFFERS] = {NULL, NULL, Py_None, Py_None, Py_None}, *leaves;
    int threads = 1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO!O|OOOi:run_batch", names, &given[BATCH_ARGUMENTS],
                                     &PyTuple_Type, &leaves, &given[BATCH_OUTPUTS], &given[BATCH_SEEDS],
                                     &given[BATCH_ARGUMENT_GRADIENTS], &given[BATCH_LEAF_GRADIENTS], &threads))
        return NULL;
    Batch batch = {.leaves = PyTuple_GET_SIZE(leaves), .arguments = self->input_count - PyTuple_GET_SIZE(leaves)};
    if (batch.arguments < 0 || given[BATCH_ARGUMENTS] == Py_None || given[BATCH_OUTPUTS] == Py_None) {
        PyErr_Format(PyExc_ValueError, "Executor: expected arguments, outputs and at most %zd leaves",
                     self->input_count);
        return NULL;
    }
    if (program_check_leaves(self, leaves, batch.arguments) < 0)
        return NULL;
    Py_buffer buffers[BATCH_BUFFERS];
    int held = batch_hold(self, given, &batch, buffers) == 0;
    PyObject *result = held ? batch_run_all(self, &batch, leaves, threads) : NULL;
    for (int i = 0; i < BATCH_BUFFERS; i++) {
        if (buffers[i].obj != NULL)
            PyBuffer_Release(&buffers[i]);
    }
    return result;
}
