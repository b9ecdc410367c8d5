// How wide the texts of the picture are, in the fonts that this reader has. Sizes are those of style.css.

const FACES = {
  name: { size: 15, style: "italic", family: "--serif" },
  smallName: { size: 12, style: "italic", family: "--serif" },
  index: { size: 12, style: "normal", family: "--serif" },
  sign: { size: 12.5, style: "normal", family: "--sans" },
  number: { size: 12, style: "normal", family: "--sans" },
  chip: { size: 14, style: "normal", family: "--sans" },
};
const MEASURED = 100; // pixels: of letters this large no width is rounded
const USUAL = 0.6; // of a letter's size, until the fonts are known

const contexts = new Map();

/** Look up which fonts stand behind the stylesheet's names, once there is an element on the page to ask. */
export function readFonts(element) {
  if (contexts.size || !element.isConnected) return;
  const styles = getComputedStyle(element);
  for (const face of Object.values(FACES)) {
    const context = document.createElement("canvas").getContext("2d");
    context.font = `${face.style} ${MEASURED}px ${styles.getPropertyValue(face.family)}`;
    contexts.set(face, context);
  }
}

/** The width of a text that is set in one of the faces, with what a slanted letter at its end leans over. */
export function widthOf(text, name) {
  const face = FACES[name];
  const context = contexts.get(face);
  if (!context) return text.length * USUAL * face.size;
  const { width, actualBoundingBoxRight } = context.measureText(text);
  return (Math.max(width, actualBoundingBoxRight) * face.size) / MEASURED;
}
