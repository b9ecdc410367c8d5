/* backward(): make the order, walk it in reverse, add local gradient times gradient to every child.
 *
 * The order is the reference engine's: left-first, depth-first, each node after its children. Leaves hand nothing
 * on, so they are left out of it. A bit in the node says that it has been reached; an explicit stack, not the C
 * stack, remembers the path. */

#include "value.h"

/* For what is written once and compiled for each purpose it is called with. */
#if defined(__GNUC__)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NEVER_INLINE __attribute__((noinline))
#elif defined(_MSC_VER)
#define ALWAYS_INLINE __forceinline
#define NEVER_INLINE __declspec(noinline)
#else
#define ALWAYS_INLINE inline
#define NEVER_INLINE
#endif

typedef struct {
    Value **nodes;
    size_t count, room;
} Order;

/* Kept between passes, so that a training loop does not ask for the same memory again and again. */
#define ORDER_KEPT (UINT64_C(1) << 20)
static Order spare_order;
static Order spare_path;

/* Raised when marks are taken away and gradients put back: making an exception may run the collector, and with it
 * Python code. */
static int no_memory(void)
{
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    return -1;
}

/* By value, so that a caller's Order can live in registers. nodes is NULL if there is no memory. */
static NEVER_INLINE Order order_grown(Order order)
{
    order.room = order.room ? order.room * 2 : 1024;
    order.nodes = PyMem_RawRealloc(order.nodes, order.room * sizeof *order.nodes);
    return order;
}

static inline int order_push(Order *order, Value *node)
{
    if (order->count == order->room) {
        Order grown = order_grown(*order);
        if (grown.nodes == NULL)
            return -1;
        *order = grown;
    }
    order->nodes[order->count++] = node;
    return 0;
}

static Order order_take(void)
{
    Order order = spare_order; /* a nested backward() finds none and makes its own */
    spare_order = (Order){NULL, 0, 0};
    order.count = 0;
    return order;
}

static void order_give(Order order)
{
    if (spare_order.nodes == NULL && order.room <= ORDER_KEPT)
        spare_order = order;
    else
        PyMem_RawFree(order.nodes);
    if (spare_path.room > ORDER_KEPT) {
        PyMem_RawFree(spare_path.nodes);
        spare_path = (Order){NULL, 0, 0};
    }
}

static void unmark(const Order *order)
{
    for (size_t i = 0; i < order->count; i++)
        order->nodes[i]->link &= ~MARKED;
}

/* ---------------------------------------------------------------- gradients put aside */

typedef struct {
    Value *node;
    double grad;
} PutAside;

/* During one traceless pass, which runs no Python code: most nodes are fresh, so most gradients are zero anyway. */
static PutAside *aside;
static size_t aside_count, aside_room;

static int put_aside(Value *node)
{
    if (aside_count == aside_room) {
        size_t room = aside_room ? aside_room * 2 : 64;
        PutAside *grown = PyMem_RawRealloc(aside, room * sizeof *grown);
        if (grown == NULL)
            return -1;
        aside = grown;
        aside_room = room;
    }
    aside[aside_count++] = (PutAside){node, node->grad};
    node->grad = 0.0;
    return 0;
}

static void put_back(void)
{
    while (aside_count > 0) {
        aside_count--;
        aside[aside_count].node->grad = aside[aside_count].grad;
    }
}

/* ---------------------------------------------------------------- the order */

enum order_for {
    KEEPING_PASS, /* interior nodes only; nothing is changed */
    PLAIN_PASS,   /* interior nodes only; gradients that start afresh are set to zero on the way */
    TRACELESS_PASS, /* what is marked already is not entered; every gradient is put aside and starts at zero */
    CAREFUL_PASS, /* leaves as well; nothing is changed */
    SHOWING,      /* leaves as well, and plain numbers are shown as leaves */
};

/* Whether to descend into a node: 1 for an interior node reached for the first time. A leaf has nothing below it
 * and takes its place in the order at once, where leaves are wanted. -1: out of memory, with no exception set yet. */
static ALWAYS_INLINE int enter(Value *node, Order *order, enum order_for purpose)
{
    enum kind kind = kind_of(node);
    int leaf = kind == LEAF || (kind == MANY && details_of(node)->count == 0);
    if (leaf && purpose <= PLAIN_PASS) {
        if (purpose == PLAIN_PASS && node->link & CONSTANT)
            node->grad = 0.0;
        return 0;
    }
    if (node->link & MARKED)
        return 0;
    if (purpose == SHOWING && value_show_constant(node) < 0)
        return -1;
    if (purpose == TRACELESS_PASS && node->grad != 0.0 && put_aside(node) < 0)
        return -1;
    node->link |= MARKED;
    if (leaf)
        return order_push(order, node);
    if (purpose == PLAIN_PASS)
        node->grad = 0.0;
    if (kind == MANY)
        details_of(node)->cursor = 0;
    return 1;
}

/* On the path, a node's lowest bit says that its second child is still to be looked at. */
#define SECOND_LEFT 1
#define NODE(entry) ((Value *)((uintptr_t)(entry) & ~(uintptr_t)SECOND_LEFT))

/* Every node in the order is left marked; none if it fails, which no_memory() is then to tell. */
static ALWAYS_INLINE int make_order(Value *root, Order *result, enum order_for purpose)
{
    Order made = *result, way = spare_path; /* copies, which live in registers */
    Order *order = &made, *path = &way;
    Value *node = root, *child = root;
    path->count = 0;
    int entered = enter(root, order, purpose);
    if (entered <= 0) {
        *result = made;
        if (entered < 0)
            root->link &= ~MARKED;
        return entered;
    }
descend: /* node was entered just now; its children come before it */
    switch (kind_of(node)) {
    case TWO:
        child = first_of(node);
        entered = enter(child, order, purpose);
        if (entered > 0) {
            if (order_push(path, (Value *)((uintptr_t)node | SECOND_LEFT)) < 0)
                goto failed;
            break;
        }
        child = node->second;
        if (entered == 0)
            entered = enter(child, order, purpose);
        if (entered > 0 && order_push(path, node) < 0)
            goto failed;
        break;
    case MANY:
        if (order_push(path, node) < 0)
            goto failed;
        goto ascend;
    default: /* one child */
        child = first_of(node);
        entered = enter(child, order, purpose);
        if (entered > 0 && order_push(path, node) < 0)
            goto failed;
        break;
    }
    if (entered > 0) {
        node = child;
        goto descend;
    }
    if (entered < 0 || order_push(order, node) < 0)
        goto failed;
ascend: /* back at the nodes on the path, which may have children left */
    while (path->count > 0) {
        Value **top = &path->nodes[path->count - 1];
        node = NODE(*top);
        entered = 0;
        if (*top != node) {
            *top = node;
            child = node->second;
            entered = enter(child, order, purpose);
        }
        else if (kind_of(node) == MANY) {
            Details *details = details_of(node);
            while (entered == 0 && details->cursor < details->count) {
                child = details->children[details->cursor++];
                entered = enter(child, order, purpose);
            }
        }
        if (entered > 0) {
            node = child;
            goto descend;
        }
        path->count--;
        if (entered < 0 || order_push(order, node) < 0)
            goto failed;
    }
    *result = made;
    spare_path = way;
    return 0;
failed:
    *result = made;
    spare_path = way;
    node->link &= ~MARKED;
    child->link &= ~MARKED;
    unmark(order);
    for (size_t i = 0; i < path->count; i++)
        NODE(path->nodes[i])->link &= ~MARKED;
    return -1;
}

/* ---------------------------------------------------------------- the walk */

/* What a node hands on to a child; in a pass as scripts write it, zero times infinity is what Python makes of it. */
static ALWAYS_INLINE double handed_on(double local_grad, double grad, int plainly)
{
    return plainly ? local_grad * grad : contribution(local_grad, grad);
}

static ALWAYS_INLINE void push(Value *node, int plainly)
{
    double grad = node->grad;
    switch (kind_of(node)) {
    case LEAF:
        break;
    case ONE:
    case ONE_NUMBER:
    case CHILD_CONSTANT:
        first_of(node)->grad += handed_on(node->local_grads[0], grad, plainly);
        break;
    case CONSTANT_CHILD:
        first_of(node)->grad += handed_on(node->local_grads[1], grad, plainly);
        break;
    case TWO:
        first_of(node)->grad += handed_on(node->local_grads[0], grad, plainly);
        node->second->grad += handed_on(node->local_grads[1], grad, plainly);
        break;
    case MANY: {
        Details *details = details_of(node);
        for (Py_ssize_t i = 0; i < details->count; i++)
            details->children[i]->grad += handed_on(details->local_grads[i], grad, plainly);
        break;
    }
    }
}

/* Adds to a gradient that may be a Value by now: hand-written code can have made it one. The addition may run Python
 * code, so both are held. */
static int add_to_grad(Value *v, double given)
{
    if (kind_of(v) != MANY || details_of(v)->grad_value == NULL) {
        v->grad += given;
        return 0;
    }
    Py_INCREF(v);
    PyObject *before = Py_NewRef(details_of(v)->grad_value);
    PyObject *number = PyFloat_FromDouble(given);
    PyObject *sum = number ? PyNumber_Add(before, number) : NULL;
    int failed = sum == NULL || attributes_set_grad(v, sum) < 0;
    Py_DECREF(before);
    Py_XDECREF(number);
    Py_XDECREF(sum);
    Py_DECREF(v);
    return failed ? -1 : 0;
}

/* push, where gradients may be Values and local gradients may be missing. */
static int push_carefully(Value *node)
{
    if (kind_of(node) == MANY && details_of(node)->local_count < details_of(node)->count) {
        if (Py_TYPE(node) != value_type)
            return stand_in_push_by_method(node);
        Py_XDECREF(errors_call("refuse_backward", (PyObject *)node));
        return -1;
    }
    enum kind kind = kind_of(node);
    int plainly = Py_TYPE(node) != value_type && stand_in_is(Py_TYPE(node));
    double grad = node->grad, local_grad;
    if (kind == CHILD_CONSTANT || kind == CONSTANT_CHILD) {
        node->link |= PUSHED;
        return add_to_grad(first_of(node), handed_on(node->local_grads[kind == CONSTANT_CHILD], grad, plainly));
    }
    for (Py_ssize_t i = 0; i < value_child_count(node); i++) {
        Value *child = value_child(node, i, &local_grad);
        if (add_to_grad(child, handed_on(local_grad, grad, plainly)) < 0)
            return -1;
    }
    return 0;
}

PyObject *backward_push(PyObject *self, PyObject *unused)
{
    (void)unused;
    grad_writes++;
    if (value_show_constant((Value *)self) < 0 || push_carefully((Value *)self) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Nothing in the graph can fail or run Python code. */
static int backward_plain(Value *root)
{
    Order order = order_take();
    if (make_order(root, &order, PLAIN_PASS) < 0) {
        order_give(order);
        return no_memory();
    }
    root->grad += 1.0;
    for (size_t i = order.count; i-- > 0;) {
        Value *node = order.nodes[i];
        node->link = (node->link & ~MARKED) | PUSHED;
        push(node, 0);
    }
    order_give(order);
    return 0;
}

static void start_afresh_unless_leaf(Value *node)
{
    if (!is_leaf(node) || node->link & CONSTANT)
        node->grad = 0.0;
    grad_value_set(node, NULL);
}

static int push_by_hand(Value *node)
{
    if (kind_of(node) != MANY || details_of(node)->hand_written == NULL) {
        if (Py_TYPE(node) != value_type)
            stand_in_push_ints(node);
        return push_carefully(node);
    }
    PyObject *function = details_of(node)->hand_written;
    Py_INCREF(function); /* it may replace itself */
    PyObject *result = PyObject_CallNoArgs(function);
    Py_DECREF(function);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

typedef struct {
    double grad;
    PyObject *grad_value; /* owned, or NULL */
} Kept;

/* Some node somewhere has a hand-written _backward, which may raise, or a Value as its gradient: every gradient is
 * kept before the walk, and put back if it fails. */
static int walk_carefully(Value *root, int keeping)
{
    Order order = order_take();
    int failed = make_order(root, &order, CAREFUL_PASS) < 0;
    if (!failed)
        unmark(&order); /* before any Python code runs: it may call backward() on these nodes */
    Kept *kept = failed ? NULL : PyMem_RawMalloc((order.count + 1) * sizeof *kept);
    if (kept == NULL) {
        order_give(order);
        return no_memory();
    }
    for (size_t i = 0; i < order.count; i++) {
        Value *node = order.nodes[i];
        Py_INCREF(node); /* hand-written code may call __init__ on a node, and drop its children */
        kept[i].grad = node->grad;
        kept[i].grad_value = kind_of(node) == MANY ? details_of(node)->grad_value : NULL;
        Py_XINCREF(kept[i].grad_value);
    }
    for (size_t i = 0; i < order.count && !keeping; i++)
        start_afresh_unless_leaf(order.nodes[i]);
    if (keeping)
        stand_in_seed(root);
    else
        root->grad += 1.0;
    for (size_t i = order.count; i-- > 0 && !failed;)
        failed = push_by_hand(order.nodes[i]) < 0;
    for (size_t i = 0; i < order.count; i++) {
        if (failed) {
            grad_value_set(order.nodes[i], kept[i].grad_value);
            order.nodes[i]->grad = kept[i].grad;
        }
        Py_XDECREF(kept[i].grad_value);
        Py_DECREF(order.nodes[i]);
    }
    PyMem_RawFree(kept);
    order_give(order);
    return failed ? -1 : 0;
}

/* Hand-written code may let another thread run in the middle of the walk; the lock keeps its walk for later. It is
 * re-entrant, because that code may call backward() itself. */
static int backward_careful(Value *root, int keeping)
{
    static PyObject *the_pass; /* passes.THE_PASS, whose lock is another one after a fork */
    if (the_pass == NULL) {
        PyObject *passes = PyImport_ImportModule("gradwalk.passes");
        the_pass = passes ? PyObject_GetAttrString(passes, "THE_PASS") : NULL;
        Py_XDECREF(passes);
    }
    PyObject *lock = the_pass ? PyObject_GetAttrString(the_pass, "lock") : NULL;
    PyObject *acquired = lock ? PyObject_CallMethod(lock, "acquire", NULL) : NULL;
    if (acquired == NULL) {
        Py_XDECREF(lock);
        return -1;
    }
    Py_DECREF(acquired);
    int failed = walk_carefully(root, keeping) < 0;
    PyObject *kind, *error, *traceback; /* the walk's, if it failed: releasing must not see it */
    PyErr_Fetch(&kind, &error, &traceback);
    PyObject *released = PyObject_CallMethod(lock, "release", NULL);
    Py_XDECREF(released);
    Py_DECREF(lock);
    if (released == NULL)
        PyErr_Clear(); /* forked inside: the child has another lock by now */
    PyErr_Restore(kind, error, traceback);
    return failed ? -1 : 0;
}

/* A pass as both families of scripts write it: nothing starts afresh but the root, whose gradient is 1. */
static int walk_keeping(Value *root)
{
    Order order = order_take();
    if (make_order(root, &order, KEEPING_PASS) < 0) {
        order_give(order);
        return -1;
    }
    int failed = 0;
    for (size_t i = order.count; i-- > 0;) {
        /* a number beside a child has one gradient, that of the last pass: for the sum of several it takes a node */
        if (order.nodes[i]->link & PUSHED)
            failed |= value_show_constant(order.nodes[i]) < 0;
    }
    stand_in_seed(root);
    for (size_t i = order.count; i-- > 0;) {
        Value *node = order.nodes[i];
        node->link = (node->link & ~MARKED) | PUSHED;
        push(node, 1);
        stand_in_push_ints(node);
    }
    order_give(order);
    return failed ? -1 : 0;
}

PyObject *backward_keeping(PyObject *self, PyObject *unused)
{
    (void)unused;
    grad_writes++;
    int failed = (careful_nodes != 0 ? backward_careful((Value *)self, 1) : walk_keeping((Value *)self)) < 0;
    grad_writes++;
    return failed ? NULL : Py_NewRef(Py_None);
}

PyObject *backward(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
    Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    if (count + named > 1
        || (named == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, 0), "create_graph") != 0)) {
        PyErr_SetString(PyExc_TypeError, "backward: expected no argument but create_graph");
        return NULL;
    }
    int create_graph = count + named == 1 ? PyObject_IsTrue(arguments[0]) : 0;
    if (create_graph < 0)
        return NULL;
    if (create_graph)
        return PyObject_CallMethod(self, "_backward_with_graph", NULL);
    Value *root = (Value *)self;
    grad_writes++;
    int failed = (careful_nodes != 0 ? backward_careful(root, 0) : backward_plain(root)) < 0;
    grad_writes++; /* hand-written code may have looked in the middle of it */
    return failed ? NULL : Py_NewRef(Py_None);
}

/* ---------------------------------------------------------------- a pass that leaves no trace */

static inline void forget(Value *node)
{
    node->grad = 0.0;
    node->link &= ~MARKED;
}

/* Marks the leaves among the inputs, so that they are left out of the order, and starts their gradients at zero.
 * 1 if there is anything but leaves, 0 if not, -1: out of memory. */
static int mark_inputs(PyObject *inputs)
{
    int interior = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); i++) {
        Value *input = (Value *)PyList_GET_ITEM(inputs, i);
        if (input->grad != 0.0 && put_aside(input) < 0)
            return -1;
        if (is_leaf(input))
            input->link |= MARKED;
        else
            interior = 1;
    }
    return interior;
}

static void unmark_inputs(PyObject *inputs)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); i++)
        forget((Value *)PyList_GET_ITEM(inputs, i));
}

static int are_values(PyObject *inputs)
{
    int all = PyList_Check(inputs);
    for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(inputs); i++)
        all = is_value(PyList_GET_ITEM(inputs, i));
    if (!all)
        PyErr_SetString(PyExc_TypeError, "_gradients: expected a list of Values");
    return all;
}

/* The derivative of this node by each of a list of Values, as a list of floats; no grad is changed. None where
 * Python code would have to run: the caller then goes the long way. New. */
PyObject *backward_gradients(PyObject *self, PyObject *inputs)
{
    if (!are_values(inputs))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(inputs);
    PyObject *gradients = PyList_New(count); /* now: making it may run the collector, and with it Python code */
    if (gradients == NULL || careful_nodes != 0 || count != PyList_GET_SIZE(inputs) || !are_values(inputs)) {
        Py_XDECREF(gradients);
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    Order order = order_take();
    Value *root = (Value *)self;
    int interior = mark_inputs(inputs);
    if (interior < 0 || make_order(root, &order, TRACELESS_PASS) < 0) {
        unmark_inputs(inputs);
        put_back();
        order_give(order);
        Py_DECREF(gradients);
        no_memory();
        return NULL;
    }
    root->grad = 1.0;
    for (size_t i = order.count; i-- > 0 && interior;)
        push(order.nodes[i], 0);
    for (size_t i = order.count; i-- > 0 && !interior;) {
        push(order.nodes[i], 0);
        forget(order.nodes[i]); /* at once, while it is at hand: only leaves are going to be read */
    }
    for (Py_ssize_t i = 0; gradients != NULL && i < count; i++) {
        PyObject *gradient = PyFloat_FromDouble(((Value *)PyList_GET_ITEM(inputs, i))->grad);
        if (gradient == NULL)
            Py_CLEAR(gradients);
        else
            PyList_SET_ITEM(gradients, i, gradient);
    }
    for (size_t i = 0; interior && i < order.count; i++)
        forget(order.nodes[i]);
    unmark_inputs(inputs);
    put_back();
    order_give(order);
    return gradients;
}

/* ---------------------------------------------------------------- the order, for Python */

PyObject *backward_topological_order(PyObject *self, PyObject *unused)
{
    (void)unused;
    Order order = order_take();
    if (make_order((Value *)self, &order, SHOWING) < 0) {
        order_give(order);
        no_memory();
        return NULL;
    }
    for (size_t i = 0; i < order.count; i++) {
        order.nodes[i]->link &= ~MARKED;
        Py_INCREF(order.nodes[i]); /* making the list may run the collector, and with it Python code */
    }
    PyObject *list = PyList_New((Py_ssize_t)order.count);
    for (size_t i = 0; i < order.count; i++) {
        if (list != NULL)
            PyList_SET_ITEM(list, (Py_ssize_t)i, (PyObject *)order.nodes[i]);
        else
            Py_DECREF(order.nodes[i]);
    }
    order_give(order);
    return list;
}

/* ---------------------------------------------------------------- a graph that is cut off, for checkpoints */

/* A leaf for the time being. The gradient stays with the node, so that what is done to it meanwhile stays. */
static int cut_off(Value *node, uint64_t *link)
{
    PyObject *grad_value = kind_of(node) == MANY ? Py_XNewRef(details_of(node)->grad_value) : NULL;
    if (kind_of(node) == MANY)
        cycles_unwatch(details_of(node));
    *link = node->link;
    node->link = make_link(NULL, NO_OP, LEAF) | (node->link & COLLECTED);
    int failed = grad_value != NULL && grad_value_set(node, grad_value) < 0;
    Py_XDECREF(grad_value);
    return failed ? -1 : 0;
}

/* What it was before, but for its gradient; a label that it was given meanwhile goes. */
static int join_again(Value *node, uint64_t link)
{
    Details *meanwhile = kind_of(node) == MANY ? details_of(node) : NULL;
    PyObject *grad_value = meanwhile ? Py_XNewRef(meanwhile->grad_value) : NULL;
    if (meanwhile != NULL)
        cycles_unwatch(meanwhile);
    node->link = link;
    int failed = 0;
    if (kind_of(node) == MANY && (details_of(node)->hand_written != NULL || details_of(node)->attributes != NULL))
        failed = cycles_watch(node) < 0;
    failed |= grad_value_set(node, grad_value) < 0;
    if (meanwhile != NULL)
        details_release(meanwhile);
    Py_XDECREF(grad_value);
    return failed ? -1 : 0;
}

/* A backward pass inside the function ends at the cut nodes, and adds to their gradients as to those of leaves. New. */
PyObject *backward_cut(PyObject *unused, PyObject *args)
{
    (void)unused;
    PyObject *given, *function;
    if (!PyArg_ParseTuple(args, "OO:_cut", &given, &function))
        return NULL;
    PyObject *nodes = PySequence_Tuple(given);
    Py_ssize_t count = nodes ? PyTuple_GET_SIZE(nodes) : 0, cut = 0;
    uint64_t *links = nodes ? PyMem_RawMalloc(((size_t)count + 1) * sizeof *links) : NULL;
    if (links == NULL) {
        Py_XDECREF(nodes);
        return nodes ? PyErr_NoMemory() : NULL;
    }
    PyObject *result = NULL;
    int failed = 0;
    for (Py_ssize_t i = 0; i < count && !failed; i++) {
        failed = !is_value(PyTuple_GET_ITEM(nodes, i));
        if (failed)
            PyErr_SetString(PyExc_TypeError, "_cut: expected Values");
    }
    for (; cut < count && !failed; cut++)
        failed = cut_off((Value *)PyTuple_GET_ITEM(nodes, cut), &links[cut]) < 0;
    if (!failed)
        result = PyObject_CallNoArgs(function);
    PyObject *kind, *error, *traceback; /* the function's, if it failed */
    PyErr_Fetch(&kind, &error, &traceback);
    while (cut-- > 0) /* in reverse, in case one is there twice */
        failed |= join_again((Value *)PyTuple_GET_ITEM(nodes, cut), links[cut]) < 0;
    if (failed)
        Py_CLEAR(result);
    if (kind != NULL)
        PyErr_Restore(kind, error, traceback);
    PyMem_RawFree(links);
    Py_DECREF(nodes);
    return result;
}
