/* The native engine's Value: one cache line a node. Shared by all files of this folder.
 *
 * Up to two children live in the node itself, and a plain number beside a child is kept as a number until somebody
 * asks to see it as a node. Everything rarer (a label, three children or more, a hand-written _backward) lives in a
 * Details block that such a node points to. All of it relies on the GIL. */

#ifndef GRADWALK_VALUE_H
#define GRADWALK_VALUE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <structmember.h>

#include "internal.h"
#include "ops_generated.h"
#include "value/composites.h"

_Static_assert(NO_OP < 256, "an op fits one byte");

enum kind {
    LEAF,
    ONE,            /* one child */
    ONE_NUMBER,     /* one child and the parameter in `number` */
    TWO,            /* two children */
    CHILD_CONSTANT, /* a child, then a plain number */
    CONSTANT_CHILD, /* a plain number, then a child */
    MANY,           /* a Details block */
};

typedef struct Value Value;

struct Value {
    PyObject_HEAD
    union {
        double data;
        Value *next; /* in the list of dying nodes, when nobody will read data again */
    };
    double grad;
    uint64_t link; /* 48 bits: first child or Details, 16-aligned; above and below them: op (8), kind (3), flags */
    union {
        Value *second;
        double number;
    };
    double local_grads[2];
};

/* Nodes lie one after the other, and `link` uses the lowest four bits of their addresses. */
_Static_assert(sizeof(Value) % 16 == 0, "no native engine for 32-bit systems: a node has 56 bytes there, not 64");

typedef struct {
    PyObject *label;        /* str, or NULL for "" */
    PyObject *op;           /* str given by the user, or NULL: the op's own symbol */
    PyObject *hand_written; /* the assigned _backward, or NULL */
    PyObject *formula;      /* that made it, if its local gradient is to follow numbers that change; else NULL */
    PyObject *attributes;   /* a dict of what was hung on the node, or NULL */
    PyObject *grad_value;   /* the gradient as a Value (create_graph), or NULL; both are set by cycles.c only */
    Py_ssize_t watched;     /* one more than its place in the list of nodes that may be part of a ring; 0: not listed */
    double parameters[2];
    unsigned scope; /* of a node that is not in a slab */
    Py_ssize_t cursor; /* next child to visit while an order is being made */
    Py_ssize_t local_count; /* == count, or 0 for a node made by hand without local gradients */
    Py_ssize_t count;
    Value **children;
    PyObject *together; /* the tuple whose entries the children are, and which holds them; NULL: the node holds each */
    double *local_grads;
} Details;

#define POINTER_MASK ((UINT64_C(1) << 48) - 16)
#define OP_SHIFT 48
#define KIND_SHIFT 56
#define MARKED (UINT64_C(1) << 59)    /* reached by the order being made */
#define COLLECTED (UINT64_C(1) << 60) /* allocated with a collector header, not in a slab */
#define CONSTANT (UINT64_C(1) << 61)  /* a plain number that was asked to show itself as a node */
#define PUSHED (UINT64_C(1) << 62)    /* handed its gradient on in the last pass it was part of */
#define CHILDLESS (UINT64_C(1) << 63) /* a leaf with Details, which need not be asked: most have a label only */
/* Only in types that stand in for a script's class: what is to be shown as an int. */
#define DATA_INT UINT64_C(1)
#define GRAD_INT UINT64_C(2)
#define NUMBER_INT UINT64_C(4) /* the plain number beside a child */
#define SHOWN_AS_INT (DATA_INT | GRAD_INT | NUMBER_INT)
/* What stays when a node's children move from the node to Details, or a number becomes a child. */
#define LASTING (COLLECTED | CONSTANT | MARKED | PUSHED | SHOWN_AS_INT)

static inline enum kind kind_of(const Value *v) { return (enum kind)((v->link >> KIND_SHIFT) & 7); }
static inline unsigned op_of(const Value *v) { return (unsigned)((v->link >> OP_SHIFT) & 255); }
static inline Value *first_of(const Value *v) { return (Value *)(uintptr_t)(v->link & POINTER_MASK); }
static inline Details *details_of(const Value *v) { return (Details *)(uintptr_t)(v->link & POINTER_MASK); }

static inline uint64_t make_link(const void *pointer, unsigned op, enum kind kind)
{
    return (uint64_t)(uintptr_t)pointer | (uint64_t)op << OP_SHIFT | (uint64_t)kind << KIND_SHIFT;
}

static inline int is_leaf(const Value *v)
{
    enum kind kind = kind_of(v);
    return kind == LEAF || (kind == MANY && (v->link & CHILDLESS || details_of(v)->count == 0));
}

/* What a child gets from a node of that op: the product. But 0 · inf is 0 here: what has no part in the result gets
 * nothing; and what was not chosen, whatever comes. */
INTERNAL double value_contribution_of_nan(unsigned op, double local_grad, double grad);
static inline double contribution(unsigned op, double local_grad, double grad)
{
    double product = local_grad * grad;
    return LIKELY(product == product) ? product : value_contribution_of_nan(op, local_grad, grad);
}

/* ---- slab.c: memory for nodes ---- */

extern int scopes_in_use;
INTERNAL Value *slab_take(void); /* uninitialised memory, or NULL with MemoryError set */
INTERNAL void slab_give(Value *node);
INTERNAL void slab_tag(Value *node);       /* it belongs to the current scope */
INTERNAL unsigned slab_scope(Value *node); /* the number of the scope the node was made in */

/* ---- value.c: a node's life ---- */

extern PyTypeObject *value_type;
extern PyObject value_header;    /* what a fresh node's PyObject header holds */
extern Py_ssize_t careful_nodes; /* live nodes with a hand-written _backward or a Value as gradient */

/* A gradient as a number: that of the Value it may be, whose data may have changed since. */
static inline double gradient_of(const Value *v)
{
    int is_value = careful_nodes != 0 && kind_of(v) == MANY && details_of(v)->grad_value != NULL;
    return is_value ? ((Value *)details_of(v)->grad_value)->data : v->grad;
}

/* How often nodes that were there before got other data, and gradients that may not be 0: whoever has looked at some
 * need not look again while the count is the same. Never 0. */
extern uint64_t data_writes, grad_writes;

/* In a walk over leaves, mostly made one after the other: they are fetched while the ones before are worked on. */
static inline void leaves_to_come(const Value *leaf) { SOON(leaf + 12); }

static inline int is_value(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    /* numbers are asked often, and walking their ancestors takes longer than the arithmetic */
    return LIKELY(type == value_type)
        || (type != &PyFloat_Type && type != &PyLong_Type && PyType_IsSubtype(type, value_type));
}

void value_dealloc(PyObject *self);
void value_forked(void); /* in the child */

/* Value, or a type that stands in for it: one whose nodes operations make. No subclass written in Python is. */
static inline int is_node_type(PyTypeObject *type) { return type->tp_dealloc == value_dealloc; }

Value *value_leaf(double data);                                /* new */
Value *value_constant(double data);                            /* new: a plain number as a child */
Value *value_many(unsigned op, double data, Py_ssize_t count); /* new; the caller fills the children */
Value *value_over(PyObject *children); /* new: a node over a tuple of Values; the caller fills the rest */
int value_show_constant(Value *v);                             /* turns a number kept beside a child into a child */
Py_ssize_t value_child_count(const Value *v);
Value *value_child(const Value *v, Py_ssize_t i, double *local_grad); /* borrowed; constants were shown before */

Details *value_details(Value *v); /* moves the node to kind MANY if it is not */
Details *details_new(Py_ssize_t count);
void details_attach(Value *v, Details *details, unsigned op);
void details_release(Details *details); /* of a node that has others by now, or none */
void value_forget_history(Value *v);    /* a leaf from now on, with the same number */

int value_is_gc(PyObject *self);
int value_traverse(PyObject *self, visitproc visit, void *arg);
int value_clear(PyObject *self);

static inline Value *value_blank(void)
{
    Value *v = slab_take();
    if (v == NULL)
        return NULL;
    v->ob_base = value_header;
    v->grad = 0.0;
    return v;
}

/* ---- stand_in.c: types that stand in for a script's own class ---- */

void stand_in_join(Value *out, Value *child);                 /* gives a new node the type of what it was made of */
void stand_in_infer(Value *out, int operands_are_ints);       /* whether an operation's result is shown as an int */
void stand_in_note_number(Value *out, PyObject *number);      /* the same, for a plain number beside a child */
uint64_t stand_in_fresh(PyTypeObject *type, PyObject *data);  /* the flags of a new node; data may be NULL */
void stand_in_show_constant(Value *v, Value *constant, int right); /* a number beside a child has become a node */
int stand_in_is(PyTypeObject *type);                           /* one of these types, or a subclass of one */
int stand_in_push_by_method(Value *node);                      /* for a node made by hand; -1: an exception is set */
void stand_in_seed(Value *root);                              /* sets the gradient that a pass starts from */
void stand_in_read_late(Value *node);                         /* its local gradients, by the numbers of now */
void stand_in_push_ints(Value *node);                         /* which gradients are ints after a push */
PyObject *stand_in_new(PyObject *module, PyObject *args);     /* new: the type */
PyObject *stand_in_set_ways(PyObject *module, PyObject *args); /* None */
PyObject *stand_in_nodes(PyObject *module, PyObject *unused);  /* new: how many they made */

/* ---- formula.c: a script's own operations, in C ---- */

PyObject *formula_method(PyObject *module, PyObject *formula); /* new: the method of a stand-in */
void formula_read_late(Value *node);                           /* stand_in_read_late, for a node that a formula made */

/* ---- cycles.c ---- */

extern Py_ssize_t collected_nodes; /* live nodes that the interpreter's collector sees */

int cycles_set_grad_value(Value *v, PyObject *value);      /* NULL: none any more; that cannot fail */
int cycles_set_hand_written(Value *v, PyObject *function); /* the same */
int cycles_watch(Value *v); /* the node's details are about to hold something that may lead back to the node */
int cycles_about_to_hold(Value *v, PyObject *given); /* the same, if this is what may lead back: no plain string does */
int cycles_may_lead_back(const Details *details);
void cycles_unwatch(Details *details);
int cycles_ready(void); /* before the first node that the collector sees */

/* ---- construct.c ---- */

PyObject *value_new(PyTypeObject *type, PyObject *args, PyObject *kwargs); /* new */
int value_init(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *value_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *names); /* new */
PyObject *construct_leaves(PyObject *unused, PyObject *numbers);    /* new: a list of Values */

/* ---- structure.c: what people nest numbers in ---- */

extern PyMethodDef structure_functions[];
PyObject *structure_item(PyObject *list, Py_ssize_t i); /* new; of a list or tuple */
/* The doubles of an array that lies in memory as C has it; -1 with an exception set if it is no such array. */
int structure_doubles_of(PyObject *array, Py_buffer *view, int flags);

/* ---- attributes.c ---- */

extern PyGetSetDef value_getset[];
int attributes_ready(void);
int attributes_refuse_label(PyObject *given); /* true, with an exception set, unless it is a string */
int attributes_set_grad(Value *v, PyObject *given);
int value_setattro(PyObject *self, PyObject *name, PyObject *given);
PyObject *attributes_grad(Value *v);                          /* new */
PyObject *attributes_label(Value *v);                         /* new */
PyObject *attributes_children(PyObject *self, void *closure); /* new */
const char *attributes_op_name(const Value *v);

/* ---- type.c ---- */

int type_ready(PyObject *module);
PyObject *type_set_equality_is_identity(PyObject *module, PyObject *given); /* new: whether it was */

/* ---- numbers.c: from any Python object to a double ---- */

/* 1: *number is set; 0: not ours (NotImplemented); -1: an exception is set. `beside` may be NULL. */
int number_from(PyObject *given, const char *operation, Value *beside, double *number);
PyObject *number_to_compare(PyObject *given, int *comparison, PyObject *beside, double *number); /* new */

/* How it comes out, with a sign of Python's: Py_LT and the like. */
static inline int number_compared(double left, int sign, double right)
{
    switch (sign) {
    case Py_LT: return left < right;
    case Py_LE: return left <= right;
    case Py_GT: return left > right;
    case Py_GE: return left >= right;
    case Py_EQ: return left == right;
    case Py_NE: return left != right;
    default: Py_UNREACHABLE();
    }
}

/* ---- errors.c ---- */

PyObject *errors_module(void); /* borrowed */
int errors_check(unsigned op, const double *in, double out, PyObject *const *inputs); /* raises what is out of domain */
PyObject *errors_call(const char *function, PyObject *argument);              /* new; for functions that only raise */

/* ---- modes.c: no_grad, and functions that are told what happens ---- */

typedef struct {
    int no_grad;
    unsigned scope;
    PyObject *on_record, *on_compare, *on_read, *on_construct; /* borrowed from the context; NULL: nobody to tell */
    PyThreadState *thread; /* who looked it up last, and when */
    uint64_t id, version;
} Modes;

/* Which of these was ever in force anywhere, for the fast path to ask: another thread or task may be inside a block of its
 * own, or come back to one. */
enum { MODES_RECORD = 1, MODES_COMPARE = 2, MODES_READ = 4, MODES_CONSTRUCT = 8 };
extern int modes_in_use;
extern Modes modes; /* of whoever holds the GIL: a variable for each thread would take longer to find */
int modes_ready(void);
void modes_look_again(PyThreadState *thread);

/* Makes sure that `modes` is what is in force here and now. */
static inline void modes_look(void)
{
    PyThreadState *thread = PyThreadState_Get();
    if (thread->context_ver != modes.version || thread != modes.thread || thread->id != modes.id)
        modes_look_again(thread);
}

Value *modes_recorded(Value *out); /* steals and returns it: as a leaf under no_grad */
int modes_compared(PyObject *left, PyObject *right, int comparison, int outcome);
int modes_read(PyObject *value, const char *what);
int modes_read_all(PyObject *values); /* of a list or a tuple */
PyObject *modes_read_data(PyObject *value); /* new */
int modes_constructed(PyObject *value);
PyObject *modes_change_type(void); /* new */

static inline Value *recorded(Value *out) { return modes_in_use & MODES_RECORD ? modes_recorded(out) : out; }

/* ---- record.c: operations ---- */

PyObject *record_op(unsigned op, PyObject *const *arguments, Py_ssize_t count); /* new: a Value, or a float */
extern PyType_Slot record_slots[];
extern PyMethodDef record_methods[];
extern PyMethodDef record_functions[];
PyObject *record_apply(PyObject *self, PyObject *const *arguments, Py_ssize_t count); /* new */

/* ---- backward.c ---- */

PyObject *backward_run(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords); /* None */
PyObject *backward_keeping(PyObject *self, PyObject *unused); /* None: for stand-ins */
PyObject *backward_push(PyObject *self, PyObject *unused);                                          /* None */
PyObject *backward_gradients(PyObject *self, PyObject *inputs); /* new: a list of floats, or None */

PyObject *backward_pass_wait(void); /* new: a lock, for backward_pass_leave */
void backward_pass_leave(PyObject *lock);

/* Python code that lends gradients out, to give them back as they were, has the lock, and keeps a careful node alive:
 * whoever changes gradients in one go waits for it. *lock is NULL where there is none; -1 with an exception set. */
static inline int pass_begin(PyObject **lock)
{
    *lock = NULL;
    return LIKELY(careful_nodes == 0) || (*lock = backward_pass_wait()) != NULL ? 0 : -1;
}

static inline void pass_end(PyObject *lock)
{
    if (lock != NULL)
        backward_pass_leave(lock);
}

/* ---- order.c, cut.c ---- */

PyObject *order_topological(PyObject *self, PyObject *unused); /* new: a list of Values */
PyObject *cut_run(PyObject *unused, PyObject *args); /* new: what the function returned */

/* ---- composites.c ---- */

extern PyMethodDef composite_functions[];

/* ---- flatten.c: a recorded graph as arrays ---- */

extern PyMethodDef flatten_functions[];

#endif
