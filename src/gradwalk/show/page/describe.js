// What a node is, in a glyph, a word and a formula, for the drawing, the panel and the screen reader.

import { COMPOSITES } from "./composites.js";
import { identifier, math, row } from "./mathml.js";
import { short } from "./numbers.js";
import { OPS } from "./ops.js";

/** What the gradient of a node is that the rest of the graph uses, too, where that rest was cut off. */
export const PARTIAL = "a part of the gradient: the rest of the graph, which is not shown, adds to it";
const MOST_LETTERS = 13; // stop_gradient
const RAISED = { "-": "\u207b", 0: "\u2070", 1: "\u00b9", 2: "\u00b2", 3: "\u00b3", 4: "\u2074", 5: "\u2075", 6: "\u2076", 7: "\u2077", 8: "\u2078", 9: "\u2079" };

/** The few characters that stand for an operation on a card, as in pictures (graph.py); a short whole power is written out. */
export function glyph(node) {
  const [power] = node.op === "pow_number" ? node.parameters : [];
  const isShort = Number.isInteger(power) && Math.abs(power) < 100;
  const text = isShort ? `x${String(power).replace(/./g, (digit) => RAISED[digit])}` : operation(node)?.glyph ?? (node.spelled || "?");
  return text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS - 1)}\u2026` : text;
}

/** What an operation is called where no sign stands for it. */
export function called(node) {
  const op = operation(node);
  return op && /^\w+$/.test(op.glyph) ? op.glyph : op?.called ?? (node.spelled || "a node made by hand");
}

/** The row of the table, or the composite, that a node comes from; null for a leaf or a node made by hand. */
export function operation(node) {
  if (Object.hasOwn(OPS, node.op)) return OPS[node.op];
  return Object.hasOwn(COMPOSITES, node.op) ? COMPOSITES[node.op] : null;
}

/** What the variables of a node's formula stand for: names, or (with `data`) numbers. */
function substitution(graph, i, { data = null, slot = -1 } = {}) {
  const node = graph.nodes[i];
  const found = {};
  const op = Object.hasOwn(OPS, node.op) ? OPS[node.op] : null;
  const given = (at) => {
    const isNumber = data !== null || graph.nodes[at].constant;
    return { text: data ? short(data[at]) : graph.names[at], isNumber };
  };
  op?.inputs.forEach((name, k) => { found[name] = given(node.children[k]); });
  op?.parameters.forEach((name, k) => { found[name] = { text: short(node.parameters[k]), isNumber: true }; });
  found.out = given(i);
  const row = Object.hasOwn(COMPOSITES, node.op) ? COMPOSITES[node.op] : null;
  if (!row) return found;
  // by their places: the one that was chosen, and (of each input) the one that the slot is about
  const count = node.children.length / row.inputs.length;
  found.n = { text: String(count), isNumber: true };
  if (isIndexed(row)) found.xi = given(node.children[node.parameters[0]] ?? node.children[0]);
  ["xj", "yj"].slice(0, slot < 0 ? 0 : row.inputs.length).forEach((name, k) => { found[name] = given(node.children[k * count + (slot % count)]); });
  return found;
}

const isIndexed = (row) => row.perEntry || row.target !== "";

/** With a name in the place of an entry that has one. */
const entries = (latex, names) => latex.replace(/([xy])_\{([ij])\}/g, (whole, row, place) => (Object.hasOwn(names, row + place) ? `\\mathit{${row}${place}}` : whole));

/** name = formula, as mathematics. */
export function forwardFormula(graph, i) {
  const node = graph.nodes[i];
  const op = operation(node);
  const names = substitution(graph, i);
  const right = op ? row(entries(op.latex, names), names) : math("mtext", node.spelled || "made by hand");
  return math("math", identifier(graph.names[i]), math("mo", "="), right);
}

/** The formula with numbers in it; null where that says nothing more. */
export function forwardNumbers(graph, i, data) {
  const node = graph.nodes[i];
  if (!Object.hasOwn(OPS, node.op)) return null;
  return row(OPS[node.op].latex, substitution(graph, i, { data }));
}

/** The derivative of a node by one of its children, as a fraction. */
export function derivative(graph, i, slot) {
  const child = graph.nodes[i].children[slot];
  const top = math("mrow", math("mo", "\u2202"), identifier(graph.names[i]));
  const bottom = math("mrow", math("mo", "\u2202"), identifier(graph.names[child]));
  return math("mfrac", top, bottom);
}

/** The formula of that derivative; null for a node made by hand. */
export function derivativeFormula({ graph, localGrads }, i, slot) {
  const op = operation(graph.nodes[i]);
  if (!op) return null;
  const node = graph.nodes[i];
  const each = node.children.length / op.inputs.length; // of a row: so many children for each input
  const names = substitution(graph, i, { slot });
  const isHot = op.hotLatex && (isIndexed(op) ? node.parameters[0] === slot : localGrads[i][slot] !== 0);
  let latex = entries((isHot ? op.hotLatex : op.localGradsLatex)[Math.floor(slot / each)], names);
  op.parameters?.forEach((name, k) => { // x^{3 - 1} is x^2, and x^{2 - 1} is x
    const power = node.parameters[k] - 1;
    latex = latex.replace(`^{${name} - 1}`, power === 1 ? "" : "^{m}");
    names.m = { text: short(power), isNumber: true };
  });
  return row(latex, names);
}

/** The operation in words, for screen readers and tooltips. */
export function kind(node) {
  if (node.cut) return "the rest of the graph is below this node";
  if (node.constant) return "a constant";
  if (!node.children.length) return "a leaf";
  return operation(node)?.doc ?? `made by hand${node.spelled ? ` as ${node.spelled}` : ""}; its local gradients are as recorded`;
}

/** How a node was computed, in a line of text: v1 = a · b; nothing for a leaf. */
export function inWords(graph, i) {
  const node = graph.nodes[i];
  if (!node.children.length) return "";
  const signs = { add: "+", sub: "\u2212", mul: "\u00b7", div: "\u00f7" };
  const names = node.children.map((child) => graph.names[child]);
  if (signs[node.op]) return `${names[0]} ${signs[node.op]} ${names[1]}`;
  if (node.op === "neg") return `\u2212${names[0]}`;
  if (node.op === "pow_number") return `${names[0]} to the power ${short(node.parameters[0])}`;
  const listed = names.length > 6 ? [...names.slice(0, 5), `\u2026 (${names.length})`] : names;
  return `${called(node)} of ${[...listed, ...node.parameters.map(short)].join(", ")}`;
}

/** The step that has just happened, in a sentence. */
export function sentence(line, t, step) {
  const { graph, data } = line;
  const place = `Step ${t} of ${line.steps}`;
  if (step.kind === "start") return "Start: the leaves have their values, nothing is computed yet.";
  if (step.kind === "forward") {
    return `${place}, forward: ${graph.names[step.node]} = ${inWords(graph, step.node)} = ${short(data[step.node])}.`;
  }
  if (step.kind === "seed") return `${place}, the seed: ${graph.names[step.node]}.grad = 1.`;
  const sign = line.mode === "assign" ? "=" : "+=";
  const sum = line.mode === "assign" ? `it was ${short(step.before)}` : `${short(step.before)} + ${short(step.product)}`;
  const wrong = step.wrong ? ` This is wrong: it should be ${short(step.should.product)} handed on, ${short(step.should.after)} in all.` : "";
  return `${place}, backward: ${graph.names[step.child]}.grad ${sign} ${short(step.local)} \u00b7 ${short(step.upstream)} = ${short(step.product)}; now ${sum} = ${short(step.after)}${graph.nodes[step.child].partial ? `, ${PARTIAL}` : ""}.${wrong}`;
}
