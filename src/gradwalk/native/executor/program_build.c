/* From the objects of compiler/program.py to steps: read once, checked once, so that running need not. */

#include "program_steps.h"

/* ---------------------------------------------------------------- buffers */

/* A buffer of doubles, to be released with PyBuffer_Release; `count` -1: of any length. */
static int doubles_from(PyObject *given, const char *what, Count count, int writable, Py_buffer *buffer)
{
    if (PyObject_GetBuffer(given, buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) < 0)
        return -1;
    if (buffer->format == NULL || strcmp(buffer->format, "d") != 0
        || (count >= 0 && buffer->len != count * (Count)sizeof(double))) {
        if (count >= 0)
            PyErr_Format(PyExc_ValueError, "Executor: expected %zd doubles as %s, got %zd bytes of format '%s'", count,
                         what, buffer->len, buffer->format ? buffer->format : "B");
        else
            PyErr_Format(PyExc_TypeError, "Executor: expected doubles as %s, got format '%s'", what,
                         buffer->format ? buffer->format : "B");
        PyBuffer_Release(buffer);
        return -1;
    }
    return 0;
}

/* Slot numbers, checked and copied; released with PyMem_Free. */
static int32_t *slots_from(PyObject *given, const char *what, Count size, Count expected, Count *count)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(given, &buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0)
        return NULL;
    *count = buffer.len / 4;
    int32_t *slots = NULL;
    if (buffer.format == NULL || buffer.itemsize != 4 || (buffer.format[0] != 'i' && buffer.format[0] != 'l')
        || (expected >= 0 && *count != expected)) {
        PyErr_Format(PyExc_TypeError, "Executor: expected slots as an array of int32 for %s", what);
    }
    else if ((slots = PyMem_Malloc((size_t)(*count + 1) * sizeof *slots)) == NULL) {
        PyErr_NoMemory();
    }
    else {
        memcpy(slots, buffer.buf, (size_t)buffer.len);
        for (Count i = 0; i < *count; i++) {
            if (slots[i] < 0 || slots[i] >= size) {
                PyErr_Format(PyExc_ValueError, "Executor: expected slots from 0 to %zd for %s, got %d", size - 1, what,
                             (int)slots[i]);
                PyMem_Free(slots);
                slots = NULL;
                break;
            }
        }
    }
    PyBuffer_Release(&buffer);
    return slots;
}

static int count_from(PyObject *object, const char *name, Count *count)
{
    PyObject *given = PyObject_GetAttrString(object, name);
    *count = given ? PyNumber_AsSsize_t(given, PyExc_OverflowError) : -1;
    Py_XDECREF(given);
    return *count == -1 && PyErr_Occurred() ? -1 : 0;
}

/* ---------------------------------------------------------------- views */

/* A table of slots that is a strided view after all. */
static int strides_of_index(Operand *operand)
{
    const int32_t *index = operand->index;
    Count start = index[0], column = operand->columns > 1 ? index[1] - start : 1;
    Count row = operand->rows > 1 ? index[operand->columns] - start : 0;
    for (Count r = 0; r < operand->rows; r++) {
        for (Count c = 0; c < operand->columns; c++) {
            if (index[r * operand->columns + c] != start + r * row + c * column)
                return 0;
        }
    }
    operand->start = start, operand->row_stride = row, operand->column_stride = column;
    return 1;
}

static int operand_from(PyObject *view, Count size, Operand *operand)
{
    PyObject *index = NULL;
    if (count_from(view, "rows", &operand->rows) < 0 || count_from(view, "columns", &operand->columns) < 0
        || count_from(view, "start", &operand->start) < 0 || count_from(view, "row_stride", &operand->row_stride) < 0
        || count_from(view, "column_stride", &operand->column_stride) < 0
        || (index = PyObject_GetAttrString(view, "index")) == NULL)
        return -1;
    Count rows = operand->rows, columns = operand->columns, count;
    if (rows < 1 || columns < 1 || rows > PY_SSIZE_T_MAX / columns) {
        PyErr_Format(PyExc_ValueError, "Executor: expected a View of at least one entry, got %zd by %zd", rows,
                     columns);
        Py_DECREF(index);
        return -1;
    }
    if (index != Py_None) {
        operand->index = slots_from(index, "a View", size, rows * columns, &count);
        Py_DECREF(index);
        if (operand->index == NULL)
            return -1;
        if (strides_of_index(operand)) {
            PyMem_Free(operand->index);
            operand->index = NULL;
        }
    }
    else {
        Py_DECREF(index);
        Count row = operand->row_stride, column = operand->column_stride, start = operand->start;
        int sane = start >= 0 && start < size && row >= -size && row <= size && column >= -size && column <= size
                && (row == 0 || rows <= size) && (column == 0 || columns <= size); /* so that products fit */
        Count down = sane ? (rows - 1) * row : 0, across = sane ? (columns - 1) * column : 0;
        Count least = start + (down < 0 ? down : 0) + (across < 0 ? across : 0);
        Count most = start + (down > 0 ? down : 0) + (across > 0 ? across : 0);
        if (!sane || least < 0 || most >= size) {
            PyErr_Format(PyExc_ValueError,
                         "Executor: expected a View inside %zd slots, got start %zd, strides %zd and %zd", size, start,
                         row, column);
            return -1;
        }
    }
    if (operand->index == NULL) {
        if (columns == 1)
            operand->column_stride = 1; /* as good as any: there is one column */
        operand->direct = operand->column_stride == 1 && (rows == 1 || operand->row_stride == columns);
    }
    return 0;
}

/* ---------------------------------------------------------------- operations */

/* Where the op has a kernel of its own. Exact programs take those only that round like the table's rows. */
static int vector_op_of(unsigned op, const double *parameters, int exact)
{
    switch (op) {
    case OP_add: return VECTOR_ADD;
    case OP_sub: return VECTOR_SUB;
    case OP_mul: return VECTOR_MUL;
    case OP_div: return VECTOR_DIV;
    case OP_neg: return VECTOR_NEG;
    case OP_relu: return VECTOR_RELU;
    case OP_sqrt: return VECTOR_SQRT;
    default: break;
    }
    if (exact)
        return -1;
    switch (op) {
    case OP_exp: return VECTOR_EXP;
    case OP_log: return VECTOR_LOG;
    case OP_tanh: return VECTOR_TANH;
    case OP_sigmoid: return VECTOR_SIGMOID;
    case OP_sin: return VECTOR_SIN;
    case OP_cos: return VECTOR_COS;
    case OP_pow_number: {
        static const double powers[POWERS] = {2.0, 3.0, 0.5, 1.5, -1.0, -2.0, -0.5, -1.5};
        for (int i = 0; i < POWERS; i++) {
            if (parameters[0] == powers[i])
                return VECTOR_POWERS + i;
        }
        return -1;
    }
    default: return -1;
    }
}

/* The operands that the op's reverse kernel reads, for those gradients that are needed. */
static unsigned operands_read(const Step *step)
{
    switch (step->forward == table_forward[step->op] ? OP_COUNT : (enum op)step->op) {
    case OP_add:
    case OP_sub:
    case OP_neg:
    case OP_exp:
    case OP_sqrt: return 0;
    case OP_div: return 2;
    case OP_mul: return (step->operands[0].needed ? 2u : 0u) | (step->operands[1].needed ? 1u : 0u);
    default: return ~0u;
    }
}

static int row_op_of(unsigned op)
{
    switch (op) {
    case COMPOSITE_sum: return ROW_SUM;
    case COMPOSITE_mean: return ROW_MEAN;
    case COMPOSITE_norm: return ROW_NORM;
    case COMPOSITE_logsumexp: return ROW_LOGSUMEXP;
    case COMPOSITE_largest: return ROW_LARGEST;
    case COMPOSITE_smallest: return ROW_SMALLEST;
    case COMPOSITE_softmax: return ROW_SOFTMAX;
    case COMPOSITE_log_softmax: return ROW_LOG_SOFTMAX;
    case COMPOSITE_rmsnorm: return ROW_RMSNORM;
    case COMPOSITE_layernorm: return ROW_LAYERNORM;
    case COMPOSITE_cross_entropy: return ROW_CROSS_ENTROPY;
    default: return -1;
    }
}

static int op_has_domain(unsigned op)
{
    static const double outside[][MOST_NAMES] = {{NAN, NAN, NAN}, {INFINITY, 1.0, 1.0}};
    return !op_in_domain((enum op)op, outside[0]) || !op_in_domain((enum op)op, outside[1]);
}

/* Whether its outputs may differ in the last bits from those of the eager engine, given the same inputs. */
static int step_rounds(const Step *step, int exact)
{
    Count n = step->operands[0].columns;
    switch (step->kind) {
    case STEP_ENTRIES: return step->forward != table_forward[step->op] && vector_op_of(step->op, NULL, 1) < 0;
    case STEP_DOT:
    case STEP_MATMUL: return !exact && n > 1;
    case STEP_ROWS:
        return !exact && step->op != COMPOSITE_largest && step->op != COMPOSITE_smallest
            && (n > 2 || (step->op != COMPOSITE_sum && step->op != COMPOSITE_mean));
    default: return 0;
    }
}

/* Whether a local gradient may be infinite although the output is finite. */
static int op_is_steep(unsigned op, const double *parameters)
{
    switch (op) {
    case OP_sqrt:
    case OP_cbrt:
    case OP_pow:
    case OP_asin:
    case OP_acos:
    case OP_acosh:
    case OP_atan2:
    case OP_hypot: return 1;
    case OP_pow_number: return parameters[0] < 1.0;
    default: return 0;
    }
}

static int step_op(Step *step, const char *name, const Kernels *kernels, int exact)
{
    if (strcmp(name, "call") == 0) {
        step->kind = STEP_CALL;
        step->op = NO_OP;
        return 1;
    }
    if (strcmp(name, "matmul") == 0) {
        step->kind = STEP_MATMUL;
        step->op = NO_OP;
        return 2;
    }
    for (unsigned op = 0; op < OP_COUNT; op++) {
        if (strcmp(name, op_names[op]) != 0)
            continue;
        int vector = vector_op_of(op, step->parameters, exact);
        step->kind = STEP_ENTRIES;
        step->op = op;
        step->forward = vector < 0 ? table_forward[op] : kernels->forward[vector];
        step->reverse = vector < 0 ? table_reverse[op] : kernels->reverse[vector];
        step->checked = op_overflows[op] || op_has_domain(op);
        step->steep = op_is_steep(op, step->parameters);
        return op_inputs[op];
    }
    for (unsigned op = OP_COUNT; op < NO_OP; op++) {
        if (strcmp(name, composite_names[op - OP_COUNT]) != 0)
            continue;
        step->op = op;
        step->kind = op == COMPOSITE_dot ? STEP_DOT : op == COMPOSITE_take ? STEP_TAKE : STEP_ROWS;
        if (step->kind == STEP_ROWS) {
            step->row_forward = kernels->row_forward[row_op_of(op)];
            step->row_reverse = kernels->row_reverse[row_op_of(op)];
            step->batch_forward = kernels->batch_forward[row_op_of(op)];
            step->batch_reverse = kernels->batch_reverse[row_op_of(op)];
        }
        return step->kind != STEP_ROWS || op == COMPOSITE_cross_entropy ? 2 : 1;
    }
    PyErr_Format(PyExc_ValueError, "Executor: expected a known op, got '%s'", name);
    return -1;
}

static int is_of_row(const Step *step)
{
    return step->kind == STEP_ROWS
        && (step->op == COMPOSITE_softmax || step->op == COMPOSITE_log_softmax || step->op == COMPOSITE_rmsnorm
            || step->op == COMPOSITE_layernorm);
}

/* Whether the operands have the shapes that Instruction's documentation says. */
static int shapes_agree(const Step *step)
{
    const Operand *a = &step->operands[0], *b = &step->operands[1];
    Count rows = step->rows, columns = step->columns;
    switch (step->kind) {
    case STEP_ENTRIES:
        for (int j = 0; j < step->operand_count; j++) {
            if (step->operands[j].rows != rows || step->operands[j].columns != columns)
                return 0;
        }
        return 1;
    case STEP_MATMUL: return a->rows == rows && b->rows == columns && a->columns == b->columns;
    case STEP_DOT: return columns == 1 && a->rows == rows && b->rows == rows && a->columns == b->columns;
    case STEP_TAKE: return a->columns == columns && b->rows == rows && b->columns == 1;
    case STEP_CALL: return columns == 1 && a->rows == rows;
    case STEP_ROWS: break;
    }
    return a->rows == rows && columns == (is_of_row(step) && step->entry < 0 ? a->columns : 1)
        && step->entry < a->columns
        && (step->op != COMPOSITE_cross_entropy || (b->rows == rows && b->columns == 1));
}

/* Returns how many there are, or -1 with an exception set. */
static Py_ssize_t parameters_of(PyObject *instruction, Step *step)
{
    PyObject *given = PyObject_GetAttrString(instruction, "parameters");
    PyObject *tuple = given ? PySequence_Tuple(given) : NULL;
    Py_XDECREF(given);
    if (tuple == NULL)
        return -1;
    Py_ssize_t count = PyTuple_GET_SIZE(tuple) < 2 ? PyTuple_GET_SIZE(tuple) : 2;
    for (Py_ssize_t i = 0; i < count; i++)
        step->parameters[i] = PyFloat_AsDouble(PyTuple_GET_ITEM(tuple, i));
    Py_DECREF(tuple);
    return PyErr_Occurred() ? -1 : count;
}

/* What a call needs beside its operand: `evaluated` of the function at that place, and the guards before it. */
static int call_from(Step *step, PyObject *functions)
{
    Count place = whole_from(step->parameters[0], PY_SSIZE_T_MAX);
    PyObject *function = functions ? PySequence_GetItem(functions, place) : NULL;
    if (functions == NULL)
        PyErr_SetString(PyExc_ValueError, "Executor: expected the functions that the instructions call, got none");
    step->function = function ? PyObject_GetAttrString(function, "evaluated") : NULL;
    step->guards = whole_from(step->parameters[1], PY_SSIZE_T_MAX);
    Py_XDECREF(function);
    return step->function == NULL ? -1 : 0;
}

/* Fills a step that is all zero. On failure what it owns is left to step_release. */
static int step_from(PyObject *instruction, Count size, const Kernels *kernels, int exact, PyObject *functions,
                     Step *step)
{
    Py_ssize_t parameters;
    if (count_from(instruction, "out", &step->out) < 0 || count_from(instruction, "rows", &step->rows) < 0
        || count_from(instruction, "columns", &step->columns) < 0
        || (parameters = parameters_of(instruction, step)) < 0)
        return -1;
    if (step->rows < 1 || step->columns < 1 || step->out < 0 || step->rows > size || step->columns > size
        || step->out + step->rows * step->columns > size) {
        PyErr_SetString(PyExc_ValueError, "Executor: expected an instruction whose outputs are slots of the program");
        return -1;
    }
    PyObject *op = PyObject_GetAttrString(instruction, "op");
    const char *name = op ? PyUnicode_AsUTF8(op) : NULL;
    int expected = name ? step_op(step, name, kernels, exact) : -1;
    Py_XDECREF(op);
    if (expected < 0)
        return -1;
    int has_eps = step->op == COMPOSITE_rmsnorm || step->op == COMPOSITE_layernorm;
    step->entry = -1;
    if (exact && is_of_row(step) && parameters > has_eps)
        step->entry = (int)whole_from(step->parameters[has_eps], INT32_MAX);
    PyObject *given = PyObject_GetAttrString(instruction, "operands");
    PyObject *operands = given ? PySequence_Tuple(given) : NULL;
    Py_XDECREF(given);
    if (operands == NULL)
        return -1;
    int failed = PyTuple_GET_SIZE(operands) != expected;
    for (int j = 0; !failed && j < expected; j++) {
        if (operand_from(PyTuple_GET_ITEM(operands, j), size, &step->operands[j]) < 0) {
            step->operand_count = j + 1;
            Py_DECREF(operands);
            return -1;
        }
    }
    step->operand_count = failed ? 0 : expected;
    Py_DECREF(operands);
    if (failed || !shapes_agree(step)) {
        PyErr_Format(PyExc_ValueError, "Executor: expected other operands for op %u (%zd by %zd at slot %zd)", step->op,
                     step->rows, step->columns, step->out);
        return -1;
    }
    step->rounds = step_rounds(step, exact);
    return step->kind == STEP_CALL ? call_from(step, functions) : 0;
}

static void step_release(Step *step)
{
    for (int j = 0; j < MOST_INPUTS; j++) {
        PyMem_Free(step->operands[j].index);
        PyMem_Free(step->operands[j].constants);
        PyMem_Free(step->operands[j].scatter);
    }
    PyMem_Free(step->pairs.starts);
    PyMem_Free(step->pairs.slots);
    PyMem_Free(step->pairs.kinds);
    PyMem_Free(step->tape);
    Py_XDECREF(step->function);
}

/* Doubles of scratch that the step works in, for one example. */
static Count step_scratch(const Step *step)
{
    Count a = step->operands[0].rows * step->operands[0].columns;
    Count b = step->operands[1].rows * step->operands[1].columns;
    switch (step->kind) {
    case STEP_CALL:
    case STEP_ROWS: return BATCH * (step->operands[0].columns + facts_of_row(step)) + 2 * step->columns + 8;
    case STEP_DOT:
    case STEP_MATMUL: return 3 * (a + b) + 8;
    case STEP_TAKE: return step->columns;
    default: return 0;
    }
}

/* Doubles of facts that the step keeps from forward to reverse, for one example. */
static Count step_facts(const Step *step, int exact)
{
    switch (step->kind) {
    case STEP_ROWS: return step->knows ? 0 : step->rows * (exact ? exact_facts_count(step) : facts_of_row(step));
    case STEP_CALL: return step->rows * step->operands[0].columns;
    default: return 0;
    }
}

#define FAR_BACK 4096 /* steps among which one over the same row is looked for */

/* In an exact program every entry of a softmax or norm is a step: the first leaves its facts to the others. */
static void step_find_facts(Step *steps, Count i)
{
    Step *step = &steps[i];
    const Operand *row = &step->operands[0];
    int has_eps = step->op == COMPOSITE_rmsnorm || step->op == COMPOSITE_layernorm;
    for (Count j = i; step->entry >= 0 && step->rows == 1 && j-- > 0 && i - j < FAR_BACK;) {
        const Operand *other = &steps[j].operands[0];
        int same = steps[j].op == step->op && steps[j].kind == STEP_ROWS && steps[j].entry >= 0 && steps[j].rows == 1
                && other->columns == row->columns && (!has_eps || steps[j].parameters[0] == step->parameters[0]);
        for (Count k = 0; same && k < row->columns; k++)
            same = slot_of(row, 0, k) == slot_of(other, 0, k);
        if (same) {
            step->knows = 1;
            step->facts = steps[j].facts;
            return;
        }
    }
}

/* Lists the entries of a gathered operand that have a gradient, where others have none. */
static int scatter_of(Operand *operand, const unsigned char *depends)
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
static int step_follow(Step *step, unsigned char *depends, unsigned char *written, const double *initial, int exact)
{
    if (step->kind == STEP_DOT && !exact && pairs_of(step, written, initial) < 0)
        return -1;
    int differentiable = step->kind == STEP_TAKE || step->op == COMPOSITE_cross_entropy ? 1 : step->operand_count;
    for (int j = 0; j < step->operand_count; j++) {
        Operand *operand = &step->operands[j];
        int constant = step->kind == STEP_MATMUL || (!operand->direct && step->kind == STEP_ENTRIES);
        for (Count r = 0; r < operand->rows; r++) {
            for (Count c = 0; c < operand->columns; c++) {
                Count slot = slot_of(operand, r, c);
                operand->needed |= j < differentiable && depends[slot];
                constant &= !written[slot];
            }
        }
        step->needed |= operand->needed;
        if (operand->needed && operand->index != NULL && scatter_of(operand, depends) < 0)
            return -1;
        if (constant) {
            operand->constants = PyMem_Malloc((size_t)(operand->rows * operand->columns) * sizeof(double));
            if (operand->constants == NULL) {
                PyErr_NoMemory();
                return -1;
            }
            pack(operand, 1, initial, 0, operand->rows * operand->columns, operand->constants);
        }
    }
    step->pairs.left_needed = step->operands[0].needed;
    step->pairs.right_needed = step->operands[1].needed;
    if (step->pairs.starts != NULL && pairs_sort(&step->pairs) < 0)
        return -1;
    if (step->op == OP_stop_gradient && step->kind == STEP_ENTRIES)
        step->needed = 0;
    if (step->kind == STEP_ENTRIES)
        step->reads = operands_read(step);
    size_t count = (size_t)(step->rows * step->columns);
    memset(written + step->out, 1, count);
    memset(depends + step->out, step->needed, count);
    return 0;
}

/* Backwards over the steps: marks what an output depends on; a step that none depends on has no gradient to pass. */
static void step_follow_back(Step *step, unsigned char *reaches)
{
    int reached = 0;
    for (Count i = 0; i < step->rows * step->columns && !reached; i++)
        reached = reaches[step->out + i];
    step->needed &= reached;
    for (int j = 0; j < step->operand_count && step->needed; j++) {
        const Operand *operand = &step->operands[j];
        for (Count r = 0; r < operand->rows && operand->needed; r++) {
            for (Count c = 0; c < operand->columns; c++)
                reaches[slot_of(operand, r, c)] = 1;
        }
    }
}
