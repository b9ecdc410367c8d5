// A whole graph as the formula one would write: shared and labelled nodes by name, the rest spelled out.

import { called, operation } from "./describe.js";
import { identifier, math, numeral, upright } from "./mathml.js";
import { short } from "./numbers.js";

const LEVEL = { add: 1, sub: 1, mul: 2, neg: 2, div: 3, pow: 4, pow_number: 4 };
const AROUND = { abs: ["|", "|"], floor: ["\u230a", "\u230b"], ceil: ["\u2308", "\u2309"] };
const MOST_NODES = 60;
const MOST_LINES = 8;

/** One <math> per labelled result, the root last; empty where the graph is too large to be read as a formula. */
export function typeset(graph) {
  if (graph.nodes.length > MOST_NODES || !graph.nodes.every((node) => !node.children.length || operation(node))) return [];
  const named = graph.nodes.flatMap((node, i) => (isNamed(graph, i) || i === graph.root ? [i] : []));
  const lines = named.filter((i) => graph.nodes[i].children.length);
  if (lines.length > MOST_LINES) return [];
  return lines.map((i) => {
    const right = spelled(graph, i, 0);
    const label = graph.nodes[i].label || (graph.nodes[i].children.length && graph.parents[i].length ? graph.names[i] : "");
    return label ? math("math", identifier(label), math("mo", "="), right) : math("math", right);
  });
}

function isNamed(graph, i) {
  const node = graph.nodes[i];
  return node.children.length > 0 && (node.label !== "" || graph.parents[i].length > 1);
}

function operand(graph, i, level) {
  const node = graph.nodes[i];
  if (node.constant) return numeral(graph.names[i], level > 1);
  if (!node.children.length || isNamed(graph, i)) return identifier(graph.names[i]);
  const written = spelled(graph, i, level);
  return (LEVEL[node.op] ?? 9) < level ? bracketed(written) : written;
}

function bracketed(...inside) {
  return math("mrow", math("mo", "("), ...inside, math("mo", ")"));
}

const separated = (parts) => parts.flatMap((part, k) => (k ? [math("mo", ","), part] : [part]));

function spelled(graph, i) {
  const node = graph.nodes[i];
  const at = (k, level) => operand(graph, node.children[k], level);
  const infix = (sign, level) => math("mrow", at(0, level), math("mo", sign), at(1, level + 1));
  if (node.op === "add") return infix("+", 1);
  if (node.op === "sub") return infix("\u2212", 1);
  if (node.op === "mul") return infix("\u22c5", 2);
  if (node.op === "div") return math("mfrac", at(0, 0), at(1, 0));
  if (node.op === "neg") return math("mrow", math("mo", "\u2212"), at(0, 2));
  if (node.op === "pow") return math("msup", at(0, 5), at(1, 0));
  if (node.op === "pow_number") return math("msup", at(0, 5), numeral(short(node.parameters[0])));
  if (node.op === "sqrt") return math("msqrt", at(0, 0));
  if (node.op === "cbrt") return math("mroot", at(0, 0), math("mn", "3"));
  if (Object.hasOwn(AROUND, node.op)) {
    const [open, close] = AROUND[node.op];
    return math("mrow", math("mo", open), at(0, 0), math("mo", close));
  }
  const name = upright(called(node));
  const { inputs, perEntry, target } = operation(node);
  const listed = node.children.map((_, k) => at(k, 0));
  const numbers = node.parameters.map((number) => numeral(short(number)));
  if (perEntry) return math("mrow", name, math("msub", bracketed(...separated(listed)), numbers[0]));
  if (target === undefined) return math("mrow", name, bracketed(...separated([...listed, ...numbers])));
  const each = listed.length / inputs.length; // of each row
  const rows = inputs.map((_, k) => math("mrow", math("mo", "["), ...separated(listed.slice(k * each, (k + 1) * each)), math("mo", "]")));
  return math("mrow", name, bracketed(...separated(rows.length > 1 || target ? [...rows, ...numbers] : listed)));
}
