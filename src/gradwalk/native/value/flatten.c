/* A recorded graph as arrays: what compiler/trace.py makes a Flat of. One pass over the nodes, no table of addresses:
 * while it runs, a node's place is written where its gradient is kept, and the gradients are put back at the end. */

#include "value.h"

#define RECENT 256 /* constants that are looked for again: a loop computes with the same few numbers */

typedef struct {
    PyObject **nodes; /* borrowed from a list that nobody changes meanwhile */
    Py_ssize_t node_count;
    Value **outside; /* borrowed: the arguments' entries, then the leaves in the order of their first use */
    Py_ssize_t outside_count, outside_room;
    double *constants;
    Py_ssize_t constant_count, constant_room, constant_uses;
    int64_t recent[RECENT];
    double *grads; /* of the nodes, then of those outside, as they were */
} Flattening;

/* Room for one more in an array that doubles; its new address, or NULL with MemoryError set. */
COLD static void *flatten_with_one_more(void *array, Py_ssize_t count, Py_ssize_t *room, size_t bytes)
{
    if (count < *room)
        return array;
    Py_ssize_t more = *room > 0 ? 2 * *room : 1024;
    void *grown = PyMem_Realloc(array, (size_t)more * bytes);
    if (grown == NULL)
        PyErr_NoMemory();
    else
        *room = more;
    return grown;
}

/* Places are written as nodes 0 …, what is outside -1, -3 …, constants -2, -4 … until all are counted. */
static inline int64_t flatten_code_of_outside(Py_ssize_t number) { return -1 - 2 * (int64_t)number; }
static inline int64_t flatten_code_of_constant(Py_ssize_t number) { return -2 - 2 * (int64_t)number; }

/* The code of a constant, or 0 with an exception set. */
static int64_t flatten_constant_code(Flattening *self, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    int64_t *recent = &self->recent[(bits * UINT64_C(0x9E3779B97F4A7C15)) >> 56];
    self->constant_uses++;
    if (*recent < self->constant_count && memcmp(&self->constants[*recent], &number, sizeof number) == 0)
        return flatten_code_of_constant(*recent);
    double *constants = flatten_with_one_more(self->constants, self->constant_count, &self->constant_room,
                                              sizeof *constants);
    if (constants == NULL)
        return 0;
    self->constants = constants;
    constants[self->constant_count] = number;
    *recent = self->constant_count++;
    return flatten_code_of_constant(*recent);
}

static inline int flatten_is_node_at(const Flattening *self, const Value *v, int64_t place)
{
    return place >= 0 && place < self->node_count && self->nodes[place] == (PyObject *)v;
}

COLD static int flatten_outside_add(Flattening *self, Value *v)
{
    Py_ssize_t room = self->outside_room;
    Value **outside = flatten_with_one_more(self->outside, self->outside_count, &room, sizeof *outside);
    if (outside == NULL)
        return -1;
    self->outside = outside;
    if (room != self->outside_room) {
        double *grads = PyMem_Realloc(self->grads, (size_t)(self->node_count + room) * sizeof *grads);
        if (grads == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        self->grads = grads;
        self->outside_room = room;
    }
    int64_t place = self->node_count + self->outside_count;
    self->grads[place] = v->grad;
    memcpy(&v->grad, &place, sizeof place);
    outside[self->outside_count++] = v;
    return 0;
}

/* The code of a child. A failure is left to PyErr_Occurred: it is asked for once a node. */
static int64_t flatten_value_code(Flattening *self, Value *v)
{
    int64_t place;
    memcpy(&place, &v->grad, sizeof place);
    if (flatten_is_node_at(self, v, place))
        return place;
    place -= self->node_count;
    if (place >= 0 && place < self->outside_count && self->outside[place] == v)
        return flatten_code_of_outside((Py_ssize_t)place);
    if (v->link & CONSTANT)
        return flatten_constant_code(self, v->data);
    flatten_outside_add(self, v);
    return flatten_code_of_outside(self->outside_count - 1);
}

static unsigned flatten_parameter_count(const Value *v)
{
    unsigned op = op_of(v);
    const Composite *composite = composite_of(op);
    if (composite != NULL)
        return (unsigned)composite_is_placed(composite) + composite->parameters;
    return op < OP_COUNT ? op_parameters[op] : 0;
}

/* The codes of a node's children; returns where the next node's go. */
static int64_t *flatten_children_codes(Flattening *self, const Value *v, int64_t *codes)
{
    switch (kind_of(v)) {
    case LEAF: break;
    case ONE:
    case ONE_NUMBER: *codes++ = flatten_value_code(self, first_of(v)); break;
    case TWO:
        *codes++ = flatten_value_code(self, first_of(v));
        *codes++ = flatten_value_code(self, v->second);
        break;
    case CHILD_CONSTANT:
        *codes++ = flatten_value_code(self, first_of(v));
        *codes++ = flatten_constant_code(self, v->number);
        break;
    case CONSTANT_CHILD:
        *codes++ = flatten_constant_code(self, v->number);
        *codes++ = flatten_value_code(self, first_of(v));
        break;
    case MANY:
        for (Py_ssize_t i = 0; i < details_of(v)->count; i++)
            *codes++ = flatten_value_code(self, details_of(v)->children[i]);
        break;
    default: Py_UNREACHABLE();
    }
    return codes;
}

/* From codes to places: what is outside, the constants, `between` others, then the nodes. */
static void flatten_places_from_codes(const Flattening *self, Py_ssize_t between, int64_t *codes, Py_ssize_t count)
{
    int64_t constants = self->outside_count, nodes = constants + self->constant_count + between;
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t code = codes[i];
        codes[i] = code >= 0 ? code + nodes : code & 1 ? (-1 - code) / 2 : constants + (-2 - code) / 2;
    }
}

static void flatten_grads_put_back(Flattening *self, Py_ssize_t nodes)
{
    /* in reverse, in case one is there twice */
    for (Py_ssize_t i = nodes; i-- > 0;)
        ((Value *)self->nodes[i])->grad = self->grads[i];
    for (Py_ssize_t i = self->outside_count; i-- > 0;)
        self->outside[i]->grad = self->grads[self->node_count + i];
}

/* Everything in one list of Values; raises for anything else. */
COLD static int flatten_expect_values(PyObject *list)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        if (!is_value(PyList_GET_ITEM(list, i))) {
            PyErr_Format(PyExc_TypeError, "flatten: expected Values, got %R", PyList_GET_ITEM(list, i));
            return -1;
        }
    }
    return 0;
}

/* flatten(nodes, entries, roots, between): see flatten_doc. New. */
static PyObject *flatten_nodes(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *nodes, *entries, *roots;
    Py_ssize_t between;
    if (!PyArg_ParseTuple(args, "O!O!O!n:flatten", &PyList_Type, &nodes, &PyList_Type, &entries, &PyList_Type, &roots,
                          &between)
        || flatten_expect_values(nodes) < 0 || flatten_expect_values(entries) < 0 || flatten_expect_values(roots) < 0)
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(nodes), edges = 0, parametrised = 0, done = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        const Value *v = (Value *)PyList_GET_ITEM(nodes, i);
        if (is_leaf(v))
            Py_RETURN_NONE;
        edges += value_child_count(v);
        parametrised += flatten_parameter_count(v) > 0;
    }
    PyObject *result = NULL, *leaves = NULL;
    PyObject *ops = PyByteArray_FromStringAndSize(NULL, count);
    PyObject *starts = PyByteArray_FromStringAndSize(NULL, (count + 1) * 8);
    PyObject *children = PyByteArray_FromStringAndSize(NULL, edges * 8);
    PyObject *owners = PyByteArray_FromStringAndSize(NULL, parametrised * 8);
    PyObject *parameters = PyByteArray_FromStringAndSize(NULL, parametrised * 16);
    PyObject *root_places = PyByteArray_FromStringAndSize(NULL, PyList_GET_SIZE(roots) * 8);
    Flattening self = {.nodes = PySequence_Fast_ITEMS(nodes), .node_count = count};
    self.grads = PyMem_Malloc((size_t)(count + 1) * sizeof *self.grads);
    for (int i = 0; i < RECENT; i++)
        self.recent[i] = INT64_MAX;
    if (!ops || !starts || !children || !owners || !parameters || !root_places || !self.grads) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        goto release;
    }
    /* from here to the end of the loops nothing runs that could look at a gradient */
    int failed = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries) && !failed; i++)
        failed = flatten_outside_add(&self, (Value *)PyList_GET_ITEM(entries, i)) < 0;
    unsigned char *op = (unsigned char *)PyByteArray_AS_STRING(ops);
    int64_t *start = (int64_t *)PyByteArray_AS_STRING(starts), *owner = (int64_t *)PyByteArray_AS_STRING(owners);
    int64_t *first = (int64_t *)PyByteArray_AS_STRING(children), *code = first;
    double *parameter = (double *)PyByteArray_AS_STRING(parameters);
    for (; done < count && !failed; done++) {
        Value *v = (Value *)self.nodes[done];
        start[done] = code - first;
        op[done] = (unsigned char)op_of(v);
        code = flatten_children_codes(&self, v, code);
        if (flatten_parameter_count(v) > 0) {
            *owner++ = done;
            parameter[0] = kind_of(v) == MANY ? details_of(v)->parameters[0] : v->number;
            parameter[1] = kind_of(v) == MANY && flatten_parameter_count(v) > 1 ? details_of(v)->parameters[1] : 0.0;
            parameter += 2;
        }
        self.grads[done] = v->grad;
        memcpy(&v->grad, &(int64_t){done}, sizeof v->grad);
        failed = PyErr_Occurred() != NULL;
    }
    start[count] = code - first;
    int64_t *root = (int64_t *)PyByteArray_AS_STRING(root_places);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(roots) && !failed; i++) {
        root[i] = flatten_value_code(&self, (Value *)PyList_GET_ITEM(roots, i));
        failed = PyErr_Occurred() != NULL;
    }
    flatten_grads_put_back(&self, done);
    if (failed)
        goto release;
    flatten_places_from_codes(&self, between, first, code - first);
    flatten_places_from_codes(&self, between, root, PyList_GET_SIZE(roots));
    Py_ssize_t given = PyList_GET_SIZE(entries);
    for (Py_ssize_t i = given; i < self.outside_count; i++)
        Py_INCREF(self.outside[i]); /* making the tuple may run the collector, and with it Python code */
    leaves = PyTuple_New(self.outside_count - given);
    for (Py_ssize_t i = given; i < self.outside_count; i++) {
        if (leaves != NULL)
            PyTuple_SET_ITEM(leaves, i - given, (PyObject *)self.outside[i]);
        else
            Py_DECREF(self.outside[i]);
    }
    if (leaves != NULL)
        result = Py_BuildValue("OOOOOOONn", leaves, ops, starts, children, owners, parameters, root_places,
                               PyByteArray_FromStringAndSize((char *)self.constants, self.constant_count * 8),
                               self.constant_uses);
release:
    PyMem_Free(self.outside);
    PyMem_Free(self.constants);
    PyMem_Free(self.grads);
    Py_XDECREF(leaves);
    Py_XDECREF(ops);
    Py_XDECREF(starts);
    Py_XDECREF(children);
    Py_XDECREF(owners);
    Py_XDECREF(parameters);
    Py_XDECREF(root_places);
    return result;
}

/* The operations' names in the numbering of ops; '' comes last. New. */
COLD static PyObject *flatten_op_names(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *names = PyTuple_New(NO_OP + 1);
    for (unsigned op = 0; names != NULL && op <= NO_OP; op++) {
        PyObject *name = PyUnicode_FromString(op < OP_COUNT ? op_names[op]
                                              : op < NO_OP ? composite_of(op)->name
                                                           : "");
        if (name == NULL)
            Py_CLEAR(names);
        else
            PyTuple_SET_ITEM(names, op, name);
    }
    return names;
}

/* max or min while some thread traces: of plain numbers, as mostly, Python's own; of all else, compiler/trace.py's. */
static PyObject *flatten_choose(PyObject *plain_and_traced, PyObject *const *given, Py_ssize_t count, PyObject *names)
{
    int is_plain = count > 1 && names == NULL;
    for (Py_ssize_t i = 0; is_plain && i < count; i++)
        is_plain = PyFloat_CheckExact(given[i]) || PyLong_CheckExact(given[i]);
    return PyObject_Vectorcall(PyTuple_GET_ITEM(plain_and_traced, !is_plain), given, (size_t)count, names);
}

/* New. */
static PyObject *flatten_choosing(PyObject *module, PyObject *args)
{
    static PyMethodDef choosing[] = {
        {"max", (PyCFunction)(void (*)(void))flatten_choose, METH_FASTCALL | METH_KEYWORDS, NULL},
        {"min", (PyCFunction)(void (*)(void))flatten_choose, METH_FASTCALL | METH_KEYWORDS, NULL},
    };
    (void)module;
    PyObject *plain, *traced;
    if (!PyArg_ParseTuple(args, "O!O", &PyCFunction_Type, &plain, &traced))
        return NULL;
    const PyMethodDef *like = ((PyCFunctionObject *)plain)->m_ml;
    PyMethodDef *chosen = &choosing[strcmp(like->ml_name, "min") == 0];
    chosen->ml_doc = like->ml_doc;
    return PyCFunction_New(chosen, args);
}

PyMethodDef flatten_functions[] = {
    {"choosing", flatten_choosing, METH_VARARGS,
     INSIDE("choosing(plain, traced, /)\n--\n\n"
     "Python's max or min: `plain` of two or more floats and ints, `traced` of anything else.")},
    {"flatten", flatten_nodes, METH_VARARGS,
     INSIDE("flatten(nodes, entries, roots, between, /)\n--\n\n"
     "The graph as (leaves, ops, starts, children, owners, parameters, places of the roots, constants, uses of them),\n"
     "all but the first and the last as bytes; None where a node has no children. Numbered are the entries, the\n"
     "leaves, the constants, as many as `between` says, then the nodes. `owners` has the nodes with parameters.")},
    {"op_names", flatten_op_names, METH_NOARGS, INSIDE("op_names()\n--\n\nThe operations as `flatten` numbers them.")},
    {NULL, NULL, 0, NULL},
};
