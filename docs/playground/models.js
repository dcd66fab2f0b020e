/* The box for a model's name: suggestions while you type, the files of the model that was named, and what is
 * opened. Also keeps what is open, by choice: `file:` and a name, `hf:owner/name:TAG`, or an address. */

import { el } from "./base.js";
import { sizeOf, whatIsWrong } from "./files.js";
import { choiceOf, filesOf, readHead, Refusal, shortest, suggestions, WELL_KNOWN } from "./hub.js";
import { find, forget, keep, kept } from "./keep.js";

const PAUSE = 250; // milliseconds of rest after which suggestions are asked for
const SOON = 3000; // milliseconds after which a silent server is said to be slow

/** The name of a choice for people. */
export const nameOf = (choice) => choice.replace(/^(hf|file):/, "").replace(/^https?:.*\/(?=[^/])/, "");

export class Models {
  #engine;
  #on;
  #opened = new Map();
  #jobs = new Map(); // by place, and for the list: what can be aborted
  #place = 0;
  #later = null;
  recent = [];

  /** `on.opened(choice, place)` is called for a model that is open now, and `on.refused(message, choice, place)` for
   * one that is not. Place 0 is the vocabulary, and 1 the one that it is compared with. */
  constructor(engine, form, on) {
    this.#engine = engine;
    this.#on = on;
    const parts = ["model", "found", "opening", "bar", "known", "token", "access"];
    for (const name of parts) this[name] = form.querySelector(`#${name}`);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#place = event.submitter?.id === "compare" ? 1 : 0;
      this.#name(this.model.value);
    });
    this.model.addEventListener("input", () => this.#suggestLater());
    form.addEventListener("keydown", ({ key }) => key === "Escape" && this.#list([]));
    this.#showKnown();
  }

  get(choice) {
    return this.#opened.get(choice) ?? null;
  }

  /** Notes what was opened elsewhere. */
  add(choice, vocabulary) {
    this.#opened.set(choice, vocabulary);
  }

  /** All open choices. */
  get names() {
    return this.#opened.keys();
  }

  /** Whether a choice is being opened. */
  isOpening(choice) {
    return [...this.#jobs.values()].some((job) => job.choice === choice);
  }

  get #token() {
    return this.token.value.trim();
  }

  async #showKnown() {
    this.recent = (await kept()).filter((choice) => !Object.values(WELL_KNOWN).includes(choice));
    const button = (text, title, onclick) => el("button", { type: "button", title, onclick }, text);
    const chip = (choice, text) => button(text, nameOf(choice), () => this.open(choice, 0));
    const known = Object.entries(WELL_KNOWN).map(([text, choice]) => chip(choice, text));
    const recent = this.recent.map((choice) => chip(choice, nameOf(choice).split("/").at(-1)));
    const clear = button("Forget these", null, () => forget().then(() => this.#showKnown()));
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
    const say = (text) => {
      clearTimeout(slow);
      if (isCurrent()) this.opening.textContent = text;
      if (isCurrent()) this.bar.hidden = !text;
    };
    const isSlow = `${nameOf(choice)}: the server is slow. Still waiting; everything else works meanwhile.`;
    const slow = setTimeout(() => say(isSlow), SOON);
    this.opening.textContent = `Opening ${nameOf(choice)} …`;
    this.bar.hidden = false;
    job.choice = choice;
    try {
      return await work(job, say);
    } catch (error) {
      if (!isCurrent()) return null;
      job.choice = null;
      if (error.wantsToken) this.access.hidden = false;
      const problem = `${nameOf(choice)} could not be opened. ${error.name}: ${error.message}.`;
      this.#on.refused(error instanceof Refusal ? error.message : problem, choice, place);
      return null;
    } finally {
      job.choice = null;
      say("");
    }
  }

  /** Opens a model at a place. */
  async open(choice, place, files = null) {
    this.#list([]);
    if (this.#opened.has(choice)) return this.#on.opened(choice, place);
    const vocabulary = await this.#attempt(place, choice, async (abort, say) => {
      /** Asks the worker about a head, with what is wrong with it in words. */
      const call = (name, head, ...args) =>
        this.#engine.call(name, ...args).catch(async (error) => {
          const file = { name: nameOf(choice), slice: (from, to) => head.slice(from, to) };
          throw new Refusal(await whatIsWrong(file, error));
        });
      const needed = (head, size) => call("needed", head, head, size);
      const onRead = (bytes) => say(`Reading ${nameOf(choice)}: ${sizeOf(bytes)} of its header`);
      const before = await find(choice);
      const head = before ?? (await readHead(choice, { token: this.#token, files, needed, onRead, abort }));
      const { file, size, isWhole } = head;
      const given = { key: `${choice}#${performance.now()}`, file, size: size ?? file.size, notes: [] };
      await call("about", file, given);
      if (before) given.notes.push("kept in this browser");
      if (isWhole) given.notes.push("the server sends whole files only, and was stopped after the header");
      const isKept = before || this.#token || (await keep(choice, head));
      if (!isKept) given.notes.push("this browser has no room to keep it");
      return given;
    });
    if (!vocabulary) return;
    this.#opened.set(choice, vocabulary);
    this.#on.opened(choice, place);
    this.#showKnown();
  }

  /** Lists the files of a repository, or opens what names one file. */
  async #name(typed) {
    this.#list([]);
    const choice = choiceOf(typed);
    const hint = "Write owner/name, as on huggingface.co, or paste a link to a .gguf file";
    if (!choice) return this.#on.refused(`“${typed}” names no model. ${hint}.`);
    if (!/^hf:[^/]+\/[^/:]+$/.test(choice)) return this.open(choice, this.#place);
    const files = await this.#attempt(this.#place, choice, (abort) => filesOf(choice, this.#token, abort));
    if (!files) return;
    const place = this.#place;
    const choose = ({ path }) => this.open(shortest(choice, path, files), place, files);
    if (files.length === 1) return choose(files[0]);
    const option = (file) => ({ text: file.path, about: sizeOf(file.size ?? 0), choose: () => choose(file) });
    const options = files.map(option);
    this.#list(options, `Files of ${nameOf(choice)}: any of them has the same tokenizer`);
    const preferred = files.findIndex(({ path }) => /Q4_K_M/i.test(path));
    this.found.children[Math.max(0, preferred)].focus();
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
        const options = found.map(({ id, downloads = 0 }) => {
          const about = `${downloads.toLocaleString("en")} downloads`;
          return { text: id, about, choose: () => this.#name((this.model.value = id)) };
        });
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
    const choices = options.map(({ text, about, choose }) =>
      el("button", { type: "button", onclick: choose }, el("bdi", {}, text), el("span", { class: "about" }, about)),
    );
    this.found.replaceChildren(...choices);
    this.found.hidden = !options.length;
  }
}
