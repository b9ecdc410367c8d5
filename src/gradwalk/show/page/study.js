// A place to learn in: four ways to look at the same walk, one at a time beside the graph.

import { Downhill } from "./downhill.js";
import { element } from "./dom.js";
import { Paths } from "./paths.js";
import { Predict } from "./predict.js";
import { Rule } from "./rule.js";

export class Study {
  /** `on` has reveal(), values(changes), mark(path), changed(). */
  constructor(on) {
    this.on = on;
    this.rule = new Rule();
    this.predict = new Predict(on);
    this.downhill = new Downhill(on);
    this.paths = new Paths(on);
    this.parts = { rule: this.rule, predict: this.predict, downhill: this.downhill, paths: this.paths };
    const names = { rule: "Rule", predict: "Predict", downhill: "Downhill", paths: "Paths" };
    this.buttons = Object.entries(names).map(([part, name]) =>
      element("button", { type: "button", class: "quiet", "data-study": part, click: () => this.choose(part) }, name));
    this.root = element("section", { class: "study", "aria-label": "Ways to look at it" },
      element("div", { class: "choices" }, ...this.buttons), ...Object.values(this.parts).map((part) => part.root));
    this.choose("rule");
  }

  choose(chosen) {
    this.chosen = chosen;
    for (const button of this.buttons) button.setAttribute("aria-pressed", String(button.dataset.study === chosen));
    for (const [name, part] of Object.entries(this.parts)) part.root.hidden = name !== chosen;
    if (chosen === "predict") this.predict.start();
    else this.predict.stop();
    if (chosen !== "downhill") this.downhill.stop();
    this.on.mark(null);
    this.on.changed();
    if (chosen === "paths" && this.paths.line) this.paths.write();
  }

  /** Whether answers must not be seen yet. */
  get isAsking() {
    return this.predict.next !== undefined && this.predict.next !== null;
  }

  load(graph, fixed) {
    this.downhill.load(graph, fixed);
    this.paths.load(graph);
  }

  show(line, t, step) {
    if (this.chosen === "rule") this.rule.show(line, step);
    this.predict.show(line, t);
    this.downhill.show(line);
    this.paths.show(line);
  }
}
