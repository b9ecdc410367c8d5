/* Loops over the rows of the table, for operations that have no vector form. */

#ifndef GRADWALK_TABLE_H
#define GRADWALK_TABLE_H

#include "kernels.h"
#include "ops_generated.h"

extern const Forward table_forward[OP_COUNT];
extern const Reverse table_reverse[OP_COUNT];

#endif
