/* The steps from the text to its tokens, in the explain view. The trace is asked for only when somebody opens it. */

import { STALE } from "./engine.js";
import { el, mountTrace } from "./explain.js";

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
  #asked = null; // what the open view explains
  #later = null;
  #on;

  /** `on.token(at)` is called for each token whose steps are shown, `on.close(byHand)` when the view closes. */
  constructor(engine, section, on) {
    this.#engine = engine;
    this.#section = section;
    this.#on = on;
    // A shadow keeps its styles and the page's apart.
    const style = el("link", { rel: "stylesheet", href: "explain.css" });
    section.querySelector("#view").attachShadow({ mode: "open" }).append(style, this.#box);
    section.querySelector("#close").addEventListener("click", () => this.close(true));
    section.addEventListener("keydown", (event) => event.key === "Escape" && this.close(true));
  }

  /** Opens the view at the steps of token `at`. `name` is that of the vocabulary. */
  async open(vocabulary, name, text, options, at) {
    const wasOpen = !this.#section.hidden;
    this.#section.querySelector("h2").textContent = `Why these tokens of ${name}?`;
    this.#section.hidden = false;
    await this.#explain({ vocabulary, text, options, at });
    if (wasOpen) return;
    this.#section.querySelector("h2").focus({ preventScroll: true });
    const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth";
    this.#section.scrollIntoView({ block: "start", behavior });
  }

  async #explain(asked) {
    clearTimeout(this.#later);
    const before = this.#asked;
    this.#asked = asked;
    const { vocabulary, text, options, at } = asked;
    const isSame = before?.text === text && before.vocabulary.key === vocabulary.key && before.options === options;
    if (isSame && this.#view) return this.#view.showToken(at);
    if (text.length > MOST_CHARACTERS) {
      const most = MOST_CHARACTERS.toLocaleString("en");
      return this.#fail(`The steps of up to ${most} characters are drawn. Take a part of the text to see them.`);
    }
    const slow = setTimeout(() => this.#note("Working out the steps …"), 300);
    try {
      const json = await this.#engine.newest("explain", "explain", vocabulary, text, options);
      if (json === STALE || this.#asked !== asked) return;
      this.#show(JSON.parse(json), asked);
    } catch (error) {
      if (this.#asked === asked) this.#fail(`The steps cannot be shown. ${error.name}: ${error.message}`);
    } finally {
      clearTimeout(slow);
    }
  }

  #show(trace, { at }) {
    this.#clear();
    this.#note("");
    const { tokens } = trace;
    /** Why a token is not one with the next; null where the question makes no sense. */
    const why = (place) => {
      const [left, right] = [tokens[place], tokens[place + 1]];
      if (!right || left.fragment === null || right.fragment === null || left.start >= right.end) return null;
      return this.#engine.call("why", left.start, right.end);
    };
    this.#view = mountTrace(this.#box, { trace, why }, { onToken: this.#on.token });
    const shown = Math.min(at, tokens.length - 1);
    this.#view.showToken(shown);
    this.#on.token(shown);
  }

  /** The text has changed: a short one is explained again, once typing pauses. */
  follow(text) {
    const asked = this.#asked;
    if (this.#section.hidden || !asked || asked.text === text) return;
    clearTimeout(this.#later);
    if (!text) return this.close();
    if (text.length > MOST_FOLLOWED) return this.#note("These are the steps of the text before the last change.");
    this.#later = setTimeout(() => this.#explain({ ...asked, text }), PAUSE);
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
