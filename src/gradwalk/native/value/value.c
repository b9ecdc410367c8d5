/* A node's life: making it, freeing it without recursion, and what the cycle collector may see of it. */

#include "value.h"

PyTypeObject *value_type;
PyObject value_header;
Py_ssize_t careful_nodes;
uint64_t data_writes = 1, grad_writes = 1;

/* ---------------------------------------------------------------- making nodes */

Value *value_leaf(double data)
{
    Value *v = value_blank();
    if (v == NULL)
        return NULL;
    v->data = data;
    v->link = make_link(NULL, NO_OP, LEAF);
    if (scopes_in_use)
        slab_tag(v);
    return v;
}

Value *value_constant(double data)
{
    Value *v = value_leaf(data);
    if (v != NULL)
        v->link |= CONSTANT;
    return v;
}

/* With room for `own` children behind the local gradients. */
static Details *details_with(Py_ssize_t count, Py_ssize_t own)
{
    Details *details =
        PyMem_Malloc(sizeof(Details) + (size_t)count * sizeof(double) + (size_t)own * sizeof(Value *));
    if (details == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    memset(details, 0, sizeof(Details));
    details->count = details->local_count = count;
    details->local_grads = (double *)(details + 1);
    details->children = (Value **)(details->local_grads + count);
    return details;
}

Details *details_new(Py_ssize_t count) { return details_with(count, count); }

void details_attach(Value *v, Details *details, unsigned op)
{
    uint64_t flags = v->link & (COLLECTED | CONSTANT | MARKED | PUSHED);
    v->link = make_link(details, op, MANY) | flags;
}

static Value *value_with(Details *details, unsigned op, double data)
{
    if (details == NULL)
        return NULL;
    Value *v = value_blank();
    if (v == NULL) {
        PyMem_Free(details);
        return NULL;
    }
    v->data = data;
    v->link = make_link(details, op, MANY);
    return v;
}

Value *value_many(unsigned op, double data, Py_ssize_t count) { return value_with(details_new(count), op, data); }

Value *value_over(PyObject *children)
{
    Value *v = value_with(details_with(PyTuple_GET_SIZE(children), 0), NO_OP, 0.0);
    if (v != NULL) {
        details_of(v)->together = Py_NewRef(children);
        details_of(v)->children = (Value **)((PyTupleObject *)children)->ob_item;
    }
    return v;
}

int value_show_constant(Value *v)
{
    enum kind kind = kind_of(v);
    if (kind != CHILD_CONSTANT && kind != CONSTANT_CHILD)
        return 0;
    Value *constant = value_constant(v->number);
    if (constant == NULL)
        return -1;
    int right = kind == CHILD_CONSTANT;
    if (v->link & PUSHED) /* what the last pass would have added, had the constant been a node by then */
        constant->grad += v->local_grads[right] * v->grad;
    Value *child = first_of(v);
    uint64_t flags = v->link & (COLLECTED | CONSTANT | MARKED | PUSHED);
    v->link = make_link(right ? child : constant, op_of(v), TWO) | flags;
    v->second = right ? constant : child;
    return 0;
}

Py_ssize_t value_child_count(const Value *v)
{
    switch (kind_of(v)) {
    case LEAF: return 0;
    case ONE:
    case ONE_NUMBER: return 1;
    case MANY: return details_of(v)->count;
    default: return 2;
    }
}

Value *value_child(const Value *v, Py_ssize_t i, double *local_grad)
{
    if (kind_of(v) == MANY) {
        Details *details = details_of(v);
        *local_grad = i < details->local_count ? details->local_grads[i] : 0.0;
        return details->children[i];
    }
    *local_grad = v->local_grads[i];
    return i == 0 ? first_of(v) : v->second;
}

Details *value_details(Value *v)
{
    if (kind_of(v) == MANY)
        return details_of(v);
    if (value_show_constant(v) < 0)
        return NULL;
    Py_ssize_t count = value_child_count(v);
    Details *details = details_new(count);
    if (details == NULL)
        return NULL;
    if (kind_of(v) == ONE_NUMBER)
        details->parameters[0] = v->number;
    for (Py_ssize_t i = 0; i < count; i++)
        details->children[i] = value_child(v, i, &details->local_grads[i]);
    details_attach(v, details, op_of(v));
    return details;
}

/* ---------------------------------------------------------------- freeing: no recursion, however deep the graph */

static Value *dying;   /* nodes nobody refers to, not yet freed */
static int is_freeing; /* somewhere up the stack, the list is being worked off already */

static inline void release_child(Value *child)
{
    if (Py_REFCNT(child) == 1 && Py_TYPE(child) == value_type && !(child->link & COLLECTED)) {
        if (kind_of(child) == LEAF) {
            slab_give(child);
            return;
        }
        child->next = dying;
        dying = child;
    }
    else {
        Py_DECREF(child);
    }
}

void details_set_hand_written(Details *details, PyObject *function)
{
    careful_nodes += (function != NULL) - (details->hand_written != NULL);
    Py_XINCREF(function);
    Py_XSETREF(details->hand_written, function);
}

void details_release(Details *details)
{
    for (Py_ssize_t i = 0; details->together == NULL && i < details->count; i++)
        release_child(details->children[i]);
    Py_XDECREF(details->together);
    careful_nodes -= details->local_count < details->count;
    details_set_hand_written(details, NULL);
    grad_value_forget(details);
    Py_XDECREF(details->label);
    Py_XDECREF(details->op);
    PyMem_Free(details);
}

static void value_free(Value *v)
{
    if (!(v->link & COLLECTED)) {
        slab_give(v);
        return;
    }
    PyTypeObject *type = Py_TYPE(v);
    type->tp_free((PyObject *)v);
    Py_DECREF(type);
}

void value_dealloc(PyObject *self)
{
    Value *v = (Value *)self;
    if (v->link & COLLECTED)
        PyObject_GC_UnTrack(self);
    if (kind_of(v) == LEAF) {
        value_free(v);
        return;
    }
    v->next = dying;
    dying = v;
    if (is_freeing)
        return;
    is_freeing = 1;
    while (dying != NULL) {
        v = dying;
        dying = v->next;
        switch (kind_of(v)) {
        case LEAF:
            break;
        case TWO:
            release_child(v->second);
            /* fall through */
        case ONE:
        case ONE_NUMBER:
        case CHILD_CONSTANT:
        case CONSTANT_CHILD:
            release_child(first_of(v));
            break;
        case MANY:
            details_release(details_of(v));
            break;
        }
        value_free(v);
    }
    is_freeing = 0;
}

/* ---------------------------------------------------------------- the cycle collector
 * Nodes from operations cannot be part of a cycle, and the collector never sees them. A node made by hand holds a
 * closure that holds the node: such nodes, and instances of subclasses, are allocated with a collector header. */

int value_is_gc(PyObject *self)
{
    return (((Value *)self)->link & COLLECTED) != 0 || Py_TYPE(self) != value_type;
}

int value_traverse(PyObject *self, visitproc visit, void *arg)
{
    Value *v = (Value *)self;
    Py_VISIT(Py_TYPE(self));
    if (kind_of(v) == MANY) {
        Details *details = details_of(v);
        for (Py_ssize_t i = 0; details->together == NULL && i < details->count; i++)
            Py_VISIT(details->children[i]);
        Py_VISIT(details->together);
        Py_VISIT(details->hand_written);
        Py_VISIT(details->grad_value);
    }
    return 0;
}

int value_clear(PyObject *self)
{
    Value *v = (Value *)self;
    if (kind_of(v) == MANY) {
        details_set_hand_written(details_of(v), NULL);
        grad_value_forget(details_of(v));
    }
    return 0;
}
