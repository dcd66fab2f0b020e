/* The steps from the text to its tokens, in the explain view. The trace is asked for only when it is opened. */

import { STALE } from "./engine.js";
import { el } from "./base.js";

/** The most characters whose steps are drawn. The core records a million steps, which is more than a page can hold. */
const MOST_CHARACTERS = 10_000;
/** The most characters for which the steps follow the text when typing pauses. Those of a longer text are offered. */
const MOST_FOLLOWED = 1000;
const PAUSE = 600;
const HINT = "Click a token to see how it is made.";

export class Explainer {
  #engine;
  #section;
  #box = el("div");
  #view = null;
  #asked = null; // what the open view explains: a case, the token, and the byte at which it is searched
  #tokens = []; // those of the open view
  #later = null;
  #on;

  /** `on.step(at, step)` is called for each step of token `at` that is shown, `on.close(byHand)` when the view closes. */
  constructor(engine, section, on) {
    this.#engine = engine;
    this.#section = section;
    this.#on = on;
    // A shadow keeps its styles and the page's apart.
    section.querySelector("#view").attachShadow({ mode: "open" }).append(this.#box);
    section.querySelector("#close").addEventListener("click", () => this.close(true));
    this.#note(HINT);
    section.addEventListener("keydown", (event) => event.key === "Escape" && this.close(true));
  }

  /** Opens the view at the steps of token `at` of a case, `{vocabulary, name, text, options}`, and there at `step`;
   * `name` is that of the vocabulary. Without a token, one is shown that takes many steps. */
  async open(given, at, step) {
    if (!this.#box.previousSibling) this.#box.before(el("link", { rel: "stylesheet", href: "explain.css" }));
    this.#section.hidden = false;
    await this.#explain({ ...given, at, step, place: null });
    if (at === null) return;
    const title = this.#section.querySelector("h2");
    title.focus({ preventScroll: true });
    title.scrollIntoView({ block: "nearest" }); // the text above stays in sight
  }

  async #explain(asked) {
    clearTimeout(this.#later);
    const before = this.#asked;
    this.#asked = asked;
    const { vocabulary, name, text, options } = asked;
    this.#section.querySelector("h2").textContent = `How ${name} makes these tokens`;
    const isSame = before?.text === text && before.vocabulary.key === vocabulary.key && before.options === options;
    if (isSame && this.#view) return this.#view.showToken(asked.at);
    if (text.length > MOST_CHARACTERS) {
      const most = MOST_CHARACTERS.toLocaleString("en");
      return this.#fail(`Steps are drawn for up to ${most} characters. Shorten the text to see them.`);
    }
    const slow = setTimeout(() => this.#note("Working out the steps …"), 300);
    try {
      const asking = this.#engine.newest("explain", "explain", vocabulary, text, options);
      const [{ mountTrace }, json] = await Promise.all([import("./explain.js"), asking]);
      if (json === STALE || this.#asked !== asked) return;
      this.#show(mountTrace, JSON.parse(json), asked);
    } catch (error) {
      if (this.#asked === asked) this.#fail(`The steps cannot be shown. ${error.name}: ${error.message}`);
    } finally {
      clearTimeout(slow);
    }
  }

  #show(mountTrace, page, asked) {
    this.#clear();
    this.#note("");
    const { tokens, story } = page;
    this.#tokens = tokens;
    if (!tokens.length) return this.close();
    /** Why a token is not one with the next; null where the question makes no sense. */
    const why = (place) => {
      const [left, right] = [tokens[place], tokens[place + 1]];
      if (!right || left.fragment === null || right.fragment === null || left.start >= right.end) return null;
      return this.#engine.call("why", left.start, right.end);
    };
    const { at, step, place } = asked;
    const found = place === null ? -1 : tokens.findIndex(({ start, end }) => start <= place && place < end);
    const longest = story.units.reduce((best, unit) => (unit.length > best.length ? unit : best));
    asked.at = found < 0 ? Math.min(at ?? longest.tokens[0], tokens.length - 1) : found;
    const onToken = (chosen) => (this.#asked.at = chosen);
    const onStep = (address) => this.#on.step(this.#asked.at, address);
    this.#view = mountTrace(this.#box, { page, why }, { onToken, onStep, keys: this.#section });
    this.#view.showToken(asked.at);
    if (step) this.#view.show(step);
  }

  /** The case has changed: it is explained again, at the same place of the text. A text that is being typed must be
   * short, and waits until typing pauses. */
  follow(given) {
    const asked = this.#asked;
    if (!asked) return;
    const isTyped = given.text !== asked.text;
    if (!isTyped && given.vocabulary.key === asked.vocabulary.key && given.options === asked.options) return;
    clearTimeout(this.#later);
    if (!given.text) return this.close();
    const isLong = isTyped && this.#view && given.text.length > MOST_FOLLOWED;
    const { start, end } = this.#tokens[asked.at] ?? {};
    const place = end > start ? start : null;
    const explain = () => this.#explain({ ...given, at: asked.at, place });
    if (!isLong) this.#later = setTimeout(explain, isTyped ? PAUSE : 0);
    else this.#note("These are the steps of an earlier text. ", el("button", { onclick: explain }, "Show the new ones"));
  }

  close(byHand = false) {
    clearTimeout(this.#later);
    this.#section.hidden ||= byHand;
    if (!this.#asked) return;
    this.#clear();
    this.#note(HINT);
    this.#asked = null;
    this.#engine.call("forget").catch(() => {});
    this.#on.close(byHand);
  }

  #clear() {
    this.#view?.destroy();
    this.#view = null;
  }

  #fail(message) {
    this.#clear();
    this.#note(message);
  }

  #note(...parts) {
    this.#section.querySelector("#explain-note").replaceChildren(...parts);
  }
}
