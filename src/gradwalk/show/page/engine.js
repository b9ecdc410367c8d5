// The engine: forward, the backward pass as steps, its wrong modes, and finite differences. The one rule is in
// `walk`; what an operation computes comes from the generated ops.js and from composites.js.

import { contradicted, inaccuracy, is_at_kink, rounding, STEPS, TINY_STEP, verdict } from "./agreement.js";
import { COMPOSITES } from "./composites.js";
import { isKnown } from "./graph.js";
import { exact } from "./numbers.js";
import { OPS } from "./ops.js";

const isTable = (node) => Object.hasOwn(OPS, node.op);
const isComposite = (node) => Object.hasOwn(COMPOSITES, node.op);

/** What a node computes from its children's data; undefined for an operation that only Python knows. */
function computed(node, data) {
  const numbers = node.children.map((child) => data[child]);
  if (isTable(node)) return OPS[node.op].forward(...numbers, ...node.parameters);
  if (isComposite(node)) return COMPOSITES[node.op].forward(numbers, ...node.parameters);
  return undefined;
}

/** Data of every node, and nothing else. */
export function evaluated(graph, values) {
  const data = new Float64Array(graph.nodes.length);
  graph.nodes.forEach((node, i) => { data[i] = node.children.length ? computed(node, data) ?? node.value : values[i]; });
  return data;
}

// Data and local gradients of every node, as IEEE arithmetic gives them, and what Python would object to. Where no leaf
// below a node is another, what Python computed of it stands, to the last digit.
export function forward(graph, values) {
  const data = new Float64Array(graph.nodes.length);
  const isSame = new Uint8Array(graph.nodes.length);
  const localGrads = [];
  const problems = [];
  graph.nodes.forEach((node, i) => {
    if (!node.children.length) {
      data[i] = values[i];
      isSame[i] = Object.is(values[i], node.value);
      localGrads.push([]);
      return;
    }
    const numbers = node.children.map((child) => data[child]);
    isSame[i] = node.children.every((child) => isSame[child]);
    const op = isTable(node) ? OPS[node.op] : null;
    if ((node.recorded && isSame[i]) || !isKnown(node)) {
      data[i] = node.value;
      localGrads.push(node.recorded ?? node.children.map(() => NaN));
    } else if (op) {
      data[i] = op.forward(...numbers, ...node.parameters);
      localGrads.push(op.localGrads(...numbers, ...node.parameters, data[i]));
    } else {
      data[i] = COMPOSITES[node.op].forward(numbers, ...node.parameters);
      localGrads.push(COMPOSITES[node.op].localGrads(numbers, ...node.parameters, data[i]));
    }
    const problem = op ? objection(graph, node, op, [...numbers, ...node.parameters], data[i]) : "";
    if (problem) problems.push({ node: i, message: problem });
  });
  return { data, localGrads, problems };
}

/** The error that Python raises for these numbers, or "". */
function objection(graph, node, op, numbers, out) {
  const described = () =>
    numbers.map((number, i) => {
      const name = numbers.length > 1 ? `${[...op.inputs, ...op.parameters][i]} = ` : "";
      const label = i < node.children.length ? graph.nodes[node.children[i]].label : "";
      return name + exact(number) + (label ? ` (node '${label}')` : "");
    }).join(", ");
  if (!op.domain(...numbers) && !numbers.some(Number.isNaN)) {
    return `${op.called}: expected ${op.expected}, got ${described()}`;
  }
  const overflowed = op.overflows && Math.abs(out) === Infinity && numbers.every(Number.isFinite);
  return overflowed ? `${op.called}: the result overflows, got ${described()}` : "";
}

// ---------------------------------------------------------------- the backward pass

export const MODES = [
  {
    id: "right",
    name: "as it should be",
    why: "Each node hands its gradient on only after everything that uses it has: reversed topological order.",
  },
  {
    id: "breadth_first",
    name: "breadth-first order",
    why: "Nodes are visited by their distance from the result. A node that is used at two distances hands on a gradient that is not complete yet.",
  },
  {
    id: "no_order",
    name: "no order at all",
    why: "Nodes hand on in the order they were made, inputs first. Almost every gradient is still 0 when it is handed on.",
  },
  {
    id: "assign",
    name: "= instead of +=",
    why: "Each contribution overwrites the one before. A node that is used twice keeps only the last of them.",
  },
  {
    id: "not_reset",
    name: "gradients not reset",
    why: "A second backward pass starts from what the first one left behind, so old gradients are handed on again.",
  },
];

function breadthFirst(graph) {
  const order = [graph.root];
  const seen = new Set(order);
  for (let i = 0; i < order.length; i += 1) {
    for (const child of graph.nodes[order[i]].children) {
      if (!seen.has(child)) {
        seen.add(child);
        order.push(child);
      }
    }
  }
  return order;
}

function visitOrder(graph, mode) {
  if (mode === "breadth_first") return breadthFirst(graph);
  const made = graph.nodes.map((_, i) => i);
  return mode === "no_order" ? made : made.reverse();
}

/** The backward pass as contributions, in order, beside the right one's gradients. */
export function walk(graph, localGrads, mode) {
  const right = new Contributions(graph, localGrads, "right", new Float64Array(graph.nodes.length));
  if (mode === "right") return { contributions: right, start: right.start, grads: right.grads, right: right.grads, firstWrong: -1 };
  const start = new Float64Array(graph.nodes.length);
  if (mode === "not_reset") {
    // leaves were set to zero between the passes, what was computed on the way was forgotten
    graph.nodes.forEach((node, i) => node.children.length && (start[i] = right.grads[i]));
  }
  const wrong = new Contributions(graph, localGrads, mode, start, right);
  const firstWrong = [...wrong].findIndex((step) => step.wrong);
  return { contributions: wrong, start, grads: wrong.grads, right: right.grads, firstWrong };
}

/** The product; but 0 · ∞ is 0 here: what has no part in the result gets nothing, nor does what was not chosen. */
function contribution(local, upstream, op) {
  const product = local * upstream;
  if (!Number.isNaN(product)) return product;
  const unlistened = local === 0 && (Math.abs(upstream) === Infinity || (OPS[op] ?? COMPOSITES[op])?.chooses);
  return upstream === 0 || unlistened ? 0 : product;
}

/** A pass, by columns: an object for each of a hundred thousand contributions is more than a browser tidies up in a frame. */
class Contributions {
  /** `start` are the gradients it begins with; a pass that goes wrong is compared with the `right` one. */
  constructor(graph, localGrads, mode, start, right = null) {
    const count = graph.nodes.reduce((sum, { children }) => sum + children.length, 0);
    Object.assign(this, { graph, localGrads, mode, start, right, length: 0, grads: start.slice() });
    for (const column of ["node", "slot", "child"]) this[column] = new Int32Array(count);
    for (const column of ["upstream", "before", "after"]) this[column] = new Float64Array(count);
    this.first = new Int32Array(graph.nodes.length); // of each node: where its contributions stand
    this.grads[graph.root] = 1;
    for (const node of visitOrder(graph, mode)) this.visit(node);
  }

  visit(node) {
    const { graph, grads } = this;
    this.first[node] = this.length;
    graph.nodes[node].children.forEach((child, slot) => {
      if (graph.nodes[child].constant) return; // nobody differentiates by a number that stands in the text
      const k = this.length;
      const product = contribution(this.localGrads[node][slot], grads[node], graph.nodes[node].op);
      this.node[k] = node;
      this.slot[k] = slot;
      this.child[k] = child;
      this.upstream[k] = grads[node];
      this.before[k] = grads[child];
      this.after[k] = this.mode === "assign" ? product : grads[child] + product;
      grads[child] = this.after[k];
      this.length += 1;
    });
  }

  /** One of them: {node, slot, child, local, upstream, product, before, after, wrong, should}. */
  at(k) {
    const [node, slot, upstream] = [this.node[k], this.slot[k], this.upstream[k]];
    const local = this.localGrads[node][slot];
    const product = contribution(local, upstream, this.graph.nodes[node].op);
    const step = { node, slot, child: this.child[k], local, upstream, product, before: this.before[k], after: this.after[k], wrong: false, should: null };
    if (this.right) {
      step.should = this.right.at(this.right.first[node] + k - this.first[node]);
      step.wrong = this.isWrong(step);
    }
    return step;
  }

  /** By what it hands on or by what it leaves the child; the order of a sum is no mistake. */
  isWrong({ upstream, after, should }) {
    const reordered = this.mode === "breadth_first" || this.mode === "no_order";
    if (reordered) return !same(upstream, should.upstream, 1e-9);
    return !same(upstream, should.upstream, 0) || !same(after, should.after, 0);
  }

  * [Symbol.iterator]() {
    for (let k = 0; k < this.length; k += 1) yield this.at(k);
  }
}

const same = (ours, theirs, tolerance) =>
  ours === theirs ||
  (Number.isNaN(ours) && Number.isNaN(theirs)) ||
  Math.abs(ours - theirs) <= tolerance * Math.max(Math.abs(ours), Math.abs(theirs));

// ---------------------------------------------------------------- the timeline: forward, seed, backward

/** Everything the player shows: one step per computed node, the seed, one step per contribution. */
export function timeline(graph, values, mode) {
  const run = forward(graph, values);
  const backward = walk(graph, run.localGrads, mode);
  const computing = [];
  graph.nodes.forEach((node, i) => node.children.length && computing.push(i));
  const forwardSteps = computing.length;
  return {
    graph,
    mode,
    ...run,
    ...backward,
    computing,
    forwardSteps,
    steps: forwardSteps + 1 + backward.contributions.length,
    firstWrongStep: backward.firstWrong < 0 ? -1 : forwardSteps + 2 + backward.firstWrong,
  };
}

/** What happened last when `t` steps are done: {kind: "start" | "forward" | "seed" | "contribution", …}. */
export function stepAt(line, t) {
  if (t <= 0) return { kind: "start" };
  if (t <= line.forwardSteps) return { kind: "forward", node: line.computing[t - 1] };
  if (t === line.forwardSteps + 1) return { kind: "seed", node: line.graph.root };
  return { kind: "contribution", ...line.contributions.at(t - line.forwardSteps - 2) };
}

/** The gradients when `t` steps are done, valid until the next call; null while the backward pass has not begun. */
export function gradsAt(line, t) {
  if (t <= line.forwardSteps) return line.mode === "not_reset" ? line.start : null;
  if (!line.reached) {
    line.reached = { count: 0, grads: line.start.slice() };
    line.reached.grads[line.graph.root] = 1;
  }
  // from where we are, on or back: a step costs what it changes, however large the graph is
  const { reached, contributions } = line;
  const count = t - line.forwardSteps - 1;
  const { child, before, after } = contributions;
  for (; reached.count < count; reached.count += 1) reached.grads[child[reached.count]] = after[reached.count];
  for (; reached.count > count; reached.count -= 1) reached.grads[child[reached.count - 1]] = before[reached.count - 1];
  return reached.grads;
}

// ---------------------------------------------------------------- finite differences

/** About how far the root is off because every number on the way was rounded; as Python's finite_differences.py has it. */
function noiseOf({ data, right }) {
  let total = 0;
  data.forEach((x, i) => {
    const part = x * right[i];
    if (Math.abs(part) < 1e150) total += part * part;
  });
  return 4 * Number.EPSILON * Math.sqrt(total);
}

/** The change of the root per change of one node, as finite_differences.py measures it: {slope, left, right, isKink, inaccuracy}. */
export function finiteDifference(line, at) {
  const { graph, data } = line;
  if (at === graph.root) return { slope: 1, left: 1, right: 1, isKink: false, inaccuracy: 0 };
  const unknown = { slope: NaN, left: NaN, right: NaN, isKink: false, inaccuracy: NaN };
  if (graph.nodes[at].partial) return unknown; // what it does to the rest of the graph is not here to be measured
  line.noise ??= noiseOf(line);
  const x = data[at];
  const size = Math.abs(x);
  const scales = size > 0 && size < Infinity ? [...new Set([1, 2 ** floorLog2(size)])].sort((a, b) => a - b) : [1];
  const measuredBy = (shares) => shares.flatMap((share) => scales.map((scale) => scale * share))
    .filter((step) => x - step < x && x < x + step).map((step) => measured(line, at, step));
  // a step fit for x may be far too large or too small for the function: the one with the smallest error to be seen
  const found = measuredBy(STEPS);
  const better = (best, each) => (each.inaccuracy < best.inaccuracy || Number.isNaN(best.inaccuracy) ? each : best);
  const best = found.reduce(better, found[0] ?? unknown);
  const all = [...found, ...measuredBy([TINY_STEP])];
  const inaccurate = all.reduce((most, other) => contradicted(most, best.slope, other.slope, other.inaccuracy), best.inaccuracy);
  return { ...best, inaccuracy: inaccurate };
}

function measured({ graph, data, noise }, at, step) {
  const near = slopes(graph, data, at, step);
  const wide = slopes(graph, data, at, 2 * step);
  const rounded = rounding(noise, step);
  const isKink = is_at_kink(near.left, near.right, wide.left, wide.right, rounded);
  const inaccurate = inaccuracy(near.slope, wide.slope, near.right - near.left, wide.right - wide.left, isKink, rounded);
  return { ...near, isKink, inaccuracy: inaccurate };
}

function floorLog2(x) {
  const exponent = Math.floor(Math.log2(x));
  return 2 ** exponent > x ? exponent - 1 : exponent;
}

function slopes(graph, data, at, step) {
  const x = data[at];
  const [below, above] = [x - step, x + step];
  const [low, high] = [nudged(graph, data, at, below), nudged(graph, data, at, above)];
  const middle = data[graph.root];
  return { slope: (high - low) / (above - below), left: (middle - low) / (x - below), right: (high - middle) / (above - x) };
}

function nudged(graph, data, at, x) {
  const moved = new Uint8Array(graph.nodes.length);
  const numbers = data.slice();
  numbers[at] = x;
  moved[at] = 1;
  for (let i = at + 1; i < graph.nodes.length; i += 1) {
    const node = graph.nodes[i];
    // what passes a stop_gradient counts as a constant
    if (!OPS[node.op]?.stops && node.children.some((child) => moved[child])) {
      moved[i] = 1;
      numbers[i] = computed(node, numbers) ?? NaN;
    }
  }
  return numbers[graph.root];
}

/** What the difference says of a gradient: 1 where it fits, -1 where it does not, 0 where it cannot tell. */
export function judged(grad, { slope, left, right, isKink, inaccuracy: inaccurate }) {
  return verdict(grad, slope, left, right, isKink, inaccurate);
}
