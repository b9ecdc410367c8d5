// Predict, then reveal: the next gradient is hidden and asked for; an answer is told right from wrong, and why.

import { element, fill } from "./dom.js";
import { stepAt } from "./engine.js";
import { short, typed } from "./numbers.js";

const near = (a, b) => Math.abs(a - b) <= 2e-3 * Math.max(Math.abs(a), Math.abs(b));

/** Why an answer is wrong: the slip that leads to just this number, or "". */
export function slip(answer, { before, local, upstream, product, after }) {
  const rounded = 1e-12 * (Math.abs(before) + Math.abs(product)); // where they cancel, 0 is as right as what is left
  if (near(answer, after) || Math.abs(answer - after) <= rounded) return "";
  if (near(answer, product) && before !== 0) return `forgot to add: ${short(before)} was there already`;
  if (near(answer, -after) || near(answer, before - product)) return "the sign is the other one";
  if (near(answer, before + upstream) || near(answer, upstream)) return "a factor is missing: the local gradient";
  if (near(answer, before + local) || near(answer, local)) return "a factor is missing: the gradient upstream";
  if (near(answer, before + local + upstream)) return "along an edge gradients are multiplied, not added";
  if (near(answer, before)) return "something arrives: local gradient times upstream gradient";
  return "local gradient times upstream gradient, added to what is there";
}

export class Predict {
  /** `on.reveal()` takes the next step. */
  constructor(on) {
    this.on = on;
    this.isOn = false;
    this.right = 0;
    this.asked = 0;
    this.field = element("input", { class: "field answer", type: "text", inputmode: "decimal", autocomplete: "off", "aria-label": "Your prediction", keydown: (event) => this.key(event) });
    this.question = element("p", { class: "question" });
    this.verdict = element("p", { class: "told", role: "status" });
    this.score = element("p", { class: "score" });
    this.button = element("button", { type: "button", class: "quiet", click: () => this.answer() }, "Reveal");
    this.root = element("section", { class: "predict", "aria-label": "Predict", hidden: true },
      this.question, element("div", { class: "asking" }, this.field, this.button, this.score), this.verdict);
  }

  start() {
    this.isOn = true;
    this.right = 0;
    this.asked = 0;
    fill(this.verdict);
  }

  stop() {
    this.isOn = false;
  }

  /** Ask for the step after `t`; before the backward pass and at its end there is nothing to ask. */
  show(line, t) {
    this.next = this.isOn && t > line.forwardSteps && t < line.steps ? stepAt(line, t + 1) : null;
    this.field.disabled = this.button.disabled = this.next === null;
    if (this.next) {
      const { names } = line.graph;
      fill(this.question, `${names[this.next.node]} hands on to ${names[this.next.child]}. What is `, element("b", {}, `${names[this.next.child]}.grad`), " after that?");
    } else {
      fill(this.question, t >= line.steps ? "That was the walk." : "Step on to the backward pass (B): each gradient is asked for before it is shown.");
    }
    fill(this.score, this.asked ? `${this.right} of ${this.asked} right` : "");
  }

  key(event) {
    if (event.key !== "Enter") return;
    event.preventDefault();
    this.answer();
  }

  answer() {
    const answer = typed(this.field.value);
    if (!this.next || answer === null) {
      this.field.classList.add("bad");
      return;
    }
    const why = slip(answer, this.next);
    this.asked += 1;
    this.right += why ? 0 : 1;
    this.field.value = "";
    this.field.classList.remove("bad");
    this.verdict.classList.toggle("mistaken", Boolean(why));
    fill(this.verdict, why ? `Not ${short(answer)} but ${short(this.next.after)}: ${why}.` : `Right: ${short(this.next.after)}.`);
    this.on.reveal();
    this.field.focus();
  }
}
