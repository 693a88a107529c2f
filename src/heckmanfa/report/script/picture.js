// A picture as it stands on the page, in light colours: its title, its legend and its drawing.
const AROUND = 12;
function standalone(figure) {
  const heading = figure.querySelector("h3"), caption = figure.querySelector("figcaption");
  const drawings = all("svg", figure).filter((drawing) => drawing.getClientRects().length);
  const texts = [heading, ...all(".look, .legend span", figure)];
  const range = document.createRange();
  const boxes = [...drawings, ...texts].map((part) => {
    // Around the words of a text, which may be as wide as the page itself.
    range.selectNodeContents(part);
    return (part.tagName === "svg" ? part : range).getBoundingClientRect();
  });
  const left = Math.min(...boxes.map((box) => box.left)) - AROUND;
  const top = Math.min(...boxes.map((box) => box.top)) - AROUND;
  const width = Math.ceil(Math.max(...boxes.map((box) => box.right)) - left + AROUND);
  const height = Math.ceil(Math.max(...boxes.map((box) => box.bottom)) - top + AROUND);
  // The rule for a light notebook holds on a dark page, too.
  const theme = document.createElement("div"), light = document.createElement("div");
  theme.className = "unseen";
  theme.dataset.theme = "light";
  light.className = "hfa";
  theme.append(light);
  document.body.append(theme);
  const { color, backgroundColor, fontFamily } = getComputedStyle(light);
  const sheet = made("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": fontFamily });
  sheet.append(made("title", {}, heading.textContent), made("desc", {}, caption ? caption.textContent : ""),
    made("rect", { x: 0, y: 0, width, height, fill: backgroundColor }));
  for (const { x, y, words, size, weight } of texts.flatMap((text) => [...linesOf(text)])) {
    const place = { x: (x - left).toFixed(1), y: (y - top).toFixed(1) };
    sheet.append(made("text", { ...place, fill: color, "font-size": size, "font-weight": weight }, words));
  }
  drawings.forEach((drawing, place) => {
    const copy = drawing.cloneNode(true), { x, y, width: wide } = boxes[place];
    light.append(copy);
    all(".on", copy).forEach((lit) => lit.classList.remove("on"));
    const scale = wide / drawing.viewBox.baseVal.width;
    const whole = `translate(${x - left} ${y - top}) scale(${scale})`;
    // Parts of a drawing may be moved as a whole.
    let moved, group;
    for (const shape of all("line, rect, circle, path, text", copy)) {
      const part = shape.closest("g[transform]");
      if (!group || part !== moved) {
        group = made("g", { transform: part ? `${whole} ${part.getAttribute("transform")}` : whole });
        sheet.append(group);
      }
      moved = part;
      group.append(...resolved(shape));
    }
  });
  theme.remove();
  return sheet;
}
