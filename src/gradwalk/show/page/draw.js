// The graph as SVG: cards for nodes, curves for edges. `show` lays out and builds; `update` changes only what is
// different at this step. Edges lie in a picture of their own below, which is not painted again when a card changes,
// and what is out of sight is not painted at all: that is how a thousand nodes can be scrubbed.

import { glyph } from "./describe.js";
import { setText, svg } from "./dom.js";
import { gradsAt, stepAt } from "./engine.js";
import { isEditable } from "./graph.js";
import { layout } from "./layout.js";
import { subscripted } from "./mathml.js";
import { exact, short } from "./numbers.js";
import { Viewport } from "./viewport.js";

const WIDTH = 112;
const HEIGHT = 62;
const PILL = { width: 52, height: 26 };
const MOST_LABELS = 40; // edges; beyond it local gradients show only on the edge that fires
const MOST_UNCULLED = 150;
const PULSE_MS = 480;

export class Drawing {
  /** `on` has the callbacks: hover(node | null, card), choose(node), scrub(node, event), key(event, node). */
  constructor(on) {
    this.on = on;
    this.edgeLayer = svg("g", { class: "edges" });
    this.firing = svg("g", { class: "edges", "aria-hidden": "true" });
    this.labelLayer = svg("g", { "aria-hidden": "true" });
    this.nodeLayer = svg("g", { class: "nodes", tabindex: "-1" }); // or its listeners make it a stop of the Tab key
    this.pulseLayer = svg("g", { class: "pulses", "aria-hidden": "true" });
    this.lowerWorld = svg("g", {}, this.edgeLayer);
    this.world = svg("g", {}, this.firing, this.labelLayer, this.nodeLayer, this.pulseLayer);
    this.lower = svg("svg", { class: "graph lower", "aria-hidden": "true" }, this.lowerWorld);
    this.svg = svg("svg", { class: "graph", role: "group", "aria-label": "The graph" }, this.world);
    this.viewport = new Viewport(this.svg, [this.lowerWorld, this.world], () => this.cull());
    this.cards = [];
    this.edges = [];
    this.focused = -1;
    this.listen();
  }

  /** One listener for all cards: a new graph is not slowed down by thousands of them. */
  listen() {
    const place = (event) => {
      const group = event.target.closest?.(".node");
      return group ? Number(group.dataset.node) : null;
    };
    const about = (event, action) => {
      const i = place(event);
      if (i !== null) action(i, this.cards[i].group);
    };
    const layer = this.nodeLayer;
    layer.addEventListener("pointerover", (event) => event.pointerType !== "touch" && about(event, (i, group) => this.on.hover(i, group)));
    layer.addEventListener("pointerout", () => this.on.hover(null));
    layer.addEventListener("focusin", (event) => about(event, (i, group) => {
      this.focused = i;
      this.on.hover(i, group);
    }));
    layer.addEventListener("focusout", () => this.on.hover(null));
    layer.addEventListener("click", (event) => about(event, (i, group) => this.on.choose(i, group)));
    layer.addEventListener("keydown", (event) => about(event, (i) => this.on.key(event, i)));
    layer.addEventListener("pointerdown", (event) => about(event, (i, group) => {
      if (this.cards[i].editable) this.on.scrub(i, event, group);
    }));
  }

  // ---------------------------------------------------------------- building

  show(graph, vertical) {
    this.graph = graph;
    this.vertical = vertical;
    const gaps = vertical ? { alongGap: 44, acrossGap: 14 } : { alongGap: graph.nodes.length > 12 ? 48 : 72, acrossGap: 18 };
    this.placed = layout(graph.nodes, { nodeWidth: WIDTH, nodeHeight: HEIGHT, vertical, ...gaps });
    this.labelled = this.placed.edges.length <= MOST_LABELS;
    this.captioned = graph.nodes.length <= MOST_UNCULLED;
    this.svg.classList.toggle("many", !this.captioned);
    this.cards = graph.nodes.map((node, i) => this.card(node, i));
    this.edges = this.placed.edges.map((edge) => this.edge(edge));
    this.byParent = new Map();
    this.edges.forEach((edge) => {
      if (!this.byParent.has(edge.parent)) this.byParent.set(edge.parent, []);
      this.byParent.get(edge.parent)[edge.slot] = edge;
    });
    this.edgeLayer.replaceChildren(...this.edges.map((edge) => edge.path));
    this.labelLayer.replaceChildren(...(this.labelled ? this.edges.map((edge) => edge.label) : []));
    this.nodeLayer.replaceChildren(...this.cards.map((card) => card.group));
    this.firing.replaceChildren();
    this.pulseLayer.replaceChildren();
    this.active = [];
    this.focused = -1;
    if (this.cards.length) this.cards.at(-1).group.setAttribute("tabindex", "0");
    this.viewport.resize(this.placed.width, this.placed.height);
  }

  card(node, i) {
    const { x, y } = this.placed.at[i];
    const isLeaf = !node.children.length;
    const size = node.constant ? PILL : { width: WIDTH, height: HEIGHT };
    const left = -size.width / 2;
    const top = -size.height / 2;
    const kinds = ["node", isLeaf ? "leaf" : "op", node.constant ? "constant" : "", node.cut ? "cut" : ""];
    if (isEditable(this.graph, i)) kinds.push("editable");
    if (i === this.graph.root) kinds.push("root");
    const name = this.graph.names[i];
    const box = svg("rect", { class: "box", x: left, y: top, width: size.width, height: size.height, rx: node.constant ? 13 : 10 });
    const card = { i, kinds: kinds.filter(Boolean).join(" "), editable: kinds.includes("editable"), data: null, grad: null, state: null, size, hidden: false };
    card.group = svg("g", { class: card.kinds, transform: `translate(${x} ${y})`, tabindex: "-1", role: "button", "aria-label": name, "data-node": i }, box);
    if (node.constant) {
      card.group.append(svg("text", { class: "constant-text", x: 0, y: 5 }, short(node.value)));
    } else {
      const sign = isLeaf ? (node.cut ? "\u2026" : "") : glyph(node);
      card.dataText = svg("text", { class: "data number", x: size.width / 2 - 10, y: 6 });
      card.gradText = svg("text", { class: "grad number", x: size.width / 2 - 10, y: 23 });
      card.group.append(
        nameText(clipped(name, sign), left + 10, top + 19),
        svg("text", { class: "glyph", x: size.width / 2 - 10, y: top + 19 }, sign),
        ...(this.captioned ? [svg("text", { class: "caption", x: left + 10, y: 6 }, "data"), svg("text", { class: "caption", x: left + 10, y: 23 }, node.partial ? "part of grad" : "grad")] : []),
        card.dataText,
        card.gradText,
      );
    }
    return card;
  }

  edge({ parent, child, slot, bends }) {
    const points = [this.port(child, 1, 1, 0), ...bends, this.port(parent, -1, this.graph.nodes[parent].children.length, slot)];
    const path = svg("path", { class: "edge", d: curve(points, this.vertical) });
    const middle = between(points.at(-2), points.at(-1), 0.56, this.vertical);
    const label = this.labelled ? svg("text", { class: "local", x: middle.x, y: middle.y - 4 }) : null;
    const xs = points.map((point) => point.x);
    const ys = points.map((point) => point.y);
    const box = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
    return { parent, child, slot, path, label, middle, box, text: "", hidden: false };
  }

  /** Where edges touch a card: results leave at its middle, arguments come in one below the other. */
  port(i, side, count, slot) {
    const { x, y } = this.placed.at[i];
    const { width, height } = this.cards[i].size;
    const share = count === 1 ? 0 : (slot + 1) / (count + 1) - 0.5;
    const spread = count === 2 ? 0.9 : 1;
    return this.vertical
      ? { x: x + share * width * spread, y: y + (side * height) / 2 }
      : { x: x + (side * width) / 2, y: y + share * height * spread };
  }

  // ---------------------------------------------------------------- updating

  /** Show the graph as it is when `t` steps are done. */
  update(line, t) {
    const step = stepAt(line, t);
    const grads = gradsAt(line, t);
    const computedUntil = t >= line.forwardSteps ? line.graph.nodes.length : t > 0 ? line.computing[t - 1] + 1 : 0;
    const troubled = new Set(line.problems.map((problem) => problem.node));
    const reached = line.mode === "right" ? null : line.right;
    for (const card of this.cards) {
      const node = line.graph.nodes[card.i];
      const known = !node.children.length || card.i < computedUntil;
      this.setNumbers(card, known ? line.data[card.i] : null, grads ? grads[card.i] : null);
      let state = known ? "" : " waiting";
      if (grads && grads[card.i] !== 0) state += " has-grad";
      if (card.i === step.node && step.kind !== "contribution") state += " active-forward";
      if (card.i === step.node && step.kind !== "forward") state += " active-upstream";
      if (card.i === step.child) state += " active-child";
      if (troubled.has(card.i) && known) state += " troubled";
      if (reached && t === line.steps && grads && !close(grads[card.i], reached[card.i])) state += " wrong";
      if (step.wrong && (card.i === step.child || card.i === step.node)) state += " wrong-step";
      if (state !== card.state) {
        card.state = state;
        card.group.setAttribute("class", card.kinds + state);
      }
    }
    this.markEdges(line, step, computedUntil);
    return step;
  }

  setNumbers(card, data, grad) {
    if (!card.dataText) return;
    if (!Object.is(data, card.data)) {
      card.data = data;
      setText(card.dataText, short(data));
    }
    if (!Object.is(grad, card.grad)) {
      card.grad = grad;
      setText(card.gradText, this.graph.nodes[card.i].partial && grad !== null ? `${short(grad)} + \u2026` : short(grad));
    }
  }

  /** What fires is drawn once more, over the rest; local gradients stand on every edge, or only on those. */
  markEdges(line, step, computedUntil) {
    const forward = step.kind === "forward";
    this.active = forward ? this.byParent.get(step.node) : step.kind === "contribution" ? [this.byParent.get(step.node)[step.slot]] : [];
    const state = forward ? " fires-forward" : step.wrong ? " fires-backward fires-wrong" : " fires-backward";
    const drawn = this.active.map((edge) => svg("path", { class: `edge${state}`, d: edge.path.getAttribute("d") }));
    const told = forward ? [] : this.active.map((edge) => {
      const text = short(line.localGrads[edge.parent][edge.slot]);
      return svg("text", { class: `local${state}`, x: edge.middle.x, y: edge.middle.y - 4 }, text);
    });
    this.firing.replaceChildren(...drawn, ...told);
    if (!this.labelled) return;
    for (const edge of this.edges) {
      const shown = edge.parent < computedUntil && (forward || !this.active.includes(edge));
      const text = shown ? short(line.localGrads[edge.parent][edge.slot]) : "";
      if (text !== edge.text) {
        edge.text = text;
        edge.label.textContent = text;
      }
    }
  }

  /** Hide what lies well outside the view. */
  cull() {
    if (!this.placed || this.cards.length <= MOST_UNCULLED) return;
    const { x, y, scale, view } = this.viewport;
    const left = (-x - view.width * 0.3) / scale - WIDTH;
    const top = (-y - view.height * 0.3) / scale - HEIGHT;
    const right = (1.3 * view.width - x) / scale + WIDTH;
    const bottom = (1.3 * view.height - y) / scale + HEIGHT;
    const set = (item, element, hidden) => {
      if (item.hidden === hidden) return;
      item.hidden = hidden;
      element.style.display = hidden ? "none" : "";
    };
    for (const card of this.cards) {
      const at = this.placed.at[card.i];
      set(card, card.group, at.x < left || at.x > right || at.y < top || at.y > bottom);
    }
    for (const edge of this.edges) {
      const [x0, y0, x1, y1] = edge.box;
      set(edge, edge.path, x1 < left || x0 > right || y1 < top || y0 > bottom);
    }
  }

  /** The exact numbers of a node as a screen reader says them; written when a card is focused, not at every step. */
  announce(i, line, text) {
    this.cards[i].group.setAttribute("aria-label", `${this.graph.names[i]}, ${text}, data ${exact(line.data[i])}`);
  }

  /** A dot along each edge that fires: towards the result going forward, towards the inputs going back. */
  pulse(step) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const backward = step.kind === "contribution";
    const dots = this.active.map((edge) => ({ edge, dot: svg("circle", { r: 5, class: backward ? "pulse backward" : "pulse forward" }), length: edge.path.getTotalLength() }));
    this.pulseLayer.replaceChildren(...dots.map(({ dot }) => dot));
    const start = performance.now();
    const run = (this.run = (this.run ?? 0) + 1);
    const frame = (now) => {
      if (run !== this.run) return;
      const share = Math.min(1, Math.max(0, (now - start) / PULSE_MS));
      const eased = share < 0.5 ? 2 * share * share : 1 - 2 * (1 - share) ** 2;
      for (const { edge, dot, length } of dots) {
        const point = edge.path.getPointAtLength((backward ? 1 - eased : eased) * length);
        dot.setAttribute("cx", point.x);
        dot.setAttribute("cy", point.y);
      }
      if (share < 1) requestAnimationFrame(frame);
      else this.pulseLayer.replaceChildren();
    };
    if (dots.length) requestAnimationFrame(frame);
  }

  /** Bring what a step is about into view, if it is not. */
  follow(step) {
    const about = [step.node, step.child].filter((i) => i !== undefined);
    if (about.length) this.viewport.reveal(about.map((i) => this.placed.at[i]), WIDTH, HEIGHT);
  }

  focus(i) {
    const card = this.cards[Math.max(0, Math.min(this.cards.length - 1, i))];
    for (const other of this.cards) if (other.group.getAttribute("tabindex") === "0") other.group.setAttribute("tabindex", "-1");
    card.group.setAttribute("tabindex", "0");
    this.viewport.reveal([this.placed.at[card.i]], WIDTH, HEIGHT); // first: what is out of sight cannot be focused
    card.group.focus({ preventScroll: true });
  }
}

const close = (a, b) => Object.is(a, b) || Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b));

function nameText(name, x, y) {
  const parts = subscripted(name);
  if (!parts) return svg("text", { class: "name", x, y }, name);
  return svg("text", { class: "name", x, y }, parts[0], svg("tspan", { dy: 3, dx: 1 }, parts[1]));
}

function clipped(name, sign) {
  const room = Math.max(3, 12 - sign.length);
  return name.length > room ? `${name.slice(0, room - 1)}\u2026` : name;
}

function curve(points, vertical) {
  let d = `M${points[0].x.toFixed(1)} ${points[0].y.toFixed(1)}`;
  for (let i = 1; i < points.length; i += 1) {
    const [a, b] = [points[i - 1], points[i]];
    const reach = (vertical ? b.y - a.y : b.x - a.x) * 0.5;
    const [c1, c2] = vertical
      ? [{ x: a.x, y: a.y + reach }, { x: b.x, y: b.y - reach }]
      : [{ x: a.x + reach, y: a.y }, { x: b.x - reach, y: b.y }];
    d += `C${[c1, c2, b].map((p) => `${p.x.toFixed(1)} ${p.y.toFixed(1)}`).join(" ")}`;
  }
  return d;
}

/** A point of the curve between two of its bends. */
function between(a, b, share, vertical) {
  const along = 1 - share;
  const weights = [along ** 3, 3 * along ** 2 * share, 3 * along * share ** 2, share ** 3];
  const reach = (vertical ? b.y - a.y : b.x - a.x) * 0.5;
  const xs = vertical ? [a.x, a.x, b.x, b.x] : [a.x, a.x + reach, b.x - reach, b.x];
  const ys = vertical ? [a.y, a.y + reach, b.y - reach, b.y] : [a.y, a.y, b.y, b.y];
  const mixed = (values) => values.reduce((sum, value, i) => sum + value * weights[i], 0);
  return { x: mixed(xs), y: mixed(ys) };
}
