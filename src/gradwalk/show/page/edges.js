// Edges as curves with an arrowhead, and where the numbers on them stand: never on a card, never on each other.

import { svg } from "./dom.js";

export const LABEL = { width: 48, height: 16 };
const ARROW = 5;
const SHARES = [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.12, 0.88];
const OFFSETS = [-5, -12, 10, -16, 20];
const SHORTEST = 12; // half of a short number, with the halo around it
const PILL = 15; // half of what travels, and what a browser may add above and below a number
const SIDES = [0, 16, -16, 26, -26, 36, -36, 50, -50, 64, -64].flatMap((by) => [[0, by], [2 * by, 0]]);
const PIECES = 12; // that a curve is cut into

/** The curve through these points, along the flow. */
export function curve(points, vertical) {
  let d = `M${at(points[0])}`;
  for (let i = 1; i < points.length; i += 1) {
    const [, c1, c2, b] = controls(points[i - 1], points[i], vertical);
    d += `C${at(c1)} ${at(c2)} ${at(b)}`;
  }
  return d;
}

/** An arrowhead that points at the end of an edge (or, backward, at its beginning). */
export function arrowhead({ x, y }, vertical, backward) {
  const size = backward ? -ARROW : ARROW;
  return vertical
    ? `M${at({ x: x - ARROW * 0.7, y: y - size })}L${at({ x, y })}L${at({ x: x + ARROW * 0.7, y: y - size })}`
    : `M${at({ x: x - size, y: y - ARROW * 0.7 })}L${at({ x, y })}L${at({ x: x - size, y: y + ARROW * 0.7 })}`;
}

/** A way along an edge that a number can travel: `along(share)` gives a point. */
export function way(points, vertical) {
  const path = svg("path", { d: curve(points, vertical) });
  const length = path.getTotalLength();
  return (share) => path.getPointAtLength(share * length);
}

/** How far beside its edge a number of this width travels, never on the number that stands there. */
export function beside(along, spot, width) {
  const points = spot ? Array.from({ length: 4 * PIECES + 1 }, (_, k) => along(k / (4 * PIECES))) : [];
  const half = width / 2 + 2;
  const isClear = ([dx, dy]) => !points.some(({ x, y }) => overlaps([x + dx - half, y + dy - PILL, x + dx + half, y + dy + PILL], spot.box));
  return SIDES.find(isClear) ?? SIDES[0];
}

const at = ({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`;

function controls(a, b, vertical) {
  const reach = (vertical ? b.y - a.y : b.x - a.x) * 0.5;
  return vertical
    ? [a, { x: a.x, y: a.y + reach }, { x: b.x, y: b.y - reach }, b]
    : [a, { x: a.x + reach, y: a.y }, { x: b.x - reach, y: b.y }, b];
}

function between(a, b, share, vertical) {
  const rest = 1 - share;
  const weights = [rest ** 3, 3 * rest ** 2 * share, 3 * rest * share ** 2, share ** 3];
  const four = controls(a, b, vertical);
  const mixed = (axis) => four.reduce((sum, point, i) => sum + point[axis] * weights[i], 0);
  return { x: mixed("x"), y: mixed("y") };
}

// A place for the number of each edge: {x, y, box, isFree}, or null where there is none beside the cards. If there is
// room, its edge does not run into it from the left, as a minus sign does, or from the right, and no other is nearer.
export function labelSpots(edges, cardBoxes, vertical) {
  const taken = [];
  const lines = edges.map(({ points }) => lineThrough(points, vertical));
  return edges.map((edge, k) => {
    if (!edge.isTold) return null;
    let best = null;
    for (const spot of candidates(edge, vertical)) {
      if (cardBoxes.some((box) => overlaps(box, spot.box))) continue;
      const isFree = !taken.some((box) => overlaps(box, spot.box));
      const rank = !isFree ? 0 : isMetAtItsSides(spot.box, lines[k]) ? 1 : isOfAnother(spot.box, lines, k) ? 2 : 3;
      if (best === null || rank > best.rank) best = { ...spot, isFree, rank };
      if (rank === 3) break;
    }
    if (best?.isFree) taken.push(best.box);
    return best;
  });
}

/** A curve as many short straight lines, and the box around them. */
function lineThrough(points, vertical) {
  const at = points.slice(1).flatMap((b, k) => Array.from({ length: PIECES + 1 }, (_, i) => between(points[k], b, i / PIECES, vertical)));
  const [xs, ys] = [at.map(({ x }) => x), at.map(({ y }) => y)];
  return { at, box: [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)] };
}

/** How high a line is at this side of a number, each time it passes it. */
function heightsAt(line, side) {
  return line.at.flatMap((b, k) => {
    const a = line.at[k - 1];
    return k === 0 || (a.x < side) === (b.x < side) ? [] : [a.y + ((side - a.x) / (b.x - a.x)) * (b.y - a.y)];
  });
}

/** Whether a line ends at a side of a number: where that is if it is a long one, and where it is if it is short. */
function isMetAtItsSides([left, top, right, bottom], line) {
  const middle = (left + right) / 2;
  const half = Math.min(SHORTEST, middle - left);
  const sides = [left, right, middle - half, middle + half];
  return sides.some((side) => heightsAt(line, side).some((y) => y > top + 2 && y < bottom - 2));
}

/** Whether a number would be taken for that of another edge: that is nearer, or crosses it. */
function isOfAnother(box, lines, k) {
  const [x, y] = [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
  const away = (line) => Math.min(...line.at.map((point) => Math.hypot(point.x - x, point.y - y)));
  const own = away(lines[k]);
  const around = [Math.min(box[0], x - own), Math.min(box[1], y - own), Math.max(box[2], x + own), Math.max(box[3], y + own)];
  const isOn = (point) => overlaps([point.x - 2, point.y - 2, point.x + 2, point.y + 2], box);
  return lines.some((line, j) => j !== k && overlaps(line.box, around) && (away(line) < own || line.at.some(isOn)));
}

function* candidates({ points, labelWidth }, vertical) {
  for (let k = points.length - 1; k > 0; k -= 1) {
    const [a, b] = [points[k - 1], points[k]];
    for (const offset of OFFSETS) {
      for (const share of SHARES) {
        const { x, y } = between(a, b, share, vertical);
        const low = a.x + labelWidth / 2 + 3;
        const high = b.x - labelWidth / 2 - 3;
        const inside = vertical || low > high ? x : Math.max(low, Math.min(high, x));
        const middle = y + offset;
        yield { x: inside, y: middle + 4, box: [inside - labelWidth / 2, middle - LABEL.height / 2, inside + labelWidth / 2, middle + LABEL.height / 2] };
      }
    }
  }
}

export function overlaps(a, b) {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
}
