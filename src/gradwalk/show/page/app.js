// The page: it holds the state, and lets the expression, the graph, the player and the panel work on it.
// `mount(root, options)` is all that the file, and the widget in a notebook, call.

import { sentence } from "./describe.js";
import { become, drag, element, fill, placeBeside, setAttributes, setText, shrinkToFit } from "./dom.js";
import { Drawing } from "./draw.js";
import { MOST_CARDS, titleOf } from "./fold.js";
import { MODES, timeline } from "./engine.js";
import { EXAMPLES } from "./examples.js";
import { fromExpression, fromProgram, withNumber } from "./graph.js";
import { Header } from "./header.js";
import { keep } from "./keep.js";
import { shortcut } from "./keyboard.js";
import { widthOf } from "./lettering.js";
import { short } from "./numbers.js";
import { OwnPython } from "./own.js";
import { detailContent, legend, modeContent, nudge, partContent, stepContent, Table } from "./panel.js";
import { ExpressionError } from "./parser.js";
import { KEYS, Player } from "./player.js";
import { startingValues } from "./starts.js";
import { fromHash, toHash } from "./state.js";
import { Study } from "./study.js";
import { typeset } from "./typeset.js";

const MOST_OPENED = 12;
const KERNEL_NOTE = "An edit sets the leaf\u2019s .data in the kernel, in every view; what a cell sets there is shown here when it has run. The widget\u2019s .value is the result recorded again; results recorded before keep their numbers.";
const HASH_MS = 250;
const CHIP = { edge: 44, height: 44 };
const FOLLOW_MS = 160;

/** Build the page inside `root`; `start` says what to show, `kernel` (in a notebook) hears of edits, `python` runs functions. */
export function mount(root, { start = {}, pristine = null, kernel = null, python = null, ownsAddress = false } = {}) {
  return new App(root, start, pristine, kernel, python, ownsAddress);
}

class App {
  constructor(root, start, pristine, kernel, python, ownsAddress) {
    this.start = start;
    this.pristine = pristine;
    this.kernel = kernel;
    this.ownsAddress = ownsAddress;
    this.mode = "right";
    this.theme = null;
    this.overrides = {};
    this.edited = {}; // of the program, by node: it may be left for an expression, and come back
    this.build(root, python);
    this.open();
    this.prepare();
    new ResizeObserver(() => this.resized()).observe(this.canvas);
    if (ownsAddress) addEventListener("hashchange", () => location.hash.slice(1) !== this.written && this.open());
  }

  // ---------------------------------------------------------------- building

  build(root, python) {
    this.drawing = new Drawing({
      hover: (card) => this.hover(card),
      fold: (part) => this.fold(part),
      scrub: (...given) => this.scrub(...given),
      key: (event, i) => this.nodeKey(event, i),
      moved: () => this.showRoot(),
    });
    this.own = python ? new OwnPython(python, (program, source) => this.showOwn(program, source), this.start.source) : null;
    this.player = new Player({ move: (t, how) => this.moved(t, how) });
    this.table = new Table({ edit: (i, value) => this.edit(i, value), scrub: (...given) => this.scrub(...given) });
    this.header = new Header({
      text: (text) => this.type(text),
      example: (example) => {
        this.t = 0;
        this.example(example);
      },
      program: () => {
        this.overrides = { ...this.edited };
        this.showProgram();
      },
      mode: (mode) => this.setMode(mode),
      theme: () => this.toggleTheme(),
      help: () => this.help.showModal(),
      python: this.own && (() => this.own.open()),
      save: (what) => keep(this, what),
      focusGraph: () => this.drawing.focus(this.drawing.cards.length - 1),
    }, { hasProgram: Boolean(this.start.program), canSaveHtml: Boolean(this.pristine) });
    this.study = new Study({
      reveal: () => this.player.step(1),
      values: (changes) => this.editAll(changes),
      mark: (path) => this.drawing.mark(path),
      changed: () => this.line && this.render("edit"),
    });
    this.formula = element("div", { class: "written", tabindex: "-1" });
    this.note = element("p", { class: "note" });
    this.detail = element("div", { class: "detail", hidden: true, role: "tooltip" });
    this.stepBox = element("section", { class: "step", "aria-label": "This step", tabindex: "0" }); // what is too long for it scrolls
    this.modeBox = element("section", { class: "mode-box", hidden: true });
    this.live = element("div", { class: "unseen", "aria-live": "polite" });
    this.zoomButtons = element("div", { class: "zoom" },
      element("button", { type: "button", class: "quiet", "aria-label": "Zoom in", title: "Zoom in (+)", click: () => this.drawing.viewport.zoom(1.25) }, "+"),
      element("button", { type: "button", class: "quiet", "aria-label": "Zoom out", title: "Zoom out (\u2212)", click: () => this.drawing.viewport.zoom(0.8) }, "\u2212"),
      element("button", { type: "button", class: "quiet", "aria-label": "Fit", title: "Fit (0)", click: () => this.drawing.viewport.toggleFit() }, "\u2922"));
    this.opened = element("div", { class: "opened", role: "group", "aria-label": "Unfolded parts" });
    this.rootChip = element("button", { type: "button", class: "root-chip", hidden: true, title: "To the result", click: () => this.drawing.focus(this.drawing.cards.length - 1) });
    this.canvas = element("div", { class: "canvas" }, this.drawing.svg, this.rootChip, this.zoomButtons);
    this.stage = element("div", { class: "stage" }, this.formula, this.opened, this.canvas, element("div", { class: "foot" }, this.note, legend()), this.detail);
    this.help = element("dialog", { class: "help", "aria-label": "Keyboard", click: (event) => event.target === this.help && this.help.close() },
      element("h2", {}, "Keyboard"),
      element("dl", {}, ...KEYS.flatMap(([key, does]) => [element("dt", {}, key), element("dd", {}, does)])),
      this.own ? null : element("p", {}, "On the lessons\u2019 site and in a notebook there is a field for a function in Python, too; this page has no Python to run it."),
      element("p", {}, "Drag a leaf\u2019s card, or its value in the table, to change it. Hover or focus a node for its formula."),
      element("form", { method: "dialog" }, element("button", { class: "quiet" }, "Close")));
    this.root = element("div", { class: "gradwalk", keydown: (event) => this.ownsAddress || this.key(event) },
      this.header.root,
      element("main", {},
        element(this.ownsAddress ? "h1" : "h2", { class: "unseen" }, "gradwalk: backpropagation, step by step"),
        element("div", { class: "left" }, this.stage, this.player.root),
        element("aside", { "aria-label": "The step, the rule and the values" }, this.modeBox, this.stepBox, this.study.root, this.table.root)),
      this.live, this.help, this.own?.root ?? null);
    if (this.ownsAddress) document.addEventListener("keydown", (event) => this.key(event));
    root.append(this.root);
    this.measure();
  }

  // ---------------------------------------------------------------- what to show

  open() {
    const given = this.ownsAddress ? fromHash(location.hash, MODES.map((mode) => mode.id)) : fromHash("", []);
    this.setEmbedded(given.isEmbedded);
    this.mode = given.mode !== "right" ? given.mode : this.start.mode ?? "right";
    this.overrides = { ...(given.text === null ? this.start.values : {}), ...given.values };
    this.setTheme(given.theme ?? this.start.theme ?? null);
    this.header.setMode(this.mode);
    this.t = given.t ?? this.start.t ?? 0;
    const text = given.text ?? (this.start.program ? null : this.start.text ?? null);
    const example = EXAMPLES.find((known) => text === null || sameText(known.text, text));
    if (text === null && this.start.program) this.showProgram();
    else if (example) this.example(example, this.overrides);
    else {
      this.header.setText(text);
      this.type(text);
    }
  }

  example(example, overrides = {}) {
    this.overrides = { ...example.values, ...overrides };
    this.header.setText(example.text);
    this.type(example.text);
  }

  showProgram() {
    try {
      const graph = fromProgram(this.start.program);
      this.header.showProgram(graph.title || "your program");
      const whole = graph.total ? `The ${graph.nodes.length} nodes nearest the result, of ${graph.total}. ` : "";
      const fixed = graph.editable ? "" : "Some operations were made by hand, so the values are as recorded.";
      setText(this.note, whole + fixed + (this.kernel ? KERNEL_NOTE : ""));
      this.setGraph(graph);
    } catch (error) {
      this.setError(error.message, "", -1);
    }
  }

  /** What a function of the reader's own recorded. */
  showOwn(program, source) {
    this.start = { ...this.start, program, source };
    this.overrides = {};
    this.edited = {};
    this.t = 0;
    this.showProgram();
  }

  /** A new expression; while it is not valid, the last valid graph stays. What stands in the text wins. */
  type(text) {
    try {
      let graph = fromExpression(text);
      const first = this.graph === undefined;
      for (const name of graph.given) {
        // a value that came with the page, in its address or its file, is later than the text
        if (first && Object.hasOwn(this.overrides, name)) graph = fromExpression(withNumber(graph.text, name, this.overrides[name]));
        delete this.overrides[name];
      }
      this.header.setText(graph.text);
      this.setError("", text, -1);
      setText(this.note, EXAMPLES.find((example) => example.text === text)?.note ?? "");
      const known = { ...this.valuesByName(), ...this.overrides };
      startingValues(graph, known).forEach((value, i) => { graph.nodes[i].value = graph.nodes[i].children.length ? 0 : value; });
      this.setGraph(graph);
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      this.setError(error.message, text, error.position);
      if (!this.graph) this.setGraph(fromExpression(EXAMPLES[0].text)); // there has to be something to see
    }
  }

  /** While the text is not valid, what is shown is not its graph. */
  setError(message, text, position) {
    this.header.setError(message, text, position);
    this.root.classList.toggle("stale", Boolean(message));
  }

  /** The values of the leaves shown: a name keeps its value while the text changes around it. */
  valuesByName(isWanted = () => true) {
    if (!this.graph?.text) return {};
    const leaves = this.graph.nodes.map((node, i) => [node, this.values[i]]).filter(([node]) => !node.children.length && !node.constant);
    return Object.fromEntries(leaves.filter(([node]) => isWanted(node.label)).map(([node, value]) => [node.label, value]));
  }

  /** What has to be remembered beside the text: every value that is not in it. */
  valuesToKeep() {
    return this.graph.text ? this.valuesByName((name) => !this.graph.given.has(name)) : this.overrides;
  }

  setGraph(graph) {
    const atEnd = this.line !== undefined && this.t >= this.line.steps;
    this.graph = graph;
    this.values = graph.nodes.map((node, i) => this.override(node, i) ?? node.value);
    const formula = typeset(graph);
    if (formula.length || this.formula.firstChild) {
      fill(this.formula, ...formula);
      this.formula.classList.remove("long");
      this.formula.classList.toggle("long", this.formula.scrollWidth > this.formula.clientWidth);
    }
    this.opened.hidden = graph.nodes.length <= MOST_CARDS; // there is nothing to unfold
    this.measure(); // the graph has what these leave
    this.line = timeline(graph, this.values, this.mode);
    if (atEnd) this.t = this.line.steps;
    this.t = Math.min(this.t, this.line.steps);
    this.drawing.show(graph);
    this.listOpened();
    this.table.build(graph);
    this.study.load(graph, new Set(EXAMPLES.find((example) => example.text === graph.text)?.fixed));
    this.player.pause();
    this.player.load(this.line.steps, this.line.forwardSteps + 1, this.line.firstWrongStep, this.t);
    this.hover(null);
    this.render("jump");
  }

  keyOf(node, i) {
    return this.graph.text ? node.label : String(i);
  }

  override(node, i) {
    if (node.children.length || node.constant) return undefined;
    const key = this.keyOf(node, i);
    return Object.hasOwn(this.overrides, key) ? this.overrides[key] : undefined;
  }

  measure() {
    const view = { width: this.canvas.clientWidth || 800, height: this.canvas.clientHeight || 480 };
    const { viewport, svg } = this.drawing;
    const isNew = view.width !== viewport.view.width || view.height !== viewport.view.height;
    viewport.view = view;
    // in pixels: of a picture sized in percent Chromium lays out every text again whenever anything on the page changes
    svg.style.setProperty("width", `${view.width}px`);
    svg.style.setProperty("height", `${view.height}px`);
    return isNew;
  }

  resized() {
    if (!this.measure()) return;
    this.drawing.build();
    this.render("jump");
  }

  // ---------------------------------------------------------------- folding

  fold(part) {
    this.drawing.toggle(part);
    this.listOpened();
    this.render("edit");
  }

  /** What is unfolded, each with a click that folds it. */
  listOpened() {
    const unfolded = this.drawing.folding.opened;
    fill(this.opened, ...unfolded.slice(0, MOST_OPENED).map((part) =>
      element("button", { type: "button", class: "quiet", title: "Fold it up", click: () => this.fold(part) }, `\u229f ${titleOf(part)}`)));
  }

  /** The result stays in sight: where its card is not, in the corner with the fewest cards, and none of this step. */
  showRoot() {
    const isAway = Boolean(this.line) && !this.drawing.seesRoot;
    this.rootChip.hidden = !isAway;
    if (!isAway) return;
    const { graph, data, forwardSteps } = this.line;
    const known = this.t >= forwardSteps ? short(data[graph.root]) : "\u2026";
    const said = `${graph.names[graph.root]} = ${known} \u2192`;
    setText(this.rootChip, said);
    setAttributes(this.rootChip, { "data-corner": this.drawing.freeCorner(CHIP.edge + widthOf(said, "chip"), CHIP.height) });
  }

  // ---------------------------------------------------------------- changes

  edit(i, value) {
    if (Object.is(this.values[i], value)) return;
    this.values[i] = value;
    const node = this.graph.nodes[i];
    if (this.graph.given?.has(node.label)) {
      this.graph.text = withNumber(this.graph.text, node.label, value);
      this.header.setText(this.graph.text);
    } else {
      Object.defineProperty(this.overrides, this.keyOf(node, i), { value, enumerable: true, configurable: true, writable: true });
    }
    if (!this.graph.text) {
      this.edited[i] = value;
      this.kernel?.edit(i, value);
    }
    this.recompute();
  }

  /** New values of several leaves at once, and what follows from them. */
  editAll(changes) {
    const whole = this.recompute;
    this.recompute = () => {};
    for (const [i, value] of changes) this.edit(i, value);
    this.recompute = whole;
    this.recompute();
    return this.line;
  }

  /** Values of the program from the kernel: they are shown, or will be when it is, and not sent back. */
  receive(values) {
    Object.assign(this.edited, values);
    if (this.graph.text) return;
    const changed = Object.entries(values).filter(([i, value]) => !Object.is(this.values[i], value));
    for (const [i, value] of changed) {
      this.values[i] = value;
      this.overrides[i] = value;
    }
    if (changed.length) this.recompute();
  }

  recompute() {
    this.table.rest();
    this.line = timeline(this.graph, this.values, this.mode);
    this.t = Math.min(this.t, this.line.steps);
    this.player.load(this.line.steps, this.line.forwardSteps + 1, this.line.firstWrongStep, this.t);
    this.later("edit");
  }

  setMode(mode) {
    this.mode = mode;
    this.header.setMode(mode);
    this.recompute();
    setText(this.live, MODES.find((known) => known.id === mode).name);
  }

  /** Drag a leaf's value with the pointer. */
  scrub(i, event, target, tap) {
    const from = this.values[i];
    drag(event, target, (distance, isCoarse) => this.edit(i, nudge(from, Math.round(distance / 2) * (isCoarse ? 0.1 : 0.01))), tap);
  }

  moved(t, how) {
    this.t = t;
    this.table.rest();
    if (how === "scrub") this.later(how);
    else this.render(how);
  }

  // ---------------------------------------------------------------- showing

  /** At most one drawing per frame, however fast the pointer moves. */
  later(how) {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      this.render(how);
    });
  }

  /** Everything as it is when `t` steps are done; what the last of them was, and in words. */
  show(t) {
    const { line } = this;
    const step = this.drawing.update(line, t);
    const said = sentence(line, t, step);
    this.player.show(said);
    become(this.stepBox, ...stepContent(line, t, step));
    this.study.show(line, t, step);
    this.table.update(line, t);
    this.root.classList.toggle("hides-answers", this.study.isAsking);
    this.root.classList.toggle("before-gradients", t <= line.forwardSteps && line.mode !== "not_reset");
    shrinkToFit(this.stepBox, ".formula, dd"); // last: the browser lays out here
    return [step, said];
  }

  /** While nobody has moved yet: what the first frames need, fonts and numbers laid out, is there before a hand is. */
  prepare() {
    const { t } = this;
    const idle = globalThis.requestIdleCallback ?? ((act) => setTimeout(act, FOLLOW_MS));
    requestAnimationFrame(() => idle(() => {
      if (this.t !== t || this.player.playing) return;
      for (const at of [1, this.line.steps, t]) {
        this.show(at);
        this.root.getBoundingClientRect();
      }
    }));
  }

  render(how) {
    const { line } = this;
    const [step, said] = this.show(this.t);
    if (this.shownMode !== line) {
      this.shownMode = line;
      const content = modeContent(line, (at) => this.player.go(at, "jump"));
      this.modeBox.hidden = !content.length;
      fill(this.modeBox, ...content);
      if (line.problems.length) setText(this.live, line.problems[0].message);
      this.root.classList.toggle("wrong-mode", line.mode !== "right");
    }
    if (how === "step" || how === "play") {
      this.drawing.animate(step, (grad, hasArrived) => this.table.tell(step.child, grad, hasArrived));
      if (how === "step" || line.steps < 200) setText(this.live, said);
    }
    clearTimeout(this.following);
    // while the slider is dragged the view stands still; it follows once the hand rests
    if (how === "scrub") this.following = setTimeout(() => this.drawing.follow(step), FOLLOW_MS);
    else if (how !== "edit") this.drawing.follow(step);
    this.showRoot();
    this.remember();
  }

  hover(card) {
    this.detail.hidden = card === null;
    if (card === null) return;
    const { i, item } = card;
    fill(this.detail, ...(item.part ? partContent(item) : detailContent(this.line, i, this.t, (at) => (this.study.isAsking ? null : this.table.difference(at)))));
    placeBeside(this.detail, card.group, this.stage);
  }

  /** In another page's frame there is the graph, the step and one row of controls; the rest is a click away. */
  setEmbedded(isEmbedded) {
    this.isEmbedded = isEmbedded;
    this.root.classList.toggle("embed", isEmbedded);
    this.drawing.viewport.takesWheel = !isEmbedded;
    this.measure();
  }

  setTheme(theme) {
    this.theme = theme;
    if (theme) this.root.dataset.theme = theme;
    else delete this.root.dataset.theme;
    if (this.ownsAddress) document.documentElement.dataset.theme = theme ?? "";
  }

  toggleTheme() {
    const dark = this.theme ? this.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    this.setTheme(dark ? "light" : "dark");
    this.remember();
  }

  /** The address follows the state, but not faster than browsers allow. */
  remember() {
    if (!this.ownsAddress || this.remembering) return;
    this.remembering = setTimeout(() => {
      this.remembering = null;
      const state = { text: this.graph.text, values: this.valuesToKeep(), t: this.t, mode: this.mode, theme: this.theme };
      this.written = toHash({ ...state, isEmbedded: this.isEmbedded });
      this.player.linkTo(`#${toHash({ ...state, isEmbedded: false })}`);
      try {
        history.replaceState(null, "", `#${this.written}`);
      } catch {
        this.remembering = -1; // a sandboxed frame has no address of its own: do not try again
      }
    }, HASH_MS);
  }

  // ---------------------------------------------------------------- keys

  key(event) {
    const action = shortcut(event);
    if (!action || this.help.open || this.own?.root.open) return;
    event.preventDefault();
    const { player, drawing } = this;
    const actions = {
      toggle: () => player.playOrPause(),
      back: () => player.step(-1),
      next: () => player.step(1),
      first: () => player.go(0, "jump"),
      last: () => player.go(player.steps, "jump"),
      forward: () => player.go(0, "jump"),
      backward: () => player.go(this.line.forwardSteps + 1, "jump"),
      wrong: () => this.line.firstWrongStep >= 0 && player.go(this.line.firstWrongStep, "jump"),
      up: () => drawing.focus(drawing.focused < 0 ? drawing.cards.length - 1 : drawing.focused - 1),
      down: () => drawing.focus(drawing.focused < 0 ? 0 : drawing.focused + 1),
      expression: () => this.header.focusText(),
      value: () => this.table.focusFirst(),
      zoomIn: () => drawing.viewport.zoom(1.25),
      zoomOut: () => drawing.viewport.zoom(0.8),
      fit: () => drawing.viewport.toggleFit(),
      theme: () => this.toggleTheme(),
      help: () => this.help.showModal(),
      escape: () => this.hover(null),
    };
    if (action.startsWith("mode")) this.setMode(MODES[Number(action.slice(4)) - 1].id);
    else actions[action]();
  }

  nodeKey(event, i) {
    if (event.key === "Enter" && this.table.focusFirst(i)) event.preventDefault();
  }
}

const sameText = (one, other) => one.replace(/\s+/g, "") === other.replace(/\s+/g, "");
