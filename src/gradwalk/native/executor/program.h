/* An executor: a program's steps, and what they work in. Shared by the files program_*.c that run programs. */

#ifndef GRADWALK_PROGRAM_H
#define GRADWALK_PROGRAM_H

#include "program_steps.h"

#include <pythread.h>

typedef struct {
    int32_t left, right;
    int sign; /* Py_LT … */
    int outcome;
    int rounded; /* a side may differ in the last bits from what the eager engine compares */
} Guard;

/* The parameters of the last training step. */
typedef struct {
    PyObject *parameters, *slots_given; /* a tuple of Values; an array with the slot of each, which nobody may change */
    int32_t *slots, *stretches; /* of each, with how many of those after it its slot lies side by side */
    uint64_t clear_at; /* grad_writes when their gradients were last seen to be 0; 0: never */
} Trained;

typedef struct {
    PyObject_HEAD
    const Kernels *kernels;
    PyThread_type_lock lock;
    int exact, long_enough; /* long enough for other threads to be let in */
    int doubtful; /* a guard or a jump looks at numbers that the eager engine rounds otherwise */
    int partial; /* there are several results, of which some may have no seed, or rows that are not taken */
    int calls, undecided; /* whether it calls Python; whether the last run could not tell if the program applies */
    unsigned long inside; /* the thread that runs a Python function called from here, or 0 */
    Count size, input_count, output_count, step_count, guard_count, scratch_count, fact_count, work;
    int32_t *inputs, *stretches, *outputs; /* stretches: see stretches_of the inputs */
    double *initial;
    Step *steps;
    Guard *guards;
    Jump *jumps;
    Count jump_count;
    Count moving_from; /* the first input of a direction, as the steps are marked for; 0: they are not */
    PyObject *known_leaves; /* the last tuple that was found to be one of Values: it stays one */
    uint64_t read_at; /* data_writes when their numbers were last seen to be in their slots; 0: never */
    Trained trained;
    Memory single, batch[2]; /* for one example; for a batch, by this thread and by a second: made when first needed */
} Executor;

#endif
