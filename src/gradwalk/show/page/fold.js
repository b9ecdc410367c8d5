// What is shown of a graph: each node as a card, or of a large graph its parts, scopes and repetitions, as one card
// each. A part that is unfolded shows its own parts and nodes; there are never more cards than can be looked at.

export const MOST_CARDS = 120;
const MOST_SINGLE = 40; // a part with more nodes of its own unfolds into smaller parts
const SPLITS = 16;
const MANY = new Map([["leaf", "leaves"], ["constant", "constants"]]);

export class Folding {
  constructor(graph) {
    this.graph = graph;
    this.top = newPart("", null);
    graph.nodes.forEach((node, i) => {
      const path = i === graph.root || !graph.parts ? [] : graph.parts[node.fold] ?? [];
      let part = this.top;
      for (const name of path) part = inner(part, name);
      part.own.push(i);
    });
    sized(this.top);
    this.top.isOpen = true;
    if (this.items().length > MOST_CARDS) this.keepNearest();
    this.openLevels();
  }

  /** Where folding is not enough: the nodes nearest the result, each after all that uses it, and the others as one part. */
  keepNearest() {
    const { nodes, parents, root } = this.graph;
    const waiting = parents.map((uses) => uses.length);
    const near = [root];
    for (let k = 0; k < near.length; k += 1) {
      for (const child of nodes[near[k]].children) {
        waiting[child] -= 1;
        if (!waiting[child] && near.length < MOST_CARDS / 2) near.push(child);
      }
    }
    const kept = new Set(near);
    const rest = newPart("the rest", this.top);
    rest.own = nodes.flatMap((_, i) => (kept.has(i) ? [] : [i]));
    rest.size = rest.own.length;
    this.top.own = near;
    this.top.parts = [rest];
  }

  /** Level by level, as long as all of it can be looked at. */
  openLevels() {
    for (let level = this.top.parts; level.length; level = level.flatMap((part) => part.parts)) {
      const openable = level.filter((part) => part.own.length <= MOST_SINGLE);
      for (const part of openable) part.isOpen = true;
      if (this.items().length > MOST_CARDS) {
        for (const part of openable) part.isOpen = part.size === 1;
        return;
      }
    }
  }

  /** Fold or unfold a part; what is too large to unfold into nodes is split first. */
  toggle(part) {
    if (!part.isOpen && part.own.length > MOST_SINGLE) split(part);
    part.isOpen = !part.isOpen;
  }

  /** The parts that are unfolded, outermost first. */
  get opened() {
    return every(this.top).filter((part) => part !== this.top && part.isOpen && part.size > 1);
  }

  /** What the cards stand for, in the order of their last nodes: {nodes, part} with a part where there are many. */
  items() {
    const found = [];
    const visit = [this.top];
    while (visit.length) {
      const part = visit.pop();
      if (part.isOpen || part.size === 1) {
        visit.push(...part.parts);
        for (const i of part.own) found.push({ nodes: [i], part: null });
      } else {
        const nodes = every(part).flatMap((each) => each.own).sort((a, b) => a - b);
        found.push({ nodes, part });
      }
    }
    return found.sort((a, b) => a.nodes.at(-1) - b.nodes.at(-1));
  }
}

/** The edges between items: one for each argument between two nodes, one for all between parts. */
export function connected(graph, items) {
  const itemOf = new Int32Array(graph.nodes.length);
  items.forEach((item, k) => item.nodes.forEach((i) => { itemOf[i] = k; }));
  const inputs = items.map((item, k) => {
    const byChild = new Map();
    const listed = [];
    for (const i of item.nodes) {
      graph.nodes[i].children.forEach((child, slot) => {
        const from = itemOf[child];
        if (from === k) return;
        const isSingle = !item.part && !items[from].part;
        const known = isSingle ? undefined : byChild.get(from);
        if (known) {
          known.count += 1;
        } else {
          const made = { child: from, node: i, slot, isSingle, count: 1 };
          byChild.set(from, made);
          listed.push(made);
        }
      });
    }
    return listed;
  });
  return { itemOf, inputs };
}

/** What a part is called on its card. */
export function titleOf(part) {
  const plain = part.title.replace(/ \(from \d+\)$/, "").replace(/ ×[\d,]+$/, "");
  return MANY.get(plain) ?? plain;
}

function newPart(title, above) {
  return { title, above, parts: [], byName: new Map(), own: [], size: 0, isOpen: false };
}

function inner(part, name) {
  if (!part.byName.has(name)) {
    const made = newPart(name, part);
    part.byName.set(name, made);
    part.parts.push(made);
  }
  return part.byName.get(name);
}

/** A part and all that are in it, each before its own parts. */
function every(part) {
  const found = [part];
  for (let k = 0; k < found.length; k += 1) found.push(...found[k].parts);
  return found;
}

function sized(top) {
  for (const part of every(top).reverse()) part.size = part.own.length + part.parts.reduce((sum, each) => sum + each.size, 0);
}

function split(part) {
  const length = Math.ceil(part.own.length / SPLITS);
  for (let from = 0; from < part.own.length; from += length) {
    const made = newPart(`${titleOf(part)} ${from + 1}\u2026`, part);
    made.own = part.own.slice(from, from + length);
    made.size = made.own.length;
    part.parts.push(made);
  }
  part.own = [];
}
