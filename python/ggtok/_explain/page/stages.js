/* A trace as a sequence of stages: each is drawn by itself and has one or more steps. The slider runs through the steps
 * of all of them.
 *
 * A stage is `{title, length, caption(step), draw(step), tokens, stepOf(token), tokensAt(step)}`; `tokens` is the range
 * of tokens that it makes, of which `stepOf` and `tokensAt` tell what belongs to which step. */

function stagesOf(trace) {
  const stages = [];
  if (trace.special.length || trace.unread.length) stages.push(specialStage(trace));
  trace.fragments.forEach((fragment, at) => {
    const { steps, first_token: first, num_tokens: n } = fragment;
    const tokens = [first, first + n];
    const where = trace.fragments.length > 1 ? `Fragment ${at + 1} of ${trace.fragments.length}: ` : "";
    if (!steps) {
      const text = trace.tokens[first]?.text;
      stages.push({
        title: `${where}special token`, length: 1, tokens,
        caption: () => `${quoted(text)} is the special token ${fragment.token}.`, draw: () => [],
      });
      return;
    }
    const bytes = trace.bytes.subarray(fragment.start, fragment.end);
    const made = STAGES[steps.kind]?.(steps, bytes, first, trace) ?? [];
    for (const stage of made) stages.push({ tokens, ...stage, title: where + stage.title });
  });
  if (!stages.length) stages.push({ title: "Nothing to do", length: 1, tokens: [0, 0], caption: () => "The text is empty.", draw: () => [] });
  return stages;
}

function specialStage(trace) {
  const found = trace.special;
  const rows = [...found.map((match) => [match, true]), ...trace.unread.map((match) => [match, false])];
  return {
    title: "Special tokens", length: rows.length + 1, tokens: [0, 0],
    caption(step) {
      if (step === 0) return "Special tokens are searched in the text, the longest first.";
      const [match, read] = rows[step - 1];
      return `${quoted(match.text)} (${match.token}, ${match.attribute.replace("_", "-")}) at ${match.start}: ` +
        (read ? "read as a token, which cuts the text." : "not read, because parse_special is off.");
    },
    draw: (step) => (step === 0 ? [] : [table(
      "Special tokens in the text", ["text", "token", "kind", "start", "end", ""], step,
      (i) => {
        const [match, read] = rows[i];
        return [mono(match.text), String(match.token), match.attribute.replace("_", "-"), String(match.start), String(match.end), read ? "read" : "not read"];
      },
      { mark: (i) => ({ class: i === step - 1 ? "new" : null }), numeric: [0, 1, 0, 1, 1, 0] },
    )]),
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
      title: "Merging", length: merging.steps,
      caption: (step) => mergingCaption(merging, step),
      draw: (step) => drawMerging(merging, step, step === merging.pops.length ? (node) => first + tokenAt(starts[node.from]) : null),
      stepOf: (token) => lastStep.get(token - first) ?? 0,
      tokensAt: (step) => (step ? [first + tokenAt(starts[left(step)]), first + tokenAt(starts[left(step)]) + 1] : null),
    },
    {
      title: "From symbols to tokens", length: Math.max(1, steps.symbols.length),
      caption: (step) => (steps.symbols[step] ? `${symbolOutcome(steps.symbols[step])}.` : "No symbol is left."),
      draw: (step) => {
        const rows = table("Symbols and their tokens", ["symbol", "token", "bytes"], step + 1, (i) => {
          const { text, token, bytes } = steps.symbols[i] ?? { text: "", bytes: [] };
          return [mono(text), number(token), bytes.map((byte) => `${label(byte.text)} ${byte.token ?? "none"}`).join(", ")];
        }, { mark: (i) => ({ class: i === step ? "new" : null, "data-token": ownTokens[i]?.[0] }), numeric: [0, 1, 0] });
        queueMicrotask(() => rows.show(step));
        return [rows];
      },
      stepOf: (token) => lastIndex(ownTokens.length, (i) => ownTokens[i][0] <= token),
      tokensAt: (step) => ownTokens[step] ?? null,
    },
  ];
}

const symbolTokens = (symbol) => (symbol.token != null ? 1 : symbol.bytes.filter((byte) => byte.token != null).length);
const symbolOutcome = (symbol) => (symbol.token != null ? `${quoted(symbol.text)} is token ${symbol.token}`
  : `${quoted(symbol.text)} is not a token; byte by byte it is ${symbol.bytes.map((byte) => byte.token ?? "dropped").join(" ")}`);
const REWRITTEN = {
  replaced: "bytes that are not UTF-8 were replaced", escaped: "spaces became ▁", lowercased: "capitals became small",
  whitespace_dropped: "whitespace was dropped",
};

/** The stages of byte-pair encoding: one for the patterns, and one for each piece. */
function bpeStages(steps, _, first) {
  const text = bytesOf(steps.text);
  const counts = steps.pieces.map((piece) => (piece.whole != null ? 1 : piece.symbols.reduce((sum, symbol) => sum + symbolTokens(symbol), 0)));
  const own = ranges(first, counts);
  const cutting = {
    title: "Cutting into pieces", length: Math.max(1, steps.passes.length), tokens: [first, first],
    caption(step) {
      const rewritten = steps.rewritten.map((what) => ` First, ${REWRITTEN[what] ?? what}.`).join("");
      const pass = steps.passes[step];
      if (!pass) return `The family ${steps.family} has no pattern.${rewritten}`;
      const on = { code_points: "code points", collapsed: "text in which each character beyond ASCII stands for its category", code: "code points, by code of its own" };
      return `Pattern ${step + 1} of ${steps.passes.length} of the family ${steps.family}, on ${on[pass.applied_to] ?? pass.applied_to}: ${plural(pass.cuts.length, "piece")}.` +
        (step ? "" : rewritten);
    },
    draw(step) {
      const pass = steps.passes[step];
      if (!pass) return [];
      return [
        panel("Pattern", el("ol", { class: "pattern" }, pass.alternatives.map((one) => el("li", {}, el("code", {}, one))))),
        table("Pieces after this pattern", ["start", "end", "text", "alternative"], pass.cuts.length, (i) => {
          const { start, end, alternative } = pass.cuts[i];
          return [String(start), String(end), mono(text.subarray(start, end)),
            alternative == null ? "between matches" : `${alternative + 1}: ${short(pass.alternatives[alternative] ?? "", 40)}`];
        }, { numeric: [1, 1, 0, 0] }),
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
      title: `Piece ${at + 1} of ${steps.pieces.length}: ${short(label(piece.text), 30)}`, tokens: own[at],
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
  const own = ranges(first, steps.words.map((word) => word.tokens.length));
  const codePoints = {
    title: "Normalizing", length: 1, tokens: [first, first],
    caption: () => `${plural(steps.code_points.length, "code point")} lose accents and capitals, and make ${plural(steps.words.length, "word")}.`,
    draw: () => [table(
      "Code points", ["text", "code point", "NFD", "lower case", "classes", "role"], steps.code_points.length,
      (i) => {
        const one = steps.code_points[i];
        return [mono(fragment.subarray(one.start, one.end)), codePoint(one.code_point), codePoint(one.nfd), codePoint(one.lowercase),
          one.classes.join(" "), one.role.replace("_", " ")];
      },
    )],
  };
  return [codePoints, ...steps.words.map((word, at) => ({
    title: `Word ${at + 1} of ${steps.words.length}: ${short(label(word.text), 30)}`, tokens: own[at], ...wordAttempts(word, own[at][0]),
  }))];
}

/** The stages of a lattice: what comes before it, the lattice, and the path. */
function latticeStages(lattice, title, ownSteps, first) {
  const within = (token, steps) => Math.max(0, steps.findIndex((path) => path.token === token));
  const tokenOf = (path) => (path.token == null ? null : [path.token, path.token + 1]);
  const stages = [];
  if (lattice.length) {
    stages.push({
      ...lattice, title: "Lattice",
      stepOf(token) {
        const from = ownSteps[within(token, ownSteps)]?.from;
        for (let step = 0; step < lattice.length; step++) if (lattice.at(step) === from) return step;
        return 0;
      },
      tokensAt(step) {
        const at = lattice.at(step);
        const path = ownSteps.find((one) => one.from <= at && at < one.to);
        return path ? tokenOf(path) : null;
      },
    });
  }
  if (lattice.back.length) {
    stages.push({ ...lattice.back, title, stepOf: (token) => within(token, ownSteps), tokensAt: (step) => tokenOf(ownSteps[step]) });
  }
  return stages;
}

function unigramStages(steps, fragment, first) {
  // The path runs from the end to the start; of steps that join, one writes a token.
  let token = first + steps.path.filter((step) => !step.joins_next).length;
  const own = steps.path.map((step) => ({ from: step.from, to: step.to, token: step.joins_next ? token : --token }));
  const before = steps.prefixes.length ? [{ ...normalization(steps, fragment), title: "Normalizing", tokens: [first, first] }] : [];
  return [...before, ...latticeStages(unigramLattice(steps), "The way back", own, first)];
}

function plamoStages(steps, _, first) {
  let token = first;
  const own = steps.path.map((step) => {
    const path = { from: step.start, to: step.end, token };
    token += step.token == null ? step.bytes.length : 1;
    return path;
  });
  return latticeStages(plamoLattice(steps), "The way", own, first);
}

function dnaStages(steps, fragment, first, trace) {
  const text = bytesOf(steps.text);
  let token = first;
  return steps.stretches.flatMap((stretch) => {
    const start = token;
    if (stretch.bpe) {
      const made = bpeStages(stretch.bpe, fragment, start);
      token = made.at(-1).tokens[1];
      return made;
    }
    token += stretch.tag != null ? 1 : stretch.kmers.length;
    const { kmers } = stretch;
    if (stretch.tag != null || !kmers.length) {
      return [{ title: `Tag ${label(text.subarray(stretch.start, stretch.end))}`, length: 1, tokens: [start, token], caption: () => `Token ${stretch.tag}.`, draw: () => [] }];
    }
    return [{
      title: "DNA", length: kmers.length, tokens: [start, token],
      caption: (step) => `${quoted(kmers[step].text)} is ${kmers[step].is_known ? "" : "not in the vocabulary: "}token ${kmers[step].token}.`,
      draw: (step) => [cellRow("Six letters each", kmers.slice(0, step + 1).slice(-40).map((kmer) => ({
        head: label(kmer.text), lines: [`token ${kmer.token}`], state: kmer.is_known ? "hit" : "miss",
      })), Math.min(step, 39))],
      stepOf: (one) => one - start, tokensAt: (step) => [start + step, start + step + 1],
    }];
  });
}

function testStages({ groups }, fragment, first) {
  return [{
    title: "Hashing", length: Math.max(1, groups.length),
    caption: (step) => (groups[step] ? `${quoted(fragment.subarray(groups[step].start, groups[step].end))} is hashed to token ${groups[step].token}.` : ""),
    draw: () => [],
    stepOf: (token) => token - first, tokensAt: (step) => [first + step, first + step + 1],
  }];
}

const STAGES = {
  spm: spmStages, bpe: bpeStages, hybrid_dna: dnaStages, word_piece: wordPieceStages, unigram: unigramStages,
  plamo2: plamoStages, test: testStages,
  rwkv: (steps, fragment, first) => steps.matches.map((match, at) => ({
    title: `Match ${at + 1} of ${steps.matches.length}: ${short(label(fragment.subarray(match.start, match.end)), 30)}`,
    tokens: [first + at, first + at + 1], ...trieWalk(match, fragment),
  })),
};
