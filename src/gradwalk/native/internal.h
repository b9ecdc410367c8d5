/* INTERNAL is what files of the engine share among each other. Where all of them are one translation unit (one_unit.c)
 * it is static: what is small goes inline, and what nobody calls is missed. */

#ifndef GRADWALK_INTERNAL_H
#define GRADWALK_INTERNAL_H

#if defined(GRADWALK_ONE_UNIT)
#define INTERNAL static
#else
#define INTERNAL
#endif

#endif
