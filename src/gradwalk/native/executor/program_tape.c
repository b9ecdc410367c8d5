/* Steps of a few entries each, one after the other, as a tape: all that they need lies side by side, so that neither
 * the steps' own records nor vectors that are mostly empty are in the way. One example wide. */

#include "program_steps.h"

#if defined(__GNUC__)
#define NOT_INLINED __attribute__((noinline))
#else
#define NOT_INLINED
#endif

#define FEW 16  /* entries that a vector does not yet pay for, if they have to be gathered */
#define FEWER 4 /* and if they lie side by side, or if the operation takes long */

/* A record: these numbers, the slots of every entry of every operand, the parameters if there are any, its length
 * again for those who come from behind. */
enum { RECORD_OP, RECORD_FLAGS, RECORD_ENTRIES, RECORD_INNER, RECORD_OUT, RECORD_LENGTH, RECORD_SLOTS };
enum { IS_NEEDED = 1, IS_CHECKED = 2, TO_OPERAND = 4 /* the first; doubled for each that follows */ };
#define PARAMETERS 4 /* two doubles */

/* Operations that a tape does in its own way: the shortest, to the bit as the table's rows do; and two of programs that
 * need not be exact to the bit, whose slope follows from `out` where 1 - out does not cancel. */
enum {
    SHORT_ADD = NO_OP + 1, SHORT_SUB, SHORT_MUL, SHORT_NEG,
    ONE_ADD, ONE_SUB, ONE_MUL, ONE_NEG, /* of one entry, and of two: to guess how many are left costs more than to add */
    TWO_ADD, TWO_SUB, TWO_MUL, TWO_NEG,
    NEAR_TANH, NEAR_SIGMOID
};
#define FAR_FROM_1 0.75

/* ---------------------------------------------------------------- the table's rows */

/* Arguments of a row: the operands' entries, then the parameters, which lie behind the slots. */
typedef struct {
    const int32_t *slots;
    const double *values;
    Count n, inputs;
} Arguments;

static inline double argument(const Arguments *of, Count j, Count i)
{
    if (j < of->inputs)
        return of->values[of->slots[j * of->n + i]];
    double parameter;
    memcpy(&parameter, of->slots + of->inputs * of->n + 2 * (j - of->inputs), sizeof parameter);
    return parameter;
}

static inline double value_of_1(double (*row)(double), const Arguments *of, Count i)
{
    return row(argument(of, 0, i));
}

static inline double value_of_2(double (*row)(double, double), const Arguments *of, Count i)
{
    return row(argument(of, 0, i), argument(of, 1, i));
}

static inline double value_of_3(double (*row)(double, double, double), const Arguments *of, Count i)
{
    return row(argument(of, 0, i), argument(of, 1, i), argument(of, 2, i));
}

static inline void slopes_of_1(void (*row)(double, double, double *), const Arguments *of, Count i, double out,
                               double *slopes)
{
    row(argument(of, 0, i), out, slopes);
}

static inline void slopes_of_2(void (*row)(double, double, double, double *), const Arguments *of, Count i,
                               double out, double *slopes)
{
    row(argument(of, 0, i), argument(of, 1, i), out, slopes);
}

static inline void slopes_of_3(void (*row)(double, double, double, double, double *), const Arguments *of, Count i,
                               double out, double *slopes)
{
    row(argument(of, 0, i), argument(of, 1, i), argument(of, 2, i), out, slopes);
}

/* Apart from what follows, so that there the loop over records has the registers to itself. */
NOT_INLINED static void row_forward(const int32_t *record, double *values)
{
    Count n = record[RECORD_ENTRIES];
    const int32_t *a = record + RECORD_SLOTS;
    double *out = values + record[RECORD_OUT];
    switch (record[RECORD_OP]) {
#define ENTRY(name, doc) \
    case OP_##name: \
        for (Count i = 0; i < n; i++) { \
            out[i] = _Generic(&name##_forward, \
                double (*)(double): value_of_1, \
                double (*)(double, double): value_of_2, \
                double (*)(double, double, double): value_of_3)( \
                name##_forward, &(Arguments){a, values, n, op_inputs[OP_##name]}, i); \
        } \
        break;
    FOR_EACH_OP(ENTRY)
#undef ENTRY
    case NEAR_TANH:
        for (Count i = 0; i < n; i++)
            out[i] = tanh_forward(values[a[i]]);
        break;
    case NEAR_SIGMOID:
        for (Count i = 0; i < n; i++)
            out[i] = sigmoid_forward(values[a[i]]);
        break;
    default: break;
    }
}

NOT_INLINED static void row_reverse(const int32_t *record, const double *values, double *grads, int partial)
{
    Count n = record[RECORD_ENTRIES];
    const int32_t *a = record + RECORD_SLOTS;
    const double *out = values + record[RECORD_OUT], *out_grad = grads + record[RECORD_OUT];
    int flags = record[RECORD_FLAGS];
    double slopes[MOST_INPUTS];
    switch (record[RECORD_OP]) {
#define ENTRY(name, doc) \
    case OP_##name: \
        for (Count i = 0; i < n; i++) { \
            double g = out_grad[i]; \
            if (partial && g == 0.0) \
                continue; \
            _Generic(&name##_local_grads, \
                void (*)(double, double, double *): slopes_of_1, \
                void (*)(double, double, double, double *): slopes_of_2, \
                void (*)(double, double, double, double, double *): slopes_of_3)( \
                name##_local_grads, &(Arguments){a, values, n, op_inputs[OP_##name]}, i, out[i], slopes); \
            for (int j = 0; j < op_inputs[OP_##name]; j++) { \
                if (flags & TO_OPERAND << j) \
                    grads[a[j * n + i]] += slopes[j] * g; \
            } \
        } \
        break;
    FOR_EACH_OP(ENTRY)
#undef ENTRY
    case NEAR_TANH:
        for (Count i = 0; i < n; i++) {
            slopes[0] = (1.0 - out[i]) * (1.0 + out[i]);
            if (!(fabs(out[i]) < FAR_FROM_1))
                tanh_local_grads(values[a[i]], out[i], slopes);
            grads[a[i]] += slopes[0] * out_grad[i];
        }
        break;
    case NEAR_SIGMOID:
        for (Count i = 0; i < n; i++) {
            slopes[0] = out[i] * (1.0 - out[i]);
            if (!(out[i] < FAR_FROM_1))
                sigmoid_local_grads(values[a[i]], out[i], slopes);
            grads[a[i]] += slopes[0] * out_grad[i];
        }
        break;
    default: break;
    }
}

/* ---------------------------------------------------------------- running */

static inline void record_forward(const int32_t *record, double *values)
{
    Count n = record[RECORD_ENTRIES], inner = record[RECORD_INNER];
    const int32_t *a = record + RECORD_SLOTS, *b = a + n * inner;
    double *out = values + record[RECORD_OUT];
#define EACH(count, value) \
    for (Count i = 0; i < count; i++) { \
        out[i] = value; \
    } \
    break;
#define SHORTEST(OF, count, b) \
    case OF##_ADD: EACH(count, values[a[i]] + values[(b)[i]]) \
    case OF##_SUB: EACH(count, values[a[i]] - values[(b)[i]]) \
    case OF##_MUL: EACH(count, values[a[i]] * values[(b)[i]]) \
    case OF##_NEG: EACH(count, -values[a[i]])
    switch (record[RECORD_OP]) {
        SHORTEST(ONE, 1, a + 1)
        SHORTEST(TWO, 2, a + 2)
        SHORTEST(SHORT, n, b)
    case COMPOSITE_sum:
        for (Count i = 0; i < n; i++, a += inner) {
            double sum = values[a[0]];
            for (Count k = 1; k < inner; k++)
                sum += values[a[k]];
            out[i] = sum;
        }
        break;
    case COMPOSITE_dot:
        for (Count i = 0; i < n; i++, a += inner, b += inner) {
            double sum = values[a[0]] * values[b[0]];
            for (Count k = 1; k < inner; k++)
                sum += values[a[k]] * values[b[k]];
            out[i] = sum;
        }
        break;
    default: row_forward(record, values);
    }
#undef SHORTEST
#undef EACH
}

/* Whether everything that has to be finite is. */
static int tape_forward(const Step *first, const Memory *memory)
{
    int finite = 1;
    const int32_t *end = first->tape + first->tape_length;
    for (const int32_t *record = first->tape; record < end; record += record[RECORD_LENGTH]) {
        record_forward(record, memory->values);
        for (Count i = 0; record[RECORD_FLAGS] & IS_CHECKED && i < record[RECORD_ENTRIES]; i++)
            finite &= isfinite(memory->values[record[RECORD_OUT] + i]) != 0;
    }
    return finite;
}

static inline void record_reverse(const int32_t *record, const double *values, double *grads, int partial)
{
    Count n = record[RECORD_ENTRIES], inner = record[RECORD_INNER];
    const int32_t *a = record + RECORD_SLOTS, *b = a + n * inner;
    const double *out_grad = grads + record[RECORD_OUT];
    int flags = record[RECORD_FLAGS];
    /* the second sum is read after the first is written: the two may be the same slot */
#define EACH(count, b, of_left, of_right) \
    for (Count i = 0; i < count; i++) { \
        double g = out_grad[i]; \
        if (flags & TO_OPERAND) \
            grads[a[i]] += of_left; \
        if (flags & TO_OPERAND << 1) \
            grads[(b)[i]] += of_right; \
    } \
    break;
#define SHORTEST(OF, count, b) \
    case OF##_ADD: EACH(count, b, g, g) \
    case OF##_SUB: EACH(count, b, g, -g) \
    case OF##_MUL: EACH(count, b, values[(b)[i]] * g, values[a[i]] * g) \
    case OF##_NEG: EACH(count, b, -g, 0.0)
    switch (record[RECORD_OP]) {
        SHORTEST(ONE, 1, a + 1)
        SHORTEST(TWO, 2, a + 2)
        SHORTEST(SHORT, n, b)
    case COMPOSITE_sum:
        for (Count i = 0; i < n; i++, a += inner) {
            for (Count k = 0; k < inner; k++)
                grads[a[k]] += out_grad[i];
        }
        break;
    case COMPOSITE_dot:
        for (Count i = 0; i < n; i++, a += inner, b += inner) {
            double g = out_grad[i];
            for (Count k = 0; k < inner; k++) {
                if (flags & TO_OPERAND)
                    grads[a[k]] += values[b[k]] * g;
                if (flags & TO_OPERAND << 1)
                    grads[b[k]] += values[a[k]] * g;
            }
        }
        break;
    default: row_reverse(record, values, grads, partial);
    }
#undef SHORTEST
#undef EACH
}

/* `partial`: only where a gradient has come, as is_reached says. */
static void tape_reverse(const Step *first, const Memory *memory, int partial)
{
    const int32_t *end = first->tape + first->tape_length;
    while (end > first->tape) {
        const int32_t *record = end - end[-1];
        int reached = !partial;
        for (Count i = 0; !reached && i < record[RECORD_ENTRIES]; i++)
            reached = memory->grads[record[RECORD_OUT] + i] != 0.0;
        if (reached && record[RECORD_FLAGS] & IS_NEEDED)
            record_reverse(record, memory->values, memory->grads, partial);
        end = record;
    }
}

/* ---------------------------------------------------------------- making */

static int has_few_entries(const Step *step)
{
    int direct = 1, cheap = step->op == OP_add || step->op == OP_sub || step->op == OP_mul || step->op == OP_neg;
    for (int j = 0; j < step->operand_count; j++)
        direct &= step->operands[j].direct;
    return step->rows * step->columns <= (cheap && !direct ? FEW : FEWER);
}

/* Numbers that a record of this step takes; 0 if it is not for a tape. */
static Count record_length(const Step *step, int exact)
{
    Count slots = 0;
    for (int j = 0; j < step->operand_count; j++)
        slots += step->operands[j].rows * step->operands[j].columns;
    switch (step->kind) {
    case STEP_ENTRIES:
        return has_few_entries(step) ? RECORD_SLOTS + slots + (op_parameters[step->op] > 0 ? PARAMETERS : 0) + 1 : 0;
    case STEP_DOT: return !exact && slots <= 2 * FEW ? RECORD_SLOTS + slots + 1 : 0;
    case STEP_ROWS: return !exact && step->op == COMPOSITE_sum && slots <= FEW ? RECORD_SLOTS + slots + 1 : 0;
    default: return 0;
    }
}

static int op_on_tape(unsigned op, Count entries, int exact)
{
    int shortest = entries == 1 ? ONE_ADD : entries == 2 ? TWO_ADD : SHORT_ADD;
    switch (op) {
    case OP_add: return shortest;
    case OP_sub: return shortest + (SHORT_SUB - SHORT_ADD);
    case OP_mul: return shortest + (SHORT_MUL - SHORT_ADD);
    case OP_neg: return shortest + (SHORT_NEG - SHORT_ADD);
    case OP_tanh: return exact ? OP_tanh : NEAR_TANH;
    case OP_sigmoid: return exact ? OP_sigmoid : NEAR_SIGMOID;
    default: return (int)op;
    }
}

static void record_write(const Step *step, Count length, int exact, int32_t *record)
{
    const Operand *first = &step->operands[0];
    int32_t *slots = record + RECORD_SLOTS;
    record[RECORD_OP] = op_on_tape(step->op, step->rows * step->columns, exact);
    record[RECORD_FLAGS] = (step->needed ? IS_NEEDED : 0) | (step->checked ? IS_CHECKED : 0);
    record[RECORD_ENTRIES] = (int32_t)(step->rows * step->columns);
    record[RECORD_INNER] = step->kind == STEP_ENTRIES ? 1 : (int32_t)first->columns;
    record[RECORD_OUT] = (int32_t)step->out;
    record[RECORD_LENGTH] = record[length - 1] = (int32_t)length;
    for (int j = 0; j < step->operand_count; j++) {
        const Operand *operand = &step->operands[j];
        record[RECORD_FLAGS] |= operand->needed ? TO_OPERAND << j : 0;
        for (Count i = 0; i < operand->rows * operand->columns; i++)
            *slots++ = (int32_t)slot_of(operand, i / operand->columns, i % operand->columns);
    }
    if (step->kind == STEP_ENTRIES && op_parameters[step->op] > 0)
        memcpy(slots, step->parameters, sizeof step->parameters);
}

/* Gives the first of each row of short steps a tape; -1 with an exception set. */
static int steps_join(Step *steps, Count count, int exact)
{
    for (Count first = 0, end; first < count; first = end) {
        Count length = 0, here;
        for (end = first; end < count && (here = record_length(&steps[end], exact)) > 0; end++)
            length += here;
        if (end < first + 2) { /* alone it gains nothing */
            end = first + 1;
            continue;
        }
        int32_t *record = steps[first].tape = PyMem_Malloc((size_t)length * sizeof *record);
        if (record == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        steps[first].tape_length = length;
        steps[first].joined = steps[end - 1].joined_before = end - first;
        for (Count i = first; i < end; i++, record += here) {
            here = record_length(&steps[i], exact);
            record_write(&steps[i], here, exact, record);
        }
    }
    return 0;
}
