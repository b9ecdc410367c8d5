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

#if defined(__GNUC__) && defined(__x86_64__)
#define HAS_SETS_TO_CHOOSE_FROM 1
#include <immintrin.h>
#endif

#define ISA baseline
#if defined(__GNUC__)
#define LANES 2
#else
#define LANES 1
#endif
#include "set.h"

#if defined(HAS_SETS_TO_CHOOSE_FROM)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define ISA avx2
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
#define LANES 8
#include "set.h"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif

INTERNAL const Kernels *kernels_named(const char *name)
{
    if (strcmp(name, "baseline") == 0)
        return &kernels_baseline;
#if defined(HAS_SETS_TO_CHOOSE_FROM)
    __builtin_cpu_init();
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (strcmp(name, "avx2") == 0 && avx2)
        return &kernels_avx2;
    if (strcmp(name, "avx512") == 0 && avx2 && __builtin_cpu_supports("avx512f")
        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return &kernels_avx512;
#endif
    return NULL;
}

/* Those of GRADWALK_KERNELS, which was checked when the module was loaded; else the best that the machine has. */
INTERNAL const Kernels *kernels_best(void)
{
    static const Kernels *best; /* whichever thread sets it sets the same */
    if (best == NULL) {
        static const char *const names[] = {"avx512", "avx2", "baseline"};
        const char *wanted = getenv("GRADWALK_KERNELS");
        const Kernels *found = wanted != NULL && *wanted ? kernels_named(wanted) : NULL;
        for (int i = 0; found == NULL; i++)
            found = kernels_named(names[i]);
        best = found;
    }
    return best;
}
