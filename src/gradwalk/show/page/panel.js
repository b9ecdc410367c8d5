// Beside the graph: what the step does, in numbers, and the table of leaves with their finite differences.

import { derivative, derivativeFormula, forwardFormula, forwardNumbers, kind, PARTIAL } from "./describe.js";
import { arrange, element, setText } from "./dom.js";
import { finiteDifference, gradsAt, judged, MODES } from "./engine.js";
import { titleOf } from "./fold.js";
import { isEditable } from "./graph.js";
import { identifier, math, numeral, subscripted } from "./mathml.js";
import { exact, short, typed } from "./numbers.js";

const ONE_LINE = 14; // letters of a formula
const MORE_ROWS = 40; // at a time: each field in sight or out of it costs the browser something whenever anything changes
const AT_ONCE = 1500; // nodes times rows: their differences take a moment; those of more wait until the hand rests
const REST_MS = 150;
const BUDGET_MS = 5;
const MOST_MEASURED = 3000;

// ---------------------------------------------------------------- the step

const mathOf = (...parts) => math("math", ...parts);

function number(x, className = "") {
  return element("span", { class: `number ${className}`, title: exact(x) }, short(x));
}

/** A number with what it is written under it. */
function captioned(x, className, ...caption) {
  return element("span", { class: `part ${className}` }, number(x), element("span", { class: "under" }, ...caption));
}

/** A number after a sign: a negative one stands in parentheses. */
function enclosed(x) {
  return x < 0 ? element("span", {}, "(", number(x), ")") : number(x);
}

/** The derivative = formula = number, or only = number where the formula says no more; a line can end before each =. */
function equalities(line, i, slot) {
  const { graph, localGrads } = line;
  const formula = derivativeFormula(line, i, slot);
  const text = short(localGrads[i][slot]);
  const saysMore = formula && formula.textContent !== text;
  return [mathOf(derivative(graph, i, slot)), ...(saysMore ? inPieces(formula) : []), equals(numeral(text))];
}

/** A long sum can go on in the next line before each of its signs. */
function inPieces(formula) {
  const parts = [[math("mo", "=")]];
  const isSign = (part, k) => k > 0 && part.nodeName === "mo" && "+\u2212".includes(part.textContent);
  const terms = [...formula.childNodes];
  // anything else stays one: a brace grows with the cases that it stands in one row with
  const isSum = formula.nodeName === "mrow" && terms.some(isSign) && formula.textContent.length > ONE_LINE;
  (isSum ? terms : [formula]).forEach((part, k) => (isSum && isSign(part, k) ? parts.push([part]) : parts.at(-1).push(part)));
  for (const [first] of parts) first.setAttribute("form", "infix"); // with room on both sides, though nothing is before it here
  return parts.map((each) => mathOf(...each));
}

const equals = (right) => mathOf(math("mo", "="), right);

function sign(text) {
  return element("span", { class: "sign" }, text);
}

function gradOf(name) {
  return element("span", { class: "grad-of" }, mathOf(identifier(name)), ".grad");
}

/** The step's heading, what Python would object to, and the arithmetic. */
export function stepContent(line, t, step) {
  const [head, ...rest] = arithmetic(line, t, step);
  return [head, line.problems.length ? element("p", { class: "trouble" }, line.problems[0].message) : null, ...rest];
}

function arithmetic(line, t, step) {
  const { graph } = line;
  if (step.kind === "start") {
    return [
      heading(`Step 0 of ${line.steps}: the beginning`, "start"),
      element("p", { class: "invitation" }, "Press play, or the right arrow key: values are computed, one after the other, then gradients walk back."),
      paragraph("Drag a card with a blue rim to change its value", element("span", { class: "typing" }, "; type another expression above"), "."),
    ];
  }
  if (step.kind === "forward") {
    const numbers = forwardNumbers(graph, step.node, line.data);
    return [
      heading(`Step ${t} of ${line.steps}: forward`, "forward"),
      element("div", { class: "formula" }, forwardFormula(graph, step.node)),
      element("div", { class: "formula numbers pieces" }, numbers && mathOf(numbers), equals(numeral(short(line.data[step.node])))),
    ];
  }
  if (step.kind === "seed") {
    return [
      heading(`Step ${t} of ${line.steps}: backward, the seed`, "backward"),
      element("div", { class: "equation" }, gradOf(graph.names[step.node]), sign("="), number(1, "grad")),
      paragraph("The result changes by exactly as much as the result does: the derivative of a thing by itself is 1."),
    ];
  }
  return contributionContent(line, t, step);
}

function contributionContent(line, t, step) {
  const { graph } = line;
  const assigning = line.mode === "assign";
  const name = graph.names[step.child];
  return [
    heading(`Step ${t} of ${line.steps}: backward`, "backward"),
    element("div", { class: "equation" },
      gradOf(name), sign(assigning ? "=" : "+="),
      captioned(step.local, "local", "local"), sign("\u00b7"),
      captioned(step.upstream, step.wrong && !Object.is(step.upstream, step.should.upstream) ? "upstream bad" : "upstream", "upstream"),
      element("span", { class: "outcome" }, sign("="), captioned(step.product, "product", "contribution"))),
    element("dl", { class: "parts" },
      element("dt", {}, "local"), element("dd", { class: "pieces", tabindex: "-1" }, ...equalities(line, step.node, step.slot)),
      element("dt", {}, "upstream"), element("dd", { tabindex: "-1" }, gradOf(graph.names[step.node]), " = ", number(step.upstream)),
      element("dt", {}, assigning ? "overwritten" : "sum"),
      element("dd", { class: "sum pieces", tabindex: "-1" },
        ...(assigning ? [number(step.before, "struck")] : [number(step.before), sign("+"), enclosed(step.product)]),
        element("span", { class: "outcome" }, sign(assigning ? "\u2192" : "="), number(step.after, "grad")))),
    graph.nodes[step.child].partial ? paragraph(`What arrives here is ${PARTIAL}.`) : null,
    step.wrong ? verdict(line, step) : null,
  ];
}

function verdict(line, step) {
  const early = !Object.is(step.upstream, step.should.upstream);
  const name = line.graph.names[early ? step.node : step.child];
  const [is, should] = early ? [step.upstream, step.should.upstream] : [step.after, step.should.after];
  return element("p", { class: "verdict" }, "Wrong here: ", gradOf(name), " is ", number(is), ", it should be ", number(should), ".");
}

function heading(text, pass) {
  return element("h2", { class: `step-title ${pass}` }, text);
}

function paragraph(...content) {
  return element("p", {}, ...content);
}

/** What the chosen mode does wrong, and where to look. */
export function modeContent(line, jump) {
  const mode = MODES.find((known) => known.id === line.mode);
  if (line.mode === "right") return [];
  const step = line.firstWrongStep;
  const where = step < 0
    ? element("p", {}, "On this graph nothing goes wrong: every gradient is as it should be. Try softmax with cross entropy.")
    : element("button", { type: "button", class: "jump", click: () => jump(step) }, `First wrong step: ${step}`);
  return [element("strong", {}, `Wrong on purpose: ${mode.name}`), element("p", { class: "why" }, mode.why), where];
}

// ---------------------------------------------------------------- a node's details, on hover and focus

export function detailContent(line, i, t, differences) {
  const { graph } = line;
  const node = graph.nodes[i];
  const grads = gradsAt(line, t);
  const rows = [["data", exact(line.data[i])]];
  if (grads) rows.push(["grad", exact(grads[i]) + (node.partial ? `, ${PARTIAL}` : "")]);
  const difference = differences(i);
  if (difference && !Number.isNaN(difference.slope)) rows.push(["finite difference", exact(difference.slope) + (difference.isKink ? ", at a kink" : "")]);
  if (node.scope) rows.push(["scope", node.scope]);
  const slots = node.children.length <= 4 ? node.children.map((_, slot) => slot) : [0];
  return [
    element("div", { class: "detail-head" }, mathOf(identifier(graph.names[i])), element("span", {}, kind(node))),
    node.children.length ? element("div", { class: "formula" }, forwardFormula(graph, i)) : null,
    ...slots.map((slot) => element("div", { class: "formula derivative pieces" }, ...equalities(line, i, slot))),
    element("dl", { class: "exact" }, ...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])),
  ];
}

/** A part that is folded up: what it is, and how to look inside. */
export function partContent({ part, nodes }) {
  return [
    element("div", { class: "detail-head" }, element("strong", {}, titleOf(part)), element("span", {}, `${nodes.length.toLocaleString("en")} nodes`)),
    paragraph("Folded up. A click, or Enter, unfolds it."),
  ];
}

// ---------------------------------------------------------------- the table

export class Table {
  /** `on.edit(node, value)` is called with a new value, `on.scrub(node, event, field, tap)` when one is dragged. */
  constructor(on) {
    this.on = on;
    this.all = false;
    this.most = MORE_ROWS;
    this.rows = [];
    const look = (event) => this.lookAt(event.target.closest("tr"));
    this.body = element("tbody", { pointerover: look, focusin: look });
    this.unmeasured = element("p", { class: "unmeasured" }, `Of more than ${MOST_MEASURED.toLocaleString("en")} nodes, a difference is measured when its row is pointed at.`);
    this.more = element("button", { type: "button", class: "quiet more", click: () => this.showMore() });
    this.toggle = element("button", { type: "button", class: "quiet", "aria-pressed": "false", click: () => this.showAll(!this.all) }, "all nodes");
    this.root = element("section", { class: "values", "aria-label": "Values and gradients" },
      element("div", { class: "values-head" }, element("h2", {}, "Values and gradients"), this.toggle),
      element("table", {},
        element("thead", {}, element("tr", {},
          element("th", { scope: "col", class: "of" }, "name"), element("th", { scope: "col", class: "wide" }, "value"),
          element("th", { scope: "col", class: "grad" }, "gradient"),
          element("th", { scope: "col", title: "(f(x + h) \u2212 f(x \u2212 h)) / 2h, beside the gradient" }, "finite diff."),
          element("th", { scope: "col", class: "check" }, element("span", { class: "unseen" }, "agrees")))),
        this.body),
      this.unmeasured, this.more);
  }

  showAll(all) {
    this.all = all;
    this.toggle.setAttribute("aria-pressed", String(all));
    this.build(this.graph);
    this.update(this.line, this.t);
  }

  showMore() {
    this.most += MORE_ROWS;
    this.list();
    this.update(this.line, this.t);
  }

  build(graph) {
    this.graph = graph;
    this.most = MORE_ROWS;
    this.unmeasured.hidden = graph.nodes.length <= MOST_MEASURED;
    this.list();
  }

  list() {
    const { graph } = this;
    const listed = graph.nodes.flatMap((node, i) => (this.all || (!node.children.length && !node.constant) ? [i] : []));
    if (this.all) listed.reverse();
    const known = new Map(this.rows.map((row) => [row.key, row]));
    this.rows = listed.slice(0, this.most).map((i) => this.row(i, known));
    const left = listed.length - this.rows.length;
    this.more.hidden = left <= 0;
    setText(this.more, `${Math.min(left, MORE_ROWS)} more, of ${left.toLocaleString("en")}`);
    arrange(this.body, this.rows.map((row) => row.root));
  }

  /** The row of a node; one among the `known` that looks the same is taken from there. */
  row(i, known) {
    const node = this.graph.nodes[i];
    const editable = isEditable(this.graph, i);
    const key = [this.graph.names[i], editable, node.constant].join("\u0000");
    const row = known.get(key);
    if (row && known.delete(key)) return Object.assign(row, { i });
    return this.newRow(i, node, editable, key);
  }

  newRow(i, node, editable, key) {
    const row = { i, key, seen: {} };
    row.value = editable ? this.input(row) : element("span", { class: "number" });
    row.grad = element("div", { class: "cell" });
    row.difference = element("div", { class: "cell" });
    row.check = element("td", { class: "check" });
    row.root = element("tr", {},
      element("th", { scope: "row", title: node.label || this.graph.names[i] }, node.constant ? this.graph.names[i] : nameOf(this.graph.names[i])),
      element("td", { class: "number" }, row.value),
      element("td", { class: "number grad" }, row.grad), element("td", { class: "number" }, row.difference), row.check);
    return row;
  }

  input(row) {
    const name = this.graph.names[row.i];
    const field = element("input", {
      class: "value number", type: "text", inputmode: "decimal", role: "spinbutton", autocomplete: "off", spellcheck: "false",
      "aria-label": `value of ${name}`, title: "type, drag, or use the up and down keys",
      focus: () => { field.value = exact(this.line.data[row.i]).replace(/\.0$/, ""); field.select(); },
      blur: () => this.update(this.line, this.t, true),
      input: () => {
        const value = typed(field.value);
        field.classList.toggle("bad", value === null);
        if (value !== null) this.on.edit(row.i, value);
      },
      keydown: (event) => this.key(event, row.i, field),
      // a press focuses only once it has turned out not to be a drag
      mousedown: (event) => field.matches(":focus") || event.preventDefault(),
      pointerdown: (event) => field.matches(":focus") || this.on.scrub(row.i, event, field, () => field.focus()),
    });
    return field;
  }

  key(event, i, field) {
    if (event.key === "Enter" || event.key === "Escape") field.blur();
    const by = { ArrowUp: 1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
    if (!by) return;
    event.preventDefault();
    const value = nudge(this.line.data[i], by * (event.shiftKey ? 10 : 1) * (event.altKey ? 0.1 : 1) * 0.1);
    field.value = exact(value).replace(/\.0$/, "");
    field.classList.remove("bad");
    this.on.edit(i, value);
  }

  update(line, t, force = false) {
    this.line = line;
    this.t = t;
    const grads = gradsAt(line, t);
    const done = t === line.steps;
    for (const row of this.rows) {
      const data = line.data[row.i];
      const grad = grads ? grads[row.i] : row.seen.grad ?? null; // until there is one it is not seen
      if (force || !Object.is(row.seen.data, data)) this.setValue(row, data);
      if (!Object.is(row.seen.grad, grad) || row.seen.wrong !== (done && line.mode)) {
        row.seen.wrong = done && line.mode;
        this.setGrad(row, grad);
        this.check(row);
      }
    }
    this.scheduleDifferences();
  }

  setGrad(row, grad) {
    row.seen.grad = grad;
    const isPart = this.graph.nodes[row.i].partial && grad !== null;
    setNumber(row.grad, isPart ? `${short(grad)} + \u2026` : short(grad));
    row.grad.title = grad === null ? "" : isPart ? `${exact(grad)}, ${PARTIAL}` : exact(grad);
  }

  /** What a node has while a number travels to it, and once it is there; on the way there is nothing to judge. */
  tell(i, grad, hasArrived) {
    const row = this.rows.find((known) => known.i === i);
    if (!row) return;
    this.setGrad(row, grad);
    if (hasArrived) this.check(row);
    else setText(row.check, "");
  }

  setValue(row, data) {
    row.seen.data = data;
    if (row.value.tagName === "INPUT") {
      if (!row.value.matches(":focus")) {
        row.value.value = short(data);
        fit(row.value, row.value.value);
        row.value.classList.remove("bad");
      }
      row.value.setAttribute("aria-valuenow", String(data));
    } else {
      setNumber(row.value, short(data));
    }
    if (!row.value.matches(":focus")) row.value.title = exact(data);
  }

  /** A tick where the gradient is complete and the finite difference agrees, a cross where it does not, ? if it can't tell. */
  check(row) {
    const difference = row.seen.difference;
    const isMeasured = difference !== undefined && row.measured === this.line.data && !Number.isNaN(difference.slope);
    const known = isMeasured && this.t === this.line.steps && row.seen.grad !== null;
    const said = known ? judged(row.seen.grad, difference) : 0;
    setText(row.check, known ? ["?", "\u2713", "\u2717"].at(said) : "");
    row.root.classList.toggle("disagrees", said < 0);
    const unsure = "can\u2019t tell: the difference is less accurate than that here";
    row.check.title = !known ? "" : said === 0 ? unsure : difference.isKink ? "at a kink: any slope between those on both sides is right" : "";
  }

  // ---------------------------------------------------------------- finite differences, a few at a time

  scheduleDifferences() {
    if (this.measured !== this.line.data) {
      this.measured = this.line.data;
      this.known = new Map();
    }
    const stale = this.rows.filter((row) => row.measured !== this.measured);
    const isQuick = this.graph.nodes.length * stale.length <= AT_ONCE;
    for (const row of stale) {
      if (isQuick) {
        this.measure(row);
      } else {
        setText(row.difference, "");
        setText(row.check, "");
      }
    }
    this.rest();
  }

  /** Measure what is left once nothing has moved for a moment. */
  rest() {
    clearTimeout(this.waiting);
    const stale = this.rows.filter((row) => row.measured !== this.measured);
    // of a large graph each takes too long to be measured for all: it is when it is looked at
    if (stale.length && this.graph.nodes.length <= MOST_MEASURED) this.waiting = setTimeout(() => this.measureAll(stale), REST_MS);
  }

  measureAll(stale) {
    const until = performance.now() + BUDGET_MS;
    while (stale.length && performance.now() < until) this.measure(stale.shift());
    if (stale.length) this.waiting = setTimeout(() => this.measureAll(stale), 0);
  }

  lookAt(root) {
    const row = this.rows.find((known) => known.root === root);
    if (row && row.measured !== this.measured) this.measure(row);
  }

  measure(row) {
    row.measured = this.measured;
    row.seen.difference = this.difference(row.i);
    const { slope } = row.seen.difference;
    setNumber(row.difference, Number.isNaN(slope) ? "\u2013" : short(slope));
    row.difference.title = exact(slope);
    this.check(row);
  }

  difference(i) {
    if (!this.known.has(i)) this.known.set(i, finiteDifference(this.line, i));
    return this.known.get(i);
  }

  focusFirst(i = null) {
    const row = this.rows.find((known) => (i === null ? known.value.tagName === "INPUT" : known.i === i));
    if (row && row.value.tagName === "INPUT") row.value.focus();
    return Boolean(row);
  }
}

/** The table's columns are as wide as seven characters; more of them are smaller. */
function fit(cell, text) {
  cell.classList.toggle("long", text.length > 7);
  cell.classList.toggle("longest", text.length > 8);
}

function setNumber(cell, text) {
  setText(cell, text);
  fit(cell, text);
}

/** A step up or down, without the dust that decimal fractions leave: 0.1 + 0.2 is 0.3 here. */
export function nudge(x, by) {
  const size = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, Math.abs(x)))));
  return Number((x + by * size).toPrecision(12));
}

/** A name in plain letters, with its number as a subscript; a long one goes on in the next line, after a dot if it has any. */
function nameOf(name) {
  const parts = subscripted(name);
  const words = name.split(/(?<=\.)/).flatMap((word) => [word, element("wbr")]);
  return element("i", { class: name.length > 9 ? "long" : null }, ...(parts ? [parts[0], element("sub", {}, parts[1])] : words));
}

/** What the numbers on cards and edges are. */
export function legend() {
  const entry = (className, text) => element("span", { class: `key ${className}` }, text);
  return element("div", { class: "legend" }, entry("data", "value"), entry("grad", "gradient"), entry("local", "on an edge: local gradient"));
}
