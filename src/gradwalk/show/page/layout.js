// Where the nodes go: layers along the direction of flow, few crossings, straight long edges. The work is bounded:
// the larger the graph, the fewer the sweeps. Columns are as wide as their widest card.

const MOST_BENDS = 6000; // beyond it long edges are drawn straight through

// Positions of the nodes' middles, as {at, edges, width, height, layers, widest}. `children` lists each node's children,
// which come before it; `sizes` are those of the cards; `gapBefore(nodes)` is the room in front of a layer, and
// `acrossGap` that between neighbours; `vertical` lets data flow down, not right.
export function layout(children, { sizes, gapBefore, acrossGap, vertical }) {
  const nodes = children.map((list) => ({ children: list }));
  const net = network(nodes, layersOf(nodes));
  reorder(net);
  const breadthOf = (i) => (i >= nodes.length ? 6 : vertical ? sizes[i].width : sizes[i].height);
  const lengthOf = (i) => (vertical ? sizes[i].height : sizes[i].width);
  const across = coordinates(net, (a, b) => (breadthOf(a) + breadthOf(b)) / 2 + (a < nodes.length && b < nodes.length ? acrossGap : acrossGap / 2));
  const real = net.rows.map((row) => row.filter((vertex) => vertex < nodes.length));
  let extent = 0;
  const middles = real.map((row, layer) => {
    const length = row.reduce((most, i) => Math.max(most, lengthOf(i)), 0);
    const start = layer ? extent + gapBefore(row) : 0;
    extent = start + length;
    return start + length / 2;
  });
  let [first, last] = [Infinity, -Infinity];
  across.forEach((side, vertex) => {
    first = Math.min(first, side - breadthOf(vertex) / 2);
    last = Math.max(last, side + breadthOf(vertex) / 2);
  });
  const point = (vertex) => {
    const side = across[vertex] - first;
    return vertical ? { x: side, y: middles[net.layer[vertex]] } : { x: middles[net.layer[vertex]], y: side };
  };
  const spread = last - first;
  return {
    at: nodes.map((_, i) => point(i)),
    edges: net.edges.map((edge) => ({ ...edge, bends: edge.bends.map(point) })),
    width: vertical ? spread : extent,
    height: vertical ? extent : spread,
    layers: real.length,
    widest: Math.max(...real.map((row) => row.length)),
  };
}

/** The longest way from a leaf; leaves then move up to just before their first use. */
function layersOf(nodes) {
  const layers = new Int32Array(nodes.length);
  const uses = new Int32Array(nodes.length).fill(-1);
  nodes.forEach((node, i) => {
    for (const child of node.children) layers[i] = Math.max(layers[i], layers[child] + 1);
  });
  nodes.forEach((node, i) => {
    for (const child of node.children) {
      if (uses[child] < 0 || layers[i] < uses[child]) uses[child] = layers[i];
    }
  });
  nodes.forEach((node, i) => {
    if (!node.children.length && uses[i] > 0) layers[i] = uses[i] - 1;
  });
  return layers;
}

/** Nodes and the bends of long edges as vertices; `before` and `after` are each vertex's neighbours. */
function network(nodes, layers) {
  const layer = [...layers];
  const edges = [];
  const before = nodes.map(() => []);
  const after = nodes.map(() => []);
  let bends = 0;
  nodes.forEach((node, parent) =>
    node.children.forEach((child) => { bends += Math.max(0, layers[parent] - layers[child] - 1); }));
  const bending = bends <= MOST_BENDS;
  nodes.forEach((node, parent) => node.children.forEach((child, slot) => {
    const edge = { parent, child, slot, bends: [] };
    let from = child;
    for (let at = layers[child] + 1; bending && at < layers[parent]; at += 1) {
      const bend = layer.length;
      layer.push(at);
      before.push([from]);
      after.push([]);
      after[from].push(bend);
      edge.bends.push(bend);
      from = bend;
    }
    // several arguments are told apart by the side they come in on
    before[parent].push(from);
    after[from].push(parent);
    edges.push(edge);
  }));
  const rows = Array.from({ length: Math.max(...layer) + 1 }, () => []);
  const place = new Float64Array(layer.length);
  visitOrder(nodes, before).forEach((vertex) => {
    place[vertex] = rows[layer[vertex]].length;
    rows[layer[vertex]].push(vertex);
  });
  return { layer, rows, before, after, place, edges, real: nodes.length };
}

/** From the root, depth first, first argument first: neighbours start out close together. */
function visitOrder(nodes, before) {
  const order = [];
  const seen = new Uint8Array(before.length);
  for (let root = nodes.length - 1; root >= 0; root -= 1) {
    const stack = [root];
    while (stack.length) {
      const vertex = stack.pop();
      if (seen[vertex]) continue;
      seen[vertex] = 1;
      order.push(vertex);
      for (let i = before[vertex].length - 1; i >= 0; i -= 1) stack.push(before[vertex][i]);
    }
  }
  return order;
}

// ---------------------------------------------------------------- fewer crossings

function reorder(net) {
  const { rows, before, after } = net;
  const sweeps = Math.max(2, Math.min(16, Math.floor(9000 / (net.layer.length + 1))));
  let best = rows.map((row) => row.slice());
  let fewest = crossings(net);
  for (let sweep = 0; sweep < sweeps && fewest > 0; sweep += 1) {
    const down = sweep % 2 === 0;
    const count = rows.length;
    for (let i = 1; i < count; i += 1) sortRow(net, rows[down ? i : count - 1 - i], down ? before : after);
    const now = crossings(net);
    if (now < fewest) {
      fewest = now;
      best = rows.map((row) => row.slice());
    }
  }
  best.forEach((row, i) => {
    rows[i] = row;
    row.forEach((vertex, place) => { net.place[vertex] = place; });
  });
}

/** Each vertex to the middle of its neighbours in the row next to it. */
function sortRow({ place }, row, neighbours) {
  const middle = new Map();
  for (const vertex of row) {
    const near = neighbours[vertex];
    let sum = 0;
    for (const other of near) sum += place[other];
    middle.set(vertex, near.length ? sum / near.length : place[vertex]);
  }
  row.sort((a, b) => middle.get(a) - middle.get(b));
  row.forEach((vertex, i) => { place[vertex] = i; });
}

/** How many pairs of edges cross, counted with a tree of partial sums. */
function crossings({ rows, before, place }) {
  let count = 0;
  for (let i = 1; i < rows.length; i += 1) {
    const size = rows[i - 1].length;
    const sums = new Int32Array(size + 1);
    let seen = 0;
    for (const vertex of rows[i]) {
      const ends = before[vertex].map((other) => place[other]).sort((a, b) => a - b);
      for (const end of ends) {
        let atMost = 0;
        for (let k = end + 1; k > 0; k -= k & -k) atMost += sums[k];
        count += seen - atMost;
      }
      for (const end of ends) {
        for (let k = end + 1; k <= size; k += k & -k) sums[k] += 1;
        seen += 1;
      }
    }
  }
  return count;
}

// ---------------------------------------------------------------- coordinates across the flow

function coordinates(net, gap) {
  const { rows, before, after, real } = net;
  const across = new Float64Array(net.layer.length);
  for (const row of rows) {
    let at = 0;
    row.forEach((vertex, i) => {
      at += i ? gap(row[i - 1], vertex) : 0;
      across[vertex] = at;
    });
    for (const vertex of row) across[vertex] -= at / 2;
  }
  const rounds = Math.max(4, Math.min(20, Math.floor(12000 / (net.layer.length + 1))));
  for (let round = 0; round < rounds; round += 1) {
    const last = round >= rounds - 2;
    const down = round % 2 === 0;
    for (let i = 0; i < rows.length; i += 1) {
      const row = rows[down ? i : rows.length - 1 - i];
      const near = last ? [before, after] : down ? [before] : [after];
      settle(row, row.map((vertex) => wish(vertex, near, across, real)), across, gap);
    }
  }
  return across;
}

/** Where a vertex would like to be, and how much: a bend wants to continue its edge in a straight line. */
function wish(vertex, near, across, real) {
  let sum = 0;
  let weight = 0;
  for (const neighbours of near) {
    for (const other of neighbours[vertex]) {
      const pull = (vertex >= real ? 2 : 1) * (other >= real ? 2 : 1);
      sum += pull * across[other];
      weight += pull;
    }
  }
  return weight ? [sum / weight, weight] : [across[vertex], 0.1];
}

/** The positions nearest to the wishes that keep order and distance: neighbours that collide move as one block. */
function settle(row, wishes, across, gap) {
  const blocks = [];
  let offset = 0;
  row.forEach((vertex, i) => {
    offset += i ? gap(row[i - 1], vertex) : 0;
    let block = { sum: (wishes[i][0] - offset) * wishes[i][1], weight: wishes[i][1], members: [[vertex, offset]] };
    for (let above = blocks.at(-1); above && above.sum * block.weight > block.sum * above.weight; above = blocks.at(-1)) {
      blocks.pop();
      for (const member of block.members) above.members.push(member);
      block = { sum: above.sum + block.sum, weight: above.weight + block.weight, members: above.members };
    }
    blocks.push(block);
  });
  for (const { sum, weight, members } of blocks) {
    for (const [vertex, from] of members) across[vertex] = sum / weight + from;
  }
}
