/* Two vocabularies on one text: the verdict, and both strips on one axis.
 *
 * A cut is the end of a token. What a tokenizer drops, such as spaces, belongs to the token after it. A stretch is the
 * text from one place where both cut to the next such place; the cuts differ where one of the two cuts inside it. Both
 * rows of a stretch have the same text, so they are equally wide, and lines break only between stretches. Letters that
 * take their shapes from each other, as in Arabic and Devanagari, and the digits of a number are not torn apart: a
 * stretch goes on to their end. */

import { el, plural, reach, verdictOf } from "./base.js";
import { cellsOf, directionOf, inRun, itemOf, replaceChanged } from "./strip.js";

const SHAPED = "[\\d\\u0600-\\u08ff\\u0900-\\u0dff\\ufb50-\\ufdff\\ufe70-\\ufefc]";
const ENDS_SHAPED = new RegExp(`${SHAPED}$`);
const STARTS_SHAPED = new RegExp(`^${SHAPED}`);

/** Two lists of cells as stretches `{cells: [those of a, those of b], isEqual, hasBreak}`. */
function stretchesOf(lists) {
  const at = [0, 0];
  const isLeft = (side) => at[side] < lists[side].length;
  const isAdded = (side) => isLeft(side) && lists[side][at[side]].text === null;
  const stretches = [];
  while (isLeft(0) || isLeft(1)) {
    const cells = [[], []];
    const take = (side) => cells[side][cells[side].push(lists[side][at[side]++]) - 1];
    if (isAdded(0) || isAdded(1)) {
      for (const side of [0, 1]) while (isAdded(side)) take(side);
      stretches.push({ cells, isEqual: true, hasBreak: false });
      continue;
    }
    const ends = [-1, -1];
    const next = (side) => (isLeft(side) ? ends[side] : Infinity);
    const isTorn = () =>
      isLeft(0) && ENDS_SHAPED.test(cells[0].at(-1).text) && STARTS_SHAPED.test(lists[0][at[0]].text ?? "");
    do {
      const side = next(0) <= next(1) ? 0 : 1;
      let cell = take(side);
      while (!cell.tokens && isLeft(side)) cell = take(side);
      ends[side] = cell.end;
    } while ((ends[0] !== ends[1] || isTorn()) && (isLeft(0) || isLeft(1)));
    const [cutsA, cutsB] = cells.map((each) => each.flatMap((cell) => cell.ends).join());
    const hasBreak = cells[0].some(({ text }) => text?.includes("\n"));
    stretches.push({ cells, isEqual: cutsA === cutsB, hasBreak });
  }
  return stretches;
}

/** What the second needs in terms of the first. */
function costOf(first, second, a, b) {
  const percent = Math.round(100 * Math.abs(second / first - 1));
  const more = `${percent || "under 1"} % ${second > first ? "more" : "fewer"} than`;
  const how = second === first || !first ? "as many as" : more;
  const its = ` with its ${first.toLocaleString("en")}.`;
  return [el("bdi", {}, b), ` needs ${plural(second, "token")}, ${how} `, el("bdi", {}, a), its];
}

/** Both strips. `onChoose(side, at)` is called for a token that is clicked or chosen by a key, `onPoint(side, at)` for
 * the one under the pointer or with the focus, or with `undefined` for `at`. */
export class Pair {
  #before = [];
  #options = [[], []];

  constructor(onChoose, onPoint) {
    this.verdict = el("p", { class: "judgement", role: "status" });
    this.list = el("div", { class: "coloured both", role: "group", "aria-label": "Tokens of both vocabularies" });
    this.cost = el("p", { class: "cost" });
    this.element = el("div", {}, this.cost, this.verdict, this.list);
    const placeOf = ({ target }) => this.#placeOf(target.closest(".piece"));
    this.list.addEventListener("click", (event) => placeOf(event) && onChoose(...placeOf(event)));
    for (const type of ["pointerover", "focusin"]) {
      this.list.addEventListener(type, (event) => {
        const place = placeOf(event);
        [0, 1].forEach((side) => onPoint(side, place?.[0] === side ? place[1] : undefined));
      });
    }
    this.list.addEventListener("keydown", (event) => {
      const place = placeOf(event);
      if (!place || event.altKey || event.ctrlKey || event.metaKey) return;
      const [side, at] = place;
      const own = this.#options[side];
      const next = { ArrowRight: own[at + 1], ArrowLeft: own[at - 1], Home: own[0], End: own.at(-1) };
      if (event.key in next) next[event.key]?.focus();
      else if (event.key === "ArrowDown" || event.key === "ArrowUp") this.#across(event.target, 1 - side)?.focus();
      else if (event.key === "Enter" || event.key === " ") onChoose(side, at);
      else return;
      event.preventDefault();
    });
  }

  /** Shows the first `most` tokens of two results on a text, and what the second costs in terms of the first. */
  update(text, bytes, results, tones, most, names) {
    this.verdict.replaceChildren(...verdictOf(bytes, ...results));
    this.cost.replaceChildren(...costOf(...results.map(({ ids }) => ids.length), ...names));
    const lists = results.map((result) => cellsOf(text, bytes, result, most));
    const stretches = stretchesOf(lists);
    if (results.some(({ ids }) => ids.length > most)) stretches.pop(); // its end is not shown
    const items = stretches.map((stretch) => this.#item(stretch, results, tones));
    replaceChanged(this.list, this.#before, items);
    this.#before = items;
    this.#options = [0, 1].map((side) => items.flatMap(({ rows }) => rows[side].flatMap(({ options }) => options)));
    reach(this.list, this.#options[0][0]);
  }

  /** Marks the token that is explained, and none without arguments. */
  select(side, at) {
    this.list.querySelector("[aria-current]")?.removeAttribute("aria-current");
    this.#options[side]?.[at]?.setAttribute("aria-current", "true");
  }

  focus(side, at) {
    this.#options[side]?.[at]?.focus({ preventScroll: true });
  }

  #item({ cells, isEqual, hasBreak }, results, tones) {
    const rows = cells.map((own, side) => own.map((cell) => itemOf(cell, results[side], tones[side], "button")));
    const make = () => {
      const lines = rows.map((row) => el("span", { class: "text-row" }, row.map((item) => (item.node = item.make()))));
      const text = cells[0].map((cell) => cell.text ?? "").join("");
      const name = isEqual ? "stretch" : "stretch unequal";
      const stretch = inRun(text, el("span", { class: name, dir: directionOf(text) }, lines));
      return hasBreak ? el("span", {}, stretch, el("br")) : stretch;
    };
    return { key: [isEqual, ...rows.map((row) => row.map(({ key }) => key).join("\n"))].join("\n\n"), rows, make };
  }

  /** The side and the place of a token, or null. */
  #placeOf(node) {
    const places = this.#options.map((own) => own.indexOf(node));
    const side = places.findIndex((at) => at >= 0);
    return side < 0 ? null : [side, places[side]];
  }

  /** The first token of the other side in the same stretch. */
  #across(node, side) {
    return node.closest(".stretch").querySelectorAll(".text-row")[side].querySelector(".piece");
  }
}
