// do not edit; made by tools/generate.py from src/gradwalk/agreement.py

export const STEPS = [7.62939453125e-06, 0.0001220703125];
export const TINY_STEP = 9.094947017729282e-13;

export function rounding(noise, step) {
  return noise / step;
}

export function is_at_kink(left, right, wide_left, wide_right, rounded) {
  const t0 = Math.abs(right - left);
  return t0 > 0.001 * (Math.abs(left) > Math.abs(right) ? Math.abs(left) : Math.abs(right)) && Math.abs(Math.abs(wide_right - wide_left) - t0) <= 0.001 * t0 + 2.0 * rounded && t0 > 8.0 * rounded;
}

export function inaccuracy(slope, wide_slope, gap, wide_gap, at_kink, rounded) {
  return 2.0 * Math.abs(slope - wide_slope) + Math.abs(wide_gap - (at_kink ? gap : 2.0 * gap)) + 2.0 * rounded;
}

export function contradicted(inaccurate, slope, other_slope, other_inaccurate) {
  const t0 = Math.abs(slope - other_slope);
  return (t0 > inaccurate + 4.0 * other_inaccurate ? 2.0 * t0 : inaccurate);
}

export function verdict(gradient, slope, left, right, at_kink, inaccurate) {
  const t0 = (left < right ? left : right);
  const t1 = (left < right ? right : left);
  const t2 = (at_kink ? (gradient < t0 ? t0 - gradient : (gradient > t1 ? gradient - t1 : 0.0)) : Math.abs(gradient - slope));
  const t3 = (Math.abs(gradient) > Math.abs(slope) ? Math.abs(gradient) : Math.abs(slope));
  return (slope <= 0.0 || slope >= 0.0 ? ((t2 <= 1e-06 * t3 || (t2 <= inaccurate && inaccurate <= 0.001 * t3)) || gradient === slope ? 1.0 : (t2 <= inaccurate ? 0.0 : -1.0)) : 0.0);
}
