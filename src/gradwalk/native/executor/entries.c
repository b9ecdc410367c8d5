/* Entry by entry: an operation of the table over operands of one shape. */

#include <float.h>

#include "step.h"
#include "kernels/table.h"

/* ---------------------------------------------------------------- its kernels */

/* The kernel of a power by that number; NULL: the table's loops do it. */
static const EntryKernel *entries_power(const Kernels *kernels, double n)
{
    static const double powers[POWERS] = {2.0, 3.0, 0.5, 1.5, -1.0, -2.0, -0.5, -1.5};
    int i = 0;
    while (i < POWERS && n != powers[i])
        i++;
    return i < POWERS ? &kernels->powers[i] : NULL;
}

/* Whether there is an edge depends on the parameters, as in x**n: where there is none, 0 is infinitely far from it. */
static Near entries_edge(Near near, const double *parameters)
{
    static const double zero = 0.0, *const zeros[MOST_INPUTS] = {&zero, &zero, &zero};
    return near != NULL && near(1, zeros, parameters, DBL_MAX) ? near : NULL;
}

static int entries_choose(Step *step, const Kernels *kernels, Count parameters, PyObject *functions)
{
    (void)parameters, (void)functions;
    const EntryKernel *kernel = step->op == OP_pow_number ? entries_power(kernels, step->parameters[0])
                                                          : &kernels->entries[step->op];
    int by_hand = kernel != NULL && kernel->forward != NULL;
    step->entries.forward = by_hand ? kernel->forward : table_forward[step->op];
    step->entries.reverse = by_hand ? kernel->reverse : table_reverse[step->op];
    step->entries.near = entries_edge(kernels->near[step->op], step->parameters);
    step->entries.steep = op_steep((enum op)step->op, step->parameters);
    step->checked = op_checked[step->op];
    return 0;
}

/* Whether this operand has a say in how far an edge is. */
static inline int entries_moves_edge(const Step *step, int j) { return op_edges[step->op] >> j & 1; }

/* Whether it may be steep, which it is at edges: not where what decides how far an edge is never changes, and is not at
 * one, as in x / 16. */
static int entries_are_steep(const Step *step)
{
    const double *in[MOST_INPUTS], *known = NULL;
    int changes = step->entries.near == NULL;
    for (int j = 0; j < step->operand_count; j++) {
        const double *constants = entries_moves_edge(step, j) ? step->operands[j].constants : NULL;
        changes |= entries_moves_edge(step, j) && constants == NULL;
        known = constants != NULL ? constants : known;
    }
    for (int j = 0; j < step->operand_count; j++) /* the others make no difference */
        in[j] = entries_moves_edge(step, j) ? step->operands[j].constants : known;
    if (changes || known == NULL)
        return step->entries.steep;
    return step->entries.steep && step->entries.near(step->rows * step->columns, in, step->parameters, 1e-300);
}

/* The operands that the reverse looks at, for those gradients that are needed; the table's loops look at all. */
static unsigned entries_read(const Step *step)
{
    if (step->entries.forward == table_forward[step->op])
        return ~0u;
    unsigned reads = 0;
    for (int j = 0; j < step->operand_count; j++)
        reads |= step->operands[j].needed ? op_reads[step->op][j] : 0u;
    return reads;
}

static int entries_end(Step *step)
{
    step->needed &= !op_stops[step->op];
    step->entries.reads = entries_read(step);
    step->entries.steep = entries_are_steep(step);
    return 0;
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
    return step->entries.forward != table_forward[step->op] && !op_exact[step->op];
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
            if (grads[j] == NULL || (step->operands[j].direct && !picked))
                continue;
            for (Count i = 0; i < (picked ? count * width : 0); i++)
                grads[j][i] = memory->grads[out + i] != 0.0 ? grads[j][i] : 0.0;
            view_add(kernels, &step->operands[j], width, grads[j], first, count, memory->grads);
        }
    }
}

/* ---------------------------------------------------------------- doubt */

COLD static void entries_doubt(const Step *step, const Memory *memory, double *doubt)
{
    double in[MOST_NAMES], out, local_grads[MOST_INPUTS];
    for (int j = 0; j < op_parameters[step->op]; j++)
        in[step->operand_count + j] = step->parameters[j];
    for (Count i = 0, row = 0, column = 0; i < step->rows * step->columns; i++, column++) {
        if (column == step->columns)
            row++, column = 0; /* a division for each entry would take longer than the rest */
        double here[MOST_INPUTS], carried = 0.0;
        int doubtful = step->rounds;
        for (int j = 0; j < step->operand_count; j++) {
            Count slot = view_slot(&step->operands[j], row, column);
            in[j] = memory->values[slot];
            here[j] = doubt[slot];
            doubtful |= here[j] != 0.0;
        }
        if (!doubtful)
            continue; /* and 0 is what is there */
        op_evaluate((enum op)step->op, in, &out, local_grads);
        for (int j = 0; j < step->operand_count; j++)
            carried += here[j] == 0.0 ? 0.0 : fabs(local_grads[j]) * here[j];
        doubt[step->out + i] = carried + (step->rounds || carried != 0.0 ? 4.0 * UNIT * fabs(out) : 0.0);
    }
}

/* ---------------------------------------------------------------- edges */

static int entries_have_edges(const Step *step, const unsigned char *marked)
{
    int has = step->entries.near != NULL && marked == NULL;
    for (int j = 0; j < step->operand_count && step->entries.near != NULL && !has; j++) {
        for (Count row = 0; row < step->rows && entries_moves_edge(step, j) && !has; row++)
            has = view_row_is_marked(&step->operands[j], row, marked);
    }
    return has;
}

static unsigned entries_near(const Step *step, const Memory *memory, double margin)
{
    Count all = step->rows * step->columns, most = entries_at_a_time(step, memory, ~0u), width = memory->width;
    const double *in[MOST_INPUTS], *at[MOST_INPUTS];
    const Near near = step->entries.near;
    unsigned lanes = 0;
    if (all * width == 1) { /* as most steps of a long chain: nothing to pack */
        for (int j = 0; j < step->operand_count; j++)
            in[j] = memory->values + view_slot(&step->operands[j], 0, 0);
        return (unsigned)near(1, in, step->parameters, margin);
    }
    for (Count first = 0; first < all; first += most) {
        Count count = all - first < most ? all - first : most;
        for (int j = 0; j < step->operand_count; j++)
            in[j] = entries_of(&step->operands[j], memory, first, count, memory->scratch + j * CHUNK);
        if (!near(count * width, in, step->parameters, margin))
            continue;
        if (width == 1)
            return 1;
        for (Count i = 0; i < count * width; i++) {
            for (int j = 0; j < step->operand_count; j++)
                at[j] = in[j] + i;
            lanes |= (unsigned)near(1, at, step->parameters, margin) << (i % width);
        }
    }
    return lanes;
}

COLD static int entries_are_doubtful(const Step *step, const Memory *memory, const double *doubt)
{
    const double *in[MOST_INPUTS];
    int doubtful = 0;
    for (Count i = 0, row = 0, column = 0; i < step->rows * step->columns && !doubtful; i++, column++) {
        if (column == step->columns)
            row++, column = 0;
        double of_inputs = 0.0;
        for (int j = 0; j < step->operand_count; j++) {
            Count slot = view_slot(&step->operands[j], row, column);
            in[j] = memory->values + slot;
            of_inputs += entries_moves_edge(step, j) ? doubt[slot] : 0.0;
        }
        if (step->operand_count == 2 && in[0] == in[1] && *in[0] != 0.0)
            continue; /* the larger of x and x: however x is rounded, nothing changes */
        doubtful = of_inputs != 0.0 && step->entries.near(1, in, step->parameters, SAFETY * of_inputs);
    }
    return doubtful;
}

const Kind entries_kind = {
    .packed = PACKED_GATHERED, .choose = entries_choose, .end = entries_end, .fits = entries_fit,
    .rounds = entries_round, .forward = entries_forward, .reverse = entries_reverse,
    .depends = entries_depend, .doubt = entries_doubt, .has_edges = entries_have_edges, .near = entries_near,
    .is_doubtful = entries_are_doubtful,
};
