// The LaTeX that ops.js and composites.js use, as MathML elements. `render(latex, names)` replaces the variables
// that `names` has: by a name, set in italics, or by a number.

const MATHML = "http://www.w3.org/1998/Math/MathML";

const SYMBOLS = {
  infty: ["mi", "\u221e"],
  pi: ["mi", "\u03c0"],
  sigma: ["mi", "\u03c3"],
  mu: ["mi", "\u03bc"],
  epsilon: ["mi", "\u03b5"],
  partial: ["mi", "\u2202"],
  le: ["mo", "\u2264"],
  ge: ["mo", "\u2265"],
  wedge: ["mo", "\u2227"],
  vee: ["mo", "\u2228"],
  cdot: ["mo", "\u22c5"],
  lfloor: ["mo", "\u230a"],
  rfloor: ["mo", "\u230b"],
  lceil: ["mo", "\u2308"],
  rceil: ["mo", "\u2309"],
  sum: ["mo", "\u2211"],
};
const FUNCTIONS = new Set(["exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "max", "min"]);
const OPERATORS = { "-": "\u2212", "*": "\u22c5" };

/** A MathML element; children are elements or text. */
export function math(tag, ...children) {
  const element = document.createElementNS(MATHML, tag);
  element.append(...children);
  return element;
}

/** The letters and the number of a name like v12 or w_3; null for any other. */
export function subscripted(name) {
  const parts = /^([^\d_]+)_?(\d+)$/u.exec(name);
  return parts ? [parts[1], parts[2]] : null;
}

/** A name as mathematics: v12 gets its number as a subscript. */
export function identifier(name) {
  if (/^[-\u2212\d]/.test(name)) return math("mn", name); // a constant is called by its number
  const parts = subscripted(name);
  return parts ? math("msub", math("mi", parts[0]), math("mn", parts[1])) : math("mi", name);
}

const SINGLE = /^[\w.]+([+\u2212]\d+)?(\([^()]*\))?$/; // 2, 1e\u22123, tanh(2); not \u22122, nor 2 + 3

/** A number as mathematics; one that is negative, or spelled out, is put in parentheses where signs stand beside it. */
export function numeral(text, enclosed = false) {
  const root = /^sqrt\(([^()]*)\)$/.exec(text);
  if (root) return math("msqrt", numeral(root[1]));
  const negative = text.startsWith("\u2212");
  const element = negative ? math("mrow", math("mo", "\u2212"), math("mn", text.slice(1))) : math("mn", text);
  if (negative) element.firstChild.setAttribute("form", "prefix");
  return enclosed && !SINGLE.test(text) ? math("mrow", math("mo", "("), element, math("mo", ")")) : element;
}

/** The formula as one <math> element. */
export function render(latex, names = {}) {
  const root = math("math");
  root.append(row(latex, names));
  return root;
}

/** The formula as an <mrow>, to be put into a larger one. */
export function row(latex, names = {}) {
  return new Reader(latex, names).row(() => false);
}

class Reader {
  constructor(latex, names) {
    this.tokens = latex.match(/\\text\{[^}]*\}|\\[a-zA-Z]+|\\.|\d+\.?\d*|[a-zA-Z]|\S/g) ?? [];
    this.at = 0;
    this.names = names;
  }

  next() {
    this.at += 1;
    return this.tokens[this.at - 1];
  }

  /** Everything up to a token for which `ends` holds; that token is left. */
  row(ends) {
    const found = math("mrow");
    while (this.at < this.tokens.length && !ends(this.tokens[this.at])) {
      let item = this.item();
      for (let mark = this.tokens[this.at]; mark === "^" || mark === "_"; mark = this.tokens[this.at]) {
        this.at += 1;
        item = math(mark === "^" ? "msup" : "msub", item, this.item());
      }
      found.append(item);
    }
    return found.childNodes.length === 1 ? found.firstChild : found;
  }

  group() {
    this.next();
    const inside = this.row((token) => token === "}");
    this.next();
    return inside;
  }

  /** The plain text of a { } group: for \mathit and \operatorname, whose letters belong together. */
  letters() {
    this.next();
    let text = "";
    for (let token = this.next(); token !== undefined && token !== "}"; token = this.next()) text += token;
    return text;
  }

  item() {
    const token = this.tokens[this.at];
    if (token === "{") return this.group();
    this.at += 1;
    if (token.startsWith("\\text{")) return math("mtext", token.slice(6, -1).replaceAll(" ", "\u00a0"));
    if (token.startsWith("\\")) return this.command(token.slice(1));
    if (/^\d/.test(token)) return math("mn", token);
    if (/^[a-zA-Z]$/.test(token)) return this.variable(token);
    return math("mo", OPERATORS[token] ?? token);
  }

  variable(name) {
    if (!Object.hasOwn(this.names, name)) return identifier(name);
    const { text, isNumber } = this.names[name];
    return isNumber ? numeral(text, true) : identifier(text);
  }

  command(name) {
    if (name === "frac") return math("mfrac", this.item(), this.item());
    if (name === "sqrt") return this.root();
    if (name === "left") return this.fence();
    if (name === "begin") return this.cases();
    if (name === "mathit") return this.variable(this.letters());
    if (name === "operatorname") return upright(this.letters());
    if (FUNCTIONS.has(name)) return upright(name);
    const [tag, text] = SYMBOLS[name] ?? ["mi", name];
    return math(tag, text);
  }

  root() {
    if (this.tokens[this.at] !== "[") return math("msqrt", this.item());
    this.next();
    const degree = this.row((token) => token === "]");
    this.next();
    return math("mroot", this.item(), degree);
  }

  fence() {
    const open = this.next();
    const inside = this.row((token) => token === "\\right");
    this.next();
    const close = this.next();
    return math("mrow", math("mo", open), inside, math("mo", close));
  }

  cases() {
    this.letters();
    const table = math("mtable");
    for (;;) {
      const cells = [];
      for (;;) {
        cells.push(math("mtd", this.row((token) => token === "&" || token === "\\\\" || token === "\\end")));
        if (this.tokens[this.at] !== "&") break;
        this.next();
      }
      table.append(math("mtr", ...cells));
      if (this.next() !== "\\\\") break;
    }
    this.letters();
    table.classList.add("cases");
    const brace = math("mo", "{");
    brace.classList.add("brace");
    return math("mrow", brace, table);
  }
}

/** The name of a function, which is not set in italics. */
export function upright(name) {
  const element = math("mi", name);
  element.classList.add("upright");
  return element;
}
