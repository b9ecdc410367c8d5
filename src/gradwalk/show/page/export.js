// What can be taken along: the drawing as SVG or PNG, the page as HTML, the graph as Python code.

import { COMPOSITES } from "./composites.js";
import { exact } from "./numbers.js";
import { OPS } from "./ops.js";

// ---------------------------------------------------------------- pictures

const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-style",
  "font-weight", "text-anchor", "font-variant-numeric", "paint-order", "stroke-linejoin"];

/** The drawing as an SVG file's text: all of the graph, in the colours of the screen. */
export function svgText(drawing) {
  const { width, height } = drawing.placed;
  const margin = 24;
  const copy = drawing.svg.cloneNode(true);
  const originals = drawing.svg.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((part, i) => {
    const style = getComputedStyle(originals[i]);
    if (style.visibility === "hidden") part.textContent = "";
    if (!["g"].includes(part.tagName)) {
      for (const name of STYLES) {
        const value = style.getPropertyValue(name);
        if (value && value !== "none" && value !== "normal") part.setAttribute(name, value);
        else if (value === "none" && name === "fill") part.setAttribute(name, value);
      }
    }
    for (const name of ["class", "tabindex", "role", "aria-label", "data-card", "style"]) part.removeAttribute(name);
  });
  const background = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const ground = getComputedStyle(drawing.svg).getPropertyValue("--ground").trim() || "#fff";
  const place = { x: -margin, y: -margin, width: width + 2 * margin, height: height + 2 * margin, fill: ground };
  for (const [name, value] of Object.entries(place)) background.setAttribute(name, value);
  copy.prepend(background);
  copy.removeAttribute("class");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("viewBox", `${-margin} ${-margin} ${width + 2 * margin} ${height + 2 * margin}`);
  copy.setAttribute("width", width + 2 * margin);
  copy.setAttribute("height", height + 2 * margin);
  return new XMLSerializer().serializeToString(copy);
}

/** The drawing as a PNG, at twice the size where that is possible. */
export async function pngBlob(drawing) {
  const text = svgText(drawing);
  const image = new Image();
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    await new Promise((resolve, reject) => {
      image.onload = resolve;
      image.onerror = () => reject(new Error("the picture could not be drawn"));
      image.src = address;
    });
    const scale = Math.min(2, 8000 / image.width, 8000 / image.height);
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(image.width * scale);
    canvas.height = Math.ceil(image.height * scale);
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}

// ---------------------------------------------------------------- the page itself

/** The file this page came from, with another start: `pristine` is the document as it was before anything ran. */
export function htmlText(pristine, start) {
  const copy = pristine.cloneNode(true);
  // an end tag would end the data, so no < may be left
  copy.querySelector("#start").textContent = JSON.stringify(start).replaceAll("<", "\\u003c");
  return `<!doctype html>\n${copy.outerHTML}\n`;
}

// ---------------------------------------------------------------- Python

const KEYWORDS = new Set(("False None True and as assert async await break class continue def del elif else except " +
  "finally for from global if import in is lambda nonlocal not or pass raise return try while with yield " +
  "gradwalk Value leaf print float match case type").split(" "));
const INFIX = { add: ["+", 1], sub: ["-", 1], mul: ["*", 2], div: ["/", 2], pow: ["**", 4] };
const LONGEST = 70;

function literal(x) {
  return Number.isFinite(x) ? exact(x) : `float("${exact(x)}")`;
}

/** A program that builds this graph and prints every leaf's gradient. */
export function pythonCode(graph, values, data) {
  const names = identifiers(graph);
  const lines = ["import gradwalk", "from gradwalk import Value", ""];
  if (graph.total) lines.push(`# the ${graph.nodes.length} nodes nearest the result, of ${graph.total}: what the others add to gradients is not here`);
  const codes = [];
  graph.nodes.forEach((node, i) => {
    if (node.constant && graph.parents[i].length) {
      codes.push({ text: literal(values[i]), level: values[i] < 0 || Object.is(values[i], -0) ? 3 : 9 });
      return;
    }
    const code = node.children.length ? operationCode(node, codes, data[i]) : { text: leafCode(node, values[i]), level: 9 };
    const inline = node.children.length && !node.label && graph.parents[i].length === 1 && code.text.length <= LONGEST;
    if (inline) {
      codes.push(code);
      return;
    }
    lines.push(`${names[i]} = ${code.text}`);
    if (node.label && node.children.length) lines.push(`${names[i]}.label = ${JSON.stringify(node.label)}`);
    codes.push({ text: names[i], level: 9 });
  });
  const leaves = graph.nodes.flatMap((node, i) => (node.children.length || node.constant ? [] : [names[i]]));
  lines.push("", `${names[graph.root]}.backward()`, `print(${JSON.stringify(names[graph.root])}, ${names[graph.root]}.data)`);
  lines.push(`for leaf in [${leaves.join(", ")}]:`, "    print(leaf.label, leaf.data, leaf.grad)", "");
  return lines.join("\n");
}

function leafCode(node, value) {
  return node.label ? `Value(${literal(value)}, label=${JSON.stringify(node.label)})` : `Value(${literal(value)})`;
}

function operationCode(node, codes, data) {
  const at = (k, level) => (codes[node.children[k]].level >= level ? codes[node.children[k]].text : `(${codes[node.children[k]].text})`);
  if (Object.hasOwn(INFIX, node.op)) {
    const [sign, level] = INFIX[node.op];
    return { text: `${at(0, level === 4 ? 5 : level)} ${sign} ${at(1, level + 1)}`, level };
  }
  if (node.op === "neg") return { text: `-${at(0, 4)}`, level: 3 };
  if (node.op === "pow_number") {
    const n = node.parameters[0];
    return { text: `${at(0, 5)} ** ${n < 0 ? `(${literal(n)})` : literal(n)}`, level: 4 };
  }
  const all = node.children.map((_, k) => at(k, 0));
  if (Object.hasOwn(OPS, node.op)) {
    return { text: `gradwalk.${node.op}(${[...all, ...node.parameters.map(literal)].join(", ")})`, level: 9 };
  }
  return { text: compositeCode(node, all, data), level: 9 };
}

function compositeCode(node, all, data) {
  if (node.op === "take") return `gradwalk.take([${all.join(", ")}], 0)`;
  if (Object.hasOwn(COMPOSITES, node.op)) {
    const { called, inputs, perEntry, target } = COMPOSITES[node.op];
    const length = all.length / inputs.length;
    const lists = inputs.map((_, k) => `[${all.slice(k * length, (k + 1) * length).join(", ")}]`);
    const parameters = (perEntry ? node.parameters.slice(1) : node.parameters).map(target ? String : literal);
    return `gradwalk.${called}(${[...lists, ...parameters].join(", ")})${perEntry ? `[${node.parameters[0]}]` : ""}`;
  }
  const locals = (node.recorded ?? []).map(literal);
  const tuple = (parts) => `(${parts.join(", ")}${parts.length === 1 ? "," : ""})`;
  return `Value(${literal(data)}, ${tuple(all)}, ${JSON.stringify(node.spelled)}, local_grads=${tuple(locals)})`;
}

/** A Python name for every node: its own name where that is one and still free. */
function identifiers(graph) {
  const taken = new Set(KEYWORDS);
  return graph.names.map((name) => {
    let wanted = /^[\p{L}_][\p{L}\p{N}_]*$/u.test(name) ? name.normalize("NFKC") : "v";
    if (taken.has(wanted)) {
      let count = 1;
      while (taken.has(`${wanted}_${count}`)) count += 1;
      wanted = `${wanted}_${count}`;
    }
    taken.add(wanted);
    return wanted;
  });
}
