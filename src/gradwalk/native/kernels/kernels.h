/* What the executor asks of its kernels. They exist once per instruction set, and kernels_best() picks one set.
 * Every count is in doubles. A reverse kernel adds to the gradients it is given; none of them may be `restrict`,
 * because two operands may be the same slots, or overlap. */

#ifndef GRADWALK_KERNELS_H
#define GRADWALK_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "internal.h"
#include "value/composites.h"

/* Examples that a batch runs side by side: every slot is then a vector of that many doubles. */
#define BATCH 8

typedef ptrdiff_t Count;

/* Entry by entry: `in` has a pointer per operand; a gradient nobody needs is NULL in `grads`. */
typedef void (*Forward)(Count n, const double *const *in, const double *parameters, double *out);
typedef void (*Reverse)(Count n, const double *const *in, const double *parameters, const double *out,
                        const double *out_grad, double *const *grads);

/* Whether one of n entries is no further than `margin` from where the result or a slope changes at once; NULL where
 * there is no such place. */
typedef int (*Near)(Count n, const double *const *in, const double *parameters, double margin);

/* Over one row x of n numbers. `target` is the place that the caller says; `facts` is kept from forward to reverse. */
typedef void (*RowForward)(Count n, const double *x, double target, const double *parameters, double *facts,
                           double *out);
typedef void (*RowReverse)(Count n, const double *x, double target, const double *parameters, const double *facts,
                           const double *out, const double *out_grad, double *grad);

/* The same for a row of each example of a batch, side by side; NULL where examples take turns with the above. */
typedef void (*BatchForward)(Count n, const double *x, const double *targets, const double *parameters, double *facts,
                             double *out);
typedef void (*BatchReverse)(Count n, const double *x, const double *targets, const double *parameters,
                             const double *facts, const double *out, const double *out_grad, double *grad);

/* Of a composite, by hand; NULL where there is none. What is kept in `facts` lies as row_ops.py says. */
typedef struct {
    RowForward forward;
    RowReverse reverse;
    BatchForward batch_forward;
    BatchReverse batch_reverse;
    Count exact_to; /* rows up to that length are rounded as in the eager engine */
} RowKernel;

#define EXPONENTIALS 2 /* where they begin in the facts of the softmax family */

/* The operations that every set has a vector form of; the table's loops do the others. */
#define FOR_EACH_VECTOR_OP(X, with) \
    X(add, with) X(sub, with) X(mul, with) X(div, with) X(neg, with) X(relu, with) X(exp, with) X(log, with) \
    X(tanh, with) X(sqrt, with) X(sigmoid, with) X(sin, with) X(cos, with)

/* Powers by a number that need no call of pow(). */
enum power { POWER_2, POWER_3, POWER_HALF, POWER_3_HALVES, POWER_MINUS_1, POWER_MINUS_2, POWER_MINUS_HALF,
             POWER_MINUS_3_HALVES, POWERS };

typedef struct {
    Forward forward;
    Reverse reverse;
} EntryKernel;

/* out[i, j] = or += Σ_p left[i, p] · right[p, j]; `right` and `out` have unit stride in j. */
typedef struct {
    Count rows, columns, depth;
    const double *left;
    Count left_row, left_depth;
    const double *right;
    Count right_depth;
    double *out;
    Count out_row;
    int add;
} Product;

/* The same where each entry is BATCH numbers side by side, one for each example; strides count entries. One side may
 * have a single number an entry, which all examples share; so has `out` where their total is asked for. */
typedef struct {
    Count rows, columns, depth;
    const double *left;
    Count left_row, left_depth;
    const double *right;
    Count right_depth, right_column;
    double *out;
    Count out_row, out_column;
    int add; /* always, where the total is asked for */
    int left_shared, right_shared, total;
} BatchProduct;

/* What four rows of pairs have in common. */
enum pairs_kind {
    PAIRS_ANY,
    PAIRS_ALONG, /* each consists of fours whose left slots are neighbours, and whose right slots are */
    PAIRS_ACROSS /* at each place they have the same left slot, and neighbours on the right */
};

/* Dots over short rows that lie anywhere: row r multiplies the slots pairs[2 i] and pairs[2 i + 1] for i from starts[r]
 * to starts[r + 1]. */
typedef struct {
    Count rows;
    int32_t *starts, *slots; /* starts is NULL where there are none */
    unsigned char *kinds; /* of each four rows */
    int left_needed, right_needed; /* somebody asks for gradients of that side */
} Pairs;

typedef struct {
    const char *name;
    EntryKernel entries[OP_COUNT]; /* NULL where the table's loops do it */
    EntryKernel powers[POWERS];    /* of pow_number */
    Near near[OP_COUNT];
    RowKernel rows[COMPOSITE_COUNT];
    double (*sum)(Count n, const double *x);
    double (*dot)(Count n, const double *x, const double *y);
    void (*add)(Count n, const double *x, double *into);                 /* into += x */
    void (*add_scaled)(Count n, double scale, const double *x, double *into); /* into += scale x */
    void (*add_product)(Count n, const double *x, const double *y, double *into); /* into += x y */
    int (*finite)(Count n, const double *x);
    double (*most)(Count n, const double *x); /* the largest absolute value */
    void (*product)(const Product *product);
    /* out[i, j] = Σ_p left[i, p] · right[j, p]: unit stride in p on both sides, and in j */
    void (*dots)(Count rows, Count columns, Count depth, const double *left, Count left_row, const double *right,
                 Count right_row, double *out);
    void (*transpose)(Count rows, Count columns, const double *from, Count from_row, double *into); /* side by side */
    void (*batch_product)(const BatchProduct *product);
    void (*pairs_forward)(const Pairs *pairs, const double *values, double *out);
    void (*pairs_reverse)(const Pairs *pairs, const double *values, const double *out_grad, double *grads);
    void (*batch_pairs_forward)(const Pairs *pairs, const double *values, double *out);
    void (*batch_pairs_reverse)(const Pairs *pairs, const double *values, const double *out_grad, double *grads);
    void (*batch_add_scaled)(Count n, const double *scale, const double *x, double *into);
    void (*batch_scatter)(Count count, const int32_t *slots, const int32_t *entries, Count step, Count first,
                          const double *from, double *to);
    void (*adam)(Count n, double *data, const double *grad, double *mean, double *square, const double *settings);
} Kernels;

/* settings of adam */
enum { ADAM_BETA, ADAM_BETA_SQUARE, ADAM_STEP, ADAM_SCALE, ADAM_EPSILON, ADAM_SHRINK, ADAM_SETTINGS };

/* Of the sets that this machine can run, the best first: the one after this, or NULL. */
INTERNAL const Kernels *kernels_next(const Kernels *set);
INTERNAL const Kernels *kernels_named(const char *name); /* NULL where this machine can run none of that name */
INTERNAL const Kernels *kernels_best(void);

#endif
