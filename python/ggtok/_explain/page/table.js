/* Tables. A long one has elements only for the rows in sight: all rows are equally high, and two empty rows stand for
 * those above and below. */

const ROW_HEIGHT = 30; // style.css: tr
const SHORT_TABLE = 40;
const PRINTED = 60;

/**
 * A table of `count` rows. `rowAt(i)` returns the cells of row i: strings or nodes. `mark(i)` returns attributes of row
 * i, such as its token. `show(i)` on the result scrolls to row i.
 */
function table(name, columns, count, rowAt, { mark = () => ({}), numeric = [] } = {}) {
  const body = el("tbody");
  const head = el("tr", {}, columns.map((column, i) => el("th", { scope: "col", class: numeric[i] ? "number" : null }, column)));
  const element = el("table", { "aria-label": name, "aria-rowcount": count + 1 }, el("thead", {}, head), body);
  const box = el("div", { class: "table scroll", tabindex: 0, role: "region", "aria-label": name }, element);
  const row = (i) => el(
    "tr",
    { "aria-rowindex": i + 2, ...mark(i) },
    rowAt(i).map((cell, j) => el("td", { class: numeric[j] ? "number" : null }, cell)),
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
    const widths = columns.map((column) => widthOf(column));
    const stride = Math.max(1, Math.floor(count / 60));
    for (let i = 0; i < count; i += stride) {
      rowAt(i).forEach((cell, j) => {
        widths[j] = Math.max(widths[j], widthOf(cell?.textContent ?? cell ?? ""));
      });
    }
    const group = el("colgroup", {}, columns.map(() => el("col")));
    widths.forEach((width, j) => {
      group.children[j].style.width = `${Math.min(width, 40) + 3}ch`;
    });
    element.prepend(group);
    box.addEventListener("scroll", inSight, { passive: true });
    draw(0, Math.min(count, SHORT_TABLE));
    window.addEventListener("beforeprint", () => box.isConnected && draw(0, Math.min(count, PRINTED)));
    window.addEventListener("afterprint", inSight);
  }
  box.show = (i) => {
    const top = i * ROW_HEIGHT;
    if (top < box.scrollTop || top + 3 * ROW_HEIGHT > box.scrollTop + box.clientHeight) {
      box.scrollTop = Math.max(0, top - box.clientHeight / 3);
    }
    if (count > SHORT_TABLE) inSight();
  };
  return box;
}

/** A table that is made when it is opened. */
function folded(title, sentence, count, make, open = false) {
  const details = el("details", {}, el("summary", {}, title, el("span", { class: "muted" }, ` ${plural(count, "row")}`)));
  const build = () => {
    if (details.open && details.children.length === 1) {
      details.append(...(sentence ? [el("p", {}, sentence)] : []), make());
    }
  };
  details.addEventListener("toggle", build);
  if (open) {
    details.open = true;
    build();
  }
  return details;
}
