/* Vectors of LANES doubles for the instruction set ISA: included by kernels.c once per set, without an include guard.
 * What the compiler's own vector types cannot say (a fused multiply-add, part of a vector) is said here. */

#define NAME(name) JOINED(name, ISA)
#define vec NAME(vec)
#define ivec NAME(ivec)
#define uvec NAME(uvec)

#if LANES == 1
typedef double vec;
typedef int64_t ivec;
typedef uint64_t uvec;
#define LESS(a, b) (-(ivec)((a) < (b)))
#define EQUAL(a, b) (-(ivec)((a) == (b)))
INLINE ivec NAME(bits)(vec x) { ivec i; memcpy(&i, &x, sizeof i); return i; }
INLINE vec NAME(from_bits)(ivec i) { vec x; memcpy(&x, &i, sizeof x); return x; }
#define BITS(x) NAME(bits)(x)
#define FROM_BITS(i) NAME(from_bits)(i)
#define SPLAT(x) (x)
#define LANE(x, i) (x)
INLINE vec NAME(load)(const double *x) { return *x; }
INLINE void NAME(store)(double *x, vec v) { *x = v; }
#else
typedef double vec __attribute__((vector_size(8 * LANES)));
typedef int64_t ivec __attribute__((vector_size(8 * LANES)));
typedef uint64_t uvec __attribute__((vector_size(8 * LANES)));
#define LESS(a, b) ((ivec)((a) < (b)))
#define EQUAL(a, b) ((ivec)((a) == (b)))
#define BITS(x) ((ivec)(x))
#define FROM_BITS(i) ((vec)(i))
#define SPLAT(x) ((x) - (vec){0.0})
#define LANE(x, i) ((x)[i])
INLINE vec NAME(load)(const double *x) { vec v; memcpy(&v, x, sizeof v); return v; }
INLINE void NAME(store)(double *x, vec v) { memcpy(x, &v, sizeof v); }
#endif
#define LOAD(x) NAME(load)(x)
#define STORE(x, v) NAME(store)(x, v)
#define SELECT(mask, a, b) FROM_BITS((BITS(a) & (mask)) | (BITS(b) & ~(mask)))
#define ABSOLUTE(x) FROM_BITS(BITS(x) & INT64_MAX)
/* The second, where the first is a nan. */
#if LANES == 8
#define LARGER(a, b) ((vec)_mm512_max_pd((__m512d)(a), (__m512d)(b)))
#elif LANES == 4
#define LARGER(a, b) ((vec)_mm256_max_pd((__m256d)(a), (__m256d)(b)))
#else
#define LARGER(a, b) SELECT(LESS(b, a), a, b)
#endif

/* The first `count` lanes, 1 to LANES - 1 of them; the others read as 0, and are not written. */
#if LANES == 8
INLINE vec NAME(load_part)(const double *x, Count count)
{
    return (vec)_mm512_maskz_loadu_pd((__mmask8)((1u << count) - 1), x);
}
INLINE void NAME(store_part)(double *x, vec v, Count count)
{
    _mm512_mask_storeu_pd(x, (__mmask8)((1u << count) - 1), (__m512d)v);
}
#define FMA(a, b, c) ((vec)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define ROOT(x) ((vec)_mm512_sqrt_pd((__m512d)(x)))
#elif LANES == 4
INLINE __m256i NAME(mask)(Count count)
{
    static const int64_t masks[8] = {-1, -1, -1, -1, 0, 0, 0, 0};
    return _mm256_loadu_si256((const __m256i *)(masks + 4 - count));
}
INLINE vec NAME(load_part)(const double *x, Count count) { return (vec)_mm256_maskload_pd(x, NAME(mask)(count)); }
INLINE void NAME(store_part)(double *x, vec v, Count count)
{
    _mm256_maskstore_pd(x, NAME(mask)(count), (__m256d)v);
}
#define FMA(a, b, c) ((vec)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define ROOT(x) ((vec)_mm256_sqrt_pd((__m256d)(x)))
#elif LANES == 2
INLINE vec NAME(load_part)(const double *x, Count count) { (void)count; return (vec){*x, 0.0}; }
INLINE void NAME(store_part)(double *x, vec v, Count count) { (void)count; *x = v[0]; }
#if FUSED
#define FMA(a, b, c) ((vec)vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#define ROOT(x) ((vec)vsqrtq_f64((float64x2_t)(x)))
#else
#define FMA(a, b, c) ((a) * (b) + (c))
INLINE vec NAME(root)(vec x) { return (vec){sqrt(x[0]), sqrt(x[1])}; }
#define ROOT(x) NAME(root)(x)
#endif
#else
INLINE vec NAME(load_part)(const double *x, Count count) { (void)x, (void)count; return 0.0; }
INLINE void NAME(store_part)(double *x, vec v, Count count) { (void)x, (void)v, (void)count; }
#define FMA(a, b, c) ((a) * (b) + (c))
#define ROOT(x) sqrt(x)
#endif

INLINE double NAME(total)(vec v)
{
    double sum = 0.0;
    for (int i = 0; i < LANES; i++)
        sum += LANE(v, i);
    return sum;
}

/* ---------------------------------------------------------------- functions, to 2 ulp */

#define LN2_HIGH 0x1.62e42fee00000p-1 /* 33 bits, so that a multiple of it is exact also without a fused multiply-add */
#define LN2_LOW 0x1.a39ef35793c76p-33
#define HALF_PI_1 0x1.921fb54400000p+0
#define HALF_PI_2 0x1.0b4611a600000p-34
#define HALF_PI_3 0x1.3198a2e037073p-69
#define ROUNDER 0x1.8p52 /* added to a small number, it leaves the nearest whole number in the last bits */

/* x = n ln 2 + r; returns exp(r) - 1 and n as whole numbers. */
INLINE vec NAME(exp_parts)(vec x, ivec *n)
{
    vec shifted = FMA(x, SPLAT(1.4426950408889634), SPLAT(ROUNDER)), whole = shifted - ROUNDER;
    *n = BITS(shifted) - BITS(SPLAT(ROUNDER));
    vec r = FMA(whole, SPLAT(-LN2_LOW), FMA(whole, SPLAT(-LN2_HIGH), x)), z = r * r;
    /* 1/2! + r/3! + … + r^11/13!: the next term is below 2^-57 */
    vec even = SPLAT(1.0 / 479001600.0), odd = SPLAT(1.0 / 6227020800.0);
    even = FMA(even, z, SPLAT(1.0 / 3628800.0)), odd = FMA(odd, z, SPLAT(1.0 / 39916800.0));
    even = FMA(even, z, SPLAT(1.0 / 40320.0)), odd = FMA(odd, z, SPLAT(1.0 / 362880.0));
    even = FMA(even, z, SPLAT(1.0 / 720.0)), odd = FMA(odd, z, SPLAT(1.0 / 5040.0));
    even = FMA(even, z, SPLAT(1.0 / 24.0)), odd = FMA(odd, z, SPLAT(1.0 / 120.0));
    even = FMA(even, z, SPLAT(1.0 / 2.0)), odd = FMA(odd, z, SPLAT(1.0 / 6.0));
    return FMA(z, FMA(odd, r, even), r);
}

INLINE vec NAME(power_of_two)(ivec n) { return FROM_BITS((n + 1023) << 52); }

INLINE vec NAME(vexp)(vec x)
{
    ivec n;
    /* 0 is chosen, not computed: some processors take a hundred times as long for a number below the normal ones, and a
     * mask's -inf is one in every second place */
#if LANES == 8
    __mmask8 some = _mm512_cmp_pd_mask((__m512d)x, _mm512_set1_pd(-746.0), _CMP_NLE_UQ);
    x = (vec)_mm512_maskz_min_pd(some, _mm512_set1_pd(710.0), (__m512d)x); /* of a nan and a number, the second */
    vec scaled = NAME(exp_parts)(x, &n) + 1.0;
    return (vec)_mm512_maskz_scalef_pd(some, (__m512d)scaled, _mm512_cvtepi64_pd((__m512i)n));
#else
    ivec none = LESS(x, SPLAT(-746.0)); /* a nan is neither this nor large, and stays */
    x = SELECT(LESS(SPLAT(710.0), x), SPLAT(710.0), SELECT(none, SPLAT(0.0), x));
    vec rest = NAME(exp_parts)(x, &n) + 1.0;
    ivec half = (ivec)((uvec)(n + 2048) >> 1) - 1024; /* in two steps: the first never overflows or loses bits */
    return SELECT(none, SPLAT(0.0), rest * NAME(power_of_two)(half) * NAME(power_of_two)(n - half));
#endif
}

INLINE vec NAME(vlog)(vec x)
{
    ivec tiny = LESS(x, SPLAT(0x1p-1022));
    ivec bits = BITS(SELECT(tiny, x * 0x1p54, x));
    /* x = 2^e m, with m from sqrt(1/2) to sqrt(2) */
    ivec raised = (ivec)((uvec)(bits - INT64_C(0x3fe6a09e667f3bcd) + (INT64_C(1) << 62)) >> 52); /* e + 1024 */
    vec m = FROM_BITS(bits - ((raised - 1024) << 52));
    vec e = FROM_BITS(raised | INT64_C(0x4330000000000000)) - 0x1p52 - SELECT(tiny, SPLAT(1078.0), SPLAT(1024.0));
    /* log(m) = 2 atanh(s) = 2 s + s (2/3 s² + 2/5 s⁴ + …), with 2 s = f - s f */
    vec f = m - 1.0, s = f / (f + 2.0), z = s * s, half = 0.5 * f * f;
    vec tail = SPLAT(2.0 / 23.0);
    tail = FMA(tail, z, SPLAT(2.0 / 21.0)), tail = FMA(tail, z, SPLAT(2.0 / 19.0));
    tail = FMA(tail, z, SPLAT(2.0 / 17.0)), tail = FMA(tail, z, SPLAT(2.0 / 15.0));
    tail = FMA(tail, z, SPLAT(2.0 / 13.0)), tail = FMA(tail, z, SPLAT(2.0 / 11.0));
    tail = FMA(tail, z, SPLAT(2.0 / 9.0)), tail = FMA(tail, z, SPLAT(2.0 / 7.0));
    tail = FMA(tail, z, SPLAT(2.0 / 5.0)), tail = FMA(tail, z, SPLAT(2.0 / 3.0)) * z;
    vec out = e * LN2_HIGH - ((half - FMA(e, SPLAT(LN2_LOW), s * (half + tail))) - f);
    out = SELECT(LESS(x, SPLAT(INFINITY)), out, x); /* inf and nan as they are */
    out = SELECT(LESS(x, SPLAT(0.0)), SPLAT(NAN), out);
    return SELECT(EQUAL(x, SPLAT(0.0)), SPLAT(-INFINITY), out);
}

INLINE vec NAME(vtanh)(vec x)
{
    vec size = ABSOLUTE(x);
    ivec n;
    vec capped = SELECT(LESS(SPLAT(20.0), size), SPLAT(20.0), size); /* from 19.1 on, it rounds to 1 */
    vec rest = NAME(exp_parts)(capped + capped, &n), scale = NAME(power_of_two)(n);
    vec above = 1.0 - 2.0 / (FMA(scale, rest, scale) + 1.0); /* exp(2x) + 1 */
    /* x / (1 + z / (3 + z / (5 + … z / 15))) with z = x², as x less a small part of it */
    vec z = size * size, over = SPLAT(594.0) + z, under = SPLAT(630.0) + z;
    over = FMA(over, z, SPLAT(45045.0)), under = FMA(under, z, SPLAT(51975.0));
    over = FMA(over, z, SPLAT(675675.0)), under = FMA(FMA(under, z, SPLAT(945945.0)), z, SPLAT(2027025.0));
    vec out = SELECT(LESS(SPLAT(0.55), size), above, size - size * (z * over / under));
    return FROM_BITS(BITS(out) | (BITS(x) & INT64_MIN));
}

/* a - b c, without rounding the product. */
INLINE vec NAME(remainder)(vec a, vec b, vec c)
{
#if FUSED
    return FMA(-b, c, a);
#else /* by halves of their digits, whose products are exact */
    vec b_high = b * 0x1.0000002p27, c_high = c * 0x1.0000002p27;
    b_high = b_high - (b_high - b), c_high = c_high - (c_high - c);
    vec b_low = b - b_high, c_low = c - c_high;
    return (((a - b_high * c_high) - b_high * c_low) - b_low * c_high) - b_low * c_low;
#endif
}

/* 1 / cosh(x)², as 4 e / (1 + e)² with e = exp(-2 |x|): all digits also where tanh(x) has rounded to 1. */
INLINE vec NAME(tanh_slope)(vec x)
{
    vec size = ABSOLUTE(x), e = NAME(vexp)(-(size + size)), below = 1.0 + e;
    return 4.0 * e / (below * below);
}

/* 1 / (x sqrt(x)), corrected by what the root and the product have rounded away: three roundings are too many. */
INLINE vec NAME(vpower_minus_3_halves)(vec x)
{
#if FUSED
    vec root = ROOT(x), product = x * root, out = 1.0 / product;
    vec lost = FMA(x, root, -product) + 0.5 * root * FMA(-root, root, x);
    return FMA(out, FMA(-product, out, SPLAT(1.0)) - out * lost, out);
#else /* without a fused multiply-add, what is lost stays unknown */
    double xs[LANES], ys[LANES];
    NAME(store)(xs, x);
    for (int i = 0; i < LANES; i++)
        ys[i] = pow(xs[i], -1.5);
    return NAME(load)(ys);
#endif
}

INLINE vec NAME(vsigmoid)(vec x)
{
    vec e = NAME(vexp)(-ABSOLUTE(x)), over = SELECT(LESS(x, SPLAT(0.0)), e, SPLAT(1.0)), under = 1.0 + e;
    vec out = over / under, lost = (1.0 - under) + e;
    /* what the sum and the quotient rounded away, divided by 1 + e in turn, of which a few digits will do */
    return out + (NAME(remainder)(over, out, under) - out * lost) * (1.0 - 0.5 * e);
}

/* The sine of x + turns π/2. Far out, where the reduction below loses digits, the library's own functions answer. */
INLINE vec NAME(vsine)(vec x, int turns)
{
    vec far = SELECT(LESS(ABSOLUTE(x), SPLAT(0x1p19)), SPLAT(0.0), SPLAT(1.0)); /* also for inf and nan */
    if (NAME(total)(far) != 0.0) {
        double xs[LANES], ys[LANES];
        NAME(store)(xs, x);
        for (int i = 0; i < LANES; i++)
            ys[i] = (turns & 2 ? -1.0 : 1.0) * (turns & 1 ? cos(xs[i]) : sin(xs[i]));
        return NAME(load)(ys);
    }
    vec shifted = FMA(x, SPLAT(0.6366197723675814), SPLAT(ROUNDER)), whole = shifted - ROUNDER;
    ivec quarter = BITS(shifted) - BITS(SPLAT(ROUNDER)) + turns;
    /* π/2 in three parts; the first two have 33 bits, so that their multiples are exact */
    vec r = FMA(whole, SPLAT(-HALF_PI_1), x);
    r = FMA(whole, SPLAT(-HALF_PI_3), FMA(whole, SPLAT(-HALF_PI_2), r));
    vec z = r * r, s = SPLAT(1.0 / 355687428096000.0), c = SPLAT(1.0 / 20922789888000.0);
    s = FMA(s, z, SPLAT(-1.0 / 1307674368000.0)), c = FMA(c, z, SPLAT(-1.0 / 87178291200.0));
    s = FMA(s, z, SPLAT(1.0 / 6227020800.0)), c = FMA(c, z, SPLAT(1.0 / 479001600.0));
    s = FMA(s, z, SPLAT(-1.0 / 39916800.0)), c = FMA(c, z, SPLAT(-1.0 / 3628800.0));
    s = FMA(s, z, SPLAT(1.0 / 362880.0)), c = FMA(c, z, SPLAT(1.0 / 40320.0));
    s = FMA(s, z, SPLAT(-1.0 / 5040.0)), c = FMA(c, z, SPLAT(-1.0 / 720.0));
    s = FMA(s, z, SPLAT(1.0 / 120.0)), c = FMA(c, z, SPLAT(1.0 / 24.0));
    s = FMA(s, z, SPLAT(-1.0 / 6.0));
    vec sine = SELECT(LESS(ABSOLUTE(r), SPLAT(0x1p-27)), r, FMA(z * r, s, r)); /* so that -0.0 keeps its sign */
    vec half = 0.5 * z, rough = 1.0 - half;
    vec cosine = rough + FMA(z * z, c, (1.0 - rough) - half); /* with what the subtraction rounded away */
    vec out = SELECT(-(quarter & 1), cosine, sine);
    return FROM_BITS(BITS(out) ^ ((quarter & 2) << 62));
}
