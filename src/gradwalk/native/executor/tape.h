/* Steps one after the other as a tape of records; see tape.c. */

#ifndef GRADWALK_TAPE_H
#define GRADWALK_TAPE_H

#include "step.h"

/* In place of the steps from `first` to before `end`. */
typedef struct {
    Count first, end, length;
    int32_t *records; /* owned */
} Tape;

INTERNAL Tape *tape_make_all(const Step *steps, Count count, int exact, Count *tape_count, Count *facts);
INTERNAL void tape_release_all(Tape *tapes, Count count);
INTERNAL int tape_forward(const Tape *tape, const Memory *memory);
INTERNAL void tape_reverse(const Tape *tape, const Memory *memory, int partial);

#endif
