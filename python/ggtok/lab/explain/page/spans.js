/* A text as a row of characters, and below it tokens as long as what they stand for: what Unigram, PLaMo-2, WordPiece,
 * RWKV and the test kind are drawn with. Tokens share a row if they fit, otherwise each has a row; its note is in free
 * space: nothing is written over anything else. */

const NARROW = [19, 26]; // the least width of a character, where there is little room and where there is more
const ROW = 32;
const BOX = 25; // how high a token is, in a row
const NOTE = 8; // how wide a letter of a note may be
const WIDEST = 960;
const APART = 90; // milliseconds between tokens that are found together
const BESIDE = 200; // room for a note on the right, where there is much

/** The places where characters start, and the end. A character inside which one of `cuts` lies is cut into its bytes. */
function placesOf(bytes, cuts = []) {
  const inside = new Set(cuts.filter((cut) => (bytes[cut] & 0xc0) === 0x80));
  const places = [];
  for (let at = 0; at < bytes.length; ) {
    const n = lengthOfCharacter(bytes[at]);
    const end = at + n <= bytes.length && decoded(bytes.subarray(at, at + n)) !== null ? at + n : at + 1;
    let isCut = false;
    for (let byte = at + 1; byte < end; byte++) isCut ||= inside.has(byte);
    places.push(at);
    if (isCut) for (let byte = at + 1; byte < end; byte++) places.push(byte);
    at = end;
  }
  return [...places, bytes.length];
}

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

/**
 * Draws `rows` of tokens, `{from, to, kind, note, token, delay}`, below the characters of a text that start at `places`.
 * `kind` is how a token looks: `way`, `wins`, `loses`, or `taken`, which has the colour of the place `token`. With a
 * `delay` it has just been found, and grows. The characters around the one at `at` are drawn, as wide as `width`; it is
 * marked if `isHere`.
 */
function drawSpans(text, places, rows, { at, name, width: most, isHere = false }) {
  const width = Math.min(WIDEST, most) - 2;
  const isWide = width > 600;
  const position = (offset) => lastIndex(places.length, (i) => places[i] <= offset);
  const shown = new Map();
  const faceAt = (i) => {
    if (!shown.has(i)) shown.set(i, short(faceOf(text.subarray(places[i], places[i + 1])), 6));
    return shown.get(i);
  };
  const widthAt = (i) => Math.max(NARROW[Number(isWide)], pixelsOf(faceAt(i)) + 8);
  const here = position(at);
  const end = Math.max(here, ...rows.flat().map((token) => (token.delay == null ? 0 : position(token.to))));
  const [from, to] = charactersAround(widthAt, places.length - 1, here, end, width - (isWide ? BESIDE : 0));
  const x = [1];
  for (let i = from; i < to; i++) x.push(x.at(-1) + widthAt(i));
  const edge = (i) => x[Math.max(from, Math.min(to, i)) - from];
  const middle = (i) => (edge(i) + edge(i + 1)) / 2;
  const range = Array.from({ length: to - from }, (_, i) => from + i);

  const brackets = charactersOver(text, places, from, to);
  const top = brackets.length ? 34 : 2;
  const bracketed = brackets.flatMap(([first, last]) => {
    const d = `M${edge(first) + 4} ${top - 3}v-5H${edge(last) - 4}v5`;
    const character = label(text.subarray(places[first], places[last]));
    const over = svg("text", { x: (edge(first) + edge(last)) / 2, y: top - 14, class: "character" }, character);
    return [over, svg("path", { class: "bracket", d })];
  });
  const cells = range.map((i) =>
    svg(
      "g",
      { class: i === here && isHere ? "cell now" : "cell" },
      svg("rect", { x: edge(i) + 1, y: top, width: edge(i + 1) - edge(i) - 2, height: BOX, rx: 4 }),
      svg("text", { x: middle(i), y: top + 18, class: "mono" }, faceAt(i)),
    ),
  );

  let y = top + ROW;
  let widest = x.at(-1);
  const drawn = rows.filter((row) => row.length).flatMap((row) => {
    let below = 0;
    const parts = row.map((token) => {
      const [a, b] = [position(token.from), position(token.to)];
      const [left, right] = [edge(a), edge(b)];
      const isSeen = right > left;
      const letters = range
        .filter((i) => a <= i && i < b)
        .map((i) => svg("text", { x: middle(i), y: y + 18, class: "mono" }, faceAt(i)));
      const box = svg("rect", { x: left + 1, y, width: Math.max(0, right - left - 2), height: BOX, rx: 7 });
      const isTaken = token.kind === "taken";
      const block = svg(
        "g",
        {
          class: `block ${token.kind}${isTaken ? ` token-${token.token % 4}` : ""}`,
          "data-token": isTaken ? token.token : null,
          "data-grow": token.delay,
          "data-fade": token.kind === "loses" ? token.delay : null,
        },
        svg("title", {}, `${faceOf(text.subarray(token.from, token.to))} ${token.note ?? ""}`),
        ...[box, letters],
      );
      if (!token.note) return isSeen ? block : null;
      const size = widthOf(token.note) * NOTE;
      const isRight = right + 8 + size <= width;
      const isLeft = !isRight && left - 8 - size >= 0 && row.length === 1;
      let place = { x: isRight ? right + 8 : left - 8, y: y + 17, class: `note ${isRight ? "left" : "right"}` };
      if (!isRight && !isLeft) {
        below = 20;
        place = { x: Math.max(2, Math.min(left + 2, width - size)), y: y + BOX + 15, class: "note left" };
      }
      if (place.class === "note left") widest = Math.max(widest, place.x + size);
      return svg("g", {}, isSeen ? block : null, svg("text", place, token.note));
    });
    y += ROW + below;
    return parts;
  });
  const shape = drawing(name, Math.ceil(Math.max(widest, 40)) + 1, y, cells, bracketed, drawn);
  return [partNote("Characters", [from, to], places.length - 1), shape];
}

/** The characters that are drawn as bytes, as the first and the last place of each. */
function charactersOver(text, places, from, to) {
  const found = [];
  for (let i = from; i < to; i++) {
    const end = places[i] + lengthOfCharacter(text[places[i]]);
    let last = i + 1;
    while (last < to && places[last] < end) last++;
    if (last > i + 1 && places[last] === end && decoded(text.subarray(places[i], end)) !== null) found.push([i, last]);
    i = last - 1;
  }
  return found;
}

/** Texts as a sentence lists them: the first few. */
function listed(faces, most = 6) {
  const more = faces.length - most;
  return faces.slice(0, most).join(", ") + (more > 0 ? ` and ${more.toLocaleString("en")} more` : "");
}
