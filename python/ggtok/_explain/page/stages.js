/* A trace as a sequence of stages: each is drawn by itself and has one or more steps. The slider runs through the steps
 * of all of them.
 *
 * A stage is `{title, length, caption(step), draw(step), tokens, stepOf(token), tokensAt(step)}`; `tokens` is the range
 * of tokens that it makes, and `stepOf` and `tokensAt` say which belongs to which step. */

function stagesOf(trace) {
  const stages = [];
  if (trace.special.length || trace.unread.length) stages.push(specialStage(trace));
  trace.fragments.forEach((fragment, at) => {
    const { steps, first_token: first, num_tokens: n } = fragment;
    const tokens = [first, first + n];
    const where = trace.fragments.length > 1 ? `Fragment ${at + 1} of ${trace.fragments.length}: ` : "";
    if (!steps) {
      const caption = () => `${quoted(trace.tokens[first]?.text)} is the special token ${fragment.token}.`;
      stages.push({ title: `${where}special token`, tokens, caption });
      return;
    }
    const bytes = trace.bytes.subarray(fragment.start, fragment.end);
    const made = STAGES[steps.kind](steps, bytes, first);
    for (const stage of made) stages.push({ tokens, ...stage, title: where + stage.title });
  });
  const nothing = { title: "Nothing to do", tokens: [0, 0], caption: () => "The text is empty." };
  return stages.length ? stages : [nothing];
}

/** The title of a part of the text, such as a piece. */
const titleOf = (what, at, all, text) => `${what} ${at + 1} of ${all.length}: ${short(label(text), 30)}`;

function specialStage(trace) {
  const rows = [...trace.special.map((match) => [match, true]), ...trace.unread.map((match) => [match, false])];
  const kind = (match) => match.attribute.replace("_", "-");
  return {
    title: "Special tokens",
    length: rows.length + 1,
    tokens: [0, 0],
    caption(step) {
      if (step === 0) return "Special tokens are searched in the text, the longest first.";
      const [match, read] = rows[step - 1];
      const result = read ? "read as a token, which cuts the text" : "not read, because parse_special is off";
      return `${quoted(match.text)} (${match.token}, ${kind(match)}) at ${match.start}: ${result}.`;
    },
    draw(step) {
      if (step === 0) return [];
      const names = ["text", "token#", "kind", "start#", "end#", "result"];
      const cellsOf = ([match, read]) => [
        ...[mono(match.text), match.token, kind(match), match.start, match.end],
        read ? "read" : "not read",
      ];
      return [table("Special tokens in the text", names, rows.slice(0, step), cellsOf, { now: step - 1 })];
    },
  };
}

/** Consecutive ranges of tokens for parts that become `counts[i]` tokens each. */
function ranges(first, counts) {
  let at = first;
  return counts.map((count) => [at, (at += count)]);
}

/** The stages of SPM: merging, and how what is left becomes tokens. */
function spmStages(steps, _, first) {
  const merging = prepareMerging(steps.merging);
  const ownTokens = ranges(first, steps.symbols.map(symbolTokens));
  // Where each token ends in the escaped text, and where each symbol starts.
  const ends = [];
  let end = 0;
  for (const symbol of steps.symbols) {
    const parts = symbol.token != null || !symbol.bytes.length ? [symbol] : symbol.bytes;
    const size = bytesOf(symbol.text).length / parts.length;
    for (const part of parts) {
      end += size;
      if (part.token != null) ends.push(end);
    }
  }
  const starts = [0];
  for (const symbol of merging.symbols) starts.push(starts.at(-1) + symbol.n);
  const tokenAt = (offset) => lastIndex(ends.length, (i) => (i ? ends[i - 1] : 0) <= offset);
  const left = (step) => (step ? merging.place.get(merging.pops[step - 1].bigram.left) : 0);
  const lastStep = new Map();
  merging.popNodes.forEach((node, at) => node && lastStep.set(tokenAt(starts[node.from]), at + 1));
  return [
    {
      title: "Merging",
      length: merging.pops.length + 1,
      caption: (step) => mergingCaption(merging, step),
      draw: (step) =>
        drawMerging(merging, step, step === merging.pops.length ? (node) => first + tokenAt(starts[node.from]) : null),
      stepOf: (token) => lastStep.get(token - first) ?? 0,
      tokensAt: (step) =>
        step ? [first + tokenAt(starts[left(step)]), first + tokenAt(starts[left(step)]) + 1] : null,
    },
    {
      title: "From symbols to tokens",
      length: steps.symbols.length,
      caption: (step) => (steps.symbols[step] ? `${symbolOutcome(steps.symbols[step])}.` : "No symbol is left."),
      draw: (step) => [
        table(
          "Symbols and their tokens",
          ["symbol", "token#", "bytes"],
          steps.symbols.slice(0, step + 1),
          ({ text, token, bytes }) => [
            ...[mono(text), token],
            bytes.map((byte) => `${label(byte.text)} ${byte.token ?? "none"}`).join(", "),
          ],
          { now: step, mark: (_, i) => ({ "data-token": ownTokens[i][0] }) },
        ),
      ],
      stepOf: (token) => lastIndex(ownTokens.length, (i) => ownTokens[i][0] <= token),
      tokensAt: (step) => ownTokens[step] ?? null,
    },
  ];
}

const symbolTokens = (symbol) => (symbol.token != null ? 1 : symbol.bytes.filter((byte) => byte.token != null).length);

function symbolOutcome({ text, token, bytes }) {
  if (token != null) return `${quoted(text)} is token ${token}`;
  return `${quoted(text)} is not a token; byte by byte it is ${bytes.map((byte) => byte.token ?? "dropped").join(" ")}`;
}

const REWRITTEN = {
  replaced: "bytes that are not UTF-8 were replaced",
  escaped: "spaces became ▁",
  lowercased: "letters became lower case",
  whitespace_dropped: "whitespace was dropped",
};
const CUT_ON = {
  code_points: "code points",
  collapsed: "text in which each character beyond ASCII stands for its category",
  code: "code points, by llama.cpp's own code",
};

/** The stages of byte-pair encoding: one for the patterns, and one for each piece. */
function bpeStages(steps, _, first) {
  const text = bytesOf(steps.text);
  const counts = steps.pieces.map((piece) =>
    piece.whole != null ? 1 : piece.symbols.reduce((sum, symbol) => sum + symbolTokens(symbol), 0),
  );
  const own = ranges(first, counts);
  const cutting = {
    title: "Cutting into pieces",
    length: steps.passes.length,
    tokens: [first, first],
    caption(step) {
      const rewritten = steps.rewritten.map((what) => ` First, ${REWRITTEN[what]}.`).join("");
      const pass = steps.passes[step];
      if (!pass) return `The family ${steps.family} has no pattern.${rewritten}`;
      return (
        `Pattern ${step + 1} of ${steps.passes.length} of the family ${steps.family}, on ${CUT_ON[pass.applied_to]}: ` +
        `${plural(pass.cuts.length, "piece")}.${step ? "" : rewritten}`
      );
    },
    draw(step) {
      const pass = steps.passes[step];
      if (!pass) return [];
      const alternatives = pass.alternatives.map((one) => el("li", {}, el("code", {}, one)));
      const whichOf = (at) => (at == null ? "between matches" : `${at + 1}: ${short(pass.alternatives[at], 40)}`);
      return [
        panel("Pattern", el("ol", { class: "pattern" }, alternatives)),
        table(
          "Pieces after this pattern",
          ["start#", "end#", "text", "alternative"],
          pass.cuts,
          ({ start, end, alternative }) => [start, end, mono(text.subarray(start, end)), whichOf(alternative)],
        ),
      ];
    },
  };
  const pieces = steps.pieces.map((piece, at) => {
    let merging; // made when it is first drawn
    const prepared = () => (merging ??= prepareMerging(piece.merging));
    const spelled = label(piece.spelled) === label(piece.text) ? "" : `, spelled ${quoted(piece.spelled)}`;
    const outcome = () => piece.symbols.map(symbolOutcome).join(", ");
    const tokenOf = (node) => {
      const before = prepared().nodes.filter((other) => !other.parent && other.from < node.from).length;
      return own[at][0] + piece.symbols.slice(0, before).reduce((sum, symbol) => sum + symbolTokens(symbol), 0);
    };
    return {
      title: titleOf("Piece", at, steps.pieces, piece.text),
      tokens: own[at],
      length: piece.whole != null ? 1 : piece.merging.pops.length + 1,
      caption(step) {
        if (piece.whole != null) return `${quoted(piece.text)}${spelled} is token ${piece.whole} as a whole.`;
        const last = step === piece.merging.pops.length ? ` At the end, ${outcome() || "nothing is left"}.` : "";
        return `${step ? "" : `${quoted(piece.text)}${spelled}. `}${mergingCaption(prepared(), step)}${last}`;
      },
      draw(step) {
        if (piece.whole != null) return [];
        return drawMerging(prepared(), step, step === piece.merging.pops.length ? tokenOf : null);
      },
    };
  });
  return steps.passes.length || !pieces.length ? [cutting, ...pieces] : pieces;
}

function wordPieceStages(steps, fragment, first) {
  const own = ranges(
    first,
    steps.words.map((word) => word.tokens.length),
  );
  const codePoints = {
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
      title: titleOf("Word", at, steps.words, word.text),
      tokens: own[at],
      ...wordAttempts(word, own[at][0]),
    })),
  ];
}

function dnaStages(steps, fragment, first) {
  const text = bytesOf(steps.text);
  let token = first;
  return steps.stretches.flatMap((stretch) => {
    const start = token;
    if (stretch.bpe) {
      const made = bpeStages(stretch.bpe, fragment, start);
      token = made.at(-1).tokens[1];
      return made;
    }
    const { tag, kmers } = stretch;
    token += tag != null ? 1 : kmers.length;
    const tokens = [start, token];
    if (tag != null || !kmers.length) {
      const title = `Tag ${label(text.subarray(stretch.start, stretch.end))}`;
      return [{ title, tokens, caption: () => `Token ${tag}.` }];
    }
    const cellOf = (kmer) => ({
      head: label(kmer.text),
      lines: [`token ${kmer.token}`],
      state: kmer.is_known ? "hit" : "miss",
    });
    const dna = {
      title: "DNA",
      length: kmers.length,
      tokens,
      caption(step) {
        const { text, is_known: isKnown, token } = kmers[step];
        return `${quoted(text)} is ${isKnown ? "" : "not in the vocabulary: "}token ${token}.`;
      },
      draw(step) {
        const shown = kmers.slice(Math.max(0, step - 39), step + 1);
        return [cellRow("Six letters each", shown.map(cellOf), shown.length - 1)];
      },
      stepOf: (one) => one - start,
      tokensAt: (step) => [start + step, start + step + 1],
    };
    return [dna];
  });
}

function testStages({ groups }, fragment, first) {
  return [
    {
      title: "Hashing",
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

const STAGES = {
  spm: spmStages,
  bpe: bpeStages,
  hybrid_dna: dnaStages,
  word_piece: wordPieceStages,
  unigram: unigramStages,
  plamo2: plamoStages,
  test: testStages,
  rwkv: (steps, fragment, first) =>
    steps.matches.map((match, at) => ({
      title: titleOf("Match", at, steps.matches, fragment.subarray(match.start, match.end)),
      tokens: [first + at, first + at + 1],
      ...trieWalk(match, fragment),
    })),
};
