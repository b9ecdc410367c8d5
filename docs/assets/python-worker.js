// The worker: loads Python and gradwalk from this site, then runs one cell after the other in one namespace.

const OFTEN = 80; // milliseconds between two messages about what is printed
let ready = null;

self.onmessage = async ({ data }) => {
  if (data.start) {
    ready = load(data.start);
    ready.catch((error) => postMessage({ kind: "failed", text: String(error.message ?? error) }));
    return;
  }
  const python = await ready;
  postMessage({ kind: "running" });
  const telling = teller();
  try {
    const outcome = data.checks
      ? python.check(data.code, data.checks)
      : python.run(data.code, data.name, telling.tell);
    telling.flush();
    postMessage({ kind: "done", outcome: JSON.parse(outcome) });
  } catch (error) { // what Python raises is in the outcome: this is the end of Python itself
    postMessage({ kind: "died", text: String(error.message ?? error) });
  }
};

async function load(folder) {
  const sizes = await (await fetch(`${folder}sizes.json`)).json();
  const total = Object.values(sizes).reduce((sum, size) => sum + size, 0);
  countBytes((bytes) => postMessage({ kind: "loading", bytes, total }));
  const archive = fetch(`${folder}gradwalk.zip`).then((response) => response.arrayBuffer());
  const memory = started(folder, sizes);
  const { loadPyodide } = await import(`${folder}pyodide.mjs`);
  const env = { GRADWALK_ENGINE: "reference", HOME: "/home/pyodide" };
  const pyodide = await loadPyodide({ indexURL: folder, env, _loadSnapshot: await memory });
  pyodide.unpackArchive(await archive, "zip", { extractDir: "/lib/python3.14/site-packages" });
  return pyodide.runPython(`
import builtins
import importlib
import json
import random
from types import SimpleNamespace
from gradwalk.lessons import cells

importlib.invalidate_caches()  # the files were not there when its memory was kept
random.seed()  # nor was this visitor
namespace = {"__name__": "__main__"}

def input(prompt=""):
    raise RuntimeError("input: a cell cannot ask; write the answer into its code")

builtins.input = input

ELSEWHERE = "Python in the page has its standard library and gradwalk. What needs more runs in your own."

def told(outcome):
    if any(words in outcome.error for words in ("No module named", "to be installed")):
        outcome.error = outcome.error.partition("; pip install")[0] + "\\n" + ELSEWHERE
    return json.dumps({"shown": outcome.shown, "error": outcome.error, "line": outcome.line, "text": outcome.text})

SimpleNamespace(
    run=lambda code, name, tell: told(cells.run(code, namespace, name, tell)),
    check=lambda code, checks: told(cells.check(code, checks, namespace)),
)
`);
}

/** The memory of Python as it was after its start, kept when the site was built; without it, it starts from nothing. */
async function started(folder, sizes) {
  const name = Object.keys(sizes).find((file) => file.startsWith("started-"));
  const response = name && await fetch(folder + name);
  if (!response?.ok) return undefined; // the site was built anew since this page was loaded
  return new Response(response.body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/** Let every fetch of this worker be counted while it comes in. What is counted is a copy: only of an answer that is
 * the browser's own does it keep the compiled form for the next visit. */
function countBytes(tell) {
  const original = self.fetch;
  let bytes = 0;
  self.fetch = async (...given) => {
    const response = await original(...given);
    if (response.body) count(response.clone().body.getReader());
    return response;
  };
  async function count(reader) {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      bytes += piece.value.byteLength;
      tell(bytes);
    }
  }
}

/** Collects what is printed, so that a loop that prints does not drown the page in messages. */
function teller() {
  let text = "";
  let last = 0;
  const flush = () => {
    if (text) postMessage({ kind: "printed", text });
    text = "";
    last = performance.now();
  };
  const tell = (piece) => {
    text += piece;
    if (performance.now() - last > OFTEN) flush();
  };
  return { tell, flush };
}
