/* Entry by entry, for the instruction set ISA: the operations worth a vector form. Included after kernels_vector.h. */

#define UNUSED_HERE(what) (void)(what)

/* The same statement for whole vectors and for the part that is left. */
#define FOR_EACH_VECTOR(statement) \
    Count i = 0; \
    for (; i + LANES <= n; i += LANES) { \
        statement(LOAD, STORE) \
    } \
    if (LANES > 1 && i < n) { \
        Count rest = n - i; \
        statement(LOAD_REST, STORE_REST) \
    }
#define LOAD_REST(x) NAME(load_part)(x, rest)
#define STORE_REST(x, v) NAME(store_part)(x, v, rest)

/* One copy of a long statement for both: what it decides at each load and store costs little beside it. */
#define FOR_EACH_VECTOR_ONCE(statement) \
    for (Count i = 0; i < n; i += LANES) { \
        Count rest = n - i; \
        statement(LOAD_UP_TO_REST, STORE_UP_TO_REST) \
    }
#define LOAD_UP_TO_REST(x) (rest < LANES ? LOAD_REST(x) : LOAD(x))
#define STORE_UP_TO_REST(x, v) NAME(store_up_to)(x, v, rest)
INLINE void NAME(store_up_to)(double *x, vec v, Count rest)
{
    if (rest < LANES)
        STORE_REST(x, v);
    else
        STORE(x, v);
}

/* One operand. FORWARD_STEP says the value in x, REVERSE_STEP what to add to the gradient of x, in x, in the value y
 * and in g, the gradient of y. */
#define UNARY(name) UNARY_BY(name, FOR_EACH_VECTOR, FOR_EACH_VECTOR)
#define UNARY_BY(name, for_each_forward, for_each_reverse) \
    static void NAME(name##_forward)(Count n, const double *const *in, const double *parameters, double *out) \
    { \
        UNUSED_HERE(parameters); \
        for_each_forward(UNARY_FORWARD_##name) \
    } \
    static void NAME(name##_reverse)(Count n, const double *const *in, const double *parameters, const double *out, \
                                     const double *out_grad, double *const *grads) \
    { \
        UNUSED_HERE(parameters), UNUSED_HERE(in), UNUSED_HERE(out); \
        double *grad = grads[0]; \
        for_each_reverse(UNARY_REVERSE_##name) \
    }
#define FORWARD_STEP(load, put, value) vec x = load(in[0] + i); put(out + i, value);
#define REVERSE_STEP(load, put, uses, slope) \
    uses vec g = load(out_grad + i); put(grad + i, load(grad + i) + (slope));
#define OF_X(load) vec x = load(in[0] + i);
#define OF_OUT(load) vec y = load(out + i);
#define OF_NONE(load)

#define ONES SPLAT(1.0)
#define ZEROS SPLAT(0.0)

#define UNARY_FORWARD_neg(load, put) FORWARD_STEP(load, put, -x)
#define UNARY_REVERSE_neg(load, put) REVERSE_STEP(load, put, OF_NONE(load), -g)
UNARY(neg)
#define UNARY_FORWARD_relu(load, put) FORWARD_STEP(load, put, SELECT(LESS(x, ZEROS), ZEROS, x))
#define UNARY_REVERSE_relu(load, put) REVERSE_STEP(load, put, OF_X(load), SELECT(LESS(ZEROS, x), ONES, ZEROS) * g)
UNARY(relu)
#define UNARY_FORWARD_exp(load, put) FORWARD_STEP(load, put, NAME(vexp)(x))
#define UNARY_REVERSE_exp(load, put) REVERSE_STEP(load, put, OF_OUT(load), y * g)
UNARY_BY(exp, FOR_EACH_VECTOR_ONCE, FOR_EACH_VECTOR)
#define UNARY_FORWARD_log(load, put) FORWARD_STEP(load, put, NAME(vlog)(x))
#define UNARY_REVERSE_log(load, put) REVERSE_STEP(load, put, OF_X(load), g / x)
UNARY_BY(log, FOR_EACH_VECTOR_ONCE, FOR_EACH_VECTOR)
#define UNARY_FORWARD_tanh(load, put) FORWARD_STEP(load, put, NAME(vtanh)(x))
#define UNARY_REVERSE_tanh(load, put) REVERSE_STEP(load, put, OF_X(load), NAME(tanh_slope)(x) * g)
UNARY_BY(tanh, FOR_EACH_VECTOR_ONCE, FOR_EACH_VECTOR_ONCE)
#define UNARY_FORWARD_sqrt(load, put) FORWARD_STEP(load, put, ROOT(x))
#define UNARY_REVERSE_sqrt(load, put) REVERSE_STEP(load, put, OF_OUT(load), 0.5 / ABSOLUTE(y) * g)
UNARY_BY(sqrt, FOR_EACH_VECTOR_ONCE, FOR_EACH_VECTOR_ONCE)
#define UNARY_FORWARD_sigmoid(load, put) FORWARD_STEP(load, put, NAME(vsigmoid)(x))
#define UNARY_REVERSE_sigmoid(load, put) \
    REVERSE_STEP(load, put, OF_X(load) OF_OUT(load), y * NAME(vsigmoid)(-x) * g)
UNARY_BY(sigmoid, FOR_EACH_VECTOR_ONCE, FOR_EACH_VECTOR_ONCE)
/* sin and cos are a quarter of a turn apart, and so are they and their slopes */
NEVER_INLINE static void NAME(sine)(Count n, const double *in, int turns, double *out)
{
#define STEP(load, put) put(out + i, NAME(vsine)(load(in + i), turns));
    FOR_EACH_VECTOR_ONCE(STEP)
#undef STEP
}

NEVER_INLINE static void NAME(sine_reverse)(Count n, const double *in, int turns, const double *out_grad, double *grad)
{
#define STEP(load, put) put(grad + i, load(grad + i) + NAME(vsine)(load(in + i), turns + 1) * load(out_grad + i));
    FOR_EACH_VECTOR_ONCE(STEP)
#undef STEP
}

#define SINE(name, turns) \
    static void NAME(name##_forward)(Count n, const double *const *in, const double *parameters, double *out) \
    { \
        UNUSED_HERE(parameters); \
        NAME(sine)(n, in[0], turns, out); \
    } \
    static void NAME(name##_reverse)(Count n, const double *const *in, const double *parameters, const double *out, \
                                     const double *out_grad, double *const *grads) \
    { \
        UNUSED_HERE(parameters), UNUSED_HERE(out); \
        NAME(sine_reverse)(n, in[0], turns, out_grad, grads[0]); \
    }
SINE(sin, 0)
SINE(cos, 1)

/* powers by a number, and n x^(n - 1) */
#define UNARY_FORWARD_power_2(load, put) FORWARD_STEP(load, put, x * x)
#define UNARY_REVERSE_power_2(load, put) REVERSE_STEP(load, put, OF_X(load), (x + x) * g)
UNARY(power_2)
#define UNARY_FORWARD_power_3(load, put) FORWARD_STEP(load, put, x * x * x)
#define UNARY_REVERSE_power_3(load, put) REVERSE_STEP(load, put, OF_X(load), 3.0 * (x * x) * g)
UNARY(power_3)
#define UNARY_FORWARD_power_3_halves(load, put) FORWARD_STEP(load, put, x * ROOT(x))
#define UNARY_REVERSE_power_3_halves(load, put) REVERSE_STEP(load, put, OF_X(load), 1.5 * ROOT(x) * g)
UNARY_BY(power_3_halves, FOR_EACH_VECTOR_ONCE, FOR_EACH_VECTOR_ONCE)
#define UNARY_FORWARD_power_minus_1(load, put) FORWARD_STEP(load, put, 1.0 / x)
#define UNARY_REVERSE_power_minus_1(load, put) REVERSE_STEP(load, put, OF_OUT(load), -(y * y) * g)
UNARY_BY(power_minus_1, FOR_EACH_VECTOR_ONCE, FOR_EACH_VECTOR_ONCE)
#define UNARY_FORWARD_power_minus_2(load, put) FORWARD_STEP(load, put, 1.0 / (x * x))
#define UNARY_REVERSE_power_minus_2(load, put) REVERSE_STEP(load, put, OF_X(load) OF_OUT(load), -2.0 * (y / x) * g)
UNARY_BY(power_minus_2, FOR_EACH_VECTOR_ONCE, FOR_EACH_VECTOR_ONCE)
#define UNARY_FORWARD_power_minus_half(load, put) FORWARD_STEP(load, put, 1.0 / ROOT(x))
#define UNARY_REVERSE_power_minus_half(load, put) REVERSE_STEP(load, put, OF_X(load) OF_OUT(load), -0.5 * (y / x) * g)
UNARY_BY(power_minus_half, FOR_EACH_VECTOR_ONCE, FOR_EACH_VECTOR_ONCE)
#define UNARY_FORWARD_power_minus_3_halves(load, put) FORWARD_STEP(load, put, NAME(vpower_minus_3_halves)(x))
#define UNARY_REVERSE_power_minus_3_halves(load, put) \
    REVERSE_STEP(load, put, OF_X(load) OF_OUT(load), -1.5 * (y / x) * g)
UNARY_BY(power_minus_3_halves, FOR_EACH_VECTOR_ONCE, FOR_EACH_VECTOR_ONCE)

/* ---------------------------------------------------------------- two operands */

#define BINARY(name) \
    static void NAME(name##_forward)(Count n, const double *const *in, const double *parameters, double *out) \
    { \
        UNUSED_HERE(parameters); \
        FOR_EACH_VECTOR(BINARY_FORWARD_##name) \
    } \
    static void NAME(name##_reverse)(Count n, const double *const *in, const double *parameters, const double *out, \
                                     const double *out_grad, double *const *grads) \
    { \
        UNUSED_HERE(parameters), UNUSED_HERE(in), UNUSED_HERE(out); \
        double *left = grads[0], *right = grads[1]; \
        if (left != NULL && right != NULL) { \
            FOR_EACH_VECTOR(BINARY_BOTH_##name) \
        } \
        else if (left != NULL) { \
            FOR_EACH_VECTOR(BINARY_LEFT_##name) \
        } \
        else { \
            FOR_EACH_VECTOR(BINARY_RIGHT_##name) \
        } \
    }
#define PAIR_STEP(load, put, value) vec x = load(in[0] + i), y = load(in[1] + i); put(out + i, value);
/* the second sum is read after the first is written: the two may be the same slots */
#define ADD_TO(load, put, grad, what) put(grad + i, load(grad + i) + (what));
#define G(load) vec g = load(out_grad + i);

#define BINARY_FORWARD_add(load, put) PAIR_STEP(load, put, x + y)
#define BINARY_LEFT_add(load, put) G(load) ADD_TO(load, put, left, g)
#define BINARY_RIGHT_add(load, put) G(load) ADD_TO(load, put, right, g)
#define BINARY_BOTH_add(load, put) G(load) ADD_TO(load, put, left, g) ADD_TO(load, put, right, g)
BINARY(add)
#define BINARY_FORWARD_sub(load, put) PAIR_STEP(load, put, x - y)
#define BINARY_LEFT_sub(load, put) G(load) ADD_TO(load, put, left, g)
#define BINARY_RIGHT_sub(load, put) G(load) ADD_TO(load, put, right, -g)
#define BINARY_BOTH_sub(load, put) G(load) ADD_TO(load, put, left, g) ADD_TO(load, put, right, -g)
BINARY(sub)
#define BINARY_FORWARD_mul(load, put) PAIR_STEP(load, put, x * y)
#define BINARY_LEFT_mul(load, put) G(load) ADD_TO(load, put, left, g * load(in[1] + i))
#define BINARY_RIGHT_mul(load, put) G(load) ADD_TO(load, put, right, g * load(in[0] + i))
#define BINARY_BOTH_mul(load, put) \
    G(load) ADD_TO(load, put, left, g * load(in[1] + i)) ADD_TO(load, put, right, g * load(in[0] + i))
BINARY(mul)
#define BINARY_FORWARD_div(load, put) PAIR_STEP(load, put, x / y)
#define BINARY_LEFT_div(load, put) G(load) ADD_TO(load, put, left, g / load(in[1] + i))
#define BINARY_RIGHT_div(load, put) \
    G(load) vec q = g / load(in[1] + i); ADD_TO(load, put, right, -(q * load(out + i)))
#define BINARY_BOTH_div(load, put) \
    G(load) vec q = g / load(in[1] + i); ADD_TO(load, put, left, q) ADD_TO(load, put, right, -(q * load(out + i)))
BINARY(div)

/* ---------------------------------------------------------------- sums and the like */

static double NAME(sum)(Count n, const double *x)
{
    vec a = ZEROS, b = ZEROS, c = ZEROS, d = ZEROS;
    Count i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        a += LOAD(x + i), b += LOAD(x + i + LANES);
        c += LOAD(x + i + 2 * LANES), d += LOAD(x + i + 3 * LANES);
    }
    for (; i + LANES <= n; i += LANES)
        a += LOAD(x + i);
    if (LANES > 1 && i < n)
        b += NAME(load_part)(x + i, n - i);
    return NAME(total)((a + b) + (c + d));
}

static double NAME(dot)(Count n, const double *x, const double *y)
{
    vec a = ZEROS, b = ZEROS, c = ZEROS, d = ZEROS;
    Count i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        a = FMA(LOAD(x + i), LOAD(y + i), a);
        b = FMA(LOAD(x + i + LANES), LOAD(y + i + LANES), b);
        c = FMA(LOAD(x + i + 2 * LANES), LOAD(y + i + 2 * LANES), c);
        d = FMA(LOAD(x + i + 3 * LANES), LOAD(y + i + 3 * LANES), d);
    }
    for (; i + LANES <= n; i += LANES)
        a = FMA(LOAD(x + i), LOAD(y + i), a);
    if (LANES > 1 && i < n)
        b = FMA(NAME(load_part)(x + i, n - i), NAME(load_part)(y + i, n - i), b);
    return NAME(total)((a + b) + (c + d));
}

static void NAME(add)(Count n, const double *x, double *into)
{
#define STEP(load, put) put(into + i, load(into + i) + load(x + i));
    FOR_EACH_VECTOR(STEP)
#undef STEP
}

static void NAME(add_scaled)(Count n, double scale, const double *x, double *into)
{
    vec s = SPLAT(scale);
#define STEP(load, put) put(into + i, FMA(s, load(x + i), load(into + i)));
    FOR_EACH_VECTOR(STEP)
#undef STEP
}

static void NAME(add_product)(Count n, const double *x, const double *y, double *into)
{
#define STEP(load, put) put(into + i, FMA(load(x + i), load(y + i), load(into + i)));
    FOR_EACH_VECTOR(STEP)
#undef STEP
}

/* x - x is 0, with no bit set, for a finite x and nan for any other. Bits are collected faster than a sum would be. */
static int NAME(finite)(Count n, const double *x)
{
    ivec doubt = BITS(ZEROS);
    Count done = 0;
    for (; done + 4 * LANES <= n; done += 4 * LANES) {
        vec a = LOAD(x + done), b = LOAD(x + done + LANES), c = LOAD(x + done + 2 * LANES), d = LOAD(x + done + 3 * LANES);
        doubt |= (BITS(a - a) | BITS(b - b)) | (BITS(c - c) | BITS(d - d));
    }
    x += done, n -= done;
#define STEP(load, put) vec v = load(x + i); doubt |= BITS(v - v);
    FOR_EACH_VECTOR(STEP)
#undef STEP
    int64_t bits = 0;
    for (int lane = 0; lane < LANES; lane++)
        bits |= LANE(doubt, lane);
    return bits == 0;
}

/* Four at a time, as none of them waits for the one before. */
static double NAME(most)(Count n, const double *x)
{
    vec largest = ZEROS, b = ZEROS, c = ZEROS, d = ZEROS;
    Count done = 0;
    for (; done + 4 * LANES <= n; done += 4 * LANES) {
        largest = LARGER(ABSOLUTE(LOAD(x + done)), largest);
        b = LARGER(ABSOLUTE(LOAD(x + done + LANES)), b);
        c = LARGER(ABSOLUTE(LOAD(x + done + 2 * LANES)), c);
        d = LARGER(ABSOLUTE(LOAD(x + done + 3 * LANES)), d);
    }
    x += done, n -= done;
#define STEP(load, put) largest = LARGER(ABSOLUTE(load(x + i)), largest);
    FOR_EACH_VECTOR(STEP)
#undef STEP
    largest = LARGER(LARGER(b, largest), LARGER(c, d));
    double most = 0.0;
    for (int lane = 0; lane < LANES; lane++)
        most = most < LANE(largest, lane) ? LANE(largest, lane) : most;
    return most;
}

/* In the order of operations of optim.c, without fused multiply-adds: the same numbers to the bit. */
static void NAME(adam)(Count n, double *data, const double *grad, double *mean, double *square, const double *settings)
{
    vec beta = SPLAT(settings[ADAM_BETA]), beta_square = SPLAT(settings[ADAM_BETA_SQUARE]);
    vec step = SPLAT(settings[ADAM_STEP]), scale = SPLAT(settings[ADAM_SCALE]);
    vec epsilon = SPLAT(settings[ADAM_EPSILON]), shrink = SPLAT(settings[ADAM_SHRINK]);
    vec fresh = 1.0 - beta, fresh_square = 1.0 - beta_square;
#define STEP(load, put) \
    vec g = load(grad + i); \
    vec m = beta * load(mean + i) + fresh * g, s = beta_square * load(square + i) + fresh_square * g * g; \
    put(mean + i, m); \
    put(square + i, s); \
    put(data + i, load(data + i) * shrink - step * m / (ROOT(s) * scale + epsilon));
    FOR_EACH_VECTOR(STEP)
#undef STEP
}
