/* Entry by entry through the rows of the table, for the operations that have no vector form; and, for exact
 * programs, one entry after the other in the order of the eager engine. */

#include "executor/program_steps.h"

/* ---------------------------------------------------------------- a loop per row, made from the generated functions */

/* Argument j of a row: an operand's entry, or else a parameter. */
#define ARGUMENT(j) ((j) < inputs ? in[j][i] : parameters[(j) - inputs])

static inline void forward_of_1(double (*row)(double), int inputs, Count n, const double *const *in,
                                const double *parameters, double *out)
{
    for (Count i = 0; i < n; i++)
        out[i] = row(ARGUMENT(0));
}

static inline void forward_of_2(double (*row)(double, double), int inputs, Count n, const double *const *in,
                                const double *parameters, double *out)
{
    for (Count i = 0; i < n; i++)
        out[i] = row(ARGUMENT(0), ARGUMENT(1));
}

static inline void forward_of_3(double (*row)(double, double, double), int inputs, Count n, const double *const *in,
                                const double *parameters, double *out)
{
    for (Count i = 0; i < n; i++)
        out[i] = row(ARGUMENT(0), ARGUMENT(1), ARGUMENT(2));
}

#define ADD_CONTRIBUTIONS \
    for (int j = 0; j < inputs; j++) { \
        if (grads[j] != NULL) \
            grads[j][i] += local_grads[j] * out_grad[i]; \
    }

static inline void reverse_of_1(void (*row)(double, double, double *), int inputs, Count n, const double *const *in,
                                const double *parameters, const double *out, const double *out_grad,
                                double *const *grads)
{
    double local_grads[MOST_INPUTS];
    for (Count i = 0; i < n; i++) {
        row(ARGUMENT(0), out[i], local_grads);
        ADD_CONTRIBUTIONS
    }
}

static inline void reverse_of_2(void (*row)(double, double, double, double *), int inputs, Count n,
                                const double *const *in, const double *parameters, const double *out,
                                const double *out_grad, double *const *grads)
{
    double local_grads[MOST_INPUTS];
    for (Count i = 0; i < n; i++) {
        row(ARGUMENT(0), ARGUMENT(1), out[i], local_grads);
        ADD_CONTRIBUTIONS
    }
}

static inline void reverse_of_3(void (*row)(double, double, double, double, double *), int inputs, Count n,
                                const double *const *in, const double *parameters, const double *out,
                                const double *out_grad, double *const *grads)
{
    double local_grads[MOST_INPUTS];
    for (Count i = 0; i < n; i++) {
        row(ARGUMENT(0), ARGUMENT(1), ARGUMENT(2), out[i], local_grads);
        ADD_CONTRIBUTIONS
    }
}

#define ROW_LOOPS(name, doc) \
    static void name##_entries_forward(Count n, const double *const *in, const double *parameters, double *out) \
    { \
        _Generic(&name##_forward, \
            double (*)(double): forward_of_1, \
            double (*)(double, double): forward_of_2, \
            double (*)(double, double, double): forward_of_3)( \
            name##_forward, op_inputs[OP_##name], n, in, parameters, out); \
    } \
    static void name##_entries_reverse(Count n, const double *const *in, const double *parameters, const double *out, \
                                       const double *out_grad, double *const *grads) \
    { \
        _Generic(&name##_local_grads, \
            void (*)(double, double, double *): reverse_of_1, \
            void (*)(double, double, double, double *): reverse_of_2, \
            void (*)(double, double, double, double, double *): reverse_of_3)( \
            name##_local_grads, op_inputs[OP_##name], n, in, parameters, out, out_grad, grads); \
    }
FOR_EACH_OP(ROW_LOOPS)
#undef ROW_LOOPS

static const Forward table_forward[OP_COUNT] = {
#define ENTRY(name, doc) name##_entries_forward,
    FOR_EACH_OP(ENTRY)
#undef ENTRY
};

static const Reverse table_reverse[OP_COUNT] = {
#define ENTRY(name, doc) name##_entries_reverse,
    FOR_EACH_OP(ENTRY)
#undef ENTRY
};

/* ---------------------------------------------------------------- exact programs */

static inline Count slot_of(const Operand *operand, Count row, Count column)
{
    return operand->index ? operand->index[row * operand->columns + column]
                          : operand->start + row * operand->row_stride + column * operand->column_stride;
}

static void exact_read(const Operand *operand, const Memory *memory, Count row, double *into)
{
    for (Count k = 0; k < operand->columns; k++)
        into[k] = memory->values[slot_of(operand, row, k)];
}

static void exact_add(const Operand *operand, const Memory *memory, Count row, const double *local_grads, double grad)
{
    for (Count k = 0; k < operand->columns; k++)
        memory->grads[slot_of(operand, row, k)] += local_grads[k] * grad;
}

/* A whole number from 0 to count - 1, whatever is there: guards judge it after the pass. */
static inline Count whole_from(double given, Count count)
{
    return given >= 0.0 ? given < (double)count ? (Count)given : count - 1 : 0;
}

/* Doubles that the outputs of one row share, in an exact program. */
static Count exact_facts_count(const Step *step) { return step->operands[0].columns + EXPONENTIALS; }

static void exact_facts(const Step *step, const double *x, double *facts)
{
    Count n = step->operands[0].columns;
    switch (step->op) {
    case COMPOSITE_logsumexp:
    case COMPOSITE_softmax:
    case COMPOSITE_log_softmax:
    case COMPOSITE_cross_entropy: softmax_facts(x, n, facts); break;
    case COMPOSITE_rmsnorm: norm_facts(x, n, 0, step->parameters[0], facts); break;
    case COMPOSITE_layernorm: norm_facts(x, n, 1, step->parameters[0], facts); break;
    default: break;
    }
}

/* The output (row, column) of a composite over x, and its local gradients. */
static double exact_composite(const Step *step, const Memory *memory, Count row, Count column, const double *x,
                              const double *facts, double *local_grads)
{
    Count n = step->operands[0].columns, i = step->entry < 0 ? column : step->entry;
    if (step->op == COMPOSITE_cross_entropy)
        i = whole_from(memory->values[slot_of(&step->operands[1], row, 0)], n);
    switch (step->op) {
#define ENTRY(name) case COMPOSITE_##name: return name##_row(x, n, i, facts, local_grads);
    ENTRY(sum) ENTRY(mean) ENTRY(norm) ENTRY(largest) ENTRY(smallest) ENTRY(logsumexp) ENTRY(softmax)
    ENTRY(log_softmax) ENTRY(cross_entropy) ENTRY(rmsnorm)
    default: return layernorm_row(x, n, i, facts, local_grads);
#undef ENTRY
    }
}

static void exact_rows_forward(const Step *step, const Memory *memory)
{
    Count n = step->operands[0].columns;
    double *x = memory->scratch, *local_grads = x + n;
    for (Count r = 0; r < step->rows; r++) {
        double *facts = memory->facts + step->facts + r * exact_facts_count(step);
        exact_read(&step->operands[0], memory, r, x);
        if (!step->knows)
            exact_facts(step, x, facts);
        for (Count c = 0; c < step->columns; c++)
            memory->values[step->out + r * step->columns + c] =
                exact_composite(step, memory, r, c, x, facts, local_grads);
    }
}

static void exact_rows_reverse(const Step *step, const Memory *memory)
{
    Count n = step->operands[0].columns;
    double *x = memory->scratch, *local_grads = x + n;
    for (Count i = step->rows * step->columns; i-- > 0;) {
        Count row = i / step->columns, column = i % step->columns;
        exact_read(&step->operands[0], memory, row, x);
        exact_composite(step, memory, row, column, x, memory->facts + step->facts + row * exact_facts_count(step),
                        local_grads);
        exact_add(&step->operands[0], memory, row, local_grads, memory->grads[step->out + i]);
    }
}

/* dot and matmul: a sum of products, from left to right */
static void exact_products_forward(const Step *step, const Memory *memory)
{
    const Operand *left = &step->operands[0], *right = &step->operands[1];
    for (Count i = 0; i < step->rows * step->columns; i++) {
        Count row = i / step->columns, column = step->kind == STEP_DOT ? row : i % step->columns;
        double sum = memory->values[slot_of(left, row, 0)] * memory->values[slot_of(right, column, 0)];
        for (Count k = 1; k < left->columns; k++)
            sum = sum + memory->values[slot_of(left, row, k)] * memory->values[slot_of(right, column, k)];
        memory->values[step->out + i] = sum;
    }
}

static void exact_products_reverse(const Step *step, const Memory *memory)
{
    const Operand *left = &step->operands[0], *right = &step->operands[1];
    double *x = memory->scratch, *y = x + left->columns;
    for (Count i = step->rows * step->columns; i-- > 0;) {
        Count row = i / step->columns, column = step->kind == STEP_DOT ? row : i % step->columns;
        exact_read(left, memory, row, x);
        exact_read(right, memory, column, y);
        exact_add(left, memory, row, y, memory->grads[step->out + i]);
        exact_add(right, memory, column, x, memory->grads[step->out + i]);
    }
}

static void exact_entries_reverse(const Step *step, const Memory *memory)
{
    double in[MOST_NAMES], out, local_grads[MOST_INPUTS];
    for (int j = 0; j < op_parameters[step->op]; j++)
        in[step->operand_count + j] = step->parameters[j];
    for (Count i = step->rows * step->columns; i-- > 0;) {
        Count row = i / step->columns, column = i % step->columns;
        for (int j = 0; j < step->operand_count; j++)
            in[j] = memory->values[slot_of(&step->operands[j], row, column)];
        op_evaluate((enum op)step->op, in, &out, local_grads);
        for (int j = 0; j < step->operand_count; j++)
            memory->grads[slot_of(&step->operands[j], row, column)] +=
                local_grads[j] * memory->grads[step->out + i];
    }
}
