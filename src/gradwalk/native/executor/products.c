/* Products: a dot of each two rows, and matrices. */

#include "step.h"

/* ---------------------------------------------------------------- shapes, and what depends on what */

static int dot_fits(const Step *step)
{
    const Operand *a = &step->operands[0], *b = &step->operands[1];
    return step->columns == 1 && a->rows == step->rows && b->rows == step->rows && a->columns == b->columns;
}

static int matmul_fits(const Step *step)
{
    const Operand *a = &step->operands[0], *b = &step->operands[1];
    return a->rows == step->rows && b->rows == step->columns && a->columns == b->columns;
}

static int matmul_choose(Step *step, const Kernels *kernels, Count parameters, PyObject *functions)
{
    (void)kernels, (void)parameters, (void)functions;
    step->checked = step->lengths != NULL;
    return 0;
}

static int products_round(const Step *step) { return step->operands[0].columns > 1; }

static Count products_scratch(const Step *step)
{
    const Operand *a = &step->operands[0], *b = &step->operands[1];
    return 3 * (a->rows * a->columns + b->rows * b->columns) + 8;
}

/* Which row of the second operand belongs to this output. */
static Count products_right_row(const Step *step, Count row, Count column)
{
    return step->kind == KIND_DOT ? row : column;
}

static int products_depend(const Step *step, Count row, Count column, const unsigned char *marked)
{
    return view_row_is_marked(&step->operands[0], row, marked)
        || view_row_is_marked(&step->operands[1], products_right_row(step, row, column), marked);
}

/* ---------------------------------------------------------------- a dot over short gathered rows, as pairs of slots */

#define SHORT_ROW 24 /* up to here, packing gathered rows costs more than it saves */

static int pairs_are_along(const Pairs *pairs, Count r)
{
    const int32_t *slots = pairs->slots;
    for (Count row = r; row < r + 4; row++) {
        if ((pairs->starts[row + 1] - pairs->starts[row]) % 4 != 0)
            return 0;
        for (Count i = pairs->starts[row]; i < pairs->starts[row + 1]; i++) {
            Count first = i - (i - pairs->starts[row]) % 4, step = i - first;
            if (slots[2 * i] != slots[2 * first] + step || slots[2 * i + 1] != slots[2 * first + 1] + step)
                return 0;
        }
    }
    return 1;
}

/* Whether they are, with `left` the side that is to be the same: 0 or 1. */
static int pairs_are_across(const Pairs *pairs, Count r, int left)
{
    const int32_t *slots = pairs->slots, *starts = pairs->starts;
    Count count = starts[r + 1] - starts[r];
    for (Count row = r + 1; row < r + 4; row++) {
        if (starts[row + 1] - starts[row] != count)
            return 0;
        for (Count i = 0; i < count; i++) {
            const int32_t *pair = slots + 2 * (starts[row] + i), *first = slots + 2 * (starts[r] + i);
            if (pair[left] != first[left] || pair[1 - left] != first[1 - left] + (row - r))
                return 0;
        }
    }
    return 1;
}

/* Lists the pairs of a dot over short gathered rows, without those that pad a row: 0 · 0. */
static int dot_begin(Step *step, const unsigned char *written, const double *initial, int exact)
{
    const Operand *a = &step->operands[0], *b = &step->operands[1];
    Count n = a->columns, count = 0;
    if (exact || n >= SHORT_ROW || (a->index == NULL && b->index == NULL) || step->rows * n > INT32_MAX / 2)
        return 0;
    Pairs *pairs = step->pairs = PyMem_Calloc(1, sizeof *pairs);
    int32_t *starts = pairs ? pairs->starts = PyMem_Malloc((size_t)(step->rows + 1) * sizeof *starts) : NULL;
    int32_t *slots = starts ? pairs->slots = PyMem_Malloc((size_t)(2 * step->rows * n) * sizeof *slots) : NULL;
    if (slots == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    pairs->rows = step->rows;
    for (Count r = 0; r < step->rows; r++) {
        starts[r] = (int32_t)count;
        for (Count k = 0; k < n; k++) {
            Count left = view_slot(a, r, k), right = view_slot(b, r, k);
            if (written[left] == 1 || written[right] == 1 || initial[left] != 0.0 || initial[right] != 0.0) {
                slots[2 * count] = (int32_t)left;
                slots[2 * count++ + 1] = (int32_t)right;
            }
        }
    }
    starts[step->rows] = (int32_t)count;
    return 0;
}

/* What the kernels ask of every four rows; sides are exchanged where that makes a difference to nobody else. */
static int dot_end(Step *step)
{
    Pairs *pairs = step->pairs;
    if (pairs == NULL)
        return 0;
    pairs->left_needed = step->operands[0].needed, pairs->right_needed = step->operands[1].needed;
    if ((pairs->kinds = PyMem_Calloc((size_t)(pairs->rows / 4 + 1), 1)) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Count r = 0; r + 4 <= pairs->rows; r += 4) {
        int left = pairs->left_needed == pairs->right_needed && pairs_are_across(pairs, r, 1);
        for (Count i = pairs->starts[r]; left && i < pairs->starts[r + 4]; i++) {
            int32_t other = pairs->slots[2 * i];
            pairs->slots[2 * i] = pairs->slots[2 * i + 1];
            pairs->slots[2 * i + 1] = other;
        }
        pairs->kinds[r / 4] = pairs_are_across(pairs, r, 0) ? PAIRS_ACROSS
                            : pairs_are_along(pairs, r) ? PAIRS_ALONG : PAIRS_ANY;
    }
    return 0;
}

static void dot_release(Step *step)
{
    if (step->pairs != NULL) {
        PyMem_Free(step->pairs->starts);
        PyMem_Free(step->pairs->slots);
        PyMem_Free(step->pairs->kinds);
        PyMem_Free(step->pairs);
    }
}

/* ---------------------------------------------------------------- rows by rows */

static void dot_forward(const Kernels *kernels, const Step *step, const Memory *memory)
{
    const Operand *a = &step->operands[0], *b = &step->operands[1];
    Count n = a->columns, width = memory->width;
    const double *values = memory->values;
    double *out = memory->values + step->out * width, *scratch = memory->scratch;
    if (step->pairs != NULL) {
        (width == 1 ? kernels->pairs_forward : kernels->batch_pairs_forward)(step->pairs, values, out);
    }
    else if (view_has_columns(a) && view_has_columns(b)) {
        memset(out, 0, (size_t)(step->rows * width) * sizeof *out);
        for (Count k = 0; k < n; k++)
            kernels->add_product(step->rows * width, values + (a->start + k * a->column_stride) * width,
                                 values + (b->start + k * b->column_stride) * width, out);
    }
    else if (width == 1 && n < 8) {
        for (Count r = 0; r < step->rows; r++) {
            double sum = 0.0;
            for (Count k = 0; k < n; k++)
                sum += values[view_slot(a, r, k)] * values[view_slot(b, r, k)];
            out[r] = sum;
        }
    }
    else if (width == 1) {
        for (Count r = 0; r < step->rows; r++)
            out[r] = kernels->dot(n, view_row(a, 1, values, r, scratch), view_row(b, 1, values, r, scratch + n));
    }
    else {
        Matrix left = view_matrix(a, width, values, &scratch), right = view_matrix(b, width, values, &scratch);
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
    if (view_has_columns(to) && view_has_columns(other)) {
        for (Count k = 0; k < n; k++)
            kernels->add_product(step->rows * width, out_grad,
                                 memory->values + (other->start + k * other->column_stride) * width,
                                 grads + (to->start + k * to->column_stride) * width);
        return;
    }
    for (Count r = 0; r < step->rows; r++) {
        if (width == 1 && n >= 8 && view_has_rows(to)) {
            kernels->add_scaled(n, out_grad[r], view_row(other, 1, memory->values, r, scratch),
                                grads + to->start + r * to->row_stride);
        }
        else if (width == 1 && n >= 8) {
            memset(added, 0, (size_t)n * sizeof *added);
            kernels->add_scaled(n, out_grad[r], view_row(other, 1, memory->values, r, scratch), added);
            view_add(kernels, to, 1, added, r * n, n, grads);
        }
        else if (width == 1) {
            for (Count k = 0; k < n; k++)
                grads[view_slot(to, r, k)] += out_grad[r] * memory->values[view_slot(other, r, k)];
        }
        else if (view_has_rows(to) && view_has_rows(other)) {
            kernels->batch_add_scaled(n, out_grad + r * BATCH, view_row(other, BATCH, memory->values, r, NULL),
                                      grads + (to->start + r * to->row_stride) * BATCH);
        }
        else {
            for (Count k = 0; k < n; k++)
                kernels->add_product(width, out_grad + r * width, memory->values + view_slot(other, r, k) * width,
                                     grads + view_slot(to, r, k) * width);
        }
    }
}

static void dot_reverse(const Kernels *kernels, const Step *step, const Memory *memory)
{
    if (step->pairs != NULL) {
        (memory->width == 1 ? kernels->pairs_reverse : kernels->batch_pairs_reverse)(
            step->pairs, memory->values, memory->grads + step->out * memory->width, memory->grads);
        return;
    }
    for (int j = 0; j < 2; j++) {
        if (step->operands[j].needed)
            dot_reverse_to(kernels, step, memory, &step->operands[j], &step->operands[1 - j]);
    }
}

/* ---------------------------------------------------------------- matrix products */

#define LONG_ROW 32 /* from here on, adding up across a vector costs less than transposing */
#define MANY_ROWS 32 /* of the left operand: so often it pays to have transposed the right one */

/* The second operand, mostly the weights, has then to be transposed for nobody. */
static int matmul_is_better_as_dots(const Step *step)
{
    return step->rows <= 2 || step->columns <= 2 || (step->operands[0].columns >= LONG_ROW && step->rows < MANY_ROWS);
}

static void matmul_forward(const Kernels *kernels, const Step *step, const Memory *memory)
{
    const Operand *a = &step->operands[0], *b = &step->operands[1];
    Count rows = step->rows, columns = step->columns, depth = a->columns;
    double *scratch = memory->scratch, *out = memory->values + step->out * memory->width;
    if (memory->width != 1) {
        Matrix left, right;
        int left_shared = view_is_shared(a, memory, &left);
        int right_shared = !left_shared && view_is_shared(b, memory, &right);
        if (!left_shared)
            left = view_matrix(a, BATCH, memory->values, &scratch);
        if (!right_shared)
            right = view_matrix(b, BATCH, memory->values, &scratch);
        kernels->batch_product(&(BatchProduct){
            .rows = rows, .columns = columns, .depth = depth, .left = left.entries, .left_row = left.row,
            .left_depth = left.column, .right = right.entries, .right_depth = right.column, .right_column = right.row,
            .out = out, .out_row = columns, .out_column = 1, .left_shared = left_shared, .right_shared = right_shared});
        return;
    }
    Matrix left = view_matrix(a, 1, memory->values, &scratch), right = view_matrix(b, 1, memory->values, &scratch);
    if (left.column == 1 && right.column == 1 && matmul_is_better_as_dots(step)) {
        kernels->dots(rows, columns, depth, left.entries, left.row, right.entries, right.row, out);
        return;
    }
    right = view_with_unit_stride(kernels, b, right, 1, &scratch);
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
        int total = memory->shared_grads != NULL && view_is_shared(to, memory, &of_all), direct = to->index == NULL;
        int right_shared = !total && view_is_shared(other, memory, &right);
        if (!right_shared)
            right = view_matrix(other, BATCH, memory->values, &scratch);
        double *out = total ? memory->shared_grads + to->start : direct ? memory->grads + to->start * BATCH : scratch;
        kernels->batch_product(&(BatchProduct){
            .rows = rows, .columns = columns, .depth = depth, .left = grad, .left_row = grad_row,
            .left_depth = grad_column, .right = right.entries, .right_depth = right.row, .right_column = right.column,
            .out = out, .out_row = direct ? to->row_stride : columns, .out_column = direct ? to->column_stride : 1,
            .add = direct, .right_shared = right_shared, .total = total});
        if (!direct)
            view_add(kernels, to, BATCH, scratch, 0, rows * columns, memory->grads);
        return;
    }
    if (to->index == NULL && to->row_stride == 1 && to->column_stride != 1 && grad_row == 1) {
        /* transposed: to[k, i], with i side by side here and in the gradient */
        Matrix left = view_matrix(other, 1, memory->values, &scratch);
        kernels->product(&(Product){columns, rows, depth, left.entries, left.column, left.row, grad, grad_column,
                                    memory->grads + to->start, to->column_stride, 1});
        return;
    }
    Matrix right = view_matrix(other, 1, memory->values, &scratch);
    right = view_with_unit_stride(kernels, other, right, 0, &scratch);
    int direct = view_has_rows(to);
    kernels->product(&(Product){rows, columns, depth, grad, grad_row, grad_column, right.entries, right.row,
                                direct ? memory->grads + to->start : scratch, direct ? to->row_stride : columns,
                                direct && !to->fresh});
    if (!direct)
        view_add(kernels, to, 1, scratch, 0, rows * columns, memory->grads);
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

/* ---------------------------------------------------------------- doubt */

/* Whether a row is all 0, without a doubt: nothing is added up, as where an example has no entries. */
static int products_is_nothing(Count n, const double *x, const double *of_x)
{
    return !step_is_reached(x, n) && !step_is_reached(of_x, n);
}

static double products_doubt_of(Count n, const double *x, const double *y, const double *of_x, const double *of_y,
                                int rounds)
{
    double size = 0.0, carried = 0.0;
    int terms = 0; /* other than 0: one alone is rounded as by anybody else */
    for (Count k = 0; k < n; k++) {
        size += fabs(x[k] * y[k]), terms += x[k] * y[k] != 0.0;
        carried += fabs(x[k]) * of_y[k] + fabs(y[k]) * of_x[k];
    }
    return carried + (rounds && terms > 1 ? (double)(n + 1) * UNIT * size : 0.0);
}

COLD static void products_doubt(const Step *step, const Memory *memory, double *doubt)
{
    const Operand *left = &step->operands[0], *right = &step->operands[1];
    Count n = left->columns;
    double *scratch = memory->scratch;
    for (Count row = 0; row < step->rows; row++) {
        const double *x = view_row(left, 1, memory->values, row, scratch);
        const double *of_x = view_row(left, 1, doubt, row, scratch + n);
        double *out = doubt + step->out + row * step->columns;
        if (products_is_nothing(n, x, of_x)) /* and 0 is what is there */
            continue;
        for (Count column = 0; column < step->columns; column++) {
            Count beside = products_right_row(step, row, column);
            const double *y = view_row(right, 1, memory->values, beside, scratch + 2 * n);
            const double *of_y = view_row(right, 1, doubt, beside, scratch + 3 * n);
            if (!products_is_nothing(n, y, of_y))
                out[column] = products_doubt_of(n, x, y, of_x, of_y, step->rounds);
        }
    }
}

const Kind dot_kind = {
    .begin = dot_begin, .end = dot_end, .release = dot_release, .fits = dot_fits, .rounds = products_round,
    .scratch = products_scratch, .forward = dot_forward, .reverse = dot_reverse, .depends = products_depend,
    .doubt = products_doubt,
};

const Kind matmul_kind = {
    .packed = PACKED_GATHERED | PACKED_DIRECT, .takes_lengths = 1, .writes_first = 1, .choose = matmul_choose,
    .fits = matmul_fits, .rounds = products_round, .scratch = products_scratch, .forward = matmul_forward,
    .reverse = matmul_reverse, .depends = products_depend, .doubt = products_doubt,
};
