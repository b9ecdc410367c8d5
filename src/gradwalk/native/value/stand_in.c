/* Types that stand in for a class of somebody's script (see gradwalk/run): nodes like any other, which operations hand
 * on to what they make, with that class's ways. An int is shown as an int, == is identity, and backward() adds to the
 * gradients of interior nodes as to all others, pass after pass. */

#include "value.h"

enum way { /* where a class has an int, and some things more: a sum of these, as gradwalk/run finds out */
    GRAD_STARTS = 1,  /* a new node's gradient is 0 */
    SEED = 2,         /* backward() starts from 1 */
    SUM_PASSES = 4,   /* a sum hands on its gradient as it is, not times 1.0 */
    RELU_PASSES = 8,  /* so does relu */
    RELU_BELOW = 16,  /* relu of a negative number is 0 */
    RELU_AT_ZERO = 32, /* relu of 0.0 is 0 */
    RELU_OF_NAN = 64, /* relu of nan is 0 */
    ALWAYS_FLOAT = 128, /* and here not: the constructor makes a float of it */
    HAS_METHOD = 256, /* its _backward is a method: what a node made by hand does is in there */
    RADD = 512,       /* 1 + x is recorded as x + 1 */
    RMUL = 1024,      /* 2 * x as x * 2 */
    NEG = 2048,       /* -x as x * -1 */
    SUB = 4096,       /* x - y as x + (-y) */
    RSUB = 8192,      /* 1 - y as 1 + (-y) */
    TRUEDIV = 16384,  /* x / y as x * y**-1 */
    RTRUEDIV = 32768, /* 1 / y as 1 * y**-1 */
    READS_LATE = 65536, /* what is handed on follows from numbers as they are by then, not as they were */
    RELU_READS_OUT = 131072 /* of relu, from its result */
};

typedef struct {
    PyTypeObject *type;
    unsigned long ways;
} StandIn;

static unsigned long long nodes_made; /* by operations on stand-ins */
static StandIn *stand_ins;
static Py_ssize_t stand_in_count;

/* The type itself, or the one that a script's subclass derives from. */
static PyTypeObject *stand_in_node_type(PyTypeObject *type)
{
    while (!is_node_type(type))
        type = type->tp_base;
    return type;
}

/* Borrowed; NULL for the plain Value. The last one made is nearly always the only one. */
static StandIn *stand_in_of(PyTypeObject *type)
{
    type = stand_in_node_type(type);
    for (Py_ssize_t i = stand_in_count; i-- > 0;) {
        if (stand_ins[i].type == type)
            return &stand_ins[i];
    }
    return NULL;
}

int stand_in_is(PyTypeObject *type) { return stand_in_of(type) != NULL; }

static int stand_in_has_way(PyTypeObject *type, enum way way)
{
    StandIn *stand_in = stand_in_of(type);
    return stand_in != NULL && (stand_in->ways & way) != 0;
}

uint64_t stand_in_fresh(PyTypeObject *type, PyObject *data)
{
    uint64_t flags = stand_in_has_way(type, GRAD_STARTS) ? GRAD_INT : 0;
    return data != NULL && PyLong_Check(data) && !stand_in_has_way(type, ALWAYS_FLOAT) ? flags | DATA_INT : flags;
}

void stand_in_join(Value *out, Value *child)
{
    PyTypeObject *type = stand_in_node_type(Py_TYPE(child));
    nodes_made++;
    out->ob_base.ob_type = type; /* these types live for ever: nodes do not count as references */
    out->link |= stand_in_fresh(type, NULL);
}

/* ---------------------------------------------------------------- ints */

#define EXACT_INTS 9007199254740992.0 /* 2**53: a double holds every int below, and is rounded to no other */

void stand_in_infer(Value *out, int operands_are_ints)
{
    unsigned op = op_of(out);
    int kept = op == OP_add || op == OP_sub || op == OP_mul || op == OP_neg || op == OP_abs || op == OP_relu
            || (op == OP_pow_number && out->number >= 0.0);
    if (op == OP_relu && isnan(out->data) && stand_in_has_way(Py_TYPE(out), RELU_OF_NAN)) {
        out->data = 0.0;
        operands_are_ints = 1;
    }
    else if (op == OP_relu && out->data == 0.0) {
        double x = first_of(out)->data;
        kept = operands_are_ints =
            operands_are_ints || stand_in_has_way(Py_TYPE(out), x < 0.0 ? RELU_BELOW : RELU_AT_ZERO);
    }
    if (operands_are_ints && kept && fabs(out->data) < EXACT_INTS)
        out->link |= DATA_INT;
}

void stand_in_note_number(Value *out, PyObject *number)
{
    int constant = kind_of(out) != ONE_NUMBER; /* it would be an object of the class */
    if (!PyLong_Check(number) || fabs(out->number) >= EXACT_INTS
        || (constant && stand_in_has_way(Py_TYPE(out), ALWAYS_FLOAT)))
        return;
    out->link |= NUMBER_INT;
    stand_in_infer(out, (first_of(out)->link & DATA_INT) != 0);
}

/* Whether the local gradient by a child would be an int in Python. */
static int stand_in_local_is_int(const Value *node, int second)
{
    const Details *details = kind_of(node) == MANY ? details_of(node) : NULL;
    if (details != NULL && details->count > 2)
        return 0;
    const Value *first = details ? details->children[0] : first_of(node);
    double number = details ? details->parameters[0] : node->number;
    uint64_t other = 0;
    switch (kind_of(node)) {
    case TWO: other = (second ? first : node->second)->link & DATA_INT; break;
    case MANY: other = details->children[second ? 0 : details->count - 1]->link & DATA_INT; break;
    case CHILD_CONSTANT:
    case CONSTANT_CHILD: other = node->link & NUMBER_INT; break;
    case LEAF:
    case ONE:
    case ONE_NUMBER: break; /* nothing is beside the child */
    default: Py_UNREACHABLE();
    }
    switch (op_of(node)) {
    case OP_add:
    case OP_sub: return stand_in_has_way(Py_TYPE(node), SUM_PASSES);
    case OP_relu: return stand_in_has_way(Py_TYPE(node), RELU_PASSES);
    case OP_mul: return other != 0;
    case OP_pow_number: return node->link & NUMBER_INT && first->link & DATA_INT && number >= 1.0;
    default: return 0;
    }
}

void stand_in_push_ints(Value *node)
{
    int is_int = (node->link & GRAD_INT) != 0;
    switch (kind_of(node)) {
    case LEAF:
        break;
    case TWO:
        if (!is_int || !stand_in_local_is_int(node, 1))
            node->second->link &= ~GRAD_INT;
        /* fall through */
    case ONE:
    case ONE_NUMBER:
    case CHILD_CONSTANT:
    case CONSTANT_CHILD:
        if (!is_int || !stand_in_local_is_int(node, 0))
            first_of(node)->link &= ~GRAD_INT;
        break;
    case MANY:
        for (Py_ssize_t i = 0; i < details_of(node)->count; i++) {
            if (!is_int || !stand_in_local_is_int(node, i != 0))
                details_of(node)->children[i]->link &= ~GRAD_INT;
        }
        break;
    default: Py_UNREACHABLE();
    }
}

COLD void stand_in_show_constant(Value *v, Value *constant, int right)
{
    stand_in_join(constant, v);
    constant->link |= v->link & NUMBER_INT ? DATA_INT : 0;
    if (v->link & PUSHED && !(v->link & GRAD_INT && stand_in_local_is_int(v, right)))
        constant->link &= ~GRAD_INT;
}

void stand_in_seed(Value *root)
{
    root->grad = 1.0;
    root->link = (root->link & ~GRAD_INT) | (stand_in_has_way(Py_TYPE(root), SEED) ? GRAD_INT : 0);
}

/* ---------------------------------------------------------------- numbers that were changed since */

#define READ_OF_ONE(name) \
    case OP_##name: \
        name##_local_grads(in[0], node->data, local_grads); \
        break;
#define READ_OF_TWO(name) \
    case OP_##name: \
        name##_local_grads(in[0], in[1], node->data, local_grads); \
        break;

void stand_in_read_late(Value *node)
{
    enum kind kind = kind_of(node);
    unsigned op = op_of(node);
    if (kind == MANY && details_of(node)->formula != NULL)
        formula_read_late(node);
    if (kind == LEAF || op >= OP_COUNT || op_inputs[op] > 2 || !stand_in_has_way(Py_TYPE(node), READS_LATE))
        return;
    Details *details = kind == MANY ? details_of(node) : NULL;
    if (details != NULL && (details->local_count != op_inputs[op] || details->count != op_inputs[op]))
        return;
    double in[MOST_NAMES] = {0.0}, *local_grads = details ? details->local_grads : node->local_grads, out;
    if (details != NULL) {
        for (Py_ssize_t i = 0; i < details->count; i++)
            in[i] = details->children[i]->data;
        for (Py_ssize_t i = 0; i < op_parameters[op]; i++)
            in[details->count + i] = details->parameters[i];
    }
    else {
        in[0] = kind == CONSTANT_CHILD ? node->number : first_of(node)->data;
        in[1] = kind == TWO ? node->second->data : kind == CONSTANT_CHILD ? first_of(node)->data : node->number;
    }
    switch (op) {
    case OP_add:
    case OP_sub:
    case OP_neg:
        break; /* they are the same everywhere */
    READ_OF_TWO(mul)
    READ_OF_TWO(div)
    READ_OF_TWO(pow_number)
    READ_OF_ONE(exp)
    READ_OF_ONE(log)
    READ_OF_ONE(tanh)
    READ_OF_ONE(sigmoid)
    case OP_relu:
        relu_local_grads(stand_in_has_way(Py_TYPE(node), RELU_READS_OUT) ? node->data : in[0], node->data, local_grads);
        break;
    default:
        op_evaluate(op, in, &out, local_grads);
    }
}

/* ---------------------------------------------------------------- operators that a class composes of others */

static PyObject *stand_in_add(PyObject *left, PyObject *right)
{
    binaryfunc add = value_type->tp_as_number->nb_add;
    if (is_value(left) || !stand_in_has_way(Py_TYPE(right), RADD))
        return add(left, right);
    /* a subclass, or the script by now, may have a sum of its own */
    return Py_TYPE(right)->tp_as_number->nb_add == stand_in_add ? add(right, left) : PyNumber_Add(right, left);
}

static PyObject *stand_in_mul(PyObject *left, PyObject *right)
{
    binaryfunc mul = value_type->tp_as_number->nb_multiply;
    if (is_value(left) || !stand_in_has_way(Py_TYPE(right), RMUL))
        return mul(left, right);
    return Py_TYPE(right)->tp_as_number->nb_multiply == stand_in_mul ? mul(right, left) : PyNumber_Multiply(right, left);
}

static int stand_in_composes(PyObject *left, PyObject *right, enum way way, enum way reflected)
{
    return is_value(left) ? stand_in_has_way(Py_TYPE(left), way) : stand_in_has_way(Py_TYPE(right), reflected);
}

/* Steals `second`, which may be NULL. */
static PyObject *stand_in_combined(binaryfunc function, PyObject *first, PyObject *second)
{
    PyObject *out = second ? function(first, second) : NULL;
    Py_XDECREF(second);
    return out;
}

static PyObject *stand_in_neg(PyObject *self)
{
    if (!stand_in_has_way(Py_TYPE(self), NEG))
        return value_type->tp_as_number->nb_negative(self);
    return stand_in_combined(PyNumber_Multiply, self, PyLong_FromLong(-1));
}

static PyObject *stand_in_sub(PyObject *left, PyObject *right)
{
    if (!stand_in_composes(left, right, SUB, RSUB))
        return value_type->tp_as_number->nb_subtract(left, right);
    return stand_in_combined(PyNumber_Add, left, PyNumber_Negative(right));
}

static PyObject *stand_in_reciprocal(PyObject *x)
{
    PyObject *exponent = PyLong_FromLong(-1);
    PyObject *out = exponent ? PyNumber_Power(x, exponent, Py_None) : NULL;
    Py_XDECREF(exponent);
    return out;
}

static PyObject *stand_in_div(PyObject *left, PyObject *right)
{
    if (!stand_in_composes(left, right, TRUEDIV, RTRUEDIV))
        return value_type->tp_as_number->nb_true_divide(left, right);
    return stand_in_combined(PyNumber_Multiply, left, stand_in_reciprocal(right));
}

/* ---------------------------------------------------------------- the types */

static PyObject *stand_in_richcompare(PyObject *self, PyObject *other, int comparison)
{
    if (comparison == Py_EQ || comparison == Py_NE)
        Py_RETURN_NOTIMPLEMENTED; /* Python then compares identities */
    return value_type->tp_richcompare(self, other, comparison);
}

static int stand_in_bool(PyObject *self)
{
    (void)self;
    return 1;
}

int stand_in_push_by_method(Value *node)
{
    if (!stand_in_has_way(Py_TYPE(node), HAS_METHOD))
        return 0; /* nothing is handed on until somebody says what */
    PyObject *result = PyObject_CallMethod((PyObject *)node, "_backward", NULL);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* What a node calls its operation; a script may say so afterwards. None. */
static PyObject *stand_in_set_op(PyObject *self, PyObject *given)
{
    int named = PyUnicode_Check(given) && cycles_about_to_hold((Value *)self, given) == 0;
    Details *details = named ? value_details((Value *)self) : NULL;
    if (details == NULL)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "op: expected a string, got %R", given);
    Py_INCREF(given);
    Py_XSETREF(details->op, given);
    Py_RETURN_NONE;
}

/* What vars() shows of a node of a class without slots. New. */
static PyObject *stand_in_get_dict(PyObject *self, void *closure)
{
    (void)closure;
    return PyObject_CallMethod(self, "_shown_in_vars", NULL);
}

static PyGetSetDef stand_in_getset[] = {
    {"__dict__", stand_in_get_dict, NULL, "The attributes of this node.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef stand_in_methods[] = {
    {"_set_op", stand_in_set_op, METH_O, "_set_op($self, op, /)\n--\n\nCall this node's operation so."},
    {"backward", backward_keeping, METH_NOARGS, "Set this gradient to 1, and add to that of every node below."},
    {NULL, NULL, 0, NULL},
};

COLD PyObject *stand_in_new(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    unsigned long ways;
    if (!PyArg_ParseTuple(args, "sk:stand_in", &name, &ways))
        return NULL;
    StandIn *grown = PyMem_RawRealloc(stand_ins, (size_t)(stand_in_count + 1) * sizeof *grown);
    if (grown == NULL)
        return PyErr_NoMemory();
    stand_ins = grown;
    PyType_Slot slots[] = {
        {Py_tp_new, value_new},
        {Py_tp_init, value_init},
        {Py_tp_dealloc, value_dealloc},
        {Py_tp_is_gc, value_is_gc},
        {Py_tp_traverse, value_traverse},
        {Py_tp_clear, value_clear},
        {Py_tp_richcompare, stand_in_richcompare},
        {Py_tp_hash, value_type->tp_hash},
        {Py_nb_bool, stand_in_bool},
        {Py_nb_add, stand_in_add},
        {Py_nb_multiply, stand_in_mul},
        {Py_nb_negative, stand_in_neg},
        {Py_nb_subtract, stand_in_sub},
        {Py_nb_true_divide, stand_in_div},
        {Py_tp_methods, stand_in_methods},
        {Py_tp_getset, stand_in_getset},
        {0, NULL},
    };
    char *kept = PyMem_RawMalloc(strlen(name) + 1); /* for ever, as the type: before Python 3.11 it is not copied */
    if (kept == NULL)
        return PyErr_NoMemory();
    strcpy(kept, name);
    PyType_Spec spec = {
        .name = kept,
        /* more than a node has, and never touched: a type that adds to its base is no other's like, so Python refuses to
         * assign a node's __class__, and with it to drop a reference to the old type, which nodes in slabs do not hold */
        .basicsize = sizeof(Value) + sizeof(void *),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    PyObject *bases = PyTuple_Pack(1, value_type);
    PyTypeObject *type = bases ? (PyTypeObject *)PyType_FromSpecWithBases(&spec, bases) : NULL;
    Py_XDECREF(bases);
    if (type == NULL)
        return NULL;
    const char *dot = strrchr(kept, '.');
    type->tp_name = dot ? dot + 1 : kept; /* as a class written in Python is called in messages */
    type->tp_vectorcall = value_vectorcall;
    stand_ins[stand_in_count++] = (StandIn){(PyTypeObject *)Py_NewRef(type), ways};
    return (PyObject *)type;
}

PyObject *stand_in_set_ways(PyObject *module, PyObject *args)
{
    (void)module;
    PyTypeObject *type;
    unsigned long ways;
    if (!PyArg_ParseTuple(args, "O!k:stand_in_set_ways", &PyType_Type, &type, &ways))
        return NULL;
    StandIn *stand_in = PyType_IsSubtype(type, value_type) ? stand_in_of(type) : NULL;
    if (stand_in == NULL)
        return PyErr_Format(PyExc_TypeError, "stand_in_set_ways: expected a stand-in, got %R", type);
    stand_in->ways = ways;
    Py_RETURN_NONE;
}

PyObject *stand_in_nodes(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(nodes_made);
}
