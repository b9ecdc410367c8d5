/* All kernels for the instruction set ISA, and the table of them. Included by kernels.c once per set. */

#include "vector.h"
#include "entries.h"
#if LANES == 8 /* some would be no faster than half as wide */
#define FOUR_WIDE(name) name##_avx2
#else
#include "edges.h"
#define FOUR_WIDE(name) NAME(name)
#endif
#include "rows.h"
#include "batch_rows.h"
#include "product.h"
#include "pairs.h"

static const Kernels NAME(kernels) = {
    .name = QUOTED(ISA),
#define ENTRY(op) .near[OP_##op] = FOUR_WIDE(op##_near),
    FOR_EACH_EDGE(ENTRY)
#undef ENTRY
#define ENTRY(name) {NAME(name##_forward), NAME(name##_reverse)}
#define ENTRIES(name, unused) [OP_##name] = ENTRY(name),
    .entries = {FOR_EACH_VECTOR_OP(ENTRIES, 0)},
    .powers = {[POWER_2] = ENTRY(power_2), [POWER_3] = ENTRY(power_3), [POWER_HALF] = ENTRY(sqrt),
               [POWER_3_HALVES] = ENTRY(power_3_halves), [POWER_MINUS_1] = ENTRY(power_minus_1),
               [POWER_MINUS_2] = ENTRY(power_minus_2), [POWER_MINUS_HALF] = ENTRY(power_minus_half),
               [POWER_MINUS_3_HALVES] = ENTRY(power_minus_3_halves)},
#undef ENTRIES
#undef ENTRY
#define ROW(name, exact) \
    [COMPOSITE_##name - OP_COUNT] = {NAME(name##_row_forward), NAME(name##_row_reverse), NAME(name##_batch_forward), \
                                     NAME(name##_batch_reverse), exact}
    .rows = {ROW(sum, 2), ROW(mean, 2), ROW(logsumexp, 0), ROW(softmax, 0), ROW(log_softmax, 0), ROW(rmsnorm, 0),
             ROW(layernorm, 0), ROW(cross_entropy, 0), ROW(largest, PTRDIFF_MAX), ROW(smallest, PTRDIFF_MAX),
             [COMPOSITE_norm - OP_COUNT] = {NAME(norm_row_forward), NAME(norm_row_reverse), NULL, NULL, 0}},
#undef ROW
    .sum = NAME(sum), .dot = NAME(dot), .add = NAME(add), .add_scaled = NAME(add_scaled),
    .add_product = NAME(add_product), .finite = NAME(finite), .most = NAME(most), .product = NAME(product),
    .dots = NAME(dots), .transpose = FOUR_WIDE(transpose), .batch_product = NAME(batch_product), .pairs_forward = FOUR_WIDE(pairs_forward),
    .pairs_reverse = FOUR_WIDE(pairs_reverse), .batch_pairs_forward = NAME(batch_pairs_forward),
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
#undef LARGER
#undef ROOT
#undef FOUR_WIDE
#undef FITS
#undef ISA
#undef LANES
#undef FUSED
#undef G
#undef ONES
#undef ZEROS
#undef LOAD
#undef STORE
#undef SELECT
