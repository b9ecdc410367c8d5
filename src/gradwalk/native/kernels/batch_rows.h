/* Over one row for each example of a batch, for the instruction set ISA: entry k is the BATCH numbers from x + k BATCH
 * on. The formulas are those of kernels_rows.h. Included after it. */

#define BATCH_FORWARD(name) \
    static void NAME(name##_batch_forward)(Count n, const double *x, const double *targets, const double *parameters, \
                                           double *facts, double *out)
#define BATCH_REVERSE(name) \
    static void NAME(name##_batch_reverse)(Count n, const double *x, const double *targets, const double *parameters, \
                                           const double *facts, const double *out, const double *out_grad, double *grad)
#define BATCH_UNUSED() (void)x, (void)targets, (void)parameters, (void)facts, (void)n
#define FOR_EACH_PART for (int part = 0; part < BATCH; part += LANES)
#define FOR_EACH_ENTRY(i) for (Count i = part; i < n * BATCH; i += BATCH)
#define FACT(which) (facts + (which) * BATCH + part)

INLINE vec NAME(row_total)(Count n, const double *x, int part)
{
    vec sum = ZEROS;
    FOR_EACH_ENTRY(i)
        sum += LOAD(x + i);
    return sum;
}

INLINE vec NAME(row_dot)(Count n, const double *x, const double *y, int part)
{
    vec sum = ZEROS;
    FOR_EACH_ENTRY(i)
        sum = FMA(LOAD(x + i), LOAD(y + i), sum);
    return sum;
}

/* ---------------------------------------------------------------- sum, mean */

BATCH_FORWARD(sum)
{
    BATCH_UNUSED();
    FOR_EACH_PART
        STORE(out + part, NAME(row_total)(n, x, part));
}

BATCH_REVERSE(sum)
{
    BATCH_UNUSED(), (void)out;
    FOR_EACH_PART {
        FOR_EACH_ENTRY(i)
            STORE(grad + i, LOAD(grad + i) + LOAD(out_grad + part));
    }
}

BATCH_FORWARD(mean)
{
    BATCH_UNUSED();
    FOR_EACH_PART
        STORE(out + part, NAME(row_total)(n, x, part) / SPLAT((double)n));
}

BATCH_REVERSE(mean)
{
    BATCH_UNUSED(), (void)out;
    FOR_EACH_PART {
        vec share = LOAD(out_grad + part) / SPLAT((double)n);
        FOR_EACH_ENTRY(i)
            STORE(grad + i, LOAD(grad + i) + share);
    }
}

/* ---------------------------------------------------------------- extremes; facts: which entry it is */

INLINE void NAME(batch_extreme)(Count n, const double *x, double sign, double *facts, double *out)
{
    FOR_EACH_PART {
        vec champion = LOAD(x + part), best = ZEROS, flip = SPLAT(sign);
        FOR_EACH_ENTRY(i) {
            vec candidate = LOAD(x + i);
            ivec better = LESS(flip * champion, flip * candidate) | (~EQUAL(candidate, candidate) & EQUAL(champion, champion));
            champion = SELECT(better, candidate, champion);
            best = SELECT(better, SPLAT((double)(i / BATCH)), best);
        }
        STORE(out + part, champion);
        STORE(FACT(0), best);
    }
}

BATCH_FORWARD(largest)
{
    BATCH_UNUSED();
    NAME(batch_extreme)(n, x, 1.0, facts, out);
}

BATCH_FORWARD(smallest)
{
    BATCH_UNUSED();
    NAME(batch_extreme)(n, x, -1.0, facts, out);
}

BATCH_REVERSE(largest)
{
    BATCH_UNUSED(), (void)out;
    for (int lane = 0; lane < BATCH; lane++)
        grad[(Count)facts[lane] * BATCH + lane] += out_grad[lane];
}

BATCH_REVERSE(smallest)
{
    NAME(largest_batch_reverse)(n, x, targets, parameters, facts, out, out_grad, grad);
}

/* ---------------------------------------------------------------- the softmax family; facts: shift, total, exponentials */

static void NAME(batch_softmax_facts)(Count n, const double *x, double *facts, double *exponentials, int part)
{
    vec shift = LOAD(x + part), total = ZEROS;
    FOR_EACH_ENTRY(i) {
        vec v = LOAD(x + i);
        shift = SELECT(LESS(shift, v), v, shift);
    }
    shift = SELECT(LESS(ABSOLUTE(shift), SPLAT(INFINITY)), shift, ZEROS);
    FOR_EACH_ENTRY(i) {
        vec e = NAME(vexp)(LOAD(x + i) - shift);
        total += e;
        STORE(exponentials + i, e);
    }
    STORE(FACT(0), shift);
    STORE(FACT(1), total);
}

/* Of each example; by the kernel that is there, and not once more in each of those that ask. */
INLINE void NAME(batch_log_totals)(const double *facts, double *logs)
{
    const double *totals = facts + BATCH;
    NAME(log_forward)(BATCH, &totals, NULL, logs);
}

INLINE void NAME(batch_add_probabilities)(Count n, const double *facts, vec factor, double *grad, int part)
{
    const double *exponentials = facts + EXPONENTIALS * BATCH;
    vec share = factor / LOAD(FACT(1));
    FOR_EACH_ENTRY(i)
        STORE(grad + i, FMA(LOAD(exponentials + i), share, LOAD(grad + i)));
}

BATCH_FORWARD(logsumexp)
{
    BATCH_UNUSED();
    double logs[BATCH];
    FOR_EACH_PART
        NAME(batch_softmax_facts)(n, x, facts, facts + EXPONENTIALS * BATCH, part);
    NAME(batch_log_totals)(facts, logs);
    FOR_EACH_PART
        STORE(out + part, LOAD(logs + part) + LOAD(FACT(0)));
}

BATCH_REVERSE(logsumexp)
{
    BATCH_UNUSED(), (void)out;
    FOR_EACH_PART
        NAME(batch_add_probabilities)(n, facts, LOAD(out_grad + part), grad, part);
}

BATCH_FORWARD(cross_entropy)
{
    BATCH_UNUSED();
    double logs[BATCH];
    FOR_EACH_PART
        NAME(batch_softmax_facts)(n, x, facts, facts + EXPONENTIALS * BATCH, part);
    NAME(batch_log_totals)(facts, logs);
    for (int lane = 0; lane < BATCH; lane++)
        out[lane] = logs[lane] - (x[(Count)targets[lane] * BATCH + lane] - facts[lane]);
}

BATCH_REVERSE(cross_entropy)
{
    NAME(logsumexp_batch_reverse)(n, x, targets, parameters, facts, out, out_grad, grad);
    for (int lane = 0; lane < BATCH; lane++)
        grad[(Count)targets[lane] * BATCH + lane] -= out_grad[lane];
}

BATCH_FORWARD(softmax)
{
    BATCH_UNUSED();
    FOR_EACH_PART {
        NAME(batch_softmax_facts)(n, x, facts, out, part);
        vec total = LOAD(FACT(1));
        FOR_EACH_ENTRY(i)
            STORE(out + i, LOAD(out + i) / total);
    }
}

BATCH_REVERSE(softmax)
{
    BATCH_UNUSED();
    FOR_EACH_PART {
        vec slope = NAME(row_dot)(n, out, out_grad, part);
        FOR_EACH_ENTRY(i)
            STORE(grad + i, FMA(LOAD(out + i), LOAD(out_grad + i) - slope, LOAD(grad + i)));
    }
}

BATCH_FORWARD(log_softmax)
{
    BATCH_UNUSED();
    double logs[BATCH];
    FOR_EACH_PART
        NAME(batch_softmax_facts)(n, x, facts, facts + EXPONENTIALS * BATCH, part);
    NAME(batch_log_totals)(facts, logs);
    FOR_EACH_PART {
        vec shift = LOAD(FACT(0)), log_total = LOAD(logs + part);
        FOR_EACH_ENTRY(i)
            STORE(out + i, (LOAD(x + i) - shift) - log_total);
    }
}

BATCH_REVERSE(log_softmax)
{
    BATCH_UNUSED(), (void)out;
    FOR_EACH_PART {
        FOR_EACH_ENTRY(i)
            STORE(grad + i, LOAD(grad + i) + LOAD(out_grad + i));
        NAME(batch_add_probabilities)(n, facts, -NAME(row_total)(n, out_grad, part), grad, part);
    }
}

/* ---------------------------------------------------------------- the norms; facts: scale */

BATCH_FORWARD(rmsnorm)
{
    BATCH_UNUSED();
    FOR_EACH_PART {
        vec scale = 1.0 / ROOT(NAME(row_dot)(n, x, x, part) / SPLAT((double)n) + parameters[0]);
        STORE(FACT(0), scale);
        FOR_EACH_ENTRY(i)
            STORE(out + i, LOAD(x + i) * scale);
    }
}

BATCH_REVERSE(rmsnorm)
{
    BATCH_UNUSED();
    FOR_EACH_PART {
        vec scale = LOAD(FACT(0)), slope = NAME(row_dot)(n, out, out_grad, part) * scale / SPLAT((double)n);
        FOR_EACH_ENTRY(i)
            STORE(grad + i, LOAD(grad + i) + (scale * LOAD(out_grad + i) - slope * LOAD(out + i)));
    }
}

BATCH_FORWARD(layernorm)
{
    BATCH_UNUSED();
    FOR_EACH_PART {
        vec mean = NAME(row_total)(n, x, part) / SPLAT((double)n);
        FOR_EACH_ENTRY(i)
            STORE(out + i, LOAD(x + i) - mean);
        vec scale = 1.0 / ROOT(NAME(row_dot)(n, out, out, part) / SPLAT((double)n) + parameters[0]);
        STORE(FACT(0), scale);
        FOR_EACH_ENTRY(i)
            STORE(out + i, LOAD(out + i) * scale);
    }
}

BATCH_REVERSE(layernorm)
{
    BATCH_UNUSED();
    FOR_EACH_PART {
        vec along = NAME(row_dot)(n, out, out_grad, part) / SPLAT((double)n);
        vec level = NAME(row_total)(n, out_grad, part) / SPLAT((double)n), scale = LOAD(FACT(0));
        FOR_EACH_ENTRY(i)
            STORE(grad + i, LOAD(grad + i) + scale * (LOAD(out_grad + i) - level - LOAD(out + i) * along));
    }
}
