/* Guards: the comparisons under which a program is what the plain function would do.
 *
 * The eager engine rounds in another order. How far the numbers of a run may be from its numbers, the doubt about them,
 * is only asked for where a guard compares two that are close, or an operation is close to an edge, where it or a slope
 * changes at once: to first order, and one example wide. What is closer than the doubt is for the plain function to
 * decide. */

#include "program.h"

/* ---------------------------------------------------------------- whether they hold */

/* The guards over slots before `end` once more for one example, with the doubt about each side; behind `reach` nothing
 * is close. */
COLD static unsigned guards_judged(const Executor *self, const Memory *memory, Count lane, Count count, Count end,
                                   Count reach)
{
    int apart = memory->width > 1; /* examples lie side by side: this one is taken out */
    double *doubt = PyMem_RawCalloc((size_t)self->size * (apart ? 2 : 1), sizeof *doubt);
    if (doubt == NULL)
        return UNDECIDED(lane);
    double *values = apart ? doubt + self->size : memory->values;
    unsigned verdict = 0;
    for (Count slot = 0; apart && slot < self->size; slot++)
        values[slot] = memory->values[slot * memory->width + lane];
    Memory one = {.width = 1, .values = values, .scratch = memory->scratch, .facts = memory->facts};
    for (Count i = 0; i < self->step_count && self->steps[i].out < reach; i++)
        KINDS[self->steps[i].kind]->doubt(&self->steps[i], &one, doubt);
    for (Count i = 0; i < count && verdict != FAILED(lane); i++) {
        const Guard *guard = &self->guards[i];
        double left = values[guard->left], right = values[guard->right];
        if (guard->left >= end || guard->right >= end)
            continue;
        double doubtful = guard->rounded ? SAFETY * (doubt[guard->left] + doubt[guard->right]) : 0.0;
        if (doubtful != 0.0 && !(fabs(left - right) > doubtful))
            verdict = UNDECIDED(lane);
        else if (number_compared(left, guard->sign, right) != guard->outcome)
            verdict = FAILED(lane);
    }
    for (Count i = 0; i < self->edge_count && verdict == 0; i++) {
        const Step *step = &self->steps[self->edges[i]];
        if (step->out < reach && KINDS[step->kind]->is_doubtful(step, &one, doubt))
            verdict = UNDECIDED(lane);
    }
    PyMem_RawFree(doubt);
    return verdict;
}

/* `most`, or the largest number in slots from `first` to before `end` if that is larger. */
static inline double guards_most(const Executor *self, const Memory *memory, Count first, Count end, double most)
{
    Count width = memory->width;
    double here = first < end ? self->kernels->most((end - first) * width, memory->values + first * width) : 0.0;
    return here > most ? here : most;
}

/* Leaves are many, and often as they were in the last run. */
COLD INTERNAL void guards_measure_leaves(Executor *self)
{
    if (!self->doubtful || self->measured_at == self->read_at)
        return;
    self->most_of_leaves = 0.0;
    for (Count i = 0; i < self->size_count; i++) {
        Count from = self->sizes[i].from, to = self->sizes[i].to;
        from = from > self->leaves_from ? from : self->leaves_from;
        to = to < self->leaves_to ? to : self->leaves_to;
        self->most_of_leaves = guards_most(self, &self->single, from, to, self->most_of_leaves);
    }
    self->measured_at = self->read_at;
}

/* The largest factor by which a division, or a composite, takes its numbers, in any lane. */
static double guards_steepest(const Step *step, const Memory *memory)
{
    if (step->kind == KIND_ROWS)
        return rows_steepest(step, memory, step->rows);
    double least = INFINITY;
    for (Count i = 0; i < step->rows * step->columns; i++) {
        Count slot = view_slot(&step->operands[1], i / step->columns, i % step->columns);
        const double *by = memory->values + slot * memory->width;
        for (Count lane = 0; lane < memory->width; lane++)
            least = by[lane] != 0.0 && fabs(by[lane]) < least ? fabs(by[lane]) : least;
    }
    return 1.0 / least;
}

/* How far the sizes and what is steep have been looked at, and the largest. */
typedef struct {
    Count range, slot, steep;
    double most;
} Measured;

/* Closer than that, it is worth asking for the doubt about a number that is made of the slots before `end`, which only
 * grows. Generous: in products of two numbers, most digits may have cancelled; what is steep is a product, too. */
static double guards_margin(const Executor *self, const Memory *memory, Measured *measured, Count end)
{
    enum { AHEAD = 128 }; /* at least so many slots at a time */
    if (self->doubtful && end > measured->slot) {
        Count first = measured->slot;
        end = end - first > AHEAD ? end : first + AHEAD;
        int known = self->read_at != 0 && self->measured_at == self->read_at; /* the leaves */
        double most = known ? self->most_of_leaves : 0.0;
        for (; measured->range < self->size_count; measured->range++) {
            Count from = self->sizes[measured->range].from, to = self->sizes[measured->range].to;
            Count begin = from > first ? from : first, stop = to < end ? to : end;
            if (known) {
                Count before = self->leaves_from < stop ? self->leaves_from : stop;
                most = guards_most(self, memory, begin, before, most);
                begin = self->leaves_to > begin ? self->leaves_to : begin;
            }
            most = guards_most(self, memory, begin, stop, most);
            if (to > end)
                break;
        }
        for (; measured->steep < self->steep_count; measured->steep++) {
            const Step *step = &self->steps[self->steep[measured->steep]];
            if (step->out >= end)
                break;
            double steepest = guards_steepest(step, memory);
            most = steepest > most ? steepest : most;
        }
        measured->slot = end;
        measured->most = most > measured->most ? most : measured->most;
    }
    return 1e-9 * (measured->most > 1.0 ? measured->most * measured->most : measured->most);
}

/* Of the first `count` guards, those over slots before `end`; and the edges of steps before it. */
INTERNAL unsigned guards_failed(const Executor *self, const Memory *memory, Count count, Count end)
{
    unsigned failed = 0, close = 0;
    Count width = memory->width, reach = 0; /* what is close is made of the slots before that */
    Measured measured = {.most = self->steepest};
    for (Count i = 0; i < self->edge_count && self->steps[self->edges[i]].out < end; i++) {
        const Step *step = &self->steps[self->edges[i]];
        unsigned near = KINDS[step->kind]->near(step, memory, guards_margin(self, memory, &measured, step->out));
        reach = near ? end : reach; /* it may make much of a little doubt: all that comes after it may be close */
        close |= near;
    }
    for (Count i = 0; i < count; i++) {
        const Guard *guard = &self->guards[i];
        Count last = guard->left > guard->right ? guard->left : guard->right;
        if (last >= end)
            continue;
        double margin = guard->rounded ? guards_margin(self, memory, &measured, last + 1) : 0.0;
        for (Count lane = 0; lane < width; lane++) {
            double left = memory->values[guard->left * width + lane];
            double right = memory->values[guard->right * width + lane];
            failed |= (unsigned)(number_compared(left, guard->sign, right) != guard->outcome) << lane;
            if (!guard->rounded || fabs(left - right) > 1e-6 * (fabs(left) + fabs(right)) + margin)
                continue;
            close |= 1u << lane;
            reach = last >= reach ? last + 1 : reach;
        }
    }
    for (Count lane = 0; close >> lane != 0; lane++) {
        if (close >> lane & 1)
            failed = (failed & ~FAILED(lane)) | guards_judged(self, memory, lane, count, end, reach);
    }
    return failed;
}

/* ---------------------------------------------------------------- making them */

static int guards_read_sign(PyObject *guard, int *sign)
{
    static const char *const signs[] = {"<", "<=", "==", "!=", ">", ">="}; /* Py_LT is 0, Py_LE 1, … */
    PyObject *given = read_attribute(guard, "sign");
    int found = 0;
    for (*sign = 0; given != NULL && *sign < 6 && !found; ++*sign)
        found = PyUnicode_Check(given) && PyUnicode_CompareWithASCIIString(given, signs[*sign]) == 0;
    --*sign;
    if (given != NULL && !found)
        PyErr_Format(PyExc_ValueError, "Executor: expected a guard's sign to be a comparison, got %R", given);
    Py_XDECREF(given);
    return found ? 0 : -1;
}

/* What the passes over the steps mark in a slot. */
enum { ROUNDED = 1, ASKED = 2, SIZED = 4, BELOW = 8 };

/* Whether an output may differ from the eager engine's, or one of the slots that it is made of. */
static void guards_mark_rounded(const Step *step, unsigned char *marks)
{
    for (Count i = 0; i < step->rows * step->columns; i++) {
        Count row = i / step->columns, column = i % step->columns;
        marks[step->out + i] = step->rounds || KINDS[step->kind]->depends(step, row, column, marks);
    }
}

static void guards_mark(const Operand *operand, unsigned char *marks, unsigned char mark)
{
    for (Count i = 0; i < operand->rows * operand->columns; i++)
        marks[view_slot(operand, i / operand->columns, i % operand->columns)] |= mark;
}

/* Whether it makes numbers smaller by constants, if anything: no difference grows. */
static int guards_scales_down(const Step *step)
{
    if (step->kind != KIND_ENTRIES || (step->op != OP_mul && step->op != OP_div))
        return 0;
    const Operand *scale = &step->operands[step->op == OP_mul && step->operands[0].constants != NULL ? 0 : 1];
    int smaller = scale->constants != NULL;
    for (Count i = 0; smaller && i < scale->rows * scale->columns; i++)
        smaller = step->op == OP_mul ? fabs(scale->constants[i]) <= 1.0 : fabs(scale->constants[i]) >= 1.0;
    return smaller;
}

/* Backwards from what is asked for: the sums that it comes from, and nothing but sums and differences of them, are near
 * 0 only compared with what they add up, and what that was made of. Whether that is so; else it may depend on anything
 * below. */
static int guards_mark_sizes(const Step *step, unsigned char *marks)
{
    unsigned char below = 0;
    int asked = 0, sums = step->kind == KIND_DOT || step->kind == KIND_MATMUL || step->op == COMPOSITE_sum;
    for (Count i = 0; i < step->rows * step->columns; i++) {
        asked |= (marks[step->out + i] & (ASKED | ROUNDED)) == (ASKED | ROUNDED);
        below |= marks[step->out + i] & ROUNDED ? marks[step->out + i] & (BELOW | SIZED) : 0;
    }
    for (int j = 0; j < step->operand_count; j++)
        guards_mark(&step->operands[j], marks, below);
    if (!asked)
        return 1;
    int adds = step->kind == KIND_ENTRIES && (step->op == OP_add || step->op == OP_sub || step->op == OP_neg);
    adds |= guards_scales_down(step);
    for (int j = 0; j < step->operand_count; j++)
        guards_mark(&step->operands[j], marks, step->rounds && sums ? SIZED : ASKED);
    return step->rounds ? sums : adds || sums || step->kind == KIND_TAKE;
}

/* A constant that says nothing about the size of anything: a bound that only an overflow comes to. */
static int guards_is_infinite(const Executor *self, Count slot) { return isinf(self->initial[slot]); }

/* Ranges of the marked slots, with what is between two that are close. */
static int guards_list_sizes(Executor *self, const unsigned char *marks, unsigned char mark)
{
    enum { CLOSE = 32 };
    if ((self->sizes = PyMem_Malloc((size_t)(self->size / 2 + 2) * sizeof *self->sizes)) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Count slot = 0, end = -CLOSE; slot < self->size; slot++) {
        if (guards_is_infinite(self, slot))
            end = -CLOSE; /* no range goes on over it */
        if (!(marks[slot] & mark) || guards_is_infinite(self, slot))
            continue;
        if (slot - end >= CLOSE)
            self->sizes[self->size_count++].from = (int32_t)slot;
        self->sizes[self->size_count - 1].to = (int32_t)(end = slot + 1);
    }
    return 0;
}

/* What takes numbers by large factors that something asked for is made of: a division by constants, once and for all;
 * those to look at, by others, and a composite that is steep where all that it does not know yet is 0. */
static int guards_list_steep(Executor *self, const unsigned char *marks)
{
    enum { STEEP = 10000 }; /* times rounding is well below any margin */
    if ((self->steep = PyMem_Malloc((size_t)(self->step_count + 1) * sizeof *self->steep)) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Count i = 0; i < self->step_count; i++) {
        const Step *step = &self->steps[i];
        int asked = 0, divides = step->kind == KIND_ENTRIES && step->op == OP_div;
        for (Count k = 0; (divides || step->kind == KIND_ROWS) && k < step->rows * step->columns; k++)
            asked |= (marks[step->out + k] & (BELOW | ROUNDED)) == (BELOW | ROUNDED);
        int constant = divides && step->operands[1].constants != NULL;
        double steepest = asked && constant ? guards_steepest(step, &self->single) : 0.0;
        self->steepest = steepest > self->steepest ? steepest : self->steepest;
        if (asked && !constant && (divides || rows_steepest(step, &self->single, 1) > STEEP))
            self->steep[self->steep_count++] = (int32_t)i;
    }
    return 0;
}

static int guards_has_edges(const Step *step, const unsigned char *marks)
{
    return KINDS[step->kind]->has_edges != NULL && KINDS[step->kind]->has_edges(step, marks);
}

/* Which guards and edges look at numbers that the eager engine rounds otherwise. */
static int guards_find_doubtful(Executor *self)
{
    int asked = self->guard_count > 0; /* or nobody wants to know what is rounded */
    for (Count i = 0; i < self->step_count && !asked; i++)
        asked = guards_has_edges(&self->steps[i], NULL);
    if (!asked)
        return 0;
    unsigned char *marks = PyMem_Calloc((size_t)self->size + 1, 1);
    self->edges = PyMem_Malloc((size_t)(self->step_count + 1) * sizeof *self->edges);
    int failed = marks == NULL || self->edges == NULL;
    if (failed)
        PyErr_NoMemory();
    for (Count i = 0; !failed && i < self->step_count; i++) {
        guards_mark_rounded(&self->steps[i], marks);
        if (guards_has_edges(&self->steps[i], marks))
            self->edges[self->edge_count++] = (int32_t)i;
    }
    self->doubtful = self->edge_count > 0;
    for (Count i = 0; !failed && i < self->guard_count; i++) {
        Guard *guard = &self->guards[i];
        guard->rounded = guard->left != guard->right && (marks[guard->left] || marks[guard->right])
                      && !guards_is_infinite(self, guard->left) && !guards_is_infinite(self, guard->right);
        self->doubtful |= guard->rounded;
    }
    if (!failed && self->doubtful) {
        int sums = 1;
        for (Count i = 0; i < self->guard_count; i++) {
            if (self->guards[i].rounded)
                marks[self->guards[i].left] |= ASKED | BELOW, marks[self->guards[i].right] |= ASKED | BELOW;
        }
        for (Count i = 0; i < self->edge_count; i++) {
            const Step *step = &self->steps[self->edges[i]];
            for (int j = 0; j < step->operand_count; j++)
                guards_mark(&step->operands[j], marks, ASKED | BELOW);
        }
        for (Count i = self->step_count; i-- > 0;)
            sums &= guards_mark_sizes(&self->steps[i], marks);
        failed = guards_list_sizes(self, marks, sums ? SIZED : BELOW) < 0 || guards_list_steep(self, marks) < 0;
    }
    PyMem_Free(marks);
    return failed ? -1 : 0;
}

COLD INTERNAL int guards_read(Executor *self, PyObject *given)
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
              || read_count(guard, "right", 0, self->size - 1, &right) < 0
              || guards_read_sign(guard, &self->guards[i].sign) < 0
              || (outcome = read_attribute(guard, "outcome")) == NULL;
        if (!failed) {
            self->guards[i].left = (int32_t)left;
            self->guards[i].right = (int32_t)right;
            self->guards[i].outcome = PyObject_IsTrue(outcome);
            failed = self->guards[i].outcome < 0;
        }
        Py_XDECREF(outcome);
    }
    self->guard_count = failed ? 0 : count;
    Py_DECREF(guards);
    return failed || guards_find_doubtful(self) < 0 ? -1 : 0;
}
