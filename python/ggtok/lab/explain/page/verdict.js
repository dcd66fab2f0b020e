/* Two tokenizers on one text: where their cuts differ, in a sentence, and the text twice, so that a character is below
 * itself. It needs only ids, spans and bytes.
 *
 * A cut is the end of a token. What a tokenizer drops, such as spaces, belongs to the token after it. A stretch is the
 * text from one place where both cut to the next such place; the cuts differ where only one cuts inside it. */

/** The ends of tokens, `{end, token}`, each once, in order. Tokens that are not in the text have none. `spans` are start
 * and end in turn. */
function cutsOf({ spans }) {
  const found = [];
  let last = 0;
  for (let at = 0; at < spans.length; at += 2) {
    if (spans[at + 1] > Math.max(spans[at], last)) found.push({ end: (last = spans[at + 1]), token: at / 2 });
  }
  return found;
}

/** All stretches `{start, end, cuts, differs}`; `cuts` are those of both sides up to its end. If one side drops the end
 * of the text, the last stretch has `end: Infinity`. O(n) time for n tokens. */
function* stretchesOf(a, b) {
  const all = [cutsOf(a), cutsOf(b)];
  const at = [0, 0];
  const next = (side) => all[side][at[side]]?.end ?? Infinity;
  let start = 0;
  while (next(0) < Infinity || next(1) < Infinity) {
    const from = [...at];
    while (next(0) !== next(1)) at[next(0) < next(1) ? 0 : 1]++;
    const end = next(0);
    const differs = at[0] > from[0] || at[1] > from[1];
    at[0]++;
    at[1]++;
    yield { start, end, cuts: all.map((cuts, side) => cuts.slice(from[side], at[side])), differs };
    start = end;
  }
}

/** The number of the character that a byte is in; each byte that is not UTF-8 is one. */
function characterAt(bytes, byte) {
  let count = 0;
  for (let at = 0; at < byte; count++) {
    const n = lengthOfCharacter(bytes[at]);
    at += n === 1 || decoded(bytes.subarray(at, at + n)) === null ? 1 : n;
    if (at > byte) break;
  }
  return count;
}

const MOST_QUOTED = 8;

/** A sentence about two results `{ids, spans}`, as children of an element. */
function verdictOf(bytes, a, b) {
  const unequal = [...stretchesOf(a, b)].filter(({ differs }) => differs);
  const [first] = unequal;
  const [n, m] = [a.ids.length, b.ids.length];
  const parts = [];
  if (first) {
    const quote = (cuts) => {
      const faces = cuts.slice(0, MOST_QUOTED).map(({ end }, at) => short(label(bytes.subarray(cuts[at - 1]?.end ?? first.start, end)), 40));
      return (faces.join("·") || WORDS.nothing) + (cuts.length > MOST_QUOTED ? "…" : "");
    };
    const character = characterAt(bytes, first.start).toLocaleString("en");
    parts.push(...sentenceOf("differ", { character, a: quote(first.cuts[0]), b: quote(first.cuts[1]) }));
    if (unequal.length > 1) parts.push([" "], ...sentenceOf("places", { n: unequal.length.toLocaleString("en") }));
  } else {
    const isSame = n === m && a.ids.every((id, at) => id === b.ids[at]);
    parts.push(...sentenceOf(isSame ? "same" : "other_ids"));
  }
  const counted = n !== m ? "counts" : n === 1 ? "count_one" : n ? "count" : "count_none";
  const counts = { n: n.toLocaleString("en"), a: n.toLocaleString("en"), b: m.toLocaleString("en") };
  parts.push([" "], ...sentenceOf(counted, counts));
  return parts.map(([text, isQuoted]) => (isQuoted ? el("code", {}, text) : text));
}

/** The text between neighbouring cuts of either side: `{start, end, tokens, differs}`. `tokens` are the places of the
 * tokens that it belongs to, or -1 where no token stands for the end of the text. */
function cellsOfPair(size, sides) {
  const cells = [];
  for (const { start, end, cuts, differs } of stretchesOf(...sides)) {
    const ends = new Set([...cuts.flat().map((cut) => cut.end), Math.min(end, size)]);
    const at = [0, 0];
    let from = start;
    for (const to of [...ends].sort((x, y) => x - y)) {
      const tokens = cuts.map((own, side) => own[at[side]]?.token ?? -1);
      cells.push({ start: from, end: to, tokens, differs, opens: from === start });
      for (const side of [0, 1]) if (cuts[side][at[side]]?.end === to) at[side]++;
      from = to;
    }
  }
  const last = cells.at(-1)?.end ?? 0;
  if (last < size) cells.push({ start: last, end: size, tokens: [-1, -1], differs: false, opens: true });
  return cells;
}

const MOST_STRETCHES = 3000; // that are shown at once

/** Both texts, stretch by stretch. `choose(cell)` is called with the place of the cell that is clicked. */
function pairStrip(bytes, cells, names, choose) {
  const parts = []; // the nodes of each cell
  const list = el("div", { class: "both", role: "group", "aria-label": `The text as ${names[0]} cuts it, over the same as ${names[1]} cuts it` });
  const stretches = [];
  cells.forEach((cell, at) => (cell.opens ? stretches.push([at, at + 1]) : (stretches.at(-1)[1] = at + 1)));
  const faceOfCell = ({ start, end }) => {
    const part = bytes.subarray(start, end);
    return decoded(part) === null ? `${label(part)} ` : seen(label(part));
  };
  const row = (side, from, to) => {
    const line = el("span", { class: "text-row" });
    for (let at = from; at < to; at++) {
      const token = cells[at].tokens[side];
      const isNew = at === from || cells[at - 1].tokens[side] !== token;
      if (isNew) line.append(el("span", { class: token < 0 ? "gap-text" : `piece token-${tone(side, at, token)}` }));
      const node = el("span", { "data-cell": at }, faceOfCell(cells[at]));
      line.lastChild.append(node);
      (parts[at] ??= []).push(node);
    }
    return line;
  };
  /** Neighbours differ; where both cut alike, both have one colour. */
  const tone = (side, at, token) => (cells[at].differs ? 2 + (token % 2) : cells[at].tokens[0] % 2);
  const { button, more } = inParts(stretches.length, MOST_STRETCHES, "part", "shown", (from, to) => {
    for (const [start, end] of stretches.slice(from, to)) {
      if (!list.lastChild || bytes[cells[start].start - 1] === 10) list.append(el("div", { dir: "auto" }));
      const name = cells[start].differs ? "stretch unequal" : "stretch";
      list.lastChild.append(el("span", { class: name }, row(0, start, end), row(1, start, end)));
    }
  });
  more();
  list.addEventListener("click", ({ target }) => {
    const place = target.closest("[data-cell]")?.dataset.cell;
    if (place != null) choose(Number(place));
  });
  let marked = [];
  return {
    parts: [list, button],
    /** Marks a cell, and scrolls to it inside the box. */
    mark(at) {
      for (const node of marked) node.classList.remove("here");
      while (!parts[at] && !button.hidden) more();
      marked = parts[at] ?? [];
      for (const node of marked) node.classList.add("here");
      if (!marked.length) return;
      const { offsetTop: top, offsetHeight: height } = marked[0];
      if (top < list.scrollTop || top + 2 * height > list.scrollTop + list.clientHeight) {
        list.scrollTop = top - list.clientHeight / 3;
      }
    },
  };
}
