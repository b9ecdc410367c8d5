/* Guards: the comparisons under which a program is what the plain function would do. */

#include "program.h"

/* ---------------------------------------------------------------- whether they hold */

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

/* ---------------------------------------------------------------- making them */

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
