/* A program as the executor runs it: instructions translated once into steps, each of a kind. Everything that a kind
 * does is in its file (entries.c, rows.c, products.c, take.c, call.c), and here behind one table. */

#ifndef GRADWALK_STEP_H
#define GRADWALK_STEP_H

#include "views.h"

typedef struct Step Step;

enum { PACKED_GATHERED = 1, PACKED_DIRECT = 2 };

typedef struct {
    int differentiable; /* how many operands have a gradient, at most; 0: all */
    int packed;         /* which operands are packed where they never change */
    int takes_lengths;  /* its rows may have different lengths */
    int writes_first;   /* its reverse may be the first to write a gradient, over whatever is there */
    /* these return -1 with an exception set, and are NULL where there is nothing to do: kernels, and what is only of
     * that kind; before what depends on what is known; after; release */
    int (*choose)(Step *step, const Kernels *kernels, Count parameters, PyObject *functions);
    int (*begin)(Step *step, const unsigned char *written, const double *initial, int exact);
    int (*end)(Step *step);
    void (*release)(Step *step);
    int (*fits)(const Step *step);    /* whether the operands have the shapes that Instruction's documentation says */
    int (*rounds)(const Step *step);  /* whether it may round otherwise than the eager engine; NULL: it does not */
    Count (*scratch)(const Step *step); /* doubles that it works in, for one example; NULL: none of its own */
    Count (*facts)(const Step *step); /* doubles that it keeps from forward to reverse, for one example; NULL: none */
    void (*forward)(const Kernels *kernels, const Step *step, const Memory *memory);
    void (*reverse)(const Kernels *kernels, const Step *step, const Memory *memory);
    int (*depends)(const Step *step, Count row, Count column, const unsigned char *marked); /* of an output, on slots */
    /* for guards.c: the doubt about every output, one example wide; and, of a kind that has edges, the examples in which
     * an output is as close to one as `margin`, or, with the doubt about its inputs, closer than that can tell */
    void (*doubt)(const Step *step, const Memory *memory, double *doubt);
    int (*has_edges)(const Step *step, const unsigned char *marked); /* that marked slots decide; NULL: any */
    unsigned (*near)(const Step *step, const Memory *memory, double margin);
    int (*is_doubtful)(const Step *step, const Memory *memory, const double *doubt);
} Kind;

enum step_kind { KIND_ENTRIES, KIND_ROWS, KIND_DOT, KIND_MATMUL, KIND_TAKE, KIND_CALL, KIND_COUNT };
extern const Kind *const KINDS[KIND_COUNT];
extern const Kind entries_kind, rows_kind, dot_kind, matmul_kind, take_kind, call_kind;

struct Step {
    enum step_kind kind;
    unsigned op; /* of the table, or a composite */
    Count out, rows, columns, facts; /* facts: where they begin in the memory's */
    int operand_count;
    int checked; /* an out that is not finite is for the plain function to judge */
    int needed;  /* a gradient flows through */
    int moves;   /* depends on the direction, where one is among the arguments */
    int rounds;  /* in another order, or otherwise than the eager engine */
    Operand *operands; /* owned */
    int32_t *lengths; /* owned: how many entries of each row of the first operand count; NULL: all of them */
    double parameters[2];
    union { /* what only one kind has */
        struct {
            Forward forward;
            Reverse reverse;
            Near near;
            unsigned reads; /* a bit per operand that the reverse looks at */
            int steep;      /* a local gradient may be infinite where the output is not */
        } entries;
        struct {
            RowKernel kernel;
            Count entry; /* of an exact program: which output of its row it is; -1: it is all of them */
        } over_rows;
        Pairs *pairs; /* of a dot over short gathered rows: owned; or NULL */
        struct {
            PyObject *function; /* owned */
            Count guards;       /* how many of the first guards come before it */
        } call;
    };
};

#define CHUNK 512 /* doubles of an operand that are packed at a time: they stay in the first-level cache */
#define UNIT 0x1p-53 /* what rounding moves a number by, relative to it */
#define SAFETY 4.0 /* times the doubt: closer to each other, nobody can tell which of two numbers is larger */

/* A whole number from 0 to count - 1, whatever is there: guards judge it after the pass. */
static inline Count step_whole(double given, Count count)
{
    return given >= 0.0 ? given < (double)count ? (Count)given : count - 1 : 0;
}

/* Whether a gradient has come to one of these outputs. From an output without a seed, or a row that was not taken, 0
 * times an infinite local gradient must not go on. */
static inline int step_is_reached(const double *grads, Count count)
{
    int reached = 0;
    Count i = 0;
    for (; i + 8 <= count && !reached; i += 8) { /* mostly the first ones say so; where none does, vectors go through */
        for (int k = 0; k < 8; k++)
            reached |= grads[i + k] != 0.0;
    }
    for (; i < count && !reached; i++)
        reached = grads[i] != 0.0;
    return reached;
}

/* ---- step.c ---- */

INTERNAL int step_read(PyObject *instruction, Count size, const Kernels *kernels, int exact, PyObject *functions,
                       Step *step);
INTERNAL int step_follow(Step *step, unsigned char *depends, unsigned char *written, const double *initial,
                         int exact);
INTERNAL void step_follow_back(Step *step, unsigned char *reaches, int exact);
INTERNAL void step_release(Step *step);
INTERNAL double step_carried_doubt(const Operand *operand, Count row, Count count, const double *local_grads,
                                   const double *doubt);

/* ---- rows.c, call.c ---- */

INTERNAL double rows_steepest(const Step *step, const Memory *memory, Count rows);
INTERNAL int call_python(const Step *step, const Memory *memory);

#endif
