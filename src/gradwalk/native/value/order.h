/* The order of a backward pass: left-first, depth-first, each node after its children, as in the reference engine.
 *
 * A bit in the node says that it has been reached; an explicit stack, not the C stack, remembers the path. It is made
 * here, and not in order.c, because it is compiled once for each purpose. */

#ifndef GRADWALK_ORDER_H
#define GRADWALK_ORDER_H

#include "value.h"

typedef struct {
    Value **nodes;
    size_t count, room;
} Order;

extern Order order_spare_path; /* kept between passes */

INTERNAL Order order_take(void);
INTERNAL void order_give(Order order);
INTERNAL void order_unmark(const Order *order);
INTERNAL int order_no_memory(void); /* -1 */
INTERNAL Order order_grown(Order order);
INTERNAL void order_give_up(const Order *order, Value *node, Value *child); /* takes the marks away */

/* Gradients put aside during a pass that leaves no trace. */
INTERNAL int order_put_aside(Value *node);
INTERNAL void order_put_back(void);

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

enum order_for {
    KEEPING_PASS, /* interior nodes only; nothing is changed */
    PLAIN_PASS,   /* interior nodes only; gradients that start afresh are set to zero on the way */
    TRACELESS_PASS, /* what is marked already is not entered; every gradient is put aside and starts at zero */
    CAREFUL_PASS, /* leaves as well; nothing is changed */
    SHOWING,      /* leaves as well, and plain numbers are shown as leaves */
};

/* Whether to descend into a node: 1 for an interior node reached for the first time. A leaf has nothing below it
 * and takes its place in the order at once, where leaves are wanted. -1: out of memory, with no exception set yet. */
static ALWAYS_INLINE int order_enter(Value *node, Order *order, enum order_for purpose)
{
    if (purpose == TRACELESS_PASS && node->link & MARKED) /* first: it saves looking further */
        return 0;
    enum kind kind = kind_of(node);
    int leaf = is_leaf(node);
    if (leaf && purpose <= PLAIN_PASS) {
        if (purpose == PLAIN_PASS && node->link & CONSTANT)
            node->grad = 0.0;
        return 0;
    }
    if (node->link & MARKED)
        return 0;
    if (purpose == SHOWING && value_show_constant(node) < 0)
        return -1;
    if (purpose == TRACELESS_PASS && node->grad != 0.0 && order_put_aside(node) < 0)
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

/* Every node in the order is left marked; none if it fails, which order_no_memory() is then to tell. */
static ALWAYS_INLINE int order_make(Value *root, Order *result, enum order_for purpose)
{
    Order made = *result, way = order_spare_path; /* copies, which live in registers */
    Order *order = &made, *path = &way;
    Value *node = root, *child = root;
    path->count = 0;
    int entered = order_enter(root, order, purpose);
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
        entered = order_enter(child, order, purpose);
        if (entered > 0) {
            if (order_push(path, (Value *)((uintptr_t)node | SECOND_LEFT)) < 0)
                goto failed;
            break;
        }
        child = node->second;
        if (entered == 0)
            entered = order_enter(child, order, purpose);
        if (entered > 0 && order_push(path, node) < 0)
            goto failed;
        break;
    case MANY:
        if (order_push(path, node) < 0)
            goto failed;
        goto ascend;
    case ONE:
    case ONE_NUMBER:
    case CHILD_CONSTANT:
    case CONSTANT_CHILD:
        child = first_of(node);
        entered = order_enter(child, order, purpose);
        if (entered > 0 && order_push(path, node) < 0)
            goto failed;
        break;
    case LEAF: /* is not entered */
    default: Py_UNREACHABLE();
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
            entered = order_enter(child, order, purpose);
        }
        else if (kind_of(node) == MANY) {
            Details *details = details_of(node);
            while (entered == 0 && details->cursor < details->count) {
                child = details->children[details->cursor++];
                entered = order_enter(child, order, purpose);
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
    order_spare_path = way;
    return 0;
failed:
    *result = made;
    order_spare_path = way;
    order_give_up(result, node, child);
    return -1;
}

#endif
