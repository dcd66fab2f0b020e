/* Tables. A long one has elements only for the rows in sight: all rows are equally high, and two empty rows stand for
 * those above and below. */

const ROW_HEIGHT = 30; // style.css: tr
const SHORT_TABLE = 40;
const PRINTED = 60;

/**
 * A table with a row for each of `items`. `cellsOf(item)` returns strings, numbers, nodes or null. Columns whose names
 * end in `#` are aligned to the right. `mark(item)` returns attributes of a row, such as its token. The row `now` is
 * marked and scrolled to.
 */
function table(name, names, items, cellsOf, { mark = () => ({}), now = -1 } = {}) {
  const count = items.length;
  const columns = names.map((column) => ({ name: column.replace("#", ""), isNumber: column.endsWith("#") }));
  const cell = (tag, column, content, attributes = {}) =>
    el(tag, { ...attributes, class: column.isNumber ? "number" : null }, content);
  const body = el("tbody");
  const head = columns.map((column) => cell("th", column, column.name, { scope: "col" }));
  const element = el(
    "table",
    { "aria-label": name, "aria-rowcount": count + 1 },
    el("thead", {}, el("tr", {}, head)),
    body,
  );
  const box = el("div", { class: "table scroll", tabindex: 0, role: "region", "aria-label": name }, element);
  const contents = (i) => cellsOf(items[i]).map((one) => (one == null || typeof one === "number" ? number(one) : one));
  const row = (i) =>
    el(
      "tr",
      { "aria-rowindex": i + 2, class: i === now ? "new" : null, ...mark(items[i], i) },
      contents(i).map((content, j) => cell("td", columns[j], content)),
    );
  const space = (rows) => {
    const gap = el("tr", { class: "gap", "aria-hidden": "true" });
    gap.style.height = `${rows * ROW_HEIGHT}px`;
    return gap;
  };
  let drawn = [-1, -1];
  const draw = (from, to) => {
    if (from === drawn[0] && to === drawn[1]) return;
    drawn = [from, to];
    const rows = [];
    if (from > 0) rows.push(space(from));
    for (let i = from; i < to; i++) rows.push(row(i));
    if (to < count) rows.push(space(count - to));
    body.replaceChildren(...rows);
  };
  const inSight = () => {
    const height = box.clientHeight || 400;
    const first = Math.max(0, Math.floor(box.scrollTop / ROW_HEIGHT) - 10) & ~7;
    draw(first, Math.min(count, first + (((height / ROW_HEIGHT) | 0) + 32)));
  };
  if (count <= SHORT_TABLE) {
    draw(0, count);
  } else {
    element.classList.add("long");
    const widths = columns.map((column) => widthOf(column.name));
    const stride = Math.max(1, Math.floor(count / 60));
    for (let i = 0; i < count; i += stride) {
      contents(i).forEach((content, j) => {
        widths[j] = Math.max(widths[j], widthOf(content.textContent ?? content));
      });
    }
    const group = widths.map((width) => {
      const column = el("col");
      column.style.width = `${Math.min(width, 40) + 3}ch`;
      return column;
    });
    element.prepend(el("colgroup", {}, group));
    box.addEventListener("scroll", inSight, { passive: true });
    draw(0, Math.min(count, SHORT_TABLE));
    window.addEventListener("beforeprint", () => box.isConnected && draw(0, Math.min(count, PRINTED)));
    window.addEventListener("afterprint", inSight);
  }
  queueMicrotask(() => {
    if (now < 0) return;
    const top = now * ROW_HEIGHT;
    if (top < box.scrollTop || top + 3 * ROW_HEIGHT > box.scrollTop + box.clientHeight) {
      box.scrollTop = Math.max(0, top - box.clientHeight / 3);
    }
    if (count > SHORT_TABLE) inSight();
  });
  return box;
}

/** A table that is made when it is opened. */
function folded(title, sentence, count, make) {
  const rows = el("span", { class: "muted" }, ` ${plural(count, "row")}`);
  const details = el("details", {}, el("summary", {}, title, rows));
  details.addEventListener("toggle", () => details.append(el("p", {}, sentence), make()), { once: true });
  return details;
}
