/* Steps carried out, forward and in reverse: for one example, or for a batch side by side. */

#include "program_steps.h"

/* ---------------------------------------------------------------- entry by entry */

static inline const double *entries_of(const Operand *operand, const Memory *memory, Count first, Count count,
                                       double *scratch)
{
    if (operand->direct)
        return memory->values + (operand->start + first) * memory->width;
    if (operand->constants != NULL && memory->width == 1)
        return operand->constants + first;
    pack(operand, memory->width, memory->values, first, count, scratch);
    return scratch;
}

/* All of them, unless one of the operands in `reads` has to be packed. */
static inline Count entries_at_a_time(const Step *step, const Memory *memory, unsigned reads)
{
    for (int j = 0; j < step->operand_count; j++) {
        const Operand *operand = &step->operands[j];
        if (reads >> j & 1 && !operand->direct && (operand->constants == NULL || memory->width != 1))
            return CHUNK / memory->width;
    }
    return step->rows * step->columns;
}

static void entries_forward(const Step *step, const Memory *memory)
{
    Count all = step->rows * step->columns, most = entries_at_a_time(step, memory, ~0u), width = memory->width;
    const double *in[MOST_INPUTS];
    for (Count first = 0; first < all; first += most) {
        Count count = all - first < most ? all - first : most;
        for (int j = 0; j < step->operand_count; j++)
            in[j] = entries_of(&step->operands[j], memory, first, count, memory->scratch + j * CHUNK);
        step->forward(count * width, in, step->parameters, memory->values + (step->out + first) * width);
    }
}

/* `partial`: entries to which no gradient has come pass none on, not even 0 times an infinite local gradient. */
static void entries_reverse(const Kernels *kernels, const Step *step, const Memory *memory, int partial)
{
    int picked = partial && step->steep;
    Count all = step->rows * step->columns, most = entries_at_a_time(step, memory, step->reads), width = memory->width;
    double *scratch = memory->scratch, *grads[MOST_INPUTS];
    const double *in[MOST_INPUTS];
    for (int j = 0; j < step->operand_count; j++) {
        if (step->operands[j].needed && (picked || !step->operands[j].direct) && most > CHUNK / width)
            most = CHUNK / width;
    }
    for (Count first = 0; first < all; first += most) {
        Count count = all - first < most ? all - first : most;
        for (int j = 0; j < step->operand_count; j++) {
            const Operand *operand = &step->operands[j];
            in[j] = step->reads >> j & 1 ? entries_of(operand, memory, first, count, scratch + j * CHUNK) : NULL;
            if (!operand->needed) {
                grads[j] = NULL;
            }
            else if (operand->direct && !picked) {
                grads[j] = memory->grads + (operand->start + first) * width;
            }
            else {
                grads[j] = scratch + (MOST_INPUTS + j) * CHUNK;
                memset(grads[j], 0, (size_t)(count * width) * sizeof(double));
            }
        }
        Count out = (step->out + first) * width;
        step->reverse(count * width, in, step->parameters, memory->values + out, memory->grads + out, grads);
        for (int j = 0; j < step->operand_count; j++) {
            for (Count i = 0; grads[j] != NULL && picked && i < count * width; i++)
                grads[j][i] = memory->grads[out + i] != 0.0 ? grads[j][i] : 0.0;
            if (grads[j] != NULL && (picked || !step->operands[j].direct))
                unpack_add(kernels, &step->operands[j], width, grads[j], first, count, memory->grads);
        }
    }
}

/* ---------------------------------------------------------------- over rows */

static inline double target_of(const Step *step, const Memory *memory, Count row, Count lane)
{
    if (step->operand_count < 2)
        return 0.0;
    double given = memory->values[slot_of(&step->operands[1], row, 0) * memory->width + lane];
    return (double)whole_from(given, step->operands[0].columns);
}

/* Doubles that a row keeps from forward to reverse, for one example. */
static inline Count facts_of_row(const Step *step)
{
    switch (step->op) {
    case COMPOSITE_sum:
    case COMPOSITE_mean:
    case COMPOSITE_norm: return 0;
    case COMPOSITE_logsumexp:
    case COMPOSITE_log_softmax:
    case COMPOSITE_cross_entropy: return ROW_FACTS + step->operands[0].columns; /* with the exponentials */
    default: return ROW_FACTS;
    }
}

/* A sum over columns that lie side by side is a sum of vectors, whatever the width. */
static inline int sums_columns(const Step *step)
{
    const Operand *x = &step->operands[0];
    return step->op == COMPOSITE_sum && x->index == NULL && x->row_stride == 1 && x->column_stride != 1;
}

#define SHORT_ENOUGH 64 /* rows to be turned round */

/* Short rows of one example, BATCH at a time as if they were a batch: side by side they fill vectors that each would
 * leave half empty. Returns how many of them. */
static Count rows_forward_together(const Kernels *kernels, const Step *step, const Memory *memory)
{
    const Operand *x = &step->operands[0];
    Count n = x->columns, r = 0;
    if (step->batch_forward == NULL || step->columns != 1 || n > SHORT_ENOUGH)
        return 0;
    Count row_facts = facts_of_row(step);
    double targets[BATCH], *entries = memory->scratch, *facts = entries + n * BATCH;
    for (; r + BATCH <= step->rows; r += BATCH) {
        if (has_rows(x))
            kernels->transpose(BATCH, n, memory->values + x->start + r * x->row_stride, x->row_stride, entries);
        for (Count lane = 0; lane < BATCH; lane++) {
            targets[lane] = target_of(step, memory, r + lane, 0);
            for (Count k = 0; !has_rows(x) && k < n; k++)
                entries[k * BATCH + lane] = memory->values[slot_of(x, r + lane, k)];
        }
        step->batch_forward(n, entries, targets, step->parameters, facts, memory->values + step->out + r);
        kernels->transpose(row_facts, BATCH, facts, BATCH, memory->facts + step->facts + r * row_facts);
    }
    return r;
}

static void rows_forward(const Kernels *kernels, const Step *step, const Memory *memory)
{
    const Operand *x = &step->operands[0];
    Count width = memory->width, columns = step->columns, n = x->columns, row_facts = facts_of_row(step);
    double *out = memory->values + step->out * width, *facts = memory->facts + step->facts * width;
    if (sums_columns(step)) {
        const double *first = memory->values + x->start * width;
        memcpy(out, first, (size_t)(step->rows * width) * sizeof *out);
        for (Count k = 1; k < n; k++)
            kernels->add(step->rows * width, first + k * x->column_stride * width, out);
        return;
    }
    if (width == 1 && step->op == COMPOSITE_sum && x->index != NULL && n < 16) {
        const int32_t *index = x->index;
        for (Count r = 0; r < step->rows; r++, index += n) {
            double sum = memory->values[index[0]];
            for (Count k = 1; k < n; k++)
                sum += memory->values[index[k]];
            out[r] = sum;
        }
        return;
    }
    for (Count r = width == 1 ? rows_forward_together(kernels, step, memory) : 0; r < step->rows; r++) {
        if (width == 1) {
            step->row_forward(n, row_of(x, width, memory->values, r, memory->scratch), target_of(step, memory, r, 0),
                              step->parameters, facts + r * row_facts, out + r * columns);
            continue;
        }
        if (step->batch_forward != NULL) {
            double targets[BATCH];
            for (Count lane = 0; lane < BATCH; lane++)
                targets[lane] = target_of(step, memory, r, lane);
            step->batch_forward(n, row_of(x, width, memory->values, r, memory->scratch), targets, step->parameters,
                                facts + r * row_facts * BATCH, out + r * columns * BATCH);
            continue;
        }
        double *lane_out = memory->scratch + n;
        for (Count lane = 0; lane < width; lane++) {
            step->row_forward(n, lane_of_row(x, memory, r, lane, memory->scratch), target_of(step, memory, r, lane),
                              step->parameters, facts + (r * width + lane) * row_facts, lane_out);
            for (Count c = 0; c < columns; c++)
                out[(r * columns + c) * width + lane] = lane_out[c];
        }
    }
}

static void rows_reverse(const Kernels *kernels, const Step *step, const Memory *memory)
{
    const Operand *x = &step->operands[0];
    Count width = memory->width, columns = step->columns, n = x->columns, row_facts = facts_of_row(step);
    double *scratch = memory->scratch, *grad = scratch + n;
    const double *out = memory->values + step->out * width, *out_grad = memory->grads + step->out * width;
    const double *facts = memory->facts + step->facts * width;
    if (sums_columns(step)) {
        double *first = memory->grads + x->start * width;
        for (Count k = 0; k < n; k++)
            kernels->add(step->rows * width, out_grad, first + k * x->column_stride * width);
        return;
    }
    if (step->op == COMPOSITE_sum && x->index != NULL && n < 16) {
        const int32_t *scatter = x->scatter;
        Count count = scatter != NULL ? x->scatter_count : step->rows * n;
        for (Count k = 0, r = 0; k < count; k++) {
            while ((scatter != NULL ? scatter[2 * k] : k) >= (r + 1) * n)
                r++;
            Count slot = scatter != NULL ? scatter[2 * k + 1] : x->index[k];
            if (width == 1)
                memory->grads[slot] += out_grad[r];
            else
                kernels->add(BATCH, out_grad + r * BATCH, memory->grads + slot * BATCH);
        }
        return;
    }
    for (Count r = 0; r < step->rows; r++) {
        if (width == 1 || step->batch_reverse != NULL) {
            double targets[BATCH];
            for (Count lane = 0; lane < width; lane++)
                targets[lane] = target_of(step, memory, r, lane);
            double *added = has_rows(x) ? memory->grads + (x->start + r * x->row_stride) * width : scratch + n * width;
            if (!has_rows(x))
                memset(added, 0, (size_t)(n * width) * sizeof *added);
            const double *row = row_of(x, width, memory->values, r, scratch);
            const double *known = facts + r * row_facts * width;
            const double *row_out = out + r * columns * width, *row_grad = out_grad + r * columns * width;
            if (width == 1)
                step->row_reverse(n, row, targets[0], step->parameters, known, row_out, row_grad, added);
            else
                step->batch_reverse(n, row, targets, step->parameters, known, row_out, row_grad, added);
            if (!has_rows(x))
                unpack_add(kernels, x, width, added, r * n, n, memory->grads);
            continue;
        }
        double *lane_out = grad + n, *lane_out_grad = lane_out + columns;
        for (Count lane = 0; lane < width; lane++) {
            for (Count c = 0; c < columns; c++) {
                lane_out[c] = out[(r * columns + c) * width + lane];
                lane_out_grad[c] = out_grad[(r * columns + c) * width + lane];
            }
            memset(grad, 0, (size_t)n * sizeof *grad);
            step->row_reverse(n, lane_of_row(x, memory, r, lane, scratch), target_of(step, memory, r, lane),
                              step->parameters, facts + (r * width + lane) * row_facts, lane_out, lane_out_grad,
                              grad);
            for (Count k = 0; k < n; k++)
                memory->grads[slot_of(x, r, k) * width + lane] += grad[k];
        }
    }
}

/* ---------------------------------------------------------------- rows taken by number */

static inline Count taken_row(const Step *step, const Memory *memory, Count r, Count lane)
{
    Count slot = slot_of(&step->operands[1], r, 0);
    return whole_from(memory->values[slot * memory->width + lane], step->operands[0].rows);
}

static void take_forward(const Kernels *kernels, const Step *step, const Memory *memory)
{
    const Operand *rows = &step->operands[0];
    Count width = memory->width, columns = step->columns;
    Matrix table;
    int shared = width != 1 && has_rows(rows) && is_shared(rows, memory, &table);
    for (Count r = 0; r < step->rows; r++) {
        double *out = memory->values + (step->out + r * columns) * width;
        for (Count lane = 0; lane < width; lane++) {
            Count i = taken_row(step, memory, r, lane);
            if (shared)
                memcpy(memory->scratch + lane * columns, table.entries + i * table.row, (size_t)columns * sizeof *out);
            for (Count c = 0; !shared && c < columns; c++)
                out[c * width + lane] = memory->values[slot_of(rows, i, c) * width + lane];
        }
        if (shared)
            kernels->transpose(BATCH, columns, memory->scratch, columns, out);
    }
}

static void take_reverse(const Kernels *kernels, const Step *step, const Memory *memory)
{
    const Operand *rows = &step->operands[0];
    Count width = memory->width, columns = step->columns;
    Matrix table;
    int total = memory->shared_grads != NULL && has_rows(rows) && is_shared(rows, memory, &table);
    for (Count r = 0; r < step->rows; r++) {
        const double *out_grad = memory->grads + (step->out + r * columns) * width;
        if (total)
            kernels->transpose(columns, BATCH, out_grad, BATCH, memory->scratch);
        for (Count lane = 0; lane < width; lane++) {
            Count i = taken_row(step, memory, r, lane);
            if (total)
                kernels->add(columns, memory->scratch + lane * columns,
                             memory->shared_grads + rows->start + i * rows->row_stride);
            for (Count c = 0; !total && c < columns; c++)
                memory->grads[slot_of(rows, i, c) * width + lane] += out_grad[c * width + lane];
        }
    }
}

/* ---------------------------------------------------------------- products row by row */

static inline int columns_side_by_side(const Operand *operand)
{
    return operand->index == NULL && operand->row_stride == 1 && operand->column_stride != 1;
}

static void dot_forward(const Kernels *kernels, const Step *step, const Memory *memory)
{
    const Operand *a = &step->operands[0], *b = &step->operands[1];
    Count n = a->columns, width = memory->width;
    const double *values = memory->values;
    double *out = memory->values + step->out * width, *scratch = memory->scratch;
    if (step->pairs.starts != NULL) {
        (width == 1 ? kernels->pairs_forward : kernels->batch_pairs_forward)(&step->pairs, values, out);
    }
    else if (columns_side_by_side(a) && columns_side_by_side(b)) {
        memset(out, 0, (size_t)(step->rows * width) * sizeof *out);
        for (Count k = 0; k < n; k++)
            kernels->add_product(step->rows * width, values + (a->start + k * a->column_stride) * width,
                                 values + (b->start + k * b->column_stride) * width, out);
    }
    else if (width == 1 && n < 8) {
        for (Count r = 0; r < step->rows; r++) {
            double sum = 0.0;
            for (Count k = 0; k < n; k++)
                sum += values[slot_of(a, r, k)] * values[slot_of(b, r, k)];
            out[r] = sum;
        }
    }
    else if (width == 1) {
        for (Count r = 0; r < step->rows; r++)
            out[r] = kernels->dot(n, row_of(a, 1, values, r, scratch), row_of(b, 1, values, r, scratch + n));
    }
    else {
        Matrix left = matrix_of(a, width, values, &scratch), right = matrix_of(b, width, values, &scratch);
        for (Count r = 0; r < step->rows; r++)
            kernels->batch_product(&(BatchProduct){
                .rows = 1, .columns = 1, .depth = n, .left = left.entries + r * left.row * width,
                .left_depth = left.column, .right = right.entries + r * right.row * width,
                .right_depth = right.column, .out = out + r * width});
    }
}

/* Adds to the gradients of `to`, in row r, the other operand's row times the gradient of the row's output. */
static void dot_reverse_to(const Kernels *kernels, const Step *step, const Memory *memory, const Operand *to,
                           const Operand *other)
{
    Count n = to->columns, width = memory->width;
    const double *out_grad = memory->grads + step->out * width;
    double *grads = memory->grads, *scratch = memory->scratch, *added = scratch + n;
    if (columns_side_by_side(to) && columns_side_by_side(other)) {
        for (Count k = 0; k < n; k++)
            kernels->add_product(step->rows * width, out_grad,
                                 memory->values + (other->start + k * other->column_stride) * width,
                                 grads + (to->start + k * to->column_stride) * width);
        return;
    }
    for (Count r = 0; r < step->rows; r++) {
        if (width == 1 && n >= 8 && has_rows(to)) {
            kernels->add_scaled(n, out_grad[r], row_of(other, 1, memory->values, r, scratch),
                                grads + to->start + r * to->row_stride);
        }
        else if (width == 1 && n >= 8) {
            memset(added, 0, (size_t)n * sizeof *added);
            kernels->add_scaled(n, out_grad[r], row_of(other, 1, memory->values, r, scratch), added);
            unpack_add(kernels, to, 1, added, r * n, n, grads);
        }
        else if (width == 1) {
            for (Count k = 0; k < n; k++)
                grads[slot_of(to, r, k)] += out_grad[r] * memory->values[slot_of(other, r, k)];
        }
        else if (has_rows(to) && has_rows(other)) {
            kernels->batch_add_scaled(n, out_grad + r * BATCH, row_of(other, BATCH, memory->values, r, NULL),
                                      grads + (to->start + r * to->row_stride) * BATCH);
        }
        else {
            for (Count k = 0; k < n; k++)
                kernels->add_product(width, out_grad + r * width, memory->values + slot_of(other, r, k) * width,
                                     grads + slot_of(to, r, k) * width);
        }
    }
}

static void dot_reverse(const Kernels *kernels, const Step *step, const Memory *memory)
{
    if (step->pairs.starts != NULL) {
        (memory->width == 1 ? kernels->pairs_reverse : kernels->batch_pairs_reverse)(
            &step->pairs, memory->values, memory->grads + step->out * memory->width, memory->grads);
        return;
    }
    for (int j = 0; j < 2; j++) {
        if (step->operands[j].needed)
            dot_reverse_to(kernels, step, memory, &step->operands[j], &step->operands[1 - j]);
    }
}

/* ---------------------------------------------------------------- matrix products */

static void matmul_forward(const Kernels *kernels, const Step *step, const Memory *memory)
{
    const Operand *a = &step->operands[0], *b = &step->operands[1];
    Count rows = step->rows, columns = step->columns, depth = a->columns;
    double *scratch = memory->scratch, *out = memory->values + step->out * memory->width;
    if (memory->width != 1) {
        Matrix left, right;
        int left_shared = is_shared(a, memory, &left), right_shared = !left_shared && is_shared(b, memory, &right);
        if (!left_shared)
            left = matrix_of(a, BATCH, memory->values, &scratch);
        if (!right_shared)
            right = matrix_of(b, BATCH, memory->values, &scratch);
        kernels->batch_product(&(BatchProduct){
            .rows = rows, .columns = columns, .depth = depth, .left = left.entries, .left_row = left.row,
            .left_depth = left.column, .right = right.entries, .right_depth = right.column, .right_column = right.row,
            .out = out, .out_row = columns, .out_column = 1, .left_shared = left_shared, .right_shared = right_shared});
        return;
    }
    if ((rows <= 2 || columns <= 2) && has_rows(a) && has_rows(b)) { /* too little to transpose anything for */
        for (Count r = 0; r < rows; r++) {
            for (Count c = 0; c < columns; c++)
                out[r * columns + c] = kernels->dot(depth, memory->values + a->start + r * a->row_stride,
                                                    memory->values + b->start + c * b->row_stride);
        }
        return;
    }
    Matrix left = matrix_of(a, 1, memory->values, &scratch);
    Matrix right = matrix_with_unit_stride(kernels, b, memory->values, 1, &scratch);
    kernels->product(&(Product){rows, columns, depth, left.entries, left.row, left.column, right.entries,
                                right.column, out, columns, 0});
}

/* to[i, k] += Σ_j grad[i, j] · other[j, k], with the gradient's strides given: the same for both operands. */
static void matmul_reverse_to(const Kernels *kernels, const Memory *memory, const Operand *to, const Operand *other,
                              const double *grad, Count grad_row, Count grad_column)
{
    Count rows = to->rows, depth = other->rows, columns = to->columns, width = memory->width;
    double *scratch = memory->scratch;
    if (width != 1) {
        Matrix right, of_all;
        int total = memory->shared_grads != NULL && is_shared(to, memory, &of_all), direct = to->index == NULL;
        int right_shared = !total && is_shared(other, memory, &right);
        if (!right_shared)
            right = matrix_of(other, BATCH, memory->values, &scratch);
        double *out = total ? memory->shared_grads + to->start : direct ? memory->grads + to->start * BATCH : scratch;
        kernels->batch_product(&(BatchProduct){
            .rows = rows, .columns = columns, .depth = depth, .left = grad, .left_row = grad_row,
            .left_depth = grad_column, .right = right.entries, .right_depth = right.row, .right_column = right.column,
            .out = out, .out_row = direct ? to->row_stride : columns, .out_column = direct ? to->column_stride : 1,
            .add = direct, .right_shared = right_shared, .total = total});
        if (!direct)
            unpack_add(kernels, to, BATCH, scratch, 0, rows * columns, memory->grads);
        return;
    }
    if (to->index == NULL && to->row_stride == 1 && to->column_stride != 1 && grad_row == 1) {
        /* transposed: to[k, i], with i side by side here and in the gradient */
        Matrix left = matrix_of(other, 1, memory->values, &scratch);
        kernels->product(&(Product){columns, rows, depth, left.entries, left.column, left.row, grad, grad_column,
                                    memory->grads + to->start, to->column_stride, 1});
        return;
    }
    Matrix right = matrix_with_unit_stride(kernels, other, memory->values, 0, &scratch);
    int direct = has_rows(to);
    kernels->product(&(Product){rows, columns, depth, grad, grad_row, grad_column, right.entries, right.row,
                                direct ? memory->grads + to->start : scratch, direct ? to->row_stride : columns,
                                direct});
    if (!direct)
        unpack_add(kernels, to, 1, scratch, 0, rows * columns, memory->grads);
}

static void matmul_reverse(const Kernels *kernels, const Step *step, const Memory *memory)
{
    const Operand *a = &step->operands[0], *b = &step->operands[1];
    const double *grad = memory->grads + step->out * memory->width;
    if (a->needed)
        matmul_reverse_to(kernels, memory, a, b, grad, step->columns, 1);
    if (b->needed)
        matmul_reverse_to(kernels, memory, b, a, grad, 1, step->columns);
}

/* ---------------------------------------------------------------- calls of Python functions; one example wide */

/* The output and the local gradients that the function gives for these inputs; -1 with an exception set. */
static int call_once(PyObject *function, const double *x, Count n, double *out, double *local_grads)
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

/* With the GIL held. The local gradients are kept for the reverse pass; -1 with an exception set. */
static int call_forward(const Step *step, const Memory *memory)
{
    const Operand *x = &step->operands[0];
    double *local_grads = memory->facts + step->facts;
    for (Count r = 0; r < step->rows; r++, local_grads += x->columns) {
        exact_read(x, memory, r, memory->scratch);
        if (call_once(step->function, memory->scratch, x->columns, &memory->values[step->out + r], local_grads) < 0)
            return -1;
    }
    return 0;
}

static void call_reverse(const Step *step, const Memory *memory)
{
    const double *local_grads = memory->facts + step->facts;
    for (Count r = 0; r < step->rows; r++, local_grads += step->operands[0].columns)
        exact_add(&step->operands[0], memory, r, local_grads, memory->grads[step->out + r]);
}

/* ---------------------------------------------------------------- any step */

static void step_forward(const Kernels *kernels, const Step *step, const Memory *memory, int exact)
{
    switch (step->kind) {
    case STEP_ENTRIES: entries_forward(step, memory); break;
    case STEP_TAKE: take_forward(kernels, step, memory); break;
    case STEP_ROWS: exact ? exact_rows_forward(step, memory) : rows_forward(kernels, step, memory); break;
    case STEP_DOT: exact ? exact_products_forward(step, memory) : dot_forward(kernels, step, memory); break;
    case STEP_MATMUL: exact ? exact_products_forward(step, memory) : matmul_forward(kernels, step, memory); break;
    case STEP_CALL: break; /* it may fail: see call_forward */
    }
}

static void step_reverse(const Kernels *kernels, const Step *step, const Memory *memory, int exact, int partial)
{
    switch (step->kind) {
    case STEP_ENTRIES:
        exact ? exact_entries_reverse(step, memory) : entries_reverse(kernels, step, memory, partial);
        break;
    case STEP_TAKE: take_reverse(kernels, step, memory); break;
    case STEP_ROWS: exact ? exact_rows_reverse(step, memory) : rows_reverse(kernels, step, memory); break;
    case STEP_DOT: exact ? exact_products_reverse(step, memory) : dot_reverse(kernels, step, memory); break;
    case STEP_MATMUL: exact ? exact_products_reverse(step, memory) : matmul_reverse(kernels, step, memory); break;
    case STEP_CALL: call_reverse(step, memory); break;
    }
}
