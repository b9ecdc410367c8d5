/* Composites over rows: a number for each row, or one for each of its entries. */

#include "step.h"

/* ---------------------------------------------------------------- its kernels */

/* `parameters`: how many were given. In an exact program every output is a step, and one parameter more says which. */
static int rows_choose(Step *step, const Kernels *kernels, Count parameters, PyObject *functions)
{
    (void)functions;
    Count own = composite_of(step->op)->parameters;
    step->over_rows.entry = parameters > own ? step_whole(step->parameters[own], INT32_MAX) : -1;
    step->over_rows.kernel = kernels->rows[step->op - OP_COUNT];
    step->checked = composite_of(step->op)->checked;
    return 0;
}

/* ---------------------------------------------------------------- shapes, and what depends on what */

static int rows_fit(const Step *step)
{
    const Operand *x = &step->operands[0], *target = &step->operands[1];
    int whole = composite_of(step->op)->per_entry && step->over_rows.entry < 0;
    return (step->lengths == NULL || step->columns > 1) && x->rows == step->rows
        && step->columns == (whole ? x->columns : 1) && step->over_rows.entry < x->columns
        && (step->operand_count == 1 || (target->rows == step->rows && target->columns == 1));
}

static int rows_round(const Step *step)
{
    const RowKernel *kernel = &step->over_rows.kernel; /* what is made from row_ops.py rounds as the eager engine does */
    return kernel->forward != NULL && step->operands[0].columns > kernel->exact_to;
}

/* How many entries of a row count. */
static inline Count rows_length(const Step *step, Count row)
{
    return step->lengths != NULL ? step->lengths[row] : step->operands[0].columns;
}

static int rows_depend(const Step *step, Count row, Count column, const unsigned char *marked)
{
    int depends = 0, nothing = step->columns > 1 && column >= rows_length(step, row);
    for (int j = 0; !nothing && j < step->operand_count && !depends; j++)
        depends = view_row_is_marked(&step->operands[j], row, marked);
    return depends;
}

/* Doubles that a row keeps from forward to reverse, for one example. */
static Count rows_facts_of_one(const Step *step)
{
    return composite_kept(composite_of(step->op), step->operands[0].columns);
}

static Count rows_facts(const Step *step) { return step->rows * rows_facts_of_one(step); }

static Count rows_scratch(const Step *step)
{
    return BATCH * (step->operands[0].columns + rows_facts_of_one(step)) + 2 * step->columns + 8;
}

/* ---------------------------------------------------------------- forward and reverse */

static inline double rows_target(const Step *step, const Memory *memory, Count row, Count lane)
{
    if (step->operand_count < 2)
        return 0.0;
    double given = memory->values[view_slot(&step->operands[1], row, 0) * memory->width + lane];
    return (double)step_whole(given, step->operands[0].columns);
}

/* A sum over columns that lie side by side is a sum of vectors, whatever the width. */
static inline int rows_sum_columns(const Step *step)
{
    const Operand *x = &step->operands[0];
    return step->op == COMPOSITE_sum && x->index == NULL && x->row_stride == 1 && x->column_stride != 1;
}

/* How many outputs a row of n entries has. */
static inline Count rows_outputs(const Step *step, Count n) { return step->lengths != NULL ? n : step->columns; }

/* One row: by the kernel, or by what is made from row_ops.py. */
static void rows_forward_one(const Step *step, Count n, const double *x, double target, double *facts, double *out)
{
    const Composite *composite = composite_of(step->op);
    if (step->over_rows.kernel.forward != NULL) {
        step->over_rows.kernel.forward(n, x, target, step->parameters, facts, out);
        return;
    }
    composite_keep(composite, n, x, step->parameters, facts);
    for (Count c = 0; c < rows_outputs(step, n); c++)
        out[c] = composite_output(composite, n, x, composite->has_target ? (Count)target : c, step->parameters, facts);
}

/* `local_grads`: room for n of them. */
static void rows_reverse_one(const Step *step, Count n, const double *x, double target, const double *facts,
                             const double *out, const double *out_grad, double *local_grads, double *grad)
{
    const Composite *composite = composite_of(step->op);
    if (step->over_rows.kernel.reverse != NULL) {
        step->over_rows.kernel.reverse(n, x, target, step->parameters, facts, out, out_grad, grad);
        return;
    }
    for (Count c = 0; c < rows_outputs(step, n); c++) {
        if (out_grad[c] == 0.0)
            continue; /* and not 0 times an infinite local gradient */
        Count i = composite->has_target ? (Count)target : c;
        composite_slopes(composite, n, x, i, step->parameters, facts, out[c], local_grads);
        for (Count k = 0; k < n; k++)
            grad[k] += local_grads[k] * out_grad[c];
    }
}

#define SHORT_ENOUGH 64 /* rows to be turned round */

/* Short rows of one example, BATCH at a time as if they were a batch: side by side they fill vectors that each would
 * leave half empty. Returns how many of them. */
static Count rows_forward_together(const Kernels *kernels, const Step *step, const Memory *memory)
{
    const Operand *x = &step->operands[0];
    Count n = x->columns, r = 0;
    int whole = step->op == COMPOSITE_softmax && step->columns == n; /* a number for each entry */
    if (step->over_rows.kernel.batch_forward == NULL || (step->columns != 1 && !whole) || n > SHORT_ENOUGH)
        return 0;
    Count row_facts = rows_facts_of_one(step);
    double targets[BATCH], *entries = memory->scratch, *facts = entries + n * BATCH;
    for (; r + BATCH <= step->rows; r += BATCH) {
        double *out = memory->values + step->out + r * step->columns;
        if (view_has_rows(x))
            kernels->transpose(BATCH, n, memory->values + x->start + r * x->row_stride, x->row_stride, entries);
        for (Count lane = 0; lane < BATCH; lane++) {
            targets[lane] = rows_target(step, memory, r + lane, 0);
            for (Count k = 0; !view_has_rows(x) && k < n; k++)
                entries[k * BATCH + lane] = memory->values[view_slot(x, r + lane, k)];
            for (Count k = rows_length(step, r + lane); k < n; k++)
                entries[k * BATCH + lane] = -INFINITY; /* 0 in a softmax, unless the row is nan, and the program over */
        }
        step->over_rows.kernel.batch_forward(n, entries, targets, step->parameters, facts, whole ? entries : out);
        kernels->transpose(row_facts, BATCH, facts, BATCH, memory->facts + step->facts + r * row_facts);
        if (whole)
            kernels->transpose(n, BATCH, entries, BATCH, out);
    }
    return r;
}

static void rows_forward(const Kernels *kernels, const Step *step, const Memory *memory)
{
    const Operand *x = &step->operands[0];
    Count width = memory->width, columns = step->columns, n = x->columns, row_facts = rows_facts_of_one(step);
    double *out = memory->values + step->out * width, *facts = memory->facts + step->facts * width;
    if (rows_sum_columns(step)) {
        const double *first = memory->values + x->start * width;
        memcpy(out, first, (size_t)(step->rows * width) * sizeof *out);
        for (Count k = 1; k < n; k++)
            kernels->add(step->rows * width, first + k * x->column_stride * width, out);
        return;
    }
    if (width == 1 && step->op == COMPOSITE_sum && x->index != NULL && n < 16) {
        const int32_t *index = x->index;
        for (Count r = 0; r < step->rows; r++, index += n) {
            double sum = memory->values[index[0]];
            for (Count k = 1; k < n; k++)
                sum += memory->values[index[k]];
            out[r] = sum;
        }
        return;
    }
    for (Count r = width == 1 ? rows_forward_together(kernels, step, memory) : 0; r < step->rows; r++) {
        Count count = rows_length(step, r), outputs = rows_outputs(step, count);
        memset(out + (r * columns + outputs) * width, 0, (size_t)((columns - outputs) * width) * sizeof *out);
        if (width == 1) {
            const double *row = view_row(x, width, memory->values, r, memory->scratch);
            double target = rows_target(step, memory, r, 0);
            rows_forward_one(step, count, row, target, facts + r * row_facts, out + r * columns);
            continue;
        }
        if (step->over_rows.kernel.batch_forward != NULL) {
            double targets[BATCH];
            for (Count lane = 0; lane < BATCH; lane++)
                targets[lane] = rows_target(step, memory, r, lane);
            const double *row = view_row(x, width, memory->values, r, memory->scratch);
            step->over_rows.kernel.batch_forward(count, row, targets, step->parameters, facts + r * row_facts * BATCH,
                                                 out + r * columns * BATCH);
            continue;
        }
        double *lane_out = memory->scratch + n;
        for (Count lane = 0; lane < width; lane++) {
            const double *row = view_lane(x, memory, r, lane, memory->scratch);
            rows_forward_one(step, count, row, rows_target(step, memory, r, lane),
                             facts + (r * width + lane) * row_facts, lane_out);
            for (Count c = 0; c < outputs; c++)
                out[(r * columns + c) * width + lane] = lane_out[c];
        }
    }
}

static void rows_reverse(const Kernels *kernels, const Step *step, const Memory *memory)
{
    const Operand *x = &step->operands[0];
    Count width = memory->width, columns = step->columns, n = x->columns, row_facts = rows_facts_of_one(step);
    double *scratch = memory->scratch, *grad = scratch + n;
    const double *out = memory->values + step->out * width, *out_grad = memory->grads + step->out * width;
    const double *facts = memory->facts + step->facts * width;
    if (rows_sum_columns(step)) {
        double *first = memory->grads + x->start * width;
        for (Count k = 0; k < n; k++)
            kernels->add(step->rows * width, out_grad, first + k * x->column_stride * width);
        return;
    }
    if (step->op == COMPOSITE_sum && x->index != NULL && n < 16) {
        const int32_t *scatter = x->scatter;
        Count count = scatter != NULL ? x->scatter_count : step->rows * n;
        for (Count k = 0, r = 0; k < count; k++) {
            while ((scatter != NULL ? scatter[2 * k] : k) >= (r + 1) * n)
                r++;
            Count slot = scatter != NULL ? scatter[2 * k + 1] : x->index[k];
            if (width == 1)
                memory->grads[slot] += out_grad[r];
            else
                kernels->add(BATCH, out_grad + r * BATCH, memory->grads + slot * BATCH);
        }
        return;
    }
    for (Count r = 0; r < step->rows; r++) {
        Count count = rows_length(step, r);
        if (width == 1 || step->over_rows.kernel.batch_reverse != NULL) {
            double targets[BATCH];
            for (Count lane = 0; lane < width; lane++)
                targets[lane] = rows_target(step, memory, r, lane);
            Count begin = view_row_begin(x, r);
            int direct = begin >= 0 && x->scatter == NULL; /* all have a gradient, or strides, where more does no harm */
            double *added = direct ? memory->grads + begin * width : scratch + n * width;
            if (!direct)
                memset(added, 0, (size_t)(n * width) * sizeof *added);
            const double *row = view_row(x, width, memory->values, r, scratch);
            const double *known = facts + r * row_facts * width;
            const double *row_out = out + r * columns * width, *row_grad = out_grad + r * columns * width;
            if (width == 1)
                rows_reverse_one(step, count, row, targets[0], known, row_out, row_grad, scratch + 2 * n, added);
            else
                step->over_rows.kernel.batch_reverse(count, row, targets, step->parameters, known, row_out, row_grad,
                                                     added);
            if (!direct)
                view_add(kernels, x, width, added, r * n, n, memory->grads);
            continue;
        }
        double *lane_out = grad + n, *lane_out_grad = lane_out + columns;
        for (Count lane = 0; lane < width; lane++) {
            for (Count c = 0; c < columns; c++) {
                lane_out[c] = out[(r * columns + c) * width + lane];
                lane_out_grad[c] = out_grad[(r * columns + c) * width + lane];
            }
            memset(grad, 0, (size_t)n * sizeof *grad);
            rows_reverse_one(step, count, view_lane(x, memory, r, lane, scratch), rows_target(step, memory, r, lane),
                             facts + (r * width + lane) * row_facts, lane_out, lane_out_grad, lane_out_grad + columns,
                             grad);
            for (Count k = 0; k < n; k++)
                memory->grads[view_slot(x, r, k) * width + lane] += grad[k];
        }
    }
}

/* ---------------------------------------------------------------- doubt */

/* Output i of one example; behind the row `x` that it is made of, as many local gradients. */
static double rows_slopes(const Step *step, const Memory *memory, Count i, Count lane, double *x)
{
    const Composite *composite = composite_of(step->op);
    Count row = i / step->columns, n = rows_length(step, row), columns = step->operands[0].columns;
    Count at = step->operand_count > 1 ? (Count)rows_target(step, memory, row, lane) : i % step->columns;
    double *local_grads = x + columns, *facts = local_grads + columns;
    view_lane(&step->operands[0], memory, row, lane, x);
    composite_keep(composite, n, x, step->parameters, facts);
    double out = composite_output(composite, n, x, at, step->parameters, facts);
    composite_slopes(composite, n, x, at, step->parameters, facts, out, local_grads);
    return out;
}

COLD static void rows_doubt(const Step *step, const Memory *memory, double *doubt)
{
    const Operand *operand = &step->operands[0];
    double *x = memory->scratch, *local_grads = x + operand->columns;
    for (Count i = 0; i < step->rows * step->columns; i++) {
        Count row = i / step->columns, n = rows_length(step, row);
        if (i % step->columns >= rows_outputs(step, n))
            continue; /* and 0 is what is there */
        double out = rows_slopes(step, memory, i, 0, x);
        double size = fabs(out) + composite_of(step->op)->is_logarithm;
        for (Count k = 0; k < n; k++)
            size += fabs(local_grads[k] * x[k]);
        double own = step->rounds ? (double)(n + 16) * UNIT * size : 0.0;
        doubt[step->out + i] = own + step_carried_doubt(operand, row, n, local_grads, doubt);
    }
}

/* The largest local gradient of the first rows, in any lane; infinite if one is nan. Of two outputs each: where one entry
 * of a row decides what an output does not depend on, another output says how steep it is. */
INTERNAL double rows_steepest(const Step *step, const Memory *memory, Count rows)
{
    double *x = memory->scratch, *local_grads = x + step->operands[0].columns, most = 0.0;
    Count outputs = step->columns < 2 ? step->columns : 2;
    for (Count i = 0; i < rows * outputs * memory->width; i++) {
        Count place = i / memory->width, row = place / outputs, column = place % outputs, n = rows_length(step, row);
        if (column >= rows_outputs(step, n))
            continue;
        rows_slopes(step, memory, row * step->columns + column, i % memory->width, x);
        for (Count k = 0; k < n; k++)
            most = fabs(local_grads[k]) <= most ? most : isnan(local_grads[k]) ? INFINITY : fabs(local_grads[k]);
    }
    return most;
}

/* ---------------------------------------------------------------- edges */

/* Which of equals is chosen changes only slopes, which nobody asks for where no gradient flows. */
static int rows_have_edges(const Step *step, const unsigned char *marked)
{
    const Composite *composite = composite_of(step->op);
    int has = composite->edge != NULL || (step->needed && composite->chooses);
    Count row = 0;
    while (has && marked != NULL && row < step->rows && !rows_depend(step, row, 0, marked))
        row++;
    return has && row < step->rows;
}

/* Whether two entries are as close as `margin` to an output: either may be the one that was chosen. */
static int rows_is_tied(const Step *step, const Memory *memory, Count row, Count lane, double out, double margin)
{
    const Operand *x = &step->operands[0];
    Count chosen = -1;
    for (Count k = 0; k < x->columns; k++) {
        Count slot = view_slot(x, row, k);
        double apart = fabs(memory->values[slot * memory->width + lane] - out);
        if (apart > margin)
            continue;
        if (apart == 0.0 && chosen < 0)
            chosen = slot; /* and the same slot again is no other */
        else if (slot != chosen)
            return 1;
    }
    return 0;
}

/* Whether a row is as close as `margin` to where something changes at once, be it that two entries are chosen. */
NEVER_INLINE static int rows_is_near(const Step *step, const Memory *memory, Count row, Count lane, double margin)
{
    const Composite *composite = composite_of(step->op);
    if (composite->edge != NULL) {
        const double *entries = view_lane(&step->operands[0], memory, row, lane, memory->scratch);
        if (!(composite_edge(composite, rows_length(step, row), entries, step->parameters) > margin))
            return 1;
    }
    int tied = 0;
    Count outputs = composite->chooses ? rows_outputs(step, rows_length(step, row)) : 0;
    for (Count c = 0; c < outputs && !tied; c++) {
        double out = memory->values[(step->out + row * step->columns + c) * memory->width + lane];
        tied = rows_is_tied(step, memory, row, lane, out, margin);
    }
    return tied;
}

static unsigned rows_near(const Step *step, const Memory *memory, double margin)
{
    unsigned lanes = 0;
    for (Count row = 0; row < step->rows; row++) {
        for (Count lane = 0; lane < memory->width; lane++)
            lanes |= (unsigned)rows_is_near(step, memory, row, lane, margin) << lane;
    }
    return lanes;
}

COLD static int rows_are_doubtful(const Step *step, const Memory *memory, const double *doubt)
{
    const Operand *x = &step->operands[0];
    int doubtful = 0;
    for (Count row = 0; row < step->rows && !doubtful; row++) {
        double of_row = 0.0;
        for (Count k = 0; k < x->columns; k++)
            of_row += doubt[view_slot(x, row, k)];
        doubtful = of_row != 0.0 && rows_is_near(step, memory, row, 0, SAFETY * of_row);
    }
    return doubtful;
}

const Kind rows_kind = {
    .differentiable = 1, .takes_lengths = 1, .choose = rows_choose, .fits = rows_fit, .rounds = rows_round,
    .scratch = rows_scratch, .facts = rows_facts, .forward = rows_forward, .reverse = rows_reverse,
    .depends = rows_depend, .doubt = rows_doubt, .has_edges = rows_have_edges, .near = rows_near,
    .is_doubtful = rows_are_doubtful,
};
