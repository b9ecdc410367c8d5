/* All kernels for the instruction set ISA, and the table of them. Included by kernels.c once per set. */

#include "vector.h"
#include "entries.h"
#include "rows.h"
#include "batch_rows.h"
#include "product.h"
#include "pairs.h"

static const Kernels NAME(kernels) = {
    .name = QUOTED(ISA),
#define VECTOR(place, function) .forward[place] = NAME(function##_forward), .reverse[place] = NAME(function##_reverse)
    VECTOR(VECTOR_ADD, add), VECTOR(VECTOR_SUB, sub), VECTOR(VECTOR_MUL, mul), VECTOR(VECTOR_DIV, div),
    VECTOR(VECTOR_NEG, neg), VECTOR(VECTOR_RELU, relu), VECTOR(VECTOR_EXP, exp), VECTOR(VECTOR_LOG, log),
    VECTOR(VECTOR_TANH, tanh), VECTOR(VECTOR_SQRT, sqrt), VECTOR(VECTOR_SIGMOID, sigmoid),
    VECTOR(VECTOR_SIN, sin), VECTOR(VECTOR_COS, cos),
    VECTOR(VECTOR_POWERS + POWER_2, power_2), VECTOR(VECTOR_POWERS + POWER_3, power_3),
    VECTOR(VECTOR_POWERS + POWER_HALF, power_half), VECTOR(VECTOR_POWERS + POWER_3_HALVES, power_3_halves),
    VECTOR(VECTOR_POWERS + POWER_MINUS_1, power_minus_1), VECTOR(VECTOR_POWERS + POWER_MINUS_2, power_minus_2),
    VECTOR(VECTOR_POWERS + POWER_MINUS_HALF, power_minus_half),
    VECTOR(VECTOR_POWERS + POWER_MINUS_3_HALVES, power_minus_3_halves),
#undef VECTOR
#define ROWS(place, forward, reverse) \
    .row_forward[place] = NAME(forward##_row_forward), .row_reverse[place] = NAME(reverse##_row_reverse)
    ROWS(ROW_SUM, sum, sum), ROWS(ROW_MEAN, mean, mean), ROWS(ROW_NORM, norm, norm),
    ROWS(ROW_LOGSUMEXP, logsumexp, logsumexp), ROWS(ROW_LARGEST, largest, largest),
    ROWS(ROW_SMALLEST, smallest, largest), ROWS(ROW_SOFTMAX, softmax, softmax),
    ROWS(ROW_LOG_SOFTMAX, log_softmax, log_softmax), ROWS(ROW_RMSNORM, rmsnorm, rmsnorm),
    ROWS(ROW_LAYERNORM, layernorm, layernorm), ROWS(ROW_CROSS_ENTROPY, cross_entropy, cross_entropy),
#undef ROWS
#define ROWS(place, name) \
    .batch_forward[place] = NAME(name##_batch_forward), .batch_reverse[place] = NAME(name##_batch_reverse)
    ROWS(ROW_SUM, sum), ROWS(ROW_MEAN, mean), ROWS(ROW_LOGSUMEXP, logsumexp), ROWS(ROW_SOFTMAX, softmax),
    ROWS(ROW_LOG_SOFTMAX, log_softmax), ROWS(ROW_RMSNORM, rmsnorm), ROWS(ROW_LAYERNORM, layernorm),
    ROWS(ROW_CROSS_ENTROPY, cross_entropy), ROWS(ROW_LARGEST, largest), ROWS(ROW_SMALLEST, smallest),
#undef ROWS
    .sum = NAME(sum), .dot = NAME(dot), .add = NAME(add), .add_scaled = NAME(add_scaled),
    .add_product = NAME(add_product), .finite = NAME(finite), .most = NAME(most), .product = NAME(product),
    .transpose = NAME(transpose), .batch_product = NAME(batch_product), .pairs_forward = NAME(pairs_forward),
    .pairs_reverse = NAME(pairs_reverse), .batch_pairs_forward = NAME(batch_pairs_forward),
    .batch_pairs_reverse = NAME(batch_pairs_reverse), .batch_add_scaled = NAME(batch_add_scaled),
    .batch_scatter = NAME(batch_scatter), .adam = NAME(adam),
};

#undef NAME
#undef vec
#undef ivec
#undef uvec
#undef LESS
#undef EQUAL
#undef BITS
#undef FROM_BITS
#undef SPLAT
#undef LANE
#undef FMA
#undef ROOT
#undef ISA
#undef LANES
#undef G
#undef ONES
#undef ZEROS
#undef LOAD
#undef STORE
#undef SELECT
