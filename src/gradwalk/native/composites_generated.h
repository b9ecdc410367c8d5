/* do not edit; made by tools/generate.py from src/gradwalk/row_ops.py */

#ifndef GRADWALK_COMPOSITES_GENERATED_H
#define GRADWALK_COMPOSITES_GENERATED_H

#include <stddef.h>

#include "ops_generated.h"

/* Composites follow the table's operations in the numbering of ops. */
enum composite {
    COMPOSITE_BASE = OP_COUNT - 1,
    COMPOSITE_sum, COMPOSITE_mean, COMPOSITE_dot, COMPOSITE_norm, COMPOSITE_logsumexp, COMPOSITE_softmax, COMPOSITE_log_softmax, COMPOSITE_cross_entropy, COMPOSITE_rmsnorm, COMPOSITE_layernorm, COMPOSITE_largest, COMPOSITE_smallest, COMPOSITE_take,
    NO_OP /* leaves and nodes made by hand */
};
#define COMPOSITE_COUNT (NO_OP - OP_COUNT)

#define FOR_EACH_COMPOSITE(X) \
    X(sum, "sum(xs)\n--\n\nThe sum as one node.\n\n>>> from gradwalk import Value\n>>> x = Value(2.0)\n>>> sum([x, x, 3.0])\nValue(data=7.0, grad=0.0)") X(mean, "mean(xs)\n--\n\nThe mean as one node.\n\n>>> mean([1.0, 2.0, 6.0])\n3.0") X(dot, "dot(xs, ys)\n--\n\nThe sum of products as one node.\n\n>>> dot([1.0, 2.0], [3.0, 4.0])\n11.0") X(norm, "norm(xs)\n--\n\nThe Euclidean length as one node, without overflow on the way.\n\n>>> norm([3.0, 4.0])\n5.0") X(logsumexp, "logsumexp(xs)\n--\n\nThe logarithm of the sum of exponentials as one node, without overflow on the way.\n\n>>> round(logsumexp([1000.0, 1000.0]), 9)\n1000.693147181") X(softmax, "softmax(xs)\n--\n\nExponentials divided by their sum: one node per output.\n\n>>> softmax([1000.0, 0.0])\n[1.0, 0.0]") X(log_softmax, "log_softmax(xs)\n--\n\nLogarithms of the softmax, exact where it underflows: one node per output.\n\n>>> log_softmax([1000.0, 0.0])\n[0.0, -1000.0]") X(cross_entropy, "cross_entropy(logits, target)\n--\n\nMinus the logarithm of the probability that softmax gives to entry `target`, as one node.\n\n>>> cross_entropy([1000.0, 0.0], 1)\n1000.0") X(rmsnorm, "rmsnorm(xs, eps=1e-05)\n--\n\nxs divided by the root of their mean square: one node per output.\n\n>>> rmsnorm([3.0, -3.0], eps=0.0)\n[1.0, -1.0]") X(layernorm, "layernorm(xs, eps=1e-05)\n--\n\nxs less their mean, divided by the root of their variance: one node per output.\n\n>>> layernorm([1.0, 3.0], eps=0.0)\n[-1.0, 1.0]") X(largest, "largest(xs)\n--\n\nThe largest; of equals, the first gets the gradient.") X(smallest, "smallest(xs)\n--\n\nThe smallest; of equals, the first gets the gradient.") X(take, "take(rows, index)\n--\n\n`rows[index]` as recorded nodes: one node for a Value, a list of nodes for a row of them.\n\n>>> take([[1.0, 2.0], [3.0, 4.0]], 1)\n[3.0, 4.0]")

/* Over rows of n numbers: one, or two of the same length (else `ys` is not read). `kept` is what the outputs over one
 * row share: numbers first, then rows of n. */
#define ROWS ptrdiff_t n, const double *xs, const double *ys
#define OUTPUT ptrdiff_t i, const double *parameters, const double *kept

typedef struct {
    const char *name, *called; /* as people know it */
    const char *arguments[4];  /* what a caller gives, by name */
    unsigned char inputs;      /* how many rows */
    unsigned char per_entry;   /* an output for each entry: `i` says which */
    unsigned char has_target;  /* the caller says `i` */
    unsigned char parameters, default_count;
    double defaults[2];
    unsigned char kept_numbers, kept_rows;
    unsigned char is_logarithm; /* rounding has to be measured against 1, however small the result is */
    unsigned char chooses;      /* what has no part in the result gets no gradient, not even nan */
    unsigned char checked;      /* what comes out has to be finite */
    void (*keep)(ROWS, const double *parameters, double *kept); /* NULL where nothing is kept */
    double (*forward)(ROWS, OUTPUT);
    void (*local_grads)(ROWS, OUTPUT, double out, double *local_grads);
    double (*edge)(ROWS, const double *parameters); /* how far to where something changes at once; NULL: nowhere */
} Composite;

static inline double sum_row_forward(ROWS, OUTPUT)
{
    (void)ys, (void)i, (void)parameters, (void)kept;
    double t0 = xs[0];
    for (ptrdiff_t j = 1; j < n; j++) t0 = t0 + xs[j];
    return t0;
}

static inline void sum_row_local_grads(ROWS, OUTPUT, double out, double *local_grads)
{
    (void)xs, (void)ys, (void)i, (void)parameters, (void)kept, (void)out;
    for (ptrdiff_t j = 0; j < n; j++) local_grads[j] = 1.0;
}

static inline double mean_row_forward(ROWS, OUTPUT)
{
    (void)ys, (void)i, (void)parameters, (void)kept;
    double t0 = xs[0];
    for (ptrdiff_t j = 1; j < n; j++) t0 = t0 + xs[j];
    return t0 / (double)n;
}

static inline void mean_row_local_grads(ROWS, OUTPUT, double out, double *local_grads)
{
    (void)xs, (void)ys, (void)i, (void)parameters, (void)kept, (void)out;
    const double t0 = 1.0 / (double)n;
    for (ptrdiff_t j = 0; j < n; j++) local_grads[j] = t0;
}

static inline double dot_row_forward(ROWS, OUTPUT)
{
    (void)i, (void)parameters, (void)kept;
    double t0 = xs[0] * ys[0];
    for (ptrdiff_t j = 1; j < n; j++) t0 = t0 + xs[j] * ys[j];
    return t0;
}

static inline void dot_row_local_grads(ROWS, OUTPUT, double out, double *local_grads)
{
    (void)i, (void)parameters, (void)kept, (void)out;
    for (ptrdiff_t j = 0; j < n; j++) local_grads[j] = ys[j];
    for (ptrdiff_t j = 0; j < n; j++) local_grads[n + j] = xs[j];
}

static inline double norm_row_forward(ROWS, OUTPUT)
{
    (void)ys, (void)i, (void)parameters, (void)kept;
    double t0 = fabs(xs[0]);
    for (ptrdiff_t j = 1; j < n; j++) {
        const double x = fabs(xs[j]);
        if (x > t0 || (x != x && t0 == t0)) { t0 = x; }
    }
    const double t1 = t0 - t0 == 0.0 ? t0 : 0.0;
    const double t2 = (t1 > 0.0 ? t1 : 1.0);
    double t3 = xs[0] / t2 * (xs[0] / t2);
    for (ptrdiff_t j = 1; j < n; j++) t3 = t3 + xs[j] / t2 * (xs[j] / t2);
    double t4 = fabs(xs[0]);
    for (ptrdiff_t j = 1; j < n; j++) t4 = t4 + fabs(xs[j]);
    return (t1 > 0.0 ? sqrt(t3) * t1 : t4);
}

static inline void norm_row_local_grads(ROWS, OUTPUT, double out, double *local_grads)
{
    (void)ys, (void)i, (void)parameters, (void)kept;
    const double t0 = out == 0.0;
    for (ptrdiff_t j = 0; j < n; j++) local_grads[j] = (t0 ? 0.0 : xs[j] / out);
}

static inline double norm_row_edge(ROWS, const double *parameters)
{
    (void)ys, (void)parameters;
    double t0 = fabs(xs[0]);
    for (ptrdiff_t j = 1; j < n; j++) t0 = t0 + fabs(xs[j]);
    return t0;
}

static inline void logsumexp_keep(ROWS, const double *parameters, double *kept)
{
    (void)ys, (void)parameters;
    double *kept_0 = kept + 2;
    double t0 = xs[0];
    for (ptrdiff_t j = 1; j < n; j++) {
        const double x = xs[j];
        if (x > t0 || (x != x && t0 == t0)) { t0 = x; }
    }
    const double t1 = t0 - t0 == 0.0 ? t0 : 0.0;
    for (ptrdiff_t j = 0; j < n; j++) kept_0[j] = exp(xs[j] - t1);
    double t2 = kept_0[0];
    for (ptrdiff_t j = 1; j < n; j++) t2 = t2 + kept_0[j];
    kept[0] = t1;
    kept[1] = t2;
}

static inline double logsumexp_row_forward(ROWS, OUTPUT)
{
    (void)n, (void)xs, (void)ys, (void)i, (void)parameters;
    return log(kept[1]) + kept[0];
}

static inline void logsumexp_row_local_grads(ROWS, OUTPUT, double out, double *local_grads)
{
    (void)xs, (void)ys, (void)i, (void)parameters, (void)out;
    const double *kept_0 = kept + 2;
    for (ptrdiff_t j = 0; j < n; j++) local_grads[j] = kept_0[j] / kept[1];
}

static inline double softmax_row_forward(ROWS, OUTPUT)
{
    (void)n, (void)xs, (void)ys, (void)parameters;
    const double *kept_0 = kept + 2;
    return kept_0[i] / kept[1];
}

static inline void softmax_row_local_grads(ROWS, OUTPUT, double out, double *local_grads)
{
    (void)xs, (void)ys, (void)parameters;
    const double *kept_0 = kept + 2;
    for (ptrdiff_t j = 0; j < n; j++) local_grads[j] = out * ((j == i ? 1.0 : 0.0) - kept_0[j] / kept[1]);
}

static inline double log_softmax_row_forward(ROWS, OUTPUT)
{
    (void)n, (void)ys, (void)parameters;
    return xs[i] - kept[0] - log(kept[1]);
}

static inline void log_softmax_row_local_grads(ROWS, OUTPUT, double out, double *local_grads)
{
    (void)xs, (void)ys, (void)parameters, (void)out;
    const double *kept_0 = kept + 2;
    for (ptrdiff_t j = 0; j < n; j++) local_grads[j] = (j == i ? 1.0 : 0.0) - kept_0[j] / kept[1];
}

static inline double cross_entropy_row_forward(ROWS, OUTPUT)
{
    (void)n, (void)ys, (void)parameters;
    return log(kept[1]) - (xs[i] - kept[0]);
}

static inline void cross_entropy_row_local_grads(ROWS, OUTPUT, double out, double *local_grads)
{
    (void)xs, (void)ys, (void)parameters, (void)out;
    const double *kept_0 = kept + 2;
    for (ptrdiff_t j = 0; j < n; j++) local_grads[j] = kept_0[j] / kept[1] - (j == i ? 1.0 : 0.0);
}

static inline void rmsnorm_keep(ROWS, const double *parameters, double *kept)
{
    (void)ys;
    double t0 = xs[0] * xs[0];
    for (ptrdiff_t j = 1; j < n; j++) t0 = t0 + xs[j] * xs[j];
    kept[0] = pow(t0 / (double)n + parameters[0], -0.5);
}

static inline double rmsnorm_row_forward(ROWS, OUTPUT)
{
    (void)n, (void)ys, (void)parameters;
    return xs[i] * kept[0];
}

static inline void rmsnorm_row_local_grads(ROWS, OUTPUT, double out, double *local_grads)
{
    (void)ys, (void)parameters;
    const double t0 = out * kept[0] * kept[0] / (double)n;
    for (ptrdiff_t j = 0; j < n; j++) local_grads[j] = (j == i ? kept[0] : 0.0) - t0 * xs[j];
}

static inline void layernorm_keep(ROWS, const double *parameters, double *kept)
{
    (void)ys;
    double *kept_0 = kept + 1;
    double t0 = xs[0];
    for (ptrdiff_t j = 1; j < n; j++) t0 = t0 + xs[j];
    const double t1 = t0 / (double)n;
    for (ptrdiff_t j = 0; j < n; j++) kept_0[j] = xs[j] - t1;
    double t2 = kept_0[0] * kept_0[0];
    for (ptrdiff_t j = 1; j < n; j++) t2 = t2 + kept_0[j] * kept_0[j];
    kept[0] = pow(t2 / (double)n + parameters[0], -0.5);
}

static inline double layernorm_row_forward(ROWS, OUTPUT)
{
    (void)n, (void)xs, (void)ys, (void)parameters;
    const double *kept_0 = kept + 1;
    return kept_0[i] * kept[0];
}

static inline void layernorm_row_local_grads(ROWS, OUTPUT, double out, double *local_grads)
{
    (void)xs, (void)ys, (void)parameters;
    const double *kept_0 = kept + 1;
    const double t0 = 1.0 / (double)n;
    const double t1 = 1.0 / (double)n;
    for (ptrdiff_t j = 0; j < n; j++) local_grads[j] = kept[0] * ((j == i ? 1.0 : 0.0) - t0 - out * (kept_0[j] * kept[0]) * t1);
}

static inline void largest_keep(ROWS, const double *parameters, double *kept)
{
    (void)ys, (void)parameters;
    double t0 = xs[0];
    double t1 = 0.0;
    for (ptrdiff_t j = 1; j < n; j++) {
        const double x = xs[j];
        if (x > t0 || (x != x && t0 == t0)) { t0 = x; t1 = j; }
    }
    kept[0] = t1;
}

static inline double largest_row_forward(ROWS, OUTPUT)
{
    (void)n, (void)ys, (void)i, (void)parameters;
    return xs[(ptrdiff_t)kept[0]];
}

static inline void largest_row_local_grads(ROWS, OUTPUT, double out, double *local_grads)
{
    (void)xs, (void)ys, (void)i, (void)parameters, (void)out;
    for (ptrdiff_t j = 0; j < n; j++) local_grads[j] = (j == kept[0] ? 1.0 : 0.0);
}

static inline void smallest_keep(ROWS, const double *parameters, double *kept)
{
    (void)ys, (void)parameters;
    double t0 = xs[0];
    double t1 = 0.0;
    for (ptrdiff_t j = 1; j < n; j++) {
        const double x = xs[j];
        if (x < t0 || (x != x && t0 == t0)) { t0 = x; t1 = j; }
    }
    kept[0] = t1;
}

static inline double smallest_row_forward(ROWS, OUTPUT)
{
    (void)n, (void)ys, (void)i, (void)parameters;
    return xs[(ptrdiff_t)kept[0]];
}

static inline void smallest_row_local_grads(ROWS, OUTPUT, double out, double *local_grads)
{
    (void)xs, (void)ys, (void)i, (void)parameters, (void)out;
    for (ptrdiff_t j = 0; j < n; j++) local_grads[j] = (j == kept[0] ? 1.0 : 0.0);
}

static inline double take_row_forward(ROWS, OUTPUT)
{
    (void)n, (void)ys, (void)i, (void)parameters, (void)kept;
    return xs[0];
}

static inline void take_row_local_grads(ROWS, OUTPUT, double out, double *local_grads)
{
    (void)xs, (void)ys, (void)i, (void)parameters, (void)kept, (void)out;
    for (ptrdiff_t j = 0; j < n; j++) local_grads[j] = 1.0;
}

static const Composite composites[COMPOSITE_COUNT] = {
    {.name = "sum", .called = "sum", .arguments = {"xs"}, .inputs = 1, .per_entry = 0, .has_target = 0, .parameters = 0, .default_count = 0, .defaults = {0}, .kept_numbers = 0, .kept_rows = 0, .is_logarithm = 0, .chooses = 0, .checked = 0, .keep = NULL, .forward = sum_row_forward, .local_grads = sum_row_local_grads, .edge = NULL},
    {.name = "mean", .called = "mean", .arguments = {"xs"}, .inputs = 1, .per_entry = 0, .has_target = 0, .parameters = 0, .default_count = 0, .defaults = {0}, .kept_numbers = 0, .kept_rows = 0, .is_logarithm = 0, .chooses = 0, .checked = 0, .keep = NULL, .forward = mean_row_forward, .local_grads = mean_row_local_grads, .edge = NULL},
    {.name = "dot", .called = "dot", .arguments = {"xs", "ys"}, .inputs = 2, .per_entry = 0, .has_target = 0, .parameters = 0, .default_count = 0, .defaults = {0}, .kept_numbers = 0, .kept_rows = 0, .is_logarithm = 0, .chooses = 0, .checked = 0, .keep = NULL, .forward = dot_row_forward, .local_grads = dot_row_local_grads, .edge = NULL},
    {.name = "norm", .called = "norm", .arguments = {"xs"}, .inputs = 1, .per_entry = 0, .has_target = 0, .parameters = 0, .default_count = 0, .defaults = {0}, .kept_numbers = 0, .kept_rows = 0, .is_logarithm = 0, .chooses = 0, .checked = 0, .keep = NULL, .forward = norm_row_forward, .local_grads = norm_row_local_grads, .edge = norm_row_edge},
    {.name = "logsumexp", .called = "logsumexp", .arguments = {"xs"}, .inputs = 1, .per_entry = 0, .has_target = 0, .parameters = 0, .default_count = 0, .defaults = {0}, .kept_numbers = 2, .kept_rows = 1, .is_logarithm = 1, .chooses = 0, .checked = 0, .keep = logsumexp_keep, .forward = logsumexp_row_forward, .local_grads = logsumexp_row_local_grads, .edge = NULL},
    {.name = "softmax", .called = "softmax", .arguments = {"xs"}, .inputs = 1, .per_entry = 1, .has_target = 0, .parameters = 0, .default_count = 0, .defaults = {0}, .kept_numbers = 2, .kept_rows = 1, .is_logarithm = 0, .chooses = 0, .checked = 1, .keep = logsumexp_keep, .forward = softmax_row_forward, .local_grads = softmax_row_local_grads, .edge = NULL},
    {.name = "log_softmax", .called = "log_softmax", .arguments = {"xs"}, .inputs = 1, .per_entry = 1, .has_target = 0, .parameters = 0, .default_count = 0, .defaults = {0}, .kept_numbers = 2, .kept_rows = 1, .is_logarithm = 1, .chooses = 0, .checked = 0, .keep = logsumexp_keep, .forward = log_softmax_row_forward, .local_grads = log_softmax_row_local_grads, .edge = NULL},
    {.name = "cross_entropy", .called = "cross_entropy", .arguments = {"logits", "target"}, .inputs = 1, .per_entry = 0, .has_target = 1, .parameters = 0, .default_count = 0, .defaults = {0}, .kept_numbers = 2, .kept_rows = 1, .is_logarithm = 1, .chooses = 0, .checked = 0, .keep = logsumexp_keep, .forward = cross_entropy_row_forward, .local_grads = cross_entropy_row_local_grads, .edge = NULL},
    {.name = "rmsnorm", .called = "rmsnorm", .arguments = {"xs", "eps"}, .inputs = 1, .per_entry = 1, .has_target = 0, .parameters = 1, .default_count = 1, .defaults = {1e-05}, .kept_numbers = 1, .kept_rows = 0, .is_logarithm = 0, .chooses = 0, .checked = 0, .keep = rmsnorm_keep, .forward = rmsnorm_row_forward, .local_grads = rmsnorm_row_local_grads, .edge = NULL},
    {.name = "layernorm", .called = "layernorm", .arguments = {"xs", "eps"}, .inputs = 1, .per_entry = 1, .has_target = 0, .parameters = 1, .default_count = 1, .defaults = {1e-05}, .kept_numbers = 1, .kept_rows = 1, .is_logarithm = 0, .chooses = 0, .checked = 0, .keep = layernorm_keep, .forward = layernorm_row_forward, .local_grads = layernorm_row_local_grads, .edge = NULL},
    {.name = "largest", .called = "maximum", .arguments = {"xs"}, .inputs = 1, .per_entry = 0, .has_target = 0, .parameters = 0, .default_count = 0, .defaults = {0}, .kept_numbers = 1, .kept_rows = 0, .is_logarithm = 0, .chooses = 1, .checked = 0, .keep = largest_keep, .forward = largest_row_forward, .local_grads = largest_row_local_grads, .edge = NULL},
    {.name = "smallest", .called = "minimum", .arguments = {"xs"}, .inputs = 1, .per_entry = 0, .has_target = 0, .parameters = 0, .default_count = 0, .defaults = {0}, .kept_numbers = 1, .kept_rows = 0, .is_logarithm = 0, .chooses = 1, .checked = 0, .keep = smallest_keep, .forward = smallest_row_forward, .local_grads = smallest_row_local_grads, .edge = NULL},
    {.name = "take", .called = "take", .arguments = {"rows", "index"}, .inputs = 1, .per_entry = 0, .has_target = 1, .parameters = 0, .default_count = 0, .defaults = {0}, .kept_numbers = 0, .kept_rows = 0, .is_logarithm = 0, .chooses = 0, .checked = 0, .keep = NULL, .forward = take_row_forward, .local_grads = take_row_local_grads, .edge = NULL},
};

#undef ROWS
#undef OUTPUT
#endif
