// The same picture as an image, painted shape by shape: no other file or address is ever loaded.
function outline(shape) {
  const [x, y, x1, y1, x2, y2, cx, cy, r, width, height] =
    PLACES.slice(0, -1).map((key) => Number(shape.getAttribute(key)));
  const path = new Path2D(shape.getAttribute("d") || "");
  if (shape.tagName === "line") path.moveTo(x1, y1), path.lineTo(x2, y2);
  if (shape.tagName === "rect") path.rect(x, y, width, height);
  if (shape.tagName === "circle") path.arc(cx, cy, r, 0, 2 * Math.PI);
  return path;
}
function paint(brush, shape, family) {
  const told = (key, usual) => shape.getAttribute(key) || usual;
  const isText = shape.tagName === "text", path = isText ? null : outline(shape);
  brush.fillStyle = told("fill", "none");
  brush.strokeStyle = told("stroke", "none");
  brush.lineWidth = Number(told("stroke-width", 1));
  brush.lineCap = told("stroke-linecap", "butt");
  brush.lineJoin = told("stroke-linejoin", "miter");
  brush.setLineDash((told("stroke-dasharray", "").match(/[\d.]+/g) || []).map(Number));
  brush.font = `${told("font-weight", 400)} ${told("font-size", 16)}px ${family}`;
  brush.textAlign = { middle: "center", end: "right" }[told("text-anchor", "")] || "left";
  const place = [shape.textContent, Number(told("x", 0)), Number(told("y", 0))];
  // The edge of a text is behind it, that of a shape in front.
  const acts = [["fill", () => (isText ? brush.fillText(...place) : brush.fill(path))],
    ["stroke", () => (isText ? brush.strokeText(...place) : brush.stroke(path))]];
  for (const [key, act] of isText ? acts.reverse() : acts) {
    brush.globalAlpha = key === "fill" ? Number(told("fill-opacity", 1)) : 1;
    if (told(key, "none") !== "none") act();
  }
}
function image(sheet, scale) {
  const canvas = document.createElement("canvas"), brush = canvas.getContext("2d");
  canvas.width = scale * sheet.getAttribute("width");
  canvas.height = scale * sheet.getAttribute("height");
  for (const shape of all("line, rect, circle, path, text", sheet)) {
    const group = shape.parentNode.transform.baseVal.consolidate();
    brush.setTransform(scale, 0, 0, scale, 0, 0);
    if (group && shape.parentNode !== sheet) {
      const { a, b, c, d, e, f } = group.matrix;
      brush.transform(a, b, c, d, e, f);
    }
    paint(brush, shape, sheet.getAttribute("font-family"));
  }
  return canvas;
}
