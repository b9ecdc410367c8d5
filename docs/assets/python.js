// Python in a worker: started when it is first asked for, stopped when a cell runs too long, and started again then.

const LARGEST_FILE_SHARE = 0.98; // the rest of the way is Python starting

export class Python {
  constructor(up) {
    this.up = up;
    this.worker = null;
    this.waiting = null;
    this.hasRun = false; // a cell, in the worker that is there now
    this.generation = 0; // how often it was started: what ran before is gone
  }

  /** Somebody is about to ask: the seconds until they do are not lost. */
  start() {
    this.worker ??= this.started();
  }

  /** Run a cell: { name, code, checks, seconds }; `tell` hears of progress and of what is printed. */
  run(cell, tell) {
    this.start();
    return new Promise((done) => {
      this.waiting = { cell, tell, done, timer: null };
      this.worker.postMessage(cell);
      if (this.hasRun) this.limit(); // else the seconds begin when it has been loaded
    });
  }

  /** From now on, what is waited for has its seconds. */
  limit() {
    const { waiting } = this;
    const { seconds } = waiting.cell;
    waiting.timer ??= setTimeout(() => this.stop(`Stopped after ${seconds} seconds. Is there a loop that does not end?`), 1000 * seconds);
  }

  started() {
    this.generation += 1;
    this.hasRun = false;
    const worker = new Worker(new URL("./python-worker.js", import.meta.url), { type: "module" });
    worker.addEventListener("message", ({ data }) => this.heard(data));
    worker.addEventListener("error", (event) => this.ended(`Python could not be started: ${event.message || "a file is missing"}`));
    worker.postMessage({ start: `${this.up}python/` });
    return worker;
  }

  heard(message) {
    const { waiting } = this;
    if (!waiting) {
      if (message.kind === "failed") this.ended(""); // nobody has asked yet: the first run tries again
      return;
    }
    if (message.kind === "loading") {
      waiting.tell({ loading: Math.min(LARGEST_FILE_SHARE, message.bytes / message.total), total: message.total });
    } else if (message.kind === "running") {
      waiting.tell({ running: true });
      this.hasRun = true;
      this.limit();
    } else if (message.kind === "printed") {
      waiting.tell({ printed: message.text });
    } else if (message.kind === "failed") {
      this.ended(`Python could not be started: ${message.text}`);
    } else if (message.kind === "died") {
      this.stop(`Python itself ended: ${message.text}.`);
    } else {
      this.finish(message.outcome);
    }
  }

  stop(reason = "Stopped.") {
    if (this.waiting) this.ended(`${reason} Python starts afresh with the next run.`);
  }

  ended(error) {
    this.worker?.terminate();
    this.worker = null;
    this.finish({ shown: null, error, line: 0 });
  }

  finish(outcome) {
    const { waiting } = this;
    this.waiting = null;
    clearTimeout(waiting?.timer);
    waiting?.done(outcome);
  }
}
