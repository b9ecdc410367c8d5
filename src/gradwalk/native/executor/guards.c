/* Guards: the comparisons under which a program is what the plain function would do.
 *
 * The eager engine rounds in another order. How far the numbers of a run may be from its numbers, the doubt about them,
 * is only asked for where a guard compares two that are close, or an operation is close to a jump: to first order, and
 * one example wide. What is closer than the doubt is for the plain function to decide. */

#include "program.h"

#define SAFETY 4.0 /* times the doubt */

/* ---------------------------------------------------------------- jumps */

/* The operands that decide on which side of a jump the op is, a bit for each; 0 if it has none. */
static unsigned guards_jump_operands(const Step *step) { return step->kind == KIND_ENTRIES ? op_jumps[step->op] : 0u; }

/* Marks the slots that may differ from the eager engine's. */
static void guards_mark_rounded(const Step *step, unsigned char *rounded)
{
    for (Count i = 0; i < step->rows * step->columns; i++) {
        Count row = i / step->columns, column = i % step->columns;
        rounded[step->out + i] = step->rounds || KINDS[step->kind]->depends(step, row, column, rounded);
    }
}

/* How many jumps depend on slots that may differ from the eager engine's; they go to `jumps` unless it is NULL. */
static Count guards_find_jumps(const Step *step, const unsigned char *rounded, Jump *jumps)
{
    unsigned looks_at = guards_jump_operands(step);
    Count count = 0;
    for (Count i = 0; looks_at != 0 && i < step->rows * step->columns; i++) {
        Jump jump = {.step = step};
        int is_rounded = 0;
        for (int j = 0; j < step->operand_count; j++) {
            jump.slots[j] = (int32_t)view_slot(&step->operands[j], i / step->columns, i % step->columns);
            is_rounded |= looks_at >> j & 1 && rounded[jump.slots[j]];
        }
        if (!is_rounded)
            continue;
        if (jumps != NULL)
            jumps[count] = jump;
        count++;
    }
    return count;
}

static int jump_is_before(const Jump *jump, Count end)
{
    int before = 1;
    for (int j = 0; j < jump->step->operand_count; j++)
        before &= jump->slots[j] < end;
    return before;
}

/* How far the numbers are from the next jump; `size` becomes the largest that decides. */
static double jump_distance(const Jump *jump, const double *values, Count width, Count lane, double *size)
{
    const Step *step = jump->step;
    double in[MOST_NAMES];
    *size = 0.0;
    for (int j = 0; j < step->operand_count; j++) {
        in[j] = values[jump->slots[j] * width + lane];
        if (guards_jump_operands(step) >> j & 1 && fabs(in[j]) > *size)
            *size = fabs(in[j]);
    }
    for (int j = 0; j < op_parameters[step->op]; j++)
        in[step->operand_count + j] = step->parameters[j];
    return op_jump_distance((enum op)step->op, in);
}

static double jump_doubt(const Jump *jump, const double *doubt)
{
    double all = 0.0;
    for (int j = 0; j < jump->step->operand_count; j++)
        all += guards_jump_operands(jump->step) >> j & 1 ? doubt[jump->slots[j]] : 0.0;
    return all;
}

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
        KINDS[self->steps[i].kind]->doubt(&self->steps[i], &one, doubt);
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
        double size;
        if (jump_is_before(jump, end) && !(jump_distance(jump, values, 1, 0, &size) > SAFETY * jump_doubt(jump, doubt)))
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
INTERNAL unsigned guards_failed(const Executor *self, const Memory *memory, Count count, Count end)
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
        for (Count lane = 0; jump_is_before(jump, end) && lane < width; lane++) {
            double size, distance = jump_distance(jump, memory->values, width, lane, &size);
            close |= (unsigned)!(distance > 1e-6 * size + margin) << lane;
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

INTERNAL int guards_read(Executor *self, PyObject *given)
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
        failed = read_count(guard, "left", 0, self->size - 1, &left) < 0
              || read_count(guard, "right", 0, self->size - 1, &right) < 0 || sign_from(guard, &self->guards[i].sign) < 0
              || (outcome = PyObject_GetAttrString(guard, "outcome")) == NULL;
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
        asked = guards_jump_operands(&self->steps[i]) != 0;
    for (Count i = 0; !failed && asked && i < self->step_count; i++) {
        guards_mark_rounded(&self->steps[i], rounded);
        jumps += guards_find_jumps(&self->steps[i], rounded, NULL);
    }
    if (!failed && (self->jumps = PyMem_Calloc((size_t)jumps + 1, sizeof *self->jumps)) == NULL) {
        PyErr_NoMemory();
        failed = 1;
    }
    for (Count i = 0; !failed && self->jump_count < jumps; i++)
        self->jump_count += guards_find_jumps(&self->steps[i], rounded, self->jumps + self->jump_count);
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
