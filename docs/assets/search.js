// The search: the site's own list of headings and the text below them, looked through here.

const MOST = 10;
const AROUND = 60;

/** Let the field search; `up` is the site's root. */
export async function mount(field, up) {
  const results = field.parentElement.querySelector(".results");
  const entries = (await (await fetch(`${up}search.json`)).json()).map(([address, page, heading, text]) => ({
    address, page, heading, text, low: text.toLowerCase(), title: `${page} ${heading}`.toLowerCase(),
  }));
  const show = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    results.hidden = !words.length;
    results.replaceChildren(...(words.length ? found(entries, words, up) : []));
  };
  field.addEventListener("input", show);
  field.parentElement.addEventListener("keydown", (event) => move(event, field, results));
  field.parentElement.addEventListener("focusout", (event) => {
    if (!field.parentElement.contains(event.relatedTarget)) results.hidden = true;
  });
  field.addEventListener("focus", show);
  show();
}

function found(entries, words, up) {
  const scored = entries.map((entry) => ({ entry, score: score(entry, words) })).filter(({ score: points }) => points > 0);
  scored.sort((one, other) => other.score - one.score);
  if (!scored.length) return [textElement("p", "Nothing found.")];
  return scored.slice(0, MOST).map(({ entry }) => link(entry, words, up));
}

/** Every word has to be there; in a title it counts for more, and at the beginning of a word, too. */
function score(entry, words) {
  let points = 0;
  for (const word of words) {
    const inTitle = entry.title.indexOf(word);
    const inText = entry.low.indexOf(word);
    if (inTitle < 0 && inText < 0) return 0;
    const starts = (text, at) => at === 0 || /\W/.test(text[at - 1]);
    if (inTitle >= 0) points += starts(entry.title, inTitle) ? 12 : 5;
    if (inText >= 0) points += starts(entry.low, inText) ? 3 : 1;
  }
  return points;
}

function link(entry, words, up) {
  const anchor = document.createElement("a");
  anchor.href = up + entry.address;
  const heading = entry.heading === entry.page ? entry.page : `${entry.page} \u203a ${entry.heading}`;
  anchor.append(textElement("b", heading), textElement("span", excerpt(entry, words)));
  return anchor;
}

/** Whole words around one that was found. */
function excerpt({ text, low }, words) {
  const at = Math.max(0, ...words.map((word) => low.indexOf(word)));
  const from = text.lastIndexOf(" ", Math.max(0, at - AROUND)) + 1;
  const end = text.indexOf(" ", at + 2 * AROUND);
  return (from ? "\u2026 " : "") + (end < 0 ? text.slice(from) : `${text.slice(from, end)} \u2026`);
}

function move(event, field, results) {
  if (event.key === "Escape") {
    results.hidden = true;
    field.focus();
    return;
  }
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const stops = [field, ...results.querySelectorAll("a")];
  const next = stops.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
  event.preventDefault();
  stops[Math.max(0, Math.min(stops.length - 1, next))].focus();
}

function textElement(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}
