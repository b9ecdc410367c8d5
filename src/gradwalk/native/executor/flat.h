/* Loops over a flat graph, for compiler/loops.py. */

#ifndef GRADWALK_FLAT_H
#define GRADWALK_FLAT_H

#include "kernels/kernels.h"
#include "value/value.h"

extern PyMethodDef flat_functions[];

#endif
