// A recorded graph: nodes in topological order (each after all of its children), the root last. It is made from a
// parsed expression or from the JSON that Python writes; what it computes is in engine.js.

import { COMPOSITES } from "./composites.js";
import { digits, exact, fromJson, toJson } from "./numbers.js";
import { OPS } from "./ops.js";
import { parse } from "./parser.js";

const STARTS = [2, 3, 0.5, 1.5, 4, 2.5, 0.25, 3.5]; // for leaves nobody gave a value; see starts.js for a better choice

function leaf(label, value, constant = false) {
  // op is a row of the table or a composite; what was made by hand has none, but is spelled somehow
  return { op: "", spelled: "", children: [], parameters: [], label, scope: "", value, constant, cut: false, partial: false, recorded: null, fold: -1 };
}

/** Whether its value may be changed: what follows from it is all here. */
export function isEditable(graph, i) {
  const node = graph.nodes[i];
  return graph.editable && !node.children.length && !node.constant && !node.cut && !node.partial;
}

/** Whether the page itself can compute a node: a leaf, a row of the table or a composite. */
export function isKnown(node) {
  return !node.children.length || Object.hasOwn(OPS, node.op) || Object.hasOwn(COMPOSITES, node.op);
}

/** The graph of a formula. Throws an ExpressionError where the formula is not valid. */
export function fromExpression(text) {
  const { instructions, inputs, given } = parse(text);
  const nodes = [];
  const known = new Map();
  const stack = [];
  const lift = (operand) => {
    if (!("number" in operand)) return operand.node;
    nodes.push(leaf(operand.text, operand.number, true));
    return nodes.length - 1;
  };
  const named = (name, value) => {
    nodes.push(leaf(name, value));
    known.set(name, { node: nodes.length - 1 });
  };
  const unset = inputs.filter((name) => !given.has(name));
  for (const { kind, name, number, count } of instructions) {
    if (kind === "number") {
      stack.push({ number, text: "" });
    } else if (kind === "name") {
      if (!known.has(name)) named(name, STARTS[unset.indexOf(name) % STARTS.length]);
      stack.push(known.get(name));
    } else if (kind === "assign") {
      const result = stack.pop();
      if ("number" in result) {
        named(name, result.number);
      } else {
        nodes[result.node].label ||= name;
        known.set(name, result);
      }
    } else {
      const operands = stack.splice(-count);
      stack.push(applied(name, operands, nodes, lift));
    }
  }
  const root = stack.length ? stack.at(-1) : known.get(instructions.at(-1).name);
  return arranged(nodes, root.node, { text, given });
}

function applied(name, operands, nodes, lift) {
  const op = OPS[name];
  const missing = op.inputs.length + op.parameters.length - operands.length;
  const defaults = missing > 0 ? op.defaults.slice(-missing).map((number) => ({ number, text: "" })) : [];
  const filled = [...operands, ...defaults];
  if (operands.every((operand) => "number" in operand)) {
    return { number: op.forward(...filled.map((operand) => operand.number)), text: spelled(name, operands) };
  }
  const byNumber = name === "pow" && !("number" in filled[0]) && "number" in filled[1];
  const inputs = byNumber ? 1 : op.inputs.length;
  nodes.push({
    ...leaf("", 0),
    op: byNumber ? "pow_number" : name,
    children: filled.slice(0, inputs).map(lift),
    parameters: filled.slice(inputs).map((operand) => operand.number),
  });
  return { node: nodes.length - 1 };
}

const SIGNS = { add: " + ", sub: " - ", mul: "\u00b7", div: "/", pow: "**" };

/** An operation on numbers as expression.py writes it: sqrt(2) stays sqrt(2). */
function spelled(name, operands) {
  const texts = operands.map(({ number, text }) => text || exact(number).replace(/\.0$/, ""));
  const enclosed = texts.map((text) => (/^[\w.]+(\([^()]*\))?$/.test(text) ? text : `(${text})`));
  if (name === "neg") return `-${enclosed[0]}`;
  return SIGNS[name] ? enclosed.join(SIGNS[name]) : `${name}(${texts.join(", ")})`;
}

/** The graph that Python wrote as JSON (see program.py), with the numbers that are to be shown as Python has them. */
export function fromProgram(program) {
  const nodes = program.nodes.map((given, i) => ({
    ...leaf(String(given.label ?? ""), fromJson(given.data), Boolean(given.constant)),
    op: String(given.op ?? ""),
    spelled: String(given.spelled ?? ""),
    children: (given.children ?? []).map(Number),
    parameters: (given.parameters ?? []).map(fromJson),
    scope: String(program.scopes?.[given.scope] ?? ""),
    cut: Boolean(given.cut),
    partial: Boolean(given.partial),
    recorded: given.local_grads ? given.local_grads.map(fromJson) : null,
    fold: program.folds?.[i] ?? -1,
  }));
  const last = nodes.length - 1;
  if (nodes.some((node) => node.children.some((child) => !Number.isInteger(child) || child < 0 || child > last))) {
    throw new Error("the program refers to a node it does not have");
  }
  return arranged(nodes, Number(program.root ?? last), { title: String(program.title ?? ""), total: program.total, parts: partsOf(program) });
}

/** The names of the parts that a large program folds up into, by number. */
function partsOf({ parts }) {
  return Array.isArray(parts) ? parts.map((path) => path.map(String)) : null;
}

/** The reverse of fromProgram, with the numbers as they are now. */
export function toProgram({ graph, data, localGrads }) {
  const scopes = new Map();
  const nodes = graph.nodes.map((node, i) => {
    const written = {};
    if (!node.children.length || node.recorded) written.data = toJson(data[i]);
    if (node.op) written.op = node.op;
    if (node.spelled) written.spelled = node.spelled;
    if (node.children.length) written.children = node.children;
    if (node.parameters.length) written.parameters = node.parameters.map(toJson);
    if (node.label) written.label = node.label;
    if (node.scope) written.scope = numbered(scopes, node.scope);
    if (node.constant) written.constant = true;
    if (node.cut) written.cut = true;
    if (node.partial) written.partial = true;
    if (node.recorded) written.local_grads = localGrads[i].map(toJson);
    return written;
  });
  const folded = graph.parts ? { parts: graph.parts, folds: graph.nodes.map((node) => node.fold) } : {};
  return { nodes, root: graph.root, title: graph.title, total: graph.total, scopes: [...scopes.keys()], ...folded };
}

function numbered(known, name) {
  if (!known.has(name)) known.set(name, known.size);
  return known.get(name);
}

/** Left-first, depth-first post-order, without recursion: the order that backward() walks in reverse. */
export function topologicalOrder(nodes, root) {
  const order = [];
  const seen = new Set([root]);
  const path = [[root, 0]];
  while (path.length) {
    const top = path.at(-1);
    const { children } = nodes[top[0]];
    while (top[1] < children.length && seen.has(children[top[1]])) top[1] += 1;
    if (top[1] < children.length) {
      const child = children[top[1]];
      seen.add(child);
      path.push([child, 0]);
    } else {
      order.push(top[0]);
      path.pop();
    }
  }
  return order;
}

function arranged(nodes, root, rest) {
  const order = topologicalOrder(nodes, root);
  const place = new Map(order.map((node, i) => [node, i]));
  const ordered = order.map((i) => ({ ...nodes[i], children: nodes[i].children.map((child) => place.get(child)) }));
  if (ordered.some((node, i) => node.children.some((child) => child >= i))) {
    throw new Error("the program is not a graph without cycles");
  }
  const parents = ordered.map(() => []);
  ordered.forEach((node, i) => node.children.forEach((child, slot) => parents[child].push([i, slot])));
  const graph = { nodes: ordered, parents, root: ordered.length - 1, text: "", title: "", ...rest };
  graph.names = names(ordered);
  graph.editable = ordered.every(isKnown);
  return graph;
}

/** What each node is called, as graph.py has it: its label, a constant's number, else v1, v2, … or, for a leaf, x1, x2, … */
function names(nodes) {
  const short = new Map(nodes.map(({ label }) => [label, abbreviated(label)]));
  const meant = [...short.values()].sort();
  const isShared = new Set(meant.filter((name, i) => name === meant[i + 1]));
  const labels = nodes.map(({ label }) => (isShared.has(short.get(label)) ? label : short.get(label)));
  const reserved = new Set(labels);
  const taken = new Set();
  const counts = new Map();
  const next = (of) => counts.set(of, (counts.get(of) ?? 0) + 1).get(of);
  return nodes.map((node, i) => {
    let name = labels[i];
    if (node.constant) return name.replaceAll("-", "\u2212") || digits(node.value);
    const letter = node.children.length ? "v" : "x";
    if (!name) do name = letter + next(letter); while (reserved.has(name));
    else if (taken.has(name)) do name = `${labels[i]}#${next(labels[i]) + 1}`; while (taken.has(name) || reserved.has(name));
    taken.add(name);
    return name;
  });
}

/** A long path like layers.0.neurons.1.w.0 as l0.n1.w0. */
function abbreviated(label) {
  return [...label].length <= 14 ? label : label.replace(/([A-Za-z_])[A-Za-z_]*\.(?=[0-9])/g, "$1");
}

/** The text of an expression with another number in the assignment of this name. */
export function withNumber(text, name, value) {
  let depth = 0;
  let start = 0;
  const parts = [];
  [...`${text};`].forEach((character, i, all) => {
    depth = Math.max(0, depth + (character === "(") - (character === ")"));
    if (depth || (character !== ";" && character !== "\n")) return;
    parts.push(all.slice(start, i).join(""), character);
    start = i + 1;
  });
  const written = exact(value).replace(/\.0$/, "");
  const assignment = new RegExp(`^(\\s*${name}\\s*=\\s*).*$`, "su");
  return parts.slice(0, -1).map((part) => part.replace(assignment, (_, head) => head + written)).join("");
}
