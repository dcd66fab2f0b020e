/* Lattices, for Unigram and PLaMo-2: characters in a row, an arc for each token that a step has tried, and the best path
 * among them. */

const CELLS = 26; // characters that are drawn
const CELL = 38;

/**
 * `places`: the offsets at which characters start, and the end, ascending. `arcs`: `{from, to, text, note, kind}`, where
 * kind is `tried`, `loses`, `wins` or `best`. `at`: the offset in the middle.
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
    const height = (arc.b - arc.a) * rise + 14;
    return svg(
      "g", { class: `arc ${arc.kind}`, "data-token": arc.token },
      svg("title", {}, `${label(arc.text)} ${arc.note ?? ""}`),
      svg("path", { d: `M${x(arc.a) + 2} ${base}C${x(arc.a) + 6} ${base - height * 1.3} ${x(arc.b) - 6} ${base - height * 1.3} ${x(arc.b) - 2} ${base}` }),
    );
  });
  const names = here.filter((arc) => arc.note).map((arc) => svg(
    "text", { x: (x(arc.a) + x(arc.b)) / 2, y: base - rise * (arc.b - arc.a) - 8, class: "name" }, `${short(label(arc.text), 14)} ${arc.note}`));
  const cells = [];
  const bytes = text;
  for (let i = from; i < to; i++) {
    cells.push(svg(
      "g", { class: places[i] === at ? "cell now" : "cell" },
      svg("rect", { x: x(i) + 2, y: base + 3, width: CELL - 4, height: 26, rx: 4 }),
      svg("text", { x: x(i) + CELL / 2, y: base + 21, class: "mono" }, short(label(bytes.subarray(places[i], places[i + 1])), 4)),
      svg("text", { x: x(i) + 3, y: base + 43, class: "small left" }, String(places[i])),
    ));
  }
  const box = scroller(name, drawing(name, x(to) + 90, base + 50, curves, names, cells));
  queueMicrotask(() => {
    box.scrollLeft = x(position(at)) - box.clientWidth / 2;
  });
  const note = to - from < places.length - 1
    ? el("p", { class: "muted" }, `Characters ${from} to ${to - 1} of ${(places.length - 1).toLocaleString("en")}: those around this step.`)
    : null;
  return [note, box];
}

/** Unigram: the steps are the positions, from left to right. */
function unigramLattice(steps) {
  const text = bytesOf(steps.normalized);
  const places = [...steps.positions.map((position) => position.at), text.length];
  const best = new Map(steps.best.map((row) => [row.at, row]));
  const all = (position) => [...position.candidates, ...(position.unknown ? [position.unknown] : [])];

  /** The best path to an offset. All tokens that end there start before it, so it is final once they were tried. */
  const pathTo = (end) => {
    const path = [];
    for (let row = best.get(end); row && row.token != null && row.at > row.from; row = best.get(row.from)) path.push(row);
    return path.reverse();
  };
  const arc = (at, candidate, kind, note) => ({ from: at, to: candidate.end, text: candidate.text, kind, note });

  return {
    length: steps.positions.length,
    at: (step) => steps.positions[step].at,
    caption(step) {
      const position = steps.positions[step];
      const candidates = all(position);
      const wins = candidates.filter((candidate) => candidate.wins).length;
      const end = `the best way to ${wins > 1 ? "their ends" : "its end"} so far`;
      const sum = position.score_sum == null ? "no token reaches this place" : `the best sum so far is ${number(position.score_sum)}`;
      return `At ${position.at}, ${sum}. ${plural(candidates.length, "token")} may ` +
        `follow here; ${wins || "none"} ${wins > 1 ? "are" : "is"} ${end}.`;
    },
    draw(step) {
      const position = steps.positions[step];
      const first = Math.max(0, step - CELLS);
      const tried = steps.positions.slice(first, step).flatMap((before) => all(before).map((candidate) => arc(before.at, candidate, "tried")));
      const now = all(position).map((candidate) =>
        arc(position.at, candidate, candidate.wins ? "wins" : "loses", number(candidate.score_sum)));
      const path = pathTo(position.at).map((row) => ({ from: row.from, to: row.at, text: text.subarray(row.from, row.at), kind: "best" }));
      const candidates = all(position);
      const reached = steps.best.filter((row) => row.at <= position.at);
      const rows = table(
        "Best so far", ["at", "token", "text", "from", "sum"], reached.length,
        (i) => [
          String(reached[i].at), number(reached[i].token), ...(reached[i].token == null ? ["", ""]
            : [mono(text.subarray(reached[i].from, reached[i].at)), String(reached[i].from)]), number(reached[i].score_sum),
        ],
        { numeric: [1, 1, 0, 1, 1] },
      );
      queueMicrotask(() => rows.show(reached.length - 1));
      return [
        ...drawLattice(text, places, [...tried, ...now, ...path], position.at, "Lattice"),
        el("div", { class: "columns" },
          panel(`Tokens that start at ${position.at}`, table(
            "Tokens that start here", ["token", "text", "score", "sum", "best before", ""], candidates.length,
            (i) => [
              number(candidates[i].token), mono(candidates[i].text), number(candidates[i].score), number(candidates[i].score_sum),
              candidates[i].champion == null ? "none" : number(candidates[i].champion), candidates[i].wins ? "wins" : "",
            ],
            { mark: (i) => ({ class: candidates[i].wins ? "new" : null }), numeric: [1, 0, 1, 1, 1, 0] },
          )),
          panel("Best so far", rows)),
      ];
    },
    back: {
      length: steps.path.length,
      caption(step) {
        const { from, to, token, joins_next: joins } = steps.path[step];
        return `The way back from the end: token ${token}, ${quoted(text.subarray(from, to))}, leads from ${from} to ${to}.` +
          (joins ? " It joins the unknown token after it." : "");
      },
      draw(step) {
        const { from } = steps.path[step];
        const path = steps.path.slice(Math.max(0, step - CELLS), step + 1).map((row, i, rows) => ({
          from: row.from, to: row.to, text: text.subarray(row.from, row.to), kind: "best",
          note: i === rows.length - 1 ? String(row.token) : null,
        }));
        return drawLattice(text, places, path, from, "Best path");
      },
    },
  };
}

/** PLaMo-2: the steps are the positions, from right to left. */
function plamoLattice(steps) {
  const text = bytesOf(steps.text);
  const positions = steps.positions;
  const places = [...positions.map((position) => position.at).reverse(), text.length];
  const stepOf = new Map(positions.map((position, step) => [position.at, step]));
  const end = (position, candidate) => position.at + bytesOf(candidate.text).length;
  const winner = (position) => position.candidates.find((candidate) => candidate.wins);
  const arc = (position, candidate, kind, note) => ({ from: position.at, to: end(position, candidate), text: candidate.text, kind, note });
  return {
    length: positions.length,
    at: (step) => positions[step].at,
    caption(step) {
      const position = positions[step];
      return `From ${position.at} to the end the lowest cost is ${number(position.cost)}, with ` +
        `${quoted(winner(position)?.text ?? "")} first. ${plural(position.candidates.length, "candidate")}.`;
    },
    draw(step) {
      const position = positions[step];
      const tried = positions.slice(Math.max(0, step - CELLS), step)
        .flatMap((after) => after.candidates.map((candidate) => arc(after, candidate, "tried")));
      const now = position.candidates.map((candidate) => arc(position, candidate, candidate.wins ? "wins" : "loses", number(candidate.total)));
      const path = [];
      for (let at = position.at; stepOf.has(at) && path.length < CELLS; ) {
        const from = positions[stepOf.get(at)];
        const candidate = winner(from);
        if (!candidate) break;
        path.push(arc(from, candidate, "best"));
        at = end(from, candidate);
      }
      return [
        ...drawLattice(text, places, [...tried, ...now, ...path.slice(1)], position.at, "Lattice"),
        panel(`Tokens that start at ${position.at}`, table(
          "Tokens that start here", ["token", "text", "cost", "cost to the end", ""], position.candidates.length,
          (i) => {
            const candidate = position.candidates[i];
            return [candidate.token == null ? "unknown" : number(candidate.token), mono(candidate.text), number(candidate.cost), number(candidate.total), candidate.wins ? "wins" : ""];
          },
          { mark: (i) => ({ class: position.candidates[i].wins ? "new" : null }), numeric: [1, 0, 1, 1, 0] },
        )),
      ];
    },
    back: {
      length: steps.path.length,
      caption(step) {
        const { start, end: stop, token, bytes } = steps.path[step];
        const what = token == null ? `an unknown character, written as bytes: ${bytes.join(", ")}` : `token ${token}`;
        return `From ${start} to ${stop}: ${quoted(text.subarray(start, stop))} is ${what}.`;
      },
      draw(step) {
        const path = steps.path.slice(Math.max(0, step - CELLS), step + 1).map((row, i, rows) => ({
          from: row.start, to: row.end, text: text.subarray(row.start, row.end), kind: "best",
          note: i === rows.length - 1 ? (row.token ?? "bytes") : null,
        }));
        return drawLattice(text, places, path, steps.path[step].start, "Best path");
      },
    },
  };
}
