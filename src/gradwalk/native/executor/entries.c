/* Entry by entry: an operation of the table over operands of one shape. */

#include "step.h"
#include "kernels/table.h"

/* ---------------------------------------------------------------- its kernels */

/* Where the op has a kernel of its own; -1: the table's loops do it. */
static int entries_vector_op(unsigned op, const double *parameters)
{
    switch (op) {
    case OP_add: return VECTOR_ADD;
    case OP_sub: return VECTOR_SUB;
    case OP_mul: return VECTOR_MUL;
    case OP_div: return VECTOR_DIV;
    case OP_neg: return VECTOR_NEG;
    case OP_relu: return VECTOR_RELU;
    case OP_sqrt: return VECTOR_SQRT;
    case OP_exp: return VECTOR_EXP;
    case OP_log: return VECTOR_LOG;
    case OP_tanh: return VECTOR_TANH;
    case OP_sigmoid: return VECTOR_SIGMOID;
    case OP_sin: return VECTOR_SIN;
    case OP_cos: return VECTOR_COS;
    case OP_pow_number: {
        static const double powers[POWERS] = {2.0, 3.0, 0.5, 1.5, -1.0, -2.0, -0.5, -1.5};
        for (int i = 0; i < POWERS; i++) {
            if (parameters[0] == powers[i])
                return VECTOR_POWERS + i;
        }
        return -1;
    }
    default: return -1;
    }
}

/* Those of them that round as the table's rows do. */
static int entries_are_exact(unsigned op)
{
    switch (op) {
    case OP_add:
    case OP_sub:
    case OP_mul:
    case OP_div:
    case OP_neg:
    case OP_relu:
    case OP_sqrt: return 1;
    default: return 0;
    }
}

static int entries_have_domain(unsigned op)
{
    static const double outside[][MOST_NAMES] = {{NAN, NAN, NAN}, {INFINITY, 1.0, 1.0}};
    return !op_in_domain((enum op)op, outside[0]) || !op_in_domain((enum op)op, outside[1]);
}

/* Whether a local gradient may be infinite although the output is finite. */
static int entries_are_steep(unsigned op, const double *parameters)
{
    switch (op) {
    case OP_sqrt:
    case OP_cbrt:
    case OP_pow:
    case OP_asin:
    case OP_acos:
    case OP_acosh:
    case OP_atan2:
    case OP_hypot: return 1;
    case OP_pow_number: return parameters[0] < 1.0;
    default: return 0;
    }
}

INTERNAL void entries_choose(Step *step, const Kernels *kernels)
{
    int vector = entries_vector_op(step->op, step->parameters);
    step->entries.forward = vector < 0 ? table_forward[step->op] : kernels->forward[vector];
    step->entries.reverse = vector < 0 ? table_reverse[step->op] : kernels->reverse[vector];
    step->entries.steep = entries_are_steep(step->op, step->parameters);
    step->checked = op_overflows[step->op] || entries_have_domain(step->op);
}

/* The operands that the op's reverse kernel reads, for those gradients that are needed. */
INTERNAL unsigned entries_read(const Step *step)
{
    switch (step->entries.forward == table_forward[step->op] ? OP_COUNT : (enum op)step->op) {
    case OP_add:
    case OP_sub:
    case OP_neg:
    case OP_exp:
    case OP_sqrt: return 0;
    case OP_div: return 2;
    case OP_mul: return (step->operands[0].needed ? 2u : 0u) | (step->operands[1].needed ? 1u : 0u);
    default: return ~0u;
    }
}

/* ---------------------------------------------------------------- shapes, and what depends on what */

static int entries_fit(const Step *step)
{
    int fit = 1;
    for (int j = 0; j < step->operand_count; j++)
        fit &= step->operands[j].rows == step->rows && step->operands[j].columns == step->columns;
    return fit;
}

static int entries_round(const Step *step)
{
    return step->entries.forward != table_forward[step->op] && !entries_are_exact(step->op);
}

static int entries_depend(const Step *step, Count row, Count column, const unsigned char *marked)
{
    int depends = 0;
    for (int j = 0; j < step->operand_count; j++)
        depends |= marked[view_slot(&step->operands[j], row, column)];
    return depends;
}

/* ---------------------------------------------------------------- forward and reverse */

static inline const double *entries_of(const Operand *operand, const Memory *memory, Count first, Count count,
                                       double *scratch)
{
    if (operand->direct)
        return memory->values + (operand->start + first) * memory->width;
    if (operand->constants != NULL && memory->width == 1)
        return operand->constants + first;
    view_pack(operand, memory->width, memory->values, first, count, scratch);
    return scratch;
}

/* All of them, unless one of the operands in `reads` has to be packed. */
static inline Count entries_at_a_time(const Step *step, const Memory *memory, unsigned reads)
{
    for (int j = 0; j < step->operand_count; j++) {
        const Operand *operand = &step->operands[j];
        if (reads >> j & 1 && !operand->direct && (operand->constants == NULL || memory->width != 1))
            return CHUNK / memory->width;
    }
    return step->rows * step->columns;
}

static void entries_forward(const Kernels *kernels, const Step *step, const Memory *memory)
{
    (void)kernels;
    Count all = step->rows * step->columns, most = entries_at_a_time(step, memory, ~0u), width = memory->width;
    const double *in[MOST_INPUTS];
    for (Count first = 0; first < all; first += most) {
        Count count = all - first < most ? all - first : most;
        for (int j = 0; j < step->operand_count; j++)
            in[j] = entries_of(&step->operands[j], memory, first, count, memory->scratch + j * CHUNK);
        step->entries.forward(count * width, in, step->parameters, memory->values + (step->out + first) * width);
    }
}

static int entries_have_zeros(Count n, const double *grads)
{
    int zeros = 0;
    for (Count i = 0; i < n; i++)
        zeros |= grads[i] == 0.0;
    return zeros;
}

/* Entries to which no gradient has come pass none on, not even 0 times an infinite local gradient. */
static void entries_reverse(const Kernels *kernels, const Step *step, const Memory *memory)
{
    Count all = step->rows * step->columns, width = memory->width;
    Count most = entries_at_a_time(step, memory, step->entries.reads);
    int picked = step->entries.steep && entries_have_zeros(all * width, memory->grads + step->out * width);
    double *scratch = memory->scratch, *grads[MOST_INPUTS];
    const double *in[MOST_INPUTS];
    for (int j = 0; j < step->operand_count; j++) {
        if (step->operands[j].needed && (picked || !step->operands[j].direct) && most > CHUNK / width)
            most = CHUNK / width;
    }
    for (Count first = 0; first < all; first += most) {
        Count count = all - first < most ? all - first : most;
        for (int j = 0; j < step->operand_count; j++) {
            const Operand *operand = &step->operands[j];
            int reads = step->entries.reads >> j & 1;
            in[j] = reads ? entries_of(operand, memory, first, count, scratch + j * CHUNK) : NULL;
            if (!operand->needed) {
                grads[j] = NULL;
            }
            else if (operand->direct && !picked) {
                grads[j] = memory->grads + (operand->start + first) * width;
            }
            else {
                grads[j] = scratch + (MOST_INPUTS + j) * CHUNK;
                memset(grads[j], 0, (size_t)(count * width) * sizeof(double));
            }
        }
        Count out = (step->out + first) * width;
        step->entries.reverse(count * width, in, step->parameters, memory->values + out, memory->grads + out, grads);
        for (int j = 0; j < step->operand_count; j++) {
            for (Count i = 0; grads[j] != NULL && picked && i < count * width; i++)
                grads[j][i] = memory->grads[out + i] != 0.0 ? grads[j][i] : 0.0;
            if (grads[j] != NULL && (picked || !step->operands[j].direct))
                view_add(kernels, &step->operands[j], width, grads[j], first, count, memory->grads);
        }
    }
}

/* ---------------------------------------------------------------- doubt */

static void entries_doubt(const Step *step, const Memory *memory, double *doubt)
{
    double in[MOST_NAMES], out, local_grads[MOST_INPUTS];
    for (int j = 0; j < op_parameters[step->op]; j++)
        in[step->operand_count + j] = step->parameters[j];
    for (Count i = 0; i < step->rows * step->columns; i++) {
        Count row = i / step->columns, column = i % step->columns;
        double carried = 0.0;
        for (int j = 0; j < step->operand_count; j++)
            in[j] = memory->values[view_slot(&step->operands[j], row, column)];
        op_evaluate((enum op)step->op, in, &out, local_grads);
        for (int j = 0; j < step->operand_count; j++) {
            double here = doubt[view_slot(&step->operands[j], row, column)];
            carried += here == 0.0 ? 0.0 : fabs(local_grads[j]) * here;
        }
        doubt[step->out + i] = carried + (step->rounds || carried != 0.0 ? 4.0 * UNIT * fabs(out) : 0.0);
    }
}

const Kind entries_kind = {
    .fits = entries_fit, .rounds = entries_round, .forward = entries_forward, .reverse = entries_reverse,
    .depends = entries_depend, .doubt = entries_doubt,
};
