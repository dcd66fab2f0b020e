/* The steps from the text to its tokens, in the explain view. The trace is asked for only when somebody opens it. */

import { STALE } from "./engine.js";
import { el } from "./base.js";

/** The most characters whose steps are drawn. The core records a million steps, which is more than a page can hold. */
const MOST_CHARACTERS = 10_000;
/** Up to so many characters, the steps follow the text when typing pauses. */
const MOST_FOLLOWED = 1000;
const PAUSE = 600;

export class Explainer {
  #engine;
  #section;
  #box = el("div");
  #view = null;
  #asked = null; // what the open view explains: a case, the token, and the byte at which it is searched
  #tokens = []; // those of the open view
  #later = null;
  #on;

  /** `on.token(at)` is called for each token whose steps are shown, `on.close(byHand)` when the view closes. */
  constructor(engine, section, on) {
    this.#engine = engine;
    this.#section = section;
    this.#on = on;
    // A shadow keeps its styles and the page's apart.
    section.querySelector("#view").attachShadow({ mode: "open" }).append(this.#box);
    section.querySelector("#close").addEventListener("click", () => this.close(true));
    section.addEventListener("keydown", (event) => event.key === "Escape" && this.close(true));
  }

  /** Opens the view at the steps of token `at` of a case, `{vocabulary, name, text, options}`; `name` is that of the
   * vocabulary. */
  async open(given, at) {
    const wasOpen = !this.#section.hidden;
    if (!this.#box.previousSibling) this.#box.before(el("link", { rel: "stylesheet", href: "explain.css" }));
    this.#section.hidden = false;
    await this.#explain({ ...given, at, place: null });
    if (wasOpen) return;
    const title = this.#section.querySelector("h2");
    title.focus({ preventScroll: true });
    title.scrollIntoView({ block: "nearest" }); // the text above stays in sight
  }

  async #explain(asked) {
    clearTimeout(this.#later);
    const before = this.#asked;
    this.#asked = asked;
    const { vocabulary, name, text, options, at } = asked;
    this.#section.querySelector("h2").textContent = `How ${name} makes these tokens`;
    const isSame = before?.text === text && before.vocabulary.key === vocabulary.key && before.options === options;
    if (isSame && this.#view) return this.#view.showToken(at);
    if (text.length > MOST_CHARACTERS) {
      const most = MOST_CHARACTERS.toLocaleString("en");
      return this.#fail(`The steps of up to ${most} characters are drawn. Take a part of the text to see them.`);
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
    const { tokens } = page;
    this.#tokens = tokens;
    if (!tokens.length) return this.close();
    /** Why a token is not one with the next; null where the question makes no sense. */
    const why = (place) => {
      const [left, right] = [tokens[place], tokens[place + 1]];
      if (!right || left.fragment === null || right.fragment === null || left.start >= right.end) return null;
      return this.#engine.call("why", left.start, right.end);
    };
    const onToken = (at) => {
      asked.at = at;
      this.#on.token(at);
    };
    this.#view = mountTrace(this.#box, { page, why }, { onToken, keys: this.#section });
    const { at, place } = asked;
    const found = place === null ? -1 : tokens.findIndex(({ start, end }) => start <= place && place < end);
    const shown = found < 0 ? Math.min(at, tokens.length - 1) : found;
    this.#view.showToken(shown);
    onToken(shown);
  }

  /** The case has changed: it is explained again, at the same place of the text. A text that is being typed must be
   * short, and waits until typing pauses. */
  follow(given) {
    const asked = this.#asked;
    if (this.#section.hidden || !asked) return;
    const isTyped = given.text !== asked.text;
    if (!isTyped && given.vocabulary.key === asked.vocabulary.key && given.options === asked.options) return;
    clearTimeout(this.#later);
    if (!given.text) return this.close();
    const isLong = isTyped && given.text.length > MOST_FOLLOWED;
    if (isLong) return this.#note("These are the steps of the text before the last change.");
    const { start, end } = this.#tokens[asked.at] ?? {};
    const place = end > start ? start : null;
    this.#later = setTimeout(() => this.#explain({ ...given, at: asked.at, place }), isTyped ? PAUSE : 0);
  }

  close(byHand = false) {
    clearTimeout(this.#later);
    if (this.#section.hidden) return;
    this.#section.hidden = true;
    this.#clear();
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

  #note(message) {
    this.#section.querySelector("#explain-note").textContent = message;
  }
}
