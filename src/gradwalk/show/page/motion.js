// Motion that explains: going forward a dot runs along each edge into the result; going back the product travels to the
// child with its number, and the child's gradient changes when it arrives.

import { svg } from "./dom.js";
import { beside } from "./edges.js";
import { widthOf } from "./lettering.js";
import { short } from "./numbers.js";

const FORWARD_MS = 420;
const BACKWARD_MS = 620;

export class Motion {
  constructor() {
    this.layer = svg("g", { class: "pulses", "aria-hidden": "true" });
    this.under = svg("g", { "aria-hidden": "true" }); // what runs forward goes under the numbers
    this.run = 0;
  }

  stop() {
    this.run += 1;
    this.clear();
  }

  clear() {
    this.layer.replaceChildren();
    this.under.replaceChildren();
  }

  /** `ways` are the edges that fire, {along, spot}; `write(grad, hasArrived)` says what the child has meanwhile. */
  start(step, ways, write) {
    this.stop();
    if (!ways.length || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const backward = step.kind === "contribution";
    const number = backward ? short(step.product) : "";
    const dots = ways.map(({ along, spot }) => ({ along, dot: traveller(number), side: backward ? beside(along, spot, roomFor(number)) : [0, 0] }));
    (backward ? this.layer : this.under).replaceChildren(...dots.map(({ dot }) => dot));
    this.place = (share) => {
      for (const { along, dot, side } of dots) {
        const { x, y } = along(backward ? 1 - share : share);
        dot.setAttribute("transform", `translate(${(x + side[0]).toFixed(1)} ${(y + side[1]).toFixed(1)})`);
      }
    };
    if (backward) write(step.before, false); // the next step writes over it in any case
    const { run } = this;
    const began = performance.now();
    const frame = (now) => {
      if (run !== this.run) return;
      const share = Math.min(1, Math.max(0, (now - began) / (backward ? BACKWARD_MS : FORWARD_MS)));
      const eased = share < 0.5 ? 2 * share * share : 1 - 2 * (1 - share) ** 2;
      this.place(eased);
      if (share < 1) {
        requestAnimationFrame(frame);
        return;
      }
      this.clear();
      if (backward) write(step.after, true);
    };
    requestAnimationFrame(frame);
  }
}

const roomFor = (number) => 12 + widthOf(number, "number");

function traveller(number) {
  if (!number) return svg("circle", { r: 5, class: "pulse forward" });
  const width = roomFor(number);
  return svg("g", { class: "pulse backward" },
    svg("rect", { x: -width / 2, y: -10, width, height: 20, rx: 10 }),
    svg("text", { x: 0, y: 4.5 }, number));
}
