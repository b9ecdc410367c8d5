/* backward(): make the order, walk it in reverse, add local gradient times gradient to every child. Leaves hand nothing
 * on, so they are left out of it. */

#include "order.h"

/* ---------------------------------------------------------------- the walk */

/* What a node hands on to a child; in a pass as scripts write it, zero times infinity is what Python makes of it. */
static ALWAYS_INLINE double backward_handed_on(const Value *node, double local_grad, double grad, int plainly)
{
    double product = local_grad * grad;
    if (LIKELY(product == product) || plainly)
        return product;
    return value_contribution_of_nan(op_of(node), local_grad, grad);
}

/* Few branches: which kind of node comes next is hard to foretell. */
static ALWAYS_INLINE void backward_hand_on(Value *node, int plainly)
{
    enum kind kind = kind_of(node);
    double grad = node->grad;
    if (kind == LEAF)
        return;
    if (kind == MANY) {
        const Details *details = details_of(node);
        for (Py_ssize_t i = 0; i < details->count; i++)
            details->children[i]->grad += backward_handed_on(node, details->local_grads[i], grad, plainly);
        return;
    }
    first_of(node)->grad += backward_handed_on(node, node->local_grads[kind == CONSTANT_CHILD], grad, plainly);
    if (kind == TWO)
        node->second->grad += backward_handed_on(node, node->local_grads[1], grad, plainly);
}

/* Adds to a gradient that may be a Value by now: hand-written code can have made it one. The addition may run Python
 * code, so both are held. */
static int backward_add(Value *v, double given)
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

/* backward_hand_on, where gradients may be Values and local gradients may be missing. */
COLD static int backward_hand_on_carefully(Value *node)
{
    if (kind_of(node) == MANY && details_of(node)->local_count < details_of(node)->count) {
        if (Py_TYPE(node) != value_type)
            return stand_in_push_by_method(node);
        Py_XDECREF(errors_call("refuse_backward", (PyObject *)node));
        return -1;
    }
    enum kind kind = kind_of(node);
    int plainly = Py_TYPE(node) != value_type && stand_in_is(Py_TYPE(node));
    double grad = gradient_of(node), local_grad;
    if (kind == CHILD_CONSTANT || kind == CONSTANT_CHILD) {
        node->link |= PUSHED;
        local_grad = node->local_grads[kind == CONSTANT_CHILD];
        return backward_add(first_of(node), backward_handed_on(node, local_grad, grad, plainly));
    }
    for (Py_ssize_t i = 0; i < value_child_count(node); i++) {
        Value *child = value_child(node, i, &local_grad);
        if (backward_add(child, backward_handed_on(node, local_grad, grad, plainly)) < 0)
            return -1;
    }
    return 0;
}

/* A pass reads and sets the gradients of all nodes below: who wants to know of that is told before it begins. */
COLD static int backward_tell(PyObject *root)
{
    modes_look();
    PyObject *order = modes.on_read != NULL ? order_topological(root, NULL) : NULL;
    int failed = order == NULL ? PyErr_Occurred() != NULL : modes_read_all(order) < 0;
    Py_XDECREF(order);
    return failed ? -1 : 0;
}

static inline int backward_may(PyObject *root) { return !(modes_in_use & MODES_READ) || backward_tell(root) == 0; }

PyObject *backward_push(PyObject *self, PyObject *unused)
{
    (void)unused;
    grad_writes++;
    if (modes_in_use & MODES_READ && modes_read(self, "") < 0)
        return NULL;
    if (value_show_constant((Value *)self) < 0)
        return NULL;
    if (Py_TYPE(self) != value_type && stand_in_is(Py_TYPE(self))) {
        stand_in_read_late((Value *)self);
        stand_in_push_ints((Value *)self);
    }
    if (backward_hand_on_carefully((Value *)self) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Nothing in the graph can fail or run Python code. */
static int backward_plain(Value *root)
{
    Order order = order_take();
    if (order_make(root, &order, PLAIN_PASS) < 0) {
        order_give(order);
        return order_no_memory();
    }
    root->grad += 1.0;
    for (size_t i = order.count; i-- > 0;) {
        Value *node = order.nodes[i];
        node->link = (node->link & ~MARKED) | PUSHED;
        backward_hand_on(node, 0);
    }
    order_give(order);
    return 0;
}

static void backward_start_afresh(Value *node)
{
    node->grad = !is_leaf(node) || node->link & CONSTANT ? 0.0 : gradient_of(node);
    cycles_set_grad_value(node, NULL);
}

static int backward_push_by_hand(Value *node)
{
    if (kind_of(node) != MANY || details_of(node)->hand_written == NULL) {
        if (Py_TYPE(node) != value_type) {
            stand_in_read_late(node);
            stand_in_push_ints(node);
        }
        return backward_hand_on_carefully(node);
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
    uint64_t pushed;
} Kept;

/* Some node somewhere has a hand-written _backward, which may raise, or a Value as its gradient: every gradient is
 * kept before the walk, and put back if it fails. */
static int backward_walk_carefully(Value *root, int keeping)
{
    Order order = order_take();
    int failed = order_make(root, &order, CAREFUL_PASS) < 0;
    if (!failed)
        order_unmark(&order); /* before any Python code runs: it may call backward() on these nodes */
    Kept *kept = failed ? NULL : PyMem_RawMalloc((order.count + 1) * sizeof *kept);
    if (kept == NULL) {
        order_give(order);
        return order_no_memory();
    }
    for (size_t i = 0; i < order.count; i++) {
        Value *node = order.nodes[i];
        Py_INCREF(node); /* hand-written code may call __init__ on a node, and drop its children */
        kept[i].grad = node->grad;
        kept[i].pushed = node->link & PUSHED;
        kept[i].grad_value = kind_of(node) == MANY ? details_of(node)->grad_value : NULL;
        Py_XINCREF(kept[i].grad_value);
    }
    for (size_t i = 0; i < order.count && !keeping; i++) {
        backward_start_afresh(order.nodes[i]);
        order.nodes[i]->link &= ~PUSHED; /* a number beside a child, too: it may be shown in the middle of the pass */
    }
    if (keeping)
        stand_in_seed(root);
    else
        root->grad += 1.0;
    for (size_t i = order.count; i-- > 0 && !failed;)
        failed = backward_push_by_hand(order.nodes[i]) < 0;
    for (size_t i = 0; i < order.count && failed; i++) {
        order.nodes[i]->grad = kept[i].grad;
        order.nodes[i]->link |= kept[i].pushed;
        cycles_set_grad_value(order.nodes[i], kept[i].grad_value);
    }
    for (size_t i = 0; i < order.count; i++) { /* when all are as they stay: it may run Python code */
        Py_XDECREF(kept[i].grad_value);
        Py_DECREF(order.nodes[i]);
    }
    PyMem_RawFree(kept);
    order_give(order);
    return failed ? -1 : 0;
}

static PyObject *name_release; /* made before there is anything to release: that has to work where memory ends */

/* passes.THE_PASS.lock, waited for and taken: new, for backward_pass_leave. NULL with an exception set. */
COLD PyObject *backward_pass_wait(void)
{
    static PyObject *the_pass; /* whose lock is another one after a fork */
    if (name_release == NULL && (name_release = PyUnicode_InternFromString("release")) == NULL)
        return NULL;
    if (the_pass == NULL) {
        PyObject *passes = PyImport_ImportModule("gradwalk.passes");
        the_pass = passes ? PyObject_GetAttrString(passes, "THE_PASS") : NULL;
        Py_XDECREF(passes);
    }
    PyObject *lock = the_pass ? PyObject_GetAttrString(the_pass, "lock") : NULL;
    PyObject *acquired = lock ? PyObject_CallMethod(lock, "acquire", NULL) : NULL;
    if (acquired == NULL)
        Py_CLEAR(lock);
    Py_XDECREF(acquired);
    return lock;
}

/* Steals the lock. */
COLD void backward_pass_leave(PyObject *lock)
{
    PyObject *kind, *error, *traceback; /* of what was done, if it failed: releasing must not see it */
    PyErr_Fetch(&kind, &error, &traceback);
    PyObject *released = PyObject_CallMethodNoArgs(lock, name_release);
    Py_XDECREF(released);
    Py_DECREF(lock);
    if (released == NULL)
        PyErr_Clear(); /* forked inside: the child has another lock by now */
    PyErr_Restore(kind, error, traceback);
}

/* Hand-written code may let another thread run in the middle of the walk; the lock keeps its walk for later. It is
 * re-entrant, because that code may call backward() itself. */
COLD static int backward_careful(Value *root, int keeping)
{
    PyObject *lock = backward_pass_wait();
    if (lock == NULL)
        return -1;
    int failed = backward_walk_carefully(root, keeping) < 0;
    backward_pass_leave(lock);
    return failed ? -1 : 0;
}

/* A pass as both families of scripts write it: nothing starts afresh but the root, whose gradient is 1. */
static int backward_walk_keeping(Value *root)
{
    Order order = order_take();
    if (order_make(root, &order, KEEPING_PASS) < 0) {
        order_give(order);
        return order_no_memory();
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
        stand_in_read_late(node);
        backward_hand_on(node, 1);
        stand_in_push_ints(node);
    }
    order_give(order);
    return failed ? -1 : 0;
}

PyObject *backward_keeping(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (!backward_may(self))
        return NULL;
    grad_writes++;
    int failed = (careful_nodes != 0 ? backward_careful((Value *)self, 1) : backward_walk_keeping((Value *)self)) < 0;
    grad_writes++;
    return failed ? NULL : Py_NewRef(Py_None);
}

PyObject *backward_run(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
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
    if (!backward_may(self))
        return NULL;
    Value *root = (Value *)self;
    grad_writes++;
    int failed = (careful_nodes != 0 ? backward_careful(root, 0) : backward_plain(root)) < 0;
    grad_writes++; /* hand-written code may have looked in the middle of it */
    return failed ? NULL : Py_NewRef(Py_None);
}

/* ---------------------------------------------------------------- a pass that leaves no trace */

static inline void backward_forget(Value *node)
{
    node->grad = 0.0;
    node->link &= ~MARKED;
}

/* Marks the leaves among the inputs, so that they are left out of the order, and starts their gradients at zero.
 * 1 if there is anything but leaves, 0 if not, -1: out of memory. */
static int backward_mark_inputs(PyObject *inputs)
{
    int interior = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); i++) {
        Value *input = (Value *)PyList_GET_ITEM(inputs, i);
        if (input->grad != 0.0 && order_put_aside(input) < 0)
            return -1;
        if (is_leaf(input))
            input->link |= MARKED;
        else
            interior = 1;
    }
    return interior;
}

static void backward_unmark_inputs(PyObject *inputs)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); i++)
        backward_forget((Value *)PyList_GET_ITEM(inputs, i));
}

static int backward_are_values(PyObject *inputs)
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
    if (!backward_are_values(inputs) || !backward_may(self))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(inputs);
    PyObject *gradients = PyList_New(count); /* now: making it may run the collector, and with it Python code */
    if (gradients == NULL || careful_nodes != 0 || count != PyList_GET_SIZE(inputs) || !backward_are_values(inputs)) {
        Py_XDECREF(gradients);
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    Order order = order_take();
    Value *root = (Value *)self;
    int interior = backward_mark_inputs(inputs);
    if (interior < 0 || order_make(root, &order, TRACELESS_PASS) < 0) {
        for (Py_ssize_t i = 0; i < count; i++) /* their gradients stay: not all may have been put aside */
            ((Value *)PyList_GET_ITEM(inputs, i))->link &= ~MARKED;
        order_put_back();
        order_give(order);
        Py_DECREF(gradients);
        order_no_memory();
        return NULL;
    }
    root->grad = 1.0;
    for (size_t i = order.count; i-- > 0 && interior;)
        backward_hand_on(order.nodes[i], 0);
    for (size_t i = order.count; i-- > 0 && !interior;) {
        backward_hand_on(order.nodes[i], 0);
        backward_forget(order.nodes[i]); /* at once, while it is at hand: only leaves are going to be read */
    }
    for (Py_ssize_t i = 0; gradients != NULL && i < count; i++) {
        PyObject *gradient = PyFloat_FromDouble(((Value *)PyList_GET_ITEM(inputs, i))->grad);
        if (gradient == NULL)
            Py_CLEAR(gradients);
        else
            PyList_SET_ITEM(gradients, i, gradient);
    }
    for (size_t i = 0; interior && i < order.count; i++)
        backward_forget(order.nodes[i]);
    backward_unmark_inputs(inputs);
    order_put_back();
    order_give(order);
    return gradients;
}
