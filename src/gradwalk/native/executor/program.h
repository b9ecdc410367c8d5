/* An executor: a program's steps, and what they work in. */

#ifndef GRADWALK_PROGRAM_H
#define GRADWALK_PROGRAM_H

#include "read.h"
#include "step.h"
#include "tape.h"

#include <pythread.h>

typedef struct {
    int32_t left, right;
    int sign; /* Py_LT … */
    int outcome;
    int rounded; /* a side may differ in the last bits from what the eager engine compares */
} Guard;

/* Slots from the first to before the last. */
typedef struct {
    int32_t from, to;
} Range;

/* The parameters of the last training step. */
typedef struct {
    PyObject *parameters; /* a tuple of Values, or NULL where they are rows of weights */
    PyObject *slots_given; /* an array with the slot of each, which nobody may change */
    Count count;
    int32_t *slots, *stretches; /* of each, with how many of those after it its slot lies side by side */
    uint64_t clear_at; /* grad_writes when their gradients were last seen to be 0; 0: never */
} Trained;

typedef struct {
    PyObject_HEAD
    const Kernels *kernels;
    PyThread_type_lock lock;
    unsigned forks; /* of the process, when the lock was made */
    int exact, long_enough; /* long enough for other threads to be let in */
    int doubtful; /* a guard or an edge looks at numbers that the eager engine rounds otherwise */
    int partial; /* there are several results, of which some may have no seed, or rows that are not taken */
    int calls, undecided; /* whether it calls Python; whether the last run could not tell if the program applies */
    unsigned long inside; /* the thread that runs Python code called from here, or 0 */
    Count size, input_count, output_count, step_count, guard_count, scratch_count, fact_count, work;
    int32_t *inputs, *stretches, *outputs; /* stretches: see program_stretches of the inputs */
    Count inputs_from, inputs_to; /* the slots that all inputs are among */
    double *initial;
    Step *steps;
    Range *cleared; /* of one example, the gradients that begin with 0: all but fresh ones */
    Count cleared_count;
    Tape *tapes; /* in place of steps, where one example is run; the last begins where the steps end */
    Count tape_count;
    Guard *guards;
    int32_t *edges; /* steps that are near an edge, maybe on the other side than in the eager engine */
    Range *sizes;   /* the slots whose largest number says what is near */
    Count edge_count, size_count;
    int32_t *steep; /* steps that take what guards and edges look at by factors to look at in every run */
    Count steep_count;
    double steepest; /* the largest factor of divisions by constants */
    Count moving_from, moving_to; /* the inputs of a direction, as the steps are marked for; from 0: they are not */
    PyObject *gradients_again; /* what knows that 0 times infinity hands on nothing, or NULL */
    PyObject *known_leaves; /* the last tuple that was found to be one of Values: it stays one */
    PyObject *let_go; /* what was in the place of another until this call, or NULL: see program_unlock */
    uint64_t read_at; /* data_writes when their numbers were last seen to be in their slots; 0: never */
    Count leaves_from, leaves_to; /* their slots, where they lie side by side, in whatever order; else none */
    Range added; /* among them, those to which gradients come otherwise than by totals: see Memory's shared_grads */
    double most_of_leaves; /* for guards.c: the largest of their sizes; read_at when it was looked for: */
    uint64_t measured_at;
    Trained trained;
    Memory single, *batch; /* for one example; for a batch, one for each thread: made when first needed */
    int batch_count;
} Executor;

/* A bit per example of the memory: the program does not apply to it. BATCH bits higher, that this is only because two
 * numbers are so close that the plain function, which rounds otherwise, may find them in another order. */
#define FAILED(lane) (1u << (lane))
#define UNDECIDED(lane) (FAILED(lane) | FAILED(lane) << BATCH)

#define LEAF_AT(leaves, i) ((Value *)PyTuple_GET_ITEM(leaves, i))

/* ---- guards.c ---- */

INTERNAL int guards_read(Executor *self, PyObject *given);
INTERNAL void guards_measure_leaves(Executor *self);
INTERNAL unsigned guards_failed(const Executor *self, const Memory *memory, Count count, Count end);

/* ---- program.c: running, and what all ways to run share ---- */

INTERNAL int program_read(Executor *self, PyObject *instructions, PyObject *functions);
INTERNAL int program_memory_make(Executor *self, Memory *memory, Count width);
INTERNAL int program_batch_make(Executor *self, int count);
INTERNAL void program_memory_release(Memory *memory);
INTERNAL unsigned program_forward(const Executor *self, const Memory *memory);
INTERNAL void program_clear_grads(const Memory *memory, Count first, Count end);
INTERNAL void program_reverse(const Executor *self, const Memory *memory, const double *seeds, Count first, Count end);
INTERNAL unsigned program_run_forward(Executor *self, const Memory *memory);
INTERNAL int program_is_to_reverse_again(const Executor *self);
INTERNAL int program_reverse_again(Executor *self, const double *seeds);
INTERNAL int program_run_reverse(Executor *self, const double *seeds);
INTERNAL int program_make_lock(Executor *self);
INTERNAL void program_lock(Executor *self);
int program_watch_forks(void); /* true if it cannot */
INTERNAL int program_begin(Executor *self);
INTERNAL void program_unlock(Executor *self);
INTERNAL void program_let_go(Executor *self, PyObject *object);
INTERNAL int program_hold_gradients(PyObject *leaves, PyObject **held);
INTERNAL int32_t *program_stretches(const int32_t *slots, Count count, Count size);
INTERNAL void program_write_inputs(const Executor *self, double *to, Count first, Count end, const double *from);
INTERNAL void program_fill_leaves(Executor *self, Count first, PyObject *leaves);
INTERNAL void program_fill_numbers(Executor *self, Count first, const double *numbers);
INTERNAL int program_check_leaves(const Executor *self, PyObject *leaves, Count arguments);
INTERNAL int program_check_values(const Executor *self, PyObject *values, Count expected);
INTERNAL int program_expect(const char *name, Py_ssize_t count, Py_ssize_t expected);
INTERNAL int program_expect_one(const Executor *self); /* result */

/* ---- the methods of the type Executor: single.c, batch.c, directions.c, train.c, models.c ---- */

INTERNAL PyObject *executor_run(Executor *self, PyObject *given);                                             /* new */
INTERNAL PyObject *executor_run_values(Executor *self, PyObject *const *args, Py_ssize_t count);              /* new */
INTERNAL PyObject *executor_outputs(Executor *self, PyObject *into);                                          /* None */
INTERNAL PyObject *executor_gradients(Executor *self, PyObject *const *args, Py_ssize_t count);               /* None */
INTERNAL PyObject *executor_value(Executor *self, PyObject *const *args, Py_ssize_t count);                   /* new */
INTERNAL PyObject *executor_backward(Executor *self, PyObject *const *args, Py_ssize_t count);                /* new */
INTERNAL PyObject *executor_value_and_gradients(Executor *self, PyObject *const *args, Py_ssize_t count);     /* new */
INTERNAL PyObject *executor_leaf_numbers(Executor *self, PyObject *leaves);                                   /* new */
INTERNAL PyObject *executor_add_gradients(Executor *self, PyObject *const *args, Py_ssize_t count);           /* None */
INTERNAL PyObject *executor_node(Executor *self, PyObject *const *args, Py_ssize_t count);                    /* new */
INTERNAL PyObject *executor_run_batch(Executor *self, PyObject *args, PyObject *keywords);                    /* new */
INTERNAL PyObject *executor_run_directions(Executor *self, PyObject *const *args, Py_ssize_t count);          /* new */
INTERNAL PyObject *executor_train(Executor *self, PyObject *args);                                            /* None */
INTERNAL PyObject *executor_step_models(Executor *self, PyObject *args);                                      /* new */
INTERNAL void train_release(Trained *trained);
INTERNAL int train_take(Executor *self, PyObject *parameters, PyObject *slots_given);
INTERNAL Count batch_piece(const Executor *self);
INTERNAL PyObject *batch_marked(const unsigned char *marked, Count count); /* new */

/* ---- type.c ---- */

INTERNAL int executor_ready(PyObject *module);

#endif
