// Shapes of a picture with their colours and sizes written out, as programs without our styles need them.
const UNSAID = {
  "fill-opacity": "1", "stroke": "none", "stroke-dasharray": "none", "stroke-linecap": "butt",
  "stroke-linejoin": "miter", "paint-order": "normal", "shape-rendering": "auto",
};
const OF_TEXT = { "font-size": "", "font-weight": "400", "text-anchor": "start" };
const PLACES = ["x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "width", "height", "d"];
const made = (name, told, text = "") => {
  const element = document.createElementNS(document.querySelector("svg").namespaceURI, name);
  for (const [key, value] of Object.entries(told)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
};
// Few programs know the notation of colours that a style sheet mixed.
const plain = (value) => value.replace(/(\d)px/g, "$1").replace(/color\(srgb ([\d. ]+)\)/,
  (_, parts) => `rgb(${parts.split(" ").map((part) => Math.round(255 * part))})`);
function resolved(shape) {
  const style = getComputedStyle(shape), told = {};
  const unsaid = { fill: "", ...UNSAID, ...(shape.tagName === "text" ? OF_TEXT : {}) };
  for (const [key, usual] of Object.entries(unsaid)) {
    const value = plain(style.getPropertyValue(key));
    if (value !== usual) told[key] = value;
  }
  if (told.stroke) told["stroke-width"] = plain(style.strokeWidth);
  if (told.fill === "rgba(0, 0, 0, 0)") told.fill = "none";
  if (told.fill === "none" && !told.stroke) return [];
  for (const key of PLACES) if (shape.hasAttribute(key)) told[key] = shape.getAttribute(key);
  return [made(shape.tagName, told, shape.textContent)];
}
// The lines of a text of the page, each where it stands.
function* linesOf(element) {
  const range = document.createRange(), style = getComputedStyle(element);
  const walk = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const lines = [];
  while (walk.nextNode()) for (const word of walk.currentNode.data.matchAll(/\S+\s*/g)) {
    range.setStart(walk.currentNode, word.index);
    range.setEnd(walk.currentNode, word.index + word[0].length);
    const box = range.getClientRects()[0], last = lines.at(-1);
    if (last && Math.abs(last.box.top - box.top) < 4) last.words += word[0];
    else lines.push({ box, words: word[0] });
  }
  const size = parseFloat(style.fontSize);
  for (const { box, words } of lines) {
    const y = box.top + box.height / 2 + 0.35 * size;
    yield { x: box.left, y, words: words.trim(), size, weight: style.fontWeight };
  }
}
