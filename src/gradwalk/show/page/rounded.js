// exp, log, sin and their kin with the last digit that C's have. Browsers' own have another one in up to a tenth of all
// cases, and where numbers cancel, last digits are all that is left. Here each number has a second one, the rest that it
// was rounded by; what comes of it replaces what the browser says where the two are next to each other.

const SPLITTER = 2 ** 27 + 1;
const LN2 = [0.6931471806019545, -4.2009150726810846e-11]; // 33 bits, so that small multiples are exact, and the rest
const LOG2 = [0.30102999566361177, 3.694239077158931e-13]; // to base 10
const HALF_PI = [1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21]; // 33 bits, 33 bits, and the rest
const HALVINGS = 8;
const FARTHEST = 1e6; // beyond it multiples of half pi are not exact

let rest = 0; // of the number that was computed last

function sum(a, b) {
  const all = a + b;
  const other = all - a;
  rest = a - (all - other) + (b - other);
  return all;
}

function product(a, b) {
  const all = a * b;
  const aWide = SPLITTER * a;
  const bWide = SPLITTER * b;
  const aHigh = aWide - (aWide - a);
  const bHigh = bWide - (bWide - b);
  const aLow = a - aHigh;
  const bLow = b - bHigh;
  rest = aHigh * bHigh - all + aHigh * bLow + aLow * bHigh + aLow * bLow;
  return all;
}

// of numbers with their rests

function plus(a, aRest, b, bRest) {
  const all = sum(a, b);
  return sum(all, rest + (aRest + bRest));
}

function times(a, aRest, b, bRest) {
  const all = product(a, b);
  return sum(all, rest + (a * bRest + aRest * b));
}

function over(a, aRest, b, bRest) {
  const ratio = a / b;
  const back = times(ratio, 0, b, bRest);
  return sum(ratio, (a - back - rest + aRest) / b);
}

/** Ours if it is next to what the browser says: it is not at infinity, nor where digits run out near 0. */
const corrected = (theirs, ours) => (Math.abs(ours - theirs) < 1e-15 * Math.abs(theirs) ? ours : theirs);

/** e to the x, by its series for a small part of x, which is squared until it is all of it. */
function power(x) {
  const n = Math.round(x / Math.LN2);
  const whole = sum(x - n * LN2[0], -n * LN2[1]);
  const r = whole / 2 ** HALVINGS;
  const rRest = rest / 2 ** HALVINGS;
  const square = times(r, rRest, r / 2, rRest / 2);
  const higher = r * r * r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * (1 / 720 + r / 5040))));
  let above = plus(r, rRest, square, rest + higher); // above 1, where it has more digits
  let aboveRest = rest;
  for (let k = 0; k < HALVINGS; k += 1) {
    const squared = times(above, aboveRest, above, aboveRest);
    above = plus(2 * above, 2 * aboveRest, squared, rest);
    aboveRest = rest;
  }
  const result = plus(1, 0, above, aboveRest) * 2 ** n;
  rest *= 2 ** n;
  return result;
}

/** The sine of x and its rest, the cosine and its: by their series for a small part of the angle, which is doubled. */
function turn(x) {
  const n = Math.abs(x) < FARTHEST ? Math.round(x / (Math.PI / 2)) : NaN;
  const most = sum(x - n * HALF_PI[0], -n * HALF_PI[1]);
  const whole = sum(most, rest - n * HALF_PI[2]);
  const r = whole / 2 ** HALVINGS;
  const rRest = rest / 2 ** HALVINGS;
  const square = times(r, rRest, r, rRest);
  const squareRest = rest;
  const cube = times(square, squareRest, r, rRest);
  const sixth = over(cube, rest, 6, 0);
  let sine = plus(r, rRest, -sixth, square * square * r * (1 / 120 - square / 5040) - rest);
  let sineRest = rest;
  let below = plus(square / 2, squareRest / 2, square * square * (square / 720 - 1 / 24), 0); // what the cosine is below 1
  let cosine = plus(1, 0, -below, -rest);
  let cosineRest = rest;
  for (let k = 0; k < HALVINGS; k += 1) {
    below = times(2 * sine, 2 * sineRest, sine, sineRest);
    const belowRest = rest;
    sine = times(2 * sine, 2 * sineRest, cosine, cosineRest);
    sineRest = rest;
    cosine = plus(1, 0, -below, -belowRest);
    cosineRest = rest;
  }
  const sign = n & 2 ? -1 : 1;
  const all = n & 1 ? [cosine, cosineRest, -sine, -sineRest] : [sine, sineRest, cosine, cosineRest];
  return all.map((each) => sign * each);
}

export const exp = (x) => corrected(Math.exp(x), power(x));

export const sin = (x) => corrected(Math.sin(x), turn(x)[0]);

export const cos = (x) => corrected(Math.cos(x), turn(x)[2]);

export const tan = (x) => corrected(Math.tan(x), over(...turn(x)));

// inverses: from the browser's to where the function is exactly what was asked for

/** By how much the logarithm of x is more than `near`. */
function moreThan(near, x) {
  const inverse = power(-near);
  const one = times(x, 0, inverse, rest);
  return one - 1 + rest;
}

export function log(x) {
  const near = Math.log(x);
  return corrected(near, near + moreThan(near, x));
}

export function log2(x) {
  const near = Math.log(x);
  const [two, twoRest] = LN2;
  return corrected(Math.log2(x), over(near, moreThan(near, x), two, twoRest));
}

export function asin(x) {
  const near = Math.asin(x);
  const [sine, sineRest, cosine] = turn(near);
  return corrected(near, near + (x - sine - sineRest) / cosine);
}

export function acos(x) {
  const near = Math.acos(x);
  const [sine, , cosine, cosineRest] = turn(near);
  return corrected(near, near + (cosine - x + cosineRest) / sine);
}

export function atan2(y, x) {
  const near = Math.atan2(y, x);
  const [sine, sineRest, cosine, cosineRest] = turn(near);
  const up = times(y, 0, cosine, cosineRest);
  const upRest = rest;
  const along = times(x, 0, sine, sineRest);
  return corrected(near, near + (up - along + (upRest - rest)) / (x * cosine + y * sine));
}

export const atan = (x) => atan2(x, 1);

// what follows from them, by the formulas that C's libraries have

export function log10(x) {
  const found = Math.floor(Math.log2(x));
  const n = found - (2 ** found > x) + (x < 1);
  return corrected(Math.log10(x), n * LOG2[1] + Math.LOG10E * log(x / 2 ** n) + n * LOG2[0]);
}

export function cosh(x) {
  const size = Math.abs(x);
  if (!(size > 0.5 * Math.LN2 && size < 700)) return Math.cosh(x);
  const half = 0.5 * exp(size);
  return half + 0.25 / half;
}

export function asinh(x) {
  const size = Math.abs(x);
  if (!(size > 2 && size < 2 ** 28)) return Math.asinh(x);
  return Math.sign(x) * log(2 * size + 1 / (Math.sqrt(x * x + 1) + size));
}

export function acosh(x) {
  return x > 2 && x < 2 ** 28 ? log(2 * x - 1 / (x + Math.sqrt(x * x - 1))) : Math.acosh(x);
}
