/* do not edit; made by tools/generate.py from src/gradwalk/ops.py */

#ifndef GRADWALK_FORMULAS_GENERATED_H
#define GRADWALK_FORMULAS_GENERATED_H

#include <math.h>

#include "internal.h"

/* ---- functions defined by a formula of their own ---- */

static inline double formula_hypot(double x, double y)
{
    const double t0 = fabs(x);
    const double t1 = fabs(y);
    const double t2 = (t0 >= t1 ? t0 : t1);
    const double t3 = (t0 >= t1 ? t1 : t0) / t2;
    return (t0 == INFINITY || t1 == INFINITY ? INFINITY : (t2 == 0.0 ? t0 + t1 : t2 * sqrt(1.0 + t3 * t3)));
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

SHARED double formula_erf_near_zero(double x)
{
    const double t0 = x * x;
    return x + x * ((((((((((((((((((4.763348040515068e-18 * t0 + -9.063970842808673e-17) * t0 + 1.6342614095367152e-15) * t0 + -2.7835162072109212e-14) * t0 + 4.4632242632864775e-13) * t0 + -6.7113668551641105e-12) * t0 + 9.422759064650411e-11) * t0 + -1.2290555301717926e-09) * t0 + 1.4807192815879218e-08) * t0 + -1.6365844691234924e-07) * t0 + 1.6462114365889246e-06) * t0 + -1.492565035840625e-05) * t0 + 0.00012055332981789664) * t0 + -0.0008548327023450852) * t0 + 0.005223977625442188) * t0 + -0.026866170645131252) * t0 + 0.11283791670955126) * t0 + -0.37612638903183754) * t0 + 0.1283791670955126);
}

SHARED double formula_erfc_above_half(double x)
{
    const double t0 = (x < 28.0 ? x : 28.0);
    const double t1 = t0 * t0;
    const double t2 = exp(-t1);
    const double t3 = 134217729.0 * t0;
    const double t4 = t3 - (t3 - t0);
    const double t5 = t0 - t4;
    const double t6 = (t0 - 4.0) / (t0 + 4.0);
    return (t2 - t2 * (t4 * t4 - t1 + 2.0 * t4 * t5 + t5 * t5)) * ((((((((((((((((((((((1.9717656765049794e-09 * t6 + -9.652213521087604e-09) * t6 + -1.8406671051403966e-08) * t6 + 1.03256669073015e-07) * t6 + 7.540467350144586e-08) * t6 + -8.195085083459565e-07) * t6 + 2.9313186423696087e-07) * t6 + 5.706494720146254e-06) * t6 + -1.1221668942295945e-05) * t6 + -2.4398057333996413e-05) * t6 + 0.00015062155590137163) * t6 + -0.00019925696553927866) * t6 + -0.0007577732634973155) * t6 + 0.00503197001856426) * t6 + -0.016197734061059108) * t6 + 0.03716751553379472) * t6 + -0.06633036581196795) * t6 + 0.09373283499853434) * t6 + -0.1010390660363143) * t6 + 0.06809705425468844) * t6 + 0.015379652102619901) * t6 + -0.1396211168405625) * t6 + 1.2329951186255526) / (1.0 + 2.0 * t0);
}

static inline double formula_erf(double x)
{
    const double t0 = fabs(x);
    return (t0 < 1.0 ? formula_erf_near_zero(x) : (x == x ? copysign(1.0 - formula_erfc_above_half(t0), x) : x));
}

static inline double formula_erfc(double x)
{
    const double t0 = fabs(x);
    return (t0 < 0.5 ? 1.0 - formula_erf_near_zero(x) : (x == x ? (x < 0.0 ? 2.0 : 0.0) + copysign(formula_erfc_above_half(t0), x) : x));
}

SHARED double formula_lgamma_above_half(double x)
{
    const int t0 = x < 8.0;
    const double t1 = (t0 ? x + 8.0 : x);
    const double t2 = 1.0 / t1;
    const double t3 = t2 * t2;
    const double t4 = (t1 - 0.5) * (log(t1) - 1.0) + ((((((((-0.029550653594771242 * t3 + 0.00641025641025641) * t3 + -0.0019175269175269176) * t3 + 0.0008417508417508417) * t3 + -0.0005952380952380953) * t3 + 0.0007936507936507937) * t3 + -0.002777777777777778) * t3 + 0.08333333333333333) * t2 + 0.9189385332046727 - 0.5);
    return (t0 ? t4 - log((t0 ? x * (x + 1.0) * (x + 2.0) * (x + 3.0) * (x + 4.0) * (x + 5.0) * (x + 6.0) * (x + 7.0) : 1.0)) : t4);
}

SHARED double formula_lgamma_near_two(double x)
{
    const int t0 = x < 1.5;
    const double t1 = x - (t0 ? 1.0 : 2.0);
    const double t2 = t1 * ((((((((((((((((((((((((((((-6.4229645638381e-11 * t1 + 1.330476437424449e-10) * t1 + -2.7595228851242334e-10) * t1 + 5.731367241678862e-10) * t1 + -1.1921401405860912e-09) * t1 + 2.4836745438024785e-09) * t1 + -5.183475041970047e-09) * t1 + 1.0838659214896955e-08) * t1 + -2.2711094608943164e-08) * t1 + 4.7698101693639804e-08) * t1 + -1.0043224823968099e-07) * t1 + 2.1207184805554665e-07) * t1 + -4.492469198764566e-07) * t1 + 9.55141213040742e-07) * t1 + -2.039215753801366e-06) * t1 + 4.374866789907488e-06) * t1 + -9.439488275268397e-06) * t1 + 2.050721277567069e-05) * t1 + -4.492623673813314e-05) * t1 + 9.945751278180853e-05) * t1 + -0.00022315475845357939) * t1 + 0.0005096695247430425) * t1 + -0.001192753911703261) * t1 + 0.0028905103307415234) * t1 + -0.007385551028673986) * t1 + 0.020580808427784546) * t1 + -0.0673523010531981) * t1 + 0.3224670334241132) * t1 + 0.42278433509846713);
    return (t0 ? t2 - log1p(t1) : t2);
}

static inline double formula_sin_pi(double x)
{
    return sin(3.141592653589793 * fabs(x - floor(x + 0.5)));
}

SHARED double formula_digamma(double x)
{
    const int t0 = x < 0.5;
    const double t1 = (t0 ? 1.0 - x : x);
    const int t2 = t1 < 8.0;
    const double t3 = (t2 ? t1 + 8.0 : t1);
    const double t4 = 1.0 / t3;
    const double t5 = t4 * t4;
    const double t6 = log(t3) - 0.5 * t4 - (((((((-0.4432598039215686 * t5 + 0.08333333333333333) * t5 + -0.021092796092796094) * t5 + 0.007575757575757575) * t5 + -0.0041666666666666675) * t5 + 0.003968253968253968) * t5 + -0.008333333333333333) * t5 + 0.08333333333333333) * t5;
    const double t7 = (t2 ? t6 - (1.0 / t1 + 1.0 / (t1 + 1.0) + 1.0 / (t1 + 2.0) + 1.0 / (t1 + 3.0) + 1.0 / (t1 + 4.0) + 1.0 / (t1 + 5.0) + 1.0 / (t1 + 6.0) + 1.0 / (t1 + 7.0)) : t6);
    return (t0 ? t7 - 3.141592653589793 / tan(3.141592653589793 * (x - floor(x + 0.5))) : t7);
}

static inline double formula_lgamma(double x)
{
    const double t0 = fabs(x);
    const int t1 = x < 0.5;
    const double t2 = (t1 ? 1.0 - x : x);
    const double t3 = (t2 < 2.5 ? formula_lgamma_near_two((t2 < 2.5 ? t2 : 2.0)) : formula_lgamma_above_half(t2));
    return (t0 == INFINITY ? INFINITY : (t1 ? (fabs(x) < 1e-290 ? -log(fabs(x)) : 1.1447298858494002 - log(formula_sin_pi(x)) - t3) : t3));
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
static inline double div_edge_distance(double x, double y) { (void)x; return fabs(y); }
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
    return (x > 0.0 || (x == 0.0 && (y >= 0.0 || y == -INFINITY))) || (x < 0.0 && (y == t0 || x == -INFINITY));
}
static inline double pow_edge_distance(double x, double y)
{
    const double t0 = formula_hypot(x, y);
    const double t1 = fabs(x);
    return (t0 < t1 ? t0 : t1);
}
static inline double pow_forward(double x, double y) { return pow(x, y); }
static inline void pow_local_grads(double x, double y, double out, double *local_grads)
{
    local_grads[0] = y * (y == 0.0 && fabs(x) < 1e-300 ? 0.0 : pow(x, y - 1.0));
    local_grads[1] = (x == 0.0 ? 0.0 : out * log(x));
}

static inline int pow_number_domain(double x, double n)
{
    const double t0 = floor(n);
    return (x > 0.0 || (x == 0.0 && (n >= 0.0 || n == -INFINITY))) || (x < 0.0 && (n == t0 || x == -INFINITY));
}
static inline double pow_number_edge_distance(double x, double n)
{
    const double t0 = floor(n);
    return (n >= 1.0 && n == t0 ? INFINITY : fabs(x));
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
static inline double log_edge_distance(double x) { return fabs(x); }
static inline double log_forward(double x) { return log(x); }
static inline void log_local_grads(double x, double out, double *local_grads) { (void)out; local_grads[0] = 1.0 / x; }

static inline int log1p_domain(double x) { return x > -1.0; }
static inline double log1p_edge_distance(double x) { return fabs(x + 1.0); }
static inline double log1p_forward(double x) { return log1p(x); }
static inline void log1p_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = 1.0 / (1.0 + x);
}

static inline int log2_domain(double x) { return x > 0.0; }
static inline double log2_edge_distance(double x) { return fabs(x); }
static inline double log2_forward(double x) { return log2(x); }
static inline void log2_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = 1.4426950408889634 / x;
}

static inline int log10_domain(double x) { return x > 0.0; }
static inline double log10_edge_distance(double x) { return fabs(x); }
static inline double log10_forward(double x) { return log10(x); }
static inline void log10_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = 0.43429448190325176 / x;
}

static inline int sqrt_domain(double x) { return x >= 0.0; }
static inline double sqrt_edge_distance(double x) { return fabs(x); }
static inline double sqrt_forward(double x) { return sqrt(x); }
static inline void sqrt_local_grads(double x, double out, double *local_grads)
{
    (void)x;
    local_grads[0] = 0.5 / fabs(out);
}

static inline double cbrt_edge_distance(double x) { return fabs(x); }
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
static inline double asin_edge_distance(double x) { return fabs(fabs(x) - 1.0); }
static inline double asin_forward(double x) { return asin(x); }
static inline void asin_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = 1.0 / sqrt((1.0 - x) * (1.0 + x));
}

static inline int acos_domain(double x) { return fabs(x) <= 1.0; }
static inline double acos_edge_distance(double x) { return fabs(fabs(x) - 1.0); }
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
static inline double acosh_edge_distance(double x) { return fabs(x - 1.0); }
static inline double acosh_forward(double x) { return acosh(x); }
static inline void acosh_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = 1.0 / (sqrt(x - 1.0) * sqrt(x + 1.0));
}

static inline int atanh_domain(double x) { return fabs(x) < 1.0; }
static inline double atanh_edge_distance(double x) { return fabs(fabs(x) - 1.0); }
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

static inline double gelu_forward(double x) { return 0.5 * x * formula_erfc(-x * 0.7071067811865476); }
static inline void gelu_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = 0.5 * formula_erfc(-x * 0.7071067811865476) + x * 0.3989422804014327 * exp(-0.5 * x * x);
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

static inline double erf_forward(double x) { return formula_erf(x); }
static inline void erf_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = 1.1283791670955126 * exp(-(x * x));
}

static inline double erfc_forward(double x) { return formula_erfc(x); }
static inline void erfc_local_grads(double x, double out, double *local_grads)
{
    (void)out;
    local_grads[0] = -1.1283791670955126 * exp(-(x * x));
}

static inline int lgamma_domain(double x) { return (x > 0.0 || x > floor(x)) || x == -INFINITY; }
static inline double lgamma_edge_distance(double x) { return (x > 0.0 ? x : fabs(x - floor(x + 0.5))); }
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
    const double t2 = (fabs(x) < fabs(y) ? fabs(y) - fabs(x) : (t0 < t1 ? t0 : t1) / (1.0 + fabs(x / y)));
    const double t3 = fabs(y);
    return (t2 < t3 ? t2 : t3);
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

#endif
