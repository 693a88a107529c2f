// The tables of a picture as one CSV text.
function titlesOf(table) {
  const rows = [...table.tHead.rows], titles = [...rows.at(-1).cells].map((cell) => bare(cell.textContent));
  if (rows.length === 1) return titles;
  const over = [...rows[0].cells].flatMap((cell) => Array(cell.colSpan).fill(bare(cell.textContent)));
  return titles.map((title, place) => [over[place], title].filter(Boolean).join(": "));
}
// Features go by their names, and by their labels where they have some.
function features(title, lines) {
  const names = lines.map((line) => bare(line.dataset.f));
  const labels = lines.map((line) => bare(line.cells[0].firstChild.textContent));
  const found = [[title, names.map(harmless)]];
  if (labels.some((label, row) => label !== names[row])) found.push(["Label", labels.map(harmless)]);
  return found;
}
function columnsOf(table) {
  const lines = [], parts = [];
  for (const body of table.tBodies) for (const line of body.rows) {
    if (line.className === "part") continue;
    lines.push(line);
    parts.push(bare((body.querySelector(".part") || { textContent: "" }).textContent));
  }
  const found = parts.some(Boolean) ? [["Part", parts.map(harmless)]] : [];
  titlesOf(table).forEach((title, place) => found.push(...(!place && lines[0].dataset.f
    ? features(title, lines)
    : columns(title, lines.map((line) => bare(line.cells[place].textContent))))));
  // Titles of columns may repeat, but not in a file.
  const times = new Map();
  return new Map(found.map(([title, cells]) => {
    times.set(title, (times.get(title) || 0) + 1);
    return [times.get(title) > 1 ? `${title} ${times.get(title)}` : title, cells];
  }));
}
function csv(tables) {
  const read = tables.map((table) => [bare(table.caption.textContent), columnsOf(table)]);
  const titles = [...new Set(read.flatMap(([, found]) => [...found.keys()]))];
  const several = read.length > 1, rows = [several ? ["Table", ...titles] : titles];
  for (const [caption, found] of read) {
    const [[, first]] = found;
    first.forEach((_, row) => {
      const cells = titles.map((title) => (found.get(title) || [])[row] || "");
      rows.push(several ? [harmless(caption), ...cells] : cells);
    });
  }
  return rows.map((cells) => `${cells.map(quoted).join(",")}\r\n`).join("");
}
