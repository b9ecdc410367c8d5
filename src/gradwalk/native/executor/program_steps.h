/* A program as the executor runs it: instructions translated once into steps. Shared by program.c and the files that
 * carry steps out. */

#ifndef GRADWALK_STEPS_H
#define GRADWALK_STEPS_H

#include "kernels/kernels.h"
#include "value/value.h"

enum step_kind { STEP_ENTRIES, STEP_ROWS, STEP_DOT, STEP_MATMUL, STEP_TAKE, STEP_CALL };

/* A View: strided (index is NULL) or gathered. */
typedef struct {
    Count rows, columns, start, row_stride, column_stride;
    int32_t *index;    /* owned */
    double *constants; /* owned: the entries, where they never change; else NULL */
    int32_t *scatter;  /* owned: entry and slot of each that has a gradient, where not all have; else NULL */
    Count scatter_count;
    int direct;        /* the entries lie one after the other from `start` on */
    int needed;        /* somebody asks for the gradient of an entry */
} Operand;

typedef struct {
    enum step_kind kind;
    unsigned op; /* of the table, or a composite */
    Count out, rows, columns, facts; /* facts: where they begin in the memory's */
    int operand_count;
    int checked; /* an out that is not finite is for the plain function to judge */
    int needed;  /* a gradient flows through */
    int steep;   /* a local gradient may be infinite where the output is not */
    int moves;   /* depends on the direction, where one is among the arguments */
    int entry; /* of an exact program, which entry of its row a softmax or norm is; else -1: all of them */
    int knows; /* of an exact program: an earlier step has left the facts of this row */
    int rounds; /* in another order, or otherwise than the eager engine */
    Count guards; /* of a call: how many of the first guards come before it */
    PyObject *function; /* of a call: owned */
    Pairs pairs; /* of a dot over short gathered rows */
    int32_t *tape; /* owned: of the first of several short steps, what all of them do; see program_tape.c */
    Count tape_length, joined, joined_before; /* how many steps: says the first of them, and says the last */
    unsigned reads; /* a bit per operand that the reverse of entries looks at */
    Operand operands[MOST_INPUTS];
    double parameters[2];
    Forward forward;
    Reverse reverse;
    RowForward row_forward;
    RowReverse row_reverse;
    BatchForward batch_forward;
    BatchReverse batch_reverse;
} Step;

/* What one run works in. Slot s is the `width` doubles from s * width on: one example each. Of some slots, the leaves',
 * all examples of a batch have the same number: these are at shared[slot], too, and may be read there. Matrix products
 * then leave the totals of their gradients in shared_grads, if it is there. */
typedef struct {
    Count width;
    double *values, *grads, *scratch, *facts;
    Count shared_from, shared_to;
    const double *shared;
    double *shared_grads;
} Memory;

#define CHUNK 512 /* doubles of an operand that are packed at a time: they stay in the first-level cache */

#endif
