// What C has and JavaScript's Math lacks, or has otherwise: copysign, and pow at its special points.

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
