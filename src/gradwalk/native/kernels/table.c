/* Entry by entry through the rows of the table, for the operations that have no vector form. */

#include "table.h"

/* Argument j of a row: an operand's entry, or else a parameter. */
#define ARGUMENT(j) ((j) < inputs ? in[j][i] : parameters[(j) - inputs])

static inline void table_forward_of_1(double (*row)(double), int inputs, Count n, const double *const *in,
                                      const double *parameters, double *out)
{
    for (Count i = 0; i < n; i++)
        out[i] = row(ARGUMENT(0));
}

static inline void table_forward_of_2(double (*row)(double, double), int inputs, Count n, const double *const *in,
                                      const double *parameters, double *out)
{
    for (Count i = 0; i < n; i++)
        out[i] = row(ARGUMENT(0), ARGUMENT(1));
}

static inline void table_forward_of_3(double (*row)(double, double, double), int inputs, Count n,
                                      const double *const *in, const double *parameters, double *out)
{
    for (Count i = 0; i < n; i++)
        out[i] = row(ARGUMENT(0), ARGUMENT(1), ARGUMENT(2));
}

#define ADD_CONTRIBUTIONS \
    for (int j = 0; j < inputs; j++) { \
        if (grads[j] != NULL) \
            grads[j][i] += local_grads[j] * out_grad[i]; \
    }

static inline void table_reverse_of_1(void (*row)(double, double, double *), int inputs, Count n,
                                      const double *const *in, const double *parameters, const double *out,
                                      const double *out_grad, double *const *grads)
{
    double local_grads[MOST_INPUTS];
    for (Count i = 0; i < n; i++) {
        row(ARGUMENT(0), out[i], local_grads);
        ADD_CONTRIBUTIONS
    }
}

static inline void table_reverse_of_2(void (*row)(double, double, double, double *), int inputs, Count n,
                                      const double *const *in, const double *parameters, const double *out,
                                      const double *out_grad, double *const *grads)
{
    double local_grads[MOST_INPUTS];
    for (Count i = 0; i < n; i++) {
        row(ARGUMENT(0), ARGUMENT(1), out[i], local_grads);
        ADD_CONTRIBUTIONS
    }
}

static inline void table_reverse_of_3(void (*row)(double, double, double, double, double *), int inputs, Count n,
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
            double (*)(double): table_forward_of_1, \
            double (*)(double, double): table_forward_of_2, \
            double (*)(double, double, double): table_forward_of_3)( \
            name##_forward, op_inputs[OP_##name], n, in, parameters, out); \
    } \
    static void name##_entries_reverse(Count n, const double *const *in, const double *parameters, const double *out, \
                                       const double *out_grad, double *const *grads) \
    { \
        _Generic(&name##_local_grads, \
            void (*)(double, double, double *): table_reverse_of_1, \
            void (*)(double, double, double, double *): table_reverse_of_2, \
            void (*)(double, double, double, double, double *): table_reverse_of_3)( \
            name##_local_grads, op_inputs[OP_##name], n, in, parameters, out, out_grad, grads); \
    }
FOR_EACH_OP(ROW_LOOPS)
#undef ROW_LOOPS

#define IS(name, op) || (op) == OP_##name
#define HAS_VECTORS(op) (0 FOR_EACH_VECTOR_OP(IS, op))

const Forward table_forward[OP_COUNT] = {
#define ENTRY(name, doc) HAS_VECTORS(OP_##name) ? NULL : name##_entries_forward,
    FOR_EACH_OP(ENTRY)
#undef ENTRY
};

const Reverse table_reverse[OP_COUNT] = {
#define ENTRY(name, doc) HAS_VECTORS(OP_##name) ? NULL : name##_entries_reverse,
    FOR_EACH_OP(ENTRY)
#undef ENTRY
};
