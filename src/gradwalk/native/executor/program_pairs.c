/* A dot over short gathered rows as a list of pairs of slots; the kernels of kernels_pairs.h go through it. */

#include "program_steps.h"

#define SHORT_ROW 24 /* up to here, packing gathered rows costs more than it saves */

static int pairs_are_along(const Pairs *pairs, Count r)
{
    const int32_t *slots = pairs->slots;
    for (Count row = r; row < r + 4; row++) {
        if ((pairs->starts[row + 1] - pairs->starts[row]) % 4 != 0)
            return 0;
        for (Count i = pairs->starts[row]; i < pairs->starts[row + 1]; i++) {
            Count first = i - (i - pairs->starts[row]) % 4, step = i - first;
            if (slots[2 * i] != slots[2 * first] + step || slots[2 * i + 1] != slots[2 * first + 1] + step)
                return 0;
        }
    }
    return 1;
}

/* Whether they are, with `left` the side that is to be the same: 0 or 1. */
static int pairs_are_across(const Pairs *pairs, Count r, int left)
{
    const int32_t *slots = pairs->slots, *starts = pairs->starts;
    Count count = starts[r + 1] - starts[r];
    for (Count row = r + 1; row < r + 4; row++) {
        if (starts[row + 1] - starts[row] != count)
            return 0;
        for (Count i = 0; i < count; i++) {
            const int32_t *pair = slots + 2 * (starts[row] + i), *first = slots + 2 * (starts[r] + i);
            if (pair[left] != first[left] || pair[1 - left] != first[1 - left] + (row - r))
                return 0;
        }
    }
    return 1;
}

/* What the kernels ask of every four rows; sides are exchanged where that makes a difference to nobody else. */
static int pairs_sort(Pairs *pairs)
{
    if ((pairs->kinds = PyMem_Calloc((size_t)(pairs->rows / 4 + 1), 1)) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Count r = 0; r + 4 <= pairs->rows; r += 4) {
        int left = pairs->left_needed == pairs->right_needed && pairs_are_across(pairs, r, 1);
        for (Count i = pairs->starts[r]; left && i < pairs->starts[r + 4]; i++) {
            int32_t other = pairs->slots[2 * i];
            pairs->slots[2 * i] = pairs->slots[2 * i + 1];
            pairs->slots[2 * i + 1] = other;
        }
        pairs->kinds[r / 4] = pairs_are_across(pairs, r, 0) ? PAIRS_ACROSS
                            : pairs_are_along(pairs, r) ? PAIRS_ALONG : PAIRS_ANY;
    }
    return 0;
}

/* Lists the pairs of a dot over short gathered rows, without those that pad a row: 0 · 0. */
static int pairs_of(Step *step, const unsigned char *written, const double *initial)
{
    const Operand *a = &step->operands[0], *b = &step->operands[1];
    Count n = a->columns, count = 0;
    if (n >= SHORT_ROW || (a->index == NULL && b->index == NULL) || step->rows * n > INT32_MAX / 2)
        return 0;
    int32_t *starts = step->pairs.starts = PyMem_Malloc((size_t)(step->rows + 1) * sizeof *starts);
    int32_t *slots = step->pairs.slots = PyMem_Malloc((size_t)(2 * step->rows * n) * sizeof *slots);
    if (starts == NULL || slots == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    step->pairs.rows = step->rows;
    for (Count r = 0; r < step->rows; r++) {
        starts[r] = (int32_t)count;
        for (Count k = 0; k < n; k++) {
            Count left = slot_of(a, r, k), right = slot_of(b, r, k);
            if (written[left] || written[right] || initial[left] != 0.0 || initial[right] != 0.0) {
                slots[2 * count] = (int32_t)left;
                slots[2 * count++ + 1] = (int32_t)right;
            }
        }
    }
    starts[step->rows] = (int32_t)count;
    return 0;
}
