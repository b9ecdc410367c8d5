/* The Value type: making, showing and freeing nodes. */

#include "value.h"

PyTypeObject *value_type;
PyObject value_header;
Py_ssize_t careful_nodes;

static PyObject *name_data, *name_grad;

/* ---------------------------------------------------------------- making nodes */

Value *value_leaf(double data)
{
    Value *v = value_blank();
    if (v == NULL)
        return NULL;
    v->data = data;
    v->link = make_link(NULL, NO_OP, LEAF);
    return v;
}

Value *value_constant(double data)
{
    Value *v = value_leaf(data);
    if (v != NULL)
        v->link |= CONSTANT;
    return v;
}

static Details *new_details(Py_ssize_t count)
{
    Details *details = PyMem_Malloc(sizeof(Details) + (size_t)count * (sizeof(Value *) + sizeof(double)));
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

static void attach_details(Value *v, Details *details, unsigned op)
{
    uint64_t flags = v->link & (COLLECTED | CONSTANT | MARKED);
    v->link = make_link(details, op, MANY) | flags;
}

Value *value_many(unsigned op, double data, Py_ssize_t count)
{
    Details *details = new_details(count);
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

int value_show_constant(Value *v)
{
    enum kind kind = kind_of(v);
    if (kind != CHILD_CONSTANT && kind != CONSTANT_CHILD)
        return 0;
    Value *constant = value_constant(v->number);
    if (constant == NULL)
        return -1;
    int right = kind == CHILD_CONSTANT;
    if (v->grad != 0.0) /* what the last backward() would have added, had the constant been a node by then */
        constant->grad += v->local_grads[right] * v->grad;
    Value *child = first_of(v);
    uint64_t flags = v->link & (COLLECTED | CONSTANT | MARKED);
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
    Details *details = new_details(count);
    if (details == NULL)
        return NULL;
    if (kind_of(v) == ONE_NUMBER)
        details->parameters[0] = v->number;
    for (Py_ssize_t i = 0; i < count; i++)
        details->children[i] = value_child(v, i, &details->local_grads[i]);
    attach_details(v, details, op_of(v));
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

static void release_details(Details *details)
{
    for (Py_ssize_t i = 0; i < details->count; i++)
        release_child(details->children[i]);
    careful_nodes -= (details->hand_written != NULL) + (details->grad_value != NULL);
    Py_XDECREF(details->label);
    Py_XDECREF(details->op);
    Py_XDECREF(details->hand_written);
    Py_XDECREF(details->grad_value);
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

static void value_dealloc(PyObject *self)
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
            release_details(details_of(v));
            break;
        }
        value_free(v);
    }
    is_freeing = 0;
}

/* ---------------------------------------------------------------- the cycle collector
 * Nodes from operations cannot be part of a cycle, and the collector never sees them. A node made by hand holds a
 * closure that holds the node: such nodes, and instances of subclasses, are allocated with a collector header. */

static int value_is_gc(PyObject *self)
{
    return (((Value *)self)->link & COLLECTED) != 0 || Py_TYPE(self) != value_type;
}

static int value_traverse(PyObject *self, visitproc visit, void *arg)
{
    Value *v = (Value *)self;
    Py_VISIT(Py_TYPE(self));
    if (kind_of(v) == MANY) {
        Details *details = details_of(v);
        for (Py_ssize_t i = 0; i < details->count; i++)
            Py_VISIT(details->children[i]);
        Py_VISIT(details->hand_written);
        Py_VISIT(details->grad_value);
    }
    return 0;
}

static void set_careful(PyObject **place, PyObject *object)
{
    careful_nodes += (object != NULL) - (*place != NULL);
    Py_XINCREF(object);
    Py_XSETREF(*place, object);
}

static int value_clear(PyObject *self)
{
    Value *v = (Value *)self;
    if (kind_of(v) == MANY) {
        set_careful(&details_of(v)->hand_written, NULL);
        set_careful(&details_of(v)->grad_value, NULL);
    }
    return 0;
}

/* ---------------------------------------------------------------- Value(...) */

static int fill_children(Details *details, PyObject *children)
{
    PyObject **items = PySequence_Fast_ITEMS(children);
    for (Py_ssize_t i = 0; i < details->count; i++) {
        if (is_value(items[i])) {
            Py_INCREF(items[i]);
            details->children[i] = (Value *)items[i];
            continue;
        }
        double number;
        if (number_from(items[i], "Value", NULL, &number) < 0
            || (details->children[i] = value_constant(number)) == NULL) {
            details->count = i;
            return -1;
        }
    }
    return 0;
}

static int fill_local_grads(Details *details, PyObject *local_grads)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(local_grads);
    details->local_count = count;
    for (Py_ssize_t i = 0; i < count && i < details->count; i++) {
        if (number_from(PySequence_Fast_GET_ITEM(local_grads, i), "Value", NULL, &details->local_grads[i]) < 0)
            return -1;
    }
    if (count != 0 && count != details->count) {
        PyErr_Format(PyExc_ValueError, "Value: expected one local gradient per child, got %zd for %zd", count,
                     details->count);
        return -1;
    }
    return 0;
}

/* New Details for Value(data, children, ...); NULL with an exception set. */
static Details *details_from(PyObject *children, PyObject *local_grads, PyObject *op, PyObject *label)
{
    PyObject *child_items = PySequence_Fast(children, "Value: expected a tuple of children");
    if (child_items == NULL)
        return NULL;
    PyObject *local_items = PySequence_Fast(local_grads, "Value: expected a tuple of local gradients");
    Details *details = local_items ? new_details(PySequence_Fast_GET_SIZE(child_items)) : NULL;
    if (details != NULL && (fill_children(details, child_items) < 0 || fill_local_grads(details, local_items) < 0)) {
        release_details(details);
        details = NULL;
    }
    if (details != NULL) {
        Py_XINCREF(op);
        details->op = op;
        Py_XINCREF(label);
        details->label = label;
    }
    Py_DECREF(child_items);
    Py_XDECREF(local_items);
    return details;
}

static int is_empty(PyObject *object)
{
    return object == NULL || PyObject_Size(object) == 0;
}

/* The constructor's work. *target is filled if given (a subclass instance), else made. */
static Value *value_construct(PyObject *args, PyObject *kwargs, Value *target)
{
    static char *names[] = {"data", "_children", "_op", "label", "children", "local_grads", NULL};
    PyObject *data, *children = NULL, *op = NULL, *label = NULL, *more_children = NULL, *local_grads = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOU$OO:Value", names, &data, &children, &op, &label,
                                     &more_children, &local_grads))
        return NULL;
    if (!is_empty(more_children))
        children = more_children;
    if (op != NULL && !PyUnicode_Check(op)) {
        /* the microgpt family passes local gradients where micrograd passes the op */
        local_grads = op;
        op = NULL;
    }
    int with_details = !is_empty(children) || !is_empty(local_grads) || !is_empty(op) || !is_empty(label);
    if (PyErr_Occurred())
        return NULL;
    Details *details = NULL;
    if (with_details) {
        PyObject *none = PyTuple_New(0);
        details = details_from(children ? children : none, local_grads ? local_grads : none, is_empty(op) ? NULL : op,
                               is_empty(label) ? NULL : label);
        Py_DECREF(none);
        if (details == NULL)
            return NULL;
    }
    double number;
    if (number_from(data, "data", NULL, &number) < 0)
        goto failed;
    Value *v = target;
    if (v == NULL) {
        if (details != NULL && details->count > 0) {
            v = PyObject_GC_New(Value, value_type);
            if (v != NULL) {
                v->link = make_link(NULL, NO_OP, LEAF) | COLLECTED;
                v->grad = 0.0;
            }
        }
        else {
            v = value_leaf(0.0);
        }
        if (v == NULL)
            goto failed;
    }
    v->data = number;
    if (details != NULL) {
        if (kind_of(v) == MANY)
            release_details(details_of(v));
        attach_details(v, details, NO_OP);
    }
    if (target == NULL && (v->link & COLLECTED))
        PyObject_GC_Track(v);
    return v;
failed:
    if (details != NULL)
        release_details(details);
    return NULL;
}

static PyObject *value_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (type == value_type)
        return (PyObject *)value_construct(args, kwargs, NULL);
    Value *v = (Value *)type->tp_alloc(type, 0);
    if (v != NULL)
        v->link = make_link(NULL, NO_OP, LEAF) | COLLECTED;
    return (PyObject *)v;
}

static int value_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    if (Py_TYPE(self) == value_type)
        return 0; /* value_new did it all */
    return value_construct(args, kwargs, (Value *)self) == NULL ? -1 : 0;
}

/* Value(3.0) without a tuple of arguments; everything else goes the long way. New. */
static PyObject *value_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    if (count == 1 && names == NULL && (PyFloat_CheckExact(args[0]) || PyLong_CheckExact(args[0]))) {
        double number;
        if (number_from(args[0], "data", NULL, &number) < 0)
            return NULL;
        return (PyObject *)value_leaf(number);
    }
    PyObject *positional = PyTuple_New(count);
    if (positional == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_INCREF(args[i]);
        PyTuple_SET_ITEM(positional, i, args[i]);
    }
    PyObject *keywords = NULL;
    if (names != NULL) {
        keywords = PyDict_New();
        for (Py_ssize_t i = 0; keywords != NULL && i < PyTuple_GET_SIZE(names); i++) {
            if (PyDict_SetItem(keywords, PyTuple_GET_ITEM(names, i), args[count + i]) < 0)
                Py_CLEAR(keywords);
        }
        if (keywords == NULL) {
            Py_DECREF(positional);
            return NULL;
        }
    }
    PyObject *made = value_new((PyTypeObject *)type, positional, keywords);
    Py_DECREF(positional);
    Py_XDECREF(keywords);
    return made;
}

/* ---------------------------------------------------------------- attributes */

static PyObject *value_grad(Value *v)
{
    if (careful_nodes != 0 && kind_of(v) == MANY && details_of(v)->grad_value != NULL) {
        Py_INCREF(details_of(v)->grad_value);
        return details_of(v)->grad_value;
    }
    return PyFloat_FromDouble(v->grad);
}

static int set_data(Value *v, PyObject *given)
{
    return number_from(given, "data", NULL, &v->data) < 0 ? -1 : 0;
}

static int set_grad(Value *v, PyObject *given)
{
    if (is_value(given)) {
        Details *details = value_details(v);
        if (details == NULL)
            return -1;
        v->grad = ((Value *)given)->data;
        set_careful(&details->grad_value, given);
        return 0;
    }
    double number;
    if (number_from(given, "grad", NULL, &number) < 0)
        return -1;
    if (careful_nodes != 0 && kind_of(v) == MANY && details_of(v)->grad_value != NULL)
        set_careful(&details_of(v)->grad_value, NULL);
    v->grad = number;
    return 0;
}

/* data and grad are written in every training loop: they skip the type's dictionary. Reading goes the ordinary way,
 * because a tp_getattro of our own would keep the interpreter from its short cut for method calls. */
static int value_setattro(PyObject *self, PyObject *name, PyObject *given)
{
    if (given != NULL) {
        if (name == name_data)
            return set_data((Value *)self, given);
        if (name == name_grad)
            return set_grad((Value *)self, given);
    }
    return PyObject_GenericSetAttr(self, name, given);
}

static PyObject *get_data(PyObject *self, void *closure)
{
    (void)closure;
    return PyFloat_FromDouble(((Value *)self)->data);
}

static PyObject *get_grad(PyObject *self, void *closure)
{
    (void)closure;
    return value_grad((Value *)self);
}

static int refuse_deletion(PyObject *given, const char *name)
{
    if (given == NULL)
        PyErr_Format(PyExc_AttributeError, "%s: a Value always has one, it cannot be deleted", name);
    return given == NULL;
}

static int put_data(PyObject *self, PyObject *given, void *closure)
{
    (void)closure;
    return refuse_deletion(given, "data") ? -1 : set_data((Value *)self, given);
}

static int put_grad(PyObject *self, PyObject *given, void *closure)
{
    (void)closure;
    return refuse_deletion(given, "grad") ? -1 : set_grad((Value *)self, given);
}

PyObject *value_label(Value *v)
{
    if (kind_of(v) == MANY && details_of(v)->label != NULL) {
        Py_INCREF(details_of(v)->label);
        return details_of(v)->label;
    }
    return PyUnicode_FromString("");
}

static PyObject *get_label(PyObject *self, void *closure)
{
    (void)closure;
    return value_label((Value *)self);
}

static int put_label(PyObject *self, PyObject *given, void *closure)
{
    (void)closure;
    if (refuse_deletion(given, "label"))
        return -1;
    if (!PyUnicode_Check(given)) {
        PyErr_Format(PyExc_TypeError, "label: expected a string, got %R", given);
        return -1;
    }
    Details *details = value_details((Value *)self);
    if (details == NULL)
        return -1;
    Py_INCREF(given);
    Py_XSETREF(details->label, given);
    return 0;
}

PyObject *value_children(PyObject *self, void *closure)
{
    (void)closure;
    Value *v = (Value *)self;
    if (value_show_constant(v) < 0)
        return NULL;
    Py_ssize_t count = value_child_count(v);
    PyObject *children = PyTuple_New(count);
    if (children == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        double local_grad;
        PyObject *child = (PyObject *)value_child(v, i, &local_grad);
        Py_INCREF(child);
        PyTuple_SET_ITEM(children, i, child);
    }
    return children;
}

static PyObject *get_prev(PyObject *self, void *closure)
{
    PyObject *children = value_children(self, closure);
    if (children == NULL)
        return NULL;
    PyObject *set = PySet_New(children);
    Py_DECREF(children);
    return set;
}

static PyObject *get_local_grads(PyObject *self, void *closure)
{
    (void)closure;
    Value *v = (Value *)self;
    if (value_show_constant(v) < 0)
        return NULL;
    Py_ssize_t count = kind_of(v) == MANY ? details_of(v)->local_count : value_child_count(v);
    PyObject *local_grads = PyTuple_New(count);
    if (local_grads == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        double local_grad;
        value_child(v, i, &local_grad);
        PyObject *number = PyFloat_FromDouble(local_grad);
        if (number == NULL) {
            Py_DECREF(local_grads);
            return NULL;
        }
        PyTuple_SET_ITEM(local_grads, i, number);
    }
    return local_grads;
}

const char *value_op_name(const Value *v)
{
    unsigned op = op_of(v);
    return op < OP_COUNT ? op_names[op] : op < NO_OP ? composite_names[op - OP_COUNT] : "";
}

static PyObject *get_name(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(value_op_name((Value *)self));
}

static double first_parameter(Value *v)
{
    return kind_of(v) == MANY ? details_of(v)->parameters[0] : v->number;
}

static PyObject *get_op(PyObject *self, void *closure)
{
    Value *v = (Value *)self;
    if (kind_of(v) == MANY && details_of(v)->op != NULL) {
        Py_INCREF(details_of(v)->op);
        return details_of(v)->op;
    }
    unsigned op = op_of(v);
    if (op == OP_pow_number) {
        char text[40];
        PyOS_snprintf(text, sizeof text, "**%.17g", first_parameter(v));
        return PyUnicode_FromString(text);
    }
    return op < OP_COUNT ? PyUnicode_FromString(op_symbols[op]) : get_name(self, closure);
}

static PyObject *get_parameters(PyObject *self, void *closure)
{
    (void)closure;
    Value *v = (Value *)self;
    double parameters[2] = {0.0, 0.0};
    if (kind_of(v) == MANY)
        memcpy(parameters, details_of(v)->parameters, sizeof parameters);
    else if (kind_of(v) == ONE_NUMBER)
        parameters[0] = v->number;
    switch (op_of(v)) {
    case COMPOSITE_rmsnorm:
    case COMPOSITE_layernorm:
        return Py_BuildValue("(nd)", (Py_ssize_t)parameters[0], parameters[1]);
    case COMPOSITE_softmax:
    case COMPOSITE_log_softmax:
    case COMPOSITE_cross_entropy:
    case COMPOSITE_take:
        return Py_BuildValue("(n)", (Py_ssize_t)parameters[0]);
    default: {
        unsigned count = op_of(v) < OP_COUNT ? op_parameters[op_of(v)] : 0;
        return count == 0 ? PyTuple_New(0)
             : count == 1 ? Py_BuildValue("(d)", parameters[0])
                          : Py_BuildValue("(dd)", parameters[0], parameters[1]);
    }
    }
}

static PyObject *get_constant(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong((((Value *)self)->link & CONSTANT) != 0);
}

static PyObject *get_backward(PyObject *self, void *closure)
{
    (void)closure;
    Value *v = (Value *)self;
    if (kind_of(v) == MANY && details_of(v)->hand_written != NULL) {
        Py_INCREF(details_of(v)->hand_written);
        return details_of(v)->hand_written;
    }
    return PyObject_GetAttrString(self, "_push");
}

static int put_backward(PyObject *self, PyObject *given, void *closure)
{
    (void)closure;
    if (refuse_deletion(given, "_backward"))
        return -1;
    if (!PyCallable_Check(given)) {
        PyErr_Format(PyExc_TypeError, "_backward: expected a function without arguments, got %R", given);
        return -1;
    }
    Details *details = value_details((Value *)self);
    if (details == NULL)
        return -1;
    set_careful(&details->hand_written, given);
    return 0;
}

static PyGetSetDef value_getset[] = {
    {"data", get_data, put_data, "The number.", NULL},
    {"grad", get_grad, put_grad, "How much the result of the last backward() changes with this number.", NULL},
    {"label", get_label, put_label, "A name to recognise the node by.", NULL},
    {"_children", value_children, NULL, "What this node was computed from, in order.", NULL},
    {"_local_grads", get_local_grads, NULL, "The derivative by each child, taken at forward time.", NULL},
    {"_prev", get_prev, NULL, "The children as a set, as in micrograd.", NULL},
    {"_op", get_op, NULL, "The operation as it is written: '+', 'ReLU', '**3'.", NULL},
    {"_name", get_name, NULL, "The operation's name in the table; '' for leaves and nodes made by hand.", NULL},
    {"_parameters", get_parameters, NULL, "The numbers the operation was given besides its children.", NULL},
    {"_constant", get_constant, NULL, "Whether this leaf is a plain number somebody computed with.", NULL},
    {"_backward", get_backward, put_backward, "Pushes this node's gradient to its children; assignable.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---------------------------------------------------------------- the rest of the protocol */

static PyObject *value_repr(PyObject *self)
{
    PyObject *label = value_label((Value *)self);
    PyObject *data = get_data(self, NULL);
    PyObject *grad = get_grad(self, NULL);
    PyObject *text = NULL;
    if (label && data && grad) {
        if (PyUnicode_GET_LENGTH(label) > 0)
            text = PyUnicode_FromFormat("Value(data=%R, grad=%R, label=%R)", data, grad, label);
        else
            text = PyUnicode_FromFormat("Value(data=%R, grad=%R)", data, grad);
    }
    Py_XDECREF(label);
    Py_XDECREF(data);
    Py_XDECREF(grad);
    return text;
}

static PyObject *value_richcompare(PyObject *self, PyObject *other, int comparison)
{
    if (comparison == Py_EQ || comparison == Py_NE)
        Py_RETURN_NOTIMPLEMENTED; /* Python then compares identities */
    double left = ((Value *)self)->data, right;
    int known = number_from(other, "compare", (Value *)self, &right);
    if (known < 0)
        return NULL;
    if (known == 0)
        Py_RETURN_NOTIMPLEMENTED;
    Py_RETURN_RICHCOMPARE(left, right, comparison);
}

static Py_hash_t value_hash(PyObject *self)
{
    Py_hash_t hash = (Py_hash_t)((uintptr_t)self >> 6); /* nodes lie on 64-byte boundaries */
    return hash == -1 ? -2 : hash;
}

static PyMethodDef value_methods[] = {
    {"backward", (PyCFunction)(void (*)(void))backward, METH_FASTCALL | METH_KEYWORDS,
     "backward($self, create_graph=False)\n--\n\n"
     "Add to the grad of every leaf the derivative of this Value with respect to it."},
    {"_push", backward_push, METH_NOARGS, "Hand this node's gradient on to its children."},
    {"_topological_order", backward_topological_order, METH_NOARGS,
     "Every node reachable from this one, each after all of its children."},
    {"_apply", (PyCFunction)(void (*)(void))record_apply, METH_FASTCALL,
     "_apply($self, name, /, *arguments)\n--\n\nRun one row of the table on Values and numbers, and record it."},
    {NULL, NULL, 0, NULL},
};

static PyObject *refuse_float(PyObject *self)
{
    return errors_call("refuse_conversion", self);
}

int value_type_ready(PyObject *module)
{
    PyType_Slot own[] = {
        {Py_tp_doc, "A number that remembers how it was made, so that backward() can tell how it depends on its "
                    "inputs."},
        {Py_tp_new, value_new},
        {Py_tp_init, value_init},
        {Py_tp_dealloc, value_dealloc},
        {Py_tp_is_gc, value_is_gc},
        {Py_tp_traverse, value_traverse},
        {Py_tp_clear, value_clear},
        {Py_tp_repr, value_repr},
        {Py_tp_richcompare, value_richcompare},
        {Py_tp_hash, value_hash},
        {Py_tp_setattro, value_setattro},
        {Py_tp_getset, value_getset},
        {Py_tp_methods, value_methods},
        {Py_nb_float, refuse_float},
        {Py_nb_int, refuse_float},
    };
    enum { OWN = sizeof own / sizeof own[0], MOST = OWN + 16 };
    PyType_Slot slots[MOST];
    int used = 0;
    for (int i = 0; i < OWN; i++)
        slots[used++] = own[i];
    for (int i = 0; record_slots[i].slot != 0; i++)
        slots[used++] = record_slots[i];
    slots[used] = (PyType_Slot){0, NULL};
    PyType_Spec spec = {
        .name = "gradwalk.Value",
        .basicsize = sizeof(Value),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    value_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (value_type == NULL)
        return -1;
    value_type->tp_vectorcall = value_vectorcall;
    for (PyMethodDef *method = record_methods; method->ml_name != NULL; method++) {
        PyObject *descriptor = PyDescr_NewMethod(value_type, method);
        if (descriptor == NULL || PyObject_SetAttrString((PyObject *)value_type, method->ml_name, descriptor) < 0)
            return -1;
        Py_DECREF(descriptor);
    }
    name_data = PyUnicode_InternFromString("data");
    name_grad = PyUnicode_InternFromString("grad");
    Value *sample = PyMem_Calloc(1, sizeof(Value));
    if (name_data == NULL || name_grad == NULL || sample == NULL)
        return -1;
    value_header = *PyObject_Init((PyObject *)sample, value_type);
    PyMem_Free(sample);
    Py_INCREF(value_type);
    return PyModule_AddObject(module, "Value", (PyObject *)value_type);
}
