/* The kernels of compiled functions, built for each instruction set that this compiler can make; the best one that
 * the machine has is chosen when the module is loaded. Other compilers and architectures build the baseline. */

#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define JOINED(name, isa) JOINED_NAMES(name, isa)
#define JOINED_NAMES(name, isa) name##_##isa
#define QUOTED(name) QUOTED_NAME(name)
#define QUOTED_NAME(name) #name

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

/* FUSED: whether a multiply-add rounds once. */
#define ISA baseline
#define FUSED 0
#if defined(__GNUC__)
#define LANES 2
#else
#define LANES 1
#endif
#if defined(BUILT_SMALL) /* hardly any x86-64 has nothing better */
#pragma GCC push_options
#pragma GCC optimize("Os")
#include "set.h"
#pragma GCC pop_options
#else
#include "set.h"
#endif

#if defined(__GNUC__) && defined(__aarch64__)
#include <arm_neon.h>
#define ISA neon
#define FUSED 1
#define LANES 2
#include "set.h"
#define SETS_OF_THIS_ARCHITECTURE &kernels_neon,

#elif defined(__GNUC__) && defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define ISA avx2
#define FUSED 1
#define LANES 4
#include "set.h"
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
#endif
#define ISA avx512
#define FUSED 1
#define LANES 8
#include "set.h"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#define SETS_OF_THIS_ARCHITECTURE &kernels_avx512, &kernels_avx2,

#else
#define SETS_OF_THIS_ARCHITECTURE
#endif

static const Kernels *const sets[] = {SETS_OF_THIS_ARCHITECTURE &kernels_baseline};

#if defined(__GNUC__) && defined(__x86_64__)
/* What the processor has, and the system keeps when it switches between threads. __builtin_cpu_supports knows every
 * processor by its name, which takes as much room as a fifth of a set of kernels. */
static int kernels_can_run(const Kernels *set)
{
    enum { VECTORS = 0x6, WIDE_VECTORS = 0xe6 };
    unsigned a, b, has, more, kept = 0, high;
    if (set == &kernels_baseline || !__get_cpuid(1, &a, &b, &has, &more) || !(has & bit_OSXSAVE) || !(has & bit_FMA)
        || !__get_cpuid_count(7, 0, &a, &more, &b, &has))
        return set == &kernels_baseline;
    __asm__("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
    unsigned wanted = bit_AVX2, to_keep = VECTORS;
    if (set == &kernels_avx512) {
        wanted |= bit_AVX512F | bit_AVX512DQ | bit_AVX512VL;
        to_keep = WIDE_VECTORS;
    }
    return (more & wanted) == wanted && (kept & to_keep) == to_keep;
}
#else
static int kernels_can_run(const Kernels *set)
{
    return set != NULL;
}
#endif

COLD INTERNAL const Kernels *kernels_next(const Kernels *set)
{
    size_t i = 0, count = sizeof sets / sizeof *sets;
    while (set != NULL && sets[i++] != set)
        continue;
    for (; i < count; i++) {
        if (kernels_can_run(sets[i]))
            return sets[i];
    }
    return NULL;
}

COLD INTERNAL const Kernels *kernels_named(const char *name)
{
    const Kernels *set = kernels_next(NULL);
    while (set != NULL && strcmp(set->name, name) != 0)
        set = kernels_next(set);
    return set;
}

/* Those of GRADWALK_KERNELS, which was checked when the module was loaded; else the best that the machine has. */
INTERNAL const Kernels *kernels_best(void)
{
    static const Kernels *best; /* whichever thread sets it sets the same */
    if (best == NULL) {
        const char *wanted = getenv("GRADWALK_KERNELS");
        best = wanted != NULL && *wanted ? kernels_named(wanted) : kernels_next(NULL);
    }
    return best;
}
