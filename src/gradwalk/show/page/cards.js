// Cards: a node's name and operation, its data and its gradient; or a part that is folded up, with how many nodes it has.

import { glyph, inWords, kind } from "./describe.js";
import { setAttributes, setText, svg } from "./dom.js";
import { titleOf } from "./fold.js";
import { isEditable } from "./graph.js";
import { widthOf } from "./lettering.js";
import { subscripted } from "./mathml.js";

const HEIGHT = 52;
const NARROWEST = 65;
const WIDEST = 112;
const WIDEST_SMALL = 170; // of a name in small letters: a path like layers.0.neurons.15.w.17
const EDGE = 6; // between the border and the text
const APART = 5; // name and sign
const BEFORE_INDEX = 1;
const ROUNDED = 2; // pixels, by browsers, each in its own way

/** How large an item's card is, before it is built. */
export function sizeOf(graph, item) {
  if (item.part) return { width: WIDEST, height: HEIGHT };
  const [i] = item.nodes;
  const node = graph.nodes[i];
  if (node.constant) return { width: Math.max(34, 14 + widthOf(graph.names[i], "number")), height: 24 };
  const around = 2 * EDGE + signWidth(sign(node));
  const needed = around + nameWidth(graph.names[i], "name");
  const width = needed <= WIDEST ? needed : Math.min(WIDEST_SMALL, around + nameWidth(graph.names[i], "smallName"));
  return { width: Math.max(NARROWEST, width), height: HEIGHT };
}

// The card itself: {k, item, i, group, dataText, gradText, …}; `i` is the node, or -1 for a part. One among the `known`
// that looks the same is taken from there, and moved.
export function cardOf(graph, item, k, size, { x, y }, known) {
  const i = item.part ? -1 : item.nodes[0];
  const face = faceOf(graph, item, i);
  const key = [...Object.values(face), size.width].join("\u0000");
  const card = known.get(key) ?? { ...built(face, size), key, data: null, grad: null, state: null };
  known.delete(key);
  setAttributes(card.group, { transform: `translate(${x} ${y})`, tabindex: "-1", "data-card": k });
  // of a part it begins with what is read on it
  const about = face.count ? `${face.name} ${face.count}` : `${face.name}, ${[kind(graph.nodes[i]), inWords(graph, i)].filter(Boolean).join(" ")}`;
  return Object.assign(card, { k, item, i, size, about, kinds: face.kinds, editable: i >= 0 && isEditable(graph, i) });
}

/** All that is seen of a card but its numbers. */
function faceOf(graph, item, i) {
  if (i < 0) return { name: titleOf(item.part), kinds: "node part", written: "\u229e", count: `${item.nodes.length.toLocaleString("en")} nodes` };
  const node = graph.nodes[i];
  const kinds = ["node", node.children.length ? "op" : "leaf", node.constant && "constant", node.cut && "cut",
    isEditable(graph, i) && "editable", i === graph.root && "root"].filter(Boolean).join(" ");
  return { name: graph.names[i], kinds, written: node.constant ? "" : sign(node), count: "" };
}

function built({ name, kinds, written, count }, size) {
  const isConstant = kinds.includes("constant");
  const left = -size.width / 2;
  const top = -size.height / 2;
  const box = svg("rect", { class: "box", x: left, y: top, width: size.width, height: size.height, rx: isConstant ? 12 : 9 });
  const group = svg("g", { class: kinds, role: count ? "button" : "img" }, box);
  if (isConstant) {
    group.append(svg("text", { class: "constant-text", x: 0, y: 4.5 }, name));
    return { group };
  }
  const dataText = svg("text", { class: "data number", x: -left - EDGE, y: 6.5 });
  const gradText = svg("text", { class: "grad number", x: -left - EDGE, y: 21 });
  group.append(
    nameText(name, Boolean(count), size.width - 2 * EDGE - signWidth(written), left + EDGE, top + 16),
    svg("text", { class: "glyph", x: -left - EDGE, y: top + 16 }, written),
    svg("text", { class: "count", x: left + EDGE, y: 6 }, count),
    dataText,
    " ", // or what is read on a part runs together
    gradText,
  );
  if (count) {
    box.before(svg("rect", { class: "box behind", x: left + 4, y: top - 4, width: size.width, height: size.height, rx: 9 }));
  }
  return { group, dataText, gradText };
}

/** Write a number on a card. */
export function writeNumber(text, written, width) {
  writeInto(text, written, width - 2 * EDGE);
}

/** Write a number where there is only so much room; one that is too long is set a little narrower. */
export function writeInto(text, written, room) {
  setText(text, written);
  if (widthOf(written, "number") > room) {
    text.setAttribute("textLength", room);
    text.setAttribute("lengthAdjust", "spacingAndGlyphs");
  } else {
    text.removeAttribute("textLength");
  }
}

function sign(node) {
  if (node.children.length) return glyph(node);
  return node.cut ? "\u2026" : "";
}

const signWidth = (written) => (written ? APART + widthOf(written, "sign") : 0);

/** What a name is in two parts, letters and a number below the line; a part of the graph has none of these. */
const split = (name, face) => (face === "sign" ? null : subscripted(name));

function nameWidth(name, face) {
  const [letters, digits] = split(name, face) ?? [name, ""];
  const index = digits ? BEFORE_INDEX + widthOf(digits, "index") : 0;
  return Math.ceil(widthOf(letters, face) + index) + ROUNDED;
}

function clipped(name, face, room) {
  let kept = [...name];
  const isShort = (text) => nameWidth(text, face) <= room + 0.01;
  if (isShort(name)) return name;
  while (kept.length > 2 && !isShort(`${kept.join("")}\u2026`)) kept = kept.slice(0, -1);
  return `${kept.join("")}\u2026`;
}

/** A name where there is this much room: whole, in smaller letters, or the beginning of it. */
function nameText(name, isPart, room, x, y) {
  const isSmall = nameWidth(name, "name") > room + 0.01;
  const face = isPart ? "sign" : isSmall ? "smallName" : "name";
  const shown = clipped(name, face, room);
  const parts = split(shown, face);
  const attributes = { class: isSmall ? "name small" : "name", x, y };
  if (!parts) return svg("text", attributes, shown);
  return svg("text", attributes, parts[0], svg("tspan", { dy: 3, dx: BEFORE_INDEX }, parts[1]));
}
