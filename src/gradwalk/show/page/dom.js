// Elements without markup: text only ever becomes text nodes, so that no label or expression can be anything else.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. Attributes that are functions become listeners; children are elements, text or null. */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** Put these in the place of everything inside. */
export function fill(parent, ...children) {
  parent.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
}

/** Let what is inside look like these children, which have no listeners: what is alike stays, and costs nothing to draw. */
export function become(parent, ...children) {
  match(parent, element("div", {}, ...children));
}

function match(node, wanted) {
  const [known, made] = [[...node.childNodes], [...wanted.childNodes]];
  for (const child of known.slice(made.length)) child.remove();
  made.forEach((child, k) => {
    const old = known[k];
    if (!old) {
      node.append(child);
    } else if (old.nodeName !== child.nodeName) {
      old.replaceWith(child);
    } else if (old.nodeType === Node.TEXT_NODE) {
      if (old.data !== child.data) old.data = child.data;
    } else {
      for (const { name } of [...old.attributes]) if (!child.hasAttribute(name)) old.removeAttribute(name);
      setAttributes(old, Object.fromEntries([...child.attributes].map(({ name, value }) => [name, value])));
      match(old, child);
    }
  });
}

const SHRINKING = [1, 0.94, 0.88, 0.82, 0.76, 0.7];

/** Set what is inside smaller (by its --fit) until nothing of it is cut: how wide letters are is up to the reader's fonts. */
export function shrinkToFit(box, parts) {
  const isWhole = (each) => each.scrollWidth <= each.clientWidth;
  for (const share of SHRINKING) {
    if (box.style.getPropertyValue("--fit") !== String(share)) box.style.setProperty("--fit", share);
    if (box.scrollHeight <= box.clientHeight && [...box.querySelectorAll(parts)].every(isWhole)) return;
  }
}

/** Let it have exactly these children, in this order; what is there already stays as it is, and costs nothing. */
export function arrange(parent, children) {
  const wanted = new Set(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  let next = parent.firstChild;
  for (const child of children) {
    if (child === next) next = next.nextSibling;
    else parent.insertBefore(child, next);
  }
}

/** Set a text only if it is another one: an unchanged page costs nothing to draw. */
export function setText(node, text) {
  const only = node.firstChild;
  if (only === null || only !== node.lastChild || only.nodeType !== Node.TEXT_NODE) {
    if (node.textContent !== text) node.textContent = text;
  } else if (only.data !== text) {
    only.data = text; // the same text node with other letters is laid out sooner than a new one
  }
}

/** Set attributes, those that are others. */
export function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  }
}

/** Hand a file to the user. */
export function download(name, content, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = element("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Drag with the pointer: `move` hears how far, and whether by more (with Shift); a press that does not move is a tap. */
export function drag(event, target, move, tap = () => {}) {
  if (event.button !== 0) return;
  let moved = false;
  const follow = (now) => {
    const distance = now.clientX - event.clientX;
    if (!moved && Math.abs(distance) < 4) return;
    moved = true;
    target.setPointerCapture?.(now.pointerId);
    now.preventDefault();
    move(distance, now.shiftKey);
  };
  const end = (now) => {
    if (!moved && now.type === "pointerup") tap();
    target.removeEventListener("pointermove", follow);
    target.removeEventListener("pointerup", end);
    target.removeEventListener("pointercancel", end);
  };
  target.addEventListener("pointermove", follow);
  target.addEventListener("pointerup", end);
  target.addEventListener("pointercancel", end);
  target.setPointerCapture?.(event.pointerId);
}

/** Below what it is about, or above where there is no room; never beyond the sides. */
export function placeBeside(note, about, within) {
  const box = about.getBoundingClientRect();
  const stage = within.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = note;
  const left = Math.max(8, Math.min(stage.width - width - 8, box.left - stage.left + box.width / 2 - width / 2));
  const below = box.bottom - stage.top + 10;
  const above = box.top - stage.top - height - 10;
  note.style.setProperty("left", `${left}px`);
  note.style.setProperty("top", `${below + height > stage.height - 4 && above > 0 ? above : below}px`);
}
