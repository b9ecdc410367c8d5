/* How far the numbers of a run may be from those that the eager engine computes, which rounds in another order: only
 * asked where a guard compares two numbers that are close. To first order, and one example wide. */

#include "program_steps.h"

#define UNIT 0x1p-53 /* what rounding moves a number by, relative to it */
#define SAFETY 4.0

/* Marks the slots that may differ from the eager engine's. */
static void step_mark_rounded(const Step *step, unsigned char *rounded)
{
    Count count = step->rows * step->columns;
    int all = step->rounds;
    for (int j = 0; j < step->operand_count && !all && step->kind != STEP_ENTRIES; j++) {
        const Operand *operand = &step->operands[j];
        for (Count i = 0; i < operand->rows * operand->columns && !all; i++)
            all = rounded[slot_of(operand, i / operand->columns, i % operand->columns)];
    }
    for (Count i = 0; i < count; i++) {
        int here = all;
        for (int j = 0; j < step->operand_count && step->kind == STEP_ENTRIES; j++)
            here |= rounded[slot_of(&step->operands[j], i / step->columns, i % step->columns)];
        rounded[step->out + i] = (unsigned char)here;
    }
}

/* An operation jumps where its result changes at once: `slot` is what it looks at, `other` the divisor of fmod and the
 * x of atan2, which jumps where y changes its sign left of the origin. */
typedef struct {
    enum op op;
    int32_t slot, other;
} Jump;

/* Which operand of the op decides on which side of a jump it is; -1 if the op has none. */
static int jumping_operand(const Step *step)
{
    if (step->kind != STEP_ENTRIES)
        return -1;
    switch (step->op) {
    case OP_floor:
    case OP_ceil:
    case OP_sign:
    case OP_where:
    case OP_atan2:
    case OP_fmod: return 0;
    case OP_copysign: return 1;
    default: return -1;
    }
}

/* How many jumps depend on slots that may differ from the eager engine's; they go to `jumps` unless it is NULL. */
static Count step_jumps(const Step *step, const unsigned char *rounded, Jump *jumps)
{
    int j = jumping_operand(step);
    Count count = 0;
    for (Count i = 0; j >= 0 && i < step->rows * step->columns; i++) {
        Count slot = slot_of(&step->operands[j], i / step->columns, i % step->columns), other = slot;
        if (step->op == OP_fmod || step->op == OP_atan2)
            other = slot_of(&step->operands[1], i / step->columns, i % step->columns);
        if (!rounded[slot] && !rounded[other])
            continue;
        if (jumps != NULL)
            jumps[count] = (Jump){(enum op)step->op, (int32_t)slot, (int32_t)other};
        count++;
    }
    return count;
}

/* How far the number is from the next jump. */
static double jump_distance(const Jump *jump, const double *values, Count width, Count lane)
{
    double x = values[jump->slot * width + lane], y = values[jump->other * width + lane], rest;
    switch (jump->op) {
    case OP_floor:
    case OP_ceil: return fabs(x - nearbyint(x));
    case OP_fmod: rest = fabs(fmod(x, y)); return rest < fabs(y) - rest ? rest : fabs(y) - rest;
    case OP_atan2: return y > 0.0 ? hypot(x, y) : fabs(x);
    default: return fabs(x);
    }
}

static double jump_doubt(const Jump *jump, const double *values, const double *doubt)
{
    double of_other = jump->other == jump->slot ? 0.0
                    : jump->op == OP_atan2 ? 1.0 : fabs(values[jump->slot] / values[jump->other]);
    return doubt[jump->slot] + of_other * doubt[jump->other];
}

/* What comes with the entries of a row, each times its local gradient; 0 of a doubt stays 0, whatever the gradient. */
static double doubt_carried(const Operand *operand, Count row, const double *local_grads, const double *doubt)
{
    double carried = 0.0;
    for (Count k = 0; k < operand->columns; k++) {
        double here = doubt[slot_of(operand, row, k)];
        carried += here == 0.0 ? 0.0 : fabs(local_grads[k]) * here;
    }
    return carried;
}

static void entries_doubt(const Step *step, const Memory *memory, double *doubt)
{
    double in[MOST_NAMES], out, local_grads[MOST_INPUTS];
    for (int j = 0; j < op_parameters[step->op]; j++)
        in[step->operand_count + j] = step->parameters[j];
    for (Count i = 0; i < step->rows * step->columns; i++) {
        Count row = i / step->columns, column = i % step->columns;
        double carried = 0.0;
        for (int j = 0; j < step->operand_count; j++)
            in[j] = memory->values[slot_of(&step->operands[j], row, column)];
        op_evaluate((enum op)step->op, in, &out, local_grads);
        for (int j = 0; j < step->operand_count; j++) {
            double here = doubt[slot_of(&step->operands[j], row, column)];
            carried += here == 0.0 ? 0.0 : fabs(local_grads[j]) * here;
        }
        doubt[step->out + i] = carried + (step->rounds || carried != 0.0 ? 4.0 * UNIT * fabs(out) : 0.0);
    }
}

static void rows_doubt(const Step *step, const Memory *memory, double *doubt)
{
    const Operand *operand = &step->operands[0];
    Count n = operand->columns;
    double *x = memory->scratch, *local_grads = x + n, *facts = local_grads + n;
    int logarithm = step->op == COMPOSITE_logsumexp || step->op == COMPOSITE_log_softmax
                 || step->op == COMPOSITE_cross_entropy; /* of a sum, whose rounding counts as it is */
    for (Count i = 0; i < step->rows * step->columns; i++) {
        Count row = i / step->columns;
        exact_read(operand, memory, row, x);
        exact_facts(step, x, facts);
        double size = fabs(exact_composite(step, memory, row, i % step->columns, x, facts, local_grads)) + logarithm;
        for (Count k = 0; k < n; k++)
            size += fabs(local_grads[k] * x[k]);
        double own = step->rounds ? (double)(n + 16) * UNIT * size : 0.0;
        doubt[step->out + i] = own + doubt_carried(operand, row, local_grads, doubt);
    }
}

/* dot and matmul */
static void products_doubt(const Step *step, const Memory *memory, double *doubt)
{
    const Operand *left = &step->operands[0], *right = &step->operands[1];
    Count n = left->columns;
    double *x = memory->scratch, *y = x + n;
    for (Count i = 0; i < step->rows * step->columns; i++) {
        Count row = i / step->columns, column = step->kind == STEP_DOT ? row : i % step->columns;
        double size = 0.0;
        exact_read(left, memory, row, x);
        exact_read(right, memory, column, y);
        for (Count k = 0; k < n; k++)
            size += fabs(x[k] * y[k]);
        doubt[step->out + i] = doubt_carried(left, row, y, doubt) + doubt_carried(right, column, x, doubt)
                             + (step->rounds ? (double)(n + 1) * UNIT * size : 0.0);
    }
}

static void step_doubt(const Step *step, const Memory *memory, double *doubt)
{
    const Operand *first = &step->operands[0];
    switch (step->kind) {
    case STEP_ENTRIES: entries_doubt(step, memory, doubt); break;
    case STEP_ROWS: rows_doubt(step, memory, doubt); break;
    case STEP_DOT:
    case STEP_MATMUL: products_doubt(step, memory, doubt); break;
    case STEP_TAKE:
        for (Count i = 0; i < step->rows * step->columns; i++) {
            Count number = slot_of(&step->operands[1], i / step->columns, 0);
            Count row = whole_from(memory->values[number], first->rows);
            doubt[step->out + i] = doubt[slot_of(first, row, i % step->columns)];
        }
        break;
    case STEP_CALL:
        for (Count r = 0; r < step->rows; r++)
            doubt[step->out + r] =
                doubt_carried(first, r, memory->facts + step->facts + r * first->columns, doubt);
        break;
    }
}
