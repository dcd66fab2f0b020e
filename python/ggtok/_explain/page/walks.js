/* Walks, for WordPiece, character maps (XCDA) and RWKV: what is looked up, byte by byte or text by text. */

const printable = (byte) => (byte > 0x20 && byte < 0x7f ? String.fromCharCode(byte) : byte === 0x20 ? "␣" : "");

/** A row of cells, of which those up to `step` have lit up. A cell is `{head, lines, state}`. */
function cellRow(name, cells, step) {
  const shown = cells.map((cell, i) => el(
    "li", { class: `step-cell ${i > step ? "later" : cell.state ?? ""}${i === step ? " now" : ""}`, "aria-current": i === step ? "step" : null },
    el("strong", { class: "mono" }, cell.head),
    cell.lines.map((line) => el("span", {}, line)),
  ));
  const box = scroller(name, el("ol", { class: "cells" }, shown));
  queueMicrotask(() => {
    const now = shown[Math.min(step, shown.length - 1)];
    if (now) box.scrollLeft = now.offsetLeft - box.clientWidth / 2;
  });
  return box;
}

/** The 32 bits of an XCDA unit in its fields. */
const XCDA_FIELDS = [
  { name: "LCHECK flag", from: 31, to: 31, tone: 3 },
  { name: "BASE", from: 30, to: 10, tone: 0 },
  { name: "wide", from: 9, to: 9, tone: 1 },
  { name: "LEAF", from: 8, to: 8, tone: 2 },
  { name: "LCHECK", from: 7, to: 0, tone: 3 },
];
const VALUE_FIELDS = [{ name: "is a value", from: 31, to: 31, tone: 3 }, { name: "VALUE", from: 30, to: 0, tone: 1 }];

/** A unit as bits, grouped and coloured by field. */
function bitField(unit, name) {
  const bits = (unit >>> 0).toString(2).padStart(32, "0");
  const fields = unit >>> 31 ? VALUE_FIELDS : XCDA_FIELDS;
  return scroller(name, el("div", { class: "bits" }, fields.map((field) => el(
    "div", { class: `bit-group token-${field.tone}` },
    el("span", { class: "small" }, field.from === field.to ? String(field.from) : `${field.from}–${field.to}`),
    el("code", {}, bits.slice(31 - field.from, 32 - field.to)),
    el("span", { class: "small" }, field.name),
  ))));
}

const xcdaCaption = (cell) => `Byte ${hex(cell.byte)} leads to node ${cell.node}, ` + (cell.unit == null ? "beyond the array: the walk ends."
  : cell.unit >>> 31 ? "which is a value: the walk ends."
    : `where LCHECK is ${hex(cell.lcheck & 0xff)}: ${cell.matched ? `the byte matches${cell.leaf ? ", and a key ends here" : ""}.` : "another byte, so the walk ends."}`);

/** A walk through an XCDA as far as a step, with the bits of its unit. */
function xcdaWalk(walk, step, name) {
  const cell = walk[step];
  if (!cell) return [];
  const cells = walk.map((one) => ({
    head: `${hex(one.byte)} ${printable(one.byte)}`,
    lines: one.unit == null ? [`node ${one.node}`, "beyond the array"] : one.unit >>> 31 ? [`node ${one.node}`, "a value"]
      : [`node ${one.node}`, `BASE ${one.base}`, `LCHECK ${hex(one.lcheck & 0xff)} ${printable(one.lcheck & 0xff)}`, one.leaf ? `LEAF, value ${one.value ?? ""}` : "no LEAF"],
    state: one.matched ? "hit" : "miss",
  }));
  return [
    cellRow(name, cells, step),
    ...(cell.unit == null ? [] : [el("h4", {}, `Unit ${cell.node}: 0x${cell.unit.toString(16).padStart(8, "0")}`), bitField(cell.unit, "Bits of the unit")]),
  ];
}

const OUTCOMES = {
  user_defined: "is a user-defined token and stays as it is",
  replaced: "is in the character map",
  copied: "is not in the character map and stays as it is",
  invalid: "is not UTF-8 and becomes U+FFFD",
};

/** Unigram's normalization: the steps are those of all walks, one prefix after the other. */
function normalization(steps, fragment) {
  const first = [0];
  for (const prefix of steps.prefixes) first.push(first.at(-1) + Math.max(1, prefix.walk.length));
  const find = (step) => {
    const at = lastIndex(steps.prefixes.length, (i) => first[i] <= step);
    return [at, step - first[at]];
  };
  return {
    length: first.at(-1),
    caption(step) {
      const [at, walked] = find(step);
      const prefix = steps.prefixes[at];
      const cell = prefix.walk[walked];
      const what = `${quoted(fragment.subarray(prefix.start, prefix.end))} ${OUTCOMES[prefix.outcome] ?? prefix.outcome}` +
        (prefix.outcome === "replaced" ? ` as ${quoted(prefix.replacement)}.` : ".");
      if (!cell) return what;
      const lead = xcdaCaption(cell);
      return walked === prefix.walk.length - 1 ? `${lead} ${what}` : lead;
    },
    draw(step) {
      const [at, walked] = find(step);
      const from = Math.max(0, at - 20);
      const done = steps.prefixes.slice(from, at + 1).map((before) => label(before.appended)).join("");
      return [
        ...xcdaWalk(steps.prefixes[at].walk, walked, "Walk through the character map"),
        el("p", {}, "Normalized so far: ", el("code", {}, `${from ? "… " : ""}${done}`)),
      ];
    },
  };
}

/** WordPiece: the attempts of one word, each under the part of the word that it looks up. */
function wordAttempts(word, first) {
  const text = bytesOf(word.text);
  const hits = word.is_unknown ? [] : word.attempts.flatMap((attempt, step) => (attempt.token != null ? [step] : []));
  return {
    stepOf: (token) => hits[token - first] ?? Math.max(0, word.attempts.length - 1),
    tokensAt(step) {
      const token = first + hits.filter((hit) => hit < step).length;
      return hits.length ? [token, token + 1] : null;
    },
    length: Math.max(1, word.attempts.length),
    caption(step) {
      const attempt = word.attempts[step];
      if (!attempt) return `${quoted(word.text)} became ${word.tokens.join(", ") || "nothing"}.`;
      const hit = attempt.token != null ? `is token ${attempt.token}.` : "is not in the vocabulary.";
      const end = step < word.attempts.length - 1 ? ""
        : word.is_unknown ? " No token fits here, so the whole word is unknown." : ` The word is ${word.tokens.join(", ")}.`;
      return `${quoted(attempt.text)} ${hit}${end}`;
    },
    draw(step) {
      const [from] = windowAround(step, 30, word.attempts.length);
      const rows = word.attempts.slice(from, step + 1).map((attempt, i) => el(
        "tr", { class: `${attempt.token != null ? "hit" : "miss"}${from + i === step ? " now" : ""}` },
        el("td", { class: "mono lookup" },
          el("span", { class: "rest" }, label(text.subarray(0, attempt.start))), el("mark", {}, label(attempt.text)),
          el("span", { class: "rest" }, label(text.subarray(attempt.end)))),
        el("td", {}, attempt.token != null ? `token ${attempt.token}` : "not in the vocabulary"),
      ));
      const note = from ? el("p", { class: "muted" }, `Attempts ${from + 1} to ${step + 1}.`) : null;
      const lookups = el("table", { class: "attempts", "aria-label": "Attempts" },
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "looked up"), el("th", { scope: "col" }, "found"))), el("tbody", {}, rows));
      return [note, scroller("Attempts", lookups)];
    },
  };
}

/** RWKV: one walk through the trie of tokens. */
function trieWalk(match, fragment) {
  return {
    length: Math.max(1, match.walk.length),
    caption(step) {
      const cell = match.walk[step];
      const taken = match.is_unknown ? `No token matched: the unknown token ${match.token}.`
        : `Token ${match.token}, ${quoted(fragment.subarray(match.start, match.end))}, is the longest met.`;
      if (!cell) return taken;
      const what = !cell.matched ? `No token goes on with byte ${hex(cell.byte)}: the walk ends.`
        : `Byte ${hex(cell.byte)}: ${cell.token != null ? `token ${cell.token} ends here.` : "no token ends here, but longer ones go on."}`;
      return step === match.walk.length - 1 ? `${what} ${taken}` : what;
    },
    draw: (step) => [cellRow("Walk through the trie", match.walk.map((cell, i) => ({
      head: `${hex(cell.byte)} ${printable(cell.byte)}`,
      lines: [label(fragment.subarray(match.start, match.start + i + 1)), !cell.matched ? "no node" : cell.token != null ? `token ${cell.token}` : "no token"],
      state: !cell.matched ? "miss" : cell.token != null ? "hit" : "",
    })), step)],
  };
}
