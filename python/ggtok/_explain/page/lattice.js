/* Lattices, for Unigram and PLaMo-2: characters in a row, an arc for each token that a step has tried, and the
 * best path among them. */

const CELLS = 26; // characters that are drawn
const CELL = 38;

/**
 * `places`: the offsets at which characters start, and the end, ascending. `arcs`: `{from, to, text, note, kind}`,
 * where kind is `tried`, `loses`, `wins` or `best`. `at`: the offset in the middle.
 */
function drawLattice(text, places, arcs, at, name) {
  const index = new Map(places.map((place, i) => [place, i]));
  const position = (offset) => index.get(offset) ?? lastIndex(places.length, (i) => places[i] <= offset);
  const [from, to] = windowAround(position(at), CELLS, places.length - 1);
  const here = arcs
    .map((arc) => ({ ...arc, a: position(arc.from), b: position(arc.to) }))
    .filter((arc) => arc.b > arc.a && arc.b > from && arc.a < to);
  const span = Math.max(1, ...here.map((arc) => arc.b - arc.a));
  const rise = Math.min(30, 300 / span);
  const base = 34 + span * rise;
  const x = (i) => 14 + (i - from) * CELL;
  const order = { tried: 0, loses: 1, wins: 2, best: 3 };
  here.sort((one, other) => order[one.kind] - order[other.kind]);
  const curves = here.map((arc) => {
    const top = base - ((arc.b - arc.a) * rise + 14) * 1.3;
    return svg(
      "g",
      { class: `arc ${arc.kind}` },
      svg("title", {}, `${label(arc.text)} ${arc.note ?? ""}`),
      svg("path", {
        d: `M${x(arc.a) + 2} ${base}C${x(arc.a) + 6} ${top} ${x(arc.b) - 6} ${top} ${x(arc.b) - 2} ${base}`,
      }),
    );
  });
  const names = here
    .filter((arc) => arc.note)
    .map((arc) =>
      svg(
        "text",
        { x: (x(arc.a) + x(arc.b)) / 2, y: base - rise * (arc.b - arc.a) - 8, class: "name" },
        `${short(label(arc.text), 14)} ${arc.note}`,
      ),
    );
  const cells = places.slice(from, to).map((place, i) => {
    const left = x(from + i);
    const character = short(label(text.subarray(place, places[from + i + 1])), 4);
    return svg(
      "g",
      { class: place === at ? "cell now" : "cell" },
      svg("rect", { x: left + 2, y: base + 3, width: CELL - 4, height: 26, rx: 4 }),
      svg("text", { x: left + CELL / 2, y: base + 21, class: "mono" }, character),
      svg("text", { x: left + 3, y: base + 43, class: "small left" }, String(place)),
    );
  });
  const shape = drawing(name, x(to) + 90, base + 50, curves, names, cells);
  return [partNote("Characters", [from, to], places.length - 1), scroller(name, shape, () => x(position(at)))];
}

/**
 * The stages of a lattice: one position after the other, and then the path. `arcs(position)` are the tokens that start
 * at a position, as `{from, to, text, total, wins}`, and `pathAt(position)` is the best path that is known then. The
 * steps of `path` are `{from, to, name, token}`, where token is the place of the first token that a step makes.
 */
function latticeUnits({ text, positions, arcs, pathAt, caption, panels, path, pathTitle, pathCaption }) {
  const places = [...positions.map((position) => position.at), text.length].sort((a, b) => a - b);
  const pathStep = (token) =>
    Math.max(
      0,
      path.findIndex((step) => step.token === token),
    );
  const tokensOf = (step) => (step ? [step.token, step.token + 1] : null);
  const lattice = {
    stage: "try",
    title: "Lattice",
    length: positions.length,
    caption: (step) => caption(positions[step]),
    draw(step) {
      const position = positions[step];
      const tried = positions.slice(Math.max(0, step - CELLS), step).flatMap(arcs);
      const shown = [
        ...tried.map((arc) => ({ ...arc, kind: "tried" })),
        ...arcs(position).map((arc) => ({ ...arc, kind: arc.wins ? "wins" : "loses", note: number(arc.total) })),
        ...pathAt(position).map((arc) => ({ ...arc, kind: "best" })),
      ];
      return drawLattice(text, places, shown, position.at, "Lattice");
    },
    folds: (step) => [["Tables of this place", () => panels(positions[step])]],
    stepOf(token) {
      const from = path[pathStep(token)]?.from;
      return Math.max(
        0,
        positions.findIndex((position) => position.at === from),
      );
    },
    tokensAt: (step) => tokensOf(path.find(({ from, to }) => from <= positions[step].at && positions[step].at < to)),
  };
  const back = {
    stage: "back",
    title: pathTitle,
    length: path.length,
    decides(step) {
      const known = path.slice(0, step + 1).map(({ token }) => token);
      return [[Math.min(...known), Math.max(...known) + 1]];
    },
    caption: pathCaption,
    draw(step) {
      const { from } = path[step];
      const steps = path.slice(Math.max(0, step - CELLS), step + 1).map((each, i, all) => ({
        ...each,
        text: text.subarray(each.from, each.to),
        kind: "best",
        note: i === all.length - 1 ? each.name : null,
      }));
      return drawLattice(text, places, steps, from, "Best path");
    },
    stepOf: pathStep,
    tokensAt: (step) => tokensOf(path[step]),
  };
  return [lattice, back].filter((stage) => stage.length);
}

/** A panel with the tokens that start at a position. */
const startingTokens = (at, columns, candidates, cellsOf) =>
  panel(
    `Tokens that start at ${at}`,
    table("Tokens that start here", columns, candidates, cellsOf, {
      mark: ({ wins }) => ({ class: wins ? "new" : null }),
    }),
  );

/** Unigram: the positions are from left to right. */
function unigramUnits(steps, fragment, first) {
  const text = bytesOf(steps.normalized);
  const best = new Map(steps.best.map((row) => [row.at, row]));
  const candidatesOf = ({ candidates, unknown }) => [...candidates, ...(unknown ? [unknown] : [])];
  // The path runs from the end to the start; of steps that join, one makes a token.
  let token = first + steps.path.filter((step) => !step.joins_next).length;
  const path = steps.path.map(({ from, to, token: id, joins_next: joins }) => {
    if (!joins) token--;
    return { from, to, name: String(id), joins, token };
  });
  const stages = latticeUnits({
    text,
    positions: steps.positions,
    path,
    arcs: (position) =>
      candidatesOf(position).map((each) => ({ ...each, from: position.at, to: each.end, total: each.score_sum })),
    /** All tokens that end at a position start before it, so its best path is final once it is reached. */
    pathAt(position) {
      const found = [];
      for (let row = best.get(position.at); row && row.token != null && row.at > row.from; row = best.get(row.from))
        found.push({ from: row.from, to: row.at, text: text.subarray(row.from, row.at) });
      return found.reverse();
    },
    caption(position) {
      const candidates = candidatesOf(position);
      const wins = candidates.filter((candidate) => candidate.wins).length;
      const end = `the best way to ${wins > 1 ? "their ends" : "its end"} so far`;
      const sum =
        position.score_sum == null
          ? "no token reaches this place"
          : `the best sum so far is ${number(position.score_sum)}`;
      return (
        `At ${position.at}, ${sum}. ${plural(candidates.length, "token")} may ` +
        `follow here; ${wins || "none"} ${wins > 1 ? "are" : "is"} ${end}.`
      );
    },
    panels(position) {
      const reached = steps.best.filter((row) => row.at <= position.at);
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
        candidatesOf(position),
        (each) => {
          const { token, text, score, score_sum: sum, champion, wins } = each;
          return [token, mono(text), score, sum, champion ?? "none", wins ? "wins" : ""];
        },
      );
      return el("div", { class: "columns" }, tokens, panel("Best so far", rows));
    },
    pathTitle: "The way back",
    pathCaption(step) {
      const { from, to, name, joins } = path[step];
      return (
        `The way back from the end: token ${name}, ${quoted(text.subarray(from, to))}, leads from ${from} to ${to}.` +
        (joins ? " It joins the unknown token after it." : "")
      );
    },
  });
  const before = {
    ...{ stage: "normalize", opens: true, title: "Normalizing", tokens: [first, first] },
    ...normalization(steps, fragment),
  };
  return steps.prefixes.length ? [before, ...stages] : stages;
}

/** PLaMo-2: the positions are from right to left. */
function plamoUnits(steps, _, first) {
  const text = bytesOf(steps.text);
  const byOffset = new Map(steps.positions.map((position) => [position.at, position]));
  const arcs = ({ at, candidates }) =>
    candidates.map(({ text, total, wins }) => ({ from: at, to: at + bytesOf(text).length, text, total, wins }));
  let next = first;
  const path = steps.path.map(({ start: from, end: to, token: id, bytes }) => {
    const token = next;
    next += id == null ? bytes.length : 1;
    return { from, to, name: String(id ?? "bytes"), id, bytes, token };
  });
  return latticeUnits({
    text,
    positions: steps.positions,
    path,
    arcs,
    pathAt(position) {
      const found = [];
      for (let from = position; from && found.length < CELLS; from = byOffset.get(found.at(-1).to)) {
        const arc = arcs(from).find((each) => each.wins);
        if (!arc) break;
        found.push(arc);
      }
      return found.slice(1);
    },
    caption({ at, cost, candidates }) {
      const winner = candidates.find((candidate) => candidate.wins);
      return (
        `From ${at} to the end the lowest cost is ${number(cost)}, with ${quoted(winner?.text ?? "")} first. ` +
        `${plural(candidates.length, "candidate")}.`
      );
    },
    panels: ({ at, candidates }) =>
      startingTokens(
        at,
        ["token#", "text", "cost#", "cost to the end#", "result"],
        candidates,
        ({ token, text, cost, total, wins }) => [token ?? "unknown", mono(text), cost, total, wins ? "wins" : ""],
      ),
    pathTitle: "The way",
    pathCaption(step) {
      const { from, to, id, bytes } = path[step];
      const what = id == null ? `an unknown character, written as bytes: ${bytes.join(", ")}` : `token ${id}`;
      return `From ${from} to ${to}: ${quoted(text.subarray(from, to))} is ${what}.`;
    },
  });
}
