/* A text in the colours of its tokens. Tokens are as wide as their text, so they do not tear it apart.
 *
 * Tokens are put into cells. Nearly all cells are one token and the characters that it comes from. Where tokens share
 * characters, such as four tokens for the bytes of one emoji, they are one cell: the characters, and the tokens below.
 * A new text replaces only the cells that changed, and every other token keeps its colour. */

import { el, hex, lengthOfCharacter, listKeys, reach } from "./base.js";

const TONES = 4;

/** How many characters begin in the first `count` bytes. */
export function charactersIn(bytes, count) {
  let characters = 0;
  for (let at = 0; at < count; at++) characters += (bytes[at] & 0xc0) !== 0x80;
  return characters;
}

/** The cells of the first `shown` tokens and, with `tokens: null`, the text between them that no token stands for. A
 * cell is `{start, end, text, tokens: [from, to], labels, ends}`: places are in bytes, and `ends` are those of its
 * tokens. A token that is not in the text has a cell without a text. Takes O(n) time. */
export function cellsOf(text, bytes, { ids, spans, tokens }, shown) {
  const cells = [];
  const count = Math.min(ids.length, shown);
  const startOf = (at) => spans[2 * at];
  const endOf = (at) => spans[2 * at + 1];
  const isInside = (place) => place < bytes.length && (bytes[place] & 0xc0) === 0x80;
  let end = 0;
  let [byte, unit] = [0, 0];
  /** The text from where the last call ended to the byte `to`. */
  const textTo = (to) => {
    const from = unit;
    for (; byte < to; byte += lengthOfCharacter(bytes[byte])) unit += bytes[byte] < 0xf0 ? 1 : 2;
    return text.slice(from, unit);
  };
  const gapTo = (to) => {
    if (to > end) cells.push({ start: end, end: to, text: textTo(to), tokens: null, ends: [] });
  };
  for (let at = 0; at < count; ) {
    const from = at++;
    if (endOf(from) <= startOf(from)) {
      cells.push({ start: end, end, text: null, tokens: [from, at], labels: [tokens.get(ids[from]).text], ends: [] });
      continue;
    }
    const start = startOf(from);
    gapTo(start);
    end = endOf(from);
    while (at < count && endOf(at) > startOf(at) && (startOf(at) < end || isInside(end))) {
      end = Math.max(end, endOf(at++));
    }
    while (isInside(end)) end++; // the list may end inside a character
    const labels = at - from > 1 ? labelsOf(bytes, ids, spans, tokens, from, at) : null;
    const ends = Array.from({ length: at - from }, (_, i) => endOf(from + i));
    cells.push({ start, end, text: textTo(end), tokens: [from, at], labels, ends });
  }
  if (count === ids.length) gapTo(bytes.length);
  return cells;
}

/** What tokens that share characters are called: their bytes, or their texts if they share bytes too. */
function labelsOf(bytes, ids, spans, tokens, from, to) {
  const labels = [];
  for (let at = from; at < to; at++) {
    const [start, stop] = [spans[2 * at], spans[2 * at + 1]];
    const isShared = at + 1 < to ? spans[2 * at + 2] < stop : at > from && start < spans[2 * at - 1];
    labels.push(isShared ? tokens.get(ids[at]).text : Array.from(bytes.subarray(start, stop), hex).join(" "));
  }
  return labels;
}

/** Colours of the first `count` ids, so that neighbours differ. What is before and after a change keeps its colours. */
export function tonesOf(ids, count, before) {
  const tones = new Uint8Array(count);
  const { ids: had, tones: old } = before ?? { ids: [], tones: [] };
  let first = 0;
  while (first < Math.min(count, old.length) && ids[first] === had[first]) first++;
  let same = 0;
  if (count === ids.length && old.length === had.length) {
    const most = Math.min(count, old.length) - first;
    while (same < most && ids[count - 1 - same] === had[old.length - 1 - same]) same++;
  }
  tones.set(old.slice(0, first));
  tones.set(old.slice(old.length - same), count - same);
  for (let at = first; at < count; at++) {
    const left = at ? tones[at - 1] : -1;
    if (at >= count - same && tones[at] !== left) break;
    const right = at + 1 < count && at + 1 >= count - same ? tones[at + 1] : -1;
    tones[at] = [1, 2].map((by) => (left + by) % TONES).find((tone) => tone !== right);
  }
  return tones;
}

/** Makes the children of `parent` those of `items`, which are `{key, make()}`. At both ends, items of `before` with
 * equal keys stay, and take their places in `items`. A single other one is changed if it has `change(old)`. */
export function replaceChanged(parent, before, items) {
  let first = 0;
  const least = Math.min(before.length, items.length);
  while (first < least && before[first].key === items[first].key) first++;
  let same = 0;
  while (same < least - first && before.at(-1 - same).key === items.at(-1 - same).key) same++;
  for (let at = 0; at < first; at++) items[at] = before[at];
  for (let at = 1; at <= same; at++) items[items.length - at] = before[before.length - at];
  const old = before.slice(first, before.length - same);
  const changed = items.slice(first, items.length - same);
  if (old.length === 1 && changed.length === 1 && changed[0].change) return changed[0].change(old[0]);
  for (const { node } of old) node.remove();
  const nodes = changed.map((item) => (item.node = item.make()));
  const fragment = document.createDocumentFragment();
  fragment.append(...nodes);
  parent.insertBefore(fragment, same ? items.at(-same).node : null);
}

/** Items line by line, as items. The browser then draws a line again only if it changed, and only those in sight. */
function linesOf(cells, items) {
  const lines = [];
  for (let at = 0; at < items.length; ) {
    const from = at++;
    while (at < items.length && !cells[at - 1].text?.endsWith("\n")) at++;
    const own = items.slice(from, at);
    const line = {
      key: own.map(({ key }) => key).join("\n"),
      items: own,
      make: () => {
        const node = el("div", { class: "text-line" });
        replaceChanged(node, [], own);
        return node;
      },
      change: (old) => {
        line.node = old.node;
        replaceChanged(old.node, old.items, own);
      },
    };
    lines.push(line);
  }
  return lines;
}

/** A text with a sign for each character that cannot be seen, except for spaces. */
function face(text, hasLines) {
  if (/^[ -~]*$/.test(text)) return text;
  return text
    .replace(/\n/g, hasLines ? "↵\n" : "↵")
    .replace(/[\0-\x08\x0b-\x1f]/g, (control) => String.fromCharCode(0x2400 + control.charCodeAt(0)))
    .replace(/[\x7f-\x9f\xad\u061c\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (hidden) => {
      return `⟨${hidden.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
    });
}

const RIGHT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** The direction of a text by its first letter; null without one. */
export function directionOf(text) {
  const letter = /\p{L}/u.exec(text)?.[0];
  return letter ? (RIGHT.test(letter) ? "rtl" : "ltr") : null;
}

/** A block in a line, which is placed as the letters of its text would be. By itself it has no direction, so a run of
 * them in Arabic would stand the wrong way round in an English line. */
export function inRun(text, node) {
  const mark = { rtl: "\u200f", ltr: "\u200e" }[directionOf(text)];
  return mark ? el("span", {}, mark, node, mark) : node;
}

/** A cell as an item for `replaceChanged`, whose key says all that it shows. `role` is its tokens' role. */
export function itemOf({ text, tokens: range, labels }, { ids, tokens }, tones, role) {
  const hasLines = role === "option";
  if (!range) return { key: text, options: [], make: () => el("span", { class: "gap-text" }, face(text, hasLines)) };
  const [from, to] = range;
  const piece = (at, shown, kind) =>
    el(
      "span",
      {
        class: `piece token-${tones[at]} ${kind}`,
        role,
        tabindex: -1,
        "aria-selected": role === "option" ? "false" : null,
        "aria-label": `${shown}, token ${ids[at]}`,
      },
      shown,
    );
  const item = { options: [] };
  if (to - from === 1) {
    const kind = text === null ? "added" : tokens.get(ids[from]).isSpecial ? "special" : "";
    const shown = face(text ?? labels[0], hasLines);
    item.key = `${tones[from]} ${kind} ${ids[from]} ${shown}`;
    item.make = () => (item.options[0] = piece(from, shown, kind));
  } else {
    item.key = `${text} ${labels.map((part, i) => `${tones[from + i]} ${ids[from + i]} ${part}`).join()}`;
    item.make = () => {
      item.options = labels.map((part, i) => piece(from + i, part, "byte"));
      const characters = el("span", { class: "of" }, face(text, hasLines));
      const parts = el("span", { class: "parts" }, item.options);
      return inRun(text, el("span", { class: "shared", role: "group", "aria-label": text }, characters, parts));
    };
  }
  return item;
}

/** The strip and the list of ids below it. `onChoose(at)` is called for a token that is clicked or chosen by a key,
 * `onPoint(at)` for the one under the pointer or with the focus, or with `undefined`. */
export class Strip {
  #shown = { ids: [], tones: [], lines: [], idItems: [] };
  #options = [];
  #ids = [];

  constructor(name, onChoose, onPoint) {
    this.list = el("div", { class: "coloured", role: "listbox", "aria-label": name });
    this.idList = el("p", { class: "id-list" });
    const placeOf = ({ target }) => this.#placeOf(target.closest(".piece, .an-id"));
    for (const box of [this.list, this.idList]) {
      box.addEventListener("pointerover", (event) => this.#point(placeOf(event), onPoint));
      box.addEventListener("pointerleave", () => this.#point(undefined, onPoint));
      box.addEventListener("click", (event) => placeOf(event) !== undefined && onChoose(placeOf(event)));
    }
    this.list.addEventListener("focusin", (event) => this.#point(placeOf(event), onPoint));
    this.list.addEventListener("focusout", () => this.#point(undefined, onPoint));
    listKeys(this.list, placeOf, () => this.#options.length, (at) => this.#options[at]?.focus(), onChoose);
  }

  /** Shows the first `most` tokens of a text. */
  update(text, bytes, result, most) {
    const { ids } = result;
    const count = Math.min(ids.length, most);
    const tones = tonesOf(ids, count, this.#shown);
    const cells = cellsOf(text, bytes, result, most);
    const lines = linesOf(cells, cells.map((cell) => itemOf(cell, result, tones, "option")));
    replaceChanged(this.list, this.#shown.lines, lines);
    Object.assign(this.#shown, { ids, tones, lines });
    this.#options = lines.flatMap(({ items }) => items.flatMap(({ options }) => options));
    this.#updateIds();
    reach(this.list, this.#options[0]);
  }

  get tones() {
    return this.#shown.tones;
  }

  /** Marks the token that is explained, and none for `undefined`. */
  select(at) {
    this.list.querySelector('[aria-selected="true"]')?.setAttribute("aria-selected", "false");
    this.#options[at]?.setAttribute("aria-selected", "true");
  }

  focus(at) {
    this.#options[at]?.focus({ preventScroll: true });
  }

  #placeOf(node) {
    const at = node ? (node.classList.contains("piece") ? this.#options : this.#ids).indexOf(node) : -1;
    return at < 0 ? undefined : at;
  }

  #updateIds() {
    const { ids, tones, idItems } = this.#shown;
    const items = Array.from(tones, (tone, at) => {
      const make = () => el("span", { class: `an-id token-${tone}` }, `${ids[at]}`);
      return { key: `${tone} ${ids[at]}`, make };
    });
    replaceChanged(this.idList, idItems, items);
    this.#shown.idItems = items;
    this.#ids = items.map(({ node }) => node);
  }

  /** Marks a token in both lists. */
  #point(at, onPoint) {
    for (const hot of [...this.list.querySelectorAll(".hot"), ...this.idList.querySelectorAll(".hot")]) {
      hot.classList.remove("hot");
    }
    this.#options[at]?.classList.add("hot");
    this.#ids[at]?.classList.add("hot");
    onPoint(at);
  }
}
