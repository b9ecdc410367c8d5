// Python in colours, with the classes that the pages' own code has.

const KEYWORDS = new Set(("False None True and as assert async await break class continue def del elif else except finally for from global "
  + "if import in is lambda nonlocal not or pass raise return try while with yield").split(" "));
const TOKENS = /(?<c1>#[^\n]*)|(?<s2>[rfbRFB]{0,2}("""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))|(?<mf>\b\d[\d_]*\.?\d*(?:e[+-]?\d+)?\b)|(?<n>[^\W\d]\w*)|(?<o>[-+*\/%=<>!&|^~@]+)/g;

/** The code as a fragment of spans. */
export function highlighted(code) {
  const fragment = document.createDocumentFragment();
  let place = 0;
  let before = "";
  for (const found of code.matchAll(TOKENS)) {
    fragment.append(code.slice(place, found.index));
    const [kind] = Object.entries(found.groups).find(([, text]) => text !== undefined);
    fragment.append(span(kindOf(kind, found[0], before), found[0]));
    if (found[0].trim()) before = found[0];
    place = found.index + found[0].length;
  }
  fragment.append(code.slice(place));
  return fragment;
}

function kindOf(kind, text, before) {
  if (kind !== "n") return kind;
  if (KEYWORDS.has(text)) return "k";
  if (before === "def") return "nf";
  return before === "class" ? "nc" : "n";
}

function span(kind, text) {
  const element = document.createElement("span");
  element.className = kind;
  element.textContent = text;
  return element;
}
