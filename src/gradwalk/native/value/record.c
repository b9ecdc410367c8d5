/* Operations: compute, keep the local gradients, and record a node. */

#include "value.h"

/* ---------------------------------------------------------------- nodes; each returns a new reference */

static inline Value *record_one(unsigned op, Value *child, double data, double local_grad)
{
    Value *out = value_blank();
    if (out == NULL)
        return NULL;
    Py_INCREF(child);
    out->data = data;
    out->link = make_link(child, op, ONE);
    out->local_grads[0] = local_grad;
    if (Py_TYPE(child) != value_type) {
        stand_in_join(out, child);
        stand_in_infer(out, (child->link & DATA_INT) != 0);
    }
    return recorded(out);
}

/* `plain`, known where it is inlined: both are of the type itself. */
static ALWAYS_INLINE Value *record_two(unsigned op, Value *first, Value *second, double data, double local0,
                                       double local1, const int plain)
{
    Value *out = value_blank();
    if (out == NULL)
        return NULL;
    Py_INCREF(first);
    Py_INCREF(second);
    out->data = data;
    out->link = make_link(first, op, TWO);
    out->second = second;
    out->local_grads[0] = local0;
    out->local_grads[1] = local1;
    if (!plain && Py_TYPE(first) != value_type) {
        stand_in_join(out, first);
        stand_in_infer(out, (first->link & second->link & DATA_INT) != 0);
    }
    return recorded(out);
}

/* The same where that is seldom: of two Values by a function's name, and by an operator where one is of another type. */
NEVER_INLINE static PyObject *record_mixed(unsigned op, PyObject *left, PyObject *right, double out,
                                           const double *local_grads)
{
    return (PyObject *)record_two(op, (Value *)left, (Value *)right, out, local_grads[0], local_grads[1], 0);
}

/* A child beside a plain number: a constant operand, or the operation's parameter. */
static inline Value *record_number(unsigned op, enum kind kind, Value *child, double number, double data,
                                   double local0, double local1)
{
    Value *out = value_blank();
    if (out == NULL)
        return NULL;
    Py_INCREF(child);
    out->data = data;
    out->link = make_link(child, op, kind);
    out->number = number;
    out->local_grads[0] = local0;
    out->local_grads[1] = local1;
    if (Py_TYPE(child) != value_type)
        stand_in_join(out, child);
    return recorded(out);
}

/* Steals and returns the node; `number` is what it was given beside its child. */
static inline PyObject *record_with_number(Value *out, PyObject *number)
{
    if (out != NULL && Py_TYPE(out) != value_type)
        stand_in_note_number(out, number);
    return (PyObject *)out;
}

/* Three inputs and parameters together: more than a node has room for. */
static Value *record_details(unsigned op, PyObject *const *arguments, const double *in, double data,
                             const double *local_grads)
{
    Py_ssize_t count = op_inputs[op];
    Value *out = value_many(op, data, count);
    if (out == NULL)
        return NULL;
    Details *details = details_of(out);
    details->count = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        Value *child = (Value *)arguments[i];
        if (is_value(arguments[i]))
            Py_INCREF(child);
        else if ((child = value_constant(in[i])) == NULL) {
            Py_DECREF(out);
            return NULL;
        }
        details->children[i] = child;
        details->count = i + 1;
        details->local_grads[i] = local_grads[i];
    }
    for (Py_ssize_t i = 0; i < op_parameters[op]; i++)
        details->parameters[i] = in[count + i];
    if (Py_TYPE(arguments[0]) != value_type && is_value(arguments[0]))
        stand_in_join(out, (Value *)arguments[0]);
    return recorded(out);
}

/* ---------------------------------------------------------------- any row of the table */

static inline int record_evaluate(unsigned op, const double *in, double *out, double *local_grads,
                                  PyObject *const *inputs)
{
    if (op_evaluate(op, in, out, local_grads) && !(op_overflows[op] && isinf(*out)))
        return 0;
    return errors_check(op, in, *out, inputs);
}

static PyObject *record_unary(unsigned op, PyObject *self)
{
    Value *x = (Value *)self;
    double in[MOST_NAMES] = {x->data}, out, local_grads[MOST_INPUTS];
    if (op == OP_relu) { /* cheaper than the call, and never refused */
        out = relu_forward(in[0]);
        relu_local_grads(in[0], out, local_grads);
    }
    else if (record_evaluate(op, in, &out, local_grads, &self) < 0) {
        return NULL;
    }
    return (PyObject *)record_one(op, x, out, local_grads[0]);
}

PyObject *record_op(unsigned op, PyObject *const *arguments, Py_ssize_t count)
{
    Py_ssize_t inputs = op_inputs[op], all = inputs + op_parameters[op];
    double in[MOST_NAMES] = {0.0}, out, local_grads[MOST_INPUTS] = {0.0};
    int values = 0; /* bit i: input i is a Value */
    if (count < all - op_default_count[op] || count > all) {
        PyErr_Format(PyExc_TypeError, "%s: expected %s, got %zd arguments", op_names[op], op_arguments[op], count);
        return NULL;
    }
    if (all == 1 && is_value(arguments[0]))
        return record_unary(op, arguments[0]);
    if (op == OP_pow && is_value(arguments[0]))
        return PyNumber_Power(arguments[0], arguments[1], Py_None); /* by a plain number, it is a row of its own */
    for (Py_ssize_t i = 0; i < all; i++) {
        if (i >= count) {
            in[i] = op_defaults[op][i - inputs];
        }
        else if (i < inputs && is_value(arguments[i])) {
            in[i] = ((Value *)arguments[i])->data;
            values |= 1 << i;
        }
        else if (number_from(arguments[i], op_names[op], NULL, &in[i]) < 0) {
            return NULL;
        }
    }
    if (record_evaluate(op, in, &out, local_grads, arguments) < 0)
        return NULL;
    if (values == 0)
        return PyFloat_FromDouble(out);
    if (all > 2)
        return (PyObject *)record_details(op, arguments, in, out, local_grads);
    if (values == 3)
        return record_mixed(op, arguments[0], arguments[1], out, local_grads);
    int right = values == 1; /* where the number is */
    enum kind kind = inputs == 1 ? ONE_NUMBER : right ? CHILD_CONSTANT : CONSTANT_CHILD;
    return (PyObject *)record_number(op, kind, (Value *)arguments[!right], in[right], out, local_grads[0],
                                     local_grads[1]);
}

PyObject *record_apply(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self;
    const char *name = count > 0 ? PyUnicode_AsUTF8(arguments[0]) : "";
    if (name == NULL)
        return NULL;
    for (unsigned op = 0; op < OP_COUNT; op++) {
        if (strcmp(op_names[op], name) == 0)
            return record_op(op, arguments + 1, count - 1);
    }
    return PyErr_Format(PyExc_KeyError, "%s", name);
}

/* ---------------------------------------------------------------- operators */

/* The operator for two Values, and apart from it, so that it need not make room for what it seldom does, for a Value and
 * a number in either order, and for classes derived from Value. COMPUTE sets out and local_grads from x and y, and may
 * return. */
#define OPERATOR(name, COMPUTE) \
    NEVER_INLINE static PyObject *operator_##name##_mixed(PyObject *left, PyObject *right) \
    { \
        double x, y, given, out, local_grads[2]; \
        PyObject *const operands[2] = {left, right}; \
        if (Py_TYPE(left) == Py_TYPE(right) && is_node_type(Py_TYPE(left))) { \
            x = ((Value *)left)->data; \
            y = ((Value *)right)->data; \
            COMPUTE(name) \
            return record_mixed(OP_##name, left, right, out, local_grads); \
        } \
        int first = is_value(left); \
        Value *child = (Value *)operands[!first]; \
        PyObject *other = operands[first]; \
        int known = 1; \
        if (LIKELY(PyFloat_CheckExact(other))) \
            given = PyFloat_AS_DOUBLE(other); \
        else if ((known = number_from(other, op_names[OP_##name], child, &given)) <= 0) \
            return record_not_known(known); \
        x = first ? child->data : given; \
        y = first ? given : child->data; \
        COMPUTE(name) \
        if (is_value(other)) \
            return record_mixed(OP_##name, left, right, out, local_grads); \
        return record_with_number(record_number(OP_##name, first ? CHILD_CONSTANT : CONSTANT_CHILD, child, given, out, \
                                                local_grads[0], local_grads[1]), other); \
    } \
    static PyObject *operator_##name(PyObject *left, PyObject *right) \
    { \
        if (Py_TYPE(left) != value_type || Py_TYPE(right) != value_type) \
            return operator_##name##_mixed(left, right); \
        double x = ((Value *)left)->data, y = ((Value *)right)->data, out, local_grads[2]; \
        PyObject *const operands[2] = {left, right}; \
        COMPUTE(name) \
        return (PyObject *)record_two(OP_##name, (Value *)left, (Value *)right, out, local_grads[0], local_grads[1], \
                                      1); \
    }

#define COMPUTE_EVERYWHERE(name) \
    (void)operands; \
    out = name##_forward(x, y); \
    name##_local_grads(x, y, out, local_grads);

#define COMPUTE_CHECKED(name) \
    out = name##_forward(x, y); \
    name##_local_grads(x, y, out, local_grads); \
    if ((!name##_domain(x, y) || (op_overflows[OP_##name] && isinf(out))) \
        && errors_check(OP_##name, (const double[]){x, y}, out, operands) < 0) \
        return NULL;

/* Seldom asked for. */
#define COMPUTE_BY_TABLE(name) \
    if (record_evaluate(OP_##name, (const double[]){x, y}, &out, local_grads, operands) < 0) \
        return NULL;

static PyObject *record_not_known(int known)
{
    if (known < 0)
        return NULL;
    Py_RETURN_NOTIMPLEMENTED;
}

OPERATOR(add, COMPUTE_EVERYWHERE)
OPERATOR(sub, COMPUTE_EVERYWHERE)
OPERATOR(mul, COMPUTE_EVERYWHERE)
OPERATOR(div, COMPUTE_CHECKED)
OPERATOR(pow, COMPUTE_BY_TABLE)

static PyObject *operator_power(PyObject *base, PyObject *exponent, PyObject *modulus)
{
    static PyObject *two; /* most powers are squares, and Python has one such int: to know it is quicker than to read it */
    if (modulus != Py_None) {
        PyErr_SetString(PyExc_TypeError, "pow: expected no modulus, it has no derivative");
        return NULL;
    }
    if (is_value(base) && !is_value(exponent)) {
        double x = ((Value *)base)->data, y, out, local_grads[1];
        PyObject *const operands[1] = {base};
        int known = 1;
        if (exponent == two)
            y = 2.0;
        else if ((known = number_from(exponent, "pow", (Value *)base, &y)) <= 0)
            return record_not_known(known);
        else if (two == NULL && y == 2.0 && PyLong_CheckExact(exponent))
            two = Py_NewRef(exponent);
        COMPUTE_CHECKED(pow_number)
        return record_with_number(
            record_number(OP_pow_number, ONE_NUMBER, (Value *)base, y, out, local_grads[0], 0.0), exponent);
    }
    return operator_pow(base, exponent);
}

static PyObject *operator_neg(PyObject *self) { return record_unary(OP_neg, self); }
static PyObject *operator_abs(PyObject *self) { return record_unary(OP_abs, self); }

static PyObject *operator_pos(PyObject *self)
{
    Py_INCREF(self);
    return self;
}

PyType_Slot record_slots[] = {
    {Py_nb_add, operator_add},
    {Py_nb_subtract, operator_sub},
    {Py_nb_multiply, operator_mul},
    {Py_nb_true_divide, operator_div},
    {Py_nb_power, operator_power},
    {Py_nb_negative, operator_neg},
    {Py_nb_positive, operator_pos},
    {Py_nb_absolute, operator_abs},
    {0, NULL},
};

/* ---------------------------------------------------------------- functions and methods, one pair per row */

/* record_op() of this and so many others. */
NEVER_INLINE static PyObject *record_beside(unsigned op, PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *all[MOST_NAMES + 1] = {self};
    for (Py_ssize_t i = 0; i < count && i < MOST_NAMES; i++)
        all[i + 1] = arguments[i];
    return record_op(op, all, count + 1);
}

#define FUNCTION(name, doc) \
    static PyObject *function_##name(PyObject *module, PyObject *const *arguments, Py_ssize_t count) \
    { \
        (void)module; \
        if (op_inputs[OP_##name] == 1 && count == 1 && op_parameters[OP_##name] == 0 \
            && Py_TYPE(arguments[0]) == value_type) \
            return record_unary(OP_##name, arguments[0]); \
        return record_op(OP_##name, arguments, count); \
    } \
    static PyObject *method_##name(PyObject *self, PyObject *const *arguments, Py_ssize_t count) \
    { \
        if (op_inputs[OP_##name] == 1 && count == 0 && op_parameters[OP_##name] == 0) \
            return record_unary(OP_##name, self); \
        return record_beside(OP_##name, self, arguments, count); \
    }
FOR_EACH_OP(FUNCTION)
#undef FUNCTION

PyMethodDef record_functions[] = {
#define ENTRY(name, doc) \
    {#name, (PyCFunction)(void (*)(void))function_##name, METH_FASTCALL, #name SIGNATURE_OF_FUNCTION_##name doc},
    FOR_EACH_OP(ENTRY)
#undef ENTRY
    {NULL, NULL, 0, NULL},
};

PyMethodDef record_methods[] = {
#define ENTRY(name, doc) \
    {#name, (PyCFunction)(void (*)(void))method_##name, METH_FASTCALL, #name SIGNATURE_OF_METHOD_##name doc},
    FOR_EACH_OP(ENTRY)
#undef ENTRY
#define ENTRY(name, alias) \
    {#alias, (PyCFunction)(void (*)(void))method_##name, METH_FASTCALL, \
     #alias SIGNATURE_OF_METHOD_##name "The same as " #name "."},
    FOR_EACH_ALIAS(ENTRY)
#undef ENTRY
    {NULL, NULL, 0, NULL},
};
