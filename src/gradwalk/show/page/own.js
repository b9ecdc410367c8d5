// A function of the reader's own in Python: a second place to type, where there is a Python to run it.

import { element, setText } from "./dom.js";

const FIRST = "def f(x=2.0, y=-3.0):\n    total = 0.0\n    for k in range(3):\n        total = total + tanh(x * y + k)\n    return total\n";
const SECONDS = 20;

export class OwnPython {
  /** `python.run(source, tell)` answers {program} or {error}; `show(program, source)` is called with a program. */
  constructor(python, show, source) {
    this.python = python;
    this.show = show;
    this.field = element("textarea", {
      class: "own-code", rows: 9, spellcheck: "false", autocomplete: "off", autocapitalize: "off", wrap: "off", maxlength: 20000,
      "aria-label": "A function in Python", keydown: (event) => this.key(event),
    });
    this.field.value = source ?? FIRST;
    this.told = element("p", { class: "told", role: "status" });
    this.button = element("button", { type: "button", class: "quiet", title: "Ctrl+Enter", click: () => this.run() }, "Run");
    this.root = element("dialog", { class: "help own", "aria-label": "A function in Python", click: (event) => event.target === this.root && this.root.close() },
      element("h2", {}, "A function in Python"),
      element("p", {}, "The last function is called with a number for each argument: its default, or one of ours. What it records is shown."),
      this.field, this.told,
      element("div", { class: "asking" }, this.button,
        element("button", { type: "button", class: "quiet", click: () => this.root.close() }, "Close")));
  }

  open() {
    this.say("");
    this.root.showModal();
    this.field.focus();
  }

  async run() {
    const source = this.field.value;
    this.button.disabled = true;
    this.say("Running");
    const { program, error } = await this.python.run(source, (text) => this.say(text));
    this.button.disabled = false;
    this.say(error ?? "", Boolean(error));
    if (!program) return;
    this.root.close();
    this.show(program, source);
  }

  say(text, isProblem = false) {
    setText(this.told, text);
    this.told.classList.toggle("bad", isProblem);
  }

  key(event) {
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey || event.shiftKey) {
      this.run();
      return;
    }
    const line = this.field.value.slice(0, this.field.selectionStart).split("\n").at(-1);
    const indent = /^ */.exec(line)[0] + (line.trimEnd().endsWith(":") ? "    " : "");
    this.field.setRangeText(`\n${indent}`, this.field.selectionStart, this.field.selectionEnd, "end");
  }
}

/** The Python of the site that this page is hosted on; `up` leads to the site's root. Nothing is loaded before it is asked for. */
export function hostedPython(up) {
  let started = null;
  const start = async () => {
    const root = new URL(up, location.href).href;
    const { Python } = await import(`${root}assets/python.js`);
    return new Python(root);
  };
  return {
    async run(source, tell) {
      try {
        const python = await (started ??= start());
        const code = `from gradwalk.show.own_python import answered\nprint(answered(${JSON.stringify(source)}))`;
        const outcome = await python.run({ name: "cell", code, seconds: SECONDS }, ({ loading, total, running }) => {
          if (loading !== undefined) tell(`Loading Python, ${Math.round((loading * total) / 1e6)} of ${Math.round(total / 1e6)} MB, once`);
          if (running) tell("Running");
        });
        return outcome.error ? { error: outcome.error } : JSON.parse(outcome.text);
      } catch (error) {
        started = null;
        return { error: `Python could not be started: ${error.message}` };
      }
    },
  };
}
