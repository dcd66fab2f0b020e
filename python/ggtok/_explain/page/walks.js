/* Walks, for WordPiece, character maps (XCDA) and RWKV: what is looked up, byte by byte or text by text. */

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
      const what =
        `${quoted(fragment.subarray(prefix.start, prefix.end))} ${OUTCOMES[prefix.outcome]}` +
        (prefix.outcome === "replaced" ? ` as ${quoted(prefix.replacement)}.` : ".");
      if (!cell) return what;
      return xcdaCaption(cell) + (walked === prefix.walk.length - 1 ? ` ${what}` : "");
    },
    draw(step) {
      const [at, walked] = find(step);
      const from = Math.max(0, at - 20);
      const done = steps.prefixes
        .slice(from, at + 1)
        .map((before) => label(before.appended))
        .join("");
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
    length: word.attempts.length,
    caption(step) {
      const attempt = word.attempts[step];
      if (!attempt) return `${quoted(word.text)} became ${word.tokens.join(", ") || "nothing"}.`;
      const hit = attempt.token != null ? `is token ${attempt.token}.` : "is not in the vocabulary.";
      const end =
        step < word.attempts.length - 1
          ? ""
          : word.is_unknown
            ? " No token fits here, so the whole word is unknown."
            : ` The word is ${word.tokens.join(", ")}.`;
      return `${quoted(attempt.text)} ${hit}${end}`;
    },
    draw(step) {
      const [from] = windowAround(step, 30, word.attempts.length);
      const rows = word.attempts
        .slice(from, step + 1)
        .map((attempt, i) =>
          el(
            "tr",
            { class: `${attempt.token != null ? "hit" : "miss"}${from + i === step ? " now" : ""}` },
            el(
              "td",
              { class: "mono lookup" },
              el("span", { class: "rest" }, label(text.subarray(0, attempt.start))),
              el("mark", {}, label(attempt.text)),
              el("span", { class: "rest" }, label(text.subarray(attempt.end))),
            ),
            el("td", {}, attempt.token != null ? `token ${attempt.token}` : "not in the vocabulary"),
          ),
        );
      const head = ["looked up", "found"].map((name) => el("th", { scope: "col" }, name));
      const lookups = el(
        "table",
        { class: "attempts", "aria-label": "Attempts" },
        el("thead", {}, el("tr", {}, head)),
        el("tbody", {}, rows),
      );
      return [from ? muted(`Attempts ${from + 1} to ${step + 1}.`) : null, scroller("Attempts", lookups)];
    },
  };
}

/** RWKV: one walk through the trie of tokens. */
function trieWalk(match, fragment) {
  return {
    length: match.walk.length,
    caption(step) {
      const cell = match.walk[step];
      const taken = match.is_unknown
        ? `No token matched: the unknown token ${match.token}.`
        : `Token ${match.token}, ${quoted(fragment.subarray(match.start, match.end))}, is the longest met.`;
      if (!cell) return taken;
      const end = cell.token != null ? `token ${cell.token} ends here` : "no token ends here, but longer ones continue";
      const what = cell.matched
        ? `Byte ${hex(cell.byte)}: ${end}.`
        : `No token continues with byte ${hex(cell.byte)}: the walk ends.`;
      return step === match.walk.length - 1 ? `${what} ${taken}` : what;
    },
    draw: (step) => [
      cellRow(
        "Walk through the trie",
        match.walk.map((cell, i) => ({
          head: hexAndCharacter(cell.byte),
          lines: [
            label(fragment.subarray(match.start, match.start + i + 1)),
            !cell.matched ? "no node" : cell.token != null ? `token ${cell.token}` : "no token",
          ],
          state: !cell.matched ? "miss" : cell.token != null ? "hit" : "",
        })),
        step,
      ),
    ],
  };
}

function wordPieceUnits(steps, fragment, first) {
  const own = ranges(
    first,
    steps.words.map((word) => word.tokens.length),
  );
  const codePoints = {
    stage: "normalize",
    length: 1,
    title: "Normalizing",
    tokens: [first, first],
    caption: () =>
      `${plural(steps.code_points.length, "code point")} lose accents and capitals, and make ` +
      `${plural(steps.words.length, "word")}.`,
    draw: () => [
      table(
        "Code points",
        ["text", "code point", "NFD", "lower case", "classes", "role"],
        steps.code_points,
        ({ start, end, code_point: original, nfd, lowercase, classes, role }) => [
          mono(fragment.subarray(start, end)),
          ...[original, nfd, lowercase].map(codePoint),
          ...[classes.join(" "), role.replace("_", " ")],
        ],
      ),
    ],
  };
  return [
    codePoints,
    ...steps.words.map((word, at) => ({
      stage: "match",
      opens: true,
      decides: true,
      title: titleOf("Word", at, steps.words, word.text),
      tokens: own[at],
      ...wordAttempts(word, own[at][0]),
    })),
  ];
}

function testUnits({ groups }, fragment, first) {
  return [
    {
      stage: "match",
      title: "Hashing",
      draw: () => [],
      decides: (step) => [[first, first + step + 1]],
      length: groups.length,
      caption(step) {
        const { start, end, token } = groups[step];
        return `${quoted(fragment.subarray(start, end))} is hashed to token ${token}.`;
      },
      stepOf: (token) => token - first,
      tokensAt: (step) => [first + step, first + step + 1],
    },
  ];
}

function rwkvUnits(steps, fragment, first) {
  return steps.matches.map((match, at) => ({
    stage: "match",
    opens: true,
    decides: true,
    title: titleOf("Match", at, steps.matches, fragment.subarray(match.start, match.end)),
    tokens: [first + at, first + at + 1],
    ...trieWalk(match, fragment),
  }));
}
