/* Where the entries of operands lie in a program's memory, and how kinds of steps get at them. */

#ifndef GRADWALK_VIEWS_H
#define GRADWALK_VIEWS_H

#include "kernels/kernels.h"
#include "value/value.h"

/* A View: strided (index is NULL) or gathered. */
typedef struct {
    Count rows, columns, start, row_stride, column_stride;
    int32_t *index;    /* owned */
    Count run;         /* of a gathered one: of the entries of a row, every so many lie side by side */
    double *constants; /* owned: the entries, where they never change; else NULL */
    int32_t *scatter;  /* owned: entry and slot of each that has a gradient, where not all have; else NULL */
    Count scatter_count;
    int direct;        /* the entries lie one after the other from `start` on */
    int needed;        /* somebody asks for the gradient of an entry */
    int fresh;         /* none has come to any before: of one example, they are set instead of added to */
} Operand;

/* What one run works in. Slot s is the `width` doubles from s * width on: one example each. Of some slots, the leaves',
 * all examples of a batch have the same number: these are at shared[slot], too, and may be read there. Matrix products
 * then leave the totals of their gradients in shared_grads, if it is there. */
typedef struct {
    Count width;
    double *values, *grads, *scratch, *facts;
    Count shared_from, shared_to;
    const double *shared;
    double *shared_grads;
} Memory;

/* A matrix by its strides. */
typedef struct {
    const double *entries;
    Count row, column;
} Matrix;

static inline Count view_slot(const Operand *operand, Count row, Count column)
{
    return operand->index ? operand->index[row * operand->columns + column]
                          : operand->start + row * operand->row_stride + column * operand->column_stride;
}

/* Each row lies side by side, and the rows are as far apart as row_stride says. */
static inline int view_has_rows(const Operand *operand)
{
    return operand->index == NULL && operand->column_stride == 1;
}

/* Each row lies side by side: from this slot on; or else -1. */
static inline Count view_row_begin(const Operand *operand, Count row)
{
    int beside = operand->index != NULL ? operand->run == operand->columns : operand->column_stride == 1;
    return beside ? view_slot(operand, row, 0) : -1;
}

/* Each column does, and no row. */
static inline int view_has_columns(const Operand *operand)
{
    return operand->index == NULL && operand->row_stride == 1 && operand->column_stride != 1;
}

/* The least and the largest slot of a strided view. */
static inline void view_ends(const Operand *operand, Count *least, Count *most)
{
    Count down = (operand->rows - 1) * operand->row_stride, across = (operand->columns - 1) * operand->column_stride;
    *least = operand->start + (down < 0 ? down : 0) + (across < 0 ? across : 0);
    *most = operand->start + (down > 0 ? down : 0) + (across > 0 ? across : 0);
}

/* Memory for slots: all 0, and one more than asked for, which stays 0. */
INTERNAL double *view_doubles_new(Count count);
INTERNAL void view_doubles_free(double *doubles);

INTERNAL void view_pack(const Operand *operand, Count width, const double *from, Count first, Count count,
                        double *into);
INTERNAL void view_add(const Kernels *kernels, const Operand *operand, Count width, const double *from, Count first,
                       Count count, double *to);
INTERNAL const double *view_row(const Operand *operand, Count width, const double *from, Count row, double *scratch);
INTERNAL const double *view_lane(const Operand *operand, const Memory *memory, Count row, Count lane, double *scratch);
INTERNAL int view_row_is_marked(const Operand *operand, Count row, const unsigned char *marked);
INTERNAL Matrix view_matrix(const Operand *operand, Count width, const double *from, double **scratch);
INTERNAL Matrix view_with_unit_stride(const Kernels *kernels, const Operand *operand, Matrix matrix, int transposed,
                                      double **scratch);
INTERNAL int view_is_shared(const Operand *operand, const Memory *memory, Matrix *matrix);
INTERNAL int view_all_inside(const int32_t *slots, Count count, int32_t last);

#endif
