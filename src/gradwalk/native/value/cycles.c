/* Rings of references that nodes from operations are part of: a leaf holds its gradient, whose graph holds the leaf
 * (create_graph); an assigned _backward closes over the very node; a subclass keeps its own graph in an attribute.
 *
 * The interpreter's collector does not see such nodes, so it takes them for the outside world. Here the same is done
 * with them included: what can be reached from the nodes that may be part of a ring is counted through, and what only
 * refers to itself lets go. That happens when the list of such nodes has doubled, and after each full collection. */

#include "value.h"

#define FIRST_LOOK 64
#define MOST_ROUNDS 4 /* of finalizers that make new rings, before it is left to the next look */

static Value **watched;
static Py_ssize_t watched_count, watched_room, next_look = FIRST_LOOK;
static PyObject *gc_module;

/* ---------------------------------------------------------------- what can be reached, and who refers to it */

/* The objects, and how many references to each come from outside the rings. A Value's place is kept in its grad
 * meanwhile; the places of others in a table by their address. */
typedef struct {
    PyObject **objects;
    double *grads;
    Py_ssize_t *outside;
    Py_ssize_t count, room;
    Py_ssize_t *table; /* one more than the place; 0: free */
    size_t table_room, table_count;
    Py_ssize_t *reached, reached_count; /* from outside, to be followed */
    PyObject *globals; /* of the function that is being looked at */
} Ring;

enum { NO_MEMORY = -1, NOT_THERE = -2 };

/* Where the object's place is, or belongs. There is always a free entry. */
static inline Py_ssize_t *cycles_table_slot(const Ring *ring, const PyObject *object)
{
    size_t at = ((uintptr_t)object >> 4) * (size_t)UINT64_C(0x9E3779B97F4A7C15);
    for (at &= ring->table_room - 1;; at = (at + 1) & (ring->table_room - 1)) {
        Py_ssize_t place = ring->table[at] - 1;
        if (place < 0 || ring->objects[place] == object)
            return &ring->table[at];
    }
}

static int cycles_table_grow(Ring *ring)
{
    size_t room = ring->table_room ? 2 * ring->table_room : 1024;
    Py_ssize_t *table = PyMem_RawCalloc(room, sizeof *table), *before = ring->table;
    if (table == NULL)
        return -1;
    size_t before_room = ring->table_room;
    ring->table = table;
    ring->table_room = room;
    for (size_t i = 0; i < before_room; i++) {
        if (before[i] != 0)
            *cycles_table_slot(ring, ring->objects[before[i] - 1]) = before[i];
    }
    PyMem_RawFree(before);
    return 0;
}

static int ring_grow(Ring *ring)
{
    Py_ssize_t room = ring->room ? 2 * ring->room : 1024;
    PyObject **objects = PyMem_RawRealloc(ring->objects, (size_t)room * sizeof *objects);
    if (objects != NULL)
        ring->objects = objects;
    double *grads = PyMem_RawRealloc(ring->grads, (size_t)room * sizeof *grads);
    if (grads != NULL)
        ring->grads = grads;
    Py_ssize_t *outside = PyMem_RawRealloc(ring->outside, (size_t)room * sizeof *outside);
    if (outside != NULL)
        ring->outside = outside;
    if (objects == NULL || grads == NULL || outside == NULL)
        return -1;
    ring->room = room;
    return 0;
}

/* Modules and the globals of functions would lead to the whole program. What is not followed counts as outside. */
static int cycles_is_followed(const Ring *ring, PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    if (!PyType_HasFeature(type, Py_TPFLAGS_HAVE_GC) || (type->tp_is_gc != NULL && !type->tp_is_gc(object))
        || PyModule_Check(object) || object == ring->globals)
        return 0;
    /* the collector stops tracking these where they hold nothing that it sees, such as our nodes */
    return PyObject_GC_IsTracked(object) || PyTuple_Check(object) || PyDict_Check(object);
}

/* The place of an object, or NOT_THERE. */
static Py_ssize_t ring_find(const Ring *ring, PyObject *object)
{
    if (is_value(object))
        return ((Value *)object)->link & MARKED ? (Py_ssize_t)((Value *)object)->grad : NOT_THERE;
    Py_ssize_t place = ring->table_room == 0 ? 0 : *cycles_table_slot(ring, object);
    return place == 0 ? NOT_THERE : place - 1;
}

/* The place of an object from now on, NOT_THERE if it is not followed, or NO_MEMORY. */
static Py_ssize_t ring_place(Ring *ring, PyObject *object)
{
    Py_ssize_t place = ring_find(ring, object);
    int value = is_value(object);
    if (place >= 0 || (!value && !cycles_is_followed(ring, object)))
        return place;
    if ((ring->count == ring->room && ring_grow(ring) < 0)
        || (!value && 2 * ring->table_count >= ring->table_room && cycles_table_grow(ring) < 0))
        return NO_MEMORY;
    place = ring->count++;
    ring->objects[place] = object;
    /* without a reference it is being freed by somebody else just now, who runs a weakref's callback, say */
    ring->outside[place] = Py_REFCNT(object) == 0 ? 1 : Py_REFCNT(object);
    if (value) {
        ring->grads[place] = ((Value *)object)->grad;
        ((Value *)object)->link |= MARKED;
        ((Value *)object)->grad = (double)place;
    }
    else {
        *cycles_table_slot(ring, object) = place + 1;
        ring->table_count++;
    }
    return place;
}

static int cycles_count_reference(PyObject *object, void *ring_)
{
    Ring *ring = ring_;
    Py_ssize_t place = ring_place(ring, object);
    if (place >= 0)
        ring->outside[place]--;
    return place == NO_MEMORY ? -1 : 0;
}

static int cycles_follow_reference(PyObject *object, void *ring_)
{
    Ring *ring = ring_;
    Py_ssize_t place = ring_find(ring, object);
    if (place >= 0 && ring->outside[place] <= 0) {
        ring->outside[place] = 1;
        ring->reached[ring->reached_count++] = place;
    }
    return 0;
}

static int ring_traverse(Ring *ring, Py_ssize_t place, visitproc visit)
{
    PyObject *object = ring->objects[place];
    ring->globals = PyFunction_Check(object) ? PyFunction_GET_GLOBALS(object) : NULL;
    return Py_TYPE(object)->tp_traverse(object, visit, ring);
}

/* Begins with the nodes that the interpreter's collector sees. */
static int ring_add_collected(Ring *ring)
{
    PyObject *tracked = PyObject_CallMethod(gc_module, "get_objects", NULL);
    if (tracked == NULL)
        return -1;
    int failed = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tracked) && !failed; i++) {
        PyObject *object = PyList_GET_ITEM(tracked, i);
        if (is_value(object)) {
            Py_ssize_t place = ring_place(ring, object);
            failed = place < 0;
            if (!failed)
                ring->outside[place]--; /* the list's own reference, which goes now */
        }
    }
    Py_DECREF(tracked);
    return failed ? -1 : 0;
}

/* Counts `outside` down to the references that do not come from what can be reached; then follows those that are
 * left. Afterwards it is 0 or less for whatever nothing outside leads to. Runs no Python code. */
static int ring_close(Ring *ring)
{
    for (Py_ssize_t at = 0; at < watched_count; at++) {
        if (ring_place(ring, (PyObject *)watched[at]) < 0)
            return -1;
    }
    for (Py_ssize_t at = 0; at < ring->count; at++) {
        if (ring_traverse(ring, at, cycles_count_reference) < 0)
            return -1;
    }
    ring->reached = PyMem_RawMalloc(((size_t)ring->count + 1) * sizeof *ring->reached);
    if (ring->reached == NULL)
        return -1;
    for (Py_ssize_t at = 0; at < ring->count; at++) {
        if (ring->outside[at] > 0)
            ring->reached[ring->reached_count++] = at;
    }
    while (ring->reached_count > 0)
        ring_traverse(ring, ring->reached[--ring->reached_count], cycles_follow_reference);
    return 0;
}

/* ---------------------------------------------------------------- letting go */

/* Keeps of the objects those for which it is true, each with a reference of our own; how many. */
static Py_ssize_t ring_keep(Ring *ring, int (*wanted)(PyObject *))
{
    Py_ssize_t kept = 0;
    for (Py_ssize_t at = 0; at < ring->count; at++) {
        if (ring->outside[at] <= 0 && wanted(ring->objects[at]))
            ring->objects[kept++] = Py_NewRef(ring->objects[at]);
    }
    return kept;
}

static int cycles_has_finalizer(PyObject *object)
{
    return Py_TYPE(object)->tp_finalize != NULL && PyObject_GC_IsTracked(object) && !PyObject_GC_IsFinalized(object);
}

static int cycles_has_history(PyObject *object)
{
    return is_value(object) && kind_of((Value *)object) != LEAF;
}

/* As the interpreter does: first every finalizer, all of which see everything whole; then, if that has brought nothing
 * back to life, every ring is opened at each of our nodes. Whether to look again. */
static int ring_let_go(Ring *ring)
{
    Py_ssize_t count, finalized = 0;
    for (Py_ssize_t at = 0; at < ring->count; at++)
        finalized += ring->outside[at] <= 0 && cycles_has_finalizer(ring->objects[at]);
    count = ring_keep(ring, finalized ? cycles_has_finalizer : cycles_has_history);
    for (Py_ssize_t at = 0; at < count; at++) {
        if (finalized)
            PyObject_CallFinalizer(ring->objects[at]);
        else
            value_forget_history((Value *)ring->objects[at]);
    }
    for (Py_ssize_t at = 0; at < count; at++)
        Py_DECREF(ring->objects[at]);
    return finalized > 0;
}

static void cycles_let_go(int with_collected)
{
    PyObject *kind, *error, *traceback; /* of whoever is on the way to handle one */
    PyErr_Fetch(&kind, &error, &traceback);
    next_look = PY_SSIZE_T_MAX; /* what runs meanwhile does not look as well */
    int again = 1;
    for (int round = 0; again && round < MOST_ROUNDS; round++) {
        Ring ring = {0};
        /* out of memory: nothing is let go this time */
        int closed = (!with_collected || ring_add_collected(&ring) == 0) && ring_close(&ring) == 0;
        for (Py_ssize_t at = 0; at < ring.count; at++) {
            if (is_value(ring.objects[at])) {
                ((Value *)ring.objects[at])->link &= ~MARKED;
                ((Value *)ring.objects[at])->grad = ring.grads[at];
            }
        }
        again = closed && ring_let_go(&ring);
        PyMem_RawFree(ring.objects);
        PyMem_RawFree(ring.grads);
        PyMem_RawFree(ring.outside);
        PyMem_RawFree(ring.table);
        PyMem_RawFree(ring.reached);
    }
    next_look = watched_count < FIRST_LOOK / 2 ? FIRST_LOOK : 2 * watched_count;
    PyErr_Restore(kind, error, traceback);
}

/* Whether the interpreter collects because it is time to, not because gc.collect() asked it to; -1: an exception. */
static int cycles_is_automatic(void)
{
    PyObject *counts = PyObject_CallMethod(gc_module, "get_count", NULL);
    PyObject *thresholds = counts ? PyObject_CallMethod(gc_module, "get_threshold", NULL) : NULL;
    int automatic = thresholds ? PyObject_RichCompareBool(PySequence_Fast_ITEMS(counts)[2],
                                                          PySequence_Fast_ITEMS(thresholds)[2], Py_GT)
                               : -1;
    Py_XDECREF(counts);
    Py_XDECREF(thresholds);
    return automatic;
}

/* gc.callbacks call this before and after each collection. A full one that nobody asked for is followed by a look
 * only if there are a quarter more of the nodes that it sees than after the last: where none is lost, it costs nothing
 * to speak of. None. */
static PyObject *cycles_around_collection(PyObject *unused, PyObject *args)
{
    (void)unused;
    static int automatic;
    static Py_ssize_t seen_last;
    const char *phase;
    PyObject *info;
    if (!PyArg_ParseTuple(args, "sO!", &phase, &PyDict_Type, &info))
        return NULL;
    PyObject *generation = PyDict_GetItemString(info, "generation");
    if (generation == NULL || !PyLong_Check(generation) || PyLong_AsLong(generation) != 2)
        Py_RETURN_NONE;
    if (strcmp(phase, "start") == 0) {
        automatic = cycles_is_automatic();
        return automatic < 0 ? NULL : Py_NewRef(Py_None);
    }
    Py_ssize_t seen = watched_count + collected_nodes;
    if (seen > 0 && (!automatic || 4 * seen > 5 * seen_last)) {
        cycles_let_go(collected_nodes > 0);
        seen_last = watched_count + collected_nodes;
    }
    Py_RETURN_NONE;
}

int cycles_ready(void)
{
    static PyMethodDef callback = {"gradwalk_rings", cycles_around_collection, METH_VARARGS, NULL};
    if (gc_module != NULL)
        return 0;
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *callbacks = gc ? PyObject_GetAttrString(gc, "callbacks") : NULL;
    PyObject *function = callbacks ? PyCFunction_New(&callback, NULL) : NULL;
    if (function != NULL && PyList_Append(callbacks, function) == 0)
        gc_module = Py_NewRef(gc);
    Py_XDECREF(function);
    Py_XDECREF(callbacks);
    Py_XDECREF(gc);
    return gc_module == NULL ? -1 : 0;
}

/* ---------------------------------------------------------------- what may lead back to its node */

int cycles_watch(Value *v)
{
    if (watched_count >= next_look)
        cycles_let_go(0);
    Details *details = cycles_ready() < 0 ? NULL : value_details(v);
    if (details == NULL || details->watched > 0)
        return details == NULL ? -1 : 0;
    if (watched_count == watched_room) {
        Py_ssize_t room = watched_room ? 2 * watched_room : FIRST_LOOK;
        Value **more = PyMem_RawRealloc(watched, (size_t)room * sizeof *more);
        if (more == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        watched = more;
        watched_room = room;
    }
    watched[watched_count++] = v;
    details->watched = watched_count;
    return 0;
}

void cycles_unwatch(Details *details)
{
    if (details->watched == 0)
        return;
    Value *last = watched[--watched_count];
    if (details->watched <= watched_count) { /* another: it moves to the place that is free now */
        watched[details->watched - 1] = last;
        details_of(last)->watched = details->watched;
    }
    details->watched = 0;
}

int cycles_about_to_hold(Value *v, PyObject *given)
{
    return is_value(given) || PyObject_IS_GC(given) ? cycles_watch(v) : 0;
}

/* Labels and ops that lead anywhere are of a script's own class. */
int cycles_may_lead_back(const Details *details)
{
    return details->hand_written != NULL || details->grad_value != NULL || details->attributes != NULL
        || (details->label != NULL && PyObject_IS_GC(details->label))
        || (details->op != NULL && PyObject_IS_GC(details->op));
}

static int cycles_set(Value *v, size_t offset, PyObject *held, int watch)
{
    if (held == NULL && kind_of(v) != MANY)
        return 0;
    if (held != NULL && (value_details(v) == NULL || (watch && cycles_watch(v) < 0)))
        return -1;
    Details *details = details_of(v);
    PyObject **place = (PyObject **)((char *)details + offset), *before = *place;
    careful_nodes += (held != NULL) - (before != NULL);
    *place = Py_XNewRef(held);
    if (!cycles_may_lead_back(details))
        cycles_unwatch(details);
    Py_XDECREF(before); /* last: it may run Python code */
    return 0;
}

int cycles_set_grad_value(Value *v, PyObject *value) { return cycles_set(v, offsetof(Details, grad_value), value, 1); }

int cycles_set_hand_written(Value *v, PyObject *function)
{
    /* nodes that the collector sees are numerous in programs written that way; there, full collections will do */
    return cycles_set(v, offsetof(Details, hand_written), function, !(v->link & COLLECTED));
}
