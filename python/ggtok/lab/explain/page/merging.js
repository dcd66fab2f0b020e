/* Merging, for SPM and BPE: how the letters of one word become its tokens. Characters are on top, their bytes below them
 * if a vocabulary begins with bytes, and each merge is below the two symbols that it joins. The pairs that could merge
 * are listed beside the tree: the first one merges next. */

const LEAF = 34; // about how wide a symbol is drawn
const LEVEL = 62;
const ROWS = 8; // of a long word, those around the step are drawn
const LIST = 310; // the room for the list beside the tree
const MOST_PAIRS = 8; // that are listed

/** About how wide a text is in pixels, in letters of 13.5 pixels that are equally wide. */
const pixelsOf = (text) => Array.from(text).reduce((sum, letter) => sum + (WIDE.test(letter) ? 13.5 : 8.13), 0);

/** Where a part of the drawing comes from, for `animate`: the frame moves it from there to its place. With `isLate` it
 * is not seen before. */
const moves = (dx, dy, delay, isLate) => ({
  "data-move": `${dx.toFixed(1)} ${dy.toFixed(1)} ${delay} ${Number(isLate)}`,
});

const mergesOf = ({ pairs }) => pairs.filter(({ won }) => won).sort((one, other) => one.died - other.died);

/** Each letter, and what each merge makes. */
function symbolsOf(drawing) {
  const symbols = drawing.letters.cells.map((text, at) => ({ from: at, to: at + 1, text, level: 0, born: 0 }));
  const top = symbols.slice();
  for (const { from, mid, to, face: text, by, died: born } of mergesOf(drawing)) {
    const [left, right] = [top[from], top[mid]];
    const made = { from, to, text, by, born, left, right, level: Math.max(left.level, right.level) + 1 };
    left.parent = right.parent = top[from] = made;
    symbols.push(made);
  }
  for (const symbol of symbols) symbol.width = pixelsOf(symbol.text);
  return symbols;
}

/** The word after `step` merges, or with all of them, which move one after the other. */
function drawTree(drawing, step, { width }) {
  const count = mergesOf(drawing).length;
  const done = step ?? count;
  const hasList = step != null && count > 0;
  // A word is drawn in one row if it can be, and the rows of a long word leave room for the list.
  const isBeside = hasList && width - LIST > Math.min(LEAF * drawing.letters.cells.length, 500);
  const symbols = symbolsOf(drawing);
  const rows = rowsOf(drawing, Math.max(8, Math.floor((width - (isBeside ? LIST : 0)) / LEAF)));
  const now = symbols.find(({ born }) => born === done && step);
  const row = now ? rows.findIndex(([, to]) => now.from < to) : 0;
  const [first, last] = windowAround(row, ROWS, rows.length);
  const room = rows.length > 1 ? 0 : isBeside ? width - LIST : width; // the rows of a tree have one scale
  const trees = rows.slice(first, last).map((range) => treeRow(drawing, symbols, range, { done, step, count, room }));
  const note = partNote("Symbols", [rows[first]?.[0] ?? 0, rows[last - 1]?.[1] ?? 0], drawing.letters.cells.length);
  const list = hasList ? pairList(drawing.pairs, step, count) : null;
  const legend = count ? muted(drawing.legend) : null;
  return [note, el("div", { class: "merging" }, el("div", {}, trees), list), legend];
}

/** Ranges of about `size` letters. No merge goes over the end of one, and if possible no character. */
function rowsOf({ leaves, letters }, size) {
  const rows = [];
  for (const { from, to } of leaves) {
    const isInside = letters.characters.some(([a, b]) => a < from && from < b);
    const row = rows.at(-1);
    if (row && (to - row[0] <= size || isInside)) row[1] = to;
    else rows.push([from, to]);
  }
  return rows;
}

/** A row of the tree: what has become of the letters `from` to `to`. */
function treeRow({ leaves, letters }, symbols, [from, to], { done, step, count, room }) {
  const here = symbols.filter((one) => one.born <= done && one.to > from && one.from < to);
  const isEnd = done === count;
  const leafOf = (one) => (isEnd ? leaves.find((leaf) => leaf.from === one.from && leaf.to === one.to) : null);
  const idsOf = (one) => leafOf(one)?.tokens.map(([, id]) => id).join(" ") ?? "";
  const boxWidth = (one) => Math.max(one.width, 6.6 * Math.max(one.by?.length ?? 0, idsOf(one).length)) + 12;
  const isTall = (one) => Boolean(one.by || idsOf(one));

  // Letters are as wide as their text; a symbol that is wider than its letters pushes them apart.
  const widths = symbols.slice(from, to).map((letter) => Math.max(24, letter.width + 12) + 6);
  for (const one of here) {
    const missing = boxWidth(one) + 6 - widths.slice(one.from - from, one.to - from).reduce((sum, w) => sum + w, 0);
    if (missing > 0) for (let at = one.from; at < one.to; at++) widths[at - from] += missing / (one.to - one.from);
  }
  const x = [2];
  for (const w of widths) x.push(x.at(-1) + w);
  const middle = (one) => (x[one.from - from] + x[one.to - from]) / 2;
  const characters = letters.characters.filter(([a]) => from <= a && a < to);
  const top = characters.length ? 36 : 4;
  const y = (one) => top + one.level * LEVEL;
  const brackets = characters.flatMap(([a, b, text]) => {
    const [left, right] = [x[a - from], x[b - from]];
    const d = `M${left + 5} ${top - 4}V${top - 10}H${right - 5}V${top - 4}`;
    const over = svg("text", { x: (left + right) / 2, y: top - 16, class: "character" }, text);
    return [over, svg("path", { class: "bracket", d })];
  });
  const pace = count ? Math.min(260, 2400 / count) : 0;
  const isMoving = (one) => one.by && (step == null || one.born === step);
  const delayOf = (one) => (step == null ? (one.born - 1) * pace : 0);
  const growing = (one) => (isMoving(one) ? { "data-grow": delayOf(one) } : {});
  const lines = here.flatMap((one) =>
    [one.left, one.right].filter(Boolean).map((child) => {
      const d = `M${middle(child)} ${y(child) + (child.by ? 38 : 26)}V${y(one) - 10}H${middle(one)}V${y(one)}`;
      return svg("path", { class: "branch", d, ...growing(one) });
    }),
  );
  const boxes = here.map((one) => {
    const w = boxWidth(one);
    const place = leafOf(one)?.tokens[0]?.[0] ?? null;
    const word = (text, at, movement) => svg("text", { x: at, y: y(one) + 18, class: "mono", ...movement }, text);
    let texts = [word(one.text, middle(one), isMoving(one) ? moves(0, -LEVEL, delayOf(one), true) : {})];
    if (isMoving(one) && one.text === one.left.text + one.right.text) {
      const start = middle(one) - one.width / 2;
      texts = [one.left, one.right].map((child, i) => {
        const at = start + (i ? one.left.width : 0) + child.width / 2;
        return word(child.text, at, moves(middle(child) - at, y(child) - y(one), delayOf(one), Boolean(child.by)));
      });
    }
    const below = { x: middle(one), y: y(one) + 32, ...(isMoving(one) ? moves(0, 0, delayOf(one), true) : {}) };
    const name = `node${one.born === step && step ? " now" : ""}${place != null ? ` token-${place % 4}` : ""}`;
    return svg(
      "g",
      { class: name, "data-token": place },
      svg("title", {}, [one.text, one.by].filter(Boolean).join(", ")),
      svg("rect", {
        ...{ x: middle(one) - w / 2, y: y(one), width: w, height: isTall(one) ? 38 : 26, rx: 6 },
        ...growing(one),
      }),
      texts,
      isTall(one) ? svg("text", { ...below, class: idsOf(one) ? "id" : "small" }, idsOf(one) || one.by) : null,
    );
  });
  const height = top + Math.max(0, ...here.map(({ level }) => level)) * LEVEL + 42;
  const scale = Math.max(1, Math.min(2, room / (x.at(-1) + 2), 520 / height));
  const shape = drawing(`Merges so far: ${done}`, x.at(-1) + 2, height, brackets, lines, boxes);
  shape.setAttribute("width", Math.floor((x.at(-1) + 2) * scale));
  shape.setAttribute("height", Math.floor(height * scale));
  return shape;
}

/** The pairs that could merge at a step, in their order: the one that merges comes first, and those that it ends are
 * struck out. */
function pairList(pairs, step, count) {
  const here = pairs.filter(({ born, died }) => born <= step && (died == null || died >= Math.max(step, 1)));
  const kindOf = ({ born, died, won }) => {
    if (step === 0) return "";
    return died === step ? (won ? "now" : "dead") : born === step ? "fresh" : "";
  };
  const item = (pair, i) =>
    el(
      "li",
      { class: step === 0 && i === 0 ? "first" : kindOf(pair) },
      el("span", { class: "by" }, `${pair.by}: `),
      el("span", { class: "mono" }, pair.faces.join(" + ")),
    );
  const shown = here.slice(0, MOST_PAIRS).map(item);
  const more = here.length - MOST_PAIRS;
  const isOver = step === count;
  const end = isOver ? muted("No pair is left.") : more > 0 ? muted(`and ${more.toLocaleString("en")} more`) : null;
  return el("div", { class: "pairs" }, el("h4", {}, "Could merge now"), el("ol", {}, shown), end);
}
