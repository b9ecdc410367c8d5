// Step downhill: x ← x − η · grad on chosen leaves, once or running, with the result drawn as it falls.

import { element, fill, setText, svg } from "./dom.js";
import { isEditable } from "./graph.js";
import { Boundary, MOONS, overMoons, placesOf, rightShare } from "./moons.js";
import { short, typed } from "./numbers.js";

const PACE_MS = 60;
const MOST_STEPS = 400;
const MOST_LEAVES = 24;
const PLOT = { width: 290, height: 84, edge: 5 };

export class Downhill {
  /** `on.values(changes)` takes new values by node, and gives back the walk with them. */
  constructor(on) {
    this.on = on;
    this.timer = null;
    this.rate = element("input", { class: "field rate", type: "text", inputmode: "decimal", value: "0.05", autocomplete: "off", "aria-label": "Learning rate \u03b7" });
    this.run = element("button", { type: "button", class: "quiet", click: () => (this.timer === null ? this.start() : this.stop()) }, "Run");
    this.leaves = element("div", { class: "leaves", role: "group", "aria-label": "Leaves that move" });
    this.curve = svg("polyline", { class: "falling" });
    this.plot = svg("svg", { class: "plot", viewBox: `0 0 ${PLOT.width} ${PLOT.height}`, role: "img", "aria-label": "The result, step by step" }, this.curve);
    this.told = element("p", { class: "told", role: "status" });
    this.boundary = new Boundary();
    this.onMoons = element("input", { type: "checkbox", change: () => this.restart() });
    this.moons = element("label", { class: "moons" }, this.onMoons, `on two moons: the mean over ${MOONS.length} points`);
    this.root = element("section", { class: "downhill", "aria-label": "Step downhill", hidden: true },
      element("p", {}, "x \u2190 x \u2212 \u03b7 \u00b7 x.grad, for the leaves chosen here:"), this.leaves,
      element("div", { class: "asking" }, element("label", {}, "\u03b7 = ", this.rate),
        element("button", { type: "button", class: "quiet", click: () => this.once() }, "One step"), this.run),
      this.moons, this.plot, this.told, this.boundary.root);
  }

  /** A new graph: what is not among the example's `fixed` names moves. */
  load(graph, fixed) {
    this.graph = graph;
    this.places = placesOf(graph);
    this.onMoons.checked = false;
    this.moons.hidden = !this.places;
    this.restart();
    this.list = () => this.listLeaves(fixed); // once somebody looks
  }

  listLeaves(fixed) {
    const { graph } = this;
    const editable = graph.nodes.flatMap((_, i) => (isEditable(graph, i) ? [i] : []));
    this.moving = new Set(editable.filter((i) => !fixed.has(graph.names[i])));
    const listed = editable.slice(0, MOST_LEAVES).map((i) => {
      const box = element("input", { type: "checkbox", change: () => (box.checked ? this.moving.add(i) : this.moving.delete(i)) });
      box.checked = this.moving.has(i);
      return element("label", {}, box, graph.names[i]);
    });
    const rest = editable.length - listed.length;
    fill(this.leaves, ...listed, rest > 0 ? element("span", {}, `and ${rest.toLocaleString("en")} more`) : null);
  }

  /** From here on, over other points. */
  restart() {
    this.stop();
    this.history = [];
    this.boundary.root.hidden = !this.onMoons.checked;
    if (this.line?.graph === this.graph) this.draw();
  }

  show(line) {
    this.line = line;
    if (this.root.hidden) return;
    this.list?.();
    this.list = null;
    if (this.drawn !== line) this.draw();
  }

  /** The loss and its gradients: where the walk stands, or over all points. */
  measured() {
    const { data, grads, graph } = this.line;
    return this.onMoons.checked ? overMoons(graph, data, this.places) : { loss: data[graph.root], grads };
  }

  once() {
    const rate = typed(this.rate.value);
    this.rate.classList.toggle("bad", rate === null);
    if (rate === null) return false;
    const { data } = this.line;
    const { loss, grads } = this.measured();
    if (!this.history.length) this.history.push(loss);
    const changes = new Map([...this.moving].map((i) => [i, data[i] - rate * grads[i]]).filter(([, value]) => Number.isFinite(value)));
    this.line = this.on.values(changes);
    this.history.push(this.measured().loss);
    this.draw();
    return Number.isFinite(this.history.at(-1));
  }

  start() {
    setText(this.run, "Stop");
    const tick = () => {
      const goesOn = this.once() && this.history.length < MOST_STEPS;
      if (goesOn) this.timer = setTimeout(tick, PACE_MS);
      else this.stop();
    };
    this.timer = setTimeout(tick, 0);
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = null;
    setText(this.run, "Run");
  }

  draw() {
    this.drawn = this.line;
    const shown = this.history.filter(Number.isFinite);
    const [low, high] = [Math.min(...shown), Math.max(...shown)];
    const { width, height, edge } = PLOT;
    const x = (k) => edge + (k / Math.max(1, shown.length - 1)) * (width - 2 * edge);
    const y = (value) => edge + (high > low ? (high - value) / (high - low) : 0.5) * (height - 2 * edge);
    this.curve.setAttribute("points", shown.map((value, k) => `${x(k).toFixed(1)},${y(value).toFixed(1)}`).join(" "));
    const count = this.history.length - 1;
    setText(this.told, count > 0 ? `${count} step${count > 1 ? "s" : ""}: from ${short(this.history[0])} to ${short(this.history.at(-1))}` : "The result has not moved yet.");
    if (!this.onMoons.checked) return;
    const { data, graph } = this.line;
    this.boundary.draw(graph, data, this.places);
    this.told.append(`; ${Math.round(100 * rightShare(graph, data, this.places))} % on the right side`);
  }
}
