/* A trace as a sequence of units, such as a piece of BPE. Units with the same stage are together on the bar.
 *
 * A unit is `{stage, title, tokens, length, caption(step), draw(step, view), opens, summary, folds(step), decides}`.
 * `tokens` is the range of tokens that it is about. With `opens` it is one step, drawn by `summary`, until somebody
 * opens it; else all of its `length` steps are walked. `folds(step)` are `[name, make]` for what is folded below the
 * drawing. `decides` says which tokens are known after a step: true for all of `tokens` after the last, or a function
 * (step) → ranges. `stepOf(token)` and `tokensAt(step)` say which token belongs to which step, and `owns(token)` whether
 * one does that is not in `tokens`. `view` is `{width}`. */

/** The order of the stages on the bar. */
const ORDER = "special normalize split merge dna try back match tokens insert pack look_up".split(" ");

function unitsOf(trace) {
  const units = [];
  if (trace.special.length || trace.unread.length) units.push(specialUnit(trace));
  for (const fragment of trace.fragments) {
    const { steps, first_token: first, num_tokens: n } = fragment;
    if (!steps) continue;
    const bytes = trace.bytes.subarray(fragment.start, fragment.end);
    const tokens = [first, first + n];
    units.push(...UNITS[steps.kind](steps, bytes, first).map((unit) => ({ tokens, ...unit })));
  }
  return [...units, tokensUnit(trace)];
}

/** The title of a part of the text, such as a piece. */
const titleOf = (what, at, all, text) => `${what} ${at + 1} of ${all.length}: ${short(label(text), 30)}`;

function specialUnit(trace) {
  const rows = [...trace.special.map((match) => [match, true]), ...trace.unread.map((match) => [match, false])];
  const own = new Map(trace.fragments.filter(({ steps }) => !steps).map((fragment) => [fragment.start, fragment]));
  /** The range of a token that is read, in a list. */
  const tokensOf = ([{ start }, isRead]) => {
    const fragment = isRead ? own.get(start) : null;
    return fragment ? [[fragment.first_token, fragment.first_token + fragment.num_tokens]] : null;
  };
  const stepOf = (token) => 1 + rows.findIndex((row) => tokensOf(row)?.[0][0] === token);
  const cut = (end) => {
    const parts = [];
    let at = 0;
    for (const [{ start, end: to, text }] of rows.slice(0, end).sort(([a], [b]) => a.start - b.start)) {
      parts.push(label(trace.bytes.subarray(at, start)), el("mark", {}, label(text)));
      at = to;
    }
    return el("p", { class: "mono text-view" }, parts, label(trace.bytes.subarray(at)));
  };
  return {
    stage: "special",
    title: "Special tokens",
    length: rows.length + 1,
    tokens: [0, 0],
    caption(step) {
      if (step === 0) return said("captions.special_start");
      const [{ text, token }, isRead] = rows[step - 1];
      return said(isRead ? "captions.special_read" : "captions.special_unread", { text: label(text), token });
    },
    draw: (step) => [cut(step)],
    decides: (step) => rows.slice(0, step).flatMap((row) => tokensOf(row) ?? []),
    owns: (token) => stepOf(token) > 0,
    stepOf,
    tokensAt: (step) => (step ? tokensOf(rows[step - 1])?.[0] : null) ?? [0, 0],
  };
}

const TOKENS = 300;

/** The last step: the numbers. */
function tokensUnit(trace) {
  const { tokens, added_before: before, added_after: after } = trace;
  const characters = plural(trace.code_points.length, "character");
  const added = [
    ...(before == null ? [] : said("captions.added_before", { text: label(tokens[0].text) })),
    ...(after == null ? [] : said("captions.added_after", { text: label(tokens.at(-1).text) })),
  ];
  return {
    stage: "tokens",
    title: "Tokens",
    length: 1,
    tokens: [0, tokens.length],
    caption: () => [...said(countedKey("captions.tokens", tokens.length), { n: tokens.length, characters }), ...added],
    draw() {
      const chips = tokens.slice(0, TOKENS).map((token, at) => {
        const face = el("span", { class: "face" }, tokenFace(trace, at).line);
        const id = el("span", { class: "id" }, String(token.id));
        return el("span", { class: `token token-${at % 4}`, "data-token": at }, face, id);
      });
      const more = tokens.length - TOKENS;
      return [el("div", { class: "answer" }, chips), more > 0 ? muted(`and ${more.toLocaleString("en")} more`) : null];
    },
    decides: true,
  };
}

/** Consecutive ranges of tokens for parts that become `counts[i]` tokens each. */
function ranges(first, counts) {
  let at = first;
  return counts.map((count) => [at, (at += count)]);
}

const symbolTokens = (symbol) => (symbol.token != null ? 1 : symbol.bytes.filter((byte) => byte.token != null).length);

const MOST_TOLD = 12; // how many of the symbols that are left a caption names

/** What became of a symbol that is left. */
function symbolOutcome({ token, bytes }, text) {
  if (token != null) return said("captions.token", { text, token });
  const tokens = bytes.filter((byte) => byte.token != null).map((byte) => `${label(byte.text)} (${byte.token})`);
  if (!tokens.length) return said("captions.dropped", { text });
  return said("captions.bytes", { text, tokens: tokens.join(", ") });
}

/**
 * The unit of one word or piece. `merging` is its part of the steps, `symbols` what is left at the end, `kind` is
 * `bytes` or `characters`, and `sizes()` how many bytes each symbol has first.
 */
function mergeUnit({ title, bytes, merging, symbols, tokens, sizes, kind }) {
  let prepared; // made when it is first drawn
  const get = () => (prepared ??= prepareMerging(merging, bytes, sizes()));
  const own = ranges(tokens[0], symbols.map(symbolTokens));
  const tokenOf = (node) => own[get().result.indexOf(node)]?.[0] ?? null;
  const length = merging.pops.filter((pop) => !pop.stale).length + 1;
  const isLast = (step) => step === length - 1;
  /** What became of the symbols that are left: the first few, or those that are not simply a token. */
  const outcomes = (isRare) => {
    const { result } = get();
    const told = result.slice(0, isRare ? result.length : MOST_TOLD).flatMap((node, at) =>
      !isRare || symbols[at].token == null ? symbolOutcome(symbols[at], node.text) : [],
    );
    return isRare || result.length <= MOST_TOLD ? told : [...told, "…"];
  };
  return {
    stage: "merge",
    title,
    tokens,
    length,
    opens: true,
    decides: true,
    caption(step) {
      const caption = mergeCaption(get(), step, kind);
      return isLast(step) ? [...caption, ...said("captions.end"), ...outcomes(false)] : caption;
    },
    draw: (step, { width }) => mergeTree(get(), step, { width, tokenOf: isLast(step) ? tokenOf : undefined }),
    summary: {
      caption() {
        const { result, symbols: leaves, merges } = get();
        const text = faceOf(bytes);
        const rest = outcomes(true);
        if (leaves.length === 1) {
          const unit = kind === "bytes" ? "byte" : "character";
          return symbols[0]?.token == null ? rest : said("captions.single", { text, unit, token: symbols[0].token });
        }
        const isOne = result.length === 1 && symbols[0]?.token != null;
        const parts = get().nodes.slice(0, leaves.length);
        const values = {
          ...{ text, merges: merges.length, token: symbols[0]?.token },
          result: result.map((node) => node.text).join(" · "),
          parts: short(parts.map((node) => node.text).join(" "), 60),
        };
        const key = isOne ? "captions.word_whole" : "captions.word";
        return [...said(countedKey(key, merges.length), values), ...rest];
      },
      draw: ({ width }) => mergeTree(get(), length - 1, { width, tokenOf, isWhole: true }),
    },
    folds: (step) => [
      ["Queue: the pairs that wait", () => queueTable(get(), step)],
      ["Symbols as the vocabulary spells them", () => symbolTable(get(), step)],
    ],
  };
}

const LONGEST_WORD = 40;

/** SPM's merging, word by word. No merge goes over the end of a symbol that is left, so words are shown by themselves. */
function spmWords({ merging, symbols }) {
  const words = [];
  let left = -1;
  const wordOf = new Map();
  merging.symbols.forEach((symbol, at) => {
    const final = merging.merged[at];
    if (final.n) left++;
    const last = words.at(-1);
    const isLong = last && last.symbols.length >= LONGEST_WORD;
    if (final.n && (!last || isLong || label(final.text).startsWith("▁"))) {
      words.push({ symbols: [], queue: [], pops: [], left: [] });
    }
    const word = words.at(-1);
    word.symbols.push(symbol);
    if (final.n) word.left.push(symbols[left]);
    wordOf.set(symbol.index, word);
  });
  const isInside = ({ left: a, right: b }) => wordOf.get(a) === wordOf.get(b);
  for (const bigram of merging.queue) if (isInside(bigram)) wordOf.get(bigram.left).queue.push(bigram);
  for (const pop of merging.pops) {
    if (isInside(pop.bigram)) wordOf.get(pop.bigram.left).pops.push({ ...pop, added: pop.added.filter(isInside) });
  }
  return words;
}

function spmUnits(steps, fragment, first) {
  const escaped = bytesOf(steps.escaped);
  const words = spmWords(steps);
  const own = ranges(
    first,
    words.map(({ left }) => left.reduce((sum, symbol) => sum + symbolTokens(symbol), 0)),
  );
  const hasSpace = fragment.includes(0x20);
  const normalize = {
    stage: "normalize",
    title: "Spaces",
    tokens: [first, first],
    length: 1,
    caption: () => [
      ...said(hasSpace ? "captions.spaces" : "captions.spaces_none"),
      ...(steps.space_prefix ? said("captions.spaces_prefix") : []),
    ],
    draw: () => [beforeAndAfter(fragment, escaped)],
  };
  let end = 0;
  const units = words.map((word, at) => {
    const sizes = word.symbols.map((symbol) => symbol.n);
    const start = end;
    end += sizes.reduce((sum, n) => sum + n, 0);
    const bytes = escaped.subarray(start, end);
    const { symbols, queue, pops, left } = word;
    const merging = { symbols, queue, pops };
    const title = titleOf("Word", at, words, bytes);
    return mergeUnit({ title, bytes, merging, symbols: left, tokens: own[at], sizes: () => sizes, kind: "characters" });
  });
  return [normalize, ...units];
}

const SHOWN = 600;

/** A text over what it was rewritten to. */
function beforeAndAfter(before, after) {
  const line = (text) => el("p", { class: "mono text-view" }, short(label(text), SHOWN));
  return el("div", { class: "rewriting" }, line(before), muted("↓"), line(after));
}

const CUT_ON = {
  collapsed: ", on text in which each character beyond ASCII stands for its category",
  code: ", before which llama.cpp cuts the text in code",
};

/** Pieces side by side, as the pattern has cut them. */
function pieceRow(text, cuts) {
  const piece = ({ start, end }) => el("span", { class: "cut" }, label(text.subarray(start, end)));
  const pieces = cuts.slice(0, SHOWN).map(piece);
  const more = cuts.length - SHOWN;
  return [el("p", { class: "pieces mono" }, pieces), more > 0 ? muted(`and ${plural(more, "more piece")}`) : null];
}

function splitUnit(steps, text, first) {
  const count = steps.passes.length;
  const whichOf = (pass, at) => (at == null ? "between matches" : `${at + 1}: ${short(pass.alternatives[at], 40)}`);
  return {
    stage: "split",
    title: "Cutting into pieces",
    length: Math.max(1, count),
    tokens: [first, first],
    caption(step) {
      const n = steps.passes[step]?.cuts.length ?? steps.pieces.length;
      if (!count) return said("captions.split_none");
      const key = `captions.split${step < count - 1 ? "_part" : ""}${n === 1 ? "_one" : ""}`;
      return said(key, { n, at: step + 1, count });
    },
    draw: (step) => pieceRow(text, steps.passes[step]?.cuts ?? steps.pieces),
    folds(step) {
      const pass = steps.passes[step];
      if (!pass) return [];
      const names = ["start#", "end#", "text", "alternative"];
      const cellsOf = ({ start, end, alternative }) => [
        ...[start, end, mono(text.subarray(start, end))],
        whichOf(pass, alternative),
      ];
      return [
        [
          `Splitting pattern: ${steps.family}${CUT_ON[pass.applied_to] ?? ""}`,
          () => el("ol", { class: "pattern" }, pass.alternatives.map((one) => el("li", {}, el("code", {}, one)))),
        ],
        ["Pieces", () => table("Pieces", names, pass.cuts, cellsOf)],
      ];
    },
  };
}

/** The stages of byte-pair encoding: one for the patterns, and one for each piece; before them, what is rewritten. */
function bpeUnits(steps, fragment, first) {
  const text = bytesOf(steps.text);
  const normalize = {
    stage: "normalize",
    title: "Rewriting",
    tokens: [first, first],
    length: 1,
    caption: () => steps.rewritten.flatMap((what) => said(`captions.${what}`)),
    draw: () => [beforeAndAfter(fragment, text)],
  };
  const counts = steps.pieces.map((piece) =>
    piece.whole != null ? 1 : piece.symbols.reduce((sum, symbol) => sum + symbolTokens(symbol), 0),
  );
  const own = ranges(first, counts);
  const pieces = steps.pieces.map((piece, at) => {
    const title = titleOf("Piece", at, steps.pieces, piece.text);
    // A vocabulary that begins with bytes spells each byte as one letter.
    const letters = (spelled) => (typeof spelled === "string" ? Array.from(spelled).length : -1);
    const plain = bytesOf(piece.text);
    const isBytes = letters(piece.spelled) === plain.length;
    const bytes = isBytes ? plain : bytesOf(piece.spelled);
    if (piece.whole != null) {
      const face = label(piece.text);
      return {
        ...{ stage: "merge", title, tokens: own[at], length: 1, decides: true },
        caption: () => said("captions.whole", { text: face, token: piece.whole }),
        draw: () => [el("p", { class: "pieces mono" }, el("span", { class: `cut token-${own[at][0] % 4}` }, face))],
      };
    }
    const { merging, symbols } = piece;
    const sizes = () => merging.symbols.map((symbol) => (isBytes ? letters(symbol.text) : symbol.n));
    const kind = isBytes && plain.some((byte) => byte > 0x7f) ? "bytes" : "characters";
    return mergeUnit({ title, bytes, merging, symbols, tokens: own[at], sizes, kind });
  });
  return [...(steps.rewritten.length ? [normalize] : []), splitUnit(steps, text, first), ...pieces];
}

function dnaUnits(steps, _, first) {
  const text = bytesOf(steps.text);
  let token = first;
  return steps.stretches.flatMap((stretch) => {
    const start = token;
    if (stretch.bpe) {
      const made = bpeUnits(stretch.bpe, text.subarray(stretch.start, stretch.end), start);
      token = made.at(-1).tokens[1];
      return made;
    }
    const { tag, kmers } = stretch;
    token += tag != null ? 1 : kmers.length;
    const tokens = [start, token];
    const base = { stage: "dna", tokens, decides: true };
    if (tag != null || !kmers.length) {
      const name = label(text.subarray(stretch.start, stretch.end));
      const caption = () => said("captions.tag", { text: name, token: tag });
      return [{ ...base, title: `Tag ${name}`, length: 1, caption, draw: () => [] }];
    }
    const cellOf = (kmer) => ({
      head: label(kmer.text),
      lines: [`token ${kmer.token}`],
      state: kmer.is_known ? "hit" : "miss",
    });
    const dna = {
      ...base,
      title: "DNA",
      length: kmers.length,
      caption(step) {
        const { text, is_known: isKnown, token } = kmers[step];
        return said(isKnown ? "captions.dna" : "captions.dna_unknown", { text: label(text), token });
      },
      draw(step) {
        const shown = kmers.slice(Math.max(0, step - 39), step + 1);
        return [cellRow("Six letters each", shown.map(cellOf), shown.length - 1)];
      },
      decides: (step) => [[start, start + step + 1]],
      stepOf: (one) => one - start,
      tokensAt: (step) => [start + step, start + step + 1],
    };
    return [dna];
  });
}

const UNITS = {
  spm: spmUnits,
  bpe: bpeUnits,
  hybrid_dna: dnaUnits,
  word_piece: wordPieceUnits,
  unigram: unigramUnits,
  plamo2: plamoUnits,
  test: testUnits,
  rwkv: rwkvUnits,
};
