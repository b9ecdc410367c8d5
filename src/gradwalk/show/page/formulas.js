// do not edit; made by tools/generate.py from src/gradwalk/ops.py

import { exp, log, sin, tan } from "./rounded.js";
import { copysign, pow } from "./special.js";

export function hypot(x, y) {
  const t0 = Math.abs(x);
  const t1 = Math.abs(y);
  const t2 = (t0 >= t1 ? t0 : t1);
  const t3 = (t0 >= t1 ? t1 : t0) / t2;
  return (t0 === Infinity || t1 === Infinity ? Infinity : (t2 === 0.0 ? t0 + t1 : t2 * Math.sqrt(1.0 + t3 * t3)));
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
  const t0 = exp(-Math.abs(x));
  return (x < 0.0 ? t0 : 1.0) / (1.0 + t0);
}

export function lgamma_above_half(x) {
  const t0 = x < 8.0;
  const t1 = (t0 ? x + 8.0 : x);
  const t2 = 1.0 / t1;
  const t3 = t2 * t2;
  const t4 = (t1 - 0.5) * (log(t1) - 1.0) + ((((((((-0.029550653594771242 * t3 + 0.00641025641025641) * t3 + -0.0019175269175269176) * t3 + 0.0008417508417508417) * t3 + -0.0005952380952380953) * t3 + 0.0007936507936507937) * t3 + -0.002777777777777778) * t3 + 0.08333333333333333) * t2 + 0.9189385332046727 - 0.5);
  return (t0 ? t4 - log((t0 ? x * (x + 1.0) * (x + 2.0) * (x + 3.0) * (x + 4.0) * (x + 5.0) * (x + 6.0) * (x + 7.0) : 1.0)) : t4);
}

export function lgamma_near_two(x) {
  const t0 = x < 1.5;
  const t1 = x - (t0 ? 1.0 : 2.0);
  const t2 = t1 * ((((((((((((((((((((((((((((-6.4229645638381e-11 * t1 + 1.330476437424449e-10) * t1 + -2.7595228851242334e-10) * t1 + 5.731367241678862e-10) * t1 + -1.1921401405860912e-09) * t1 + 2.4836745438024785e-09) * t1 + -5.183475041970047e-09) * t1 + 1.0838659214896955e-08) * t1 + -2.2711094608943164e-08) * t1 + 4.7698101693639804e-08) * t1 + -1.0043224823968099e-07) * t1 + 2.1207184805554665e-07) * t1 + -4.492469198764566e-07) * t1 + 9.55141213040742e-07) * t1 + -2.039215753801366e-06) * t1 + 4.374866789907488e-06) * t1 + -9.439488275268397e-06) * t1 + 2.050721277567069e-05) * t1 + -4.492623673813314e-05) * t1 + 9.945751278180853e-05) * t1 + -0.00022315475845357939) * t1 + 0.0005096695247430425) * t1 + -0.001192753911703261) * t1 + 0.0028905103307415234) * t1 + -0.007385551028673986) * t1 + 0.020580808427784546) * t1 + -0.0673523010531981) * t1 + 0.3224670334241132) * t1 + 0.42278433509846713);
  return (t0 ? t2 - Math.log1p(t1) : t2);
}

export function sin_pi(x) {
  return sin(3.141592653589793 * Math.abs(x - Math.floor(x + 0.5)));
}

export function digamma(x) {
  const t0 = x < 0.5;
  const t1 = (t0 ? 1.0 - x : x);
  const t2 = t1 < 8.0;
  const t3 = (t2 ? t1 + 8.0 : t1);
  const t4 = 1.0 / t3;
  const t5 = t4 * t4;
  const t6 = log(t3) - 0.5 * t4 - (((((((-0.4432598039215686 * t5 + 0.08333333333333333) * t5 + -0.021092796092796094) * t5 + 0.007575757575757575) * t5 + -0.0041666666666666675) * t5 + 0.003968253968253968) * t5 + -0.008333333333333333) * t5 + 0.08333333333333333) * t5;
  const t7 = (t2 ? t6 - (1.0 / t1 + 1.0 / (t1 + 1.0) + 1.0 / (t1 + 2.0) + 1.0 / (t1 + 3.0) + 1.0 / (t1 + 4.0) + 1.0 / (t1 + 5.0) + 1.0 / (t1 + 6.0) + 1.0 / (t1 + 7.0)) : t6);
  return (t0 ? t7 - 3.141592653589793 / tan(3.141592653589793 * (x - Math.floor(x + 0.5))) : t7);
}

export function lgamma(x) {
  const t0 = Math.abs(x);
  const t1 = x < 0.5;
  const t2 = (t1 ? 1.0 - x : x);
  const t3 = (t2 < 2.5 ? lgamma_near_two((t2 < 2.5 ? t2 : 2.0)) : lgamma_above_half(t2));
  return (t0 === Infinity ? Infinity : (t1 ? (Math.abs(x) < 1e-290 ? -log(Math.abs(x)) : 1.1447298858494002 - log(sin_pi(x)) - t3) : t3));
}
