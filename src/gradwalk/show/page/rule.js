// The rule, beside the graph: its five lines, the one that the step carries out lit, with the numbers it has now.

import { become, element } from "./dom.js";
import { short } from "./numbers.js";

const FOR = {
  breadth_first: "for node in breadth_first(root):",
  no_order: "for node in order:",
};

/** The five lines of the backward pass; a wrong mode is one line that is different. */
function lines(mode, root) {
  return [
    "order = nodes, children first",
    mode === "not_reset" ? `${root}.grad = 1  # others not reset` : `${root}.grad = 1`,
    FOR[mode] ?? "for node in reversed(order):",
    "  for child, local in node:",
    `    child.grad ${mode === "assign" ? "=" : "+="} local * node.grad`,
  ];
}

/** What stands beside the lines at this step, by line; the last of them is lit. */
function noted(line, step) {
  const { names } = line.graph;
  if (step.kind === "forward") return { 0: names[step.node] };
  if (step.kind === "seed") return { 1: "" };
  if (step.kind !== "contribution") return {};
  return {
    2: names[step.node],
    3: names[step.child],
    4: `${names[step.child]}.grad ${line.mode === "assign" ? "=" : "+="} ${short(step.local)} \u00b7 ${short(step.upstream)}`,
  };
}

export class Rule {
  constructor() {
    this.list = element("ol", { class: "rule" });
    this.root = element("section", { class: "rule-box", "aria-label": "The rule" }, this.list);
  }

  show(line, step) {
    const root = line.graph.names[line.graph.root];
    const now = noted(line, step);
    const lit = Math.max(-1, ...Object.keys(now).map(Number));
    const wrong = { breadth_first: 2, no_order: 2, assign: 4, not_reset: 1 }[line.mode];
    become(this.list, ...lines(line.mode, root).map((text, k) => {
      const kinds = [k === lit && (step.kind === "forward" ? "lit forward" : "lit"), k === wrong && "mistaken"].filter(Boolean).join(" ");
      return element("li", { class: kinds || null, "aria-current": k === lit ? "step" : null },
        element("code", {}, text), now[k] ? element("span", { class: "now" }, now[k]) : null);
    }));
  }
}
