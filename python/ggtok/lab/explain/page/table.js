/* Tables. A long one begins with its first rows and shows more when it is asked. */

const MANY_ROWS = 500; // that are shown at once

/**
 * A table with a row for each of `items`. `cellsOf(item)` returns strings, numbers, nodes or null. Columns whose names
 * end in `#` are aligned to the right. `mark(item)` returns attributes of a row, such as its token. The row `now` is
 * marked and scrolled to.
 */
function table(name, names, items, cellsOf, { mark = () => ({}), now = -1 } = {}) {
  const kinds = names.map((column) => (column.endsWith("#") ? "number" : null));
  const textOf = (value) => (value == null || typeof value === "number" ? number(value) : value);
  let current = null;
  const row = (item, i) => {
    const cells = cellsOf(item).map((value, j) => el("td", { class: kinds[j] }, textOf(value)));
    const line = el("tr", { class: i === now ? "new" : null, ...mark(item) }, cells);
    if (i === now) current = line;
    return line;
  };
  const heads = names.map((column, j) => el("th", { scope: "col", class: kinds[j] }, column.replace("#", "")));
  const body = el("tbody");
  const { button, more, shown } = inParts(items.length, MANY_ROWS, "row", "shown", (from, to) =>
    body.append(...items.slice(from, to).map((item, i) => row(item, from + i))),
  );
  do more();
  while (shown() <= now);
  const element = el("table", { "aria-label": name }, el("thead", {}, el("tr", {}, heads)), body);
  const box = el("div", { class: "table scroll", tabindex: 0, role: "region", "aria-label": name }, element, button);
  if (current) queueMicrotask(() => (box.scrollTop = current.offsetTop - box.clientHeight / 3));
  return box;
}

/** A table that is made when it is opened. */
function folded(title, sentence, count, make) {
  const rows = el("span", { class: "muted" }, ` ${plural(count, "row")}`);
  const details = el("details", {}, el("summary", {}, title, rows));
  details.addEventListener("toggle", () => details.append(el("p", {}, sentence), make()), { once: true });
  return details;
}
