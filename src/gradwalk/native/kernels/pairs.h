/* Dots of pairs of slots that lie anywhere, for the instruction set ISA. Included after kernels_vector.h. Where four
 * pairs are neighbours, they are loaded together. */

#if LANES < 8
#if LANES == 4
#define quad __m256d
#define QUAD(x) _mm256_loadu_pd(x)
#define PUT_QUAD(x, v) _mm256_storeu_pd(x, v)
#define QUAD_OF(x) _mm256_set1_pd(x)
#define QUAD_FMA(a, b, c) _mm256_fmadd_pd(a, b, c)

INLINE double NAME(quad_total)(quad a)
{
    __m128d half = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
    return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
}

INLINE quad NAME(along_forward)(const int32_t *slots, Count first, Count end, const double *values)
{
    quad sum = QUAD_OF(0.0);
    for (Count i = first; i < end; i += 4)
        sum = QUAD_FMA(QUAD(values + slots[2 * i]), QUAD(values + slots[2 * i + 1]), sum);
    return sum;
}

INLINE void NAME(along_reverse)(const Pairs *pairs, Count r, const double *values, double out_grad, double *grads)
{
    quad grad = QUAD_OF(out_grad);
    for (Count i = pairs->starts[r]; i < pairs->starts[r + 1]; i += 4) {
        Count left = pairs->slots[2 * i], right = pairs->slots[2 * i + 1];
        if (pairs->left_needed)
            PUT_QUAD(grads + left, QUAD_FMA(grad, QUAD(values + right), QUAD(grads + left)));
        if (pairs->right_needed)
            PUT_QUAD(grads + right, QUAD_FMA(grad, QUAD(values + left), QUAD(grads + right)));
    }
}

INLINE void NAME(across_reverse)(const Pairs *pairs, Count r, const double *values, quad grad, double *grads)
{
    for (Count i = pairs->starts[r]; i < pairs->starts[r + 1]; i++) {
        Count left = pairs->slots[2 * i], right = pairs->slots[2 * i + 1];
        if (pairs->left_needed)
            grads[left] += NAME(quad_total)(_mm256_mul_pd(grad, QUAD(values + right)));
        if (pairs->right_needed)
            PUT_QUAD(grads + right, QUAD_FMA(grad, QUAD_OF(values[left]), QUAD(grads + right)));
    }
}
#endif

static void NAME(pairs_forward)(const Pairs *pairs, const double *values, double *out)
{
    const int32_t *slots = pairs->slots, *starts = pairs->starts;
    for (Count r = 0; r < pairs->rows;) {
#if LANES == 4
        enum pairs_kind kind = pairs->kinds[r / 4];
        if (kind == PAIRS_ALONG) {
            quad sums[4];
            for (int k = 0; k < 4; k++)
                sums[k] = NAME(along_forward)(slots, starts[r + k], starts[r + k + 1], values);
            PUT_QUAD(out + r, NAME(totals)(sums[0], sums[1], sums[2], sums[3]));
            r += 4;
            continue;
        }
        if (kind == PAIRS_ACROSS) {
            quad sum = QUAD_OF(0.0);
            for (Count i = starts[r]; i < starts[r + 1]; i++)
                sum = QUAD_FMA(QUAD_OF(values[slots[2 * i]]), QUAD(values + slots[2 * i + 1]), sum);
            PUT_QUAD(out + r, sum);
            r += 4;
            continue;
        }
#endif
        for (Count end = r + 4 < pairs->rows ? r + 4 : pairs->rows; r < end; r++) {
            double sum = 0.0;
            for (Count i = starts[r]; i < starts[r + 1]; i++)
                sum += values[slots[2 * i]] * values[slots[2 * i + 1]];
            out[r] = sum;
        }
    }
}

static void NAME(pairs_reverse)(const Pairs *pairs, const double *values, const double *out_grad, double *grads)
{
    const int32_t *slots = pairs->slots, *starts = pairs->starts;
    for (Count r = 0; r < pairs->rows;) {
#if LANES == 4
        enum pairs_kind kind = pairs->kinds[r / 4];
        if (kind == PAIRS_ALONG) {
            for (Count end = r + 4; r < end; r++)
                NAME(along_reverse)(pairs, r, values, out_grad[r], grads);
            continue;
        }
        if (kind == PAIRS_ACROSS) {
            NAME(across_reverse)(pairs, r, values, QUAD(out_grad + r), grads);
            r += 4;
            continue;
        }
#endif
        for (Count end = r + 4 < pairs->rows ? r + 4 : pairs->rows; r < end; r++) {
            double grad = out_grad[r];
            for (Count i = starts[r]; i < starts[r + 1]; i++) {
                Count left = slots[2 * i], right = slots[2 * i + 1];
                if (pairs->left_needed)
                    grads[left] += grad * values[right];
                if (pairs->right_needed)
                    grads[right] += grad * values[left];
            }
        }
    }
}

#if LANES == 4
#undef quad
#undef QUAD
#undef PUT_QUAD
#undef QUAD_OF
#undef QUAD_FMA
#endif
#endif

/* ---------------------------------------------------------------- over a batch: every slot is BATCH numbers */

static void NAME(batch_pairs_forward)(const Pairs *pairs, const double *values, double *out)
{
    const int32_t *slots = pairs->slots;
    for (Count r = 0; r < pairs->rows; r++) {
        for (int part = 0; part < BATCH; part += LANES) {
            vec sum = ZEROS;
            for (Count i = pairs->starts[r]; i < pairs->starts[r + 1]; i++)
                sum = FMA(LOAD(values + (Count)slots[2 * i] * BATCH + part),
                          LOAD(values + (Count)slots[2 * i + 1] * BATCH + part), sum);
            STORE(out + r * BATCH + part, sum);
        }
    }
}

static void NAME(batch_pairs_reverse)(const Pairs *pairs, const double *values, const double *out_grad, double *grads)
{
    const int32_t *slots = pairs->slots;
    for (Count r = 0; r < pairs->rows; r++) {
        for (int part = 0; part < BATCH; part += LANES) {
            vec grad = LOAD(out_grad + r * BATCH + part);
            for (Count i = pairs->starts[r]; i < pairs->starts[r + 1]; i++) {
                Count left = (Count)slots[2 * i] * BATCH + part, right = (Count)slots[2 * i + 1] * BATCH + part;
                if (pairs->left_needed)
                    STORE(grads + left, FMA(grad, LOAD(values + right), LOAD(grads + left)));
                if (pairs->right_needed)
                    STORE(grads + right, FMA(grad, LOAD(values + left), LOAD(grads + right)));
            }
        }
    }
}

/* ---------------------------------------------------------------- sums over a batch */

/* into[k] += scale · x[k], each of them BATCH numbers. */
static void NAME(batch_add_scaled)(Count n, const double *scale, const double *x, double *into)
{
    for (int part = 0; part < BATCH; part += LANES) {
        vec factor = LOAD(scale + part);
        for (Count i = part; i < n * BATCH; i += BATCH)
            STORE(into + i, FMA(factor, LOAD(x + i), LOAD(into + i)));
    }
}

/* Adds entry k of `from` to slot slots[k * step]; with `entries`, it is entry entries[k * step] - first. */
static void NAME(batch_scatter)(Count count, const int32_t *slots, const int32_t *entries, Count step, Count first,
                                const double *from, double *to)
{
#define ENTRY(k) (from + (entries ? entries[(k) * step] - first : (k)) * BATCH + part)
    for (int part = 0; part < BATCH; part += LANES) {
        for (Count k = 0; k < count;) {
            int32_t slot = slots[k * step];
            vec sum = LOAD(ENTRY(k));
            for (k++; k < count && slots[k * step] == slot; k++) /* what comes to one slot goes there at once */
                sum += LOAD(ENTRY(k));
            double *into = to + (Count)slot * BATCH + part;
            STORE(into, LOAD(into) + sum);
        }
    }
#undef ENTRY
}
