/* Unigram and PLaMo-2, which search the best of all ways to cut a text: what could continue at each place, and then the
 * best way. */

const CHAIN = 80; // tokens of a way that are drawn
const NAMED = 2; // tokens that a caption names: the drawing has them all
const COST = 10_000; // what PLaMo-2 multiplies the logarithm of a probability by
const LONGEST_WAY = 12; // tokens of a word, which has no end in a text without spaces

/** Scores and costs as people read them. */
const rounded = (value) => {
  if (Number.isInteger(value)) return value.toLocaleString("en").replace("-", "−");
  return number(value == null ? null : Math.round(value * 100) / 100);
};

/** A cost as readers see it: as Unigram's scores are. */
const costOf = (value) => number(Math.round(value / (COST / 100)) / 100);

/** A table of the tokens that start at a place. */
const startingTokens = (at, columns, candidates, cellsOf) =>
  panel(
    `Tokens that start at byte ${at}`,
    table("Tokens that start here", columns, candidates, cellsOf, {
      mark: ({ wins }) => ({ class: wins ? "new" : null }),
    }),
  );

/** The tokens that start at a place, each in a row: the shortest first, with a note, `noteOf(token)`. */
const candidateRows = (candidates, noteOf, totalOf = rounded) =>
  [...candidates]
    .sort((one, other) => one.to - other.to)
    .map((each, at) => {
      const note = say(`captions.note_${noteOf(each)}`, { total: totalOf(each.total) });
      return [{ from: each.from, to: each.to, kind: each.wins ? "wins" : "loses", note, delay: at * APART }];
    });

/** The tokens that a caption names: the one that wins comes first. */
const mostTelling = (candidates) => [...candidates].sort((one, other) => other.wins - one.wins).slice(0, NAMED);

/** The range of the tokens of the word in which a place is. `words` are from the start to the end. */
const tokensAround = (words, at) => words[lastIndex(words.length, (i) => words[i].from <= at)]?.tokens;

/** Unigram: the places are from left to right, the way is walked back. */
function unigramUnits(steps, fragment, first) {
  const text = bytesOf(steps.normalized);
  const places = [...steps.positions.map((position) => position.at), text.length];
  const best = new Map(steps.best.map((row) => [row.at, row]));
  const words = wordsOfWay(steps.path, text, first);
  let runners = null; // made when one is first drawn
  const lattice = {
    ...{ text, places, best, words, steps },
    runnerUp: (word) => (runners ??= runnersUp(steps.positions, words, best)).get(word),
  };
  const tries = steps.positions.map((_, at) => tryUnit(lattice, at));
  const backs = words.map((_, at) => backUnit(lattice, at)).reverse();
  return [...(steps.prefixes.length ? [normalizeUnit(steps, fragment, text, first)] : []), ...tries, ...backs];
}

/** The words of the way, from the start to the end, each with its steps from its end to its start. */
function wordsOfWay(path, text, first) {
  const words = [];
  // The path runs from the end to the start; of steps that join, one makes a token.
  let token = first + path.filter((step) => !step.joins_next).length;
  let word = { steps: [], tokens: [0, token] };
  path.forEach((step, at) => {
    if (!step.joins_next) token--;
    word.steps.push({ from: step.from, to: step.to, id: step.token, joins: step.joins_next, token });
    const isStart = label(text.subarray(step.from, step.to)).startsWith("▁");
    const isFull = word.steps.length >= LONGEST_WAY && !path[at + 1]?.joins_next;
    if (!isStart && !isFull && at < path.length - 1) return;
    words.push({ ...word, from: step.from, to: word.steps[0].to, tokens: [token, word.tokens[1]] });
    word = { steps: [], tokens: [0, token] };
  });
  return words.reverse();
}

const candidatesAt = ({ at, candidates, unknown }) =>
  [...candidates, ...(unknown ? [unknown] : [])].map((each) => ({
    ...each,
    ...{ from: at, to: each.end, total: each.score_sum, isUnknown: each === unknown },
  }));

/** For each word the best other way from its start to its end that ends in another token. O(n) for n candidates. */
function runnersUp(positions, words, best) {
  const ends = new Map(words.map((word) => [word.to, word]));
  const found = new Map();
  for (const { from, to, total } of positions.flatMap(candidatesAt)) {
    const word = ends.get(to);
    if (!word || total == null || word.steps[0].from === from || from < word.from) continue;
    if (!(total <= found.get(word)?.total)) found.set(word, { total, parts: [{ from, to }] });
  }
  for (const [word, { parts }] of found) {
    while (parts[0].from > word.from) parts.unshift({ from: best.get(parts[0].from).from, to: parts[0].from });
    if (parts[0].from !== word.from) found.delete(word);
  }
  return found;
}

/** One place: which tokens could continue there, and which of them are kept. */
function tryUnit({ text, places, best, words, steps }, at) {
  const position = steps.positions[at];
  const row = best.get(position.at);
  const isBeginning = row?.token == null || row.from >= row.at;
  const face = ({ from, to }) => faceOf(text.subarray(from, to));
  const tried = ({ isUnknown, wins, champion, score, ...each }) => {
    const values = { text: face(each), score: rounded(score), total: rounded(each.total), champion: rounded(champion) };
    if (isUnknown) return said("captions.try_unknown", values);
    return said(champion == null ? "captions.try_new" : wins ? "captions.try_wins" : "captions.try_loses", values);
  };
  /** All tokens that end at a place start before it, so the best way to it is final once it is reached. */
  const way = () => {
    const found = [];
    for (let each = row; found.length < CHAIN && each?.token != null && each.at > each.from; ) {
      found.push({ from: each.from, to: each.at, kind: "way" });
      each = best.get(each.from);
    }
    return found;
  };
  return {
    stage: "try",
    title: `Position ${at + 1} of ${steps.positions.length}: before ${faceOf(text.subarray(position.at, places[at + 1]))}`,
    length: 1,
    tokens: tokensAround(words, position.at),
    caption() {
      const start = at ? [] : said("captions.try_start");
      if (position.score_sum == null) return [...start, ...said("captions.try_unreached")];
      const found = candidatesAt(position);
      const before = isBeginning
        ? say("captions.beginning")
        : say("captions.best_here", { text: face({ from: row.from, to: row.at }), total: rounded(row.score_sum) });
      const n = position.candidates.length;
      const here = said(countedKey("captions.try", n), { n, before });
      return [...start, ...here, ...(at ? mostTelling(found).flatMap(tried) : [])];
    },
    draw(_, { width }) {
      const rows = [way(), ...candidateRows(candidatesAt(position), ({ wins }) => (wins ? "wins" : "loses"))];
      return drawSpans(text, places, rows, { at: position.at, isHere: true, name: say("stages.try"), width });
    },
    folds: () => [["Tables of this position", () => unigramTables(steps, position, text)]],
  };
}

function unigramTables({ best }, position, text) {
  const reached = best.filter((row) => row.at <= position.at);
  const rows = table(
    "Best so far",
    ["at#", "token#", "text", "from#", "sum#"],
    reached,
    ({ at, token, from, score_sum: sum }) =>
      token == null ? [at, null, "", "", sum] : [at, token, mono(text.subarray(from, at)), from, sum],
    { now: reached.length - 1 },
  );
  const tokens = startingTokens(
    position.at,
    ["token#", "text", "score#", "sum#", "best before#", "result"],
    candidatesAt(position),
    ({ token, text, score, total, champion, wins }) => [
      ...[token, mono(text), score, total, champion ?? "none"],
      wins ? "wins" : "",
    ],
  );
  return el("div", { class: "columns" }, tokens, panel("Best so far", rows));
}

/** One word of the way, from its end to its start. */
function backUnit({ text, places, best, words, runnerUp }, at) {
  const word = words[at];
  const { steps, tokens } = word;
  const face = ({ from, to }) => faceOf(text.subarray(from, to));
  const sumAt = (place) => rounded(best.get(place)?.score_sum);
  const isLast = at === words.length - 1;
  /** The tokens that are known, which are on the right, and in the end the way that was nearly taken. */
  const draw = (done, isNew, { width }) => {
    const taken = steps
      .slice(0, done)
      .map((step, i) => ({ ...step, kind: "taken", delay: isNew(i) ? i * APART : null }));
    const after = words.slice(at + 1, at + 6).flatMap((one) => one.steps.map((step) => ({ ...step, kind: "taken" })));
    const other = done === steps.length ? runnerUp(word) : null;
    const rows = [[...taken, ...after]];
    if (other) {
      const note = say("captions.note_next", { total: rounded(other.total) });
      rows.push(other.parts.map((part) => ({ ...part, kind: "loses" })));
      rows.at(-1).at(-1).note = note;
    }
    const name = say("stages.back");
    return drawSpans(text, places, rows, { at: steps[done - 1].from, name, width });
  };
  return {
    stage: "back",
    title: titleOf("Word", at, words, text.subarray(word.from, word.to)),
    tokens,
    length: steps.length,
    opens: true,
    decides: (step) => [[steps[step].token, tokens[1]]],
    stepOf: (token) => steps.findIndex((step) => step.token === token),
    tokensAt: (step) => [steps[step].token, steps[step].token + 1],
    caption(step) {
      const { from, to, id, joins } = steps[step];
      const values = { text: face(steps[step]), from: sumAt(from), to: sumAt(to), token: id };
      return said(joins ? "captions.back_joins" : "captions.back", values);
    },
    draw: (step, view) => draw(step + 1, (i) => i === step, view),
    summary: {
      caption() {
        const start = isLast ? said("captions.back_start") : [];
        const result = steps.map(face).reverse().join(" · ");
        const other = runnerUp(word);
        const next = other && { text: other.parts.map(face).join(" · "), total: rounded(other.total) };
        const way = said("captions.way", { result, total: sumAt(word.to) });
        return [...start, ...way, ...(next ? said("captions.way_next", next) : [])];
      },
      draw: (view) => draw(steps.length, () => true, view),
    },
  };
}

/** PLaMo-2: the places are from right to left, and the way from left to right. */
function plamoUnits(steps, _, first) {
  const text = bytesOf(steps.text);
  const places = [...steps.positions.map((position) => position.at).reverse(), text.length];
  const byPlace = new Map(steps.positions.map((position) => [position.at, position]));
  const candidatesOf = ({ at, candidates }) =>
    candidates.map((each) => ({ ...each, from: at, to: at + bytesOf(each.text).length }));
  const own = ranges(
    first,
    steps.path.map(({ token, bytes }) => (token == null ? bytes.length : 1)),
  );
  const path = steps.path.map((step, at) => ({ ...step, from: step.start, to: step.end, tokens: own[at] }));
  const face = ({ from, to }) => faceOf(text.subarray(from, to));
  const kindOf = ({ wins, token }) => {
    if (token == null) return wins ? "bytes_win" : "unknown";
    return wins ? "wins" : "loses";
  };
  const valuesOf = (each) => ({ text: face(each), cost: costOf(each.cost), total: costOf(each.total) });
  const wayFrom = (place) => {
    const found = [];
    for (let at = place; byPlace.has(at) && found.length < CHAIN; at = found.at(-1).to) {
      const { from, to } = candidatesOf(byPlace.get(at)).find((each) => each.wins);
      found.push({ from, to, kind: "way" });
    }
    return found;
  };
  const count = steps.positions.length;
  const tries = steps.positions.map((position, at) => ({
    stage: "try",
    title: `Position ${count - at} of ${count}: before ${face({ from: position.at, to: places[count - at] })}`,
    length: 1,
    tokens: tokensAround(path, position.at),
    caption() {
      const found = candidatesOf(position);
      const named = mostTelling(found).flatMap((each) =>
        said(`captions.cost_${kindOf(each)}`, valuesOf(each)),
      );
      const start = at ? [] : said("captions.cost_start");
      const n = found.filter(({ token }) => token != null).length;
      return [...start, ...said(countedKey("captions.cost", n), { n }), ...named];
    },
    draw(_, { width }) {
      const found = candidatesOf(position);
      const rest = wayFrom(found.find((each) => each.wins)?.to);
      const rows = [rest, ...candidateRows(found, (each) => `cost_${kindOf(each)}`, costOf)];
      return drawSpans(text, places, rows, { at: position.at, isHere: true, name: say("stages.try"), width });
    },
    folds: () => [["Table of this position", () => costTable(position)]],
  }));
  const backs = path.map((step, at) => ({
    stage: "back",
    title: titleOf("Token", at, path, text.subarray(step.from, step.to)),
    tokens: step.tokens,
    length: 1,
    decides: true,
    caption() {
      const values = { text: face(step), token: step.token, tokens: step.bytes.join(", ") };
      return said(step.token == null ? "captions.cost_bytes" : "captions.cost_path", values);
    },
    draw(_, { width }) {
      const taken = path
        .slice(Math.max(0, at - CHAIN), at + 1)
        .map(({ from, to, tokens: [token] }) => ({ from, to, kind: "taken", token }));
      taken.at(-1).delay = 0;
      return drawSpans(text, places, [taken], { at: step.from, name: say("stages.back"), width });
    },
  }));
  return [...tries, ...backs];
}

const costTable = ({ at, candidates }) =>
  startingTokens(
    at,
    ["token#", "text", "cost#", "cost to the end#", "result"],
    candidates,
    ({ token, text, cost, total, wins }) => [
      ...[token ?? "as bytes", mono(text), cost / COST, total / COST],
      wins ? "wins" : "",
    ],
  );
