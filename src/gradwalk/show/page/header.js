// The top of the page: the expression, the examples, the modes, and what can be saved.

import { element, fill, setText } from "./dom.js";
import { MODES } from "./engine.js";
import { EXAMPLES } from "./examples.js";

const SAVES = [
  ["link", "Copy the address"],
  ["svg", "Picture (SVG)"],
  ["png", "Picture (PNG)"],
  ["html", "This page (HTML)"],
  ["python", "Python code"],
];

const SAID_MS = 2000;

export class Header {
  constructor(on, { hasProgram, canSaveHtml }) {
    this.on = on;
    this.listed = "";
    const id = `gradwalk-problem-${(Header.count = (Header.count ?? 0) + 1)}`; // several walks may stand on one page
    this.field = element("textarea", {
      class: "expression", rows: 1, spellcheck: "false", autocomplete: "off", autocapitalize: "off", maxlength: 10000,
      "aria-label": "Expression", "aria-describedby": id, placeholder: "relu(a*b + d)",
      input: () => this.typed(),
      keydown: (event) => this.key(event),
    });
    this.problem = element("p", { class: "problem", id, "aria-live": "polite", hidden: true });
    this.program = element("option", { value: "program", hidden: !hasProgram }, "your program");
    this.examples = element("select", {
      class: "examples", "aria-label": "Examples", change: () => this.chosen(),
      // while the list is open none is chosen, so that the one that is shown can be chosen again: it is reset
      pointerdown: () => { this.examples.value = ""; },
      keydown: ({ key }) => { if (key === " " || key === "Enter") this.examples.value = ""; },
      blur: () => { this.examples.value = this.listed; },
    },
      element("option", { value: "", hidden: true }, "Examples"),
      this.program,
      ...EXAMPLES.map((example, i) => element("option", { value: String(i) }, example.title)));
    this.modes = element("select", { class: "modes", "aria-label": "Backward pass", change: () => on.mode(this.modes.value) },
      element("option", { value: "right" }, "correct"),
      element("optgroup", { label: "wrong on purpose" },
        ...MODES.slice(1).map((mode) => element("option", { value: mode.id }, mode.name))));
    const saves = SAVES.filter(([what]) => (what !== "html" && what !== "link") || canSaveHtml);
    this.menu = element("details", { class: "menu", keydown: (event) => this.menuKey(event), focusout: (event) => this.leaving(event) },
      element("summary", { title: "Save or share" }, "Save"),
      element("div", { class: "sheet" }, ...saves.map(([what, label]) =>
        element("button", { type: "button", class: "quiet", "data-save": what, click: () => this.save(what) }, label))));
    this.root = element("header", {},
      element("div", { class: "wordmark", "aria-hidden": "true" }, "grad", element("b", {}, "walk")),
      element("div", { class: "entry" }, element("div", { class: "paper" }, this.field, this.problem)),
      element("div", { class: "tools" },
        on.python ? element("button", { type: "button", class: "quiet", title: "A function in Python", click: () => on.python() }, "Python") : null,
        this.examples, element("label", { class: "mode-choice" }, element("span", {}, "Backward pass:"), this.modes), this.menu,
        element("button", { type: "button", class: "quiet round", title: "Light or dark (D)", "aria-label": "Light or dark", click: () => on.theme() }, "\u25d0"),
        element("button", { type: "button", class: "quiet round", title: "Keyboard (?)", "aria-label": "Keyboard", click: () => on.help() }, "?")));
  }

  typed() {
    this.grow();
    this.list("");
    this.on.text(this.field.value);
  }

  grow() {
    const lines = this.field.value.split("\n").length;
    this.field.rows = Math.max(1, Math.min(6, lines));
  }

  setText(text) {
    if (this.field.value !== text) this.field.value = text;
    const place = EXAMPLES.findIndex((example) => example.text === text);
    this.list(place < 0 ? "" : String(place));
    this.grow();
  }

  /** Which entry of the examples is shown. */
  list(value) {
    this.listed = value;
    this.examples.value = value;
  }

  showProgram(title) {
    this.field.value = "";
    this.field.placeholder = `${title}, or type an expression`;
    this.program.hidden = false;
    this.list("program");
    this.grow();
    this.setError("", "", -1);
  }

  /** The problem, with the character it is about marked. */
  setError(message, text, position) {
    this.problem.hidden = !message;
    this.field.setAttribute("aria-invalid", String(Boolean(message)));
    if (!message) {
      setText(this.problem, "");
      return;
    }
    const start = text.lastIndexOf("\n", position - 1) + 1;
    const from = Math.max(start, position - 24);
    const end = text.indexOf("\n", position);
    const after = text.slice(position + 1, Math.min(end < 0 ? text.length : end, position + 24));
    fill(this.problem, message,
      position < 0 ? null : element("span", { class: "excerpt" }, text.slice(from, position), element("mark", {}, text.slice(position, position + 1).trim() || "\u2423"), after));
  }

  key(event) {
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.on.focusGraph();
    }
  }

  chosen() {
    const { value } = this.examples;
    if (value === "program") this.on.program();
    else if (value) this.on.example(EXAMPLES[Number(value)]);
  }

  setMode(mode) {
    this.modes.value = mode;
  }

  save(what) {
    this.close();
    this.on.save(what);
  }

  /** Where the menu was: `text` says for a moment what has happened. */
  say(text) {
    const [summary] = this.menu.children;
    setText(summary, text);
    clearTimeout(this.saying);
    this.saying = setTimeout(() => setText(summary, "Save"), SAID_MS);
  }

  close() {
    this.menu.open = false;
  }

  menuKey(event) {
    if (event.key !== "Escape" || !this.menu.open) return;
    event.stopPropagation();
    this.close();
    this.menu.children[0].focus();
  }

  leaving(event) {
    if (!this.menu.contains(event.relatedTarget)) this.close();
  }

  focusText() {
    this.field.focus();
    this.field.select();
  }
}
