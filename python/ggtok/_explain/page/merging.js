/* Merging, for SPM and BPE: the tree that grows from the symbols, the queue, and the symbols themselves, after any
 * number of steps. A state is worked out anew from the first step, which is one pass over the steps. */

const LEAVES = 40; // of a long text, the symbols around the step are drawn
const QUEUE = 400;

/** What is the same in all steps: the nodes that the merges will make, and when each bigram entered the queue. */
function prepareMerging({ symbols, queue, pops }) {
  const key = (bigram) => `${bigram.left} ${bigram.right} ${bigram.size}`;
  const entered = new Map(queue.map((bigram) => [key(bigram), -1]));
  pops.forEach((pop, at) => pop.added.forEach((bigram) => entered.set(key(bigram), at)));
  const nodes = symbols.map((symbol, at) => ({ text: symbol.text, from: at, to: at + 1, level: 0, born: -1 }));
  const place = new Map(symbols.map((symbol, at) => [symbol.index, at]));
  const top = nodes.slice();
  const popNodes = pops.map((pop, at) => {
    if (pop.stale) return null;
    const [left, right] = [top[place.get(pop.bigram.left)], top[place.get(pop.bigram.right)]];
    const level = Math.max(left.level, right.level) + 1;
    const { bigram } = pop;
    const node = { text: bigram.text, left, right, from: left.from, to: right.to, level, born: at, bigram };
    left.parent = right.parent = node;
    top[node.from] = node;
    nodes.push(node);
    return node;
  });
  return { symbols, pops, nodes, popNodes, place, entered: pops.map((pop) => entered.get(key(pop.bigram)) ?? -1) };
}

/** The symbols that are left after `step` pops, with their neighbours and texts. */
function symbolsAfter(merging, step) {
  const { symbols, pops, place } = merging;
  const n = symbols.map((symbol) => symbol.n);
  const next = symbols.map((symbol) => symbol.next);
  const prev = symbols.map((symbol) => symbol.prev);
  const topNode = merging.nodes.slice(0, symbols.length);
  for (let at = 0; at < step; at++) {
    if (pops[at].stale) continue;
    const [left, right] = [place.get(pops[at].bigram.left), place.get(pops[at].bigram.right)];
    n[left] += n[right];
    n[right] = 0;
    next[left] = next[right];
    if (next[right] >= 0) prev[place.get(next[right])] = symbols[left].index;
    topNode[left] = merging.popNodes[at];
  }
  return symbols.map(({ index }, at) => ({ index, n: n[at], prev: prev[at], next: next[at], text: topNode[at].text }));
}

const priority = (bigram) => (bigram.rank != null ? `rank ${number(bigram.rank)}` : `score ${number(bigram.score)}`);

const WHY_STALE = {
  left_gone: "its left symbol has merged into the symbol before it",
  right_gone: "its right symbol has merged into another",
  text_changed: "one of its symbols has grown since it was queued",
};

function mergingCaption(merging, step) {
  if (step === 0) {
    return (
      `${plural(merging.symbols.length, "symbol")}. The queue holds every pair of neighbours that can merge: ` +
      `${plural(merging.pops.filter((_, at) => merging.entered[at] < 0).length, "pair")}.`
    );
  }
  const { bigram, stale, added } = merging.pops[step - 1];
  const what = `${quoted(bigram.text)}, ${priority(bigram)},`;
  if (stale) return `${what} leaves the queue and is dropped: ${WHY_STALE[stale] ?? stale}.`;
  const more = added.length
    ? ` New in the queue: ${added.map((pair) => `${quoted(pair.text)} (${priority(pair)})`).join(", ")}.`
    : "";
  return `${what} leaves the queue first: symbols ${bigram.left} and ${bigram.right} merge.${more}`;
}

/** The tree of the symbols around the last step. `tokenOf(node)` is the place of a top node's token, or null. */
function mergeTree(merging, step, tokenOf) {
  const { symbols, nodes, popNodes, pops, place } = merging;
  const pop = pops[step - 1];
  const current = pop ? place.get(pop.bigram.left) : 0;
  const [from, to] = windowAround(current, LEAVES, symbols.length);
  const isHere = (node) => node.to > from && node.from < to;
  const here = nodes.filter((node) => node.born < step && isHere(node));
  const labels = new Map(here.map((node) => [node, short(label(node.text), 18)]));
  const widthOfNode = (node) =>
    Math.max(widthOf(labels.get(node)) * 8.5, node.bigram ? priority(node.bigram).length * 6 : 0);

  // Leaves are as wide as their text; a node that is wider than its leaves pushes them apart.
  const width = [];
  for (let leaf = from; leaf < to; leaf++) width.push(Math.max(26, widthOf(labels.get(nodes[leaf])) * 8.5 + 16));
  for (const node of here) {
    const [a, b] = [Math.max(node.from, from) - from, Math.min(node.to, to) - from];
    const wanted = widthOfNode(node) + 16;
    const has = width.slice(a, b).reduce((sum, w) => sum + w, 0);
    for (let leaf = a; leaf < b && has < wanted; leaf++) width[leaf] += (wanted - has) / (b - a);
  }
  const left = [8];
  for (const w of width) left.push(left.at(-1) + w);
  const middle = (node) => (left[Math.max(node.from, from) - from] + left[Math.min(node.to, to) - from]) / 2;
  const levels = Math.max(...here.map((node) => node.level));
  const y = (node) => (levels - node.level) * 58 + 6;

  const boxes = here.map((node) => {
    const w = widthOfNode(node) + 10;
    const isTop = !node.parent || node.parent.born >= step;
    const token = isTop && tokenOf ? tokenOf(node) : null;
    const state = pop && !pop.stale && node === popNodes[step - 1] ? " now" : "";
    return svg(
      "g",
      { class: `node${state}${token != null ? ` token-${token % 4}` : ""}`, "data-token": token },
      node.bigram ? svg("title", {}, `${label(node.text)}, ${priority(node.bigram)}`) : null,
      svg("rect", { x: middle(node) - w / 2, y: y(node), width: w, height: node.bigram ? 38 : 24, rx: 5 }),
      svg("text", { x: middle(node), y: y(node) + 17, class: "mono" }, labels.get(node)),
      node.bigram ? svg("text", { x: middle(node), y: y(node) + 32, class: "small" }, priority(node.bigram)) : null,
    );
  });
  const lines = here
    .filter((node) => node.left)
    .flatMap((node) =>
      [node.left, node.right]
        .filter(isHere)
        .map((child) =>
          svg("path", {
            class: "branch",
            d: `M${middle(node)} ${y(node) + 38}V${y(node) + 48}H${middle(child)}V${y(child)}`,
          }),
        ),
    );
  const name = `Merge tree after ${plural(step, "step")}`;
  const tree = drawing(name, left.at(-1) + 8, levels * 58 + 36, lines, boxes);
  return [
    partNote("Symbols", [from, to], symbols.length),
    scroller("Merge tree", tree, pop && (() => left[current - from])),
  ];
}

/** The queue before the next pop, in the order in which it will be emptied. */
function queueTable({ pops, entered }, step) {
  const waiting = pops.map((_, at) => at).filter((at) => at >= step && entered[at] < step);
  if (!waiting.length) return panel("Queue", muted("The queue is empty: no pair is left that can merge."));
  const rows = table(
    "Queue",
    ["priority", "text", "left#", "right#", "token#"],
    waiting.slice(0, QUEUE),
    (at) => {
      const { bigram } = pops[at];
      return [priority(bigram), mono(bigram.text), bigram.left, bigram.right, bigram.token];
    },
    { mark: (at) => ({ class: step > 0 && entered[at] === step - 1 ? "new" : null }) },
  );
  const more = waiting.length - QUEUE;
  return panel("Queue", rows, more > 0 ? muted(`and ${more.toLocaleString("en")} more`) : null);
}

function symbolTable(merging, step) {
  const pop = merging.pops[step - 1];
  const rows = table(
    "Symbols",
    ["symbol#", "text", "n#", "prev#", "next#"],
    symbolsAfter(merging, step),
    ({ index, n, prev, next, text }) => (n ? [index, mono(text), n, prev, next] : [index, "merged", 0, "", ""]),
    {
      now: pop ? merging.place.get(pop.bigram.left) : -1,
      mark: ({ n }) => (n && !pop?.stale ? {} : { class: n ? null : "gone" }),
    },
  );
  return panel("Symbols", rows);
}

/** Everything about one step of merging. */
function drawMerging(merging, step, tokenOf) {
  if (!merging.symbols.length) return [];
  return [
    ...mergeTree(merging, step, tokenOf),
    el("div", { class: "columns" }, queueTable(merging, step), symbolTable(merging, step)),
  ];
}
