/* The Python type Value: its protocol slots, put together from the other files. */

#include "value.h"

static PyObject *value_repr(PyObject *self)
{
    if (modes_in_use & MODES_READ && modes_read(self, "text") < 0)
        return NULL;
    PyObject *label = attributes_label((Value *)self);
    PyObject *data = PyFloat_FromDouble(((Value *)self)->data);
    PyObject *grad = attributes_grad((Value *)self);
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

static int equality_is_identity;

/* Whether ==, != and truth are those of a class that defines neither; what it was before. New. */
PyObject *type_set_equality_is_identity(PyObject *module, PyObject *given)
{
    (void)module;
    int wanted = PyObject_IsTrue(given);
    if (wanted < 0)
        return NULL;
    PyObject *before = PyBool_FromLong(equality_is_identity);
    equality_is_identity = wanted;
    return before;
}

/* -1 with an exception set. */
static int type_compared(PyObject *left, double number, PyObject *right, int comparison)
{
    int outcome = number_compared(((Value *)left)->data, comparison, number);
    return modes_in_use & MODES_COMPARE && modes_compared(left, right, comparison, outcome) < 0 ? -1 : outcome;
}

static PyObject *type_truth(int outcome) { return outcome < 0 ? NULL : PyBool_FromLong(outcome); }

static PyObject *value_richcompare(PyObject *self, PyObject *other, int comparison)
{
    if (equality_is_identity && (comparison == Py_EQ || comparison == Py_NE))
        Py_RETURN_NOTIMPLEMENTED; /* Python then compares identities */
    if (is_value(other))
        return type_truth(type_compared(self, ((Value *)other)->data, other, comparison));
    if (PyFloat_CheckExact(other))
        return type_truth(type_compared(self, PyFloat_AS_DOUBLE(other), other, comparison));
    double number;
    PyObject *bound = number_to_compare(other, &comparison, self, &number);
    if (bound == NULL || bound == Py_NotImplemented)
        return bound;
    int outcome = type_compared(self, number, bound, comparison);
    Py_DECREF(bound);
    return type_truth(outcome);
}

static int value_bool(PyObject *self)
{
    if (equality_is_identity)
        return 1;
    if (!(modes_in_use & MODES_COMPARE))
        return ((Value *)self)->data != 0.0;
    PyObject *zero = PyFloat_FromDouble(0.0);
    int outcome = zero ? type_compared(self, 0.0, zero, Py_NE) : -1;
    Py_XDECREF(zero);
    return outcome;
}

static PyObject *type_conjugate(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static Py_hash_t value_hash(PyObject *self)
{
    Py_hash_t hash = (Py_hash_t)((uintptr_t)self >> 6); /* nodes lie on 64-byte boundaries */
    return hash == -1 ? -2 : hash;
}

static PyMethodDef value_methods[] = {
    {"backward", (PyCFunction)(void (*)(void))backward_run, METH_FASTCALL | METH_KEYWORDS,
     "backward($self, create_graph=False)\n--\n\n"
     "Add to the grad of every leaf the derivative of this Value with respect to it."},
    {"conjugate", type_conjugate, METH_NOARGS,
     "conjugate($self, /)\n--\n\nThis Value: NumPy asks for it in norms and variances."},
    {"_push", backward_push, METH_NOARGS, "_push($self, /)\n--\n\nHand this node's gradient on to its children."},
    {"_gradients", backward_gradients, METH_O,
     "_gradients($self, inputs, /)\n--\n\nThe derivative of this node by each of a list of Values; no grad is changed. "
     "None if a node has a hand-written _backward."},
    {"_topological_order", order_topological, METH_NOARGS,
     "_topological_order($self, /)\n--\n\nEvery node reachable from this one, each after all of its children."},
    {"_cut", cut_run, METH_VARARGS | METH_STATIC,
     "_cut(nodes, function, /)\n--\n\nCall the function; meanwhile these nodes are leaves, whatever they were made of."},
    {"_leaves", construct_leaves, METH_O | METH_STATIC,
     "_leaves(numbers, /)\n--\n\nA Value for each number of a list, or of an array of doubles."},
    {"_apply", (PyCFunction)(void (*)(void))record_apply, METH_FASTCALL,
     "_apply($self, name, /, *arguments)\n--\n\nRun one row of the table on Values and numbers, and record it."},
    {NULL, NULL, 0, NULL},
};

static PyObject *value_float(PyObject *self)
{
    return errors_call("refuse_conversion", self);
}

/* A function of our own, other than the one subclasses get: then Python refuses to assign a node's __class__, which
 * would make the collector look for a header that nodes in slabs do not have. */
static void value_free_collected(void *self)
{
    PyObject_GC_Del(self);
}

int type_ready(PyObject *module)
{
    PyType_Slot own[] = {
        {Py_tp_doc, "Value(data, _children=(), _op='', label='', *, children=(), local_grads=())\n--\n\n"
                    "A number that remembers how it was made, so that backward() can tell how it depends on its "
                    "inputs."},
        {Py_tp_new, value_new},
        {Py_tp_init, value_init},
        {Py_tp_dealloc, value_dealloc},
        {Py_tp_free, value_free_collected},
        {Py_tp_is_gc, value_is_gc},
        {Py_tp_traverse, value_traverse},
        {Py_tp_clear, value_clear},
        {Py_tp_repr, value_repr},
        {Py_tp_richcompare, value_richcompare},
        {Py_tp_hash, value_hash},
        {Py_tp_setattro, value_setattro},
        {Py_tp_getset, value_getset},
        {Py_tp_methods, value_methods},
        {Py_nb_bool, value_bool},
        {Py_nb_float, value_float},
        {Py_nb_int, value_float},
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
    /* the interpreter's own messages then name it as they name the reference engine's */
    PyObject *name = PyUnicode_FromString("Value");
    if (name == NULL || PyObject_SetAttrString((PyObject *)value_type, "__name__", name) < 0)
        return -1;
    Py_DECREF(name);
    for (PyMethodDef *method = record_methods; method->ml_name != NULL; method++) {
        PyObject *descriptor = PyDescr_NewMethod(value_type, method);
        if (descriptor == NULL || PyObject_SetAttrString((PyObject *)value_type, method->ml_name, descriptor) < 0)
            return -1;
        Py_DECREF(descriptor);
    }
    Value *sample = PyMem_Calloc(1, sizeof(Value));
    if (sample == NULL || attributes_ready() < 0)
        return -1;
    value_header = *PyObject_Init((PyObject *)sample, value_type);
    PyMem_Free(sample);
    Py_INCREF(value_type);
    return PyModule_AddObject(module, "Value", (PyObject *)value_type);
}
