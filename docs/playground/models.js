/* The box for a model's name: suggestions while somebody types, the files of the model that was named, and what is
 * opened. Also keeps what is open, by choice: `file:` and a name, `hf:owner/name:TAG`, or an address. */

import { el } from "./base.js";
import { sizeOf, whatIsWrong } from "./files.js";
import { choiceOf, filesOf, readHead, Refusal, shortest, suggestions, WELL_KNOWN } from "./hub.js";
import { find, forget, keep, kept } from "./keep.js";

const PAUSE = 250; // milliseconds of rest after which suggestions are asked for
const SOON = 3000; // milliseconds after which a silent server is said to be slow

export const nameOf = (choice) => choice.replace(/^(hf|file):/, "").replace(/^https?:.*\/(?=[^/])/, "");

export class Models {
  #engine;
  #on;
  #opened = new Map();
  #opening = new Map(); // by place: the choice
  #jobs = new Map(); // by place, and for the list: what can be aborted
  #place = 0;
  #options = []; // of the list: what choosing each does
  #later = null;
  recent = [];

  /** `on.opened(choice, place)` is called for a model that is open now, and `on.refused(message, choice, place)` for one
   * that is not. Place 0 is the vocabulary, and 1 the one that it is compared with. */
  constructor(engine, form, on) {
    this.#engine = engine;
    this.#on = on;
    for (const name of ["model", "found", "opening", "bar", "known", "token", "access"]) this[name] = form.querySelector(`#${name}`);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#place = event.submitter?.id === "compare" ? 1 : 0;
      const chosen = this.#options.findIndex(({ node }) => node.ariaSelected === "true");
      if (chosen >= 0 && !this.found.hidden) this.#options[chosen].choose();
      else this.#name(this.model.value);
    });
    this.model.addEventListener("input", () => this.#suggestLater());
    this.model.addEventListener("blur", () => setTimeout(() => !form.contains(document.activeElement) && this.#list([]), 200));
    this.model.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") this.#list([]);
      if (!step || !this.#options.length) return;
      event.preventDefault();
      const at = this.#options.findIndex(({ node }) => node.ariaSelected === "true");
      this.#mark((at + step + this.#options.length) % this.#options.length);
    });
    this.#showKnown();
  }

  get(choice) {
    return this.#opened.get(choice) ?? null;
  }

  /** Notes what was opened elsewhere. */
  add(choice, vocabulary) {
    this.#opened.set(choice, vocabulary);
  }

  /** All open choices that begin with a word. */
  names(word) {
    return [...this.#opened.keys()].filter((choice) => choice.startsWith(word));
  }

  /** Whether a choice is being opened. */
  isOpening(choice) {
    return [...this.#opening.values()].includes(choice);
  }

  get #token() {
    return this.token.value.trim();
  }

  async #showKnown() {
    this.recent = (await kept()).filter((choice) => !Object.values(WELL_KNOWN).includes(choice));
    const chip = (choice, text) => el("button", { type: "button", title: nameOf(choice), onclick: () => this.open(choice, 0) }, text);
    const known = Object.entries(WELL_KNOWN).map(([text, choice]) => chip(choice, text));
    const recent = this.recent.map((choice) => chip(choice, nameOf(choice).split("/").at(-1)));
    const onclick = () => forget().then(() => this.#showKnown());
    const clear = el("button", { type: "button", onclick }, "Forget these");
    const more = recent.length ? [el("span", { class: "about" }, "Kept in this browser:"), ...recent, clear] : [];
    this.known.replaceChildren(...known, ...more);
  }

  /** A new job at a place, which ends the one before it. */
  #begin(place) {
    this.#jobs.get(place)?.abort();
    const job = new AbortController();
    this.#jobs.set(place, job);
    return job;
  }

  /** Does work that can be slow or refused, and says so. Returns what it returns, or null. */
  async #attempt(place, choice, work) {
    const job = this.#begin(place);
    const isCurrent = () => this.#jobs.get(place) === job;
    const say = (text, part = null) => {
      if (!isCurrent()) return;
      this.opening.textContent = text;
      this.bar.hidden = !text;
      if (part === null) this.bar.removeAttribute("value");
      else this.bar.value = part;
    };
    say(`Opening ${nameOf(choice)} …`);
    this.#opening.set(place, choice);
    const slow = setTimeout(() => say(`${nameOf(choice)}: the server is slow. Still waiting; all else works meanwhile.`), SOON);
    const quiet = () => clearTimeout(slow);
    try {
      return await work(job, (text, part) => (quiet(), say(text, part)));
    } catch (error) {
      if (!isCurrent()) return null;
      this.#opening.delete(place);
      if (error.wantsToken) this.access.hidden = false;
      this.#on.refused(error instanceof Refusal ? error.message : `${nameOf(choice)} could not be opened. ${error.name}: ${error.message}.`, choice, place);
      return null;
    } finally {
      quiet();
      if (isCurrent()) this.#opening.delete(place);
      say("");
    }
  }

  /** Opens a model at a place. */
  async open(choice, place, files = null) {
    this.#list([]);
    if (this.#opened.has(choice)) return this.#on.opened(choice, place);
    const vocabulary = await this.#attempt(place, choice, async (abort, say) => {
      const wrong = async (head, error) => new Refusal(await whatIsWrong({ name: nameOf(choice), slice: (...range) => head.slice(...range) }, error));
      const needed = (head, size) => this.#engine.call("needed", head, size).catch(async (error) => Promise.reject(await wrong(head, error)));
      const onRead = (bytes) => say(`Reading ${nameOf(choice)}: ${sizeOf(bytes)} of its head`, bytes / (bytes + 2e6));
      const before = await find(choice);
      const head = before ?? (await readHead(choice, { token: this.#token, files, needed, onRead, abort }));
      const given = { key: `${choice}#${performance.now()}`, file: head.file, size: head.size ?? head.file.size, notes: [] };
      await this.#engine.call("about", given).catch(async (error) => Promise.reject(await wrong(head.file, error)));
      if (before) given.notes.push("kept in this browser");
      if (head.isWhole) given.notes.push("the server sends whole files only, and was stopped after the head");
      if (!before && !this.#token && !(await keep(choice, head))) given.notes.push("this browser has no room to keep it");
      return given;
    });
    if (!vocabulary) return;
    this.#opened.set(choice, vocabulary);
    this.#on.opened(choice, place);
    this.#showKnown();
  }

  /** Lists the files of a repository that somebody named, or opens what is one file. */
  async #name(typed) {
    this.#list([]);
    const choice = choiceOf(typed);
    if (!choice) return this.#on.refused(`“${typed}” names no model. Write owner/name, as on huggingface.co, or paste a link to a .gguf file.`);
    if (!/^hf:[^/]+\/[^/:]+$/.test(choice)) return this.open(choice, this.#place);
    const files = await this.#attempt(this.#place, choice, (abort) => filesOf(choice, this.#token, abort));
    if (!files) return;
    const place = this.#place;
    const options = files.map(({ path, size }) => ({
      text: path,
      about: size ? sizeOf(size) : "",
      choose: () => this.open(shortest(choice, path, files), place, files),
    }));
    if (options.length === 1) return options[0].choose();
    this.#list(options, `Files of ${nameOf(choice)}: any of them has the same tokenizer`);
    this.#mark(Math.max(0, files.findIndex(({ path }) => /Q4_K_M/i.test(path))));
    this.model.focus();
  }

  #suggestLater() {
    clearTimeout(this.#later);
    const typed = this.model.value.trim();
    if (typed.length < 2 || /^https?:/.test(typed)) return this.#list([]);
    this.#later = setTimeout(async () => {
      const abort = this.#begin("list");
      try {
        const found = await suggestions(typed.replace(/^hf:/, ""), this.#token, abort);
        if (abort.signal.aborted || this.model.value.trim() !== typed) return;
        const options = found.map(({ id, downloads }) => ({
          text: id,
          about: downloads ? `${downloads.toLocaleString("en")} downloads` : "",
          choose: () => this.#name((this.model.value = id)),
        }));
        this.#list(options, "Models with GGUF files");
      } catch (error) {
        if (error instanceof Refusal) this.opening.textContent = `No suggestions. ${error.message}`;
      }
    }, PAUSE);
  }

  #list(options, name = "") {
    clearTimeout(this.#later);
    this.#begin("list");
    this.opening.textContent = options.length ? name : "";
    this.#options = options.map((option, at) => {
      const text = [el("bdi", {}, option.text), el("span", { class: "about" }, option.about)];
      const node = el("li", { role: "option", id: `found-${at}`, "aria-selected": "false", onclick: option.choose }, text);
      return { ...option, node };
    });
    this.found.replaceChildren(...this.#options.map(({ node }) => node));
    this.found.hidden = !options.length;
    this.found.setAttribute("aria-label", name || "Models");
    this.model.setAttribute("aria-expanded", options.length > 0);
    this.model.removeAttribute("aria-activedescendant");
  }

  #mark(at) {
    this.#options.forEach(({ node }, i) => (node.ariaSelected = `${i === at}`));
    this.#options[at].node.scrollIntoView({ block: "nearest" });
    this.model.setAttribute("aria-activedescendant", `found-${at}`);
  }
}
