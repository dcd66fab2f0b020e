/* Merging, for SPM and BPE: how the characters of one word become its tokens. Characters are on top, their bytes below
 * them if a vocabulary begins with bytes, and each merge is below the two symbols that it joins. */

const QUEUE = 400;
const LEAF = 34; // about how wide a symbol is drawn
const LEVEL = 60;

/** About how wide a text is in pixels, in letters of 13.5 pixels that are equally wide. */
const pixelsOf = (text) => Array.from(text).reduce((sum, letter) => sum + (WIDE.test(letter) ? 13.5 : 8.13), 0);

/**
 * What is the same in all steps of a word: the nodes that the merges make, and when each pair entered the queue.
 * `bytes` are those of the word, of which symbol `i` has `sizes[i]`.
 */
function prepareMerging({ symbols, queue, pops }, bytes, sizes) {
  const offsets = [0];
  for (const size of sizes) offsets.push(offsets.at(-1) + size);
  const key = (bigram) => `${bigram.left} ${bigram.right} ${bigram.size}`;
  const entered = new Map(queue.map((bigram) => [key(bigram), -1]));
  pops.forEach((pop, at) => pop.added.forEach((bigram) => entered.set(key(bigram), at)));
  const node = (from, to, more) => {
    const text = faceOf(bytes.subarray(offsets[from], offsets[to]));
    return { from, to, text, width: pixelsOf(text), ...more };
  };
  const nodes = symbols.map((symbol, at) => node(at, at + 1, { spelled: symbol.text, level: 0, born: -1 }));
  const place = new Map(symbols.map((symbol, at) => [symbol.index, at]));
  const top = nodes.slice();
  const merges = [];
  pops.forEach(({ stale, bigram }, pop) => {
    if (stale) return;
    const [left, right] = [top[place.get(bigram.left)], top[place.get(bigram.right)]];
    const level = Math.max(left.level, right.level) + 1;
    const more = { spelled: bigram.text, left, right, level, born: merges.length, bigram, pop };
    const made = node(left.from, right.to, more);
    left.parent = right.parent = made;
    top[made.from] = made;
    nodes.push(made);
    merges.push(made);
  });
  const result = symbols.map((_, at) => top[at]).filter((one, at) => one.from === at && !one.parent);
  const enteredAt = pops.map((pop) => entered.get(key(pop.bigram)) ?? -1);
  return { symbols, pops, nodes, merges, place, result, bytes, offsets, entered: enteredAt };
}

/** The symbols that are left after `done` pops, with their neighbours. */
function symbolsAfter({ symbols, pops, place, nodes, merges }, done) {
  const n = symbols.map((symbol) => symbol.n);
  const next = symbols.map((symbol) => symbol.next);
  const prev = symbols.map((symbol) => symbol.prev);
  const spelled = symbols.map((_, at) => nodes[at].spelled);
  for (const merge of merges) {
    if (merge.pop >= done) break;
    const [left, right] = [place.get(merge.bigram.left), place.get(merge.bigram.right)];
    n[left] += n[right];
    n[right] = 0;
    next[left] = next[right];
    if (place.has(next[right])) prev[place.get(next[right])] = symbols[left].index;
    spelled[left] = merge.spelled;
  }
  return symbols.map(({ index }, at) => ({ index, n: n[at], prev: prev[at], next: next[at], text: spelled[at] }));
}

/** The pops, from `from` on, of pairs that wait then: in the order in which they are taken. */
function waitingAt(merging, from) {
  const { pops, entered, place } = merging;
  const now = symbolsAfter(merging, from);
  const waits = ({ bigram }, at) => {
    const [left, right] = [now[place.get(bigram.left)], now[place.get(bigram.right)]];
    return entered[at] < from && left.n && right.n && left.next === right.index && left.n + right.n === bigram.size;
  };
  return pops.map((_, at) => at).filter((at) => at >= from && waits(pops[at], at));
}

/** The text of a pair, as the drawing has it. */
function pairFace({ place, bytes, offsets }, { left, size }, sizeBefore) {
  const from = place.get(left);
  let to = from;
  for (let n = 0; n < size; n += sizeBefore[to++]);
  return faceOf(bytes.subarray(offsets[from], offsets[to]));
}

const priority = (bigram) => (bigram.rank != null ? `merge ${number(bigram.rank)}` : `score ${number(bigram.score)}`);

/** What step `done` of a word is: its beginning, or the merge that it makes, and what lost. */
function mergeCaption(merging, done, unit) {
  if (done === 0) {
    const waiting = waitingAt(merging, 0).length;
    const values = { text: faceOf(merging.bytes), n: merging.symbols.length };
    const pairs = said(countedKey("captions.waiting", waiting), { n: waiting });
    return [...said(`captions.start_${unit}`, values), ...pairs];
  }
  const { left, right, text, bigram, pop } = merging.merges[done - 1];
  const waiting = waitingAt(merging, pop);
  const kind = bigram.rank != null ? "rank" : "score";
  const values = { score: number(bigram.score), rank: number(bigram.rank), waiting: waiting.length };
  const names = { left: left.text, right: right.text, merged: text };
  const caption = said(`captions.merge_${kind}${waiting.length > 1 ? "" : "_one"}`, { ...values, ...names });
  if (waiting.length > 1) {
    const other = merging.pops[waiting[1]].bigram;
    const sizes = merging.symbols.map((symbol) => symbol.n);
    const face = pairFace(merging, other, sizes);
    if (other.token === bigram.token) return [...caption, ...said("captions.next_same", { text: face })];
    const next = { text: face, score: number(other.score), rank: number(other.rank) };
    caption.push(...said(`captions.next_${kind}`, next));
  }
  return caption;
}

/** Where a part of the drawing comes from, for `animate`: the frame moves it from there to its place. With `isLate` it
 * is not seen before. */
const moves = (dx, dy, delay, isLate) => ({
  "data-move": `${dx.toFixed(1)} ${dy.toFixed(1)} ${delay} ${Number(isLate)}`,
});

const ROWS = 8; // of a long word, those around the step are drawn

/**
 * The tree after `done` merges, in rows of about `width`. `tokenOf(node)` is the place of a node's token, or null. With
 * `isWhole`, all merges move one after the other, else only the last.
 */
function mergeTree(merging, done, { width, tokenOf = () => null, isWhole = false }) {
  const { merges, symbols } = merging;
  const rows = rowsOf(merging, Math.max(8, Math.floor(width / LEAF)));
  const now = isWhole || !done ? 0 : rows.findIndex(([, to]) => merges[done - 1].from < to);
  const [first, last] = windowAround(now, ROWS, rows.length);
  const trees = rows.slice(first, last).map((row) => treeRow(merging, done, row, { tokenOf, isWhole }));
  const kind = merges[0]?.bigram.rank == null ? "scores" : "ranks";
  const legend = done ? muted(say(`captions.${kind}`)) : null;
  return [partNote("Symbols", [rows[first]?.[0] ?? 0, rows[last - 1]?.[1] ?? 0], symbols.length), ...trees, legend];
}

/** Ranges of about `size` symbols. No merge goes over the end of one, and if possible no character. */
function rowsOf({ result, bytes, offsets }, size) {
  const rows = [];
  for (const { from, to } of result) {
    const isInside = (bytes[offsets[from]] & 0xc0) === 0x80;
    const row = rows.at(-1);
    if (row && (to - row[0] <= size || isInside)) row[1] = to;
    else rows.push([from, to]);
  }
  return rows;
}

/** A row of the tree: what has become of the symbols `from` to `to`. */
function treeRow(merging, done, [from, to], { tokenOf, isWhole }) {
  const { nodes, merges, bytes, offsets } = merging;
  const now = merges[done - 1];
  const here = nodes.filter((node) => node.born < done && node.to > from && node.from < to);
  const boxWidth = (node) => Math.max(node.width, node.bigram ? priority(node.bigram).length * 6.4 : 0) + 12;

  // Leaves are as wide as their text; a node that is wider than its leaves pushes them apart.
  const widths = nodes.slice(from, to).map((leaf) => Math.max(24, leaf.width + 12) + 6);
  for (const node of here) {
    const [a, b] = [Math.max(node.from, from) - from, Math.min(node.to, to) - from];
    const missing = boxWidth(node) + 6 - widths.slice(a, b).reduce((sum, w) => sum + w, 0);
    if (missing > 0) for (let leaf = a; leaf < b; leaf++) widths[leaf] += missing / (b - a);
  }
  const x = [2];
  for (const w of widths) x.push(x.at(-1) + w);
  const edges = ({ from: a, to: b }) => [x[Math.max(a, from) - from], x[Math.min(b, to) - from]];
  const middle = (node) => edges(node).reduce((sum, edge) => sum + edge) / 2;

  const characters = bracketed(bytes, offsets, from, to);
  const top = characters.length ? 36 : 4;
  const y = (node) => top + node.level * LEVEL;
  const levels = Math.max(0, ...here.map((node) => node.level));
  const brackets = characters.flatMap(({ text, from: a, to: b }) => {
    const [left, right] = edges({ from: a, to: b });
    const d = `M${left + 5} ${top - 4}V${top - 10}H${right - 5}V${top - 4}`;
    return [
      svg("text", { x: (left + right) / 2, y: top - 16, class: "character" }, text),
      svg("path", { class: "bracket", d }),
    ];
  });
  const pace = merges.length ? Math.min(260, 2400 / merges.length) : 0;
  const isMoving = (node) => node.bigram && (node === now || isWhole);
  const delayOf = (node) => (isWhole ? node.born * pace : 0);
  const growing = (node) => (isMoving(node) ? { "data-grow": delayOf(node) } : {});
  const lines = here.flatMap((node) =>
    [node.left, node.right]
      .filter((child) => child && child.to > from && child.from < to)
      .map((child) => {
        const d = `M${middle(child)} ${y(child) + (child.bigram ? 38 : 26)}V${y(node) - 10}H${middle(node)}V${y(node)}`;
        return svg("path", { class: "branch", d, ...growing(node) });
      }),
  );
  const boxes = here.map((node) => {
    const w = boxWidth(node);
    const token = !node.parent || node.parent.born >= done ? tokenOf(node) : null;
    const isNow = node === now && !isWhole;
    const delay = delayOf(node);
    const baseline = y(node) + 18;
    const word = (text, at, class_, movement) => svg("text", { x: at, y: baseline, class: class_, ...movement }, text);
    let texts = [word(node.text, middle(node), "mono", {})];
    if (isMoving(node) && node.text === node.left.text + node.right.text) {
      const start = middle(node) - node.width / 2;
      texts = [node.left, node.right].map((child, i) => {
        const at = start + (i ? node.left.width : 0) + child.width / 2;
        return word(child.text, at, "mono", moves(middle(child) - at, y(child) - y(node), delay, Boolean(child.bigram)));
      });
    } else if (isMoving(node)) texts = [word(node.text, middle(node), "mono", moves(0, -LEVEL, delay, true))];
    const below = { x: middle(node), y: y(node) + 32, ...(isMoving(node) ? moves(0, 0, delay, true) : {}) };
    return svg(
      "g",
      { class: `node${isNow ? " now" : ""}${token != null ? ` token-${token % 4}` : ""}`, "data-token": token },
      svg("title", {}, node.bigram ? `${node.text}, ${priority(node.bigram)}` : node.text),
      svg("rect", {
        ...{ x: middle(node) - w / 2, y: y(node), width: w, height: node.bigram ? 38 : 26, rx: 6 },
        ...growing(node),
      }),
      texts,
      node.bigram ? svg("text", { ...below, class: "small" }, priority(node.bigram)) : null,
    );
  });
  const name = say("captions.merge_tree", { n: done });
  return drawing(name, x.at(-1) + 2, top + levels * LEVEL + 42, brackets, lines, boxes);
}

/** The characters that are more than one symbol, among the symbols `from` to `to`. */
function bracketed(bytes, offsets, from, to) {
  const found = [];
  for (let at = from; at < to; ) {
    const end = offsets[at] + lengthOfCharacter(bytes[offsets[at]]);
    let last = at + 1;
    while (last < to && offsets[last] < end) last++;
    const text = last > at + 1 && offsets[last] === end ? decoded(bytes.subarray(offsets[at], end)) : null;
    if (text !== null) found.push({ text, from: at, to: last });
    at = text === null ? at + 1 : last;
  }
  return found;
}

/** The queue before the next pop, in the order in which it will be emptied, as a table. */
function queueTable(merging, done) {
  const { pops, entered } = merging;
  const from = done ? merging.merges[done - 1].pop + 1 : 0;
  const waiting = pops.map((_, at) => at).filter((at) => at >= from && entered[at] < from);
  if (!waiting.length) return [muted("The queue is empty: no pair is left that can merge.")];
  const cellsOf = (at) => {
    const { bigram, stale } = pops[at];
    return [priority(bigram), mono(bigram.text), bigram.left, bigram.right, bigram.token, WHY_STALE[stale] ?? ""];
  };
  const names = ["priority", "spelled", "left#", "right#", "token#", "what becomes of it"];
  const rows = table("Queue", names, waiting.slice(0, QUEUE), cellsOf);
  const more = waiting.length - QUEUE;
  return [rows, more > 0 ? muted(`and ${more.toLocaleString("en")} more`) : null];
}

const WHY_STALE = {
  left_gone: "dropped: its left symbol merges with the one before it",
  right_gone: "dropped: its right symbol merges with another",
  text_changed: "dropped: one of its symbols grows",
};

function symbolTable(merging, done) {
  const rows = symbolsAfter(merging, done ? merging.merges[done - 1].pop + 1 : 0);
  const names = ["symbol#", "spelled", "n#", "prev#", "next#"];
  return table(
    "Symbols",
    names,
    rows,
    ({ index, text, n, prev, next }) => (n ? [index, mono(text), n, prev, next] : [index, "merged", 0, "", ""]),
    { mark: ({ n }) => ({ class: n ? null : "gone" }) },
  );
}
