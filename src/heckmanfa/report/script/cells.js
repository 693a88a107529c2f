// Cells of a table as numbers that other programs read, with the digits of the page.
const NUMBER = String.raw`[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?%?`;
const ALONE = new RegExp(`^${NUMBER}$`), RANGE = new RegExp(`^(${NUMBER}) to (${NUMBER})$`);
const WITH_RANGE = new RegExp(`^(${NUMBER}) \\((${NUMBER}) to (${NUMBER})\\)$`);
const bare = (text) => text.replace(/\u2212/g, "-").replace(/\s+/g, " ").trim();
// A spreadsheet takes a text that begins so for a formula.
const isNumbers = (text) => ALONE.test(text) || RANGE.test(text) || WITH_RANGE.test(text);
const harmless = (text) => (/^[=+\-@]/.test(text) && !isNumbers(text) ? `'${text}` : text);
const quoted = (text) => (/[",]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
// Write a column of numbers without commas, plus signs and percent signs; texts stay.
function numbers([title, cells]) {
  const known = cells.filter(Boolean);
  const shares = known.filter((cell) => cell.endsWith("%")).length;
  if (!known.every((cell) => ALONE.test(cell)) || (shares && shares < known.length)) {
    return [title, cells.map(harmless)];
  }
  return [shares ? `${title} (%)` : title, cells.map((cell) => cell.replace(/[,%]|^\+/g, ""))];
}
// Split a column of intervals, or of estimates with them, into one for each number.
function columns(title, cells) {
  for (const [rule, names] of [[WITH_RANGE, ["", " low", " high"]], [RANGE, [" low", " high"]]]) {
    const parts = cells.map((cell) => cell.match(rule));
    if (cells.some(Boolean) && cells.every((cell, row) => !cell || parts[row])) {
      return names.map((name, place) =>
        numbers([title + name, parts.map((part) => (part ? part[place + 1] : ""))]));
    }
  }
  return [numbers([title, cells])];
}
