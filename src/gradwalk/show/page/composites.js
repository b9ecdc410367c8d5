// do not edit; made by tools/generate.py from src/gradwalk/row_ops.py

import { exp, log } from "./rounded.js";
import { pow } from "./special.js";

const PLAIN = { inputs: ["xs"], parameters: [], perEntry: false, target: "" };

export const COMPOSITES = Object.fromEntries(Object.entries({
  sum: {
    glyph: "Σ",
    doc: "The sum as one node.",
    latex: "\\sum_{j} x_{j}",
    localGradsLatex: ["1"],
    forward(xs) {
      const n = xs.length;
      let t0 = xs[0];
      for (let j = 1; j < n; j++) t0 = t0 + xs[j];
      return t0;
    },
    localGrads(xs, out) {
      const n = xs.length;
      const localGrads = [];
      for (let j = 0; j < n; j++) localGrads[j] = 1.0;
      return localGrads;
    },
  },
  mean: {
    doc: "The mean as one node.",
    latex: "\\frac{\\sum_{j} x_{j}}{n}",
    localGradsLatex: ["\\frac{1}{n}"],
    forward(xs) {
      const n = xs.length;
      let t0 = xs[0];
      for (let j = 1; j < n; j++) t0 = t0 + xs[j];
      return t0 / n;
    },
    localGrads(xs, out) {
      const n = xs.length;
      const localGrads = [];
      const t0 = 1.0 / n;
      for (let j = 0; j < n; j++) localGrads[j] = t0;
      return localGrads;
    },
  },
  dot: {
    inputs: ["xs", "ys"],
    doc: "The sum of products as one node.",
    latex: "\\sum_{j} x_{j} \\cdot y_{j}",
    localGradsLatex: ["y_{j}", "x_{j}"],
    forward(all) {
      const n = all.length / 2;
      const xs = all.slice(0 * n, 1 * n);
      const ys = all.slice(1 * n, 2 * n);
      let t0 = xs[0] * ys[0];
      for (let j = 1; j < n; j++) t0 = t0 + xs[j] * ys[j];
      return t0;
    },
    localGrads(all, out) {
      const n = all.length / 2;
      const xs = all.slice(0 * n, 1 * n);
      const ys = all.slice(1 * n, 2 * n);
      const localGrads = [];
      for (let j = 0; j < n; j++) localGrads[j] = ys[j];
      for (let j = 0; j < n; j++) localGrads[n + j] = xs[j];
      return localGrads;
    },
  },
  norm: {
    doc: "The Euclidean length as one node, without overflow on the way.",
    latex: "\\sqrt{\\sum_{j} {x_{j}}^{2}}",
    localGradsLatex: ["\\frac{x_{j}}{\\mathit{out}}"],
    forward(xs) {
      const n = xs.length;
      let t0 = Math.abs(xs[0]);
      for (let j = 1; j < n; j++) {
        const x = Math.abs(xs[j]);
        if (x > t0 || (x != x && t0 == t0)) { t0 = x; }
      }
      const t1 = t0 - t0 == 0.0 ? t0 : 0.0;
      const t2 = (t1 > 0.0 ? t1 : 1.0);
      let t3 = xs[0] / t2 * (xs[0] / t2);
      for (let j = 1; j < n; j++) t3 = t3 + xs[j] / t2 * (xs[j] / t2);
      let t4 = Math.abs(xs[0]);
      for (let j = 1; j < n; j++) t4 = t4 + Math.abs(xs[j]);
      return (t1 > 0.0 ? Math.sqrt(t3) * t1 : t4);
    },
    localGrads(xs, out) {
      const n = xs.length;
      const localGrads = [];
      const t0 = out === 0.0;
      for (let j = 0; j < n; j++) localGrads[j] = (t0 ? 0.0 : xs[j] / out);
      return localGrads;
    },
  },
  logsumexp: {
    doc: "The logarithm of the sum of exponentials as one node, without overflow on the way.",
    latex: "\\log\\left(\\sum_{j} \\exp\\left(x_{j}\\right)\\right)",
    localGradsLatex: ["\\frac{\\exp\\left(x_{j}\\right)}{\\sum_{k} \\exp\\left(x_{k}\\right)}"],
    forward(xs) {
      const n = xs.length;
      let t0 = xs[0];
      for (let j = 1; j < n; j++) {
        const x = xs[j];
        if (x > t0 || (x != x && t0 == t0)) { t0 = x; }
      }
      const t1 = t0 - t0 == 0.0 ? t0 : 0.0;
      let t2 = exp(xs[0] - t1);
      for (let j = 1; j < n; j++) t2 = t2 + exp(xs[j] - t1);
      return log(t2) + t1;
    },
    localGrads(xs, out) {
      const n = xs.length;
      const localGrads = [];
      let t0 = xs[0];
      for (let j = 1; j < n; j++) {
        const x = xs[j];
        if (x > t0 || (x != x && t0 == t0)) { t0 = x; }
      }
      const t1 = t0 - t0 == 0.0 ? t0 : 0.0;
      let t2 = exp(xs[0] - t1);
      for (let j = 1; j < n; j++) t2 = t2 + exp(xs[j] - t1);
      for (let j = 0; j < n; j++) localGrads[j] = exp(xs[j] - t1) / t2;
      return localGrads;
    },
  },
  softmax: {
    perEntry: true,
    doc: "Exponentials divided by their sum: one node per output.",
    latex: "\\frac{\\exp\\left(x_{i}\\right)}{\\sum_{j} \\exp\\left(x_{j}\\right)}",
    localGradsLatex: ["-\\mathit{out} \\cdot \\frac{\\exp\\left(x_{j}\\right)}{\\sum_{k} \\exp\\left(x_{k}\\right)}"],
    hotLatex: ["\\mathit{out} \\cdot \\left(1 - \\frac{\\exp\\left(x_{j}\\right)}{\\sum_{k} \\exp\\left(x_{k}\\right)}\\right)"],
    forward(xs, i) {
      const n = xs.length;
      let t0 = xs[0];
      for (let j = 1; j < n; j++) {
        const x = xs[j];
        if (x > t0 || (x != x && t0 == t0)) { t0 = x; }
      }
      const t1 = t0 - t0 == 0.0 ? t0 : 0.0;
      let t2 = exp(xs[0] - t1);
      for (let j = 1; j < n; j++) t2 = t2 + exp(xs[j] - t1);
      return exp(xs[i] - t1) / t2;
    },
    localGrads(xs, i, out) {
      const n = xs.length;
      const localGrads = [];
      let t0 = xs[0];
      for (let j = 1; j < n; j++) {
        const x = xs[j];
        if (x > t0 || (x != x && t0 == t0)) { t0 = x; }
      }
      const t1 = t0 - t0 == 0.0 ? t0 : 0.0;
      let t2 = exp(xs[0] - t1);
      for (let j = 1; j < n; j++) t2 = t2 + exp(xs[j] - t1);
      for (let j = 0; j < n; j++) localGrads[j] = out * ((j === i ? 1.0 : 0.0) - exp(xs[j] - t1) / t2);
      return localGrads;
    },
  },
  log_softmax: {
    perEntry: true,
    doc: "Logarithms of the softmax, exact where it underflows: one node per output.",
    latex: "x_{i} - \\log\\left(\\sum_{j} \\exp\\left(x_{j}\\right)\\right)",
    localGradsLatex: ["-\\frac{\\exp\\left(x_{j}\\right)}{\\sum_{k} \\exp\\left(x_{k}\\right)}"],
    hotLatex: ["1 - \\frac{\\exp\\left(x_{j}\\right)}{\\sum_{k} \\exp\\left(x_{k}\\right)}"],
    forward(xs, i) {
      const n = xs.length;
      let t0 = xs[0];
      for (let j = 1; j < n; j++) {
        const x = xs[j];
        if (x > t0 || (x != x && t0 == t0)) { t0 = x; }
      }
      const t1 = t0 - t0 == 0.0 ? t0 : 0.0;
      let t2 = exp(xs[0] - t1);
      for (let j = 1; j < n; j++) t2 = t2 + exp(xs[j] - t1);
      return xs[i] - t1 - log(t2);
    },
    localGrads(xs, i, out) {
      const n = xs.length;
      const localGrads = [];
      let t0 = xs[0];
      for (let j = 1; j < n; j++) {
        const x = xs[j];
        if (x > t0 || (x != x && t0 == t0)) { t0 = x; }
      }
      const t1 = t0 - t0 == 0.0 ? t0 : 0.0;
      let t2 = exp(xs[0] - t1);
      for (let j = 1; j < n; j++) t2 = t2 + exp(xs[j] - t1);
      for (let j = 0; j < n; j++) localGrads[j] = (j === i ? 1.0 : 0.0) - exp(xs[j] - t1) / t2;
      return localGrads;
    },
  },
  cross_entropy: {
    inputs: ["logits"],
    target: "target",
    doc: "Minus the logarithm of the probability that softmax gives to entry `target`, as one node.",
    latex: "\\log\\left(\\sum_{j} \\exp\\left(x_{j}\\right)\\right) - x_{i}",
    localGradsLatex: ["\\frac{\\exp\\left(x_{j}\\right)}{\\sum_{k} \\exp\\left(x_{k}\\right)}"],
    hotLatex: ["\\frac{\\exp\\left(x_{j}\\right)}{\\sum_{k} \\exp\\left(x_{k}\\right)} - 1"],
    forward(logits, i) {
      const n = logits.length;
      let t0 = logits[0];
      for (let j = 1; j < n; j++) {
        const x = logits[j];
        if (x > t0 || (x != x && t0 == t0)) { t0 = x; }
      }
      const t1 = t0 - t0 == 0.0 ? t0 : 0.0;
      let t2 = exp(logits[0] - t1);
      for (let j = 1; j < n; j++) t2 = t2 + exp(logits[j] - t1);
      return log(t2) - (logits[i] - t1);
    },
    localGrads(logits, i, out) {
      const n = logits.length;
      const localGrads = [];
      let t0 = logits[0];
      for (let j = 1; j < n; j++) {
        const x = logits[j];
        if (x > t0 || (x != x && t0 == t0)) { t0 = x; }
      }
      const t1 = t0 - t0 == 0.0 ? t0 : 0.0;
      let t2 = exp(logits[0] - t1);
      for (let j = 1; j < n; j++) t2 = t2 + exp(logits[j] - t1);
      for (let j = 0; j < n; j++) localGrads[j] = exp(logits[j] - t1) / t2 - (j === i ? 1.0 : 0.0);
      return localGrads;
    },
  },
  rmsnorm: {
    parameters: ["eps"],
    perEntry: true,
    doc: "xs divided by the root of their mean square: one node per output.",
    latex: "\\frac{x_{i}}{\\sqrt{\\frac{\\sum_{j} {x_{j}}^{2}}{n} + \\epsilon}}",
    localGradsLatex: ["-\\frac{\\mathit{out} \\cdot x_{j}}{n \\cdot \\left(\\frac{\\sum_{k} {x_{k}}^{2}}{n} + \\epsilon\\right)}"],
    hotLatex: ["\\frac{1}{\\sqrt{\\frac{\\sum_{k} {x_{k}}^{2}}{n} + \\epsilon}} - \\frac{\\mathit{out} \\cdot x_{j}}{n \\cdot \\left(\\frac{\\sum_{k} {x_{k}}^{2}}{n} + \\epsilon\\right)}"],
    forward(xs, i, eps) {
      const n = xs.length;
      let t0 = xs[0] * xs[0];
      for (let j = 1; j < n; j++) t0 = t0 + xs[j] * xs[j];
      return xs[i] * pow(t0 / n + eps, -0.5);
    },
    localGrads(xs, i, eps, out) {
      const n = xs.length;
      const localGrads = [];
      let t0 = xs[0] * xs[0];
      for (let j = 1; j < n; j++) t0 = t0 + xs[j] * xs[j];
      const t1 = pow(t0 / n + eps, -0.5);
      const t2 = out * t1 * t1 / n;
      for (let j = 0; j < n; j++) localGrads[j] = (j === i ? t1 : 0.0) - t2 * xs[j];
      return localGrads;
    },
  },
  layernorm: {
    parameters: ["eps"],
    perEntry: true,
    doc: "xs less their mean, divided by the root of their variance: one node per output.",
    latex: "\\frac{x_{i} - \\mu}{\\sqrt{{\\sigma}^{2} + \\epsilon}}",
    localGradsLatex: ["-\\frac{1}{n \\cdot \\sqrt{{\\sigma}^{2} + \\epsilon}} - \\frac{\\mathit{out} \\cdot \\left(x_{j} - \\mu\\right)}{n \\cdot \\left({\\sigma}^{2} + \\epsilon\\right)}"],
    hotLatex: ["\\frac{1 - \\frac{1}{n}}{\\sqrt{{\\sigma}^{2} + \\epsilon}} - \\frac{\\mathit{out} \\cdot \\left(x_{j} - \\mu\\right)}{n \\cdot \\left({\\sigma}^{2} + \\epsilon\\right)}"],
    forward(xs, i, eps) {
      const n = xs.length;
      let t0 = xs[0];
      for (let j = 1; j < n; j++) t0 = t0 + xs[j];
      const t1 = t0 / n;
      let t2 = (xs[0] - t1) * (xs[0] - t1);
      for (let j = 1; j < n; j++) t2 = t2 + (xs[j] - t1) * (xs[j] - t1);
      return (xs[i] - t1) * pow(t2 / n + eps, -0.5);
    },
    localGrads(xs, i, eps, out) {
      const n = xs.length;
      const localGrads = [];
      let t0 = xs[0];
      for (let j = 1; j < n; j++) t0 = t0 + xs[j];
      const t1 = t0 / n;
      let t2 = (xs[0] - t1) * (xs[0] - t1);
      for (let j = 1; j < n; j++) t2 = t2 + (xs[j] - t1) * (xs[j] - t1);
      const t3 = pow(t2 / n + eps, -0.5);
      const t4 = 1.0 / n;
      const t5 = 1.0 / n;
      for (let j = 0; j < n; j++) localGrads[j] = t3 * ((j === i ? 1.0 : 0.0) - t4 - out * ((xs[j] - t1) * t3) * t5);
      return localGrads;
    },
  },
  largest: {
    called: "maximum",
    glyph: "max",
    chooses: true,
    doc: "The largest; of equals, the first gets the gradient.",
    latex: "\\max_{j} x_{j}",
    localGradsLatex: ["0"],
    hotLatex: ["1"],
    forward(xs) {
      const n = xs.length;
      let t0 = xs[0];
      let t1 = 0.0;
      for (let j = 1; j < n; j++) {
        const x = xs[j];
        if (x > t0 || (x != x && t0 == t0)) { t0 = x; t1 = j; }
      }
      return xs[t1];
    },
    localGrads(xs, out) {
      const n = xs.length;
      const localGrads = [];
      let t0 = xs[0];
      let t1 = 0.0;
      for (let j = 1; j < n; j++) {
        const x = xs[j];
        if (x > t0 || (x != x && t0 == t0)) { t0 = x; t1 = j; }
      }
      for (let j = 0; j < n; j++) localGrads[j] = (j === t1 ? 1.0 : 0.0);
      return localGrads;
    },
  },
  smallest: {
    called: "minimum",
    glyph: "min",
    chooses: true,
    doc: "The smallest; of equals, the first gets the gradient.",
    latex: "\\min_{j} x_{j}",
    localGradsLatex: ["0"],
    hotLatex: ["1"],
    forward(xs) {
      const n = xs.length;
      let t0 = xs[0];
      let t1 = 0.0;
      for (let j = 1; j < n; j++) {
        const x = xs[j];
        if (x < t0 || (x != x && t0 == t0)) { t0 = x; t1 = j; }
      }
      return xs[t1];
    },
    localGrads(xs, out) {
      const n = xs.length;
      const localGrads = [];
      let t0 = xs[0];
      let t1 = 0.0;
      for (let j = 1; j < n; j++) {
        const x = xs[j];
        if (x < t0 || (x != x && t0 == t0)) { t0 = x; t1 = j; }
      }
      for (let j = 0; j < n; j++) localGrads[j] = (j === t1 ? 1.0 : 0.0);
      return localGrads;
    },
  },
  take: {
    inputs: ["rows"],
    target: "index",
    doc: "`rows[index]` as recorded nodes: one node for a Value, a list of nodes for a row of them.",
    latex: "x_{i}",
    localGradsLatex: ["1"],
    forward(rows, i) {
      const n = rows.length;
      return rows[0];
    },
    localGrads(rows, i, out) {
      const n = rows.length;
      const localGrads = [];
      for (let j = 0; j < n; j++) localGrads[j] = 1.0;
      return localGrads;
    },
  },
}).map(([name, row]) => [name, { called: name, glyph: name, ...PLAIN, ...row }]));
