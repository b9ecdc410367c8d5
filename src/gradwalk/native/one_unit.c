/* The whole engine as one translation unit, so that the hot paths of one file inline into the others. This is what
 * setup.py builds; each of the files compiles alone as well. */

#define GRADWALK_ONE_UNIT

/* What seldom runs is built to be small. Only on x86-64: before gcc 12, changing one option forgot others, and there no
 * forgotten option rounds differently. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__OPTIMIZE__)
#define BUILT_SMALL
#endif

#include "value/slab.c"
#include "value/errors.c"
#include "value/numbers.c"
#include "value/value.c"
#include "value/structure.c"
#include "value/construct.c"
#include "value/record.c"
#include "value/order.c"
#include "value/backward.c"
#include "value/composites.c"
#include "value/optim.c"
#include "kernels/kernels.c"
#include "executor/rows.c"
#include "executor/step.c"
#include "executor/tape.c"
#include "executor/guards.c"
#include "executor/program.c"
#include "executor/single.c"
#include "executor/batch.c"
#include "executor/train.c"
#include "executor/models.c"

#include "executor/views.c"
#include "executor/entries.c"
#include "executor/products.c"
#include "executor/flat.c"
#include "value/flatten.c"

#if defined(BUILT_SMALL)
#pragma GCC optimize("Os")
#endif

#include "kernels/table.c"
#include "value/modes.c"
#include "value/attributes.c"
#include "value/cycles.c"
#include "value/cut.c"
#include "value/formula.c"
#include "value/stand_in.c"
#include "executor/take.c"
#include "executor/call.c"
#include "executor/read.c"
#include "executor/directions.c"
#include "executor/type.c"
#include "value/type.c"
#include "module.c"
