/* Steps of a few entries each, one after the other, as a tape: all that they need lies side by side, so that neither
 * the steps' own records nor vectors that are mostly empty are in the way. One example wide.
 *
 * An exact program is a tape: a record for each output, in the order and with the rounding of the eager engine. */

#include "tape.h"

#define FEW 16  /* entries that a vector does not yet pay for, if they have to be gathered */
#define FEWER 4 /* and if they lie side by side, or if the operation takes long */
#define RECENT_ROWS 64 /* rows among which one with the same facts is looked for */

/* A record: these numbers, the slots of every entry of every operand, the parameters if there are any, its length
 * again for those who come from behind. A long tape is read from memory, so it is kept short: the head holds the
 * operation in its last 8 bits, then the flags, and from bit 16 on how many entries there are. What runs over rows has
 * the length of a row before its slots; a composite RECORD_ROW more numbers before the parameters: which output of its
 * row it is, and where the row's facts are. */
enum { RECORD_HEAD, RECORD_OUT, RECORD_LENGTH, RECORD_SLOTS };
enum {
    IS_NEEDED = 1 << 8, IS_CHECKED = 1 << 9,
    HAS_TARGET = 1 << 10, /* the slot behind the row's */
    OWNS_FACTS = 1 << 11, /* of its row, and leaves them to those that follow */
    TO_OPERAND = 1 << 12  /* the first; doubled for each that follows */
};
#define TO_BOTH (TO_OPERAND | TO_OPERAND << 1)
#define RECORD_INNER RECORD_SLOTS
#define ROW_SLOTS (RECORD_INNER + 1)
#define RECORD_ROW 2
#define PARAMETERS 4 /* two doubles */

/* Operations that a tape does in its own way: the shortest, to the bit as the table's rows do; and two of programs that
 * need not be exact to the bit, whose slope follows from `out` where 1 - out does not cancel. */
enum {
    SHORT_ADD = NO_OP + 1, SHORT_SUB, SHORT_MUL, SHORT_NEG,
    TWO_ADD, TWO_SUB, TWO_MUL, TWO_NEG, /* of two entries, and of one: to guess how many there are costs more */
    ONE_ADD, ONE_SUB, ONE_MUL, ONE_NEG, /* and so does it to guess which operand is asked for: here both are, */
    LEFT_ADD, LEFT_SUB, LEFT_MUL, LEFT_NEG, RIGHT_ADD, RIGHT_SUB, RIGHT_MUL, RIGHT_NEG, /* and here one */
    NEAR_TANH, NEAR_SIGMOID
};
#define FAR_FROM_1 0.75
_Static_assert(NEAR_SIGMOID < 256 && MOST_INPUTS <= 4, "a record's head has 8 bits for the operation, 4 for operands");

static inline int tape_record_op(const int32_t *record)
{
    return record[RECORD_HEAD] & 255;
}

static inline Count tape_record_entries(const int32_t *record)
{
    return record[RECORD_HEAD] >> 16;
}

/* ---------------------------------------------------------------- the table's rows */

/* Arguments of a row: an entry of each operand, then the parameters, which lie behind the slots. */
typedef struct {
    const int32_t *slots;
    const double *values;
    Count inputs;
} Arguments;

static inline double tape_argument(const Arguments *of, Count j)
{
    if (j < of->inputs)
        return of->values[of->slots[j]];
    double parameter;
    memcpy(&parameter, of->slots + of->inputs + 2 * (j - of->inputs), sizeof parameter);
    return parameter;
}

static inline double tape_value_of_1(double (*row)(double), const Arguments *of)
{
    return row(tape_argument(of, 0));
}

static inline double tape_value_of_2(double (*row)(double, double), const Arguments *of)
{
    return row(tape_argument(of, 0), tape_argument(of, 1));
}

static inline double tape_value_of_3(double (*row)(double, double, double), const Arguments *of)
{
    return row(tape_argument(of, 0), tape_argument(of, 1), tape_argument(of, 2));
}

static inline void tape_slopes_of_1(void (*row)(double, double, double *), const Arguments *of, double out,
                                    double *slopes)
{
    row(tape_argument(of, 0), out, slopes);
}

static inline void tape_slopes_of_2(void (*row)(double, double, double, double *), const Arguments *of, double out,
                                    double *slopes)
{
    row(tape_argument(of, 0), tape_argument(of, 1), out, slopes);
}

static inline void tape_slopes_of_3(void (*row)(double, double, double, double, double *), const Arguments *of,
                                    double out, double *slopes)
{
    row(tape_argument(of, 0), tape_argument(of, 1), tape_argument(of, 2), out, slopes);
}

/* ---------------------------------------------------------------- composites of an exact program */

typedef struct {
    const Composite *composite;
    Count n, i; /* numbers of the row; which output it is, or the target */
    double parameters[2], *facts;
} Row;

/* The row's numbers go into x. */
static Row tape_composite_read(const int32_t *record, const Memory *memory, double *x)
{
    int has_target = record[RECORD_HEAD] & HAS_TARGET ? 1 : 0;
    Row row = {.composite = composite_of((unsigned)tape_record_op(record)), .n = record[RECORD_INNER]};
    const int32_t *slots = record + ROW_SLOTS, *rest = slots + row.n + has_target;
    for (Count k = 0; k < row.n; k++)
        x[k] = memory->values[slots[k]];
    row.i = has_target ? step_whole(memory->values[slots[row.n]], row.n) : rest[0];
    row.facts = memory->facts + rest[1];
    memcpy(row.parameters, rest + RECORD_ROW, sizeof row.parameters);
    return row;
}

NEVER_INLINE static void tape_composite_forward(const int32_t *record, const Memory *memory)
{
    const double *x = memory->scratch;
    Row row = tape_composite_read(record, memory, memory->scratch);
    if (record[RECORD_HEAD] & OWNS_FACTS)
        composite_keep(row.composite, row.n, x, row.parameters, row.facts);
    memory->values[record[RECORD_OUT]] = composite_output(row.composite, row.n, x, row.i, row.parameters, row.facts);
}

NEVER_INLINE static void tape_composite_reverse(const int32_t *record, const Memory *memory)
{
    double *x = memory->scratch, out = memory->values[record[RECORD_OUT]], grad = memory->grads[record[RECORD_OUT]];
    Row row = tape_composite_read(record, memory, x);
    double *local_grads = x + row.n;
    composite_slopes(row.composite, row.n, x, row.i, row.parameters, row.facts, out, local_grads);
    for (Count k = 0; k < row.n; k++)
        memory->grads[record[ROW_SLOTS + k]] += contribution((unsigned)tape_record_op(record), local_grads[k], grad);
}

/* ---------------------------------------------------------------- rows of the table: one entry each */

/* Of each operation a function of its own, which keeps no more registers than it needs. What no gradient has come to
 * passes none on, not even 0 times an infinite local gradient. */
#define PUSH(name, j) \
    if (j < op_inputs[OP_##name] && record[RECORD_HEAD] & TO_OPERAND << j) \
        memory->grads[a[j]] += contribution(OP_##name, slopes[j], g);
#define ROW(name, doc) \
    static void tape_##name##_forward(const int32_t *record, const Memory *memory) \
    { \
        Arguments given = {record + RECORD_SLOTS, memory->values, op_inputs[OP_##name]}; \
        memory->values[record[RECORD_OUT]] = _Generic(&name##_forward, \
            double (*)(double): tape_value_of_1, \
            double (*)(double, double): tape_value_of_2, \
            double (*)(double, double, double): tape_value_of_3)(name##_forward, &given); \
    } \
    static void tape_##name##_reverse(const int32_t *record, const Memory *memory) \
    { \
        const int32_t *a = record + RECORD_SLOTS; \
        double g = memory->grads[record[RECORD_OUT]], slopes[MOST_INPUTS]; \
        Arguments given = {a, memory->values, op_inputs[OP_##name]}; \
        if (g == 0.0) \
            return; \
        _Generic(&name##_local_grads, \
            void (*)(double, double, double *): tape_slopes_of_1, \
            void (*)(double, double, double, double *): tape_slopes_of_2, \
            void (*)(double, double, double, double, double *): tape_slopes_of_3)( \
            name##_local_grads, &given, memory->values[record[RECORD_OUT]], slopes); \
        PUSH(name, 0) \
        PUSH(name, 1) \
        PUSH(name, 2) \
    }
_Static_assert(MOST_INPUTS == 3, "a PUSH for each");
FOR_EACH_OP(ROW)
#undef ROW
#undef PUSH

static void (*const tape_rows_forward[])(const int32_t *, const Memory *) = {
#define ROW(name, doc) [OP_##name] = tape_##name##_forward,
    FOR_EACH_OP(ROW)
#undef ROW
};

static void (*const tape_rows_reverse[])(const int32_t *, const Memory *) = {
#define ROW(name, doc) [OP_##name] = tape_##name##_reverse,
    FOR_EACH_OP(ROW)
#undef ROW
};

/* ---------------------------------------------------------------- what runs apart from the loop over records */

/* Rows, composites, and the operations that are near enough; so that the loop has the registers to itself. */
static inline void tape_apart_forward(const int32_t *record, const Memory *memory)
{
    switch (tape_record_op(record)) {
    case NEAR_TANH: tape_tanh_forward(record, memory); break;
    case NEAR_SIGMOID: tape_sigmoid_forward(record, memory); break;
    default:
        if (tape_record_op(record) < OP_COUNT)
            tape_rows_forward[tape_record_op(record)](record, memory);
        else
            tape_composite_forward(record, memory);
    }
}

static inline void tape_apart_reverse(const int32_t *record, const Memory *memory)
{
    double out = memory->values[record[RECORD_OUT]], g = memory->grads[record[RECORD_OUT]];
    double *to = memory->grads + record[RECORD_SLOTS];
    switch (tape_record_op(record)) {
    case NEAR_TANH:
        if (fabs(out) < FAR_FROM_1)
            *to += (1.0 - out) * (1.0 + out) * g;
        else
            tape_tanh_reverse(record, memory);
        break;
    case NEAR_SIGMOID:
        if (out < FAR_FROM_1)
            *to += out * (1.0 - out) * g;
        else
            tape_sigmoid_reverse(record, memory);
        break;
    default:
        if (tape_record_op(record) < OP_COUNT)
            tape_rows_reverse[tape_record_op(record)](record, memory);
        else
            tape_composite_reverse(record, memory);
    }
}

/* ---------------------------------------------------------------- running */

static inline void tape_record_forward(const int32_t *record, const Memory *memory)
{
    double *values = memory->values;
    const int32_t *a = record + RECORD_SLOTS;
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
    switch (tape_record_op(record)) {
        SHORTEST(ONE, 1, a + 1)
        SHORTEST(LEFT, 1, a + 1)
        SHORTEST(RIGHT, 1, a + 1)
        SHORTEST(TWO, 2, a + 2)
        SHORTEST(SHORT, tape_record_entries(record), a + tape_record_entries(record))
    case COMPOSITE_sum:
        a = record + ROW_SLOTS;
        for (Count i = 0, inner = record[RECORD_INNER]; i < tape_record_entries(record); i++, a += inner) {
            double sum = values[a[0]];
            for (Count k = 1; k < inner; k++)
                sum += values[a[k]];
            out[i] = sum;
        }
        break;
    case COMPOSITE_dot:
        a = record + ROW_SLOTS;
        for (Count i = 0, inner = record[RECORD_INNER]; i < tape_record_entries(record); i++, a += inner) {
            const int32_t *b = a + tape_record_entries(record) * inner;
            double sum = values[a[0]] * values[b[0]];
            for (Count k = 1; k < inner; k++)
                sum += values[a[k]] * values[b[k]];
            out[i] = sum;
        }
        break;
    default: tape_apart_forward(record, memory);
    }
#undef SHORTEST
#undef EACH
}

/* Whether everything that has to be finite is. */
INTERNAL int tape_forward(const Tape *tape, const Memory *memory)
{
    int finite = 1;
    const int32_t *end = tape->records + tape->length;
    for (const int32_t *record = tape->records; record < end; record += record[RECORD_LENGTH]) {
        tape_record_forward(record, memory);
        for (Count i = 0; record[RECORD_HEAD] & IS_CHECKED && i < tape_record_entries(record); i++)
            finite &= isfinite(memory->values[record[RECORD_OUT] + i]) != 0;
    }
    return finite;
}

static ALWAYS_INLINE void tape_record_reverse(const int32_t *record, const Memory *memory)
{
    const double *values = memory->values;
    double *grads = memory->grads;
    const int32_t *a = record + RECORD_SLOTS;
    const double *out_grad = grads + record[RECORD_OUT];
    int flags = record[RECORD_HEAD];
    /* the second sum is read after the first is written: the two may be the same slot */
#define EACH(count, b, to, of_left, of_right) \
    for (Count i = 0; i < count; i++) { \
        double g = out_grad[i]; \
        if ((to) & TO_OPERAND) \
            grads[a[i]] += of_left; \
        if ((to) & TO_OPERAND << 1) \
            grads[(b)[i]] += of_right; \
    } \
    break;
#define SHORTEST(OF, count, b, to) \
    case OF##_ADD: EACH(count, b, to, g, g) \
    case OF##_SUB: EACH(count, b, to, g, -g) \
    case OF##_MUL: EACH(count, b, to, contribution(OP_mul, values[(b)[i]], g), contribution(OP_mul, values[a[i]], g)) \
    case OF##_NEG: EACH(count, b, to, -g, 0.0)
    switch (tape_record_op(record)) {
        SHORTEST(ONE, 1, a + 1, TO_BOTH)
        SHORTEST(LEFT, 1, a + 1, TO_OPERAND)
        SHORTEST(RIGHT, 1, a + 1, TO_OPERAND << 1)
        SHORTEST(TWO, 2, a + 2, flags)
        SHORTEST(SHORT, tape_record_entries(record), a + tape_record_entries(record), flags)
    case COMPOSITE_sum:
        a = record + ROW_SLOTS;
        for (Count i = 0, inner = record[RECORD_INNER]; i < tape_record_entries(record); i++, a += inner) {
            for (Count k = 0; k < inner; k++)
                grads[a[k]] += out_grad[i];
        }
        break;
    case COMPOSITE_dot:
        a = record + ROW_SLOTS;
        for (Count i = 0, inner = record[RECORD_INNER]; i < tape_record_entries(record); i++, a += inner) {
            const int32_t *b = a + tape_record_entries(record) * inner;
            double g = out_grad[i];
            for (Count k = 0; flags & TO_OPERAND && k < inner; k++)
                grads[a[k]] += contribution(OP_mul, values[b[k]], g);
            for (Count k = 0; flags & TO_OPERAND << 1 && k < inner; k++)
                grads[b[k]] += contribution(OP_mul, values[a[k]], g);
        }
        break;
    default: tape_apart_reverse(record, memory);
    }
#undef SHORTEST
#undef EACH
}

/* `partial`: only where a gradient has come, as step_is_reached says. */
INTERNAL void tape_reverse(const Tape *tape, const Memory *memory, int partial)
{
    const int32_t *end = tape->records + tape->length;
    while (end > tape->records) {
        const int32_t *record = end - end[-1];
        if (record[RECORD_HEAD] & IS_NEEDED
            && (!partial || step_is_reached(memory->grads + record[RECORD_OUT], tape_record_entries(record))))
            tape_record_reverse(record, memory);
        end = record;
    }
}

/* ---------------------------------------------------------------- making */

/* Whether the operation is one of the shortest, which a record does for all its entries; of the others each has its
 * own. */
static int tape_is_shortest(const Step *step)
{
    return step->op == OP_add || step->op == OP_sub || step->op == OP_mul || step->op == OP_neg;
}

static int tape_has_few_entries(const Step *step)
{
    int direct = 1;
    for (int j = 0; j < step->operand_count; j++)
        direct &= step->operands[j].direct;
    return step->rows * step->columns <= (tape_is_shortest(step) && !direct ? FEW : FEWER);
}

/* How many of the step's outputs a record makes. */
static Count tape_at_a_time(const Step *step, int exact)
{
    return exact || (step->kind == KIND_ENTRIES && !tape_is_shortest(step)) ? 1 : step->rows * step->columns;
}

/* Whether a step is for a tape. */
static int tape_takes(const Step *step, int exact)
{
    Count entries = step->rows * step->columns, inner = step->operands[0].columns;
    switch (step->kind) {
    case KIND_ENTRIES: return exact || tape_has_few_entries(step);
    case KIND_DOT: return exact || entries * inner <= FEW;
    case KIND_ROWS: return exact || (step->op == COMPOSITE_sum && entries * inner <= FEW);
    case KIND_MATMUL: return exact;
    case KIND_TAKE:
    case KIND_CALL: return 0;
    case KIND_COUNT:
    default: Py_UNREACHABLE();
    }
}

/* Numbers that a record takes which makes so many of the step's outputs. */
static Count tape_record_length(const Step *step, Count entries)
{
    int composite = step->kind == KIND_ROWS && step->op != COMPOSITE_sum;
    int parameters = composite || (step->kind == KIND_ENTRIES && op_parameters[step->op] > 0);
    Count slots = 0;
    for (int j = 0; j < step->operand_count; j++)
        slots += entries * (step->kind == KIND_ENTRIES ? 1 : step->operands[j].columns);
    return (step->kind == KIND_ENTRIES ? RECORD_SLOTS : ROW_SLOTS) + slots + (composite ? RECORD_ROW : 0)
        + (parameters ? PARAMETERS : 0) + 1;
}

static int tape_op(const Step *step, Count entries, int exact)
{
    int left = step->operands[0].needed, right = step->operand_count > 1 && step->operands[1].needed;
    int one = left && right ? ONE_ADD : left ? LEFT_ADD : RIGHT_ADD;
    int shortest = entries == 1 ? one : entries == 2 ? TWO_ADD : SHORT_ADD;
    if (step->kind == KIND_MATMUL)
        return COMPOSITE_dot;
    switch (step->op) {
    case OP_add: return shortest;
    case OP_sub: return shortest + (SHORT_SUB - SHORT_ADD);
    case OP_mul: return shortest + (SHORT_MUL - SHORT_ADD);
    case OP_neg: return shortest + (SHORT_NEG - SHORT_ADD);
    case OP_tanh: return exact ? OP_tanh : NEAR_TANH;
    case OP_sigmoid: return exact ? OP_sigmoid : NEAR_SIGMOID;
    default: return (int)step->op;
    }
}

/* The rows whose facts the last records have left. */
typedef struct {
    const int32_t *records[RECENT_ROWS];
    Count count, facts; /* records; doubles */
} Known;

/* Completes a composite's record, all of whose slots are written: the facts of its row may be known already. */
static void tape_record_find_facts(const Step *step, Count i, int32_t *record, int32_t *row, Known *known)
{
    Count n = record[RECORD_INNER];
    row[0] = (int32_t)(step->over_rows.entry < 0 ? i % step->columns : step->over_rows.entry);
    double parameters[2] = {0.0, 0.0};
    const Composite *composite = composite_of(step->op);
    for (int k = 0; k < composite->parameters; k++)
        parameters[k] = step->parameters[k];
    memcpy(row + RECORD_ROW, parameters, sizeof parameters);
    for (Count back = 1; back <= known->count && back <= RECENT_ROWS; back++) {
        const int32_t *other = known->records[(known->count - back) % RECENT_ROWS], *other_row = other + (row - record);
        if (tape_record_op(other) == tape_record_op(record) && other[RECORD_INNER] == n
            && memcmp(other + ROW_SLOTS, record + ROW_SLOTS, (size_t)n * sizeof *row) == 0
            && memcmp(other_row + RECORD_ROW, row + RECORD_ROW, sizeof parameters) == 0) {
            row[1] = other_row[1];
            return;
        }
    }
    record[RECORD_HEAD] |= OWNS_FACTS;
    row[1] = (int32_t)known->facts;
    known->facts += composite_kept(composite, n);
    known->records[known->count++ % RECENT_ROWS] = record;
}

/* Writes the record for the step's outputs from `first` on; returns where it ends. */
static int32_t *tape_record_write(const Step *step, Count first, Count entries, int exact, int32_t *record,
                                  Known *known)
{
    Count length = tape_record_length(step, entries);
    int32_t *slots = record + RECORD_SLOTS;
    record[RECORD_HEAD] = tape_op(step, entries, exact) | (step->needed ? IS_NEEDED : 0)
        | (step->checked ? IS_CHECKED : 0) | (int32_t)entries << 16;
    record[RECORD_OUT] = (int32_t)(step->out + first);
    record[RECORD_LENGTH] = record[length - 1] = (int32_t)length;
    if (step->kind != KIND_ENTRIES)
        *slots++ = (int32_t)step->operands[0].columns;
    for (int j = 0; j < step->operand_count; j++) {
        const Operand *operand = &step->operands[j];
        record[RECORD_HEAD] |= operand->needed ? TO_OPERAND << j : 0;
        for (Count i = first; i < first + entries; i++) {
            Count row = i / step->columns, column = i % step->columns;
            if (step->kind == KIND_ENTRIES)
                *slots++ = (int32_t)view_slot(operand, row, column);
            for (Count k = 0; step->kind != KIND_ENTRIES && k < operand->columns; k++)
                *slots++ = (int32_t)view_slot(operand, step->kind == KIND_MATMUL && j == 1 ? column : row, k);
        }
    }
    if (step->kind == KIND_ENTRIES && op_parameters[step->op] > 0)
        memcpy(slots, step->parameters, sizeof step->parameters);
    if (step->kind == KIND_ROWS && step->op != COMPOSITE_sum) {
        record[RECORD_HEAD] |= step->operand_count > 1 ? HAS_TARGET : 0;
        tape_record_find_facts(step, first, record, slots, known);
    }
    return record + length;
}

/* -1 with an exception set. */
static int tape_make(const Step *steps, int exact, Tape *tape, Known *known)
{
    for (Count i = tape->first; i < tape->end; i++) {
        Count outputs = steps[i].rows * steps[i].columns, at_a_time = tape_at_a_time(&steps[i], exact);
        tape->length += (at_a_time == 1 ? outputs : 1) * tape_record_length(&steps[i], at_a_time);
    }
    tape->records = PyMem_Malloc((size_t)tape->length * sizeof *tape->records);
    int32_t *record = tape->records;
    for (Count i = tape->first; record != NULL && i < tape->end; i++) {
        Count outputs = steps[i].rows * steps[i].columns, at_a_time = tape_at_a_time(&steps[i], exact);
        for (Count first = 0; first < outputs; first += at_a_time)
            record = tape_record_write(&steps[i], first, at_a_time, exact, record, known);
    }
    if (tape->records == NULL || known->facts > INT32_MAX) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

/* The tapes in the order of their steps, and one more that begins where the steps end; *facts is how many doubles of
 * the memory's are taken, and grows. Released with tape_release_all. NULL with an exception set. */
COLD INTERNAL Tape *tape_make_all(const Step *steps, Count count, int exact, Count *tape_count, Count *facts)
{
    Known known = {.count = 0, .facts = *facts};
    Tape *tapes = NULL;
    *tape_count = 0;
    for (Count first = 0, end; first <= count; first = end) {
        for (end = first; end < count && tape_takes(&steps[end], exact);)
            end++;
        if (first < count && (end == first || (!exact && end < first + 2))) { /* alone it gains nothing */
            end = first + 1;
            continue;
        }
        Tape *more = PyMem_Realloc(tapes, (size_t)(*tape_count + 1) * sizeof *tapes);
        if (more == NULL)
            PyErr_NoMemory();
        else
            (tapes = more)[*tape_count] = (Tape){first, end, 0, NULL};
        if (more == NULL || (first < count && tape_make(steps, exact, &tapes[(*tape_count)++], &known) < 0)) {
            tape_release_all(tapes, *tape_count);
            return NULL;
        }
        end += first == count;
    }
    *facts = known.facts;
    return tapes;
}

INTERNAL void tape_release_all(Tape *tapes, Count count)
{
    for (Count i = 0; tapes != NULL && i < count; i++)
        PyMem_Free(tapes[i].records);
    PyMem_Free(tapes);
}
