/* do not edit; made by tools/generate.py from src/gradwalk/ops.py */

#ifndef GRADWALK_OPS_GENERATED_H
#define GRADWALK_OPS_GENERATED_H

#include <math.h>

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
    X(pow) X(abs) X(atan2) X(relu) X(leaky_relu) X(elu) X(minimum) X(maximum) X(hypot) X(fmod) X(copysign) X(floor) X(ceil) X(sign) X(where) X(clamp)

static const char *const op_names[OP_COUNT] = {"add", "sub", "mul", "div", "pow", "pow_number", "neg", "abs", "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "relu", "leaky_relu", "elu", "gelu", "silu", "sigmoid", "softplus", "erf", "erfc", "lgamma", "minimum", "maximum", "hypot", "fmod", "copysign", "floor", "ceil", "sign", "where", "stop_gradient", "clamp"};
static const char *const op_symbols[OP_COUNT] = {"+", "-", "*", "/", "**", "**n", "neg", "abs", "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "ReLU", "leaky_relu", "elu", "gelu", "silu", "sigmoid", "softplus", "erf", "erfc", "lgamma", "minimum", "maximum", "hypot", "fmod", "copysign", "floor", "ceil", "sign", "where", "stop_gradient", "clamp"};
static const char *const op_arguments[OP_COUNT] = {"x, y", "x, y", "x, y", "x, y", "x, y", "x, n", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "y, x", "x", "x", "x", "x", "x", "x", "x", "x, slope", "x, alpha", "x", "x", "x", "x", "x", "x", "x", "x, y", "x, y", "x, y", "x, y", "x, y", "x", "x", "x", "condition, x, y", "x", "x, low, high"};
static const unsigned char op_inputs[OP_COUNT] = {2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 1, 1, 1, 3, 1, 1};
static const unsigned char op_parameters[OP_COUNT] = {0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
static const unsigned char op_overflows[OP_COUNT] = {0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
static const unsigned char op_checked[OP_COUNT] = {0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1};
static const unsigned char op_exact[OP_COUNT] = {1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
/* a bit for each input that decides on which side of an edge it is: where the result, or a local gradient, changes at
 * once. The distance from there moves no faster than these inputs. */
static const unsigned char op_edges[OP_COUNT] = {0, 0, 0, 0, 3, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3, 3, 1, 1, 1, 1, 0, 1};
static const unsigned char op_default_count[OP_COUNT] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
/* of each local gradient, a bit for each input it looks at */
static const unsigned char op_reads[OP_COUNT][MOST_INPUTS] = {{0, 0}, {0, 0}, {2, 1}, {2, 2}, {3, 1}, {1}, {0}, {1}, {0}, {1}, {1}, {1}, {1}, {1}, {0}, {0}, {1}, {1}, {0}, {1}, {1}, {1}, {3, 3}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {3, 3}, {3, 3}, {1, 2}, {0, 3}, {3, 0}, {0}, {0}, {0}, {0, 1, 1}, {0}, {1}};
static const double op_defaults[OP_COUNT][MOST_NAMES] = {{0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0.01}, {1.0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}};

/* ---- functions defined by a formula of their own ---- */

static inline double formula_hypot(double x, double y)
{
    const double t0 = fabs(x);
    const double t1 = fabs(y);
    const double t2 = (t0 >= t1 ? t0 : t1);
    const double t3 = (t0 >= t1 ? t1 : t0) / t2;
    return ((t2 == 0.0 || t0 == INFINITY) || t1 == INFINITY ? t0 + t1 : t2 * sqrt(1.0 + t3 * t3));
}

static inline double formula_power(double x, double y)
{
    return (y == 2.0 ? x * x : pow(x, y));
}

static inline double formula_cbrt(double x)
{
    const double t0 = fabs(x);
    const double t1 = pow(t0, 0.3333333333333333);
    return copysign((t0 == 0.0 || t0 == INFINITY ? t0 : t1 - (t1 - t0 / t1 / t1) / 3.0), x);
}

static inline double formula_sigmoid(double x)
{
    const double t0 = exp(-fabs(x));
    return (x < 0.0 ? t0 : 1.0) / (1.0 + t0);
}

static inline double formula_lgamma_above_half(double x)
{
    const int t0 = x < 8.0;
    const double t1 = (t0 ? x + 8.0 : x);
    const double t2 = 1.0 / t1;
    const double t3 = t2 * t2;
    const double t4 = (t1 - 0.5) * (log(t1) - 1.0) + ((((((((-0.029550653594771242 * t3 + 0.00641025641025641) * t3 + -0.0019175269175269176) * t3 + 0.0008417508417508417) * t3 + -0.0005952380952380953) * t3 + 0.0007936507936507937) * t3 + -0.002777777777777778) * t3 + 0.08333333333333333) * t2 + 0.9189385332046727 - 0.5);
    return (t0 ? t4 - log((t0 ? x * (x + 1.0) * (x + 2.0) * (x + 3.0) * (x + 4.0) * (x + 5.0) * (x + 6.0) * (x + 7.0) : 1.0)) : t4);
}

static inline double formula_lgamma_near_two(double x)
{
    const int t0 = x < 1.5;
    const double t1 = x - (t0 ? 1.0 : 2.0);
    const double t2 = t1 * ((((((((((((((((((((((((((((-6.4229645638381e-11 * t1 + 1.330476437424449e-10) * t1 + -2.7595228851242334e-10) * t1 + 5.731367241678862e-10) * t1 + -1.1921401405860912e-09) * t1 + 2.4836745438024785e-09) * t1 + -5.183475041970047e-09) * t1 + 1.0838659214896955e-08) * t1 + -2.2711094608943164e-08) * t1 + 4.7698101693639804e-08) * t1 + -1.0043224823968099e-07) * t1 + 2.1207184805554665e-07) * t1 + -4.492469198764566e-07) * t1 + 9.55141213040742e-07) * t1 + -2.039215753801366e-06) * t1 + 4.374866789907488e-06) * t1 + -9.439488275268397e-06) * t1 + 2.050721277567069e-05) * t1 + -4.492623673813314e-05) * t1 + 9.945751278180853e-05) * t1 + -0.00022315475845357939) * t1 + 0.0005096695247430425) * t1 + -0.001192753911703261) * t1 + 0.0028905103307415234) * t1 + -0.007385551028673986) * t1 + 0.020580808427784546) * t1 + -0.0673523010531981) * t1 + 0.3224670334241132) * t1 + 0.42278433509846713);
    return (t0 ? t2 - log1p(t1) : t2);
}

static inline double formula_sin_pi(double x)
{
    const double t0 = x - floor(x);
    return sin(3.141592653589793 * (t0 > 0.5 ? 1.0 - t0 : t0));
}

static inline double formula_digamma(double x)
{
    const int t0 = x < 0.5;
    const double t1 = (t0 ? 1.0 - x : x);
    const int t2 = t1 < 8.0;
    const double t3 = (t2 ? t1 + 8.0 : t1);
    const double t4 = 1.0 / t3;
    const double t5 = t4 * t4;
    const double t6 = log(t3) - 0.5 * t4 - (((((((-0.4432598039215686 * t5 + 0.08333333333333333) * t5 + -0.021092796092796094) * t5 + 0.007575757575757575) * t5 + -0.0041666666666666675) * t5 + 0.003968253968253968) * t5 + -0.008333333333333333) * t5 + 0.08333333333333333) * t5;
    const double t7 = (t2 ? t6 - (1.0 / t1 + 1.0 / (t1 + 1.0) + 1.0 / (t1 + 2.0) + 1.0 / (t1 + 3.0) + 1.0 / (t1 + 4.0) + 1.0 / (t1 + 5.0) + 1.0 / (t1 + 6.0) + 1.0 / (t1 + 7.0)) : t6);
    const double t8 = x - floor(x);
    return (t0 ? t7 - 3.141592653589793 / tan(3.141592653589793 * (t8 > 0.5 ? t8 - 1.0 : t8)) : t7);
}

static inline double formula_lgamma(double x)
{
    const double t0 = fabs(x);
    const int t1 = x < 0.5;
    const double t2 = (t1 ? 1.0 - x : x);
    const double t3 = (t2 < 2.5 ? formula_lgamma_near_two((t2 < 2.5 ? t2 : 2.0)) : formula_lgamma_above_half(t2));
    return (t0 == INFINITY ? INFINITY : (t1 ? 1.1447298858494002 - log(fabs(formula_sin_pi(x))) - t3 : t3));
}

/* ---- the 50 rows ---- */

static inline double add_forward(double x, double y) { return x + y; }
static inline void add_local_grads(double x, double y, double out, double *local_grads)
{
    (void)x, (void)y, (void)out;
    local_grads[0] = 1.0;
    local_grads[1] = 1.0;
}

static inline double sub_forward(double x, double y) { return x - y; }
static inline void sub_local_grads(double x, double y, double out, double *local_grads)
{
    (void)x, (void)y, (void)out;
    local_grads[0] = 1.0;
    local_grads[1] = -1.0;
}

static inline double mul_forward(double x, double y) { return x * y; }
static inline void mul_local_grads(double x, double y, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = y;
    local_grads[1] = x;
}

static inline int div_domain(double x, double y) { (void)x; return y < 0.0 || y > 0.0; }
static inline double div_forward(double x, double y) { return x / y; }
static inline void div_local_grads(double x, double y, double out, double *local_grads)
{
    (void)x;
    local_grads[0] = 1.0 / y;
    local_grads[1] = -(out / y);
}

static inline int pow_domain(double x, double y)
{
    const double t0 = floor(y);
    return (x > 0.0 || (x == 0.0 && y >= 0.0)) || (x < 0.0 && y == t0);
}
static inline double pow_edge_distance(double x, double y) { return formula_hypot(x, y); }
static inline double pow_forward(double x, double y) { return pow(x, y); }
static inline void pow_local_grads(double x, double y, double out, double *local_grads)
{
    local_grads[0] = y * (y == 0.0 && fabs(x) < 1e-300 ? 0.0 : pow(x, y - 1.0));
    local_grads[1] = (x == 0.0 ? 0.0 : out * log(x));
}

static inline int pow_number_domain(double x, double n)
{
    const double t0 = floor(n);
    return (x > 0.0 || (x == 0.0 && n >= 0.0)) || (x < 0.0 && n == t0);
}
static inline double pow_number_forward(double x, double n) { return formula_power(x, n); }
static inline void pow_number_local_grads(double x, double n, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = (n == 2.0 ? 2.0 * x : (n == 0.0 ? 0.0 : n * pow(x, n - 1.0)));
}

static inline double neg_forward(double x) { return -x; }
static inline void neg_local_grads(double x, double out, double *local_grads)
{
    (void)x, (void)out;
    local_grads[0] = -1.0;
}

static inline double abs_edge_distance(double x) { return fabs(x); }
static inline double abs_forward(double x) { return fabs(x); }
static inline void abs_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = (x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : 0.0));
}

static inline double exp_forward(double x) { return exp(x); }
static inline void exp_local_grads(double x, double out, double *local_grads) { (void)x; local_grads[0] = out; }

static inline double expm1_forward(double x) { return expm1(x); }
static inline void expm1_local_grads(double x, double out, double *local_grads) { (void)out; local_grads[0] = exp(x); }

static inline int log_domain(double x) { return x > 0.0; }
static inline double log_forward(double x) { return log(x); }
static inline void log_local_grads(double x, double out, double *local_grads) { (void)out; local_grads[0] = 1.0 / x; }

static inline int log1p_domain(double x) { return x > -1.0; }
static inline double log1p_forward(double x) { return log1p(x); }
static inline void log1p_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = 1.0 / (1.0 + x);
}

static inline int log2_domain(double x) { return x > 0.0; }
static inline double log2_forward(double x) { return log2(x); }
static inline void log2_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = 1.4426950408889634 / x;
}

static inline int log10_domain(double x) { return x > 0.0; }
static inline double log10_forward(double x) { return log10(x); }
static inline void log10_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = 0.43429448190325176 / x;
}

static inline int sqrt_domain(double x) { return x >= 0.0; }
static inline double sqrt_forward(double x) { return sqrt(x); }
static inline void sqrt_local_grads(double x, double out, double *local_grads)
{
    (void)x;
    local_grads[0] = 0.5 / fabs(out);
}

static inline double cbrt_forward(double x) { return formula_cbrt(x); }
static inline void cbrt_local_grads(double x, double out, double *local_grads)
{
    (void)x;
    local_grads[0] = 1.0 / (3.0 * out * out);
}

static inline int sin_domain(double x) { return fabs(x) < INFINITY; }
static inline double sin_forward(double x) { return sin(x); }
static inline void sin_local_grads(double x, double out, double *local_grads) { (void)out; local_grads[0] = cos(x); }

static inline int cos_domain(double x) { return fabs(x) < INFINITY; }
static inline double cos_forward(double x) { return cos(x); }
static inline void cos_local_grads(double x, double out, double *local_grads) { (void)out; local_grads[0] = -sin(x); }

static inline int tan_domain(double x) { return fabs(x) < INFINITY; }
static inline double tan_forward(double x) { return tan(x); }
static inline void tan_local_grads(double x, double out, double *local_grads)
{
    (void)x;
    local_grads[0] = 1.0 + out * out;
}

static inline int asin_domain(double x) { return fabs(x) <= 1.0; }
static inline double asin_forward(double x) { return asin(x); }
static inline void asin_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = 1.0 / sqrt((1.0 - x) * (1.0 + x));
}

static inline int acos_domain(double x) { return fabs(x) <= 1.0; }
static inline double acos_forward(double x) { return acos(x); }
static inline void acos_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = -(1.0 / sqrt((1.0 - x) * (1.0 + x)));
}

static inline double atan_forward(double x) { return atan(x); }
static inline void atan_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = 1.0 / (1.0 + x * x);
}

static inline double atan2_edge_distance(double y, double x) { return (x > 0.0 ? formula_hypot(y, x) : fabs(y)); }
static inline double atan2_forward(double y, double x) { return atan2(y, x); }
static inline void atan2_local_grads(double y, double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = (x == 0.0 && y == 0.0 ? 0.0 : x / formula_hypot(y, x) / formula_hypot(y, x));
    local_grads[1] = (x == 0.0 && y == 0.0 ? 0.0 : -(y / formula_hypot(y, x) / formula_hypot(y, x)));
}

static inline double sinh_forward(double x) { return sinh(x); }
static inline void sinh_local_grads(double x, double out, double *local_grads) { (void)out; local_grads[0] = cosh(x); }

static inline double cosh_forward(double x) { return cosh(x); }
static inline void cosh_local_grads(double x, double out, double *local_grads) { (void)out; local_grads[0] = sinh(x); }

static inline double tanh_forward(double x) { return tanh(x); }
static inline void tanh_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = 4.0 * formula_sigmoid(2.0 * x) * formula_sigmoid(-2.0 * x);
}

static inline double asinh_forward(double x) { return asinh(x); }
static inline void asinh_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = 1.0 / formula_hypot(x, 1.0);
}

static inline int acosh_domain(double x) { return x >= 1.0; }
static inline double acosh_forward(double x) { return acosh(x); }
static inline void acosh_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = 1.0 / (sqrt(x - 1.0) * sqrt(x + 1.0));
}

static inline int atanh_domain(double x) { return fabs(x) < 1.0; }
static inline double atanh_forward(double x) { return atanh(x); }
static inline void atanh_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = 1.0 / ((1.0 - x) * (1.0 + x));
}

static inline double relu_edge_distance(double x) { return fabs(x); }
static inline double relu_forward(double x) { return (x < 0.0 ? 0.0 : x); }
static inline void relu_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = (x > 0.0 ? 1.0 : 0.0);
}

static inline double leaky_relu_edge_distance(double x, double slope) { (void)slope; return fabs(x); }
static inline double leaky_relu_forward(double x, double slope) { return (x < 0.0 ? slope * x : x); }
static inline void leaky_relu_local_grads(double x, double slope, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = (x > 0.0 ? 1.0 : slope);
}

static inline double elu_edge_distance(double x, double alpha) { (void)alpha; return fabs(x); }
static inline double elu_forward(double x, double alpha) { return (x < 0.0 ? alpha * expm1(x) : x); }
static inline void elu_local_grads(double x, double alpha, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = (x > 0.0 ? 1.0 : alpha * exp(x));
}

static inline double gelu_forward(double x) { return 0.5 * x * erfc(-x * 0.7071067811865476); }
static inline void gelu_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = 0.5 * erfc(-x * 0.7071067811865476) + x * 0.3989422804014327 * exp(-0.5 * x * x);
}

static inline double silu_forward(double x) { return x * formula_sigmoid(x); }
static inline void silu_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = formula_sigmoid(x) * (1.0 + x * formula_sigmoid(-x));
}

static inline double sigmoid_forward(double x) { return formula_sigmoid(x); }
static inline void sigmoid_local_grads(double x, double out, double *local_grads)
{
    local_grads[0] = out * formula_sigmoid(-x);
}

static inline double softplus_forward(double x) { return (x < 0.0 ? 0.0 : x) + log1p(exp(-fabs(x))); }
static inline void softplus_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = formula_sigmoid(x);
}

static inline double erf_forward(double x) { return erf(x); }
static inline void erf_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = 1.1283791670955126 * exp(-(x * x));
}

static inline double erfc_forward(double x) { return erfc(x); }
static inline void erfc_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = -1.1283791670955126 * exp(-(x * x));
}

static inline int lgamma_domain(double x) { return x > 0.0 || x > floor(x); }
static inline double lgamma_forward(double x) { return formula_lgamma(x); }
static inline void lgamma_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = formula_digamma(x);
}

static inline double minimum_edge_distance(double x, double y) { return fabs(x - y); }
static inline double minimum_forward(double x, double y) { return (x <= y ? x : (y < x ? y : x + y)); }
static inline void minimum_local_grads(double x, double y, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = (x <= y ? 1.0 : 0.0);
    local_grads[1] = (x <= y ? 0.0 : 1.0);
}

static inline double maximum_edge_distance(double x, double y) { return fabs(x - y); }
static inline double maximum_forward(double x, double y) { return (x >= y ? x : (y > x ? y : x + y)); }
static inline void maximum_local_grads(double x, double y, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = (x >= y ? 1.0 : 0.0);
    local_grads[1] = (x >= y ? 0.0 : 1.0);
}

static inline double hypot_edge_distance(double x, double y) { return formula_hypot(x, y); }
static inline double hypot_forward(double x, double y) { return formula_hypot(x, y); }
static inline void hypot_local_grads(double x, double y, double out, double *local_grads)
{
    local_grads[0] = (out == 0.0 ? 0.0 : x / out);
    local_grads[1] = (out == 0.0 ? 0.0 : y / out);
}

static inline int fmod_domain(double x, double y) { return fabs(x) < INFINITY && (y < 0.0 || y > 0.0); }
static inline double fmod_edge_distance(double x, double y)
{
    const double t0 = fabs(fmod(x, y));
    const double t1 = fabs(y) - t0;
    return (fabs(x) < fabs(y) ? fabs(y) - fabs(x) : (t0 < t1 ? t0 : t1) / (1.0 + fabs(x / y)));
}
static inline double fmod_forward(double x, double y) { return fmod(x, y); }
static inline void fmod_local_grads(double x, double y, double out, double *local_grads)
{
    local_grads[0] = 1.0;
    local_grads[1] = floor((out - x) / y + 0.5);
}

static inline double copysign_edge_distance(double x, double y)
{
    const double t0 = fabs(y);
    const double t1 = fabs(x);
    return (t0 < t1 ? t0 : t1);
}
static inline double copysign_forward(double x, double y) { return copysign(x, (y == y ? y : 1.0)); }
static inline void copysign_local_grads(double x, double y, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = (x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : 0.0)) * copysign(1.0, (y == y ? y : 1.0));
    local_grads[1] = 0.0;
}

static inline double floor_edge_distance(double x) { return fabs(x - floor(x + 0.5)); }
static inline double floor_forward(double x) { return floor(x); }
static inline void floor_local_grads(double x, double out, double *local_grads)
{
    (void)x, (void)out;
    local_grads[0] = 0.0;
}

static inline double ceil_edge_distance(double x) { return fabs(x - floor(x + 0.5)); }
static inline double ceil_forward(double x) { return ceil(x); }
static inline void ceil_local_grads(double x, double out, double *local_grads)
{
    (void)x, (void)out;
    local_grads[0] = 0.0;
}

static inline double sign_edge_distance(double x) { return fabs(x); }
static inline double sign_forward(double x) { return (x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : x)); }
static inline void sign_local_grads(double x, double out, double *local_grads)
{
    (void)x, (void)out;
    local_grads[0] = 0.0;
}

static inline double where_edge_distance(double condition, double x, double y)
{
    (void)x, (void)y;
    return fabs(condition);
}
static inline double where_forward(double condition, double x, double y)
{
    return (condition < 0.0 || condition > 0.0 ? x : y);
}
static inline void where_local_grads(double condition, double x, double y, double out, double *local_grads)
{
    (void)x, (void)y, (void)out;
    local_grads[0] = 0.0;
    local_grads[1] = (condition < 0.0 || condition > 0.0 ? 1.0 : 0.0);
    local_grads[2] = (condition < 0.0 || condition > 0.0 ? 0.0 : 1.0);
}

static inline double stop_gradient_forward(double x) { return x; }
static inline void stop_gradient_local_grads(double x, double out, double *local_grads)
{
    (void)x, (void)out;
    local_grads[0] = 0.0;
}

static inline int clamp_domain(double x, double low, double high) { (void)x; return low <= high; }
static inline double clamp_edge_distance(double x, double low, double high)
{
    const double t0 = fabs(x - low);
    const double t1 = fabs(x - high);
    return (t0 < t1 ? t0 : t1);
}
static inline double clamp_forward(double x, double low, double high)
{
    return (x < low ? low : (x > high ? high : x));
}
static inline void clamp_local_grads(double x, double low, double high, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = (x < low || x > high ? 0.0 : 1.0);
}

static inline int op_in_domain(enum op op, const double *in)
{
    switch (op) {
    case OP_div: return div_domain(in[0], in[1]);
    case OP_pow: return pow_domain(in[0], in[1]);
    case OP_pow_number: return pow_number_domain(in[0], in[1]);
    case OP_log: return log_domain(in[0]);
    case OP_log1p: return log1p_domain(in[0]);
    case OP_log2: return log2_domain(in[0]);
    case OP_log10: return log10_domain(in[0]);
    case OP_sqrt: return sqrt_domain(in[0]);
    case OP_sin: return sin_domain(in[0]);
    case OP_cos: return cos_domain(in[0]);
    case OP_tan: return tan_domain(in[0]);
    case OP_asin: return asin_domain(in[0]);
    case OP_acos: return acos_domain(in[0]);
    case OP_acosh: return acosh_domain(in[0]);
    case OP_atanh: return atanh_domain(in[0]);
    case OP_lgamma: return lgamma_domain(in[0]);
    case OP_fmod: return fmod_domain(in[0], in[1]);
    case OP_clamp: return clamp_domain(in[0], in[1], in[2]);
    default: return 1;
    }
}

/* Whether a local gradient may be infinite although the result is finite. */
static inline int op_steep(enum op op, const double *parameters)
{
    (void)parameters;
    switch (op) {
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
    default: return 0;
    }
}

#define EVALUATED(name, ...) \
    case OP_##name: \
        *out = name##_forward(__VA_ARGS__); \
        name##_local_grads(__VA_ARGS__, *out, local_grads); \
        break;

static inline void op_evaluate(enum op op, const double *in, double *out, double *local_grads)
{
    switch (op) {
    EVALUATED(add, in[0], in[1])
    EVALUATED(sub, in[0], in[1])
    EVALUATED(mul, in[0], in[1])
    EVALUATED(div, in[0], in[1])
    EVALUATED(pow, in[0], in[1])
    EVALUATED(pow_number, in[0], in[1])
    EVALUATED(neg, in[0])
    EVALUATED(abs, in[0])
    EVALUATED(exp, in[0])
    EVALUATED(expm1, in[0])
    EVALUATED(log, in[0])
    EVALUATED(log1p, in[0])
    EVALUATED(log2, in[0])
    EVALUATED(log10, in[0])
    EVALUATED(sqrt, in[0])
    EVALUATED(cbrt, in[0])
    EVALUATED(sin, in[0])
    EVALUATED(cos, in[0])
    EVALUATED(tan, in[0])
    EVALUATED(asin, in[0])
    EVALUATED(acos, in[0])
    EVALUATED(atan, in[0])
    EVALUATED(atan2, in[0], in[1])
    EVALUATED(sinh, in[0])
    EVALUATED(cosh, in[0])
    EVALUATED(tanh, in[0])
    EVALUATED(asinh, in[0])
    EVALUATED(acosh, in[0])
    EVALUATED(atanh, in[0])
    EVALUATED(relu, in[0])
    EVALUATED(leaky_relu, in[0], in[1])
    EVALUATED(elu, in[0], in[1])
    EVALUATED(gelu, in[0])
    EVALUATED(silu, in[0])
    EVALUATED(sigmoid, in[0])
    EVALUATED(softplus, in[0])
    EVALUATED(erf, in[0])
    EVALUATED(erfc, in[0])
    EVALUATED(lgamma, in[0])
    EVALUATED(minimum, in[0], in[1])
    EVALUATED(maximum, in[0], in[1])
    EVALUATED(hypot, in[0], in[1])
    EVALUATED(fmod, in[0], in[1])
    EVALUATED(copysign, in[0], in[1])
    EVALUATED(floor, in[0])
    EVALUATED(ceil, in[0])
    EVALUATED(sign, in[0])
    EVALUATED(where, in[0], in[1], in[2])
    EVALUATED(stop_gradient, in[0])
    EVALUATED(clamp, in[0], in[1], in[2])
    case OP_COUNT:
        break;
    }
}
#undef EVALUATED

#endif
