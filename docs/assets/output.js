// What came of a cell: text, tables, pictures, an error. Nothing that Python gives back becomes markup as it is:
// pictures are images, which run nothing, and of a table only its rows and words are taken.

const MOST_TEXT = 20000;
const OF_TABLES = new Set(["TABLE", "THEAD", "TBODY", "TR", "TH", "TD", "CAPTION", "B", "I", "EM", "STRONG", "CODE", "SUB", "SUP", "BR"]);

/** Fill an element with what was shown, in order. */
export function fill(element, shown) {
  element.replaceChildren(...shown.map(part));
}

function part(shown) {
  const plain = shown["text/plain"];
  if (shown["image/svg+xml"]) return picture(shown["image/svg+xml"], plain);
  if (shown["text/html"]) return table(shown["text/html"]) ?? text(plain);
  return text(plain);
}

export function text(plain) {
  const element = document.createElement("pre");
  if (/\S {2,}\S/.test(plain)) movable(element, "columns", "Text"); // in lines that are broken they are lost
  element.textContent = plain.length > MOST_TEXT ? `${plain.slice(0, MOST_TEXT)}\n\u2026 ${plain.length - MOST_TEXT} more characters` : plain;
  return element;
}

function picture(svg, plain) {
  const image = document.createElement("img");
  image.alt = plain.trim();
  image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  return sideways(image, "picture", "Picture");
}

/** Something that may be wider than a phone: it can be moved there, by keys, too. */
function sideways(content, kind, said) {
  const frame = movable(document.createElement("div"), kind, said);
  frame.append(content);
  return frame;
}

function movable(element, kind, said) {
  element.className = kind;
  element.tabIndex = 0;
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", said);
  return element;
}

function table(markup) {
  const [found] = new DOMParser().parseFromString(markup, "text/html").querySelectorAll("table");
  if (!found) return null;
  return sideways(copied(found), "wide", "Table");
}

function copied(node) {
  if (node.nodeType === Node.TEXT_NODE) return node.textContent;
  if (!OF_TABLES.has(node.tagName)) return node.textContent ?? "";
  const element = document.createElement(node.tagName);
  if (node.tagName === "TH" && node.getAttribute("scope") === "col") element.scope = "col";
  element.append(...[...node.childNodes].map(copied));
  return element;
}
