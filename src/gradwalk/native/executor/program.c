/* Executor: runs a Program (compiler/program.py) forward and in reverse, with no allocation per call.
 *
 * One call at a time works in an executor's memory; a lock sees to that, because the GIL is released while a long
 * program runs. The buffers that callers hand in are held meanwhile. */

#include "program.h"

#if !defined(_WIN32)
#include <pthread.h>
#endif

/* ---------------------------------------------------------------- memory */

INTERNAL void program_memory_release(Memory *memory)
{
    view_doubles_free(memory->values);
    view_doubles_free(memory->grads);
    view_doubles_free(memory->scratch);
    view_doubles_free(memory->facts);
    view_doubles_free(memory->shared_grads);
    *memory = (Memory){.width = 0};
}

COLD INTERNAL int program_memory_make(Executor *self, Memory *memory, Count width)
{
    *memory = (Memory){.width = 0}; /* also what only some runs set */
    memory->values = view_doubles_new(self->size * width);
    memory->grads = view_doubles_new(self->size * width);
    memory->scratch = view_doubles_new(self->scratch_count * width + 2 * MOST_INPUTS * CHUNK);
    memory->facts = view_doubles_new(self->fact_count * width);
    memory->shared_grads = width > 1 ? view_doubles_new(self->size) : NULL;
    if (!memory->values || !memory->grads || !memory->scratch || !memory->facts
        || (width > 1 && !memory->shared_grads)) {
        program_memory_release(memory);
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

/* At least one memory for a batch, and up to `count` while there is room; how many there are, or -1 with an exception
 * set. */
COLD INTERNAL int program_batch_make(Executor *self, int count)
{
    Memory *all = count > self->batch_count ? PyMem_Realloc(self->batch, (size_t)count * sizeof *all) : NULL;
    if (all != NULL)
        self->batch = all;
    while (all != NULL && self->batch_count < count
           && program_memory_make(self, &self->batch[self->batch_count], BATCH) == 0)
        self->batch_count++;
    if (self->batch_count == 0) {
        PyErr_NoMemory();
        return -1;
    }
    PyErr_Clear();
    return self->batch_count < count ? self->batch_count : count;
}

/* ---------------------------------------------------------------- making it */

/* What the steps find in a slot, one after the other. */
enum { CONSTANT_READ = 2 }; /* beside 1: written, as an input or by a step */

/* Every slot is an input, a constant or one step's output, and outputs are there before they are read. */
static int program_check_order(const Step *step, unsigned char *written)
{
    int sane = 1;
    for (int j = 0; j < step->operand_count; j++) {
        const Operand *operand = &step->operands[j];
        for (Count row = 0; row < operand->rows; row++) {
            for (Count column = 0; column < operand->columns; column++) {
                Count slot = view_slot(operand, row, column);
                if (!written[slot])
                    written[slot] = CONSTANT_READ;
            }
        }
    }
    for (Count i = 0; i < step->rows * step->columns; i++)
        sane &= written[step->out + i] == 0;
    if (!sane)
        PyErr_Format(PyExc_ValueError, "Executor: expected slots that are written once, and then read, got others at "
                                       "the instruction of slot %zd", step->out);
    return sane ? 0 : -1;
}

/* From the least slot of the inputs from `first` on to past the largest. */
static void program_span(const Executor *self, Count first, Count *from, Count *to)
{
    *from = self->size, *to = 0;
    for (Count i = first; i < self->input_count; i++) {
        *from = self->inputs[i] < *from ? self->inputs[i] : *from;
        *to = self->inputs[i] >= *to ? self->inputs[i] + 1 : *to;
    }
}

static void program_measure(Executor *self, Step *step)
{
    const Kind *kind = KINDS[step->kind];
    Count scratch = kind->scratch != NULL ? kind->scratch(step) : 0;
    self->scratch_count = scratch > self->scratch_count ? scratch : self->scratch_count;
    self->calls |= step->kind == KIND_CALL;
    self->partial |= step->kind == KIND_TAKE || self->output_count > 1;
    step->facts = self->fact_count;
    if (kind->facts != NULL && (!self->exact || step->kind == KIND_CALL)) /* other facts of a tape are its own */
        self->fact_count += kind->facts(step);
    self->work += step->rows * step->columns * (step->kind == KIND_ENTRIES ? 2 : step->operands[0].columns);
}

/* What has to be cleared before gradients come: all slots but the fresh ones, which `fresh` marks and is all 0 before. */
static int program_list_cleared(Executor *self, unsigned char *fresh)
{
    for (Count i = 0; i < self->step_count; i++) {
        for (int j = 0; j < self->steps[i].operand_count; j++) {
            const Operand *operand = &self->steps[i].operands[j];
            if (operand->fresh)
                memset(fresh + operand->start, 1, (size_t)(operand->rows * operand->columns));
        }
    }
    if ((self->cleared = PyMem_Malloc((size_t)(self->size / 2 + 1) * sizeof *self->cleared)) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Count slot = 0, end; slot < self->size; slot = end + 1) {
        for (end = slot; end < self->size && !fresh[end];)
            end++;
        if (end > slot)
            self->cleared[self->cleared_count++] = (Range){(int32_t)slot, (int32_t)end};
    }
    return 0;
}

/* Views of one slot again and again are a few bytes of a file each, and looked at entry by entry. */
static int program_count_entries(const Step *step, Count *entries)
{
    for (int j = 0; j < step->operand_count; j++)
        *entries += step->operands[j].rows * step->operands[j].columns;
    if (*entries <= MOST_ENTRIES)
        return 0;
    PyErr_Format(PyExc_ValueError, "Executor: expected at most %zd entries of Views in all, got more up to the "
                                   "instruction of slot %zd", MOST_ENTRIES, step->out);
    return -1;
}

INTERNAL int program_read(Executor *self, PyObject *given, PyObject *functions)
{
    PyObject *instructions = PySequence_Tuple(given);
    if (instructions == NULL)
        return -1;
    Count count = PyTuple_GET_SIZE(instructions), entries = 0;
    self->steps = PyMem_Calloc((size_t)count + 1, sizeof *self->steps);
    unsigned char *depends = PyMem_Calloc((size_t)self->size + 1, 1);
    unsigned char *written = PyMem_Calloc((size_t)self->size + 1, 1);
    int failed = !self->steps || !depends || !written;
    if (failed)
        PyErr_NoMemory();
    program_span(self, 0, &self->inputs_from, &self->inputs_to);
    for (Count i = 0; !failed && i < self->input_count; i++)
        depends[self->inputs[i]] = written[self->inputs[i]] = 1;
    for (Count i = 0; !failed && i < count; i++) {
        Step *step = &self->steps[i];
        self->step_count = i + 1;
        failed = step_read(PyTuple_GET_ITEM(instructions, i), self->size, self->kernels, self->exact, functions,
                           step) < 0
              || program_count_entries(step, &entries) < 0
              || program_check_order(step, written) < 0
              || step_follow(step, depends, written, self->initial, self->exact) < 0;
        if (!failed)
            program_measure(self, step);
    }
    if (!failed) {
        memset(depends, 0, (size_t)self->size);
        for (Count i = 0; i < self->output_count; i++)
            depends[self->outputs[i]] = 1;
        for (Count i = count; i-- > 0;)
            step_follow_back(&self->steps[i], depends, self->exact);
        memset(depends, 0, (size_t)self->size);
        self->tapes = tape_make_all(self->steps, count, self->exact, &self->tape_count, &self->fact_count);
        failed = self->tapes == NULL || program_list_cleared(self, depends) < 0;
    }
    self->long_enough = self->work > 20000 && !self->calls;
    PyMem_Free(depends);
    PyMem_Free(written);
    Py_DECREF(instructions);
    return failed ? -1 : 0;
}

/* ---------------------------------------------------------------- running */

/* A call that the plain function would come to as well; where it raises, the plain function will say so. */
static unsigned program_call(const Executor *self, const Step *step, const Memory *memory)
{
    Count count = step->call.guards < self->guard_count ? step->call.guards : self->guard_count;
    unsigned failed = guards_failed(self, memory, count, step->out);
    if (failed)
        return failed;
    unsigned long before = self->inside;
    ((Executor *)self)->inside = PyThread_get_thread_ident();
    int raised = call_python(step, memory) < 0;
    ((Executor *)self)->inside = before;
    if (raised && PyErr_ExceptionMatches(PyExc_Exception) /* not an interrupt from the keyboard */
        && !PyErr_ExceptionMatches(PyExc_RecursionError) && !PyErr_ExceptionMatches(PyExc_MemoryError))
        PyErr_Clear(); /* of these two, a second try by each of its callers would be 2^depth tries */
    return raised ? FAILED(0) : 0;
}

/* Results that are infinite or nan: added up in another order, or with a nan among the numbers of a min, the plain
 * function may have others. */
static unsigned program_overflowed(const Executor *self, const Memory *memory)
{
    enum { EXPONENT = 0x7ff }; /* by its bits, without a branch: a Hessian has thousands of results */
    unsigned lanes = 0;
    Count width = memory->width;
    for (Count i = 0; i < self->output_count && !self->exact; i++) {
        for (Count lane = 0; lane < width; lane++) {
            uint64_t bits;
            memcpy(&bits, &memory->values[self->outputs[i] * width + lane], sizeof bits);
            lanes |= (unsigned)((bits >> 52 & EXPONENT) == EXPONENT) << lane;
        }
    }
    return lanes | lanes << BATCH; /* undecided */
}

INTERNAL unsigned program_forward(const Executor *self, const Memory *memory)
{
    unsigned failed = 0;
    Count width = memory->width;
    const Tape *tape = self->tapes;
    for (Count i = 0; i < self->step_count; i++) {
        if (width == 1 && i == tape->first) {
            failed |= tape_forward(tape, memory) ? 0 : FAILED(0);
            i = tape++->end - 1;
            continue;
        }
        const Step *step = &self->steps[i];
        if (step->kind == KIND_CALL) {
            /* where the plain function has raised before, it does not come to the call */
            if (failed || (failed = program_call(self, step, memory)) != 0)
                return failed;
            continue;
        }
        KINDS[step->kind]->forward(self->kernels, step, memory);
        const double *out = memory->values + step->out * width;
        Count count = step->rows * step->columns * width;
        if (step->checked && !self->kernels->finite(count, out)) {
            for (Count j = 0; j < count; j++)
                failed |= (unsigned)!isfinite(out[j]) << (j % width);
        }
    }
    /* what is not finite does not apply, whatever the guards say; and what they fail is for another program */
    failed |= guards_failed(self, memory, self->guard_count, self->size) & ~(failed << BATCH);
    return failed | (program_overflowed(self, memory) & ~(failed | failed << BATCH));
}

INTERNAL void program_clear_grads(const Memory *memory, Count first, Count end)
{
    memset(memory->grads + first * memory->width, 0, (size_t)((end - first) * memory->width) * sizeof(double));
}

/* Of a step to which no gradient has come. */
static void program_clear_fresh(const Step *step, const Memory *memory)
{
    for (int j = 0; j < step->operand_count; j++) {
        const Operand *operand = &step->operands[j];
        if (operand->fresh)
            program_clear_grads(memory, operand->start, operand->start + operand->rows * operand->columns);
    }
}

/* From the gradients of the outputs to all others; those before `first` and from `end` on begin with 0. */
INTERNAL void program_reverse(const Executor *self, const Memory *memory, const double *seeds, Count first, Count end)
{
    Count width = memory->width;
    if (width == 1) {
        for (Count i = 0; i < self->cleared_count; i++)
            program_clear_grads(memory, self->cleared[i].from, self->cleared[i].to);
    }
    else {
        program_clear_grads(memory, 0, first);
        program_clear_grads(memory, end, self->size);
    }
    for (Count i = 0; i < self->output_count; i++) {
        for (Count lane = 0; lane < width; lane++)
            memory->grads[self->outputs[i] * width + lane] += seeds[i];
    }
    const Tape *tape = self->tapes + self->tape_count;
    for (Count i = self->step_count; i-- > 0;) {
        if (width == 1 && tape > self->tapes && tape[-1].end == i + 1) {
            i = (--tape)->first;
            tape_reverse(tape, memory, self->partial);
            continue;
        }
        const Step *step = &self->steps[i];
        if (!step->needed)
            continue;
        if (!self->partial
            || step_is_reached(memory->grads + step->out * width, step->rows * step->columns * width))
            KINDS[step->kind]->reverse(self->kernels, step, memory);
        else if (width == 1)
            program_clear_fresh(step, memory);
    }
}

/* 0 where the program applies. What it called may have left an exception. */
INTERNAL unsigned program_run_forward(Executor *self, const Memory *memory)
{
    unsigned failed;
    if (!self->long_enough) {
        failed = program_forward(self, memory);
    }
    else {
        Py_BEGIN_ALLOW_THREADS
        failed = program_forward(self, memory);
        Py_END_ALLOW_THREADS
    }
    self->undecided = failed >> BATCH != 0;
    return failed;
}

static int program_has_nan(const Executor *self, const double *grads)
{
    /* all that lies between the first and the last slot, where there is little else: that order is the quicker */
    Count span = self->inputs_to - self->inputs_from;
    if (span <= 2 * self->input_count && self->kernels->finite(span, grads + self->inputs_from))
        return 0;
    for (Count i = 0; i < self->input_count; i += self->stretches[i]) {
        const double *here = grads + self->inputs[i];
        int all_finite = self->kernels->finite(self->stretches[i], here);
        for (Count k = 0; !all_finite && k < self->stretches[i]; k++) {
            if (isnan(here[k]))
                return 1;
        }
    }
    return 0;
}

/* Kernels multiply a gradient by whatever local gradient there is. Where one was 0 and the other infinite, the inputs
 * know it: what comes of that stays nan. */
INTERNAL int program_is_to_reverse_again(const Executor *self)
{
    return self->gradients_again != NULL && !self->exact && program_has_nan(self, self->single.grads);
}

/* The inputs' gradients from Python, over the last run of one example; -1 with an exception set. */
INTERNAL int program_reverse_again(Executor *self, const double *seeds)
{
    Count size = (Count)sizeof(double);
    PyObject *slots = PyBytes_FromStringAndSize((const char *)self->single.values, self->size * size);
    PyObject *of_outputs = PyBytes_FromStringAndSize((const char *)seeds, self->output_count * size), *found = NULL;
    if (slots != NULL && of_outputs != NULL) {
        unsigned long before = self->inside;
        self->inside = PyThread_get_thread_ident();
        found = PyObject_CallFunctionObjArgs(self->gradients_again, slots, of_outputs, NULL);
        self->inside = before;
    }
    Py_buffer gradients;
    int failed = found == NULL || read_doubles(found, "gradients", self->input_count, 0, &gradients) < 0;
    if (!failed) {
        program_write_inputs(self, self->single.grads, 0, self->input_count, gradients.buf);
        PyBuffer_Release(&gradients);
    }
    Py_XDECREF(slots);
    Py_XDECREF(of_outputs);
    Py_XDECREF(found);
    return failed ? -1 : 0;
}

/* Over the last run of one example; -1 with an exception set. */
INTERNAL int program_run_reverse(Executor *self, const double *seeds)
{
    if (!self->long_enough) {
        program_reverse(self, &self->single, seeds, 0, 0);
    }
    else {
        Py_BEGIN_ALLOW_THREADS
        program_reverse(self, &self->single, seeds, 0, 0);
        Py_END_ALLOW_THREADS
    }
    return program_is_to_reverse_again(self) ? program_reverse_again(self, seeds) : 0;
}

/* How often this process is a fork's child. Whoever held a lock in the parent is not there to give it back. */
static unsigned forks;
#if !defined(_WIN32)
static void program_forked(void)
{
    forks++;
    value_forked();
}
int program_watch_forks(void) { return pthread_atfork(NULL, NULL, program_forked); }
#else
int program_watch_forks(void) { return 0; }
#endif

/* -1 with an exception set. */
COLD INTERNAL int program_make_lock(Executor *self)
{
    self->forks = forks;
    self->lock = PyThread_allocate_lock();
    return self->lock != NULL || PyErr_NoMemory() != NULL ? 0 : -1;
}

INTERNAL void program_lock(Executor *self)
{
    if (self->forks != forks) {
        PyThread_type_lock fresh = PyThread_allocate_lock();
        self->lock = fresh ? fresh : self->lock;
        self->forks = forks;
    }
    if (!PyThread_acquire_lock(self->lock, NOWAIT_LOCK)) {
        Py_BEGIN_ALLOW_THREADS
        PyThread_acquire_lock(self->lock, WAIT_LOCK);
        Py_END_ALLOW_THREADS
    }
}

/* program_lock for whoever begins a run; -1 with an exception set where it would wait for itself. */
INTERNAL int program_begin(Executor *self)
{
    if (self->inside != 0 && self->inside == PyThread_get_thread_ident()) {
        PyErr_SetString(PyExc_RecursionError, "compile: expected a custom_op that leaves the compiled function alone "
                                              "which calls it, got one that calls it again; call the plain function");
        return -1;
    }
    program_lock(self);
    return 0;
}

/* Dropping an object may run Python code, which may come back to this executor: not before others may. */
INTERNAL void program_unlock(Executor *self)
{
    PyObject *let_go = self->let_go;
    self->let_go = NULL;
    PyThread_release_lock(self->lock);
    Py_XDECREF(let_go);
}

/* Steals what is to be dropped when the executor is unlocked. */
INTERNAL void program_let_go(Executor *self, PyObject *object) { Py_XSETREF(self->let_go, object); }

/* *held has the gradients of leaves that are about to get others, as far as they are Values: to be dropped after
 * program_unlock. NULL where there are none; -1 with an exception set. */
INTERNAL int program_hold_gradients(PyObject *leaves, PyObject **held)
{
    Count count = careful_nodes != 0 && PyTuple_Check(leaves) ? PyTuple_GET_SIZE(leaves) : 0;
    if ((*held = count > 0 ? PyTuple_New(count) : NULL) == NULL)
        return count > 0 ? -1 : 0;
    for (Count i = 0; i < count; i++) {
        const Value *leaf = is_value(PyTuple_GET_ITEM(leaves, i)) ? LEAF_AT(leaves, i) : NULL;
        PyObject *gradient = leaf != NULL && kind_of(leaf) == MANY ? details_of(leaf)->grad_value : NULL;
        PyTuple_SET_ITEM(*held, i, Py_NewRef(gradient ? gradient : Py_None));
    }
    return 0;
}

/* ---------------------------------------------------------------- numbers in and out */

/* Slots mostly lie side by side, stretch by stretch: of each, with how many of those after it. New, or NULL. Those that
 * are not among the program's, which all have its size for a number, make stretches of their own. */
COLD INTERNAL int32_t *program_stretches(const int32_t *slots, Count count, Count size)
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

/* The inputs from `first` to before `end`. */
INTERNAL void program_write_inputs(const Executor *self, double *to, Count first, Count end, const double *from)
{
    for (Count i = first, here; i < end; i += here, from += here) {
        here = self->stretches[i] < end - i ? self->stretches[i] : end - i;
        memcpy(to + self->inputs[i], from, (size_t)here * sizeof *to);
    }
}

/* The leaves must be a tuple of Values, as many as expected; the executor need not have seen it before. */
INTERNAL int program_check_values(const Executor *self, PyObject *leaves, Count expected)
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
INTERNAL int program_check_leaves(const Executor *self, PyObject *leaves, Count arguments)
{
    return program_check_values(self, leaves, self->input_count - arguments);
}

INTERNAL int program_expect(const char *name, Py_ssize_t count, Py_ssize_t expected)
{
    if (count == expected)
        return 0;
    PyErr_Format(PyExc_TypeError, "Executor.%s: expected %zd arguments, got %zd", name, expected, count);
    return -1;
}

INTERNAL int program_expect_one(const Executor *self)
{
    if (self->output_count == 1)
        return 0;
    PyErr_Format(PyExc_ValueError, "Executor: expected a program with one result, got %zd", self->output_count);
    return -1;
}

/* Among the leaves, those of these slots to which a batch adds gradients for each example. */
COLD static void program_find_added(Executor *self, Count least, Count most)
{
    int none = self->added.from == self->added.to;
    if (most < self->leaves_from || least >= self->leaves_to)
        return;
    self->added.from = (int32_t)(none || least < self->added.from ? least : self->added.from);
    self->added.to = (int32_t)(none || most >= self->added.to ? most + 1 : self->added.to);
}

COLD static void program_find_added_by(Executor *self, const Step *step, const Operand *operand)
{
    Count least, most;
    for (Count i = 0; operand->index != NULL && i < operand->rows * operand->columns; i++)
        program_find_added(self, operand->index[i], operand->index[i]);
    if (operand->index != NULL)
        return;
    view_ends(operand, &least, &most);
    int totals = step->kind == KIND_MATMUL || (step->kind == KIND_TAKE && view_has_rows(operand));
    if (!totals || least < self->leaves_from || most >= self->leaves_to)
        program_find_added(self, least, most);
}

/* Where the leaves are, behind `first` other inputs. */
COLD static void program_find_leaves(Executor *self, Count first)
{
    Count from, to;
    program_span(self, first, &from, &to);
    int together = to - from == self->input_count - first;
    self->leaves_from = together ? from : 0;
    self->leaves_to = together ? to : 0;
    self->added = (Range){0, 0};
    for (Count i = 0; i < self->step_count && together; i++) {
        for (int j = 0; j < self->steps[i].operand_count; j++) {
            if (self->steps[i].operands[j].needed)
                program_find_added_by(self, &self->steps[i], &self->steps[i].operands[j]);
        }
    }
    for (Count i = 0; i < self->output_count; i++)
        program_find_added(self, self->outputs[i], self->outputs[i]);
}

/* The numbers of the leaves, behind `first` other inputs. Mostly it is the same tuple at every call, and nobody has
 * changed any since they were read. The executor is locked. */
INTERNAL void program_fill_leaves(Executor *self, Count first, PyObject *leaves)
{
    if (leaves != self->known_leaves) {
        program_let_go(self, self->known_leaves);
        self->known_leaves = Py_NewRef(leaves);
        program_find_leaves(self, first);
        self->read_at = self->measured_at = 0;
    }
    double *values = self->single.values;
    const int32_t *slots = self->inputs + first;
    Count count = self->read_at == data_writes ? 0 : self->input_count - first;
    for (Count i = 0; i < count; i++) {
        const Value *leaf = LEAF_AT(leaves, i);
        leaves_to_come(leaf);
        values[slots[i]] = leaf->data;
    }
    self->read_at = data_writes;
    guards_measure_leaves(self);
}

/* The same from numbers alone; what Values are the leaves is then not known. */
INTERNAL void program_fill_numbers(Executor *self, Count first, const double *numbers)
{
    program_let_go(self, self->known_leaves);
    self->known_leaves = NULL;
    program_find_leaves(self, first);
    self->read_at = self->measured_at = 0;
    program_write_inputs(self, self->single.values, first, self->input_count, numbers);
}
