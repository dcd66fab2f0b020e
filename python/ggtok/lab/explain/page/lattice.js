/* The search of Unigram and PLaMo-2: dots between the letters of a word, and tokens as arcs over them, the thicker the
 * likelier. Arcs appear dot by dot, those that are beaten fade, and in the end the best way lights up. */

const WIDEST_LETTER = 92;
const NARROWEST_LETTER = 30;
const DOT = 6;

function drawLattice({ letters, totals, arcs, start, legend }, step, { width }) {
  const count = letters.cells.length;
  const isEnd = step == null || step === count;
  const backwards = start > 0;
  const now = isEnd ? null : backwards ? start - step - 1 : step + 1;
  const most = Math.max(3, Math.floor((width - 40) / NARROWEST_LETTER));
  const [low, high] = windowAround(now ?? 0, most, count);
  const letter = Math.min(WIDEST_LETTER, (width - 40) / (high - low));
  const x = (dot) => 20 + (dot - low) * letter;
  const isShown = ({ from, to, born }) => from >= low && to <= high && (isEnd || born <= step + 1);
  const seen = arcs.filter(isShown);
  const longest = Math.max(1, ...arcs.map(({ from, to }) => Math.min(to, high) - Math.max(from, low)));
  const rise = (n) => 38 + Math.min(n - 1, 9) * Math.min(34, 190 / longest);
  const ground = rise(longest) + 34;
  const path = seen.filter(({ place }) => isEnd && place != null);
  const delayOf = (arc) => (backwards ? arc.from : count - arc.to) * APART; // the way lights up from where it ends

  const curve = (arc) => {
    const [left, right, height] = [x(arc.from), x(arc.to), rise(arc.to - arc.from)];
    const isNow = arc.born === step + 1;
    const isWay = path.includes(arc);
    const kind = isWay ? "way" : isEnd ? "past" : !arc.wins ? "beaten" : isNow ? "best" : "past";
    const d = `M${left} ${ground}C${left + letter * 0.2} ${ground - height * 1.33} ${right - letter * 0.2} ${ground - height * 1.33} ${right} ${ground}`;
    const stroke = (1.5 + arc.weight * 6).toFixed(1);
    const name = `arc ${kind}${arc.is_unknown ? " unknown" : ""}`;
    const grows = isWay ? delayOf(arc) : isNow && !isEnd ? 0 : null;
    const line = svg("path", { d, "stroke-width": stroke, "data-fade": kind === "beaten" && isNow ? 0 : null });
    const title = svg("title", {}, `${arc.text}, ${arc.score}, total ${arc.total}`);
    const face = (isNow && !isEnd) || isWay ? noteOf(arc, kind, (left + right) / 2, ground - height) : null;
    const group = { class: name, "data-grow": grows, "data-token": isWay ? arc.place : null };
    return [svg("g", group, title, line), face && svg("g", { ...group, class: `arc-text ${kind}` }, face)];
  };
  const noteOf = (arc, kind, at, y) => {
    const text = kind === "way" ? arc.text : `${short(arc.text, 12)} ${arc.score}`;
    const w = pixelsOf(text) + 8;
    const left = Math.max(1, Math.min(at - w / 2, width - w - 2));
    return [
      svg("rect", { class: "paper", x: left, y: y - 10, width: w, height: 19, rx: 4 }),
      svg("text", { x: left + w / 2, y: y + 4, class: "mono" }, text),
    ];
  };
  const order = ({ born, wins }) => (born === step + 1 ? 2 : 0) + Number(wins); // the ones that matter lie on top
  const curves = [...seen].sort((one, other) => order(one) - order(other)).map(curve);
  const [lines, faces] = [0, 1].map((part) => curves.map((parts) => parts[part])); // no line crosses a text

  const range = Array.from({ length: high - low }, (_, i) => low + i);
  const ownOf = (at) => path.find(({ from, to }) => from <= at && at < to);
  const cells = range.map((at) => {
    const own = ownOf(at);
    const [left, w] = [x(at) + DOT + 1, Math.max(6, letter - 2 * DOT - 2)];
    const isUnknown = seen.some(({ from, to, is_unknown: is }) => is && from <= at && at < to);
    const strokes = Array.from({ length: Math.floor(w / 6) }, (_, i) => `M${left + 6 * i} ${ground + 14}l5 -28`).join("");
    return svg(
      "g",
      { class: `cell${own ? ` token-${own.place % 4}` : ""}`, "data-token": own?.place },
      svg("rect", { x: left, y: ground - 14, width: w, height: 28, rx: 4 }),
      isUnknown ? svg("path", { class: "hatch", d: strokes }) : null,
      svg("text", { x: x(at) + letter / 2, y: ground + 5, class: "mono" }, short(letters.cells[at], 4)),
    );
  });
  const isReached = (dot) => isEnd || (backwards ? dot >= now : dot <= now);
  const isOnWay = (dot) => path.some(({ from, to }) => from === dot || to === dot);
  const isNarrow = letter < 46;
  const dots = [...range, high].map((dot) => {
    const isTold = isReached(dot) && (!isNarrow || dot === now || isOnWay(dot) || (high - dot) % 2 === 0);
    const y = ground + 34 + (isNarrow && dot % 2 ? 14 : 0);
    const name = `dot${dot === now ? " now" : ""}${isReached(dot) ? " reached" : ""}`;
    const total = isTold ? svg("text", { x: x(dot), y, class: "total" }, totals[dot]) : null;
    return svg("g", { class: name }, svg("circle", { cx: x(dot), cy: ground, r: DOT }), total);
  });
  const part = partNote("Letters", [low, high], count);
  const picture = drawing("Ways to cut the word", Math.ceil(x(high)) + 22, ground + 58, lines, faces, cells, dots);
  return [part, picture, muted(legend)];
}
