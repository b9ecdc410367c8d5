/* Reading the entries of an operand one after the other, and adding gradients back to where they came from.
 * A slot is `width` doubles: one, or one for each example of a batch. */

#include "views.h"

/* ---------------------------------------------------------------- memory for slots */

INTERNAL double *view_doubles_new(Count count)
{
    /* room to begin on a cache line; where it was allocated is kept just before that line */
    size_t bytes = (size_t)(count + 1) * sizeof(double) + 128;
    char *start = PyMem_RawCalloc(1, bytes);
    if (start == NULL)
        return NULL;
    char *aligned = (char *)(((uintptr_t)start + 127) & ~(uintptr_t)63);
    memcpy(aligned - sizeof start, &start, sizeof start);
    return (double *)aligned;
}

INTERNAL void view_doubles_free(double *doubles)
{
    if (doubles != NULL) {
        char *start;
        memcpy(&start, (char *)doubles - sizeof start, sizeof start);
        PyMem_RawFree(start);
    }
}

/* ---------------------------------------------------------------- entries */

/* A gathered view of whose entries from `first` on at least four at a time lie side by side. */
static inline int view_has_runs(const Operand *operand, Count first, Count count)
{
    Count run = operand->run;
    return operand->index != NULL && run % 4 == 0 && first % run == 0 && count % run == 0;
}

/* Entries `first` … `first + count - 1`, row by row, from `from` to `into`. */
INTERNAL void view_pack(const Operand *operand, Count width, const double *from, Count first, Count count, double *into)
{
    const int32_t *index = operand->index;
    if (view_has_runs(operand, first, count)) {
        for (Count i = 0, run = operand->run; i < count; i += run) {
            const double *source = from + (Count)index[first + i] * width;
            for (Count k = 0; k < run * width; k += 4)
                memcpy(into + i * width + k, source + k, 4 * sizeof *into);
        }
        return;
    }
    if (index != NULL && width == 1) {
        index += first;
        Count i = 0;
        for (; i + 4 <= count; i += 4) {
            double a = from[index[i]], b = from[index[i + 1]], c = from[index[i + 2]], d = from[index[i + 3]];
            into[i] = a, into[i + 1] = b, into[i + 2] = c, into[i + 3] = d;
        }
        for (; i < count; i++)
            into[i] = from[index[i]];
        return;
    }
    if (index != NULL) {
        for (Count i = 0; i < count; i++)
            memcpy(into + i * BATCH, from + (Count)index[first + i] * BATCH, BATCH * sizeof *into);
        return;
    }
    Count row = first / operand->columns, column = first % operand->columns, stride = operand->column_stride;
    while (count > 0) {
        Count here = operand->columns - column < count ? operand->columns - column : count;
        const double *source = from + (operand->start + row * operand->row_stride + column * stride) * width;
        if (stride == 1) {
            memcpy(into, source, (size_t)(here * width) * sizeof *into);
        }
        else if (width == 1 && stride == 0) {
            double same = *source;
            for (Count i = 0; i < here; i++)
                into[i] = same;
        }
        else if (width == 1) {
            for (Count i = 0; i < here; i++)
                into[i] = source[i * stride];
        }
        else {
            for (Count i = 0; i < here; i++)
                memcpy(into + i * BATCH, source + i * stride * BATCH, BATCH * sizeof *into);
        }
        into += here * width, count -= here, column = 0, row++;
    }
}

/* Where entries from `first` on begin in the operand's list of those that have a gradient. */
static Count view_scatter_begin(const Operand *operand, Count first)
{
    Count low = 0, high = operand->scatter_count;
    while (low < high) {
        Count middle = (low + high) / 2;
        if (operand->scatter[2 * middle] < first)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The reverse of view_pack: adds entries `first` … to the gradients in `to`, where one slot may be many entries. */
INTERNAL void view_add(const Kernels *kernels, const Operand *operand, Count width, const double *from, Count first,
                       Count count, double *to)
{
    const int32_t *index = operand->index, *scatter = operand->scatter;
    if (scatter != NULL) {
        Count k = view_scatter_begin(operand, first), end = view_scatter_begin(operand, first + count);
        scatter += 2 * k;
        if (width != 1) {
            kernels->batch_scatter(end - k, scatter + 1, scatter, 2, first, from, to);
            return;
        }
        for (; k < end; k++, scatter += 2)
            to[scatter[1]] += from[scatter[0] - first];
        return;
    }
    if (view_has_runs(operand, first, count)) {
        for (Count i = 0, run = operand->run; i < count; i += run)
            kernels->add(run * width, from + i * width, to + (Count)index[first + i] * width);
        return;
    }
    if (index != NULL && width == 1) {
        for (Count i = 0; i < count; i++)
            to[index[first + i]] += from[i];
        return;
    }
    if (index != NULL) {
        kernels->batch_scatter(count, index + first, NULL, 1, 0, from, to);
        return;
    }
    Count row = first / operand->columns, column = first % operand->columns, stride = operand->column_stride;
    while (count > 0) {
        Count here = operand->columns - column < count ? operand->columns - column : count;
        double *target = to + (operand->start + row * operand->row_stride + column * stride) * width;
        if (stride == 1) {
            kernels->add(here * width, from, target);
        }
        else if (stride == 0 && width == 1) {
            *target += kernels->sum(here, from);
        }
        else if (stride == 0) {
            double total[BATCH];
            kernels->rows[COMPOSITE_sum - OP_COUNT].batch_forward(here, from, NULL, NULL, NULL, total);
            kernels->add(BATCH, total, target);
        }
        else if (width == 1) {
            for (Count i = 0; i < here; i++)
                target[i * stride] += from[i];
        }
        else {
            for (Count i = 0; i < here; i++)
                kernels->add(BATCH, from + i * BATCH, target + i * stride * BATCH);
        }
        from += here * width, count -= here, column = 0, row++;
    }
}

/* Row `row` as entries side by side: where they lie, or packed into `scratch`. */
INTERNAL inline const double *view_row(const Operand *operand, Count width, const double *from, Count row,
                                       double *scratch)
{
    Count begin = view_row_begin(operand, row);
    if (begin >= 0)
        return from + begin * width;
    view_pack(operand, width, from, row * operand->columns, operand->columns, scratch);
    return scratch;
}

/* The same for one example of a batch, as plain numbers. */
INTERNAL const double *view_lane(const Operand *operand, const Memory *memory, Count row, Count lane, double *scratch)
{
    for (Count k = 0; k < operand->columns; k++)
        scratch[k] = memory->values[view_slot(operand, row, k) * memory->width + lane];
    return scratch;
}

INTERNAL int view_row_is_marked(const Operand *operand, Count row, const unsigned char *marked)
{
    Count k = 0;
    while (k < operand->columns && !marked[view_slot(operand, row, k)])
        k++;
    return k < operand->columns;
}

/* By its strides, in `from` or packed into *scratch, which then moves on. */
INTERNAL Matrix view_matrix(const Operand *operand, Count width, const double *from, double **scratch)
{
    if (operand->index == NULL)
        return (Matrix){from + operand->start * width, operand->row_stride, operand->column_stride};
    Count count = operand->rows * operand->columns;
    view_pack(operand, width, from, 0, count, *scratch);
    Matrix matrix = {*scratch, operand->columns, 1};
    *scratch += count * width;
    return matrix;
}

/* Whether all examples of a batch have the same numbers there, once each: *matrix is where. */
INTERNAL int view_is_shared(const Operand *operand, const Memory *memory, Matrix *matrix)
{
    if (operand->constants != NULL) {
        *matrix = (Matrix){operand->constants, operand->columns, 1};
        return 1;
    }
    if (memory->shared == NULL || operand->index != NULL)
        return 0;
    Count least, most;
    view_ends(operand, &least, &most);
    *matrix = view_matrix(operand, 1, memory->shared, NULL);
    return least >= memory->shared_from && most < memory->shared_to;
}

/* An operand's matrix with unit stride along the rows (transposed: along the columns). One example wide. */
INTERNAL Matrix view_with_unit_stride(const Kernels *kernels, const Operand *operand, Matrix matrix, int transposed,
                                      double **scratch)
{
    if (transposed ? matrix.row == 1 || operand->rows == 1 : matrix.column == 1)
        return matrix;
    double *into = *scratch;
    Count inner = transposed ? operand->rows : operand->columns, outer = transposed ? operand->columns : operand->rows;
    Count inner_stride = transposed ? matrix.row : matrix.column;
    Count outer_stride = transposed ? matrix.column : matrix.row;
    if (outer_stride == 1) {
        kernels->transpose(inner, outer, matrix.entries, inner_stride, into);
    }
    else {
        for (Count i = 0; i < outer; i++) {
            for (Count j = 0; j < inner; j++)
                into[i * inner + j] = matrix.entries[i * outer_stride + j * inner_stride];
        }
    }
    *scratch += inner * outer;
    return transposed ? (Matrix){into, 1, inner} : (Matrix){into, inner, 1};
}

/* Whether the slots are from 0 to `last`. One sweep without branches, which becomes vector code: every call that makes a
 * node passes here. */
INTERNAL int view_all_inside(const int32_t *slots, Count count, int32_t last)
{
    int32_t outside = 0;
    for (Count i = 0; i < count; i++)
        outside |= (slots[i] < 0) | (slots[i] > last);
    return !outside;
}
