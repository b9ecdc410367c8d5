// Values for leaves that nobody gave one, chosen so that there is something to see: inside every domain, no relu dead,
// nothing saturated, no gradient lost on the way.

import { timeline } from "./engine.js";

const POOL = [2, 3, 0.5, 1.5, 4, 2.5, 0.25, 3.5, 1, 0.75];
const SIZES = [1, 0.5, 4, 0.125, 16, 128, 0.01, 2048];
const TRIES = 60;
const MOST_WORK = 2400; // nodes in all: an edit has to be shown within a frame or two
const FLAT = 0.05; // a local gradient below it hands on next to nothing
const STEEP = 1e4;

/** The graph's values, with `known` ones as they are: the first choice that shows most. */
export function startingValues(graph, known) {
  const values = graph.nodes.map((node) => node.value);
  const open = [];
  graph.nodes.forEach((node, i) => {
    if (node.children.length || node.constant || graph.given.has(node.label)) return;
    if (Object.hasOwn(known, node.label)) values[i] = known[node.label];
    else open.push(i);
  });
  let left = Math.floor(MOST_WORK / graph.nodes.length);
  const tries = Math.min(TRIES, left);
  if (!open.length || tries < 6) return values;
  let best = { flaws: Infinity, values };
  const consider = (changes) => {
    const tried = best.values.slice();
    for (const [i, value] of changes) tried[i] = value;
    const flaws = flawsOf(graph, tried);
    if (flaws < best.flaws) best = { flaws, values: tried };
    left -= 1;
  };
  for (let choice = 0; choice < tries && best.flaws; choice += 1) {
    consider(open.map((i, place) => [i, start(place, choice, tries)]));
  }
  // differences of neighbours want them in order; what no choice for all of them heals, another number for one of them may
  if (best.flaws) consider(open.map((i, place) => [i, open.length - place]));
  if (best.flaws) consider(open.map((i, place) => [i, place + 1]));
  for (const other of SIZES.flatMap((size) => [-size, size])) {
    for (const [place, i] of open.entries()) if (best.flaws && left > 0) consider([[i, POOL[place % POOL.length] * other]]);
  }
  return best.values;
}

/** The numbers of the pool in turn, with other signs, then smaller and larger: the same for everybody who types the same. */
function start(place, choice, tries) {
  const number = POOL[(place + 3 * choice) % POOL.length];
  const isNegative = choice % 2 === 1 && (place * 7 + choice * 5) % 3 === 0;
  return (isNegative ? -number : number) * SIZES[Math.floor((choice * SIZES.length) / tries)];
}

function flawsOf(graph, values) {
  const line = timeline(graph, values, "right");
  const flat = [...line.contributions].filter(({ local, product }) => !(Math.abs(local) > FLAT && Math.abs(product) < STEEP));
  return 100 * line.problems.length + flat.length + (Number.isFinite(line.data[graph.root]) ? 0 : 1000);
}
