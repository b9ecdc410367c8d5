// Which key means what. Text fields keep their keys, but for Escape, which leaves them.

const PLAIN = {
  " ": "toggle", ArrowLeft: "back", ArrowRight: "next", ArrowUp: "up", ArrowDown: "down", Home: "first", End: "last",
  f: "forward", b: "backward", w: "wrong", "/": "expression", v: "value", "+": "zoomIn", "=": "zoomIn", "-": "zoomOut",
  0: "fit", d: "theme", "?": "help", Escape: "escape", 1: "mode1", 2: "mode2", 3: "mode3", 4: "mode4", 5: "mode5",
};

/** The action of a key press, or null. */
export function shortcut(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return null;
  const target = event.composedPath()[0];
  const tag = target.tagName;
  if (tag === "TEXTAREA" || (tag === "INPUT" && target.type !== "range")) {
    if (event.key === "Escape") target.blur();
    return null;
  }
  const pressing = tag === "BUTTON" || tag === "SUMMARY" || tag === "A";
  if (pressing && event.key === " ") return null;
  if (tag === "SELECT" && event.key !== "Escape") return null;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  return Object.hasOwn(PLAIN, key) ? PLAIN[key] : null;
}
