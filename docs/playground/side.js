/* One vocabulary's view of the text: counts, the coloured strip, the token that is pointed at, and the ids. */

import { STALE } from "./engine.js";
import { el, label, plural } from "./base.js";
import { charactersIn, Strip } from "./strip.js";

const MOST_SHOWN = 5000; // tokens that are shown at once; "show more" adds as many
const HINT = "Hover for details, click for the steps";

const toBytes = new TextEncoder();

/** How Python opens a choice. */
function opening(choice) {
  const quoted = JSON.stringify(choice.replace(/^file:/, ""));
  if (/^(file|https?):/.test(choice)) return `from_gguf(${quoted})`;
  return choice.startsWith("hf:") ? `from_model(${quoted})` : `builtin(${quoted})`;
}
const COPIES = {
  "Copy ids": ({ result }) => Array.from(result.ids).join(" "),
  "as Python": ({ name, text, result, options: { addSpecial, parseSpecial } }) => {
    const flags = `${addSpecial ? "" : ", add_special=False"}${parseSpecial ? ", parse_special=True" : ""}`;
    const call = `tok.encode(${JSON.stringify(text)}${flags})`;
    const ids = Array.from(result.ids).join(", ");
    return `import ggtok\n\ntok = ggtok.Tokenizer.${opening(name)}\nassert ${call} == [${ids}]\n`;
  },
  "as JSON": ({ result }) => JSON.stringify(Array.from(result.ids)),
};

export class Side {
  #engine;
  #lane;
  #asked = null; // the arguments of the last question
  most = MOST_SHOWN;
  bytes = new Uint8Array();
  text = null; // the text whose tokens are shown
  result = null;

  /** `onChoose(side, at)` is called for a token that is to be explained, `onCounts(side)` after each answer. */
  constructor(engine, lane, onChoose, onCounts) {
    this.#engine = engine;
    this.#lane = lane;
    this.onCounts = onCounts;
    this.strip = new Strip("Tokens", (at) => onChoose(this, at), (at) => this.point(at));
    this.title = el("h3");
    this.name = ""; // the choice
    this.counts = el("p", { class: "totals" });
    this.problem = el("p", { class: "notice", hidden: true });
    this.more = el("button", { type: "button", hidden: true, onclick: () => this.#showMore() });
    this.pointed = el("p", { class: "pointed about" }, HINT);
    this.copyButtons = Object.entries(COPIES).map(([name, copied]) => {
      const onclick = ({ target }) => this.#copy(target, name, copied(this));
      return el("button", { type: "button", disabled: true, onclick }, name);
    });
    const buttons = el("div", { class: "id-buttons" }, this.copyButtons);
    const bar = el("div", { class: "spread" }, this.pointed, buttons);
    this.ids = el("details", { open: true, hidden: true }, el("summary", {}, "Ids"), this.strip.idList);
    this.body = el("div", {}, this.strip.list, this.more, bar, this.ids);
    this.element = el("div", { class: "view-of" }, this.title, this.counts, this.problem, this.body);
  }

  /** Asks for the tokens of a text, and shows them if no newer question has come in between. */
  async update(vocabulary, text, options) {
    const asked = [vocabulary, text, options];
    this.#asked = asked;
    this.options = options;
    const slow = setTimeout(() => this.element.setAttribute("aria-busy", "true"), 200);
    try {
      const result = await this.#engine.newest(this.#lane, "encode", vocabulary, text, options, this.most);
      if (result !== STALE && this.#asked === asked) this.#show(text, result);
    } catch (error) {
      if (this.#asked === asked) this.fail(`${error.name}: ${error.message}`);
    } finally {
      clearTimeout(slow);
    }
  }

  /** Shows a sentence in place of tokens. */
  fail(message, isError = true) {
    this.problem.classList.toggle("calm", !isError);
    this.counts.textContent = "";
    this.#asked = null;
    this.#settle(null, null, message);
  }

  /** Takes the result on a text, or what is wrong. */
  #settle(text, result, problem) {
    Object.assign(this, { text, result });
    this.element.dataset.shown = "";
    this.element.removeAttribute("aria-busy");
    this.problem.textContent = problem;
    this.problem.hidden = !problem;
    this.body.hidden = !result;
    this.ids.hidden = !result?.ids.length;
    for (const button of this.copyButtons) button.disabled = this.ids.hidden;
  }

  #show(text, result) {
    this.bytes = toBytes.encode(text);
    this.#settle(text, result, "");
    const { ids } = result;
    const characters = charactersIn(this.bytes, this.bytes.length);
    const rate = ids.length ? ` ·\u00a0${(characters / ids.length).toFixed(1)}\u00a0characters\u00a0per\u00a0token` : "";
    const more = ` · ${plural(characters, "character")} · ${plural(this.bytes.length, "byte")}`;
    this.counts.replaceChildren(el("strong", {}, plural(ids.length, "token")), more, el("span", { class: "per-token" }, rate));
    this.strip.update(text, this.bytes, result, this.most);
    this.more.hidden = ids.length <= this.most;
    this.more.textContent = `Show more: ${this.most.toLocaleString("en")} of ${plural(ids.length, "token")} are shown`;
    this.onCounts(this);
  }

  #showMore() {
    this.most += MOST_SHOWN;
    this.update(...this.#asked);
  }

  point(at) {
    const result = this.result;
    if (at === undefined || !result) {
      this.pointed.textContent = HINT;
      return;
    }
    const id = result.ids[at];
    const [start, end] = result.spans.subarray(2 * at, 2 * at + 2);
    let place = "added, not in the text";
    if (end > start) {
      const from = charactersIn(this.bytes, start + 1) - 1;
      place = `characters ${from} to ${charactersIn(this.bytes, end)}, bytes ${start} to ${end}`;
    }
    const entry = el("code", {}, label(result.tokens.get(id).text));
    const number = el("strong", {}, `${id}`);
    this.pointed.replaceChildren("Token ", number, " · spelled ", entry, ` in the vocabulary · ${place}`);
  }

  async #copy(button, name, copied) {
    try {
      await navigator.clipboard.writeText(copied);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => (button.textContent = name), 1500);
  }
}
