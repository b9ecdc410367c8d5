// Two moons to learn: points of two classes, the loss and its gradients over all of them, and where the network draws
// the line between them.

import { element } from "./dom.js";
import { evaluated, timeline } from "./engine.js";

const EACH = 8; // points of a class
const CELLS = { across: 40, down: 25 };
const SEEN = { left: -1.5, right: 2.5, bottom: -1, top: 1.5 };
const SIZE = { width: 288, height: 180 };

/** The points as {x1, x2, y}: 1 on the upper half circle, -1 on the lower. */
export const MOONS = [1, -1].flatMap((y) => Array.from({ length: EACH }, (_, k) => {
  const angle = (Math.PI * k) / (EACH - 1);
  return y > 0 ? { x1: Math.cos(angle), x2: Math.sin(angle), y } : { x1: 1 - Math.cos(angle), x2: 0.5 - Math.sin(angle), y };
}));

/** Which nodes stand for the point and for what the network says of it; null in a graph that has none of these names. */
export function placesOf(graph) {
  const [x1, x2, y, out] = ["x1", "x2", "y", "out"].map((name) => graph.nodes.findIndex((node) => node.label === name));
  const isThere = [x1, x2, y].every((i) => i >= 0 && !graph.nodes[i].children.length) && out >= 0;
  return isThere ? { x1, x2, y, out } : null;
}

function at(values, places, point) {
  const changed = values.slice();
  for (const [name, number] of Object.entries(point)) changed[places[name]] = number;
  return changed;
}

/** The mean of the result over all points, and the mean of every gradient. */
export function overMoons(graph, values, places) {
  let loss = 0;
  const grads = new Float64Array(graph.nodes.length);
  for (const point of MOONS) {
    const line = timeline(graph, at(values, places, point), "right");
    loss += line.data[graph.root] / MOONS.length;
    line.grads.forEach((grad, i) => { grads[i] += grad / MOONS.length; });
  }
  return { loss, grads };
}

/** The share of the points that the network puts on the right side. */
export function rightShare(graph, values, places) {
  return MOONS.filter((point) => evaluated(graph, at(values, places, point))[places.out] > 0 === point.y > 0).length / MOONS.length;
}

/** A map: where the network says yes, and the points. */
export class Boundary {
  constructor() {
    this.root = element("canvas", { class: "boundary", width: 2 * SIZE.width, height: 2 * SIZE.height, role: "img", "aria-label": "Where the network draws the line between two moons" });
  }

  draw(graph, values, places) {
    const context = this.root.getContext("2d");
    const style = getComputedStyle(this.root);
    const colour = (name) => style.getPropertyValue(name);
    const [washes, inks] = [["--backward-wash", "--forward-wash"], ["--backward", "--forward"]].map((names) => names.map(colour));
    const { across, down } = CELLS;
    const [width, height] = [this.root.width, this.root.height];
    const { left, right, bottom, top } = SEEN;
    for (let j = 0; j < down; j += 1) {
      for (let i = 0; i < across; i += 1) {
        const point = { x1: left + ((i + 0.5) / across) * (right - left), x2: top - ((j + 0.5) / down) * (top - bottom) };
        context.fillStyle = washes[Number(evaluated(graph, at(values, places, point))[places.out] > 0)];
        context.fillRect(Math.floor((i * width) / across), Math.floor((j * height) / down), Math.ceil(width / across), Math.ceil(height / down));
      }
    }
    for (const { x1, x2, y } of MOONS) {
      context.fillStyle = inks[Number(y > 0)];
      context.beginPath();
      context.arc(((x1 - left) / (right - left)) * width, ((top - x2) / (top - bottom)) * height, 10, 0, 2 * Math.PI);
      context.fill();
    }
  }
}
