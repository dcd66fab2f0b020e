/* WordPiece, RWKV and the test kind, which take the longest token that fits, and Unigram's normalization; with the walks
 * through tries, byte by byte, which are folded below. */

const printable = (byte) => (byte > 0x20 && byte < 0x7f ? String.fromCharCode(byte) : byte === 0x20 ? "␣" : "");
const hexAndCharacter = (byte) => `${hex(byte)} ${printable(byte)}`;

/** A row of cells, of which those up to `step` have lit up. A cell is `{head, lines, state}`. */
function cellRow(name, cells, step) {
  const shown = cells.map((cell, i) =>
    el(
      "li",
      {
        class: `step-cell ${i > step ? "later" : (cell.state ?? "")}${i === step ? " now" : ""}`,
        "aria-current": i === step ? "step" : null,
      },
      el("strong", { class: "mono" }, cell.head),
      cell.lines.map((line) => el("span", {}, line)),
    ),
  );
  const now = shown[Math.min(step, shown.length - 1)];
  return scroller(name, el("ol", { class: "cells" }, shown), now && (() => now.offsetLeft));
}

/** The fields of an XCDA unit that is a node: name, first and last bit, colour. */
const NODE_FIELDS = [
  ["LCHECK flag", 31, 31, 3],
  ["BASE", 30, 10, 0],
  ["wide", 9, 9, 1],
  ["LEAF", 8, 8, 2],
  ["LCHECK", 7, 0, 3],
];
/** The fields of a unit that is a value. */
const VALUE_FIELDS = [
  ["is a value", 31, 31, 3],
  ["VALUE", 30, 0, 1],
];

/** A unit as bits, grouped and coloured by field. */
function bitField(index, unit) {
  const bits = unit.toString(2).padStart(32, "0");
  const groups = (unit >>> 31 ? VALUE_FIELDS : NODE_FIELDS).map(([name, from, to, tone]) =>
    el(
      "div",
      { class: `bit-group token-${tone}` },
      el("span", { class: "small" }, from === to ? String(from) : `${from}–${to}`),
      el("code", {}, bits.slice(31 - from, 32 - to)),
      el("span", { class: "small" }, name),
    ),
  );
  return [
    el("h4", {}, `Unit ${index}: 0x${unit.toString(16).padStart(8, "0")}`),
    scroller("Bits of the unit", el("div", { class: "bits" }, groups)),
  ];
}

function xcdaCaption(cell) {
  let what = `where LCHECK is ${hex(cell.lcheck & 0xff)}: another byte, so the walk ends.`;
  if (cell.unit == null) what = "beyond the array: the walk ends.";
  else if (cell.unit >>> 31) what = "which is a value: the walk ends.";
  else if (cell.matched)
    what = `where LCHECK is ${hex(cell.lcheck & 0xff)}: the byte matches${cell.leaf ? ", and a key ends here" : ""}.`;
  return `Byte ${hex(cell.byte)} leads to node ${cell.node}, ${what}`;
}

/** A walk through an XCDA as far as a step, with the bits of its unit. */
function xcdaWalk(walk, step, name) {
  const now = walk[step];
  if (!now) return [];
  const linesOf = ({ unit, base, lcheck, leaf, value }) => {
    if (unit == null) return ["beyond the array"];
    if (unit >>> 31) return ["a value"];
    const key = leaf ? `LEAF, value ${value ?? ""}` : "no LEAF";
    return [`BASE ${base}`, `LCHECK ${hexAndCharacter(lcheck & 0xff)}`, key];
  };
  const cells = walk.map((one) => ({
    head: hexAndCharacter(one.byte),
    lines: [`node ${one.node}`, ...linesOf(one)],
    state: one.matched ? "hit" : "miss",
  }));
  return [cellRow(name, cells, step), now.unit == null ? null : bitField(now.node, now.unit)].flat();
}

/** What a character map made of a part of the text, as the key of a sentence. */
function outcomeOf({ outcome, replacement, appended }) {
  if (outcome === "user_defined") return outcome;
  if (appended === "") return replacement === " " ? "space" : "dropped";
  return outcome;
}

/** Unigram's rewriting of a text: one step, in which each part that is looked up is one. */
function normalizeUnit({ prefixes }, before, after, first) {
  const face = ({ start, end }) => faceOf(before.subarray(start, end));
  const hasPrefix = label(prefixes[0].appended).startsWith("▁") && !label(prefixes[0].replacement).startsWith("␣");
  const sizeOf = (parts) => parts.reduce((sum, { appended }) => sum + bytesOf(appended).length, 0);
  return {
    stage: "normalize",
    title: "Rewriting",
    tokens: [first, first],
    length: prefixes.length,
    opens: true,
    caption(step) {
      const part = prefixes[step];
      return said(`captions.rewrite_${outcomeOf(part)}`, { text: face(part), after: label(part.appended) });
    },
    draw(step) {
      const { start, end } = prefixes[step];
      const from = Math.max(0, step - 20);
      const line = (text, low, now, high, rest) => {
        const parts = [label(text.subarray(low, now)), el("mark", {}, label(text.subarray(now, high))), rest];
        return el("p", { class: "mono text-view" }, low ? "… " : "", parts);
      };
      const read = line(before, prefixes[from].start, start, end, short(label(before.subarray(end)), 60));
      const arrow = el("p", { class: "muted", "aria-label": "becomes" }, "↓");
      const [low, size] = [sizeOf(prefixes.slice(0, from)), sizeOf(prefixes.slice(from, step))];
      const written = line(after, low, low + size, low + size + sizeOf([prefixes[step]]), "");
      return [el("div", { class: "rewriting" }, read, arrow, written)];
    },
    folds(step) {
      const { walk } = prefixes[step];
      if (!walk.length) return [];
      const lines = () => el("ol", {}, walk.map((cell) => el("li", {}, xcdaCaption(cell))));
      return [["Walk through the character map", () => [...xcdaWalk(walk, walk.length - 1, "Walk"), lines()]]];
    },
    summary: {
      caption() {
        const changed = prefixes.filter((part) => ["replaced", "invalid", "dropped"].includes(outcomeOf(part)));
        const example = changed[0] && { before: face(changed[0]), after: label(changed[0].appended) || "nothing" };
        const isSame = !changed.length && label(before) !== label(after);
        return [
          ...(isSame ? [] : said(countedKey("captions.normalized", changed.length), { n: changed.length, ...example })),
          ...(before.includes(0x20) ? said("captions.spaces") : []),
          ...(hasPrefix ? said("captions.spaces_prefix") : []),
        ];
      },
      draw: () => [beforeAndAfter(before, after)],
    },
  };
}

// WordPiece

const FAILURES = 3; // longer texts that a drawing shows: the caption counts them

/** The tries of a word, one for each place in it where a token begins: the longer texts that are none, and the last. */
function triesOf(word) {
  const tries = [];
  for (const attempt of word.attempts) {
    if (tries.at(-1)?.start !== attempt.start) tries.push({ start: attempt.start, all: [] });
    // Bytes that are not whole characters are looked up too, and are never found.
    if (attempt.token != null || decoded(bytesOf(attempt.text)) !== null) tries.at(-1).all.push(attempt);
  }
  return tries.map(({ start, all }) => ({ start, longer: all.slice(0, -1), last: all.at(-1) }));
}

function wordUnit(word, title, tokens) {
  const text = bytesOf(word.text);
  const tries = triesOf(word);
  const kind = word.is_unknown ? "way" : "taken";
  const taken = tries
    .filter(({ last }) => last.token != null)
    .map(({ last }, at) => ({ from: last.start, to: last.end, kind, token: tokens[0] + at }));
  const places = placesOf(text);
  const face = faceOf(text);
  const token = word.tokens[0];
  const result = (upto) => taken.slice(0, upto).map(({ from, to }) => faceOf(text.subarray(from, to))).join(" · ");
  return {
    stage: "match",
    title,
    tokens,
    length: tries.length,
    opens: true,
    decides(step) {
      if (word.is_unknown) return step === tries.length - 1 ? [tokens] : [];
      return [[tokens[0], tokens[0] + step + 1]];
    },
    stepOf: (one) => (word.is_unknown ? tries.length - 1 : one - tokens[0]),
    tokensAt: (step) => (word.is_unknown ? tokens : [tokens[0] + step, tokens[0] + step + 1]),
    caption(step) {
      const { longer, last } = tries[step];
      const found = { text: label(last.text), token: last.token };
      if (last.token == null) {
        const before = result(step) || say("captions.beginning");
        return said("captions.nothing_fits", { ...found, before, token });
      }
      if (!longer.length) return said("captions.found", found);
      const names = listed(longer.map((each) => label(each.text)));
      return said(countedKey("captions.found_after", longer.length), { ...found, n: longer.length, longer: names });
    },
    draw(step, { width }) {
      const { start, longer, last } = tries[step];
      const absent = last.token == null ? [...longer, last] : longer;
      const note = say("captions.note_absent");
      const rows = absent
        .slice(0, FAILURES)
        .map(({ start: from, end: to }, at) => [{ from, to, kind: "loses", note, delay: at * APART }]);
      const n = absent.length - FAILURES;
      if (n > 0) rows.push([{ from: start, to: start, note: say(countedKey("captions.note_more", n), { n }) }]);
      const found = { from: last.start, to: last.end, kind: "wins", delay: rows.length * APART };
      if (last.token != null) rows.push([{ ...found, note: say("captions.note_token", { token: last.token }) }]);
      return drawSpans(text, places, [taken.slice(0, step), ...rows], { at: start, name: title, isHere: true, width });
    },
    folds: () => [["All that was looked up", () => attemptsTable(word)]],
    summary: {
      caption() {
        if (word.is_unknown) return said("captions.unknown_word", { text: face, token });
        if (taken.length === 1) return said("captions.piece_whole", { text: face, token });
        return said("captions.pieces", { text: face, result: result() });
      },
      draw({ width }) {
        const unknown = { from: 0, to: text.length, kind: "loses", delay: 0, note: say("captions.note_unknown") };
        const rows = word.is_unknown ? [unknown] : taken.map((each, at) => ({ ...each, delay: at * APART }));
        return drawSpans(text, places, [rows], { at: 0, name: title, width });
      },
    },
  };
}

const attemptsTable = ({ attempts }) =>
  table(
    "All that was looked up",
    ["start#", "end#", "text", "token#"],
    attempts,
    ({ start, end, text, token }) => [start, end, mono(text), token],
    { mark: ({ token }) => ({ class: token == null ? null : "new" }) },
  );

function wordPieceUnits(steps, fragment, first) {
  const { words, code_points: codePoints } = steps;
  const own = ranges(
    first,
    words.map((word) => word.tokens.length),
  );
  const changed = codePoints.find(({ code_point: before, lowercase }) => before !== lowercase);
  const split = {
    stage: "split",
    title: "Cutting into words",
    tokens: [first, first],
    length: 1,
    caption() {
      const caption = said(countedKey("captions.words", words.length), { n: words.length });
      if (!changed) return caption;
      const [before, after] = [changed.code_point, changed.lowercase].map((code) => label(String.fromCodePoint(code)));
      return [...caption, ...said("captions.letters_changed", { before, after })];
    },
    draw() {
      let end = 0;
      const cuts = words.map(({ text }) => ({ start: end, end: (end += bytesOf(text).length) }));
      const joined = new Uint8Array(end);
      words.forEach(({ text }, at) => joined.set(bytesOf(text), cuts[at].start));
      return pieceRow(joined, cuts);
    },
    folds: () => [["What becomes of each character", () => codePointTable(codePoints, fragment)]],
  };
  return [split, ...words.map((word, at) => wordUnit(word, titleOf("Word", at, words, word.text), own[at]))];
}

const codePointTable = (codePoints, fragment) =>
  table(
    "Code points",
    ["text", "code point", "NFD", "lower case", "classes", "role"],
    codePoints,
    ({ start, end, code_point: original, nfd, lowercase, classes, role }) => [
      mono(fragment.subarray(start, end)),
      ...[original, nfd, lowercase].map(codePoint),
      ...[classes.join(" "), role.replace("_", " ")],
    ],
  );

// RWKV and the test kind

const BEFORE = 80; // tokens that a drawing shows before a step's

/** A unit that makes one token of a text: `all` are `{start, end}`, and `rows(at)` what is drawn below the tokens. */
const oneToken = (text, places, all, first, what, more) =>
  all.map(({ start, end }, at) => ({
    stage: "match",
    title: titleOf(what, at, all, text.subarray(start, end)),
    tokens: [first + at, first + at + 1],
    length: 1,
    decides: true,
    draw(_, { width }) {
      const from = Math.max(0, at - BEFORE);
      const taken = all
        .slice(from, at + 1)
        .map((each, i) => ({ from: each.start, to: each.end, kind: "taken", token: first + from + i }));
      taken.at(-1).delay = 0;
      const name = say("stages.match");
      return drawSpans(text, places(), [taken, ...(more.rows?.(at) ?? [])], { at: start, name, isHere: true, width });
    },
    caption: () => more.caption(at),
    folds: () => more.folds?.(at) ?? [],
  }));

/** Places of a text for tokens that end inside characters, made once when they are first needed. */
function lazyPlaces(text, all) {
  let places = null;
  return () => (places ??= placesOf(text, all.map(({ end }) => end)));
}

function rwkvUnits({ matches }, text, first) {
  const shorterOf = ({ start, end, walk }) =>
    walk.flatMap((cell, at) => (cell.token != null && start + at + 1 < end ? [start + at + 1] : [])).reverse();
  const face = (start, end) => faceOf(text.subarray(start, end));
  const places = lazyPlaces(text, matches);
  return oneToken(text, places, matches, first, "Token", {
    caption(at) {
      const { start, end, token, is_unknown: isUnknown } = matches[at];
      const shorter = shorterOf(matches[at]);
      const values = { text: face(start, end), token, n: shorter.length + 1 };
      if (isUnknown) return said("captions.longest_none", values);
      if (!shorter.length) return said("captions.longest", values);
      return said("captions.longest_of", { ...values, shorter: listed(shorter.map((to) => face(start, to))) });
    },
    rows(at) {
      const note = say("captions.note_shorter");
      return shorterOf(matches[at])
        .filter((to) => places().includes(to))
        .map((to, i) => [{ from: matches[at].start, to, kind: "loses", note, delay: i * APART }]);
    },
    folds: (at) => [["Walk through the trie", () => trieWalk(matches[at], text)]],
  });
}

/** A walk through the trie of tokens, byte by byte. */
const trieWalk = ({ start, walk }, text) =>
  cellRow(
    "Walk through the trie",
    walk.map((cell, i) => ({
      head: hexAndCharacter(cell.byte),
      lines: [
        label(text.subarray(start, start + i + 1)),
        !cell.matched ? "no node" : cell.token != null ? `token ${cell.token}` : "no token",
      ],
      state: !cell.matched ? "miss" : cell.token != null ? "hit" : "",
    })),
    walk.length - 1,
  );

const testUnits = ({ groups }, text, first) =>
  oneToken(text, lazyPlaces(text, groups), groups, first, "Group", {
    caption(at) {
      const { start, end, hash, token } = groups[at];
      return said("captions.hash", { text: faceOf(text.subarray(start, end)), hash: rounded(hash), token });
    },
  });
