/* Rows of a table, taken by their numbers, which are known when the program runs. */

#include "step.h"

/* ---------------------------------------------------------------- shapes, and what depends on what */

static int take_fits(const Step *step)
{
    const Operand *rows = &step->operands[0], *numbers = &step->operands[1];
    return rows->columns == step->columns && numbers->rows == step->rows && numbers->columns == 1;
}

static Count take_scratch(const Step *step) { return step->columns; }

static int take_depends(const Step *step, Count row, Count column, const unsigned char *marked)
{
    const Operand *rows = &step->operands[0];
    int depends = marked[view_slot(&step->operands[1], row, 0)];
    for (Count r = 0; r < rows->rows && !depends; r++)
        depends = marked[view_slot(rows, r, column)];
    return depends;
}

/* ---------------------------------------------------------------- forward and reverse */

static inline Count take_row(const Step *step, const Memory *memory, Count r, Count lane)
{
    Count slot = view_slot(&step->operands[1], r, 0);
    return step_whole(memory->values[slot * memory->width + lane], step->operands[0].rows);
}

static void take_forward(const Kernels *kernels, const Step *step, const Memory *memory)
{
    const Operand *rows = &step->operands[0];
    Count width = memory->width, columns = step->columns;
    Matrix table;
    int shared = width != 1 && view_has_rows(rows) && view_is_shared(rows, memory, &table);
    for (Count r = 0; r < step->rows; r++) {
        double *out = memory->values + (step->out + r * columns) * width;
        if (width == 1) {
            const double *row = view_row(rows, 1, memory->values, take_row(step, memory, r, 0), out);
            if (row != out)
                memcpy(out, row, (size_t)columns * sizeof *out);
            continue;
        }
        for (Count lane = 0; lane < width; lane++) {
            Count i = take_row(step, memory, r, lane);
            if (shared)
                memcpy(memory->scratch + lane * columns, table.entries + i * table.row, (size_t)columns * sizeof *out);
            for (Count c = 0; !shared && c < columns; c++)
                out[c * width + lane] = memory->values[view_slot(rows, i, c) * width + lane];
        }
        if (shared)
            kernels->transpose(BATCH, columns, memory->scratch, columns, out);
    }
}

static void take_reverse(const Kernels *kernels, const Step *step, const Memory *memory)
{
    const Operand *rows = &step->operands[0];
    Count width = memory->width, columns = step->columns;
    Matrix table;
    int total = memory->shared_grads != NULL && view_has_rows(rows) && view_is_shared(rows, memory, &table);
    for (Count r = 0; r < step->rows; r++) {
        const double *out_grad = memory->grads + (step->out + r * columns) * width;
        if (width == 1) {
            view_add(kernels, rows, 1, out_grad, take_row(step, memory, r, 0) * columns, columns, memory->grads);
            continue;
        }
        if (total)
            kernels->transpose(columns, BATCH, out_grad, BATCH, memory->scratch);
        for (Count lane = 0; lane < width; lane++) {
            Count i = take_row(step, memory, r, lane);
            if (total)
                kernels->add(columns, memory->scratch + lane * columns,
                             memory->shared_grads + rows->start + i * rows->row_stride);
            for (Count c = 0; !total && c < columns; c++)
                memory->grads[view_slot(rows, i, c) * width + lane] += out_grad[c * width + lane];
        }
    }
}

/* ---------------------------------------------------------------- doubt */

COLD static void take_doubt(const Step *step, const Memory *memory, double *doubt)
{
    for (Count i = 0; i < step->rows * step->columns; i++) {
        Count row = take_row(step, memory, i / step->columns, 0);
        doubt[step->out + i] = doubt[view_slot(&step->operands[0], row, i % step->columns)];
    }
}

const Kind take_kind = {
    .differentiable = 1, .fits = take_fits, .scratch = take_scratch, .forward = take_forward, .reverse = take_reverse,
    .depends = take_depends, .doubt = take_doubt,
};
