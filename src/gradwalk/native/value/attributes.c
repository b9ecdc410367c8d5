/* What a Value shows, and what can be assigned. */

#include "value.h"

static PyObject *name_data, *name_grad;

/* ---------------------------------------------------------------- what people hang on a node: w.m = 0.0
 * A dict in the node's Details, made when first needed. Each name gets a descriptor on the type when it is first set:
 * so reading goes the ordinary way, and nodes without attributes pay nothing. */

typedef struct {
    PyObject_HEAD
    PyObject *name;
} Hung;

static PyTypeObject *hung_type;

/* The dict, or NULL if there is none. Borrowed. A subclass has its own. */
static PyObject *attributes_of(PyObject *self)
{
    PyObject **own = Py_TYPE(self) == value_type ? NULL : _PyObject_GetDictPtr(self);
    if (own != NULL)
        return *own;
    return kind_of((Value *)self) == MANY ? details_of((Value *)self)->attributes : NULL;
}

static PyObject *attributes_refuse_name(PyObject *self, PyObject *name)
{
    return PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'", Py_TYPE(self)->tp_name, name);
}

/* Whether the descriptor was called on what is no node, by hand or in another class: with an exception set. */
static int attributes_refuse_foreign(PyObject *descriptor, PyObject *self)
{
    if (is_value(self))
        return 0;
    PyErr_Format(PyExc_TypeError, "descriptor '%U' for 'Value' objects doesn't apply to a '%s' object",
                 ((Hung *)descriptor)->name, Py_TYPE(self)->tp_name);
    return 1;
}

static PyObject *hung_get(PyObject *descriptor, PyObject *self, PyObject *type)
{
    (void)type;
    if (self == NULL)
        return Py_NewRef(descriptor);
    if (attributes_refuse_foreign(descriptor, self))
        return NULL;
    PyObject *name = ((Hung *)descriptor)->name, *attributes = attributes_of(self);
    PyObject *found = attributes ? PyDict_GetItemWithError(attributes, name) : NULL;
    if (found != NULL)
        return Py_NewRef(found);
    return PyErr_Occurred() ? NULL : attributes_refuse_name(self, name);
}

/* Where a node's attributes are, or are to be: in its own memory, or its subclass's. NULL without an exception: it has
 * none, and gets none. */
static PyObject **attributes_hung_on(PyObject *self, PyObject *given)
{
    PyObject **own = Py_TYPE(self) == value_type ? NULL : _PyObject_GetDictPtr(self);
    if (own != NULL)
        return own;
    if (given != NULL
        && (cycles_about_to_hold((Value *)self, given) < 0 || value_details((Value *)self) == NULL))
        return NULL;
    return kind_of((Value *)self) == MANY ? &details_of((Value *)self)->attributes : NULL;
}

static int hung_set(PyObject *descriptor, PyObject *self, PyObject *given)
{
    if (attributes_refuse_foreign(descriptor, self))
        return -1;
    PyObject *name = ((Hung *)descriptor)->name, **own = attributes_hung_on(self, given);
    if (given != NULL && own != NULL && *own == NULL) {
        PyObject *made = PyDict_New(); /* which may run the collector, and with it __init__: then they are elsewhere */
        own = made != NULL ? attributes_hung_on(self, given) : NULL;
        if (own != NULL && *own == NULL)
            *own = Py_NewRef(made);
        Py_XDECREF(made);
    }
    if (given != NULL && own == NULL)
        return -1;
    PyObject *attributes = own ? Py_XNewRef(*own) : NULL; /* setting may drop what holds the node */
    int failed = 0;
    if (given != NULL)
        failed = PyDict_SetItem(attributes, name, given);
    else if (attributes == NULL || !PyDict_Contains(attributes, name))
        attributes_refuse_name(self, name), failed = -1;
    else
        failed = PyDict_DelItem(attributes, name);
    Py_XDECREF(attributes);
    return failed;
}

static void hung_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((Hung *)self)->name);
    type->tp_free(self);
    Py_DECREF(type);
}

/* A place for attributes of that name. -1 with an exception set. */
static int attributes_hang(PyObject *name)
{
    Hung *descriptor = PyObject_New(Hung, hung_type);
    if (descriptor == NULL)
        return -1;
    descriptor->name = Py_NewRef(name);
    int failed = PyObject_SetAttr((PyObject *)value_type, name, (PyObject *)descriptor);
    Py_DECREF(descriptor);
    return failed;
}

/* What was hung on the node: a dict. New. */
static PyObject *attributes_get_dict(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *attributes = attributes_of(self);
    return attributes ? PyDict_Copy(attributes) : PyDict_New();
}

int attributes_ready(void)
{
    PyType_Slot slots[] = {
        {Py_tp_descr_get, hung_get}, {Py_tp_descr_set, hung_set}, {Py_tp_dealloc, hung_dealloc}, {0, NULL}};
    PyType_Spec spec = {
        .name = "gradwalk._native.attribute",
        .basicsize = sizeof(Hung),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    hung_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (hung_type == NULL)
        return -1;
    name_data = PyUnicode_InternFromString("data");
    name_grad = PyUnicode_InternFromString("grad");
    return name_data == NULL || name_grad == NULL ? -1 : 0;
}

PyObject *attributes_grad(Value *v)
{
    if (careful_nodes != 0 && kind_of(v) == MANY && details_of(v)->grad_value != NULL) {
        Py_INCREF(details_of(v)->grad_value);
        return details_of(v)->grad_value;
    }
    return v->link & GRAD_INT ? PyLong_FromDouble(v->grad) : PyFloat_FromDouble(v->grad);
}

/* A script's class shows an int as it was given, the native Value a float. */
static void attributes_note_int(Value *v, PyObject *given, uint64_t flag)
{
    if (Py_TYPE(v) != value_type)
        v->link = (v->link & ~flag) | (PyLong_CheckExact(given) ? flag : 0);
}

static int attributes_set_data(Value *v, PyObject *given)
{
    double number = 0.0;
    if (modes_in_use & MODES_READ && modes_read((PyObject *)v, "") < 0)
        return -1;
    if (number_from(given, "data", NULL, &number) < 0)
        return -1;
    v->data = number;
    attributes_note_int(v, given, DATA_INT);
    data_writes++;
    return 0;
}

int attributes_set_grad(Value *v, PyObject *given)
{
    if (value_show_constant(v) < 0) /* a hidden constant's gradient follows from this node's: settle it first */
        return -1;
    grad_writes++;
    if (is_value(given)) {
        double before = v->grad;
        v->grad = ((Value *)given)->data;
        if (cycles_set_grad_value(v, given) == 0)
            return 0;
        v->grad = before;
        return -1;
    }
    double number;
    if (number_from(given, "grad", NULL, &number) < 0)
        return -1;
    v->grad = number;
    attributes_note_int(v, given, GRAD_INT);
    if (careful_nodes != 0)
        cycles_set_grad_value(v, NULL); /* last: the one before may have a __del__, which is to find this one */
    return 0;
}

static int attributes_assign_grad(Value *v, PyObject *given)
{
    if (modes_in_use & MODES_READ && modes_read((PyObject *)v, "") < 0)
        return -1;
    return attributes_set_grad(v, given);
}

/* data and grad are written in every training loop: they skip the type's dictionary. Reading goes the ordinary way,
 * because a tp_getattro of our own would keep the interpreter from its short cut for method calls. */
int value_setattro(PyObject *self, PyObject *name, PyObject *given)
{
    if (given != NULL) {
        if (name == name_data)
            return attributes_set_data((Value *)self, given);
        if (name == name_grad)
            return attributes_assign_grad((Value *)self, given);
    }
    int failed = PyObject_GenericSetAttr(self, name, given);
    if (!failed || given == NULL || !is_node_type(Py_TYPE(self)) || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return failed;
    PyErr_Clear();
    /* else a method, or what only we write */
    if (!PyObject_HasAttr((PyObject *)value_type, name) && attributes_hang(name) < 0)
        return -1;
    return PyObject_GenericSetAttr(self, name, given);
}

static PyObject *attributes_get_data(PyObject *self, void *closure)
{
    (void)closure;
    if (modes_in_use & MODES_READ) {
        PyObject *instead = modes_read_data(self);
        if (instead != Py_None)
            return instead;
        Py_DECREF(instead);
    }
    double data = ((Value *)self)->data;
    return ((Value *)self)->link & DATA_INT ? PyLong_FromDouble(data) : PyFloat_FromDouble(data);
}

static PyObject *attributes_get_grad(PyObject *self, void *closure)
{
    (void)closure;
    if (modes_in_use & MODES_READ && modes_read(self, "") < 0)
        return NULL;
    return attributes_grad((Value *)self);
}

static int attributes_refuse_deletion(PyObject *given, const char *name)
{
    if (given == NULL)
        PyErr_Format(PyExc_AttributeError, "%s: a Value always has one, it cannot be deleted", name);
    return given == NULL;
}

static int attributes_put_data(PyObject *self, PyObject *given, void *closure)
{
    (void)closure;
    return attributes_refuse_deletion(given, "data") ? -1 : attributes_set_data((Value *)self, given);
}

static int attributes_put_grad(PyObject *self, PyObject *given, void *closure)
{
    (void)closure;
    return attributes_refuse_deletion(given, "grad") ? -1 : attributes_assign_grad((Value *)self, given);
}

PyObject *attributes_label(Value *v)
{
    if (kind_of(v) == MANY && details_of(v)->label != NULL) {
        Py_INCREF(details_of(v)->label);
        return details_of(v)->label;
    }
    return PyUnicode_FromString("");
}

static PyObject *attributes_get_label(PyObject *self, void *closure)
{
    (void)closure;
    return attributes_label((Value *)self);
}

int attributes_refuse_label(PyObject *given)
{
    if (PyUnicode_Check(given))
        return 0;
    Py_XDECREF(errors_call("refuse_label", given));
    return 1;
}

static int attributes_put_label(PyObject *self, PyObject *given, void *closure)
{
    (void)closure;
    if (attributes_refuse_deletion(given, "label") || attributes_refuse_label(given)
        || cycles_about_to_hold((Value *)self, given) < 0)
        return -1;
    Details *details = value_details((Value *)self);
    if (details == NULL)
        return -1;
    Py_INCREF(given);
    Py_XSETREF(details->label, given);
    return 0;
}

/* An empty tuple for as many entries as the node has. Making one may run the collector, and with it an __init__ of
 * this very node: then it is made again. New. */
static PyObject *attributes_tuple_for(Value *v, Py_ssize_t (*count_of)(const Value *))
{
    PyObject *tuple = value_show_constant(v) < 0 ? NULL : PyTuple_New(count_of(v));
    while (tuple != NULL && PyTuple_GET_SIZE(tuple) != count_of(v))
        Py_SETREF(tuple, PyTuple_New(count_of(v)));
    return tuple;
}

PyObject *attributes_children(PyObject *self, void *closure)
{
    (void)closure;
    Value *v = (Value *)self;
    PyObject *children = attributes_tuple_for(v, value_child_count);
    for (Py_ssize_t i = 0; children != NULL && i < PyTuple_GET_SIZE(children); i++) {
        double local_grad;
        PyObject *child = (PyObject *)value_child(v, i, &local_grad);
        Py_INCREF(child);
        PyTuple_SET_ITEM(children, i, child);
    }
    return children;
}

static PyObject *attributes_get_prev(PyObject *self, void *closure)
{
    PyObject *children = attributes_children(self, closure);
    if (children == NULL)
        return NULL;
    PyObject *set = PySet_New(children);
    Py_DECREF(children);
    return set;
}

static Py_ssize_t attributes_local_grad_count(const Value *v)
{
    return kind_of(v) == MANY ? details_of(v)->local_count : value_child_count(v);
}

static PyObject *attributes_get_local_grads(PyObject *self, void *closure)
{
    (void)closure;
    Value *v = (Value *)self;
    PyObject *local_grads = attributes_tuple_for(v, attributes_local_grad_count);
    for (Py_ssize_t i = 0; local_grads != NULL && i < PyTuple_GET_SIZE(local_grads); i++) {
        double local_grad;
        value_child(v, i, &local_grad);
        PyObject *number = PyFloat_FromDouble(local_grad);
        if (number == NULL)
            Py_CLEAR(local_grads);
        else
            PyTuple_SET_ITEM(local_grads, i, number);
    }
    return local_grads;
}

const char *attributes_op_name(const Value *v)
{
    unsigned op = op_of(v);
    return op < OP_COUNT ? op_names[op] : op < NO_OP ? composite_of(op)->name : "";
}

static PyObject *attributes_get_name(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(attributes_op_name((Value *)self));
}

static double attributes_first_parameter(Value *v)
{
    return kind_of(v) == MANY ? details_of(v)->parameters[0] : v->number;
}

static PyObject *attributes_get_op(PyObject *self, void *closure)
{
    Value *v = (Value *)self;
    if (kind_of(v) == MANY && details_of(v)->op != NULL) {
        Py_INCREF(details_of(v)->op);
        return details_of(v)->op;
    }
    unsigned op = op_of(v);
    if (op == OP_pow_number) {
        char text[40];
        PyOS_snprintf(text, sizeof text, "**%.17g", attributes_first_parameter(v));
        return PyUnicode_FromString(text);
    }
    return op < OP_COUNT ? PyUnicode_FromString(op_symbols[op]) : attributes_get_name(self, closure);
}

static PyObject *attributes_get_parameters(PyObject *self, void *closure)
{
    (void)closure;
    Value *v = (Value *)self;
    double parameters[2] = {0.0, 0.0};
    if (kind_of(v) == MANY)
        memcpy(parameters, details_of(v)->parameters, sizeof parameters);
    else if (kind_of(v) == ONE_NUMBER)
        parameters[0] = v->number;
    const Composite *composite = composite_of(op_of(v));
    int count = composite != NULL ? composite->parameters : op_of(v) < OP_COUNT ? op_parameters[op_of(v)] : 0;
    int placed = composite != NULL && composite_is_placed(composite);
    PyObject *tuple = PyTuple_New(placed + count);
    for (int i = 0; tuple != NULL && i < placed + count; i++) {
        int is_int = i < placed || v->link & NUMBER_INT;
        PyObject *number = is_int ? PyLong_FromDouble(parameters[i]) : PyFloat_FromDouble(parameters[i]);
        if (number == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, number);
    }
    return tuple;
}

static PyObject *attributes_get_constant(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong((((Value *)self)->link & CONSTANT) != 0);
}

static PyObject *attributes_get_scope(PyObject *self, void *closure)
{
    (void)closure;
    Value *v = (Value *)self;
    if (v->link & COLLECTED)
        return PyLong_FromUnsignedLong(kind_of(v) == MANY ? details_of(v)->scope : 0);
    return PyLong_FromUnsignedLong(slab_scope(v));
}

static PyObject *attributes_get_hand_written(PyObject *self, void *closure)
{
    (void)closure;
    Value *v = (Value *)self;
    PyObject *function = kind_of(v) == MANY ? details_of(v)->hand_written : NULL;
    return Py_NewRef(function ? function : Py_None);
}

static PyObject *attributes_get_backward(PyObject *self, void *closure)
{
    (void)closure;
    Value *v = (Value *)self;
    if (kind_of(v) == MANY && details_of(v)->hand_written != NULL) {
        Py_INCREF(details_of(v)->hand_written);
        return details_of(v)->hand_written;
    }
    return PyObject_GetAttrString(self, "_push");
}

static int attributes_put_backward(PyObject *self, PyObject *given, void *closure)
{
    (void)closure;
    if (attributes_refuse_deletion(given, "_backward"))
        return -1;
    if (PyCFunction_Check(given) && PyCFunction_GET_SELF(given) == self
        && PyCFunction_GET_FUNCTION(given) == backward_push) {
        return cycles_set_hand_written((Value *)self, NULL); /* its own: nothing written by hand */
    }
    if (!PyCallable_Check(given)) {
        PyErr_Format(PyExc_TypeError, "_backward: expected a function without arguments, got %R", given);
        return -1;
    }
    return cycles_set_hand_written((Value *)self, given);
}

PyGetSetDef value_getset[] = {
    {"data", attributes_get_data, attributes_put_data, "The number.", NULL},
    {"grad", attributes_get_grad, attributes_put_grad,
     "How much the result of the last backward() changes with this number.", NULL},
    {"label", attributes_get_label, attributes_put_label, "A name to recognise the node by.", NULL},
    {"_children", attributes_children, NULL, "What this node was computed from, in order.", NULL},
    {"_local_grads", attributes_get_local_grads, NULL, "The derivative by each child, taken at forward time.", NULL},
    {"_prev", attributes_get_prev, NULL, "The children as a set, as in micrograd.", NULL},
    {"_op", attributes_get_op, NULL, "The operation as it is written: '+', 'ReLU', '**3'.", NULL},
    {"_name", attributes_get_name, NULL,
     "The operation's name in the table; '' for leaves and nodes made by hand.", NULL},
    {"_parameters", attributes_get_parameters, NULL, "The numbers the operation was given besides its children.", NULL},
    {"_constant", attributes_get_constant, NULL, "Whether this leaf is a plain number somebody computed with.", NULL},
    {"_attributes", attributes_get_dict, NULL, "What was hung on this node, by name.", NULL},
    {"_hand_written", attributes_get_hand_written, NULL, "The assigned _backward, or None.", NULL},
    {"_scope", attributes_get_scope, NULL, "The number of the scope this node was made in; 0 outside of all.", NULL},
    {"_backward", attributes_get_backward, attributes_put_backward,
     "Pushes this node's gradient to its children; assignable.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
