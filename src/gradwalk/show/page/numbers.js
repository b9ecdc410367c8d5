// Numbers as text: four digits for the eye, every digit for the tooltip, and Python's own spelling for code.

const MINUS = "\u2212";
const LONGEST = 7; // characters: what is longer is written with an exponent

/** Four significant digits, more only before the point, with a true minus sign; a zero has none here, every digit is in the tooltip. */
export function short(x) {
  if (x === undefined || x === null) return "";
  if (Number.isNaN(x)) return "nan";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : `${MINUS}inf`;
  if (x === 0) return "0";
  const plain = String(Math.abs(x) >= 1000 ? Math.round(x) : Number(x.toPrecision(4))); // 61728, not 61730
  const isLong = plain.includes("e") || plain.replace("-", "").length > LONGEST;
  const text = isLong ? x.toExponential(2).replace("e+", "e").replace(/\.?0+e/, "e") : plain;
  return text.replaceAll("-", MINUS);
}

/** Every digit, as Python's repr spells it: 1.0, 1e-07, inf. */
export function exact(x) {
  if (Number.isNaN(x)) return "nan";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  if (Object.is(x, -0)) return "-0.0";
  const size = Math.abs(x);
  if (size !== 0 && (size >= 1e16 || size < 1e-4)) {
    const [digits, exponent] = x.toExponential().split("e");
    const sign = exponent[0];
    return `${digits}e${sign}${exponent.slice(1).padStart(2, "0")}`;
  }
  const text = String(x);
  return text.includes(".") ? text : `${text}.0`;
}

/** What a constant is called, as short_number in graph.py has it: all of its digits if they are few, else six. */
export function digits(x) {
  const whole = exact(x).replace(/\.0$/, "");
  const text = whole.length <= 9 || !Number.isFinite(x) ? whole : sixDigits(x);
  return text.replaceAll("-", MINUS);
}

/** As Python formats with .6g. */
function sixDigits(x) {
  const [mantissa, exponent] = x.toExponential(5).split("e");
  const power = Number(exponent);
  const plain = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (power >= -4 && power < 6) return plain(x.toPrecision(6));
  return `${plain(mantissa)}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

/** What a person typed as a number, or null; a true minus sign and a decimal comma are understood. */
export function typed(text) {
  const plain = text.trim().replaceAll(MINUS, "-").replace(",", ".");
  if (!/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(plain)) return null;
  const x = Number(plain);
  return Number.isFinite(x) ? x : null;
}

/** A number out of JSON, which has no inf and nan of its own and carries them as strings. */
export function fromJson(given) {
  if (typeof given === "number") return given;
  return { inf: Infinity, "-inf": -Infinity, nan: NaN }[given] ?? NaN;
}

/** The reverse of fromJson. */
export function toJson(x) {
  if (Number.isFinite(x)) return x;
  return Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "-inf";
}
