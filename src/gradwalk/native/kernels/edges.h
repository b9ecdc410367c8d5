/* Whether entries are near a place where an operation or a slope changes at once, as the table's rows say. */

/* Argument j of a row: an operand's entry, or else a parameter. */
#define ARGUMENT(j) ((j) < inputs ? in[j][i] : parameters[(j) - inputs])

#define NEAR_OF(count, types, ...) \
    INLINE int NAME(near_of_##count)(double (*distance) types, int inputs, Count n, const double *const *in, \
                                     const double *parameters, double margin) \
    { \
        int64_t near = 0; /* as wide as what is compared */ \
        for (Count i = 0; i < n; i++) \
            near |= !(distance(__VA_ARGS__) > margin); \
        return near != 0; \
    }
NEAR_OF(1, (double), ARGUMENT(0))
NEAR_OF(2, (double, double), ARGUMENT(0), ARGUMENT(1))
NEAR_OF(3, (double, double, double), ARGUMENT(0), ARGUMENT(1), ARGUMENT(2))

#define EDGE_LOOP(name) \
    static int NAME(name##_near)(Count n, const double *const *in, const double *parameters, double margin) \
    { \
        return _Generic(&name##_edge_distance, \
            double (*)(double): NAME(near_of_1), \
            double (*)(double, double): NAME(near_of_2), \
            double (*)(double, double, double): NAME(near_of_3))( \
            name##_edge_distance, op_inputs[OP_##name], n, in, parameters, margin); \
    }
FOR_EACH_EDGE(EDGE_LOOP)

#undef EDGE_LOOP
#undef NEAR_OF
#undef ARGUMENT
