// What can be taken along, and how: a picture, the page itself, code, the address.

import { download, setText } from "./dom.js";
import { htmlText, pngBlob, pythonCode, svgText } from "./export.js";
import { toProgram } from "./graph.js";

const NAME = "gradwalk";

/** Hand the user what the Save menu offers. */
export async function keep(app, what) {
  if (what === "svg") download(`${NAME}.svg`, svgText(app.drawing), "image/svg+xml");
  if (what === "png") download(`${NAME}.png`, await pngBlob(app.drawing), "image/png");
  if (what === "python") download(`${NAME}_walk.py`, pythonCode(app.graph, app.values, app.line.data), "text/x-python");
  if (what === "html") download(`${NAME}.html`, htmlText(app.pristine, startingPoint(app)), "text/html");
  if (what === "link") await copyAddress(app);
}

async function copyAddress(app) {
  let said = "Copied";
  try {
    await navigator.clipboard.writeText(location.href);
  } catch {
    said = "Copy it from the address bar"; // a page in a frame, or from a file, may not write to the clipboard
  }
  app.header.say(said);
  setText(app.live, said);
}

/** What a new file has to begin with to show what is shown now. */
function startingPoint(app) {
  const common = { t: app.t, mode: app.mode, theme: app.theme };
  if (app.graph.text) return { ...common, text: app.graph.text, values: app.valuesToKeep() };
  return { ...common, program: toProgram(app.line) };
}
