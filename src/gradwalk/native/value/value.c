/* A node's life: making it, freeing it without recursion, and what the cycle collector may see of it. */

#include "value.h"

PyTypeObject *value_type;
PyObject value_header;
Py_ssize_t careful_nodes, collected_nodes;
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
    v->link = make_link(details, op, MANY) | (v->link & LASTING) | (details->count == 0 ? CHILDLESS : 0);
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

/* Apart, so that the loops around the product stay small. */
INTERNAL NEVER_INLINE double value_contribution_of_nan(unsigned op, double local_grad, double grad)
{
    const Composite *composite = composite_of(op);
    int chooses = composite != NULL ? composite->chooses : op < OP_COUNT && op_chooses[op];
    return grad == 0.0 || (local_grad == 0.0 && (chooses || isinf(grad))) ? 0.0 : local_grad * grad;
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
        constant->grad += contribution(op_of(v), v->local_grads[right], v->grad);
    Value *child = first_of(v);
    v->link = make_link(right ? child : constant, op_of(v), TWO) | (v->link & LASTING);
    v->second = right ? constant : child;
    if (Py_TYPE(v) != value_type)
        stand_in_show_constant(v, constant, right);
    return 0;
}

Py_ssize_t value_child_count(const Value *v)
{
    switch (kind_of(v)) {
    case LEAF: return 0;
    case ONE:
    case ONE_NUMBER: return 1;
    case MANY: return details_of(v)->count;
    case TWO:
    case CHILD_CONSTANT:
    case CONSTANT_CHILD: return 2;
    default: Py_UNREACHABLE();
    }
}

Value *value_child(const Value *v, Py_ssize_t i, double *local_grad)
{
    if (kind_of(v) == MANY) {
        Details *details = details_of(v);
        *local_grad = i < details->local_count ? details->local_grads[i] : 0.0;
        return details->children[i];
    }
    *local_grad = v->local_grads[i != 0]; /* one of two, which gcc 16 does not see in i */
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

/* ---------------------------------------------------------------- freeing: no recursion, however deep the graph
 * Dropping a reference may run any Python code: a __del__, a weakref's callback. So a node lets go of things only
 * when nobody can reach them through it any more. */

static Value *dying;   /* nodes nobody refers to, not yet freed; the list holds one reference to each */
static int is_freeing; /* somewhere up the stack, the list is being worked off already */

static inline void value_release_child(Value *child)
{
    if (Py_REFCNT(child) == 1 && !(child->link & COLLECTED)) {
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

static void details_drop(Details *details)
{
    cycles_unwatch(details);
    careful_nodes -= (details->local_count < details->count) + (details->hand_written != NULL)
                   + (details->grad_value != NULL);
    for (Py_ssize_t i = 0; details->together == NULL && i < details->count; i++)
        value_release_child(details->children[i]);
    Py_XDECREF(details->together);
    Py_XDECREF(details->hand_written);
    Py_XDECREF(details->formula);
    Py_XDECREF(details->grad_value);
    Py_XDECREF(details->attributes);
    Py_XDECREF(details->label);
    Py_XDECREF(details->op);
    PyMem_Free(details);
}

/* Drops what a node had in `link` and `second`. */
static inline void history_drop(uint64_t link, Value *second)
{
    const Value had = {.link = link};
    switch (kind_of(&had)) {
    case LEAF:
        break;
    case TWO:
        value_release_child(second);
        /* fall through */
    case ONE:
    case ONE_NUMBER:
    case CHILD_CONSTANT:
    case CONSTANT_CHILD:
        value_release_child(first_of(&had));
        break;
    case MANY:
        details_drop(details_of(&had));
        break;
    default: Py_UNREACHABLE();
    }
}

static void value_free(Value *v)
{
    if (!(v->link & COLLECTED)) {
        slab_give(v);
        return;
    }
    PyTypeObject *type = Py_TYPE(v);
    collected_nodes--;
    type->tp_free((PyObject *)v);
    Py_DECREF(type);
}

/* In a fork's child: whoever was working it off may be a thread that is not there. */
COLD void value_forked(void) { is_freeing = 0; }

static ALWAYS_INLINE void work_off(void)
{
    if (is_freeing)
        return;
    is_freeing = 1;
    while (dying != NULL) {
        Value *v = dying;
        dying = v->next;
        history_drop(v->link, v->second);
        value_free(v);
    }
    is_freeing = 0;
}

NEVER_INLINE static void work_off_dying(void) { work_off(); }

void value_dealloc(PyObject *self)
{
    Value *v = (Value *)self;
    if (v->link & COLLECTED)
        PyObject_GC_UnTrack(self);
    if (kind_of(v) == LEAF) {
        value_free(v);
        return;
    }
    Py_SET_REFCNT(self, 1); /* the list's */
    v->next = dying;
    dying = v;
    work_off(); /* mostly this one alone */
}

void details_release(Details *details)
{
    details_drop(details);
    work_off_dying();
}

void value_forget_history(Value *v)
{
    uint64_t link = v->link;
    Value *second = v->second;
    v->link = make_link(NULL, NO_OP, LEAF) | (link & (COLLECTED | CONSTANT | DATA_INT | GRAD_INT));
    history_drop(link, second);
    work_off_dying();
}

/* ---------------------------------------------------------------- the interpreter's collector
 * It never sees nodes from operations; cycles.c looks after rings that they are part of. A node made by hand usually
 * holds a closure that holds the node: such nodes, and instances of subclasses, have a collector header. */

int value_is_gc(PyObject *self)
{
    return (((Value *)self)->link & COLLECTED) != 0 || !is_node_type(Py_TYPE(self));
}

int value_traverse(PyObject *self, visitproc visit, void *arg)
{
    Value *v = (Value *)self;
    if (value_is_gc(self))
        Py_VISIT(Py_TYPE(self)); /* those in slabs hold no reference to their type */
    switch (kind_of(v)) {
    case LEAF:
        break;
    case TWO:
        Py_VISIT(v->second);
        /* fall through */
    case ONE:
    case ONE_NUMBER:
    case CHILD_CONSTANT:
    case CONSTANT_CHILD:
        Py_VISIT(first_of(v));
        break;
    case MANY: {
        Details *details = details_of(v);
        for (Py_ssize_t i = 0; details->together == NULL && i < details->count; i++)
            Py_VISIT(details->children[i]);
        Py_VISIT(details->together);
        Py_VISIT(details->hand_written);
        Py_VISIT(details->formula);
        Py_VISIT(details->grad_value);
        Py_VISIT(details->attributes);
        Py_VISIT(details->label);
        Py_VISIT(details->op);
        break;
    }
    default: Py_UNREACHABLE();
    }
    return 0;
}

COLD int value_clear(PyObject *self)
{
    value_forget_history((Value *)self);
    return 0;
}
