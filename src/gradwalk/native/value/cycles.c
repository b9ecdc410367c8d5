/* Gradients that are Values, after backward(create_graph=True): a leaf holds its gradient, whose graph holds the leaf.
 *
 * Such rings are the only ones that nodes from operations can be part of, and the interpreter's collector does not
 * see them. So the leaves that hold a Value are listed here, and when the list has doubled, those that only their
 * own rings still refer to let go of theirs. */

#include "value.h"

#define FIRST_LOOK 64

static Value **holders;
static Py_ssize_t holder_count, holder_room, next_look = FIRST_LOOK;

/* The interior of the rings, while it is looked at: the nodes, their saved gradients, and who refers to them. A
 * node's place in these arrays is kept in its grad meanwhile. */
typedef struct {
    Value **nodes;
    double *grads;
    Py_ssize_t *outside; /* references from outside the rings */
    Py_ssize_t count, room;
} Ring;

static int ring_add(Ring *ring, Value *node)
{
    if (node->link & MARKED)
        return 0;
    if (ring->count == ring->room) {
        Py_ssize_t room = ring->room ? 2 * ring->room : 1024;
        Value **nodes = PyMem_RawRealloc(ring->nodes, (size_t)room * sizeof *nodes);
        if (nodes != NULL)
            ring->nodes = nodes;
        double *grads = PyMem_RawRealloc(ring->grads, (size_t)room * sizeof *grads);
        if (grads != NULL)
            ring->grads = grads;
        Py_ssize_t *outside = PyMem_RawRealloc(ring->outside, (size_t)room * sizeof *outside);
        if (outside != NULL)
            ring->outside = outside;
        if (nodes == NULL || grads == NULL || outside == NULL)
            return -1;
        ring->room = room;
    }
    node->link |= MARKED;
    ring->nodes[ring->count] = node;
    ring->grads[ring->count] = node->grad;
    ring->outside[ring->count] = Py_REFCNT(node);
    node->grad = (double)ring->count++;
    return 0;
}

/* What a node refers to, one after the other: its children, then its gradient; NULL at the end. Children that a tuple
 * holds are the tuple's references, which others may have too: they come from outside. */
static Value *referred(const Value *node, Py_ssize_t i)
{
    enum kind kind = kind_of(node);
    Py_ssize_t children = value_child_count(node) - (kind == CHILD_CONSTANT || kind == CONSTANT_CHILD);
    double unused;
    if (kind == MANY && details_of(node)->together != NULL)
        children = 0;
    if (i < children)
        return value_child(node, i, &unused);
    return i == children && kind == MANY ? (Value *)details_of(node)->grad_value : NULL;
}

/* Counts down `outside` to the references that do not come from the rings; then follows those that are left. */
static int ring_close(Ring *ring)
{
    Value *other;
    for (Py_ssize_t at = 0; at < holder_count; at++) {
        if (ring_add(ring, holders[at]) < 0)
            return -1;
    }
    for (Py_ssize_t at = 0; at < ring->count; at++) {
        for (Py_ssize_t i = 0; (other = referred(ring->nodes[at], i)) != NULL; i++) {
            if (ring_add(ring, other) < 0)
                return -1;
            ring->outside[(Py_ssize_t)other->grad]--;
        }
    }
    Py_ssize_t *reached = PyMem_RawMalloc((size_t)ring->count * sizeof *reached), count = 0;
    if (reached == NULL)
        return -1;
    for (Py_ssize_t at = 0; at < ring->count; at++) {
        if (ring->outside[at] > 0)
            reached[count++] = at;
    }
    while (count > 0) {
        Value *node = ring->nodes[reached[--count]];
        for (Py_ssize_t i = 0; (other = referred(node, i)) != NULL; i++) {
            Py_ssize_t place = (Py_ssize_t)other->grad;
            if (ring->outside[place] <= 0) {
                ring->outside[place] = 1;
                reached[count++] = place;
            }
        }
    }
    PyMem_RawFree(reached);
    return 0;
}

static void let_go_of_rings(void)
{
    Ring ring = {NULL, NULL, NULL, 0, 0};
    int closed = ring_close(&ring) == 0; /* out of memory: nothing is let go this time */
    Py_ssize_t abandoned = 0;
    for (Py_ssize_t at = 0; at < ring.count; at++) {
        Value *node = ring.nodes[at];
        node->link &= ~MARKED;
        node->grad = ring.grads[at];
        if (closed && ring.outside[at] <= 0 && kind_of(node) == MANY && details_of(node)->grad_value != NULL) {
            Py_INCREF(node); /* so that letting go of one does not free the next */
            ring.nodes[abandoned++] = node;
        }
    }
    for (Py_ssize_t at = 0; at < abandoned; at++)
        grad_value_set(ring.nodes[at], NULL);
    for (Py_ssize_t at = 0; at < abandoned; at++)
        Py_DECREF(ring.nodes[at]);
    PyMem_RawFree(ring.nodes);
    PyMem_RawFree(ring.grads);
    PyMem_RawFree(ring.outside);
    next_look = holder_count < FIRST_LOOK / 2 ? FIRST_LOOK : 2 * holder_count;
}

static void holder_remove(Details *details)
{
    Value *last = holders[--holder_count];
    holders[details->holder] = last;
    details_of(last)->holder = details->holder;
}

void grad_value_forget(Details *details)
{
    if (details->grad_value == NULL)
        return;
    holder_remove(details);
    careful_nodes--;
    Py_CLEAR(details->grad_value);
}

int grad_value_set(Value *v, PyObject *value)
{
    if (value == NULL) {
        if (kind_of(v) == MANY)
            grad_value_forget(details_of(v));
        return 0;
    }
    if (holder_count >= next_look)
        let_go_of_rings();
    Details *details = value_details(v);
    if (details == NULL)
        return -1;
    if (details->grad_value == NULL) {
        if (holder_count == holder_room) {
            Py_ssize_t room = holder_room ? 2 * holder_room : FIRST_LOOK;
            Value **more = PyMem_RawRealloc(holders, (size_t)room * sizeof *more);
            if (more == NULL) {
                PyErr_NoMemory();
                return -1;
            }
            holders = more;
            holder_room = room;
        }
        details->holder = holder_count;
        holders[holder_count++] = v;
        careful_nodes++;
    }
    Py_INCREF(value);
    Py_XSETREF(details->grad_value, value);
    return 0;
}
