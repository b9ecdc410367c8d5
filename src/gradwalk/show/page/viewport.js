// What part of the graph is seen: fitting, zooming, panning, and following the walk.

const SMALLEST = 0.04;
export const LARGEST_FIT = 1.5;
export const READABLE = 11 / 12; // the smallest text is 12 units: it is never less than 11 pixels unless one zooms out
const LARGEST = 4;
const NOTCH = 20;
export const MARGIN = 12;
const NARROWEST_MARGIN = 3; // rather than a card that is cut

export class Viewport {
  /** `world` is the group that moves; `moved` is called whenever it has. */
  constructor(svg, world, moved) {
    this.svg = svg;
    this.world = world;
    this.moved = moved;
    this.view = { width: 800, height: 480 }; // told by the page: asking the browser here would make it lay out
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    this.size = { width: 1, height: 1 };
    this.pointers = new Map();
    this.takesWheel = true; // in another page's frame the wheel scrolls that page
    svg.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    svg.addEventListener("pointerdown", (event) => this.down(event));
    svg.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
      svg.addEventListener(end, (event) => this.pointers.delete(event.pointerId));
    }
  }

  resize(width, height) {
    this.size = { width, height };
    this.fit();
  }

  get whole() {
    return wholeScale(this.view, this.size);
  }

  /** All of it, but not enlarged much, and not too small to read. */
  fit(readable = true) {
    const { width, height } = this.view;
    this.scale = Math.max(readable ? READABLE : SMALLEST, this.whole);
    const room = (seen, all) => (seen - all * this.scale) / 2;
    // what does not fit shows its end first: the result, where the backward pass begins
    const place = (free, seen, all) => (free >= NARROWEST_MARGIN ? free : seen - all * this.scale - MARGIN);
    this.x = place(room(width, this.size.width), width, this.size.width);
    this.y = this.size.height > this.size.width ? place(room(height, this.size.height), height, this.size.height) : room(height, this.size.height);
    this.apply();
  }

  /** Fit all, or go back to a readable size. */
  toggleFit() {
    this.fit(Math.abs(this.scale - this.whole) < 1e-3);
  }

  apply(gliding = false) {
    this.world.classList.toggle("gliding", gliding);
    this.world.style.setProperty("transform", `translate(${this.x.toFixed(2)}px, ${this.y.toFixed(2)}px) scale(${this.scale.toFixed(4)})`);
    this.moved();
  }

  zoom(factor, at = null) {
    const { width, height } = this.view;
    const centre = at ?? { x: width / 2, y: height / 2 };
    const scale = Math.max(SMALLEST, Math.min(LARGEST, this.scale * factor));
    this.x = centre.x - ((centre.x - this.x) * scale) / this.scale;
    this.y = centre.y - ((centre.y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.apply();
  }

  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.apply();
  }

  /** Whether a card at this point of the graph is seen, all of it. */
  sees(point, size) {
    const [left, top, right, bottom] = this.boxOf(point, size);
    return left >= 0 && top >= 0 && right <= this.view.width && bottom <= this.view.height;
  }

  /** Where a card is in the view: left, top, right, bottom. */
  boxOf(point, { width, height }) {
    const [x, y] = [this.x + point.x * this.scale, this.y + point.y * this.scale];
    const [w, h] = [(width / 2) * this.scale, (height / 2) * this.scale];
    return [x - w, y - h, x + w, y + h];
  }

  /** Glide so that these cards are seen, the last of them in any case; nothing moves if they are. */
  reveal(cards) {
    const dx = shift(cards.map(({ point, size }) => this.extent(this.x + point.x * this.scale, size.width)), this.view.width);
    const dy = shift(cards.map(({ point, size }) => this.extent(this.y + point.y * this.scale, size.height)), this.view.height);
    if (!dx && !dy) return;
    // not further than the graph goes: no empty half of a view beside it
    const held = (place, seen, all) => (all + 2 * MARGIN > seen ? Math.max(seen - all - MARGIN, Math.min(MARGIN, place)) : place);
    this.x = held(this.x + dx, this.view.width, this.size.width * this.scale);
    this.y = held(this.y + dy, this.view.height, this.size.height * this.scale);
    this.apply(true);
  }

  extent(middle, length) {
    const half = (length / 2) * this.scale + NARROWEST_MARGIN;
    return [middle - half, middle + half];
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      // a pinch comes as many small steps, a notch of a wheel as one large one
      this.zoom(Math.exp(-Math.max(-NOTCH, Math.min(NOTCH, event.deltaY)) * 0.01), this.point(event));
    } else if (this.takesWheel && this.scale > this.whole * 1.02) {
      event.preventDefault();
      this.pan(-event.deltaX, -event.deltaY);
    }
  }

  down(event) {
    if (event.target.closest(".editable")) return;
    this.pointers.set(event.pointerId, this.point(event));
  }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = this.point(event);
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const distance = (a) => Math.hypot(a.x - other.x, a.y - other.y) || 1;
      this.zoom(distance(now) / distance(before), other);
    } else {
      this.pan(now.x - before.x, now.y - before.y);
    }
    this.pointers.set(event.pointerId, now);
  }
}

/** The scale at which all of a picture of this size is seen, not enlarged more than is pleasant. */
export function wholeScale(view, { width, height }) {
  return Math.min(LARGEST_FIT, (view.width - 2 * MARGIN) / width, (view.height - 2 * MARGIN) / height);
}

/** By how much to move so that all these stretches are inside; where they cannot all be, the last one is. */
function shift(stretches, extent) {
  const low = Math.min(...stretches.map(([from]) => from));
  const high = Math.max(...stretches.map(([, to]) => to));
  const [from, to] = high - low <= extent ? [low, high] : stretches.at(-1);
  if (from >= 0 && to <= extent) return 0;
  return extent / 2 - (from + to) / 2;
}
