// What JavaScript's Math lacks and the generated ops.js needs: copysign, pow as C has it, erf and erfc.
// Both error functions keep a relative error below 2e-15 wherever the result is a normal number.

import { exp } from "./rounded.js";

const TWO_OVER_SQRT_PI = 2 / Math.sqrt(Math.PI);
const ONE_OVER_SQRT_PI = 1 / Math.sqrt(Math.PI);

// Below it the series is short and loses nothing; above it 1 - erf would lose digits, and the fraction is short enough.
const SERIES_BELOW = 0.6;

// erfc is less than half the smallest number from here on, and erf has been 1 for long.
const NOTHING_LEFT = 27.3;

/** The size of `size` with the sign of `sign`; the sign of a zero counts, a nan's is taken as plus. */
export function copysign(size, sign) {
  const negative = sign < 0 || Object.is(sign, -0);
  return negative ? -Math.abs(size) : Math.abs(size);
}

/** Math.pow, but 1 to any power is 1, and so is -1 to an infinite one, as in C; JavaScript says nan. */
export function pow(base, exponent) {
  if (base === 1 || (base === -1 && Math.abs(exponent) === Infinity)) return 1;
  return Math.pow(base, exponent);
}

/** exp(-x²); rounding x² first would cost as many units in the last place as x² has. */
function gaussian(x) {
  const head = Math.fround(x); // 24 bits: its square is exact
  return exp(-head * head) * exp((head - x) * (head + x));
}

/** erf(x) for |x| < 0.6: 2/sqrt(pi) (x - x³/3 + x⁵/(2!·5) - …), whose terms shrink too fast to cancel. */
function series(x) {
  const square = x * x;
  let power = x;
  let sum = x;
  for (let n = 1; Math.abs(power) > 1e-17 * Math.abs(sum); n += 1) {
    power *= -square / n;
    sum += power / (2 * n + 1);
  }
  return TWO_OVER_SQRT_PI * sum;
}

/** erfc(x) for x ≥ 0.6: exp(-x²)/sqrt(pi) / (x + ½/(x + 1/(x + 3/2/(x + …)))), from the inside out. */
function continuedFraction(x) {
  let denominator = x;
  for (let k = Math.ceil(20 + 180 / (x * x)); k > 0; k -= 1) {
    denominator = x + (0.5 * k) / denominator;
  }
  return (ONE_OVER_SQRT_PI * gaussian(x)) / denominator;
}

/** The error function. */
export function erf(x) {
  const size = Math.abs(x);
  if (size < SERIES_BELOW) return series(x);
  if (size < NOTHING_LEFT) return copysign(1 - continuedFraction(size), x);
  return x === x ? copysign(1, x) : x;
}

/** 1 - erf(x), exact for large x. */
export function erfc(x) {
  const size = Math.abs(x);
  if (size < SERIES_BELOW) return 1 - series(x);
  if (size < NOTHING_LEFT) {
    const tail = continuedFraction(size);
    return x < 0 ? 2 - tail : tail;
  }
  if (x !== x) return x;
  return x < 0 ? 2 : 0;
}
