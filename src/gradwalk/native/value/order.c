/* Memory for the order of a backward pass, and the order as Python sees it. */

#include "order.h"

/* Kept between passes, so that a training loop does not ask for the same memory again and again. */
#define ORDER_KEPT (UINT64_C(1) << 20)
static Order spare_order;
Order order_spare_path;

/* Raised when marks are taken away and gradients put back: making an exception may run the collector, and with it
 * Python code. */
INTERNAL int order_no_memory(void)
{
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    return -1;
}

/* By value, so that a caller's Order can live in registers. nodes is NULL if there is no memory. */
COLD INTERNAL NEVER_INLINE Order order_grown(Order order)
{
    order.room = order.room ? order.room * 2 : 1024;
    order.nodes = PyMem_RawRealloc(order.nodes, order.room * sizeof *order.nodes);
    return order;
}

INTERNAL Order order_take(void)
{
    Order order = spare_order; /* a nested backward() finds none and makes its own */
    spare_order = (Order){NULL, 0, 0};
    order.count = 0;
    return order;
}

INTERNAL void order_give(Order order)
{
    if (spare_order.nodes == NULL && order.room <= ORDER_KEPT)
        spare_order = order;
    else
        PyMem_RawFree(order.nodes);
    if (order_spare_path.room > ORDER_KEPT) {
        PyMem_RawFree(order_spare_path.nodes);
        order_spare_path = (Order){NULL, 0, 0};
    }
}

COLD INTERNAL void order_unmark(const Order *order)
{
    for (size_t i = 0; i < order->count; i++)
        order->nodes[i]->link &= ~MARKED;
}

COLD INTERNAL void order_give_up(const Order *order, Value *node, Value *child)
{
    node->link &= ~MARKED;
    child->link &= ~MARKED;
    order_unmark(order);
    for (size_t i = 0; i < order_spare_path.count; i++)
        NODE(order_spare_path.nodes[i])->link &= ~MARKED;
}

/* ---------------------------------------------------------------- gradients put aside */

typedef struct {
    Value *node;
    double grad;
} PutAside;

/* During one traceless pass, which runs no Python code: most nodes are fresh, so most gradients are zero anyway. */
static PutAside *aside;
static size_t aside_count, aside_room;

INTERNAL NEVER_INLINE int order_put_aside(Value *node)
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

INTERNAL void order_put_back(void)
{
    while (aside_count > 0) {
        aside_count--;
        aside[aside_count].node->grad = aside[aside_count].grad;
    }
}

/* ---------------------------------------------------------------- the order, for Python */

COLD PyObject *order_topological(PyObject *self, PyObject *unused)
{
    (void)unused;
    Order order = order_take();
    if (order_make((Value *)self, &order, SHOWING) < 0) {
        order_give(order);
        order_no_memory();
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

