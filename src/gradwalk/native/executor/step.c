/* From the instructions of compiler/program.py to steps: read once, checked once, so that running need not. */

#include "step.h"
#include "read.h"

const Kind *const KINDS[KIND_COUNT] = {
    [KIND_ENTRIES] = &entries_kind, [KIND_ROWS] = &rows_kind, [KIND_DOT] = &dot_kind,
    [KIND_MATMUL] = &matmul_kind, [KIND_TAKE] = &take_kind, [KIND_CALL] = &call_kind,
};

/* ---------------------------------------------------------------- reading */

/* What an instruction of that name takes. */
typedef struct {
    enum step_kind kind;
    unsigned op;
    int operands, parameters, more; /* so many parameters, or `more` than that */
} Signature;

COLD static int step_signature(const char *name, int exact, Signature *found)
{
    if (strcmp(name, "call") == 0) {
        *found = (Signature){KIND_CALL, NO_OP, 1, 2, 0};
        return 0;
    }
    if (strcmp(name, "matmul") == 0) {
        *found = (Signature){KIND_MATMUL, NO_OP, 2, 0, 0};
        return 0;
    }
    for (unsigned op = 0; op < OP_COUNT; op++) {
        if (strcmp(name, op_names[op]) == 0) {
            *found = (Signature){KIND_ENTRIES, op, op_inputs[op], op_parameters[op], 0};
            return 0;
        }
    }
    for (unsigned op = OP_COUNT; op < NO_OP; op++) {
        if (strcmp(name, composites[op - OP_COUNT].name) != 0)
            continue;
        enum step_kind kind = op == COMPOSITE_dot ? KIND_DOT : op == COMPOSITE_take ? KIND_TAKE : KIND_ROWS;
        const Composite *composite = composite_of(op);
        int operands = kind == KIND_ROWS && !composite->has_target ? 1 : 2;
        *found = (Signature){kind, op, operands, composite->parameters, exact && composite->per_entry};
        return 0;
    }
    PyErr_Format(PyExc_ValueError, "Executor: expected a known op, got '%s'", name);
    return -1;
}

/* The attribute of that name as a tuple of so many. New, or NULL with an exception set. */
static PyObject *step_tuple(PyObject *instruction, const char *name, Count expected, Count more)
{
    PyObject *given = read_attribute(instruction, name);
    PyObject *tuple = given ? PySequence_Tuple(given) : NULL;
    Py_XDECREF(given);
    if (tuple != NULL && PyTuple_GET_SIZE(tuple) != expected && PyTuple_GET_SIZE(tuple) != expected + more) {
        PyErr_Format(PyExc_ValueError, "Executor: expected an instruction with %zd %s, got %zd", expected, name,
                     PyTuple_GET_SIZE(tuple));
        Py_CLEAR(tuple);
    }
    return tuple;
}

/* Returns how many there are, or -1 with an exception set. */
static Count step_read_parameters(PyObject *instruction, const Signature *signature, Step *step)
{
    PyObject *parameters = step_tuple(instruction, "parameters", signature->parameters, signature->more);
    Count count = parameters ? PyTuple_GET_SIZE(parameters) : 0;
    for (Count i = 0; i < count; i++)
        step->parameters[i] = PyFloat_AsDouble(PyTuple_GET_ITEM(parameters, i));
    Py_XDECREF(parameters);
    return PyErr_Occurred() ? -1 : count;
}

static int step_read_operands(PyObject *instruction, Count count, Count size, Step *step)
{
    PyObject *operands = step_tuple(instruction, "operands", count, 0);
    if (operands == NULL)
        return -1;
    int failed = (step->operands = PyMem_Calloc((size_t)count, sizeof *step->operands)) == NULL;
    if (failed)
        PyErr_NoMemory();
    for (int j = 0; !failed && j < count; j++) {
        step->operand_count = j + 1;
        failed = read_view(PyTuple_GET_ITEM(operands, j), size, &step->operands[j]) < 0;
    }
    Py_DECREF(operands);
    return failed ? -1 : 0;
}

/* Rows of different lengths, where there are some. */
COLD static int step_read_lengths(PyObject *instruction, Step *step)
{
    PyObject *given = read_attribute(instruction, "lengths");
    Count count = 0, columns = step->operands[0].columns;
    if (given != NULL && given != Py_None) {
        step->lengths = read_slots(given, "lengths", columns + 1, step->rows, &count);
        for (Count r = 0; r < count && step->lengths != NULL; r++) {
            if (step->lengths[r] < 1)
                PyErr_SetString(PyExc_ValueError, "Executor: expected rows of at least one entry");
        }
    }
    Py_XDECREF(given);
    return PyErr_Occurred() ? -1 : 0;
}

/* Fills a step that is all zero. On failure what it owns is left to step_release. */
INTERNAL int step_read(PyObject *instruction, Count size, const Kernels *kernels, int exact, PyObject *functions,
                       Step *step)
{
    if (read_count(instruction, "out", 0, size, &step->out) < 0
        || read_count(instruction, "rows", 1, size, &step->rows) < 0
        || read_count(instruction, "columns", 1, (size - step->out) / step->rows, &step->columns) < 0)
        return -1;
    PyObject *op = read_attribute(instruction, "op");
    const char *name = op ? PyUnicode_AsUTF8(op) : NULL;
    Signature signature = {0}; /* gcc 16 does not see that what has not failed has filled it */
    int failed = name == NULL || step_signature(name, exact, &signature) < 0;
    Py_XDECREF(op);
    if (failed)
        return -1;
    step->kind = signature.kind;
    step->op = signature.op;
    Count parameters = step_read_parameters(instruction, &signature, step);
    if (parameters < 0 || step_read_operands(instruction, signature.operands, size, step) < 0
        || step_read_lengths(instruction, step) < 0)
        return -1;
    const Kind *kind = KINDS[step->kind];
    if (kind->choose != NULL && kind->choose(step, kernels, parameters, functions) < 0)
        return -1;
    if (!kind->fits(step) || (step->lengths != NULL && !kind->takes_lengths)) {
        PyErr_Format(PyExc_ValueError, "Executor: expected other operands for op %u (%zd by %zd at slot %zd)", step->op,
                     step->rows, step->columns, step->out);
        return -1;
    }
    step->rounds = !exact && kind->rounds != NULL && kind->rounds(step);
    return 0;
}

COLD INTERNAL void step_release(Step *step)
{
    for (int j = 0; j < step->operand_count; j++) {
        PyMem_Free(step->operands[j].index);
        PyMem_Free(step->operands[j].constants);
        PyMem_Free(step->operands[j].scatter);
    }
    PyMem_Free(step->operands);
    PyMem_Free(step->lengths);
    if (KINDS[step->kind]->release != NULL)
        KINDS[step->kind]->release(step);
}

/* ---------------------------------------------------------------- what depends on what */

/* Lists the entries of a gathered operand that have a gradient, where others have none. */
static int step_list_scatter(Operand *operand, const unsigned char *depends)
{
    Count all = operand->rows * operand->columns, count = 0;
    for (Count i = 0; i < all; i++)
        count += depends[operand->index[i]];
    if (count == all || all > INT32_MAX)
        return 0;
    operand->scatter = PyMem_Malloc((size_t)(2 * count + 1) * sizeof *operand->scatter);
    if (operand->scatter == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Count i = 0; i < all; i++) {
        if (depends[operand->index[i]]) {
            operand->scatter[2 * operand->scatter_count] = (int32_t)i;
            operand->scatter[2 * operand->scatter_count++ + 1] = operand->index[i];
        }
    }
    return 0;
}

/* Marks what depends on inputs, slot by slot, and packs operands that never change. */
INTERNAL int step_follow(Step *step, unsigned char *depends, unsigned char *written, const double *initial, int exact)
{
    const Kind *kind = KINDS[step->kind];
    if (kind->begin != NULL && kind->begin(step, written, initial, exact) < 0)
        return -1;
    int differentiable = kind->differentiable > 0 ? kind->differentiable : step->operand_count;
    for (int j = 0; j < step->operand_count; j++) {
        Operand *operand = &step->operands[j];
        int constant = kind->packed & (operand->direct ? PACKED_DIRECT : PACKED_GATHERED);
        for (Count r = 0; r < operand->rows; r++) {
            for (Count c = 0; c < operand->columns; c++) {
                Count slot = view_slot(operand, r, c);
                operand->needed |= j < differentiable && depends[slot];
                constant = constant && written[slot] != 1;
            }
        }
        step->needed |= operand->needed;
        if (operand->needed && operand->index != NULL && step_list_scatter(operand, depends) < 0)
            return -1;
        if (constant) {
            operand->constants = PyMem_Malloc((size_t)(operand->rows * operand->columns) * sizeof(double));
            if (operand->constants == NULL) {
                PyErr_NoMemory();
                return -1;
            }
            view_pack(operand, 1, initial, 0, operand->rows * operand->columns, operand->constants);
        }
    }
    if (kind->end != NULL && kind->end(step) < 0)
        return -1;
    size_t count = (size_t)(step->rows * step->columns);
    memset(written + step->out, 1, count);
    memset(depends + step->out, step->needed, count);
    return 0;
}

/* Backwards over the steps: marks what an output depends on; a step that none depends on has no gradient to pass. What a
 * matrix product is the first to come to is fresh: to clear it before would take a good part of the product's time. */
INTERNAL void step_follow_back(Step *step, unsigned char *reaches, int exact)
{
    int reached = 0, writes_first = KINDS[step->kind]->writes_first && !exact;
    for (Count i = 0; i < step->rows * step->columns && !reached; i++)
        reached = reaches[step->out + i];
    step->needed &= reached;
    for (int j = 0; j < step->operand_count && step->needed; j++) {
        Operand *operand = &step->operands[j];
        operand->fresh = operand->needed && writes_first && operand->direct && view_has_rows(operand);
        for (Count r = 0; r < operand->rows && operand->needed; r++) {
            for (Count c = 0; c < operand->columns; c++) {
                operand->fresh &= !reaches[view_slot(operand, r, c)];
                reaches[view_slot(operand, r, c)] = 1;
            }
        }
    }
}

/* The doubt that comes with the first entries of a row, each times its local gradient; 0 stays 0, whatever the gradient. */
INTERNAL double step_carried_doubt(const Operand *operand, Count row, Count count, const double *local_grads,
                                   const double *doubt)
{
    double carried = 0.0;
    for (Count k = 0; k < count; k++) {
        double here = doubt[view_slot(operand, row, k)];
        carried += here == 0.0 ? 0.0 : fabs(local_grads[k]) * here;
    }
    return carried;
}
