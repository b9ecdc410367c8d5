/* INTERNAL is what files of the engine share among each other. Where all of them are one translation unit (one_unit.c)
 * it is static: what is small goes inline, and what nobody calls is missed. */

#ifndef GRADWALK_INTERNAL_H
#define GRADWALK_INTERNAL_H

#if defined(GRADWALK_ONE_UNIT)
#define INTERNAL static
#else
#define INTERNAL
#endif

/* For what is written once and compiled for each purpose it is called with. */
#if defined(__GNUC__)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#if defined(__clang__)
#define NEVER_INLINE __attribute__((noinline))
#else
#define NEVER_INLINE __attribute__((noinline, noclone))
#endif
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define SOON(address) __builtin_prefetch(address)
#elif defined(_MSC_VER)
#define ALWAYS_INLINE __forceinline
#define NEVER_INLINE __declspec(noinline)
#define LIKELY(condition) (condition)
#define SOON(address) ((void)(address))
#else
#define ALWAYS_INLINE inline
#define NEVER_INLINE
#define LIKELY(condition) (condition)
#define SOON(address) ((void)(address))
#endif

/* INSIDE is documentation of what no user sees: for those who read it here, and no part of the library. */
#define INSIDE(doc) NULL

/* SHARED is a function of a header that is called, not copied to its callers. */
#if defined(__GNUC__)
#define SHARED static __attribute__((unused)) NEVER_INLINE
#else
#define SHARED static NEVER_INLINE
#endif

/* COLD is what runs once for many runs of the rest: small rather than fast. */
#if defined(__GNUC__)
#define COLD __attribute__((cold))
#else
#define COLD
#endif

#endif
