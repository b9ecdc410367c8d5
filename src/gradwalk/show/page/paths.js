// Paths: every way from the result to a leaf, each with the product of what stands on its edges; their sum is the gradient.

import { PARTIAL } from "./describe.js";
import { element, fill, setText } from "./dom.js";
import { exact, short } from "./numbers.js";

const MOST_LISTED = 24;

/** How many ways lead from the root to `leaf`: exactly, however many. */
export function countPaths(graph, leaf) {
  const ways = new Array(graph.nodes.length).fill(0n);
  ways[leaf] = 1n;
  for (let i = leaf + 1; i <= graph.root; i += 1) {
    for (const child of graph.nodes[i].children) ways[i] += ways[child];
  }
  return ways[graph.root];
}

/** The first ways, each as {nodes, factors, product}: from the root down, first argument first. */
export function listPaths(line, leaf, most = MOST_LISTED) {
  const { graph, localGrads } = line;
  const leads = new Uint8Array(graph.nodes.length);
  leads[leaf] = 1;
  for (let i = leaf + 1; i <= graph.root; i += 1) leads[i] = graph.nodes[i].children.some((child) => leads[child]) ? 1 : 0;
  const found = [];
  const waiting = [{ nodes: [graph.root], slots: [], factors: [] }];
  while (waiting.length && found.length < most) {
    const { nodes, slots, factors } = waiting.pop();
    const last = nodes.at(-1);
    if (last === leaf) {
      found.push({ nodes, slots, factors, product: factors.reduce((product, factor) => product * factor, 1) });
      continue;
    }
    const { children } = graph.nodes[last];
    for (let slot = children.length - 1; slot >= 0; slot -= 1) {
      if (leads[children[slot]]) {
        waiting.push({ nodes: [...nodes, children[slot]], slots: [...slots, slot], factors: [...factors, localGrads[last][slot]] });
      }
    }
  }
  return found;
}

export class Paths {
  /** `on.mark(path | null)` lights a path in the graph. */
  constructor(on) {
    this.on = on;
    this.choice = element("select", { "aria-label": "Leaf", change: () => this.write() });
    this.list = element("ul", { class: "path-list" });
    this.sum = element("p", { class: "told" });
    this.root = element("section", { class: "paths", "aria-label": "Paths", hidden: true },
      element("label", { class: "asking" }, "Paths from the result to ", this.choice), this.list, this.sum);
  }

  load(graph) {
    const leaves = graph.nodes.flatMap((node, i) => (node.children.length || node.constant ? [] : [i]));
    fill(this.choice, ...leaves.slice(0, 400).map((i) => element("option", { value: String(i) }, graph.names[i])));
  }

  show(line) {
    if (this.line === line) return;
    this.line = line;
    if (!this.root.hidden) this.write();
  }

  write() {
    const leaf = Number(this.choice.value);
    const { graph, right } = this.line;
    const count = countPaths(graph, leaf);
    const found = listPaths(this.line, leaf);
    const whole = count === BigInt(found.length);
    fill(this.list, ...found.map((path) => element("li", {},
      element("button", { type: "button", class: "path", focus: () => this.on.mark(path), blur: () => this.on.mark(null), pointerenter: () => this.on.mark(path), pointerleave: () => this.on.mark(null) },
        element("span", { class: "way" }, path.nodes.map((i) => graph.names[i]).join(" \u2192 ")),
        element("span", { class: "product", title: exact(path.product) }, `${path.factors.length ? path.factors.map(short).join(" \u00b7 ") : "1"} = ${short(path.product)}`)))));
    const total = found.reduce((sum, path) => sum + path.product, 0);
    const listed = count === 1n ? "One path" : `${count.toLocaleString("en")} paths`;
    const is = this.line.mode === "right" ? "is" : "should be";
    const told = graph.nodes[leaf].partial ? `${short(right[leaf])}, ${PARTIAL}` : short(right[leaf]);
    setText(this.sum, whole
      ? `${listed}; the sum of the products is ${short(total)}, and ${graph.names[leaf]}.grad ${is} ${told}.`
      : `${listed}, the first ${found.length} of them above. Backpropagation adds them all up without walking each: ${graph.names[leaf]}.grad ${is} ${told}.`);
  }
}
