/* Tables. A long one begins with its first rows and shows more when it is asked. */

const MANY_ROWS = 500; // that are shown at once

/**
 * The table of a section `{title, columns, rows}`: a column is `[name, kind]`, a row `[cells, mark]`, as in tables.py.
 * The row `now` is marked and scrolled to.
 */
function table({ title, columns, rows }, now = -1) {
  const content = (value, kind) => {
    if (value == null || typeof value === "number") return number(value);
    if (kind === "text") return mono(value);
    return kind === "texts" ? value.flatMap((text, i) => (i ? [" ", mono(text)] : mono(text))) : value;
  };
  const classes = columns.map(([, kind]) => (kind === "number" ? kind : null));
  let current = null;
  const row = ([cells, mark], i) => {
    const boxes = cells.map((value, j) => el("td", { class: classes[j] }, content(value, columns[j][1])));
    const kind = i === now ? "new" : { won: "new", lost: "lost" }[mark];
    const line = el("tr", { class: kind }, boxes);
    if (i === now) current = line;
    return line;
  };
  const heads = columns.map(([name], j) => el("th", { scope: "col", class: classes[j] }, name));
  const body = el("tbody");
  const { button, more, shown } = inParts(rows.length, MANY_ROWS, "row", "shown", (from, to) =>
    body.append(...rows.slice(from, to).map((each, i) => row(each, from + i))),
  );
  do more();
  while (shown() <= now);
  const element = el("table", { "aria-label": title }, el("thead", {}, el("tr", {}, heads)), body);
  const box = el("div", { class: "table scroll", tabindex: 0, role: "region", "aria-label": title }, element, button);
  if (current) queueMicrotask(() => (box.scrollTop = current.offsetTop - box.clientHeight / 3));
  return box;
}

/** A table that is made when it is opened. */
function folded(section) {
  const count = el("span", { class: "muted" }, ` ${plural(section.rows.length, "row")}`);
  const details = el("details", {}, el("summary", {}, section.title, count));
  const open = () => details.append(el("p", {}, section.about), table(section));
  details.addEventListener("toggle", open, { once: true });
  return details;
}
