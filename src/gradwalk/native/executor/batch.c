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

/* A stretch of the batch: one of its parts, run in one memory. */
typedef struct {
    const Executor *self;
    Memory memory;
    Batch batch;
    Count first, end;
    unsigned char *failed; /* of all examples: the program does not apply */
} Stretch;

/* Parts of a piece, which are summed before pieces are; parts whose sums are kept until they are added up, in their
 * order, which is also the most threads there can be; instructions' worth of work for which a thread pays. */
enum { PARTS = 8, WAVE = 8 * PARTS, WORTH_A_THREAD = 250000 };

/* What one thread does of a wave: every so manieth part of it, in a memory of its own, without the GIL. */
typedef struct {
    const Executor *self;
    const Batch *batch;
    Memory *memory;
    Count part, parts, first, end, every; /* examples of a part; all parts; those of the share */
    double *sums;                   /* of the leaves' gradients of each part of the wave; NULL where not asked for */
    unsigned char *failed;
    PyThread_type_lock done;
} Share;

/* So many examples that going through the leaves is little beside them. */
static Count batch_part(const Executor *self)
{
    Count rows = WORTH_A_THREAD / PARTS / (self->work > 0 ? self->work : 1);
    return rows > 4 * BATCH ? (rows + BATCH - 1) / BATCH * BATCH : 4 * BATCH;
}

/* What may be run by another process: the same for every batch, so that it is summed alike there and here. */
INTERNAL Count batch_piece(const Executor *self)
{
    return PARTS * batch_part(self);
}

/* Adds the gradients of the leaves of `present` examples to their sums, or writes them row by row. */
static void batch_leaf_gradients(const Executor *self, const Memory *memory, const Batch *batch, Count first,
                                 Count present)
{
    for (Count i = 0; i < batch->leaves; i++) {
        Count slot = self->inputs[batch->arguments + i];
        const double *g = memory->grads + slot * memory->width;
        if (memory->shared_grads != NULL && (slot < self->added.from || slot >= self->added.to))
            continue; /* the others are totals */
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
    int kept = carried || memory->shared_grads != NULL;
    if (kept && !carried)
        program_clear_grads(memory, self->added.from, self->added.to);
    program_reverse(self, memory, batch->seeds, kept ? batch->kept_from : 0, kept ? batch->kept_to : 0);
    for (Count i = 0; batch->argument_gradients != NULL && i < batch->arguments; i++) {
        for (Count lane = 0; lane < present; lane++)
            batch->argument_gradients[(first + lane) * batch->arguments + i] =
                memory->grads[self->inputs[i] * width + lane];
    }
    int carries = batch->kept_to > 0 && first + 2 * width <= stretch->end;
    if (batch->leaf_gradients != NULL && !carries)
        batch_leaf_gradients(self, memory, batch, first, present);
}

static void batch_stretch_run(const Stretch *stretch)
{
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
}

/* What is the same for all examples is read once, and gradients of it are summed over the examples at the end of the
 * stretch only: going through the leaves takes as long as some of the instructions. */
static void batch_stretch_share(Stretch *stretch, int summed)
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

/* Puts the leaves in place, for every example side by side. */
static void batch_share_leaves(const Share *share)
{
    const Executor *self = share->self;
    for (Count leaf = 0; leaf < share->batch->leaves; leaf++) {
        Count slot = self->inputs[share->batch->arguments + leaf];
        for (Count lane = 0; lane < BATCH; lane++)
            share->memory->values[slot * BATCH + lane] = self->single.values[slot];
    }
}

static void batch_share_run(void *given)
{
    const Share *share = given;
    const Batch *batch = share->batch;
    if (share->first < WAVE && share->memory->width == BATCH) /* the first wave finds those of the last batch */
        batch_share_leaves(share);
    for (Count part = share->first; part < share->end; part += share->every) {
        Count first = part * share->part, end = part + 1 < share->parts ? first + share->part : batch->count;
        Stretch stretch = {share->self, *share->memory, *batch, first, end, share->failed};
        batch_stretch_share(&stretch, share->sums != NULL);
        if (share->sums != NULL)
            stretch.batch.leaf_gradients = share->sums + part % WAVE * batch->leaves;
        batch_stretch_run(&stretch);
    }
    if (share->done != NULL)
        PyThread_release_lock(share->done);
}

/* This thread runs the first share, and new ones the others; it makes up for those that cannot be started. */
static void batch_shares_run(Share *shares, int count)
{
    if (shares[0].self->calls) { /* one share, with the GIL held */
        batch_share_run(&shares[0]);
        return;
    }
    int started[WAVE] = {0};
    for (int i = 1; i < count; i++) {
        if ((shares[i].done = PyThread_allocate_lock()) != NULL) {
            PyThread_acquire_lock(shares[i].done, WAIT_LOCK);
            started[i] = PyThread_start_new_thread(batch_share_run, &shares[i]) != PYTHREAD_INVALID_THREAD_ID;
        }
    }
    Py_BEGIN_ALLOW_THREADS
    batch_share_run(&shares[0]);
    for (int i = 1; i < count; i++) {
        if (started[i])
            PyThread_acquire_lock(shares[i].done, WAIT_LOCK);
        else
            batch_share_run(&shares[i]); /* which releases its lock, as a thread would */
    }
    Py_END_ALLOW_THREADS
    for (int i = 1; i < count; i++) {
        if (started[i])
            PyThread_release_lock(shares[i].done);
        if (shares[i].done != NULL)
            PyThread_free_lock(shares[i].done);
        shares[i].done = NULL;
    }
}

/* The numbers of those that are marked. New. */
COLD INTERNAL PyObject *batch_marked(const unsigned char *marked, Count count)
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

/* Runs the batch, whose leaves are in place; -1 with an exception set. */
static int batch_run_parts(Executor *self, const Batch *batch, int threads, unsigned char *failed)
{
    /* an exact program sums in one order only, Python is called for one example after the other, and a single example
     * is not worth the width */
    int wide = !self->exact && !self->calls && batch->count > 1;
    Count part = wide ? batch_part(self) : batch->count > 0 ? batch->count : 1;
    Count parts = (batch->count + part - 1) / part;
    if (parts > 1 && batch->count % part == 1)
        parts--; /* by itself, a single example would be run by other kernels */
    Count wave = parts < WAVE ? parts : WAVE;
    int summed = batch->leaf_gradients != NULL && !batch->leaf_rows;
    double *sums = summed ? PyMem_Malloc((size_t)(wave * batch->leaves + 1) * sizeof *sums) : NULL;
    if (summed && sums == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    Count worth = self->work * batch->count / WORTH_A_THREAD, most = worth < wave ? worth : wave;
    int count = wide ? program_batch_make(self, threads < 1 || most < 1 ? 1 : threads < most ? threads : (int)most) : 1;
    for (Count first = 0; count > 0 && first < parts; first += WAVE) {
        Count end = first + WAVE < parts ? first + WAVE : parts;
        Share shares[WAVE];
        for (int i = 0; i < count; i++)
            shares[i] = (Share){self, batch, wide ? &self->batch[i] : &self->single, part, parts, first + i, end, count,
                                sums, failed, NULL};
        if (summed)
            memset(sums, 0, (size_t)(wave * batch->leaves) * sizeof *sums);
        batch_shares_run(shares, count);
        for (Count i = 0; summed && i < end - first; i++) {
            if (i % PARTS != 0)
                self->kernels->add(batch->leaves, sums + i * batch->leaves, sums + (i - i % PARTS) * batch->leaves);
        }
        for (Count i = 0; summed && i < end - first; i += PARTS)
            self->kernels->add(batch->leaves, sums + i * batch->leaves, batch->leaf_gradients);
    }
    PyMem_Free(sums);
    return count > 0 && !PyErr_Occurred() ? 0 : -1;
}

/* A list of examples to which the program does not apply; leaves are Values, or NULL where `numbers` are theirs. New. */
static PyObject *batch_run_all(Executor *self, const Batch *batch, PyObject *leaves, const double *numbers, int threads)
{
    unsigned char *failed = PyMem_Calloc((size_t)batch->count + 1, 1);
    if (failed == NULL)
        return PyErr_NoMemory();
    PyObject *result = NULL;
    if (batch->leaf_gradients != NULL && !batch->leaf_rows)
        memset(batch->leaf_gradients, 0, (size_t)batch->leaves * sizeof(double));
    if (program_begin(self) == 0) {
        if (leaves != NULL)
            program_fill_leaves(self, batch->arguments, leaves);
        else
            program_fill_numbers(self, batch->arguments, numbers);
        int ran = batch_run_parts(self, batch, threads, failed) == 0;
        program_unlock(self);
        result = ran ? batch_marked(failed, batch->count) : NULL;
    }
    PyMem_Free(failed);
    return result;
}

enum { BATCH_ARGUMENTS, BATCH_OUTPUTS, BATCH_SEEDS, BATCH_ARGUMENT_GRADIENTS, BATCH_LEAF_GRADIENTS, BATCH_BUFFERS };

/* Holds the buffers that are not None, and fills the batch from them; -1 with an exception set. The caller releases
 * those that have an object, in either case. */
COLD static int batch_hold(const Executor *self, PyObject *const *given, Batch *batch, Py_buffer *buffers)
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

COLD INTERNAL PyObject *executor_run_batch(Executor *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"arguments", "leaves", "outputs", "seeds", "argument_gradients", "leaf_gradients",
                            "threads", NULL};
    PyObject *given[BATCH_BUFFERS] = {NULL, NULL, Py_None, Py_None, Py_None}, *leaves;
    int threads = 1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOO|OOOi:run_batch", names, &given[BATCH_ARGUMENTS], &leaves,
                                     &given[BATCH_OUTPUTS], &given[BATCH_SEEDS], &given[BATCH_ARGUMENT_GRADIENTS],
                                     &given[BATCH_LEAF_GRADIENTS], &threads))
        return NULL;
    Py_buffer numbers = {.buf = NULL, .obj = NULL}, buffers[BATCH_BUFFERS] = {{.obj = NULL}};
    int values = PyTuple_Check(leaves);
    if (!values && read_doubles(leaves, "leaves", -1, 0, &numbers) < 0)
        return NULL;
    Batch batch = {.leaves = values ? PyTuple_GET_SIZE(leaves) : numbers.len / (Count)sizeof(double)};
    batch.arguments = self->input_count - batch.leaves;
    PyObject *result = NULL;
    if (batch.arguments < 0 || given[BATCH_ARGUMENTS] == Py_None || given[BATCH_OUTPUTS] == Py_None)
        PyErr_Format(PyExc_ValueError, "Executor: expected arguments, outputs and at most %zd leaves",
                     self->input_count);
    else if ((!values || program_check_leaves(self, leaves, batch.arguments) == 0)
             && batch_hold(self, given, &batch, buffers) == 0)
        result = batch_run_all(self, &batch, values ? leaves : NULL, numbers.buf, threads);
    for (int i = 0; i < BATCH_BUFFERS; i++) {
        if (buffers[i].obj != NULL)
            PyBuffer_Release(&buffers[i]);
    }
    if (numbers.obj != NULL)
        PyBuffer_Release(&numbers);
    return result;
}
