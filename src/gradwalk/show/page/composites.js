// The operations over many numbers: sum, dot, softmax, … The same rows as composites.py, in the same order of
// additions. `forward` takes the list and the parameters; `localGrads` takes `out` as well.

function total(terms) {
  let sum = terms[0];
  for (let i = 1; i < terms.length; i += 1) sum += terms[i];
  return sum;
}

function position(xs, sign) {
  let best = 0;
  for (let i = 1; i < xs.length; i += 1) {
    const x = sign * xs[i];
    const champion = sign * xs[best];
    if (x > champion || (x !== x && champion === champion)) best = i;
  }
  return best;
}

function shift(xs) {
  const largest = xs[position(xs, 1)];
  return Number.isFinite(largest) ? largest : 0;
}

function exponentials(xs) {
  const largest = shift(xs);
  const es = xs.map((x) => Math.exp(x - largest));
  return [es, total(es)];
}

function probabilities(xs) {
  const [es, sum] = exponentials(xs);
  return es.map((e) => e / sum);
}

function halves(xs) {
  const middle = xs.length >> 1;
  return [xs.slice(0, middle), xs.slice(middle)];
}

function rmsScale(xs, eps) {
  return Math.pow(total(xs.map((x) => x * x)) / xs.length + eps, -0.5);
}

function centred(xs) {
  const mean = total(xs) / xs.length;
  return xs.map((x) => x - mean);
}

function norm(xs) {
  const scale = xs.reduce((largest, x) => (Math.abs(x) > largest ? Math.abs(x) : largest), 0);
  if (scale === 0 || !Number.isFinite(scale)) return total(xs.map(Math.abs));
  const ratios = xs.map((x) => x / scale);
  return Math.sqrt(total(ratios.map((r) => r * r))) * scale;
}

const hot = (i, j) => (i === j ? 1 : 0);
const oneHot = (xs, at) => xs.map((_, j) => hot(at, j));

export const COMPOSITES = {
  sum: {
    doc: "Sum of many.",
    latex: "\\sum_{j} x_{j}",
    localGradLatex: "1",
    forward: (xs) => total(xs),
    localGrads: (xs) => xs.map(() => 1),
  },
  mean: {
    doc: "Mean of n numbers.",
    latex: "\\frac{1}{n}\\,\\sum_{j} x_{j}",
    localGradLatex: "\\frac{1}{n}",
    forward: (xs) => total(xs) / xs.length,
    localGrads: (xs) => xs.map(() => 1 / xs.length),
  },
  dot: {
    doc: "Sum of products of two lists.",
    latex: "\\sum_{j} x_{j}\\,y_{j}",
    localGradLatex: "\\text{its partner in the other list}",
    forward(xs) {
      const [left, right] = halves(xs);
      return total(left.map((x, j) => x * right[j]));
    },
    localGrads(xs) {
      const [left, right] = halves(xs);
      return [...right, ...left];
    },
  },
  norm: {
    doc: "Euclidean length.",
    latex: "\\sqrt{\\sum_{j} x_{j}^2}",
    localGradLatex: "\\frac{x_{j}}{\\mathit{out}}",
    forward: norm,
    localGrads: (xs, out) => xs.map((x) => (out === 0 ? 0 : x / out)),
  },
  logsumexp: {
    doc: "Logarithm of the sum of exponentials.",
    latex: "\\ln\\left(\\sum_{j} \\exp\\left(x_{j}\\right)\\right)",
    localGradLatex: "\\frac{\\exp\\left(x_{j}\\right)}{\\sum_{k} \\exp\\left(x_{k}\\right)}",
    forward: (xs) => Math.log(exponentials(xs)[1]) + shift(xs),
    localGrads: (xs) => probabilities(xs),
  },
  softmax: {
    doc: "One output of softmax.",
    latex: "\\frac{\\exp\\left(x_{i}\\right)}{\\sum_{j} \\exp\\left(x_{j}\\right)}",
    localGradLatex: "\\mathit{out}\\,\\left([i = j] - p_{j}\\right)",
    forward: (xs, i) => probabilities(xs)[i],
    localGrads: (xs, i, out) => probabilities(xs).map((p, j) => out * (hot(i, j) - p)),
  },
  log_softmax: {
    doc: "Logarithm of one output of softmax.",
    latex: "x_{i} - \\ln\\left(\\sum_{j} \\exp\\left(x_{j}\\right)\\right)",
    localGradLatex: "[i = j] - p_{j}",
    forward: (xs, i) => xs[i] - shift(xs) - Math.log(exponentials(xs)[1]),
    localGrads: (xs, i) => probabilities(xs).map((p, j) => hot(i, j) - p),
  },
  cross_entropy: {
    doc: "Minus the logarithm of the probability that softmax gives to the target i.",
    latex: "\\ln\\left(\\sum_{j} \\exp\\left(x_{j}\\right)\\right) - x_{i}",
    localGradLatex: "p_{j} - [i = j]",
    forward: (xs, i) => Math.log(exponentials(xs)[1]) - (xs[i] - shift(xs)),
    localGrads: (xs, i) => probabilities(xs).map((p, j) => p - hot(i, j)),
  },
  rmsnorm: {
    doc: "Entry i, divided by the root of the mean square.",
    latex: "\\frac{x_{i}}{\\sqrt{\\frac{1}{n}\\,\\sum_{j} x_{j}^2 + \\epsilon}}",
    localGradLatex: "s\\,[i = j] - \\frac{\\mathit{out}\\,s^2}{n}\\,x_{j}",
    forward: (xs, i, eps) => xs[i] * rmsScale(xs, eps),
    localGrads(xs, i, eps, out) {
      const scale = rmsScale(xs, eps);
      const slope = (out * scale * scale) / xs.length;
      return xs.map((x, j) => (j === i ? scale : 0) - slope * x);
    },
  },
  layernorm: {
    doc: "Entry i, shifted to mean 0 and scaled to variance 1.",
    latex: "\\frac{x_{i} - \\mu}{\\sqrt{\\sigma^2 + \\epsilon}}",
    localGradLatex: "s\\,\\left([i = j] - \\frac{1}{n} - \\frac{\\mathit{out}\\,s}{n}\\,\\left(x_{j} - \\mu\\right)\\right)",
    forward(xs, i, eps) {
      const shifted = centred(xs);
      return shifted[i] * rmsScale(shifted, eps);
    },
    localGrads(xs, i, eps, out) {
      const shifted = centred(xs);
      const scale = rmsScale(shifted, eps);
      const share = 1 / xs.length;
      return shifted.map((x, j) => scale * (hot(i, j) - share - out * (x * scale) * share));
    },
  },
  largest: {
    doc: "The largest; of equals, the first.",
    latex: "\\max_{j} x_{j}",
    localGradLatex: "[\\mathit{out}\\text{ is }x_{j}]",
    forward: (xs) => xs[position(xs, 1)],
    localGrads: (xs) => oneHot(xs, position(xs, 1)),
  },
  smallest: {
    doc: "The smallest; of equals, the first.",
    latex: "\\min_{j} x_{j}",
    localGradLatex: "[\\mathit{out}\\text{ is }x_{j}]",
    forward: (xs) => xs[position(xs, -1)],
    localGrads: (xs) => oneHot(xs, position(xs, -1)),
  },
  take: {
    doc: "The entry at place i.",
    latex: "x_{i}",
    localGradLatex: "1",
    forward: (xs) => xs[0],
    localGrads: () => [1],
  },
};
