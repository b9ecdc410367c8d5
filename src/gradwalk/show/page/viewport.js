// What part of the graph is seen: fitting, zooming, panning, and following the walk.

const SMALLEST = 0.04;
const LARGEST = 3;
const NOTCH = 20;
const FAR = 0.38; // below it text cannot be read and is not drawn
const READABLE = 0.5; // a graph that fits only below this opens at this size and is followed
const MARGIN = 28;

export class Viewport {
  /** `worlds` are the groups that move together; `moved` is called whenever they have. */
  constructor(svg, worlds, moved) {
    this.svg = svg;
    this.worlds = worlds;
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
    const { width, height } = this.view;
    return Math.min((width - 2 * MARGIN) / this.size.width, (height - 2 * MARGIN) / this.size.height);
  }

  /** All of it, but not enlarged much, and not too small to read unless it is very large. */
  fit(readable = true) {
    const { width, height } = this.view;
    const smallest = readable && this.size.width * this.size.height < 4e6 ? READABLE : SMALLEST;
    this.scale = Math.max(smallest, Math.min(1.25, this.whole));
    const room = (seen, all) => (seen - all * this.scale) / 2;
    // what does not fit shows its end first: the result, where the backward pass begins
    const place = (free, seen, all) => (free >= MARGIN - 1 ? free : seen - all * this.scale - MARGIN);
    const across = room(height, this.size.height);
    this.x = place(room(width, this.size.width), width, this.size.width);
    this.y = this.size.height > this.size.width ? place(across, height, this.size.height) : across;
    this.apply();
  }

  /** Fit all, or go back to a readable size. */
  toggleFit() {
    const showsAll = Math.abs(this.scale - Math.min(1.25, this.whole)) < 1e-3;
    this.fit(showsAll);
  }

  apply() {
    const transform = `translate(${this.x.toFixed(2)} ${this.y.toFixed(2)}) scale(${this.scale.toFixed(4)})`;
    for (const world of this.worlds) {
      world.setAttribute("transform", transform);
      world.classList.toggle("far", this.scale < FAR);
    }
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

  /** Move so that these points of the graph are seen; nothing moves if they are. */
  reveal(points, width, height) {
    const view = this.view;
    const half = { x: (width / 2) * this.scale + 8, y: (height / 2) * this.scale + 8 };
    const xs = points.map((point) => this.x + point.x * this.scale);
    const ys = points.map((point) => this.y + point.y * this.scale);
    const shift = (low, high, extent) => {
      if (low >= 0 && high <= extent) return 0;
      if (high - low > extent) return extent - high;
      return low < 0 ? Math.max(-low, Math.min(extent - high, extent / 2 - (low + high) / 2)) : extent / 2 - (low + high) / 2;
    };
    const dx = shift(Math.min(...xs) - half.x, Math.max(...xs) + half.x, view.width);
    const dy = shift(Math.min(...ys) - half.y, Math.max(...ys) + half.y, view.height);
    if (!dx && !dy) return;
    // not further than the graph goes: no empty half of a view beside it
    const held = (place, seen, all) => (all > seen ? Math.max(seen - all - MARGIN, Math.min(MARGIN, place)) : place);
    this.x = held(this.x + dx, view.width, this.size.width * this.scale);
    this.y = held(this.y + dy, view.height, this.size.height * this.scale);
    this.apply();
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
