/* Over one row of n numbers, for the instruction set ISA: softmax, norms and the like. Included after
 * kernels_entries.h. The formulas are those of composites.py, with the sums in another order. */

#define ROW_FORWARD(name) \
    static void NAME(name##_row_forward)(Count n, const double *x, double target, const double *parameters, \
                                         double *facts, double *out)
#define ROW_REVERSE(name) \
    static void NAME(name##_row_reverse)(Count n, const double *x, double target, const double *parameters, \
                                         const double *facts, const double *out, const double *out_grad, double *grad)
#define FORWARD_UNUSED() (void)x, (void)target, (void)parameters, (void)facts
#define REVERSE_UNUSED() (void)x, (void)target, (void)parameters, (void)facts, (void)out, (void)out_grad

/* ---------------------------------------------------------------- sum, mean, norm, extremes */

ROW_FORWARD(sum)
{
    FORWARD_UNUSED();
    *out = NAME(sum)(n, x);
}

static void NAME(add_constant)(Count n, double constant, double *into)
{
    vec c = SPLAT(constant);
#define STEP(load, put) put(into + i, load(into + i) + c);
    FOR_EACH_VECTOR(STEP)
#undef STEP
}

ROW_REVERSE(sum)
{
    REVERSE_UNUSED();
    NAME(add_constant)(n, *out_grad, grad);
}

ROW_FORWARD(mean)
{
    FORWARD_UNUSED();
    *out = NAME(sum)(n, x) / (double)n;
}

ROW_REVERSE(mean)
{
    REVERSE_UNUSED();
    NAME(add_constant)(n, *out_grad / (double)n, grad);
}

ROW_FORWARD(norm)
{
    FORWARD_UNUSED();
    double scale = 0.0, squares = 0.0;
    for (Count i = 0; i < n; i++)
        scale = fabs(x[i]) > scale ? fabs(x[i]) : scale;
    if (scale > 1e-100 && scale < 1e100) {
        *out = sqrt(NAME(dot)(n, x, x));
        return;
    }
    int scaled = scale > 0.0 && scale < INFINITY;
    for (Count i = 0; i < n; i++)
        squares += scaled ? (x[i] / scale) * (x[i] / scale) : fabs(x[i]);
    *out = scaled ? sqrt(squares) * scale : squares;
}

ROW_REVERSE(norm)
{
    REVERSE_UNUSED();
    if (*out != 0.0) {
        vec length = SPLAT(*out), g = SPLAT(*out_grad);
#define STEP(load, put) put(grad + i, load(grad + i) + load(x + i) / length * g);
        FOR_EACH_VECTOR(STEP)
#undef STEP
    }
}

INLINE void NAME(extreme)(Count n, const double *x, double sign, double *facts, double *out)
{
    double best = 0.0, champion = x[0];
    for (Count i = 1; i < n; i++) { /* without a branch, which nobody could predict */
        double candidate = x[i];
        int better = (sign * candidate > sign * champion) | ((candidate != candidate) & (champion == champion));
        best = better ? (double)i : best;
        champion = better ? candidate : champion;
    }
    facts[0] = best;
    *out = champion;
}

ROW_FORWARD(largest)
{
    FORWARD_UNUSED();
    NAME(extreme)(n, x, 1.0, facts, out);
}

ROW_FORWARD(smallest)
{
    FORWARD_UNUSED();
    NAME(extreme)(n, x, -1.0, facts, out);
}

ROW_REVERSE(largest)
{
    REVERSE_UNUSED(), (void)n;
    grad[(Count)facts[0]] += *out_grad;
}

ROW_REVERSE(smallest)
{
    NAME(largest_row_reverse)(n, x, target, parameters, facts, out, out_grad, grad);
}

/* ---------------------------------------------------------------- the softmax family; facts: shift, total, exponentials */

static double NAME(shift)(Count n, const double *x)
{
    double largest = x[0];
    Count i = 0;
    if (n >= LANES) {
        vec most = LOAD(x);
        for (i = LANES; i + LANES <= n; i += LANES) {
            vec v = LOAD(x + i);
            most = SELECT(LESS(most, v), v, most);
        }
        for (int lane = 0; lane < LANES; lane++)
            largest = largest < LANE(most, lane) ? LANE(most, lane) : largest;
    }
    for (; i < n; i++)
        largest = largest < x[i] ? x[i] : largest;
    return largest > -INFINITY && largest < INFINITY ? largest : 0.0; /* a nan: 0, and the total becomes nan */
}

/* The sum of exp(x - shift), which go to `out`. */
INLINE double NAME(exponentials)(Count n, const double *x, double shift, double *out)
{
    vec s = SPLAT(shift), sum = ZEROS, e = ZEROS;
    Count whole = n - n % LANES;
#define STEP(load, put) \
    e = NAME(vexp)(load(x + i) - s); \
    if (i < whole) \
        sum += e; \
    put(out + i, e);
    FOR_EACH_VECTOR_ONCE(STEP)
#undef STEP
    double total = NAME(total)(sum);
    for (Count lane = 0; lane < n - whole; lane++)
        total += LANE(e, lane);
    return total;
}

/* grad += factor exp(x - shift) / total */
static void NAME(add_probabilities)(Count n, const double *facts, double factor, double *grad)
{
    NAME(add_scaled)(n, factor / facts[1], facts + EXPONENTIALS, grad);
}

static void NAME(softmax_facts)(Count n, const double *x, double *facts, double *exponentials)
{
    facts[0] = NAME(shift)(n, x);
    facts[1] = NAME(exponentials)(n, x, facts[0], exponentials);
}

ROW_FORWARD(logsumexp)
{
    FORWARD_UNUSED();
    NAME(softmax_facts)(n, x, facts, facts + EXPONENTIALS);
    *out = log(facts[1]) + facts[0];
}

ROW_REVERSE(logsumexp)
{
    REVERSE_UNUSED();
    NAME(add_probabilities)(n, facts, *out_grad, grad);
}

ROW_FORWARD(cross_entropy)
{
    FORWARD_UNUSED();
    NAME(softmax_facts)(n, x, facts, facts + EXPONENTIALS);
    *out = log(facts[1]) - (x[(Count)target] - facts[0]);
}

ROW_REVERSE(cross_entropy)
{
    REVERSE_UNUSED();
    NAME(add_probabilities)(n, facts, *out_grad, grad);
    grad[(Count)target] -= *out_grad;
}

ROW_FORWARD(softmax)
{
    FORWARD_UNUSED();
    NAME(softmax_facts)(n, x, facts, out);
    vec total = SPLAT(facts[1]);
#define STEP(load, put) put(out + i, load(out + i) / total);
    FOR_EACH_VECTOR(STEP)
#undef STEP
}

ROW_REVERSE(softmax)
{
    REVERSE_UNUSED();
    vec slope = SPLAT(NAME(dot)(n, out, out_grad));
#define STEP(load, put) put(grad + i, FMA(load(out + i), load(out_grad + i) - slope, load(grad + i)));
    FOR_EACH_VECTOR(STEP)
#undef STEP
}

ROW_FORWARD(log_softmax)
{
    FORWARD_UNUSED();
    NAME(softmax_facts)(n, x, facts, facts + EXPONENTIALS);
    vec shift = SPLAT(facts[0]), log_total = SPLAT(log(facts[1]));
#define STEP(load, put) put(out + i, (load(x + i) - shift) - log_total);
    FOR_EACH_VECTOR(STEP)
#undef STEP
}

ROW_REVERSE(log_softmax)
{
    REVERSE_UNUSED();
    NAME(add)(n, out_grad, grad);
    NAME(add_probabilities)(n, facts, -NAME(sum)(n, out_grad), grad);
}

/* ---------------------------------------------------------------- the norms; facts: scale */

ROW_FORWARD(rmsnorm)
{
    FORWARD_UNUSED();
    facts[0] = 1.0 / sqrt(NAME(dot)(n, x, x) / (double)n + parameters[0]);
    vec scale = SPLAT(facts[0]);
#define STEP(load, put) put(out + i, load(x + i) * scale);
    FOR_EACH_VECTOR(STEP)
#undef STEP
}

ROW_REVERSE(rmsnorm)
{
    REVERSE_UNUSED();
    double slope = NAME(dot)(n, out, out_grad) * facts[0] / (double)n;
    vec s = SPLAT(slope), scale = SPLAT(facts[0]);
#define STEP(load, put) put(grad + i, load(grad + i) + (scale * load(out_grad + i) - s * load(out + i)));
    FOR_EACH_VECTOR(STEP)
#undef STEP
}

ROW_FORWARD(layernorm)
{
    FORWARD_UNUSED();
    vec mean = SPLAT(NAME(sum)(n, x) / (double)n);
    {
#define STEP(load, put) put(out + i, load(x + i) - mean);
        FOR_EACH_VECTOR(STEP)
#undef STEP
    }
    facts[0] = 1.0 / sqrt(NAME(dot)(n, out, out) / (double)n + parameters[0]);
    vec scale = SPLAT(facts[0]);
#define STEP(load, put) put(out + i, load(out + i) * scale);
    FOR_EACH_VECTOR(STEP)
#undef STEP
}

ROW_REVERSE(layernorm)
{
    REVERSE_UNUSED();
    vec along = SPLAT(NAME(dot)(n, out, out_grad) / (double)n), level = SPLAT(NAME(sum)(n, out_grad) / (double)n);
    vec scale = SPLAT(facts[0]);
#define STEP(load, put) \
    put(grad + i, load(grad + i) + scale * (load(out_grad + i) - level - load(out + i) * along));
    FOR_EACH_VECTOR(STEP)
#undef STEP
}
