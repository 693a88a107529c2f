// The corner of each picture saves it as SVG or PNG, and its numbers as CSV.
function save(blob, figure, ending) {
  const words = `${document.title.slice(0, 60)} ${figure.classList[0]}`;
  const link = document.createElement("a");
  link.download = `${words.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-/, "")}.${ending}`;
  link.href = URL.createObjectURL(blob);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
const SAVED = {
  SVG: (figure) => {
    const text = new XMLSerializer().serializeToString(standalone(figure));
    save(new Blob([text], { type: "image/svg+xml" }), figure, "svg");
  },
  PNG: (figure) => {
    // toBlob waits for an idle browser, for seconds.
    const bytes = atob(image(standalone(figure), 2).toDataURL().split(",")[1]);
    const blob = new Blob([Uint8Array.from(bytes, (byte) => byte.charCodeAt(0))], { type: "image/png" });
    save(blob, figure, "png");
  },
  CSV: (figure, tables) => {
    // The mark at its start tells Excel which encoding it is.
    save(new Blob(["\ufeff", csv(tables)], { type: "text/csv" }), figure, "csv");
  },
};
for (const figure of all("figure[data-tables]")) {
  const tables = figure.dataset.tables.split(" ").map((name) => document.getElementById(name))
    .filter(Boolean).map((caption) => caption.closest("table"));
  const menu = document.createElement("details"), head = document.createElement("summary");
  menu.className = "save";
  head.textContent = "Save";
  head.setAttribute("aria-label", `Save: ${figure.querySelector("h3").textContent}`);
  menu.append(head);
  for (const [ending, act] of Object.entries(SAVED)) {
    if (ending === "CSV" && !tables.length) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = ending;
    button.title = ending === "CSV" ? "Its numbers, rounded as in the table" : `The picture as ${ending}`;
    button.onclick = () => { act(figure, tables); menu.open = false; head.focus(); };
    menu.append(button);
  }
  menu.onkeydown = (event) => {
    if (event.key === "Escape" && menu.open) { menu.open = false; head.focus(); }
  };
  figure.append(menu);
}
on("click", (event) => all(".save[open]").forEach((menu) => {
  if (!menu.contains(event.target)) menu.open = false;
}));
