/* A text as a row of characters, and below it tokens as long as what they stand for: what WordPiece, RWKV, DNA and
 * the test kind are drawn with. Tokens share a row if they fit, otherwise each has a row; its note is in free
 * space: nothing is written over anything else. */

const NARROW = [19, 26]; // the least width of a character, where there is little room and where there is more
const ROW = 32;
const BOX = 25; // how high a token is, in a row
const NOTE = 8; // how wide a letter of a note may be
const WIDEST = 960;
const APART = 90; // milliseconds between tokens that are found together
const BESIDE = 200; // room for a note on the right, where there is much

/** Which characters fit: some before the place `at`, and after it at least as far as `end` if that is possible. */
function charactersAround(widthAt, count, at, end, width) {
  let [from, to, room] = [at, at, width];
  const takes = (i) => i >= 0 && i < count && widthAt(i) <= room && ((room -= widthAt(i)), true);
  while (takes(from - 1) && room > width * 0.62) from--;
  while (takes(to)) to++;
  for (; to < end && from < at; from++) {
    room += widthAt(from);
    while (to < end && takes(to)) to++;
  }
  while (takes(from - 1)) from--;
  return [from, to];
}

/** A text whose tokens are taken one after the other: those so far, and below them what a step tries. */
function drawSpans({ letters, taken, rows, whole }, step, { width: most }) {
  const tried = (rows[step] ?? []).map((span, at) => [{ ...span, delay: at * APART }]);
  const all = step == null ? [whole.map((span, at) => ({ ...span, delay: at * APART }))] : [taken.slice(0, step), ...tried];
  const hereAt = step == null ? -1 : taken[step]?.from ?? rows[step]?.[0]?.from ?? 0;
  const { cells: faces, characters } = letters;
  const width = Math.min(WIDEST, most) - 2;
  const isWide = width > 600;
  const faceAt = (i) => short(faces[i], 6);
  const widthAt = (i) => Math.max(NARROW[Number(isWide)], pixelsOf(faceAt(i)) + 8);
  const here = Math.max(0, hereAt);
  const end = Math.max(here, ...all.flat().map(({ to, delay }) => (delay == null ? 0 : to)));
  const [from, to] = charactersAround(widthAt, faces.length, here, end, width - (isWide ? BESIDE : 0));
  const x = [1];
  for (let i = from; i < to; i++) x.push(x.at(-1) + widthAt(i));
  const edge = (i) => x[Math.max(from, Math.min(to, i)) - from];
  const middle = (i) => (edge(i) + edge(i + 1)) / 2;
  const range = Array.from({ length: to - from }, (_, i) => from + i);

  const over = characters.filter(([first, last]) => from <= first && last <= to);
  const top = over.length ? 34 : 2;
  const bracketed = over.flatMap(([first, last, character]) => {
    const d = `M${edge(first) + 4} ${top - 3}v-5H${edge(last) - 4}v5`;
    const text = svg("text", { x: (edge(first) + edge(last)) / 2, y: top - 14, class: "character" }, character);
    return [text, svg("path", { class: "bracket", d })];
  });
  const cells = range.map((i) =>
    svg(
      "g",
      { class: i === hereAt ? "cell now" : "cell" },
      svg("rect", { x: edge(i) + 1, y: top, width: edge(i + 1) - edge(i) - 2, height: BOX, rx: 4 }),
      svg("text", { x: middle(i), y: top + 18, class: "mono" }, faceAt(i)),
    ),
  );

  let y = top + ROW;
  let widest = x.at(-1);
  const drawn = all.filter((row) => row.length).flatMap((row) => {
    let below = 0;
    const parts = row.map((span) => {
      const [left, right] = [edge(span.from), edge(span.to)];
      const isSeen = right > left;
      const inside = range.filter((i) => span.from <= i && i < span.to);
      const texts = inside.map((i) => svg("text", { x: middle(i), y: y + 18, class: "mono" }, faceAt(i)));
      const tone = span.place != null ? ` token-${span.place % 4}` : "";
      const block = svg(
        "g",
        {
          class: `block ${span.kind}${tone}`,
          "data-token": span.place,
          "data-grow": span.delay,
          "data-fade": span.kind === "loses" ? span.delay : null,
        },
        svg("title", {}, `${faces.slice(span.from, span.to).join("")} ${span.note}`),
        ...[svg("rect", { x: left + 1, y, width: Math.max(0, right - left - 2), height: BOX, rx: 7 }), texts],
      );
      if (!span.note) return isSeen ? block : null;
      const size = widthOf(span.note) * NOTE;
      const isRight = right + 8 + size <= width;
      const isLeft = !isRight && left - 8 - size >= 0 && row.length === 1;
      let place = { x: isRight ? right + 8 : left - 8, y: y + 17, class: `note ${isRight ? "left" : "right"}` };
      if (!isRight && !isLeft) {
        below = 20;
        place = { x: Math.max(2, Math.min(left + 2, width - size)), y: y + BOX + 15, class: "note left" };
      }
      if (place.class === "note left") widest = Math.max(widest, place.x + size);
      return svg("g", {}, isSeen ? block : null, svg("text", place, span.note));
    });
    y += ROW + below;
    return parts;
  });
  const shape = drawing("Tokens", Math.ceil(Math.max(widest, 40)) + 1, y, cells, bracketed, drawn);
  return [partNote("Characters", [from, to], faces.length), shape];
}
