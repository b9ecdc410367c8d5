// The live cells of a page. They share one Python; running a cell first runs those above it that are new or changed,
// so that a page can be tried out from anywhere.

import { Editor } from "./editor.js";
import { fill, text } from "./output.js";
import { Python } from "./python.js";
import { address, shared } from "./share.js";

const SAID_MS = 2500;

/** Make the page's cells live; `given` is what the page says about them. */
export async function mount(given, up) {
  const python = new Python(up);
  const cells = given.map((about, i) => new Cell(i, about, python));
  for (const cell of cells) cell.all = cells;
  globalThis.gradwalkCells = cells; // for people who want to look inside, and for the tests
  const receive = async () => {
    const found = await shared(location.hash);
    if (found) cells[found.number - 1]?.receive(found.code);
  };
  addEventListener("hashchange", receive); // an address that is put into the tab that has the page already
  await receive();
}

class Cell {
  constructor(place, about, python) {
    Object.assign(this, { place, python, original: about.code, seconds: about.seconds, checks: about.checks });
    this.ran = null; // the state in which it ran last
    this.root = document.querySelector(`#cell-${place + 1}`);
    this.build();
  }

  // ---------------------------------------------------------------- building

  build() {
    const kind = this.checks ? "Exercise" : "Python";
    this.editor = new Editor(this.original, `${kind} cell ${this.place + 1}. Shift and Enter runs it; after typing, Escape gives the Tab key back.`, {
      run: () => this.run(),
      change: () => this.changed(),
    });
    this.root.querySelector("pre.code").replaceWith(this.editor.root);
    this.runButton = button(this.checks ? "Check" : "Run", "run", () => this.runOrStop(), "Shift+Enter");
    this.resetButton = button("Reset", "quiet", () => this.reset());
    this.shareButton = button("Share", "quiet", () => this.share());
    this.status = document.createElement("span");
    this.status.className = "status";
    this.status.setAttribute("role", "status");
    this.progress = document.createElement("progress");
    this.progress.setAttribute("aria-label", "Loading Python");
    this.progress.hidden = true;
    const bar = document.createElement("div");
    bar.className = "bar";
    bar.append(this.runButton, this.resetButton, this.shareButton, this.progress, this.status);
    this.editor.root.after(bar);
    this.output = this.root.querySelector(".output") ?? document.createElement("div");
    this.output.classList.add("output");
    bar.after(this.output);
    this.recorded = [...this.output.childNodes];
    for (const sign of ["focusin", "pointerdown"]) this.root.addEventListener(sign, () => this.python.start(), { once: true });
    this.changed();
  }

  /** What its result depends on: this Python, its code, and that of the cells above it. */
  get state() {
    const above = this.all.slice(0, this.place).filter((cell) => !cell.checks);
    return JSON.stringify([this.python.generation, ...[...above, this].map((cell) => cell.editor.code)]);
  }

  changed() {
    if (this.resetButton) this.resetButton.disabled = this.editor.code === this.original.replace(/\n$/, "");
  }

  // ---------------------------------------------------------------- running

  runOrStop() {
    if (this.isRunning) this.python.stop();
    else this.run();
  }

  async run() {
    if (this.all.some((cell) => cell.isRunning)) return;
    for (const cell of this.all.slice(0, this.place)) {
      if (cell.checks || cell.ran === cell.state) continue;
      this.say(`Running cell ${cell.place + 1} first`);
      await cell.runAlone();
      if (cell.outcome.error) {
        this.say(`Cell ${cell.place + 1} has to run first, and did not.`);
        return;
      }
    }
    await this.runAlone();
  }

  async runAlone() {
    this.python.start();
    const { state, editor: { code } } = this;
    this.setRunning(true);
    this.editor.mark(0);
    let printed = "";
    const tell = (news) => {
      if (news.loading !== undefined) this.showLoading(news);
      if (news.running) this.begin();
      if (news.printed) {
        printed += news.printed;
        fill(this.output, [{ "text/plain": printed }]);
      }
    };
    this.outcome = await this.python.run({ name: `cell ${this.place + 1}`, code, checks: this.checks, seconds: this.seconds }, tell);
    this.outcome.shown ??= printed ? [{ "text/plain": printed }] : [];
    this.ran = this.outcome.error ? null : state;
    this.setRunning(false);
    this.show();
  }

  begin() {
    this.progress.hidden = true;
    this.say("Running");
    this.output.classList.remove("recorded");
    this.output.replaceChildren();
  }

  showLoading({ loading, total }) {
    this.progress.hidden = false;
    this.progress.value = loading;
    this.say(`Loading Python, ${Math.round((loading * total) / 1e6)} of ${Math.round(total / 1e6)} MB, once`);
  }

  setRunning(isRunning) {
    this.isRunning = isRunning;
    this.root.classList.toggle("running", isRunning);
    this.runButton.textContent = isRunning ? "Stop" : this.checks ? "Check" : "Run";
    this.progress.hidden = true;
  }

  show() {
    const { shown, error, line } = this.outcome;
    this.output.classList.remove("recorded");
    fill(this.output, shown);
    if (error) {
      const told = text(error);
      told.className = "error";
      this.output.append(told);
      this.editor.mark(line);
    }
    this.root.classList.toggle("passed", Boolean(this.checks) && !error);
    if (this.checks) this.say(error ? "Not yet." : "That is right.");
    else this.say(error ? "An error ended it." : "Done");
  }

  // ---------------------------------------------------------------- the rest

  reset() {
    this.editor.code = this.original;
    this.ran = null;
    this.output.replaceChildren(...this.recorded);
    this.output.classList.toggle("recorded", this.recorded.length > 0);
    this.root.classList.remove("passed");
    this.say("As it was");
  }

  async share() {
    const link = await address(this.place + 1, this.editor.code);
    history.replaceState(null, "", link);
    try {
      await navigator.clipboard.writeText(link);
      this.say("The address is copied");
    } catch {
      this.say("Copy it from the address bar"); // not every page may write to the clipboard
    }
  }

  receive(code) {
    this.editor.code = code;
    this.output.replaceChildren();
    this.root.scrollIntoView({ block: "center" });
    this.say("This code came with the address. Read it, then run it.", true);
  }

  say(words, stays = false) {
    this.status.textContent = words;
    clearTimeout(this.saying);
    if (!stays && !this.isRunning && !this.checks) this.saying = setTimeout(() => { this.status.textContent = ""; }, SAID_MS);
  }
}

function button(label, kind, click, keys = "") {
  const element = document.createElement("button");
  element.type = "button";
  element.className = kind;
  element.textContent = label;
  if (keys) element.title = keys;
  element.addEventListener("click", click);
  return element;
}
