// Formulas as text, `c = a*b; relu(c + d)`: the language of expression.py, whose grammar is the definition.
// `parse(text)` gives instructions for a stack, or throws an ExpressionError that points at the character.

import { nearest } from "./nearest.js";
import { OPS } from "./ops.js";

export const MOST_CHARACTERS = 10000;
export const MOST_NODES = 2000;
export const MOST_NESTING = 200;

/** Every spelling of an operation that can be called, and its row. A Map: names like `constructor` are not in it. */
export const FUNCTIONS = new Map([
  ...Object.entries(OPS).flatMap(([name, op]) => (op.operator ? [] : [name, ...op.aliases]).map((each) => [each, name])),
  ["max", "maximum"],
  ["min", "minimum"],
]);

const LETTER = "A-Za-z_\\u00c0-\\u00d6\\u00d8-\\u00f6\\u00f8-\\u024f\\u1e00-\\u1eff\\u0391-\\u03a9\\u03b1-\\u03c9"; // Latin and Greek
const TOKEN = new RegExp(
  "((?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?)" + // 1: a number
    `|([${LETTER}][${LETTER}0-9]*)` + // 2: a name
    "|(\\*\\*|[-+*/(),=;\\n\u00b7\u00d7\u2212])" + // 3: a sign
    "|[ \\t\\r\\u00a0]+",
  "y",
);
const SAME = new Map([["\u00b7", "*"], ["\u00d7", "*"], ["\u2212", "-"], ["\n", ";"]]);
const ROWS = new Map([["+", "add"], ["-", "sub"], ["*", "mul"], ["/", "div"], ["**", "pow"]]);
const LEVELS = { add: 1, sub: 1, mul: 2, div: 2, neg: 3, pow: 4 };
const HINTS = new Map([
  ["^", "a power is written **"],
  ["%", "a remainder is written fmod(x, y)"],
  ["[", "lists are not part of the language"],
  [".", "a name has no attributes here; write relu(x), not x.relu()"],
  ["<", "comparisons are not part of the language; see where(condition, x, y)"],
  [">", "comparisons are not part of the language; see where(condition, x, y)"],
  ["'", "text is not part of the language"],
  ['"', "text is not part of the language"],
  ["|", "an absolute value is written abs(x)"],
]);

/** What is wrong with an expression, and at which place of the text. */
export class ExpressionError extends Error {
  constructor(problem, position) {
    super(problem);
    this.position = position;
  }
}

function fail(problem, position) {
  throw new ExpressionError(problem, position);
}

function shortened(name) {
  return name.length <= 30 ? name : `${name.slice(0, 29)}\u2026`;
}

function codePoints(text, until) {
  let count = 0;
  for (let i = 0; i < until; count += 1) i += text.codePointAt(i) > 0xffff ? 2 : 1;
  return count;
}

function tokens(text) {
  const found = [];
  let open = 0;
  for (let position = 0; position < text.length; position = TOKEN.lastIndex) {
    TOKEN.lastIndex = position;
    const match = TOKEN.exec(text);
    if (match === null) {
      const character = String.fromCodePoint(text.codePointAt(position));
      const hint = HINTS.has(character) ? `; ${HINTS.get(character)}` : "";
      const code = text.codePointAt(position).toString(16).toUpperCase().padStart(4, "0");
      const shown = /^[\p{L}\p{M}\p{N}\p{P}\p{S}]$/u.test(character) ? `'${character}'` : `character U+${code}`;
      fail(`unexpected ${shown} at character ${codePoints(text, position) + 1}${hint}`, position);
    }
    if (match[1] !== undefined) {
      found.push({ kind: "number", text: match[1], position });
    } else if (match[2] !== undefined) {
      found.push({ kind: "name", text: match[2], position });
    } else if (match[3] !== undefined) {
      const sign = match[3];
      open = Math.max(0, open + (sign === "(") - (sign === ")"));
      if (sign !== "\n" || !open) found.push({ kind: "sign", text: SAME.get(sign) ?? sign, position });
    }
  }
  found.push({ kind: "end", text: "", position: text.length });
  return found;
}

/** The program's instructions, its leaves in order of appearance, and those whose value is in the text. */
export function parse(text) {
  if (text.length > MOST_CHARACTERS) {
    const count = codePoints(text, text.length);
    const kept = [...text].slice(0, MOST_CHARACTERS).join("").length;
    if (count > MOST_CHARACTERS) fail(`expected at most ${MOST_CHARACTERS} characters, got ${count}`, kept);
  }
  return new Parser(text).program();
}

// Operators wait on a stack of their own, so that no depth of nesting can exhaust the machine's.
class Parser {
  constructor(text) {
    this.text = text;
    this.tokens = tokens(text);
    this.at = 0;
    this.instructions = [];
    this.pending = [];
    this.constant = [];
    this.argumentStarts = [];
    this.nodes = 0;
    this.nesting = 0;
    this.inputs = new Set();
    this.assigned = new Set();
    this.given = new Set();
  }

  isSign(text, ahead = 0) {
    const token = this.tokens[Math.min(this.at + ahead, this.tokens.length - 1)];
    return token.kind === "sign" && token.text === text;
  }

  program() {
    let loose = null;
    for (;;) {
      while (this.isSign(";")) this.at += 1;
      const token = this.tokens[this.at];
      if (token.kind === "end") break;
      if (loose !== null) fail("the result of this statement is not used; give it a name: c = \u2026", loose);
      if (token.kind === "name" && this.isSign("=", 1)) {
        this.assignment(token);
      } else {
        loose = token.position;
        this.expression(null);
        if (this.constant.pop()) {
          fail("expected at least one name, got only numbers; there is nothing to differentiate", loose);
        }
      }
    }
    if (!this.instructions.length) fail("expected an expression, got nothing", this.text.length);
    return { instructions: this.instructions, inputs: [...this.inputs], given: this.given };
  }

  assignment(target) {
    const { text: name, position } = target;
    if (FUNCTIONS.has(name)) fail(`${name} is an operation; choose another name`, position);
    if (this.assigned.has(name) || this.inputs.has(name)) {
      const before = this.assigned.has(name) ? "assigned" : "used";
      fail(`${shortened(name)} was ${before} before; a name is assigned once, before it is used`, position);
    }
    this.at += 2;
    this.expression(target);
    if (this.constant.pop()) {
      this.inputs.add(name);
      this.given.add(name);
    } else {
      this.assigned.add(name);
    }
    this.instructions.push({ kind: "assign", position, name });
  }

  /** One sum, up to a separator or the end. */
  expression(target) {
    for (;;) {
      this.operand(target);
      let comma = false;
      while (!comma && (this.isSign(")") || this.isSign(","))) comma = this.close();
      if (comma) continue;
      const token = this.tokens[this.at];
      if (token.kind === "end" || this.isSign(";")) return this.finish(token);
      this.operator(token);
    }
  }

  /** Unary minuses and opening brackets, then a number or a name. */
  operand(target) {
    for (;;) {
      const token = this.tokens[this.at];
      if (token.kind === "number") {
        const number = Number(token.text);
        if (!Number.isFinite(number)) fail("expected a number that fits a float, got a larger one", token.position);
        this.add({ kind: "number", position: token.position, number }, true);
      } else if (token.kind === "name" && !this.isSign("(", 1)) {
        this.name(token, target);
      } else {
        this.opening(token);
        continue;
      }
      this.at += 1;
      return;
    }
  }

  name(token, target) {
    const { text, position } = token;
    if (FUNCTIONS.has(text)) fail(`${text} is an operation; write ${text}(\u2026)`, position);
    if (target && text === target.text) fail(`${shortened(text)} is used in its own assignment`, position);
    if (!this.assigned.has(text)) this.inputs.add(text);
    this.add({ kind: "name", position, name: text }, false);
  }

  opening(token) {
    const { text, position } = token;
    if (token.kind === "name") {
      if (!FUNCTIONS.has(text)) {
        const meant = nearest(text.slice(0, 30), FUNCTIONS.keys());
        const more = meant ? `; did you mean ${meant}?` : `; the operations are ${[...FUNCTIONS.keys()].join(", ")}`;
        fail(`there is no operation ${shortened(text)}${more}`, position);
      }
      this.push({ row: FUNCTIONS.get(text), position, level: 0, called: text });
      this.at += 2;
      if (this.isSign(")")) fail(`${text}: ${wanted(text)}, got none`, this.tokens[this.at].position);
      this.argumentStarts.push([this.tokens[this.at].position]);
    } else if (this.isSign("-") || this.isSign("(")) {
      const level = text === "-" ? LEVELS.neg : 0;
      this.push({ row: level ? "neg" : "", position, level, called: "" });
      this.at += 1;
    } else {
      const got = token.kind === "end" ? "the end" : text === ";" ? "the end of the statement" : `'${text}'`;
      fail(`expected a name, a number or ( here, got ${got}`, position);
    }
  }

  operator(token) {
    const row = token.kind === "sign" ? ROWS.get(token.text) : undefined;
    if (row === undefined) {
      const product = token.kind !== "sign" || token.text === "(";
      const more = product
        ? "; a product is written *"
        : token.text === "=" ? "; = only follows the name at the start of a statement" : "";
      fail(`expected an operator here, got '${shortened(token.text)}'${more}`, token.position);
    }
    const level = LEVELS[row];
    for (;;) {
      const waiting = this.pending.at(-1);
      if (!waiting || waiting.level < level || (waiting.level === level && row === "pow")) break;
      this.applyPending();
    }
    this.push({ row, position: token.position, level, called: "" });
    this.at += 1;
  }

  push(waiting) {
    this.pending.push(waiting);
    if (waiting.row === "pow" || waiting.row === "neg" || !waiting.level) {
      this.nesting += 1;
      if (this.nesting > MOST_NESTING) {
        fail(`expected at most ${MOST_NESTING} levels of nesting, got more`, waiting.position);
      }
    }
  }

  add(instruction, isConstant) {
    this.nodes += 1;
    if (this.nodes > MOST_NODES) {
      fail(`expected at most ${MOST_NODES} numbers, names and operations, got more`, instruction.position);
    }
    this.instructions.push(instruction);
    this.constant.push(isConstant);
  }

  applyPending() {
    const waiting = this.pending.pop();
    if (waiting.row === "pow" || waiting.row === "neg") this.nesting -= 1;
    this.apply(waiting.row, waiting.position, waiting.row === "neg" ? 1 : 2);
  }

  apply(row, position, count) {
    const isConstant = this.constant.splice(-count).every(Boolean);
    this.add({ kind: "apply", position, name: row, count }, isConstant);
  }

  /** Handle a ) or a comma; true for a comma, after which an operand follows. */
  close() {
    const token = this.tokens[this.at];
    while (this.pending.length && this.pending.at(-1).level) this.applyPending();
    if (!this.pending.length) fail(`unexpected '${token.text}': no ( is open here`, token.position);
    const bracket = this.pending.at(-1);
    this.at += 1;
    if (token.text === ",") {
      if (!bracket.called) {
        fail("unexpected ',': only the arguments of an operation are listed with commas", token.position);
      }
      this.argumentStarts.at(-1).push(this.tokens[this.at].position);
      return true;
    }
    this.pending.pop();
    this.nesting -= 1;
    if (bracket.called) this.call(bracket, this.argumentStarts.pop());
    return false;
  }

  call(bracket, starts) {
    const op = OPS[bracket.row];
    const names = [...op.inputs, ...op.parameters];
    const count = starts.length;
    if (count < names.length - op.defaults.length || count > names.length) {
      const position = count > names.length ? starts[names.length] : bracket.position;
      fail(`${bracket.called}: ${wanted(bracket.called)}, got ${count}`, position);
    }
    for (let i = op.inputs.length; i < count; i += 1) {
      if (!this.constant.at(i - count)) {
        fail(`${bracket.called}: expected a number for ${names[i]}, got a name`, starts[i]);
      }
    }
    this.apply(bracket.row, bracket.position, count);
  }

  finish(token) {
    while (this.pending.length) {
      const waiting = this.pending.at(-1);
      if (!waiting.level) {
        const position = this.text.indexOf("(", waiting.position);
        fail(`this ( is never closed${token.text ? " before the ;" : ""}`, position);
      }
      this.applyPending();
    }
  }
}

function wanted(called) {
  const op = OPS[FUNCTIONS.get(called)];
  const names = [...op.inputs, ...op.parameters];
  const required = names.length - op.defaults.length;
  const shown = names.map((name, i) => (i < required ? name : `[${name}]`));
  return `expected ${shown.join(", ")} (${names.length} argument${names.length > 1 ? "s" : ""})`;
}
