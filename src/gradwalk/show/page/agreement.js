// do not edit; made by tools/generate.py from src/gradwalk/agreement.py

export const STEPS = [7.62939453125e-06, 0.0001220703125];

export function rounding(noise, step) {
  return noise / step;
}

export function is_at_kink(left, right, wide_left, wide_right, rounded) {
  const t0 = Math.abs(right - left);
  return t0 > 0.001 * (Math.abs(left) > Math.abs(right) ? Math.abs(left) : Math.abs(right)) && Math.abs(wide_right - wide_left) < 1.5 * t0 && t0 > 8.0 * rounded;
}

export function inaccuracy(slope, wide_slope, rounded) {
  return 2.0 * Math.abs(slope - wide_slope) + 2.0 * rounded;
}

export function verdict(gradient, slope, left, right, at_kink, inaccurate, size) {
  const t0 = (left < right ? left : right);
  const t1 = Math.abs(t0);
  const t2 = (t1 < 1.0 ? 1.0 : t1);
  const t3 = (left < right ? right : left);
  const t4 = Math.abs(t3);
  const t5 = 1e-06 * (t2 > t4 ? t2 : t4) + inaccurate;
  const t6 = Math.abs(gradient - slope);
  const t7 = Math.abs(gradient);
  const t8 = Math.abs(slope);
  const t9 = (t7 > t8 ? t7 : t8);
  const t10 = Math.abs(size);
  const t11 = (t10 < 1.0 ? 1.0 : t10);
  const t12 = 1e-06 * (t11 > 0.0 ? t11 : 0.0);
  return (slope <= 0.0 || slope >= 0.0 ? (at_kink ? (t0 - t5 <= gradient && gradient <= t3 + t5 ? 1.0 : -1.0) : (t6 <= 1e-06 * (t9 > t12 ? t9 : t12) || gradient === slope ? 1.0 : (t6 <= inaccurate ? 0.0 : -1.0))) : 0.0);
}
