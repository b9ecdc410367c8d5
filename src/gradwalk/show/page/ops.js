// do not edit; made by tools/generate.py from src/gradwalk/ops.py

import { copysign, erf, erfc, pow } from "./special.js";

export function hypot(x, y) {
  const t0 = Math.abs(x);
  const t1 = Math.abs(y);
  const t2 = (t0 >= t1 ? t0 : t1);
  const t3 = (t0 >= t1 ? t1 : t0) / t2;
  return ((t2 === 0.0 || t0 === Infinity) || t1 === Infinity ? t0 + t1 : t2 * Math.sqrt(1.0 + t3 * t3));
}

export function power(x, y) {
  return (y === 2.0 ? x * x : pow(x, y));
}

export function cbrt(x) {
  const t0 = Math.abs(x);
  const t1 = pow(t0, 0.3333333333333333);
  return copysign((t0 === 0.0 || t0 === Infinity ? t0 : t1 - (t1 - t0 / t1 / t1) / 3.0), x);
}

export function sigmoid(x) {
  const t0 = Math.exp(-Math.abs(x));
  return (x < 0.0 ? t0 : 1.0) / (1.0 + t0);
}

export function lgamma_above_half(x) {
  const t0 = x < 8.0;
  const t1 = (t0 ? x + 8.0 : x);
  const t2 = 1.0 / t1;
  const t3 = t2 * t2;
  const t4 = (t1 - 0.5) * (Math.log(t1) - 1.0) + ((((((((-0.029550653594771242 * t3 + 0.00641025641025641) * t3 + -0.0019175269175269176) * t3 + 0.0008417508417508417) * t3 + -0.0005952380952380953) * t3 + 0.0007936507936507937) * t3 + -0.002777777777777778) * t3 + 0.08333333333333333) * t2 + 0.9189385332046727 - 0.5);
  return (t0 ? t4 - Math.log((t0 ? x * (x + 1.0) * (x + 2.0) * (x + 3.0) * (x + 4.0) * (x + 5.0) * (x + 6.0) * (x + 7.0) : 1.0)) : t4);
}

export function lgamma_near_two(x) {
  const t0 = x < 1.5;
  const t1 = x - (t0 ? 1.0 : 2.0);
  const t2 = t1 * ((((((((((((((((((((((((((((-6.4229645638381e-11 * t1 + 1.330476437424449e-10) * t1 + -2.7595228851242334e-10) * t1 + 5.731367241678862e-10) * t1 + -1.1921401405860912e-09) * t1 + 2.4836745438024785e-09) * t1 + -5.183475041970047e-09) * t1 + 1.0838659214896955e-08) * t1 + -2.2711094608943164e-08) * t1 + 4.7698101693639804e-08) * t1 + -1.0043224823968099e-07) * t1 + 2.1207184805554665e-07) * t1 + -4.492469198764566e-07) * t1 + 9.55141213040742e-07) * t1 + -2.039215753801366e-06) * t1 + 4.374866789907488e-06) * t1 + -9.439488275268397e-06) * t1 + 2.050721277567069e-05) * t1 + -4.492623673813314e-05) * t1 + 9.945751278180853e-05) * t1 + -0.00022315475845357939) * t1 + 0.0005096695247430425) * t1 + -0.001192753911703261) * t1 + 0.0028905103307415234) * t1 + -0.007385551028673986) * t1 + 0.020580808427784546) * t1 + -0.0673523010531981) * t1 + 0.3224670334241132) * t1 + 0.42278433509846713);
  return (t0 ? t2 - Math.log1p(t1) : t2);
}

export function sin_pi(x) {
  const t0 = x - Math.floor(x);
  return Math.sin(3.141592653589793 * (t0 > 0.5 ? 1.0 - t0 : t0));
}

export function digamma(x) {
  const t0 = x < 0.5;
  const t1 = (t0 ? 1.0 - x : x);
  const t2 = t1 < 8.0;
  const t3 = (t2 ? t1 + 8.0 : t1);
  const t4 = 1.0 / t3;
  const t5 = t4 * t4;
  const t6 = Math.log(t3) - 0.5 * t4 - (((((((-0.4432598039215686 * t5 + 0.08333333333333333) * t5 + -0.021092796092796094) * t5 + 0.007575757575757575) * t5 + -0.0041666666666666675) * t5 + 0.003968253968253968) * t5 + -0.008333333333333333) * t5 + 0.08333333333333333) * t5;
  const t7 = (t2 ? t6 - (1.0 / t1 + 1.0 / (t1 + 1.0) + 1.0 / (t1 + 2.0) + 1.0 / (t1 + 3.0) + 1.0 / (t1 + 4.0) + 1.0 / (t1 + 5.0) + 1.0 / (t1 + 6.0) + 1.0 / (t1 + 7.0)) : t6);
  const t8 = x - Math.floor(x);
  return (t0 ? t7 - 3.141592653589793 / Math.tan(3.141592653589793 * (t8 > 0.5 ? t8 - 1.0 : t8)) : t7);
}

export function lgamma(x) {
  const t0 = Math.abs(x);
  const t1 = x < 0.5;
  const t2 = (t1 ? 1.0 - x : x);
  const t3 = (t2 < 2.5 ? lgamma_near_two((t2 < 2.5 ? t2 : 2.0)) : lgamma_above_half(t2));
  return (t0 === Infinity ? Infinity : (t1 ? 1.1447298858494002 - Math.log(Math.abs(sin_pi(x))) - t3 : t3));
}

export const OPS = {
  add: {
    symbol: "+", operator: true, aliases: [], inputs: ["x", "y"],
    parameters: [], defaults: [], overflows: false,
    doc: "Sum.",
    expected: "",
    latex: "x + y",
    localGradsLatex: ["1", "1"],
    domain(x, y) { return true; },
    forward(x, y) { return x + y; },
    localGrads(x, y, out) { return [1.0, 1.0]; },
  },
  sub: {
    symbol: "-", operator: true, aliases: [], inputs: ["x", "y"],
    parameters: [], defaults: [], overflows: false,
    doc: "Difference.",
    expected: "",
    latex: "x - y",
    localGradsLatex: ["1", "-1"],
    domain(x, y) { return true; },
    forward(x, y) { return x - y; },
    localGrads(x, y, out) { return [1.0, -1.0]; },
  },
  mul: {
    symbol: "*", operator: true, aliases: [], inputs: ["x", "y"],
    parameters: [], defaults: [], overflows: false,
    doc: "Product.",
    expected: "",
    latex: "x\\,y",
    localGradsLatex: ["y", "x"],
    domain(x, y) { return true; },
    forward(x, y) { return x * y; },
    localGrads(x, y, out) { return [y, x]; },
  },
  div: {
    symbol: "/", operator: true, aliases: [], inputs: ["x", "y"],
    parameters: [], defaults: [], overflows: false,
    doc: "Quotient.",
    expected: "a divisor other than 0",
    latex: "\\frac{x}{y}",
    localGradsLatex: ["\\frac{1}{y}", "-\\frac{\\mathit{out}}{y}"],
    domain(x, y) { return y < 0.0 || y > 0.0; },
    forward(x, y) { return x / y; },
    localGrads(x, y, out) { return [1.0 / y, -(out / y)]; },
  },
  pow: {
    symbol: "**", operator: false, aliases: [], inputs: ["x", "y"],
    parameters: [], defaults: [], overflows: true,
    doc: "Power with a Value as the exponent.",
    expected: "a positive base, 0 with an exponent of at least 0, or a negative base with a whole exponent",
    latex: "{x}^{y}",
    localGradsLatex: ["y\\,{x}^{y - 1}", "\\mathit{out}\\,\\ln\\left(x\\right)"],
    domain(x, y) {
      const t0 = Math.floor(y);
      return (x > 0.0 || (x === 0.0 && y >= 0.0)) || (x < 0.0 && y === t0);
    },
    forward(x, y) { return pow(x, y); },
    localGrads(x, y, out) {
      return [y * (y === 0.0 && Math.abs(x) < 1e-300 ? 0.0 : pow(x, y - 1.0)), (x === 0.0 ? 0.0 : out * Math.log(x))];
    },
  },
  pow_number: {
    symbol: "**n", operator: true, aliases: [], inputs: ["x"],
    parameters: ["n"], defaults: [], overflows: true,
    doc: "Power by a plain number.",
    expected: "a positive base, 0 with an exponent of at least 0, or a negative base with a whole exponent",
    latex: "{x}^{n}",
    localGradsLatex: ["n\\,{x}^{n - 1}"],
    domain(x, n) {
      const t0 = Math.floor(n);
      return (x > 0.0 || (x === 0.0 && n >= 0.0)) || (x < 0.0 && n === t0);
    },
    forward(x, n) { return power(x, n); },
    localGrads(x, n, out) { return [(n === 2.0 ? 2.0 * x : (n === 0.0 ? 0.0 : n * pow(x, n - 1.0)))]; },
  },
  neg: {
    symbol: "neg", operator: true, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Negation.",
    expected: "",
    latex: "-x",
    localGradsLatex: ["-1"],
    domain(x) { return true; },
    forward(x) { return -x; },
    localGrads(x, out) { return [-1.0]; },
  },
  abs: {
    symbol: "abs", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Absolute value.",
    expected: "",
    latex: "\\left|x\\right|",
    localGradsLatex: ["\\begin{cases}1 & x > 0 \\\\ -1 & x < 0 \\\\ 0 & \\text{otherwise}\\end{cases}"],
    domain(x) { return true; },
    forward(x) { return Math.abs(x); },
    localGrads(x, out) { return [(x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : 0.0))]; },
  },
  exp: {
    symbol: "exp", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: true,
    doc: "Exponential.",
    expected: "",
    latex: "\\exp\\left(x\\right)",
    localGradsLatex: ["\\mathit{out}"],
    domain(x) { return true; },
    forward(x) { return Math.exp(x); },
    localGrads(x, out) { return [out]; },
  },
  expm1: {
    symbol: "expm1", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: true,
    doc: "exp(x) - 1, exact near 0.",
    expected: "",
    latex: "\\operatorname{expm1}\\left(x\\right)",
    localGradsLatex: ["\\exp\\left(x\\right)"],
    domain(x) { return true; },
    forward(x) { return Math.expm1(x); },
    localGrads(x, out) { return [Math.exp(x)]; },
  },
  log: {
    symbol: "log", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Natural logarithm.",
    expected: "x > 0",
    latex: "\\ln\\left(x\\right)",
    localGradsLatex: ["\\frac{1}{x}"],
    domain(x) { return x > 0.0; },
    forward(x) { return Math.log(x); },
    localGrads(x, out) { return [1.0 / x]; },
  },
  log1p: {
    symbol: "log1p", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "log(1 + x), exact near 0.",
    expected: "x > -1",
    latex: "\\operatorname{log1p}\\left(x\\right)",
    localGradsLatex: ["\\frac{1}{1 + x}"],
    domain(x) { return x > -1.0; },
    forward(x) { return Math.log1p(x); },
    localGrads(x, out) { return [1.0 / (1.0 + x)]; },
  },
  log2: {
    symbol: "log2", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Logarithm to base 2.",
    expected: "x > 0",
    latex: "\\log_2\\left(x\\right)",
    localGradsLatex: ["\\frac{\\tfrac{1}{\\ln 2}}{x}"],
    domain(x) { return x > 0.0; },
    forward(x) { return Math.log2(x); },
    localGrads(x, out) { return [1.4426950408889634 / x]; },
  },
  log10: {
    symbol: "log10", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Logarithm to base 10.",
    expected: "x > 0",
    latex: "\\log_{10}\\left(x\\right)",
    localGradsLatex: ["\\frac{\\tfrac{1}{\\ln 10}}{x}"],
    domain(x) { return x > 0.0; },
    forward(x) { return Math.log10(x); },
    localGrads(x, out) { return [0.43429448190325176 / x]; },
  },
  sqrt: {
    symbol: "sqrt", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Square root.",
    expected: "x >= 0",
    latex: "\\sqrt{x}",
    localGradsLatex: ["\\frac{1}{2\\,\\mathit{out}}"],
    domain(x) { return x >= 0.0; },
    forward(x) { return Math.sqrt(x); },
    localGrads(x, out) { return [0.5 / Math.abs(out)]; },
  },
  cbrt: {
    symbol: "cbrt", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Cube root, also of negative numbers.",
    expected: "",
    latex: "\\sqrt[3]{x}",
    localGradsLatex: ["\\frac{1}{3\\,{\\mathit{out}}^{2}}"],
    domain(x) { return true; },
    forward(x) { return cbrt(x); },
    localGrads(x, out) { return [1.0 / (3.0 * out * out)]; },
  },
  sin: {
    symbol: "sin", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Sine.",
    expected: "a finite x",
    latex: "\\sin\\left(x\\right)",
    localGradsLatex: ["\\cos\\left(x\\right)"],
    domain(x) { return Math.abs(x) < Infinity; },
    forward(x) { return Math.sin(x); },
    localGrads(x, out) { return [Math.cos(x)]; },
  },
  cos: {
    symbol: "cos", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Cosine.",
    expected: "a finite x",
    latex: "\\cos\\left(x\\right)",
    localGradsLatex: ["-\\sin\\left(x\\right)"],
    domain(x) { return Math.abs(x) < Infinity; },
    forward(x) { return Math.cos(x); },
    localGrads(x, out) { return [-Math.sin(x)]; },
  },
  tan: {
    symbol: "tan", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Tangent.",
    expected: "a finite x",
    latex: "\\tan\\left(x\\right)",
    localGradsLatex: ["1 + {\\mathit{out}}^{2}"],
    domain(x) { return Math.abs(x) < Infinity; },
    forward(x) { return Math.tan(x); },
    localGrads(x, out) { return [1.0 + out * out]; },
  },
  asin: {
    symbol: "asin", operator: false, aliases: ["arcsin"], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Inverse sine.",
    expected: "-1 <= x <= 1",
    latex: "\\arcsin\\left(x\\right)",
    localGradsLatex: ["\\frac{1}{\\sqrt{1 - {x}^{2}}}"],
    domain(x) { return Math.abs(x) <= 1.0; },
    forward(x) { return Math.asin(x); },
    localGrads(x, out) { return [1.0 / Math.sqrt((1.0 - x) * (1.0 + x))]; },
  },
  acos: {
    symbol: "acos", operator: false, aliases: ["arccos"], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Inverse cosine.",
    expected: "-1 <= x <= 1",
    latex: "\\arccos\\left(x\\right)",
    localGradsLatex: ["-\\frac{1}{\\sqrt{1 - {x}^{2}}}"],
    domain(x) { return Math.abs(x) <= 1.0; },
    forward(x) { return Math.acos(x); },
    localGrads(x, out) { return [-(1.0 / Math.sqrt((1.0 - x) * (1.0 + x)))]; },
  },
  atan: {
    symbol: "atan", operator: false, aliases: ["arctan"], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Inverse tangent.",
    expected: "",
    latex: "\\arctan\\left(x\\right)",
    localGradsLatex: ["\\frac{1}{1 + {x}^{2}}"],
    domain(x) { return true; },
    forward(x) { return Math.atan(x); },
    localGrads(x, out) { return [1.0 / (1.0 + x * x)]; },
  },
  atan2: {
    symbol: "atan2", operator: false, aliases: ["arctan2"], inputs: ["y", "x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Angle of the point (x, y).",
    expected: "",
    latex: "\\operatorname{atan2}\\left(y, x\\right)",
    localGradsLatex: ["\\frac{x}{{x}^{2} + {y}^{2}}", "-\\frac{y}{{x}^{2} + {y}^{2}}"],
    domain(y, x) { return true; },
    forward(y, x) { return Math.atan2(y, x); },
    localGrads(y, x, out) {
      return [(x === 0.0 && y === 0.0 ? 0.0 : x / hypot(y, x) / hypot(y, x)), (x === 0.0 && y === 0.0 ? 0.0 : -(y / hypot(y, x) / hypot(y, x)))];
    },
  },
  sinh: {
    symbol: "sinh", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: true,
    doc: "Hyperbolic sine.",
    expected: "",
    latex: "\\sinh\\left(x\\right)",
    localGradsLatex: ["\\cosh\\left(x\\right)"],
    domain(x) { return true; },
    forward(x) { return Math.sinh(x); },
    localGrads(x, out) { return [Math.cosh(x)]; },
  },
  cosh: {
    symbol: "cosh", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: true,
    doc: "Hyperbolic cosine.",
    expected: "",
    latex: "\\cosh\\left(x\\right)",
    localGradsLatex: ["\\sinh\\left(x\\right)"],
    domain(x) { return true; },
    forward(x) { return Math.cosh(x); },
    localGrads(x, out) { return [Math.sinh(x)]; },
  },
  tanh: {
    symbol: "tanh", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Hyperbolic tangent.",
    expected: "",
    latex: "\\tanh\\left(x\\right)",
    localGradsLatex: ["1 - {\\mathit{out}}^{2}"],
    domain(x) { return true; },
    forward(x) { return Math.tanh(x); },
    localGrads(x, out) { return [4.0 * sigmoid(2.0 * x) * sigmoid(-2.0 * x)]; },
  },
  asinh: {
    symbol: "asinh", operator: false, aliases: ["arcsinh"], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Inverse hyperbolic sine.",
    expected: "",
    latex: "\\operatorname{asinh}\\left(x\\right)",
    localGradsLatex: ["\\frac{1}{\\sqrt{{x}^{2} + 1}}"],
    domain(x) { return true; },
    forward(x) { return Math.asinh(x); },
    localGrads(x, out) { return [1.0 / hypot(x, 1.0)]; },
  },
  acosh: {
    symbol: "acosh", operator: false, aliases: ["arccosh"], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Inverse hyperbolic cosine.",
    expected: "x >= 1",
    latex: "\\operatorname{acosh}\\left(x\\right)",
    localGradsLatex: ["\\frac{1}{\\sqrt{{x}^{2} - 1}}"],
    domain(x) { return x >= 1.0; },
    forward(x) { return Math.acosh(x); },
    localGrads(x, out) { return [1.0 / (Math.sqrt(x - 1.0) * Math.sqrt(x + 1.0))]; },
  },
  atanh: {
    symbol: "atanh", operator: false, aliases: ["arctanh"], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Inverse hyperbolic tangent.",
    expected: "-1 < x < 1",
    latex: "\\operatorname{atanh}\\left(x\\right)",
    localGradsLatex: ["\\frac{1}{1 - {x}^{2}}"],
    domain(x) { return Math.abs(x) < 1.0; },
    forward(x) { return Math.atanh(x); },
    localGrads(x, out) { return [1.0 / ((1.0 - x) * (1.0 + x))]; },
  },
  relu: {
    symbol: "ReLU", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Rectified linear unit: the positive part of x.",
    expected: "",
    latex: "\\begin{cases}0 & x < 0 \\\\ x & \\text{otherwise}\\end{cases}",
    localGradsLatex: ["\\begin{cases}1 & x > 0 \\\\ 0 & \\text{otherwise}\\end{cases}"],
    domain(x) { return true; },
    forward(x) { return (x < 0.0 ? 0.0 : x); },
    localGrads(x, out) { return [(x > 0.0 ? 1.0 : 0.0)]; },
  },
  leaky_relu: {
    symbol: "leaky_relu", operator: false, aliases: [], inputs: ["x"],
    parameters: ["slope"], defaults: [0.01], overflows: false,
    doc: "x, scaled by `slope` below 0.",
    expected: "",
    latex: "\\begin{cases}\\mathit{slope}\\,x & x < 0 \\\\ x & \\text{otherwise}\\end{cases}",
    localGradsLatex: ["\\begin{cases}1 & x > 0 \\\\ \\mathit{slope} & \\text{otherwise}\\end{cases}"],
    domain(x, slope) { return true; },
    forward(x, slope) { return (x < 0.0 ? slope * x : x); },
    localGrads(x, slope, out) { return [(x > 0.0 ? 1.0 : slope)]; },
  },
  elu: {
    symbol: "elu", operator: false, aliases: [], inputs: ["x"],
    parameters: ["alpha"], defaults: [1.0], overflows: false,
    doc: "Exponential linear unit: x above 0, alpha (exp(x) - 1) below.",
    expected: "",
    latex: "\\begin{cases}\\mathit{alpha}\\,\\operatorname{expm1}\\left(x\\right) & x < 0 \\\\ x & \\text{otherwise}\\end{cases}",
    localGradsLatex: ["\\begin{cases}1 & x > 0 \\\\ \\mathit{alpha}\\,\\exp\\left(x\\right) & \\text{otherwise}\\end{cases}"],
    domain(x, alpha) { return true; },
    forward(x, alpha) { return (x < 0.0 ? alpha * Math.expm1(x) : x); },
    localGrads(x, alpha, out) { return [(x > 0.0 ? 1.0 : alpha * Math.exp(x))]; },
  },
  gelu: {
    symbol: "gelu", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Gaussian error linear unit, exact (not the tanh approximation).",
    expected: "",
    latex: "0.5\\,x\\,\\operatorname{erfc}\\left(-x\\,\\tfrac{1}{\\sqrt{2}}\\right)",
    localGradsLatex: ["0.5\\,\\operatorname{erfc}\\left(-x\\,\\tfrac{1}{\\sqrt{2}}\\right) + x\\,\\tfrac{1}{\\sqrt{2\\pi}}\\,\\exp\\left(-0.5\\,x\\,x\\right)"],
    domain(x) { return true; },
    forward(x) { return 0.5 * x * erfc(-x * 0.7071067811865476); },
    localGrads(x, out) {
      return [0.5 * erfc(-x * 0.7071067811865476) + x * 0.3989422804014327 * Math.exp(-0.5 * x * x)];
    },
  },
  silu: {
    symbol: "silu", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "x times its sigmoid; also called swish.",
    expected: "",
    latex: "x\\,\\sigma\\left(x\\right)",
    localGradsLatex: ["\\sigma\\left(x\\right)\\,\\left(1 + x\\,\\sigma\\left(-x\\right)\\right)"],
    domain(x) { return true; },
    forward(x) { return x * sigmoid(x); },
    localGrads(x, out) { return [sigmoid(x) * (1.0 + x * sigmoid(-x))]; },
  },
  sigmoid: {
    symbol: "sigmoid", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Logistic function 1 / (1 + exp(-x)).",
    expected: "",
    latex: "\\frac{1}{1 + \\exp\\left(-x\\right)}",
    localGradsLatex: ["\\mathit{out}\\,\\left(1 - \\mathit{out}\\right)"],
    domain(x) { return true; },
    forward(x) { return sigmoid(x); },
    localGrads(x, out) { return [out * sigmoid(-x)]; },
  },
  softplus: {
    symbol: "softplus", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "log(1 + exp(x)), a smooth relu.",
    expected: "",
    latex: "\\ln\\left(1 + \\exp\\left(x\\right)\\right)",
    localGradsLatex: ["\\sigma\\left(x\\right)"],
    domain(x) { return true; },
    forward(x) { return (x < 0.0 ? 0.0 : x) + Math.log1p(Math.exp(-Math.abs(x))); },
    localGrads(x, out) { return [sigmoid(x)]; },
  },
  erf: {
    symbol: "erf", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Error function.",
    expected: "",
    latex: "\\operatorname{erf}\\left(x\\right)",
    localGradsLatex: ["\\tfrac{2}{\\sqrt{\\pi}}\\,\\exp\\left(-{x}^{2}\\right)"],
    domain(x) { return true; },
    forward(x) { return erf(x); },
    localGrads(x, out) { return [1.1283791670955126 * Math.exp(-(x * x))]; },
  },
  erfc: {
    symbol: "erfc", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "1 - erf(x), exact for large x.",
    expected: "",
    latex: "\\operatorname{erfc}\\left(x\\right)",
    localGradsLatex: ["-\\tfrac{2}{\\sqrt{\\pi}}\\,\\exp\\left(-{x}^{2}\\right)"],
    domain(x) { return true; },
    forward(x) { return erfc(x); },
    localGrads(x, out) { return [-1.1283791670955126 * Math.exp(-(x * x))]; },
  },
  lgamma: {
    symbol: "lgamma", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: true,
    doc: "Logarithm of the absolute value of the gamma function.",
    expected: "x > 0 or not a whole number",
    latex: "\\operatorname{lgamma}\\left(x\\right)",
    localGradsLatex: ["\\psi\\left(x\\right)"],
    domain(x) { return x > 0.0 || x > Math.floor(x); },
    forward(x) { return lgamma(x); },
    localGrads(x, out) { return [digamma(x)]; },
  },
  minimum: {
    symbol: "minimum", operator: false, aliases: [], inputs: ["x", "y"],
    parameters: [], defaults: [], overflows: false,
    doc: "The smaller of two.",
    expected: "",
    latex: "\\begin{cases}x & x \\le y \\\\ y & \\text{otherwise}\\end{cases}",
    localGradsLatex: ["\\begin{cases}1 & x \\le y \\\\ 0 & \\text{otherwise}\\end{cases}", "\\begin{cases}0 & x \\le y \\\\ 1 & \\text{otherwise}\\end{cases}"],
    domain(x, y) { return true; },
    forward(x, y) { return (x <= y ? x : (y < x ? y : x + y)); },
    localGrads(x, y, out) { return [(x <= y ? 1.0 : 0.0), (x <= y ? 0.0 : 1.0)]; },
  },
  maximum: {
    symbol: "maximum", operator: false, aliases: [], inputs: ["x", "y"],
    parameters: [], defaults: [], overflows: false,
    doc: "The larger of two.",
    expected: "",
    latex: "\\begin{cases}x & x \\ge y \\\\ y & \\text{otherwise}\\end{cases}",
    localGradsLatex: ["\\begin{cases}1 & x \\ge y \\\\ 0 & \\text{otherwise}\\end{cases}", "\\begin{cases}0 & x \\ge y \\\\ 1 & \\text{otherwise}\\end{cases}"],
    domain(x, y) { return true; },
    forward(x, y) { return (x >= y ? x : (y > x ? y : x + y)); },
    localGrads(x, y, out) { return [(x >= y ? 1.0 : 0.0), (x >= y ? 0.0 : 1.0)]; },
  },
  hypot: {
    symbol: "hypot", operator: false, aliases: [], inputs: ["x", "y"],
    parameters: [], defaults: [], overflows: false,
    doc: "Length of the vector (x, y), without overflow on the way.",
    expected: "",
    latex: "\\sqrt{{x}^2 + {y}^2}",
    localGradsLatex: ["\\frac{x}{\\mathit{out}}", "\\frac{y}{\\mathit{out}}"],
    domain(x, y) { return true; },
    forward(x, y) { return hypot(x, y); },
    localGrads(x, y, out) { return [(out === 0.0 ? 0.0 : x / out), (out === 0.0 ? 0.0 : y / out)]; },
  },
  fmod: {
    symbol: "fmod", operator: false, aliases: [], inputs: ["x", "y"],
    parameters: [], defaults: [], overflows: false,
    doc: "Remainder with the sign of x, as C's fmod.",
    expected: "a finite x and a divisor other than 0",
    latex: "x \\bmod y",
    localGradsLatex: ["1", "\\lfloor \\frac{\\mathit{out} - x}{y} + 0.5 \\rfloor"],
    domain(x, y) { return Math.abs(x) < Infinity && (y < 0.0 || y > 0.0); },
    forward(x, y) { return x % y; },
    localGrads(x, y, out) { return [1.0, Math.floor((out - x) / y + 0.5)]; },
  },
  copysign: {
    symbol: "copysign", operator: false, aliases: [], inputs: ["x", "y"],
    parameters: [], defaults: [], overflows: false,
    doc: "The size of x with the sign of y.",
    expected: "",
    latex: "\\operatorname{copysign}\\left(x, y\\right)",
    localGradsLatex: ["\\begin{cases}1 & x > 0 \\\\ -1 & x < 0 \\\\ 0 & \\text{otherwise}\\end{cases}\\,\\operatorname{copysign}\\left(1, y\\right)", "0"],
    domain(x, y) { return true; },
    forward(x, y) { return copysign(x, (y === y ? y : 1.0)); },
    localGrads(x, y, out) {
      return [(x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : 0.0)) * copysign(1.0, (y === y ? y : 1.0)), 0.0];
    },
  },
  floor: {
    symbol: "floor", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Round down.",
    expected: "",
    latex: "\\lfloor x \\rfloor",
    localGradsLatex: ["0"],
    domain(x) { return true; },
    forward(x) { return Math.floor(x); },
    localGrads(x, out) { return [0.0]; },
  },
  ceil: {
    symbol: "ceil", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "Round up.",
    expected: "",
    latex: "\\lceil x \\rceil",
    localGradsLatex: ["0"],
    domain(x) { return true; },
    forward(x) { return Math.ceil(x); },
    localGrads(x, out) { return [0.0]; },
  },
  sign: {
    symbol: "sign", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "-1, 0 or 1.",
    expected: "",
    latex: "\\begin{cases}1 & x > 0 \\\\ -1 & x < 0 \\\\ x & \\text{otherwise}\\end{cases}",
    localGradsLatex: ["0"],
    domain(x) { return true; },
    forward(x) { return (x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : x)); },
    localGrads(x, out) { return [0.0]; },
  },
  where: {
    symbol: "where", operator: false, aliases: [], inputs: ["condition", "x", "y"],
    parameters: [], defaults: [], overflows: false,
    doc: "x where the condition is not 0, else y.",
    expected: "",
    latex: "\\begin{cases}x & \\mathit{condition} < 0 \\vee \\mathit{condition} > 0 \\\\ y & \\text{otherwise}\\end{cases}",
    localGradsLatex: ["0", "\\begin{cases}1 & \\mathit{condition} < 0 \\vee \\mathit{condition} > 0 \\\\ 0 & \\text{otherwise}\\end{cases}", "\\begin{cases}0 & \\mathit{condition} < 0 \\vee \\mathit{condition} > 0 \\\\ 1 & \\text{otherwise}\\end{cases}"],
    domain(condition, x, y) { return true; },
    forward(condition, x, y) { return (condition < 0.0 || condition > 0.0 ? x : y); },
    localGrads(condition, x, y, out) {
      return [0.0, (condition < 0.0 || condition > 0.0 ? 1.0 : 0.0), (condition < 0.0 || condition > 0.0 ? 0.0 : 1.0)];
    },
  },
  stop_gradient: {
    symbol: "stop_gradient", operator: false, aliases: [], inputs: ["x"],
    parameters: [], defaults: [], overflows: false,
    doc: "x itself, but no gradient flows back through it.",
    expected: "",
    latex: "x",
    localGradsLatex: ["0"],
    domain(x) { return true; },
    forward(x) { return x; },
    localGrads(x, out) { return [0.0]; },
  },
  clamp: {
    symbol: "clamp", operator: false, aliases: [], inputs: ["x"],
    parameters: ["low", "high"], defaults: [], overflows: false,
    doc: "x, held between two numbers.",
    expected: "low <= high",
    latex: "\\begin{cases}\\mathit{low} & x < \\mathit{low} \\\\ \\mathit{high} & x > \\mathit{high} \\\\ x & \\text{otherwise}\\end{cases}",
    localGradsLatex: ["\\begin{cases}0 & x < \\mathit{low} \\vee x > \\mathit{high} \\\\ 1 & \\text{otherwise}\\end{cases}"],
    domain(x, low, high) { return low <= high; },
    forward(x, low, high) { return (x < low ? low : (x > high ? high : x)); },
    localGrads(x, low, high, out) { return [(x < low || x > high ? 0.0 : 1.0)]; },
  },
};
