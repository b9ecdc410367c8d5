// A place to edit Python: a plain text field over the same text in colours. Tab indents once something was typed;
// Escape gives Tab back to moving through the page, so that the keyboard is never caught.

import { highlighted } from "./highlight.js";

const INDENT = "    ";

export class Editor {
  constructor(code, label, on) {
    this.on = on;
    this.isTyping = false;
    this.root = document.createElement("div");
    this.root.className = "editor";
    this.colours = document.createElement("pre");
    this.colours.className = "code";
    this.colours.setAttribute("aria-hidden", "true");
    this.field = document.createElement("textarea");
    Object.assign(this.field, { spellcheck: false, autocapitalize: "off", autocomplete: "off", wrap: "off" });
    this.field.setAttribute("aria-label", label);
    this.field.setAttribute("autocorrect", "off");
    this.field.addEventListener("input", () => { this.isTyping = true; this.changed(); });
    this.field.addEventListener("blur", () => { this.isTyping = false; });
    this.field.addEventListener("keydown", (event) => this.key(event));
    this.root.append(this.colours, this.field);
    this.code = code;
  }

  get code() {
    return this.field.value;
  }

  set code(text) {
    this.field.value = text.replace(/\n$/, "");
    this.changed();
  }

  changed() {
    const { value } = this.field;
    this.field.rows = Math.max(1, value.split("\n").length);
    this.colours.replaceChildren(highlighted(value), "\n");
    this.mark(0);
    this.on.change();
  }

  /** Show which line an error is about; 0 for none. */
  mark(line) {
    this.colours.querySelector(".wrong-line")?.remove();
    if (!line) return;
    const band = document.createElement("span");
    band.className = "wrong-line";
    band.style.setProperty("--line", String(line - 1));
    this.colours.append(band);
  }

  key(event) {
    if (event.key === "Enter" && (event.shiftKey || event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.on.run();
    } else if (event.key === "Enter") {
      const [line] = this.before().split("\n").slice(-1);
      const deeper = /:\s*(#.*)?$/.test(line) ? INDENT : "";
      this.insert(event, `\n${line.match(/^ */)[0]}${deeper}`);
    } else if (event.key === "Tab" && this.isTyping && !event.shiftKey) {
      this.insert(event, INDENT);
    } else if (event.key === "Backspace" && this.isBlankBefore()) {
      event.preventDefault();
      this.field.setSelectionRange(this.field.selectionStart - INDENT.length, this.field.selectionStart);
      document.execCommand("delete");
    } else if (event.key === "Escape") {
      this.isTyping = false;
    }
  }

  before() {
    return this.field.value.slice(0, this.field.selectionStart);
  }

  /** Nothing but whole indentation stands before the cursor in its line. */
  isBlankBefore() {
    const { selectionStart, selectionEnd } = this.field;
    const [line] = this.before().split("\n").slice(-1);
    return selectionStart === selectionEnd && line.length > 0 && line.length % INDENT.length === 0 && !line.trim();
  }

  insert(event, text) {
    event.preventDefault();
    document.execCommand("insertText", false, text); // the one way that undo knows of
  }
}
