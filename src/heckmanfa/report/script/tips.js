// Pointing at a row, or moving to it with the keyboard, shows its numbers and lights up its feature.
{
  const tip = document.getElementById("tip");
  const same = new Map();
  all("[data-f]").forEach((spot) => same.set(spot.dataset.f, []));
  all("[data-f]").forEach((spot) => same.get(spot.dataset.f).push(spot));
  all("svg [role=img]").forEach((spot) => {
    spot.dataset.tip = spot.getAttribute("aria-label").replaceAll("; ", "\n");
  });
  // The browser's own tooltips would show the same words twice.
  for (const title of all("svg title")) {
    title.parentNode.dataset.tip = title.textContent;
    title.remove();
  }
  let lit = null;
  function close() {
    all(".on").forEach((spot) => spot.classList.remove("on"));
    tip.hidden = true;
    lit = null;
  }
  function show(spot, x) {
    if (spot === lit) return;
    close();
    lit = spot;
    (same.get(spot.dataset.f) || [spot]).forEach((other) => other.classList.add("on"));
    if (!(tip.textContent = spot.dataset.tip || "")) return;
    tip.hidden = false;
    const row = spot.getBoundingClientRect(), size = tip.getBoundingClientRect();
    const most = document.documentElement.clientWidth - size.width - 8;
    const left = x === undefined ? row.left : x + 16 <= most ? x + 16 : x - size.width - 16;
    tip.style.left = Math.max(8, Math.min(left, most)) + "px";
    // Not above the drawing, where title and legend are, nor below the window.
    const drawing = spot.closest("svg"), above = row.top - size.height - 4;
    const highest = Math.max(52, drawing ? drawing.getBoundingClientRect().top : 0);
    const lowest = Math.min(row.bottom + 4, innerHeight - size.height - 8);
    tip.style.top = (above >= highest ? above : lowest) + "px";
  }
  const found = (event) => event.target.closest && event.target.closest("[data-f], [data-tip]");
  const turn = (event) => (found(event) ? show(found(event)) : close());
  on("pointerover", (event) => {
    if (event.pointerType !== "mouse" || event.target === tip) return;
    if (found(event)) show(found(event), event.clientX);
    else if (!document.activeElement.matches("svg :focus-visible")) close();
  });
  ["click", "focusin"].forEach((name) => on(name, turn));
  on("focusout", close);
  on("keydown", (event) => {
    if (event.key === "Escape") close();
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    const now = document.activeElement, picture = now.closest("svg");
    if (!step || !picture) return;
    event.preventDefault();
    const stops = all("[role=img]", picture), next = stops[stops.indexOf(now) + step] || now;
    stops.forEach((spot) => spot.setAttribute("tabindex", spot === next ? 0 : -1));
    next.focus();
  });
  // One stop for the Tab key in each picture; arrows move inside.
  all("svg[role=group]").forEach((picture) => all("[role=img]", picture).forEach((spot, place) =>
    spot.setAttribute("tabindex", place ? -1 : 0)));
}
