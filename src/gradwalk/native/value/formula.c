/* An operation of a script's class that is not quite the table's, as a formula that gradwalk/run/formulas.py read off
 * its source: a program for a small stack machine, with the arithmetic of Python's floats. Whatever is not finite on the
 * way (there Python may raise) and whatever is no float is left to the script's own method.
 *
 * A formula is a tuple (method, word, code, numbers, gradient, late): the code of the result and, from byte `gradient`
 * on, that of the local gradient; numbers are doubles; late: the gradient follows numbers that change before backward().
 */

#include "value.h"

enum {
    F_END, /* the result is on the stack */
    F_NUMBER, /* the byte that follows says which */
    F_X_BEFORE, F_OUT_BEFORE, F_X_NOW, F_OUT_NOW, /* the operand and the result, as they were and as they are */
    F_ADD, F_SUB, F_MUL, F_DIV, F_POW,
    F_LT, F_LE, F_EQ, F_NE, F_GT, F_GE, /* as Py_LT and the like */
    F_SELECT, /* of a condition and two numbers */
    F_NEG, F_FUNCTION, /* and all after it, in the order of `functions` */
};

typedef double (*function_of_one)(double);
static const function_of_one functions[] = {
    fabs, exp, expm1, log, log1p, sqrt, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh,
};
enum { F_FUNCTIONS = sizeof functions / sizeof *functions, F_DEEPEST = 32 };

static Py_ssize_t formula_popped_by(unsigned char op)
{
    return op >= F_NEG ? 1 : op == F_SELECT ? 3 : op >= F_ADD ? 2 : 0;
}

/* Whether code runs to its end within its stack; returns the place behind it, or -1. */
static Py_ssize_t formula_checked(PyObject *code, Py_ssize_t at, Py_ssize_t numbers)
{
    const unsigned char *bytes = (const unsigned char *)PyBytes_AS_STRING(code);
    for (Py_ssize_t depth = 0, count = PyBytes_GET_SIZE(code); at >= 0 && at < count;) {
        unsigned char op = bytes[at++];
        if (op == F_END)
            return depth == 1 ? at : -1;
        if (op >= F_FUNCTION + F_FUNCTIONS || depth < formula_popped_by(op)
            || (op == F_NUMBER && (at == count || bytes[at++] >= numbers)))
            return -1;
        depth += 1 - formula_popped_by(op);
        if (depth > F_DEEPEST)
            return -1;
    }
    return -1;
}

/* `in` has what F_X_BEFORE and those after it stand for. False where something on the way is not finite. */
static int formula_run(PyObject *formula, Py_ssize_t at, const double *in, double *result)
{
    int finite = 1;
    const unsigned char *code = (const unsigned char *)PyBytes_AS_STRING(PyTuple_GET_ITEM(formula, 2)) + at;
    const double *numbers = (const double *)PyBytes_AS_STRING(PyTuple_GET_ITEM(formula, 3));
    double stack[F_DEEPEST + 1], *top = stack; /* the last one is at top[-1] */
    for (unsigned char op; (op = *code++) != F_END;) {
        top -= formula_popped_by(op);
        switch (op) {
        case F_NUMBER: *top = numbers[*code++]; break;
        case F_X_BEFORE:
        case F_OUT_BEFORE:
        case F_X_NOW:
        case F_OUT_NOW: *top = in[op - F_X_BEFORE]; break;
        case F_ADD: *top = top[0] + top[1]; break;
        case F_SUB: *top = top[0] - top[1]; break;
        case F_MUL: *top = top[0] * top[1]; break;
        case F_DIV: *top = top[0] / top[1]; break;
        case F_POW: *top = pow(top[0], top[1]); break;
        case F_LT:
        case F_LE:
        case F_EQ:
        case F_NE:
        case F_GT:
        case F_GE: *top = number_compared(top[0], op - F_LT + Py_LT, top[1]); break;
        case F_SELECT: *top = top[top[0] != 0.0 ? 1 : 2]; break;
        case F_NEG: *top = -*top; break;
        default: *top = functions[op - F_FUNCTION](*top);
        }
        finite &= isfinite(*top++) != 0;
    }
    *result = *stack;
    return finite;
}

static int formula_gradient(PyObject *formula, const double *in, double *local_grad)
{
    return formula_run(formula, PyLong_AsSsize_t(PyTuple_GET_ITEM(formula, 4)), in, local_grad);
}

/* ---------------------------------------------------------------- a formula as a method: else, the script's own */

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *formula;
} Method;

static PyObject *formula_own(PyObject *self) { return PyTuple_GET_ITEM(((Method *)self)->formula, 0); } /* borrowed */

/* The node of an operand that is a float, if all is finite; NULL without an exception: it is for Python to say. New. */
static PyObject *formula_node(PyObject *formula, Value *x)
{
    double in[4] = {x->data, 0.0, x->data, 0.0}, local_grad;
    if (!formula_run(formula, 0, in, &in[1]))
        return NULL;
    in[3] = in[1];
    if (!formula_gradient(formula, in, &local_grad))
        return NULL;
    Value *made = value_many(NO_OP, in[1], 1);
    if (made == NULL)
        return NULL;
    Details *details = details_of(made);
    details->children[0] = (Value *)Py_NewRef(x);
    details->local_grads[0] = local_grad;
    details->op = Py_NewRef(PyTuple_GET_ITEM(formula, 1));
    if (PyTuple_GET_ITEM(formula, 5) == Py_True) {
        details->formula = Py_NewRef(formula);
        details->parameters[0] = in[0];
        details->parameters[1] = in[1];
    }
    stand_in_join(made, x);
    return (PyObject *)recorded(made);
}

/* New. */
static PyObject *formula_method_call(PyObject *self, PyObject *const *given, size_t count, PyObject *names)
{
    Value *x = PyVectorcall_NARGS(count) == 1 && names == NULL && is_value(given[0]) ? (Value *)given[0] : NULL;
    if (x != NULL && is_node_type(Py_TYPE(x)) && Py_TYPE(x) != value_type && !(x->link & DATA_INT)) {
        PyObject *made = formula_node(((Method *)self)->formula, x);
        if (made != NULL || PyErr_Occurred())
            return made;
    }
    return PyObject_Vectorcall(formula_own(self), given, count, names);
}

/* New. */
static PyObject *method_get(PyObject *self, PyObject *object, PyObject *type)
{
    (void)type;
    return object == NULL ? Py_NewRef(self) : PyMethod_New(self, object);
}

/* Its name, its documentation, its code. New. */
static PyObject *method_getattro(PyObject *self, PyObject *name)
{
    static const char *const here[] = {"__class__", "__get__", "__call__", "__reduce__", "__reduce_ex__"};
    for (size_t i = 0; PyUnicode_Check(name) && i < sizeof here / sizeof *here; i++) {
        if (PyUnicode_CompareWithASCIIString(name, here[i]) == 0)
            return PyObject_GenericGetAttr(self, name);
    }
    return PyObject_GetAttr(formula_own(self), name);
}

/* Copies of a function are the function itself. New. */
static PyObject *formula_method_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyObject_GetAttrString(formula_own(self), "__qualname__");
}

/* New. */
static PyObject *method_repr(PyObject *self) { return PyObject_Repr(formula_own(self)); }

static void method_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(((Method *)self)->formula);
    type->tp_free(self);
    Py_DECREF(type);
}

/* New. */
static PyTypeObject *formula_method_type(void)
{
    static PyMethodDef methods[] = {{"__reduce__", formula_method_reduce, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(Method, call), READONLY, NULL},
        {NULL, 0, 0, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_call, PyVectorcall_Call},
        {Py_tp_descr_get, method_get},
        {Py_tp_getattro, method_getattro},
        {Py_tp_repr, method_repr},
        {Py_tp_dealloc, method_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_members, members},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "gradwalk._native.function",
        .basicsize = sizeof(Method),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR
               | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    static PyTypeObject *type;
    if (type == NULL)
        type = (PyTypeObject *)PyType_FromSpec(&spec);
    return type;
}

/* Whatever comes of numbers that were changed: an infinity shows, where Python may raise. */
void formula_read_late(Value *node)
{
    Details *details = details_of(node);
    const double in[] = {details->parameters[0], details->parameters[1], details->children[0]->data, node->data};
    formula_gradient(details->formula, in, &details->local_grads[0]);
}

PyObject *formula_method(PyObject *module, PyObject *formula)
{
    (void)module;
    PyObject *own, *word, *code, *numbers, *late;
    Py_ssize_t gradient;
    if (!PyTuple_Check(formula))
        return PyErr_Format(PyExc_TypeError, "formula_method: expected a tuple, got %R", formula);
    if (!PyArg_ParseTuple(formula, "O!USSnO!:formula_method", &PyFunction_Type, &own, &word, &code, &numbers, &gradient,
                          &PyBool_Type, &late))
        return NULL;
    Py_ssize_t count = PyBytes_GET_SIZE(numbers) / (Py_ssize_t)sizeof(double);
    if (gradient < 0 || formula_checked(code, 0, count) != gradient || formula_checked(code, gradient, count) < 0)
        return PyErr_Format(PyExc_ValueError, "formula_method: %R is no program", code);
    PyTypeObject *type = formula_method_type();
    Method *method = type ? (Method *)type->tp_alloc(type, 0) : NULL;
    if (method != NULL) {
        method->call = formula_method_call;
        method->formula = Py_NewRef(formula);
    }
    return (PyObject *)method;
}
