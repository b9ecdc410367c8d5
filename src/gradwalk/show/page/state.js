// The state of the page as an address, and back: #e=expression&v=a:2,b:-3&t=7&m=assign&mode=embed

const MOST_TEXT = 12000;

/** The part of an address behind the #; what is as usual is left out. */
export function toHash({ text, values, t, mode, theme, isEmbedded }) {
  const parts = new URLSearchParams();
  if (text) parts.set("e", text);
  const listed = Object.entries(values).map(([name, value]) => `${name}:${value}`);
  if (listed.length) parts.set("v", listed.join(","));
  if (t) parts.set("t", String(t));
  if (mode !== "right") parts.set("m", mode);
  if (theme) parts.set("theme", theme);
  if (isEmbedded) parts.set("mode", "embed");
  return parts.toString();
}

/** The reverse. Anything that is not understood is ignored: an address can come from anywhere. */
export function fromHash(hash, modes) {
  const parts = new URLSearchParams(hash.replace(/^#/, "").slice(0, 4 * MOST_TEXT));
  const found = { text: null, values: {}, t: null, mode: "right", theme: null, isEmbedded: parts.get("mode") === "embed" };
  const text = parts.get("e");
  if (text !== null && text.length <= MOST_TEXT) found.text = text;
  for (const part of (parts.get("v") ?? "").split(",")) {
    const [name, value] = part.split(":");
    const number = Number(value);
    if (name && value && Number.isFinite(number)) Object.defineProperty(found.values, name, { value: number, enumerable: true });
  }
  const t = parts.get("t");
  if (t !== null && /^\d{1,7}$/.test(t)) found.t = Number(t);
  if (modes.includes(parts.get("m"))) found.mode = parts.get("m");
  if (["light", "dark"].includes(parts.get("theme"))) found.theme = parts.get("theme");
  return found;
}
