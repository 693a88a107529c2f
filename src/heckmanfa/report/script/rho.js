// A slider moves rho: marks in every panel and a sentence for each follow, looked up as they were made.
const tool = document.querySelector(".what-if");
if (tool) {
  const slider = tool.querySelector("input"), shown = tool.querySelector("output");
  const rho = slider.dataset.rho.split("|"), items = all("li", tool);
  const told = items.map((item) => item.dataset.at.split("|").map((part) => part.split(";")));
  const than = items.map((item) => item.dataset.than.split("|"));
  // One mark for each panel in each drawing of the picture.
  const marks = all(".over_rho svg[role=group]").flatMap((drawing) =>
    all(".row[data-x]", drawing).map((panel, place) => {
      const line = made("line", { class: "interval ink moved" });
      const point = made("circle", { class: "outline moved", r: 8 });
      panel.append(line, point);
      return { panel, place, line, point };
    }));
  // Where a share of an axis is, from its ends in px.
  const placed = (scale, share) => {
    const [start, end] = scale.split(" ").slice(2).map(Number);
    return (start + share * (end - start)).toFixed(1);
  };
  const number = (text) => Number(text.replace("\u2212", "-"));
  const across = (now) => (number(rho[now]) - number(rho[0])) / (number(rho.at(-1)) - number(rho[0]));
  function move() {
    const now = Number(slider.value);
    for (const { panel, place, line, point } of marks) {
      const x = placed(panel.dataset.x, across(now));
      const [cy, y1, y2] = told[place][now].slice(0, 3).map((part) => placed(panel.dataset.y, part / 1000));
      for (const [key, value] of Object.entries({ x1: x, x2: x, y1, y2 })) line.setAttribute(key, value);
      point.setAttribute("cx", x);
      point.setAttribute("cy", cy);
    }
    items.forEach((item, place) => {
      const [size, low, high, kind] = told[place][now].slice(3), { change, unit, target } = item.dataset;
      const amount = size.replace("\u2212", "") + unit + (size.startsWith("\u2212") ? " less" : " more");
      item.textContent = [`If rho were ${rho[now]}`, change, amount, target, `${low} to ${high}`,
        than[place][kind]].join("");
    });
    shown.textContent = `rho = ${rho[now]}`;
    slider.setAttribute("aria-valuetext", items.map((item) => item.textContent).join(" "));
  }
  // Below the panels across a page; one panel stands beside other pictures, and the slider below all.
  const caption = document.querySelector(".across .over_rho figcaption");
  if (caption) caption.before(tool);
  tool.hidden = false;
  slider.oninput = move;
  move();
}
