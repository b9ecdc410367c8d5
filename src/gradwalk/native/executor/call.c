/* Calls of Python functions (custom_op), a row of inputs each. One example wide, with the GIL held. */

#include "step.h"
#include "read.h"

/* What a call needs beside its operand: `evaluated` of the function at that place, and the guards before it. */
static int call_choose(Step *step, const Kernels *kernels, Count parameters, PyObject *functions)
{
    (void)kernels, (void)parameters;
    Count count = functions ? PyTuple_GET_SIZE(functions) : 0, place = step_whole(step->parameters[0], count);
    step->call.guards = step_whole(step->parameters[1], INT32_MAX);
    if ((double)place != step->parameters[0] || (double)step->call.guards != step->parameters[1] || place >= count) {
        PyErr_Format(PyExc_ValueError, "Executor: expected a call of one of %zd functions, and whole numbers", count);
        return -1;
    }
    step->call.function = read_attribute(PyTuple_GET_ITEM(functions, place), "evaluated");
    return step->call.function == NULL ? -1 : 0;
}

static void call_release(Step *step) { Py_XDECREF(step->call.function); }

/* ---------------------------------------------------------------- shapes, and what depends on what */

static int call_fits(const Step *step) { return step->columns == 1 && step->operands[0].rows == step->rows; }

static Count call_scratch(const Step *step) { return step->operands[0].columns; }

/* The local gradients are kept for the reverse pass. */
static Count call_facts(const Step *step) { return step->rows * step->operands[0].columns; }

static int call_depends(const Step *step, Count row, Count column, const unsigned char *marked)
{
    (void)column;
    return view_row_is_marked(&step->operands[0], row, marked);
}

/* ---------------------------------------------------------------- forward and reverse */

/* The output and the local gradients that the function gives for these inputs; -1 with an exception set. */
static int call_evaluate(PyObject *function, const double *x, Count n, double *out, double *local_grads)
{
    PyObject *inputs = PyList_New(n);
    for (Count k = 0; inputs != NULL && k < n; k++) {
        PyObject *number = PyFloat_FromDouble(x[k]);
        if (number == NULL)
            Py_CLEAR(inputs);
        else
            PyList_SET_ITEM(inputs, k, number);
    }
    PyObject *both = inputs && function ? PyObject_CallFunctionObjArgs(function, inputs, NULL) : NULL;
    Py_XDECREF(inputs);
    PyObject *slopes = NULL;
    int known = both != NULL && PyArg_ParseTuple(both, "dO!", out, &PyList_Type, &slopes)
             && PyList_GET_SIZE(slopes) == n;
    for (Count k = 0; known && k < n; k++)
        local_grads[k] = PyFloat_AsDouble(PyList_GET_ITEM(slopes, k));
    if (!known && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "Executor: expected a function to give a number and %zd local gradients", n);
    Py_XDECREF(both);
    return PyErr_Occurred() ? -1 : 0;
}

/* -1 with an exception set. */
INTERNAL int call_python(const Step *step, const Memory *memory)
{
    const Operand *x = &step->operands[0];
    double *local_grads = memory->facts + step->facts;
    for (Count r = 0; r < step->rows; r++, local_grads += x->columns) {
        view_lane(x, memory, r, 0, memory->scratch);
        double *out = &memory->values[step->out + r];
        if (call_evaluate(step->call.function, memory->scratch, x->columns, out, local_grads) < 0)
            return -1;
    }
    return 0;
}

static void call_reverse(const Kernels *kernels, const Step *step, const Memory *memory)
{
    (void)kernels;
    const Operand *x = &step->operands[0];
    const double *local_grads = memory->facts + step->facts;
    for (Count r = 0; r < step->rows; r++, local_grads += x->columns) {
        for (Count k = 0; k < x->columns; k++)
            memory->grads[view_slot(x, r, k)] += contribution(NO_OP, local_grads[k], memory->grads[step->out + r]);
    }
}

/* ---------------------------------------------------------------- doubt */

COLD static void call_doubt(const Step *step, const Memory *memory, double *doubt)
{
    const Operand *x = &step->operands[0];
    const double *local_grads = memory->facts + step->facts;
    for (Count r = 0; r < step->rows; r++, local_grads += x->columns)
        doubt[step->out + r] = step_carried_doubt(x, r, x->columns, local_grads, doubt);
}

const Kind call_kind = {
    .choose = call_choose, .release = call_release, .fits = call_fits, .scratch = call_scratch, .facts = call_facts,
    .reverse = call_reverse, .depends = call_depends, .doubt = call_doubt,
};
