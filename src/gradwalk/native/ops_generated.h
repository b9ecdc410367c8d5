/* do not edit; made by tools/generate.py from src/gradwalk/ops.py */

#ifndef GRADWALK_OPS_GENERATED_H
#define GRADWALK_OPS_GENERATED_H

#include "formulas_generated.h"

enum op {
    OP_add, OP_sub, OP_mul, OP_div, OP_pow, OP_pow_number, OP_neg, OP_abs, OP_exp, OP_expm1, OP_log, OP_log1p, OP_log2, OP_log10, OP_sqrt, OP_cbrt, OP_sin, OP_cos, OP_tan, OP_asin, OP_acos, OP_atan, OP_atan2, OP_sinh, OP_cosh, OP_tanh, OP_asinh, OP_acosh, OP_atanh, OP_relu, OP_leaky_relu, OP_elu, OP_gelu, OP_silu, OP_sigmoid, OP_softplus, OP_erf, OP_erfc, OP_lgamma, OP_minimum, OP_maximum, OP_hypot, OP_fmod, OP_copysign, OP_floor, OP_ceil, OP_sign, OP_where, OP_stop_gradient, OP_clamp,
    OP_COUNT
};

#define MOST_INPUTS 3
#define MOST_NAMES 3

#define FOR_EACH_OP(X) \
    X(add, "Sum.") X(sub, "Difference.") X(mul, "Product.") X(div, "Quotient.") X(pow, "Power with a Value as the exponent.") X(pow_number, "Power by a plain number.") X(neg, "Negation.") X(abs, "Absolute value.") X(exp, "Exponential.") X(expm1, "exp(x) - 1, exact near 0.") X(log, "Natural logarithm.") X(log1p, "log(1 + x), exact near 0.") X(log2, "Logarithm to base 2.") X(log10, "Logarithm to base 10.") X(sqrt, "Square root.") X(cbrt, "Cube root, also of negative numbers.") X(sin, "Sine.") X(cos, "Cosine.") X(tan, "Tangent.") X(asin, "Inverse sine.") X(acos, "Inverse cosine.") X(atan, "Inverse tangent.") X(atan2, "Angle of the point (x, y).") X(sinh, "Hyperbolic sine.") X(cosh, "Hyperbolic cosine.") X(tanh, "Hyperbolic tangent.") X(asinh, "Inverse hyperbolic sine.") X(acosh, "Inverse hyperbolic cosine.") X(atanh, "Inverse hyperbolic tangent.") X(relu, "Rectified linear unit: the positive part of x.") X(leaky_relu, "x, scaled by `slope` below 0.") X(elu, "Exponential linear unit: x above 0, alpha (exp(x) - 1) below.") X(gelu, "Gaussian error linear unit, exact (not the tanh approximation).") X(silu, "x times its sigmoid; also called swish.") X(sigmoid, "Logistic function 1 / (1 + exp(-x)).") X(softplus, "log(1 + exp(x)), a smooth relu.") X(erf, "Error function.") X(erfc, "1 - erf(x), exact for large x.") X(lgamma, "Logarithm of the absolute value of the gamma function.") X(minimum, "The smaller of two.") X(maximum, "The larger of two.") X(hypot, "Length of the vector (x, y), without overflow on the way.") X(fmod, "Remainder with the sign of x, as C's fmod.") X(copysign, "The size of x with the sign of y.") X(floor, "Round down.") X(ceil, "Round up.") X(sign, "-1, 0 or 1.") X(where, "x where the condition is not 0, else y.") X(stop_gradient, "x itself, but no gradient flows back through it.") X(clamp, "x, held between two numbers.")

/* what comes before the documentation of a function, and of a method, so that Python can tell its signature */
#define SIGNATURE_OF_FUNCTION_add "(x, y, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_add "($self, y, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_sub "(x, y, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_sub "($self, y, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_mul "(x, y, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_mul "($self, y, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_div "(x, y, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_div "($self, y, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_pow "(x, y, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_pow "($self, y, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_pow_number "(x, n, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_pow_number "($self, n, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_neg "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_neg "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_abs "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_abs "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_exp "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_exp "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_expm1 "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_expm1 "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_log "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_log "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_log1p "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_log1p "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_log2 "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_log2 "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_log10 "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_log10 "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_sqrt "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_sqrt "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_cbrt "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_cbrt "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_sin "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_sin "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_cos "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_cos "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_tan "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_tan "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_asin "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_asin "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_acos "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_acos "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_atan "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_atan "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_atan2 "(y, x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_atan2 "($self, x, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_sinh "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_sinh "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_cosh "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_cosh "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_tanh "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_tanh "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_asinh "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_asinh "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_acosh "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_acosh "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_atanh "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_atanh "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_relu "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_relu "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_leaky_relu "(x, slope=0.01, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_leaky_relu "($self, slope=0.01, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_elu "(x, alpha=1.0, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_elu "($self, alpha=1.0, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_gelu "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_gelu "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_silu "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_silu "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_sigmoid "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_sigmoid "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_softplus "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_softplus "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_erf "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_erf "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_erfc "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_erfc "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_lgamma "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_lgamma "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_minimum "(x, y, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_minimum "($self, y, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_maximum "(x, y, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_maximum "($self, y, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_hypot "(x, y, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_hypot "($self, y, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_fmod "(x, y, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_fmod "($self, y, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_copysign "(x, y, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_copysign "($self, y, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_floor "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_floor "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_ceil "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_ceil "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_sign "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_sign "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_where "(condition, x, y, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_where "($self, x, y, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_stop_gradient "(x, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_stop_gradient "($self, /)\n--\n\n"
#define SIGNATURE_OF_FUNCTION_clamp "(x, low, high, /)\n--\n\n"
#define SIGNATURE_OF_METHOD_clamp "($self, low, high, /)\n--\n\n"

#define FOR_EACH_ALIAS(X) \
    X(asin, arcsin) X(acos, arccos) X(atan, arctan) X(atan2, arctan2) X(asinh, arcsinh) X(acosh, arccosh) X(atanh, arctanh)

#define FOR_EACH_EDGE(X) \
    X(div) X(pow) X(pow_number) X(abs) X(log) X(log1p) X(log2) X(log10) X(sqrt) X(cbrt) X(asin) X(acos) X(atan2) X(acosh) X(atanh) X(relu) X(leaky_relu) X(elu) X(lgamma) X(minimum) X(maximum) X(hypot) X(fmod) X(copysign) X(floor) X(ceil) X(sign) X(where) X(clamp)

static const char op_names[OP_COUNT][14] = {"add", "sub", "mul", "div", "pow", "pow_number", "neg", "abs", "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "relu", "leaky_relu", "elu", "gelu", "silu", "sigmoid", "softplus", "erf", "erfc", "lgamma", "minimum", "maximum", "hypot", "fmod", "copysign", "floor", "ceil", "sign", "where", "stop_gradient", "clamp"};
static const char op_symbols[OP_COUNT][14] = {"+", "-", "*", "/", "**", "**n", "neg", "abs", "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "ReLU", "leaky_relu", "elu", "gelu", "silu", "sigmoid", "softplus", "erf", "erfc", "lgamma", "minimum", "maximum", "hypot", "fmod", "copysign", "floor", "ceil", "sign", "where", "stop_gradient", "clamp"};
static const char op_arguments[OP_COUNT][16] = {"x, y", "x, y", "x, y", "x, y", "x, y", "x, n", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "y, x", "x", "x", "x", "x", "x", "x", "x", "x, slope", "x, alpha", "x", "x", "x", "x", "x", "x", "x", "x, y", "x, y", "x, y", "x, y", "x, y", "x", "x", "x", "condition, x, y", "x", "x, low, high"};
static const unsigned char op_inputs[OP_COUNT] = {2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 1, 1, 1, 3, 1, 1};
static const unsigned char op_parameters[OP_COUNT] = {0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
static const unsigned char op_overflows[OP_COUNT] = {0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
static const unsigned char op_chooses[OP_COUNT] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0};
static const unsigned char op_stops[OP_COUNT] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0};
static const unsigned char op_checked[OP_COUNT] = {0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1};
static const unsigned char op_exact[OP_COUNT] = {1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
/* a bit for each input that decides on which side of an edge it is: where the result, or a local gradient, changes at
 * once. The distance from there moves no faster than these inputs. */
static const unsigned char op_edges[OP_COUNT] = {0, 0, 0, 2, 3, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0, 3, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 3, 3, 3, 3, 3, 1, 1, 1, 1, 0, 1};
static const unsigned char op_default_count[OP_COUNT] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
/* of each local gradient, a bit for each input it looks at */
static const unsigned char op_reads[OP_COUNT][MOST_INPUTS] = {{0, 0}, {0, 0}, {2, 1}, {2, 2}, {3, 1}, {1}, {0}, {1}, {0}, {1}, {1}, {1}, {1}, {1}, {0}, {0}, {1}, {1}, {0}, {1}, {1}, {1}, {3, 3}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {3, 3}, {3, 3}, {1, 2}, {0, 3}, {3, 0}, {0}, {0}, {0}, {0, 1, 1}, {0}, {1}};
static const double op_defaults[OP_COUNT][MOST_NAMES] = {{0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0.01}, {1.0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}};

/* Whether a local gradient may be infinite although the result is finite. */
static inline int op_steep(enum op op, const double *parameters)
{
    (void)parameters;
    switch ((unsigned)op) {
    case OP_div: return 1;
    case OP_pow: return 1;
    case OP_pow_number: return parameters[0] < 1.0;
    case OP_log: return 1;
    case OP_log2: return 1;
    case OP_log10: return 1;
    case OP_sqrt: return 1;
    case OP_cbrt: return 1;
    case OP_asin: return 1;
    case OP_acos: return 1;
    case OP_atan2: return 1;
    case OP_acosh: return 1;
    case OP_lgamma: return 1;
    case OP_fmod: return 1;
    default: return 0; /* all others */
    }
}

#define EVALUATED(name, domain, ...) \
    case OP_##name: \
        *out = name##_forward(__VA_ARGS__); \
        name##_local_grads(__VA_ARGS__, *out, local_grads); \
        return domain;

/* Whether the inputs are inside the domain. */
SHARED int op_evaluate(enum op op, const double *in, double *out, double *local_grads)
{
    switch ((unsigned)op) {
    EVALUATED(add, 1, in[0], in[1])
    EVALUATED(sub, 1, in[0], in[1])
    EVALUATED(mul, 1, in[0], in[1])
    EVALUATED(div, div_domain(in[0], in[1]), in[0], in[1])
    EVALUATED(pow, pow_domain(in[0], in[1]), in[0], in[1])
    EVALUATED(pow_number, pow_number_domain(in[0], in[1]), in[0], in[1])
    EVALUATED(neg, 1, in[0])
    EVALUATED(abs, 1, in[0])
    EVALUATED(exp, 1, in[0])
    EVALUATED(expm1, 1, in[0])
    EVALUATED(log, log_domain(in[0]), in[0])
    EVALUATED(log1p, log1p_domain(in[0]), in[0])
    EVALUATED(log2, log2_domain(in[0]), in[0])
    EVALUATED(log10, log10_domain(in[0]), in[0])
    EVALUATED(sqrt, sqrt_domain(in[0]), in[0])
    EVALUATED(cbrt, 1, in[0])
    EVALUATED(sin, sin_domain(in[0]), in[0])
    EVALUATED(cos, cos_domain(in[0]), in[0])
    EVALUATED(tan, tan_domain(in[0]), in[0])
    EVALUATED(asin, asin_domain(in[0]), in[0])
    EVALUATED(acos, acos_domain(in[0]), in[0])
    EVALUATED(atan, 1, in[0])
    EVALUATED(atan2, 1, in[0], in[1])
    EVALUATED(sinh, 1, in[0])
    EVALUATED(cosh, 1, in[0])
    EVALUATED(tanh, 1, in[0])
    EVALUATED(asinh, 1, in[0])
    EVALUATED(acosh, acosh_domain(in[0]), in[0])
    EVALUATED(atanh, atanh_domain(in[0]), in[0])
    EVALUATED(relu, 1, in[0])
    EVALUATED(leaky_relu, 1, in[0], in[1])
    EVALUATED(elu, 1, in[0], in[1])
    EVALUATED(gelu, 1, in[0])
    EVALUATED(silu, 1, in[0])
    EVALUATED(sigmoid, 1, in[0])
    EVALUATED(softplus, 1, in[0])
    EVALUATED(erf, 1, in[0])
    EVALUATED(erfc, 1, in[0])
    EVALUATED(lgamma, lgamma_domain(in[0]), in[0])
    EVALUATED(minimum, 1, in[0], in[1])
    EVALUATED(maximum, 1, in[0], in[1])
    EVALUATED(hypot, 1, in[0], in[1])
    EVALUATED(fmod, fmod_domain(in[0], in[1]), in[0], in[1])
    EVALUATED(copysign, 1, in[0], in[1])
    EVALUATED(floor, 1, in[0])
    EVALUATED(ceil, 1, in[0])
    EVALUATED(sign, 1, in[0])
    EVALUATED(where, 1, in[0], in[1], in[2])
    EVALUATED(stop_gradient, 1, in[0])
    EVALUATED(clamp, clamp_domain(in[0], in[1], in[2]), in[0], in[1], in[2])
    default: return 0; /* nothing is inside the domain of what is no operation */
    }
}
#undef EVALUATED

#endif
