// Motion that explains: going forward a dot runs along each edge into the result; going back the product travels to the
// child with its number, and the child's gradient changes when it arrives.

import { writeNumber } from "./cards.js";
import { svg } from "./dom.js";
import { short } from "./numbers.js";

const FORWARD_MS = 420;
const BACKWARD_MS = 620;

export class Motion {
  constructor() {
    this.layer = svg("g", { class: "pulses", "aria-hidden": "true" });
    this.run = 0;
  }

  stop() {
    this.run += 1;
    this.layer.replaceChildren();
  }

  /** `ways` are the edges that fire; `child` is the card at which a contribution arrives. */
  start(step, ways, child) {
    this.stop();
    if (!ways.length || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const backward = step.kind === "contribution";
    const dots = ways.map((along) => ({ along, dot: traveller(backward ? short(step.product) : "") }));
    this.layer.replaceChildren(...dots.map(({ dot }) => dot));
    const arrives = backward && child?.gradText && Object.is(child.grad, step.after);
    if (arrives) {
      // as it was until the number is there; the next step writes over it in any case
      child.grad = step.before;
      writeNumber(child.gradText, short(step.before), child.size.width);
    }
    const { run } = this;
    const began = performance.now();
    const frame = (now) => {
      if (run !== this.run) return;
      const share = Math.min(1, Math.max(0, (now - began) / (backward ? BACKWARD_MS : FORWARD_MS)));
      const eased = share < 0.5 ? 2 * share * share : 1 - 2 * (1 - share) ** 2;
      for (const { along, dot } of dots) {
        const { x, y } = along(backward ? 1 - eased : eased);
        dot.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
      }
      if (share < 1) {
        requestAnimationFrame(frame);
        return;
      }
      this.layer.replaceChildren();
      if (arrives) {
        child.grad = step.after;
        writeNumber(child.gradText, short(step.after), child.size.width);
        child.gradText.classList.add("arrived");
        setTimeout(() => child.gradText.classList.remove("arrived"), 400);
      }
    };
    requestAnimationFrame(frame);
  }
}

function traveller(number) {
  if (!number) return svg("circle", { r: 5, class: "pulse forward" });
  const width = 10 + 7.8 * number.length;
  return svg("g", { class: "pulse backward" },
    svg("rect", { x: -width / 2, y: -10, width, height: 20, rx: 10 }),
    svg("text", { x: 0, y: 4.5 }, number));
}
