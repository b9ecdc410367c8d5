// The graph as SVG: cards for nodes and folded parts, curves for edges. `show` lays out and builds; `update` changes
// only what is different at this step. No more is drawn than can be looked at (fold.js), and so it is always quick.

import { cardOf, sizeOf, writeInto, writeNumber } from "./cards.js";
import { operation, PARTIAL } from "./describe.js";
import { arrange, setAttributes, svg } from "./dom.js";
import { arrowhead, curve, LABEL, labelSpots, overlaps, way } from "./edges.js";
import { gradsAt, stepAt } from "./engine.js";
import { connected, Folding } from "./fold.js";
import { layout } from "./layout.js";
import { readFonts } from "./lettering.js";
import { Motion } from "./motion.js";
import { exact, short } from "./numbers.js";
import { MARGIN, READABLE, Viewport, wholeScale } from "./viewport.js";

const NARROW_GAP = 24; // between columns with nothing but a 1 on their edges
const LABEL_GAP = LABEL.width + 7;
const DOWN_GAP = 46; // between rows, where data flows down
const NEIGHBOUR_GAP = 12;
const ABOVE_BUTTONS = 90;
const MOST_STRETCH = 44;
const MOST_LABELS = 64; // edges; beyond it local gradients show only on the edge that fires

export class Drawing {
  /** `on` has the callbacks: hover(node | null, card), choose(node, card), fold(part), scrub(node, event, card), key(event, node), moved(). */
  constructor(on) {
    this.on = on;
    this.edgeLayer = svg("g", { class: "edges", "aria-hidden": "true" });
    this.firing = svg("g", { class: "edges", "aria-hidden": "true" });
    this.labelLayer = svg("g", { "aria-hidden": "true" });
    this.told = svg("g", { "aria-hidden": "true" }); // the number of what fires; no edge lies on any number
    this.nodeLayer = svg("g", { class: "nodes", tabindex: "-1" }); // or its listeners make it a stop of the Tab key
    this.motion = new Motion();
    this.world = svg("g", { class: "world" }, this.edgeLayer, this.firing, this.motion.under, this.labelLayer, this.told, this.nodeLayer, this.motion.layer);
    this.svg = svg("svg", { class: "graph", role: "group", "aria-label": "The graph" }, this.world);
    this.viewport = new Viewport(this.svg, this.world, () => on.moved());
    this.cards = [];
    this.edges = [];
    this.focused = -1;
    this.listen();
  }

  /** One listener for all cards: a new graph is not slowed down by many of them. */
  listen() {
    const about = (event, action) => {
      const group = event.target.closest?.(".node");
      if (group) action(this.cards[Number(group.dataset.card)]);
    };
    const layer = this.nodeLayer;
    const tell = (card) => this.on.hover(card);
    layer.addEventListener("pointerover", (event) => event.pointerType !== "touch" && about(event, tell));
    layer.addEventListener("pointerout", () => this.on.hover(null));
    layer.addEventListener("focusin", (event) => about(event, (card) => {
      this.focused = card.k;
      tell(card);
    }));
    layer.addEventListener("focusout", () => this.on.hover(null));
    layer.addEventListener("click", (event) => about(event, (card) => (card.item.part ? this.on.fold(card.item.part) : tell(card))));
    layer.addEventListener("keydown", (event) => about(event, (card) => {
      if (card.item.part && event.key === "Enter") this.on.fold(card.item.part);
      else if (card.i >= 0) this.on.key(event, card.i);
    }));
    layer.addEventListener("pointerdown", (event) => about(event, (card) => {
      if (card.editable) this.on.scrub(card.i, event, card.group);
    }));
  }

  // ---------------------------------------------------------------- building

  show(graph) {
    this.folding = new Folding(graph);
    this.graph = graph;
    this.build();
  }

  /** Fold or unfold a part, and keep it where one looks. */
  toggle(part) {
    this.folding.toggle(part);
    this.build();
    const isInside = (each) => { for (let at = each; at; at = at.above) if (at === part) return true; return false; };
    const card = this.cards.find((each) => each.item.part && isInside(each.item.part)) ?? this.cards.at(-1);
    this.viewport.reveal([this.placeOf(card)]);
  }

  build() {
    readFonts(this.svg);
    const { graph } = this;
    const items = this.folding.items();
    const { itemOf, inputs } = connected(graph, items);
    this.itemOf = itemOf;
    const sizes = items.map((item) => sizeOf(graph, item));
    // parts may lead back into each other: what leads back is drawn, but does not decide where things stand
    const forward = inputs.map((list, k) => list.filter((input) => input.child < k));
    const isSteady = (k) => items[k].part !== null || !inputs[k].length || hasSteadySlopes(graph.nodes[items[k].nodes[0]]);
    const labelled = inputs.reduce((sum, list) => sum + list.length, 0) <= MOST_LABELS;
    this.placed = arranged(forward.map((list) => list.map((input) => input.child)), sizes, labelled, isSteady, this.viewport.view);
    this.vertical = this.placed.vertical;
    const focused = this.cards[this.focused];
    const known = new Map(this.cards.map((card) => [card.key, card]));
    this.cards = items.map((item, k) => cardOf(graph, item, k, sizes[k], this.placed.at[k], known));
    const bends = new Map(this.placed.edges.map((edge) => [forward[edge.parent][edge.slot], edge.bends]));
    const paths = [...this.edgeLayer.children].values();
    this.edges = inputs.flatMap((list, parent) => list.map((input, place) => this.edge(input, parent, place, list.length, bends.get(input) ?? [], paths.next().value)));
    this.byInput = new Map(this.edges.map((edge) => [edge.isSingle ? `${edge.node}/${edge.slot}` : `${edge.child}>${edge.parent}`, edge]));
    this.label(labelled);
    arrange(this.edgeLayer, this.edges.map((edge) => edge.path));
    arrange(this.nodeLayer, this.cards.map((card) => card.group));
    this.firing.replaceChildren();
    this.told.replaceChildren();
    this.motion.stop();
    this.active = [];
    this.focused = this.cards.indexOf(focused);
    this.cards.at(-1)?.group.setAttribute("tabindex", "0");
    this.viewport.resize(this.placed.width, this.placed.height);
  }

  edge({ child, node, slot, isSingle, count }, parent, place, places, bends, path = svg("path")) {
    const { vertical } = this;
    const points = [this.port(child, 1, 1, 0), ...bends, this.port(parent, -1, places, place)];
    setAttributes(path, { class: count > 1 ? "edge thick" : "edge", d: curve(points, vertical) + arrowhead(points.at(-1), vertical, false) });
    const steady = isSingle && hasSteadySlopes(this.graph.nodes[node]);
    // nobody differentiates by a constant: its edge has no number
    const isTold = isSingle && !this.graph.nodes[this.graph.nodes[node].children[slot]].constant;
    return { child, parent, node, slot, isSingle, isTold, points, path, labelWidth: steady ? 16 : LABEL.width, text: "", label: null, spot: null };
  }

  label(labelled) {
    this.boxes = this.cards.map(({ k, size }) => {
      const { x, y } = this.placed.at[k];
      return [x - size.width / 2, y - size.height / 2, x + size.width / 2, y + size.height / 2];
    });
    if (labelled) {
      labelSpots(this.edges, this.boxes, this.vertical).forEach((spot, k) => {
        this.edges[k].spot = spot;
        if (spot?.isFree) this.edges[k].label = svg("text", { class: "local", x: spot.x, y: spot.y });
      });
    }
    this.labelLayer.replaceChildren(...this.edges.flatMap((edge) => edge.label ?? []));
  }

  /** Where the number of an edge that fires stands; without labels it is looked for only then. */
  spotOf(edge) {
    edge.spot ??= labelSpots([edge], this.boxes, this.vertical)[0];
    return edge.spot;
  }

  /** Where edges touch a card: results leave at its middle, arguments come in one below the other. */
  port(k, side, count, slot) {
    const { x, y } = this.placed.at[k];
    const { width, height } = this.cards[k].size;
    const share = count === 1 ? 0 : (slot + 1) / (count + 1) - 0.5;
    return this.vertical ? { x: x + share * width, y: y + (side * height) / 2 } : { x: x + (side * width) / 2, y: y + share * height };
  }

  placeOf(card) {
    return { point: this.placed.at[card.k], size: card.size };
  }

  // ---------------------------------------------------------------- updating

  /** Show the graph as it is when `t` steps are done. */
  update(line, t) {
    const step = stepAt(line, t);
    const grads = gradsAt(line, t);
    const { nodes } = line.graph;
    const computedUntil = t >= line.forwardSteps ? nodes.length : t > 0 ? line.computing[t - 1] + 1 : 0;
    const troubled = new Set(line.problems.map((problem) => problem.node));
    const reached = line.mode === "right" ? null : line.right;
    const here = step.node === undefined ? -1 : this.itemOf[step.node];
    const there = step.child === undefined ? -1 : this.itemOf[step.child];
    this.motion.stop();
    this.about = [here, there].filter((k) => k >= 0);
    for (const card of this.cards) {
      const i = card.i < 0 ? card.item.nodes[0] : card.i;
      const known = !nodes[i].children.length || i < computedUntil;
      // a number that is not known yet keeps its place, unseen: what is not written again is not laid out again
      if (card.i >= 0) this.setNumbers(card, line.data[i], grads ? grads[i] : card.grad);
      else this.describePart(card, line, grads, card.k === there ? step.child : card.k === here ? step.node : -1, computedUntil);
      if (card.i >= 0) this.describe(card, known ? line.data[i] : null, grads ? grads[i] : null);
      let state = known ? "" : " waiting";
      if (card.k === here && step.kind !== "contribution") state += " active-forward";
      if (card.k === here && step.kind !== "forward") state += " active-upstream";
      if (card.k === there) state += " active-child";
      if (troubled.has(i) && known) state += " troubled";
      if (reached && card.i >= 0 && t === line.steps && grads && !close(grads[i], reached[i])) state += " wrong";
      if (step.wrong && (card.k === here || card.k === there)) state += " wrong-step";
      if (state !== card.state) {
        card.state = state;
        card.group.setAttribute("class", card.kinds + state);
      }
    }
    this.markEdges(line, step, computedUntil);
    return step;
  }

  /** What a screen reader says of a card: the node, how it was computed, and its numbers in full, those that are known. */
  describe(card, data, grad, i = card.i, about = card.about) {
    const said = card.said;
    if (said?.about === about && Object.is(said.data, data) && Object.is(said.grad, grad)) return;
    card.said = { about, data, grad };
    const { constant, partial } = this.graph.nodes[i];
    const gradient = grad === null || constant ? "" : `, gradient ${exact(grad)}${partial ? `, ${PARTIAL}` : ""}`;
    setAttributes(card.group, { "aria-label": `${about}${data === null ? "" : `, data ${exact(data)}`}${gradient}` });
  }

  /** Of a part: the node that the step is about, or the last one, which the others lead to. */
  describePart(card, line, grads, active, computedUntil) {
    this.setPart(card, active, active < 0 ? 0 : (grads ?? line.data)[active], !grads);
    const i = active < 0 ? card.item.nodes.at(-1) : active;
    const isKnown = !this.graph.nodes[i].children.length || i < computedUntil;
    const about = `${card.about}${card.grad && ` ${card.grad}`}, folded up; ${this.graph.names[i]}`;
    this.describe(card, isKnown ? line.data[i] : null, grads ? grads[i] : null, i, about);
  }

  setNumbers(card, data, grad) {
    if (!card.dataText) return;
    if (!Object.is(data, card.data)) {
      card.data = data;
      writeNumber(card.dataText, short(data), card.size.width);
    }
    if (!Object.is(grad, card.grad)) {
      card.grad = grad;
      const isPart = grad !== null && this.graph.nodes[card.i].partial;
      writeNumber(card.gradText, isPart ? `${short(grad)} + \u2026` : short(grad), card.size.width);
    }
  }

  /** Of a folded part the node that the step is about, with its gradient, or its data. */
  setPart(card, active, number, isData) {
    const text = active < 0 ? "" : `${this.graph.names[active]}: ${short(number)}`;
    if (text === card.grad) return;
    card.grad = text;
    card.gradText.classList.toggle("data-now", active >= 0 && isData);
    writeNumber(card.gradText, text, card.size.width);
  }

  edgesOf(step) {
    if (step.kind !== "forward" && step.kind !== "contribution") return [];
    const parent = this.itemOf[step.node];
    const slots = step.kind === "forward" ? this.graph.nodes[step.node].children.map((_, slot) => slot) : [step.slot];
    const found = slots.map((slot) => {
      const child = this.itemOf[this.graph.nodes[step.node].children[slot]];
      return this.byInput.get(`${step.node}/${slot}`) ?? this.byInput.get(`${child}>${parent}`);
    });
    return [...new Set(found.filter(Boolean))];
  }

  /** What fires is drawn once more, over the rest; a number in its way makes room. */
  markEdges(line, step, computedUntil) {
    const forward = step.kind === "forward";
    this.active = this.edgesOf(step);
    const state = forward ? " fires-forward" : step.wrong ? " fires-backward fires-wrong" : " fires-backward";
    const drawn = this.active.map(({ points }) => {
      const end = forward ? arrowhead(points.at(-1), this.vertical, false) : arrowhead(points[0], this.vertical, true);
      return svg("path", { class: `edge${state}`, d: curve(points, this.vertical) + end });
    });
    this.firing.replaceChildren(...drawn);
    const told = forward ? [] : this.active.filter((edge) => this.spotOf(edge)).map((edge) => {
      const text = svg("text", { class: `local${state}`, x: edge.spot.x, y: edge.spot.y });
      writeInto(text, short(line.localGrads[edge.node][edge.slot]), edge.labelWidth);
      return text;
    });
    this.told.replaceChildren(...told);
    const spots = forward ? [] : this.active.flatMap((edge) => edge.spot ?? []);
    for (const edge of this.edges) {
      if (!edge.label) continue;
      const shown = edge.node < computedUntil && !spots.some((spot) => overlaps(spot.box, edge.spot.box));
      const text = shown ? short(line.localGrads[edge.node][edge.slot]) : "";
      if (text !== edge.text) {
        edge.text = text;
        writeInto(edge.label, text, edge.labelWidth);
      }
    }
  }

  /** Light a path from the result to a leaf, or none. */
  mark(path) {
    const slots = path ? path.slots.map((slot, k) => ({ kind: "contribution", node: path.nodes[k], slot })) : [];
    const lit = new Set(slots.flatMap((step) => this.edgesOf(step)));
    for (const edge of this.edges) edge.path.classList.toggle("on-path", lit.has(edge));
  }

  /** Let what the step does be seen to move; `tell(grad, hasArrived)` hears of what the child has on the way. */
  animate(step, tell) {
    this.motion.start(step, this.active.map((edge) => ({ along: this.wayOf(edge), spot: edge.spot })), (grad, hasArrived) => {
      const card = this.cards[this.itemOf[step.child]];
      if (card.i >= 0) this.setNumbers(card, card.data, grad);
      else this.setPart(card, step.child, grad, false);
      if (hasArrived) {
        card.gradText.classList.add("arrived");
        setTimeout(() => card.gradText.classList.remove("arrived"), 400);
      }
      tell(grad, hasArrived);
    });
  }

  wayOf(edge) {
    edge.way ??= way(edge.points, this.vertical);
    return edge.way;
  }

  /** Bring what a step is about into view, if it is not: what receives in any case. */
  follow(step) {
    const about = [step.node, step.child].filter((i) => i !== undefined);
    if (about.length) this.viewport.reveal(about.map((i) => this.placeOf(this.cards[this.itemOf[i]])));
  }

  /** The corner of the view (right, left, and both above the zoom buttons) with the fewest cards, and none of the step. */
  freeCorner(width, height) {
    const { view } = this.viewport;
    const crowds = [0, view.height - ABOVE_BUTTONS].flatMap((top) => [view.width - width, 0].map((left) => {
      const meets = (card) => overlaps(this.viewport.boxOf(this.placed.at[card.k], card.size), [left, top, left + width, top + height]);
      return this.cards.filter(meets).reduce((sum, { k }) => sum + (this.about?.includes(k) ? this.cards.length : 1), 0);
    }));
    return crowds.indexOf(Math.min(...crowds));
  }

  get seesRoot() {
    const card = this.cards.at(-1);
    return !card || this.viewport.sees(this.placed.at[card.k], card.size);
  }

  focus(k) {
    const card = this.cards[Math.max(0, Math.min(this.cards.length - 1, k))];
    for (const other of this.cards) if (other.group.getAttribute("tabindex") === "0") other.group.setAttribute("tabindex", "-1");
    card.group.setAttribute("tabindex", "0");
    this.viewport.reveal([this.placeOf(card)]);
    card.group.focus({ preventScroll: true });
  }
}

const close = (a, b) => Object.is(a, b) || Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b));

/** Whether the numbers on a node's edges are the same whatever its inputs are, as those of a sum: 1. */
function hasSteadySlopes(node) {
  return Boolean(operation(node)?.localGradsLatex.every((formula) => /^-?\d$/.test(formula)));
}

/** The layout that is read best in this view: to the right or down, with the room there is between the cards. */
function arranged(children, sizes, labelled, isSteady, view) {
  const laidOut = (vertical, along, across) => layout(children, {
    sizes, vertical, acrossGap: NEIGHBOUR_GAP + across,
    gapBefore: (row) => along + (vertical ? DOWN_GAP : labelled && !row.every(isSteady) ? LABEL_GAP : NARROW_GAP),
  });
  const tried = [false, true].map((vertical) => ({ vertical, ...laidOut(vertical, 0, 0) }));
  const [right, down] = tried.map((each) => Math.min(1.2, wholeScale(view, each)));
  const best = down > right * 1.1 || (down >= READABLE && right < READABLE) ? tried[1] : tried[0];
  const scale = Math.max(READABLE, wholeScale(view, best));
  const spare = (seen, used, count) => Math.max(0, Math.min(MOST_STRETCH, ((seen - 2 * MARGIN) / scale - used) / Math.max(1, count)));
  const [across, along] = best.vertical
    ? [spare(view.width, best.width, best.widest), spare(view.height, best.height, best.layers)]
    : [spare(view.height, best.height, best.widest), spare(view.width, best.width, best.layers)];
  return across < 1 && along < 1 ? best : { vertical: best.vertical, ...laidOut(best.vertical, along, across) };
}
