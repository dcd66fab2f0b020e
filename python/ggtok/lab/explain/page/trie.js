/* A double array of a few words: built word by word, packed as the units of an XCDA, and walked. */

const MAX_CELLS = 300; // of a large array, those around the step are drawn
const MAX_NODES = 150;

const IDEA = "Double array: all words share one table, and a letter leads from cell to cell";
const STAGES = { insert: "insert", pack: "pack", look_up: "look up" };

const byteName = (byte) => (byte == null ? "end" : printable(byte) || hex(byte));
const byteTitle = (byte) => (byte == null ? "The end mark" : `Byte ${quoted(Uint8Array.of(byte))}`);

/** The cells after the first `done` steps of an insertion: those before it, with what the steps changed. */
function cellsAfter(before, insertion, done) {
  if (done === insertion.steps.length) return insertion.cells;
  const cells = new Map(before.map((cell) => [cell.index, { ...cell }]));
  const at = (index) => {
    if (!cells.has(index)) cells.set(index, { index, base: 0, check: 0, text: null });
    return cells.get(index);
  };
  for (const step of insertion.steps.slice(0, done)) {
    let node = step.node;
    if (step.new_base != null) at(node).base = step.new_base;
    if (step.relocation) {
      const { node: parent, to_base: base, moves } = step.relocation;
      const texts = moves.map((move) => at(move.from).text);
      for (const move of moves) cells.set(move.from, { index: move.from, base: 0, check: 0, text: null });
      moves.forEach((move, i) => {
        cells.set(move.to, { index: move.to, base: move.base, check: parent, text: texts[i] });
        for (const child of move.children) at(child).check = move.to;
        if (move.from === node) node = move.to;
      });
      at(parent).base = base;
    }
    at(step.child).check = node;
    at(step.child).text ??= Uint8Array.of(...bytesOf(at(node).text), ...(step.byte == null ? [] : [step.byte]));
  }
  return Array.from(cells.values()).sort((one, other) => one.index - other.index);
}

/** The array as a table with a column per cell. `lit` maps cells to `from`, `hit`, `miss` or `moved`. */
function cellArray(cells, lit, middle) {
  const [from, to] = windowAround(cells.findIndex((cell) => cell.index === middle), MAX_CELLS, cells.length);
  const here = cells.slice(Math.max(0, from), to);
  const columns = here.map((cell) => lit.get(cell.index) ?? (cell.text == null ? "free" : ""));
  const row = (name, value) => {
    const values = here.map((cell, i) => el("td", { class: columns[i] }, value(cell)));
    return el("tr", {}, el("th", { scope: "row" }, name), values);
  };
  const heads = here.map((cell, i) => el("th", { scope: "col", class: columns[i] }, String(cell.index)));
  const body = el(
    "tbody",
    {},
    row("BASE", (cell) => (cell.text == null ? "·" : number(cell.base))),
    row("CHECK", (cell) => (cell.text == null ? "·" : number(cell.check))),
    row("text", (cell) => (cell.text == null ? "" : mono(cell.text))),
  );
  const head = el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "cell"), heads));
  const array = el("table", { class: "array", "aria-label": "Double array" }, head, body);
  const now = heads[here.findIndex((cell) => cell.index === middle)];
  return panel("Double array", scroller("Double array", array, now && (() => now.offsetLeft)));
}

/** The trie that the cells are: the root on the left, a row for each leaf. */
function trieTree(cells, lit) {
  const used = cells.filter((cell) => cell.text != null).slice(0, MAX_NODES);
  const children = new Map();
  for (const cell of used) {
    if (!children.has(cell.check)) children.set(cell.check, []);
    children.get(cell.check).push(cell);
  }
  const nodes = [];
  let rows = 0;
  const visit = (cell, depth) => {
    const own = (children.get(cell.index) ?? []).filter((child) => child !== cell);
    const below = own.map((child) => visit(child, depth + 1));
    const y = below.length ? (below[0].y + below.at(-1).y) / 2 : rows++;
    const node = { cell, depth, y, below };
    nodes.push(node);
    return node;
  };
  for (const root of children.get(0) ?? []) visit(root, 0);
  const x = (node) => 8 + node.depth * 90;
  const y = (node) => 8 + node.y * 42;
  const line = (node, child) => {
    const d = `M${x(node) + 64} ${y(node) + 16}H${x(node) + 77}V${y(child) + 16}H${x(child)}`;
    return svg("path", { class: "branch", d });
  };
  const lines = nodes.flatMap((node) => node.below.map((child) => line(node, child)));
  const boxes = nodes.map((node) => {
    const text = bytesOf(node.cell.text);
    const name =
      node.depth === 0 ? "root" : node.cell.base < 0 ? `value ${-1 - node.cell.base}` : byteName(text.at(-1) ?? null);
    return svg(
      "g",
      { class: `node ${lit.get(node.cell.index) ?? ""}` },
      svg("rect", { x: x(node), y: y(node), width: 64, height: 32, rx: 6 }),
      svg("text", { x: x(node) + 32, y: y(node) + 14, class: "mono" }, name),
      svg("text", { x: x(node) + 32, y: y(node) + 27, class: "small" }, `cell ${node.cell.index}`),
    );
  });
  const depth = Math.max(0, ...nodes.map((node) => node.depth));
  return scroller("Trie", drawing("Trie", depth * 90 + 84, Math.max(1, rows) * 42 + 10, lines, boxes));
}

function insertionUnit(trie, at) {
  const insertion = trie.insertions[at];
  const word = trie.words[insertion.word];
  const before = at ? trie.insertions[at - 1].cells : [{ index: 1, base: 0, check: 0, text: "" }];
  return {
    stage: "insert",
    title: `Insert ${label(word)}`,
    length: insertion.steps.length,
    caption(step) {
      const one = insertion.steps[step];
      if (!one) return "The word is already there.";
      const base = one.new_base != null ? ` Node ${one.node} gets BASE ${one.new_base}.` : "";
      const lead = `${byteTitle(one.byte)} has the number ${one.code}.${base} Cell ${one.cell} `;
      if (one.outcome === "followed") return `${lead}has CHECK ${one.node}: the child exists.`;
      if (one.outcome === "placed") return `${lead}is free: the child goes there.`;
      const conflict = `${lead}is a conflict: its CHECK is ${one.check}.`;
      if (!one.relocation) return conflict;
      const { node, from_base: from, to_base: to, moves } = one.relocation;
      const moved = moves.map((move) => `${byteName(move.byte)} from ${move.from} to ${move.to}`).join(", ");
      return (
        `${conflict} Node ${node} moves its children from BASE ${from} to ${to}: ${moved}. ` +
        `The child goes to cell ${one.child}.`
      );
    },
    draw(step) {
      const one = insertion.steps[step];
      const cells = cellsAfter(before, insertion, step + 1);
      const lit = new Map();
      if (one) {
        for (const move of one.relocation?.moves ?? []) lit.set(move.from, "miss").set(move.to, "moved");
        lit.set(one.node, "from").set(one.child, "hit");
      }
      return [trieTree(cells, lit), cellArray(cells, lit, one?.child ?? 1)];
    },
  };
}

function packedUnit({ xcda }) {
  return {
    stage: "pack",
    title: "Packed as XCDA units",
    length: xcda.units.length,
    caption(step) {
      const unit = xcda.units[step];
      const { index, role, base, text } = unit;
      if (role === "value") return `Unit ${index} is the value ${unit.value} of ${quoted(text)}.`;
      const what = role === "root" ? "the root" : `the node of ${quoted(text)}`;
      const end = unit.leaf ? " A word ends here: its value is in the child for byte 0." : "";
      return `Unit ${index} is ${what}: its children are at ${index} ⊕ ${base} ⊕ byte.${end}`;
    },
    draw(step) {
      const unit = xcda.units[step];
      const yes = (flag) => (flag ? "yes" : "");
      const columns = [
        ...[["unit", "number"], ["text", "text"], ["role"], ["BASE", "number"]],
        ...[["wide"], ["LEAF"], ["LCHECK"], ["value", "number"]],
      ];
      const rows = xcda.units.map(({ index, text, role, base, is_wide: isWide, leaf, lcheck, value }) => {
        const check = lcheck == null ? "" : hexAndCharacter(lcheck & 0xff);
        return [[index, text, role, base, yes(isWide), yes(leaf), check, value]];
      });
      return [...bitField(unit.index, unit.unit), panel(`Units in use, of ${xcda.num_units}`, table({ title: "Units", columns, rows }, step))];
    },
  };
}

function lookupUnits(trie, lookup) {
  const name = label(lookup.text);
  const result = lookup.value == null ? "It is none of the words." : `It is word ${lookup.value}.`;
  const last = (steps, step) => step === steps.length - 1;
  const arrays = {
    stage: "look_up",
    title: `Look up ${name} in BASE and CHECK`,
    length: lookup.steps.length,
    caption(step) {
      const one = lookup.steps[step];
      if (!one) return result;
      const { node, base, code, cell } = one;
      const check = one.check ?? "beyond the array";
      let found = `leads from node ${node} to ${base} + ${code} = ${cell}, where CHECK is ${check}`;
      if (code == null) found = "is in none of the words";
      else if (cell == null) found = `cannot go on from node ${node}, which has no children`;
      const end = last(lookup.steps, step) ? ` ${result}` : "";
      return `${byteTitle(one.byte)} ${found}: ${one.matched ? "a child." : "the walk ends."}${end}`;
    },
    draw(step) {
      const lit = new Map();
      lookup.steps.slice(0, step + 1).forEach((one) => {
        lit.set(one.node, "hit");
        if (one.cell != null) lit.set(one.cell, one.matched ? "hit" : "miss");
      });
      const now = lookup.steps[step];
      return [trieTree(trie.cells, lit), cellArray(trie.cells, lit, now?.cell ?? now?.node ?? 1)];
    },
  };
  const longest = lookup.longest_prefix == null ? null : trie.words[lookup.longest_prefix];
  const found =
    longest === null ? "No word is a prefix of it." : `The longest word that it starts with is ${quoted(longest)}.`;
  const packed = {
    stage: "look_up",
    title: `Look up ${name} in the XCDA`,
    length: lookup.xcda.length,
    caption: (step) =>
      (lookup.xcda[step] ? xcdaCaption(lookup.xcda[step]) : "") +
      (last(lookup.xcda, step) || !lookup.xcda.length ? ` ${found}` : ""),
    draw: (step) => xcdaWalk(lookup.xcda, step, `Walk of ${name}`),
  };
  return [arrays, packed];
}

const trieUnits = (trie) => [
  ...trie.insertions.map((_, at) => insertionUnit(trie, at)),
  packedUnit(trie),
  ...trie.lookups.flatMap((lookup) => lookupUnits(trie, lookup)),
];

function trieView(view) {
  const { trie } = data;
  const facts = [plural(trie.words.length, "word"), plural(trie.cells.length, "cell")];
  byId("facts").textContent = [...facts, plural(trie.xcda.units.length, "unit")].join(" · ");
  const words = trie.words.map((word, at) => {
    const face = el("span", { class: "face" }, label(word));
    return el("span", { class: `token token-${at % 4}` }, face, el("span", { class: "id" }, String(at)));
  });
  const codes = trie.codes.flatMap(({ byte, code }) => [mono(byteName(byte)), ` ${code} `]);
  const head = [el("p", { class: "legend" }, words), el("p", {}, "Numbers of the bytes: ", codes)];
  const foot = [tablesOf(data.sections)];
  const names = Object.entries(STAGES);
  mountFrame(view, { idea: IDEA, names, units: trieUnits(trie), head, foot }, { links: true });
}
