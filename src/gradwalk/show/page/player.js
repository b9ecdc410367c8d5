// The transport: play, pause, step, scrub. It knows how many steps there are and where we stand, nothing else.

import { element } from "./dom.js";

const SPEEDS = [0.5, 1, 2, 4];
const STEP_MS = 1000;
const WHOLE_MS = 40000; // a long walk is played faster, so that it ends

const ICONS = {
  first: "M5 4v12M16 4l-8 6 8 6z",
  back: "M14 4l-8 6 8 6z",
  play: "M6 3.5l11 6.5-11 6.5z",
  pause: "M6 4h3v12H6zM11.5 4h3v12h-3z",
  next: "M6 4l8 6-8 6z",
  last: "M15 4v12M4 4l8 6-8 6z",
};

export class Player {
  /** `on.move(t, how)` is called with the new position; how is "step", "play", "scrub" or "jump". */
  constructor(on) {
    this.on = on;
    this.t = 0;
    this.steps = 0;
    this.seed = 0;
    this.speed = 1;
    this.timer = null;
    this.build();
  }

  build() {
    this.slider = element("input", {
      type: "range", min: 0, max: 0, step: 1, class: "timeline", "aria-label": "Step of the walk",
      input: () => this.go(Number(this.slider.value), "scrub"),
    });
    this.flag = element("span", { class: "flag", hidden: true, title: "the first step that goes wrong" });
    this.toggle = button("play", "Play (space)", () => this.playOrPause());
    this.speedButton = element("button", { class: "quiet speed", type: "button", title: "Speed", click: () => this.faster() }, "1\u00d7");
    this.counter = element("span", { class: "counter" });
    this.wholePage = element("a", { class: "quiet whole", target: "_blank", rel: "noopener", title: "The whole page, with values and examples", "aria-label": "Open the whole page" }, "\u2197");
    this.root = element("div", { class: "transport", role: "group", "aria-label": "Playback" },
      element("div", { class: "buttons" },
        button("first", "To the start (Home)", () => this.go(0, "jump")),
        button("back", "One step back (\u2190)", () => this.step(-1)),
        this.toggle,
        button("next", "One step on (\u2192)", () => this.step(1)),
        button("last", "To the end (End)", () => this.go(this.steps, "jump"))),
      element("div", { class: "track" },
        element("div", { class: "ends", "aria-hidden": "true" }, element("span", { class: "to-forward" }, "forward"), element("span", { class: "to-backward" }, "backward")),
        this.slider, this.flag),
      this.counter,
      this.speedButton,
      this.wholePage);
  }

  /** A new walk; the position is kept where it still makes sense. */
  load(steps, seed, firstWrong, t) {
    this.steps = steps;
    this.seed = seed;
    this.t = Math.max(0, Math.min(steps, t));
    this.slider.max = steps;
    const share = steps ? (100 * (seed - 0.5)) / steps : 0;
    this.root.style.setProperty("--seed", `${Math.max(0, share)}%`);
    this.flag.hidden = firstWrong < 0;
    if (firstWrong >= 0) this.flag.style.setProperty("--at", String(firstWrong / Math.max(1, steps)));
    this.show("");
  }

  /** Where the whole page is, for a walk that stands in a frame. */
  linkTo(address) {
    this.wholePage.href = address;
  }

  show(text) {
    if (this.slider.value !== String(this.t)) this.slider.value = this.t;
    if (text) this.slider.setAttribute("aria-valuetext", text);
    // on the slider itself: what is inherited by all the buttons makes the browser look at each of them again
    this.slider.style.setProperty("--at", this.steps ? `${(100 * this.t) / this.steps}%` : "0%");
    this.root.classList.toggle("in-backward", this.t >= this.seed);
    this.counter.textContent = `${this.t} / ${this.steps}`;
  }

  go(t, how) {
    if (how !== "play") this.pause();
    const wanted = Math.max(0, Math.min(this.steps, t));
    if (wanted === this.t && how !== "jump") return;
    this.t = wanted;
    this.on.move(wanted, how);
  }

  step(by) {
    this.go(this.t + by, "step");
  }

  // ---------------------------------------------------------------- playing

  get playing() {
    return this.timer !== null;
  }

  playOrPause() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.t >= this.steps) {
      this.t = 0;
      this.on.move(0, "jump");
    }
    this.setIcon("pause", "Pause (space)");
    this.timer = setTimeout(() => this.tick(), 250);
  }

  tick() {
    if (this.t >= this.steps) {
      this.pause();
      return;
    }
    const pace = Math.min(STEP_MS, WHOLE_MS / this.steps) / this.speed;
    // more steps than frames: take several at a time
    this.go(this.t + Math.max(1, Math.round(16 / pace)), "play");
    this.timer = setTimeout(() => this.tick(), Math.max(16, pace));
  }

  pause() {
    if (!this.playing) return;
    clearTimeout(this.timer);
    this.timer = null;
    this.setIcon("play", "Play (space)");
  }

  faster() {
    this.speed = SPEEDS[(SPEEDS.indexOf(this.speed) + 1) % SPEEDS.length];
    this.speedButton.textContent = `${this.speed}\u00d7`;
  }

  setIcon(name, label) {
    this.toggle.querySelector("path").setAttribute("d", ICONS[name]);
    this.toggle.setAttribute("aria-label", label);
    this.toggle.title = label;
  }
}

function button(name, label, click) {
  const made = element("button", { type: "button", class: `icon ${name}`, title: label, "aria-label": label, click });
  made.append(icon(ICONS[name]));
  return made;
}

/** A small picture from one path. */
export function icon(d) {
  const space = "http://www.w3.org/2000/svg";
  const drawn = document.createElementNS(space, "svg");
  drawn.setAttribute("viewBox", "0 0 20 20");
  drawn.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", d);
  drawn.append(path);
  return drawn;
}

/** Which key does what, anywhere but in a text field; `?` shows this list. */
export const KEYS = [
  ["Space", "play or pause"],
  ["\u2190  \u2192", "one step back, one step on"],
  ["Home  End", "to the start, to the end"],
  ["F  B", "to the forward pass, to the backward pass"],
  ["\u2191  \u2193", "from node to node in the graph; Enter edits a leaf"],
  ["W", "to the first step that goes wrong"],
  ["1 \u2026 5", "correct, or one of the four wrong modes"],
  ["/", "type an expression"],
  ["V", "type the first leaf\u2019s value; \u2191 \u2193 change it, with Shift by more"],
  ["+  \u2212  0", "zoom in, zoom out, fit"],
  ["D", "light or dark"],
  ["?  Esc", "this list"],
];
