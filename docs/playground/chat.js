/* A conversation in tokens: its messages become the prompt that the file's own template writes, with control tokens,
 * the cost of each message, what a budget leaves out, and what a mask of the answers covers. */

import { el, plural } from "./base.js";
import { STALE } from "./engine.js";
import { Strip } from "./strip.js";

const ROLES = ["system", "user", "assistant", "tool", "developer"];
const FIRST = [
  { role: "system", content: "You explain things briefly." },
  { role: "user", content: "What is LoRA?" },
  { role: "assistant", content: "It trains two small matrices instead of a large one." },
  { role: "user", content: "Is it cheap?" },
];
const MASKS = { "": "none", turn: "whole answers", content: "their words alone" };
const PLACEHOLDER = '{"messages": [{"role": "user", "content": "Hello"}]}';
const MOST_SHOWN = 5000;

const toBytes = new TextEncoder();

/** The messages that a budget of tokens leaves out: whole turns, from the oldest. A turn begins with a user's message;
 * system messages before the first one stay, and so does the last turn. */
export function leftOut(messages, spans, total, budget) {
  const first = messages.findIndex(({ role }) => role !== "system" && role !== "developer");
  const starts = messages.flatMap(({ role }, at) => (at === first || (at > first && role === "user") ? [at] : []));
  const out = new Set();
  for (let turn = 0; turn + 1 < starts.length && total > budget; turn++) {
    for (let at = starts[turn]; at < starts[turn + 1]; at++) {
      total -= spans[at] ? spans[at][1] - spans[at][0] : 0;
      out.add(at);
    }
  }
  return { out, total };
}

export class Chat {
  #engine;
  #given = null; // the choice, what the worker knows it by, and its name
  #body = { messages: FIRST.map((message) => ({ ...message })) };
  #result = null;
  #costs = [];

  constructor(engine, panel) {
    this.#engine = engine;
    const update = () => this.#update();
    const button = (name, onclick) => el("button", { type: "button", onclick }, name);
    this.rows = el("ol", { class: "turns" });
    this.begins = el("input", { type: "checkbox", checked: true, onchange: update });
    const masks = Object.entries(MASKS).map(([value, name]) => el("option", { value }, name));
    this.mask = el("select", { onchange: update }, masks);
    this.budget = el("input", { type: "number", min: 1, placeholder: "no limit", oninput: () => this.#mark() });
    const label = (...parts) => el("label", {}, parts);
    const flags = [label(this.begins, "start the answer"), label("budget of tokens", this.budget)];
    flags.push(label("mask of the answers", this.mask));
    this.pasted = el("textarea", { rows: 5, "aria-label": "Request body", placeholder: PLACEHOLDER });
    const title = el("summary", {}, "Paste the body of a request to /v1/chat/completions");
    const paste = el("details", {}, title, this.pasted, button("Use it", () => this.#paste()));
    this.problem = el("p", { class: "notice", role: "alert", hidden: true });
    this.title = el("h3");
    this.counts = el("p", { class: "totals", role: "status" });
    this.note = el("p", { class: "about" });
    this.strip = new Strip("Tokens of the conversation", () => {}, () => {});
    this.body = el("div", {}, this.counts, this.note, this.strip.list, this.strip.idList);
    const add = button("Add a message", () => this.#add());
    const settings = el("div", { class: "spread" }, add, el("div", { class: "flags" }, flags));
    panel.append(
      el("section", { "aria-label": "Conversation" }, this.rows, settings, paste),
      el("section", { "aria-label": "The conversation in tokens", class: "chat" }, this.title, this.problem, this.body),
    );
    this.#draw();
  }

  /** Shows the conversation with another model, or says that none is open. */
  show(choice, vocabulary, name) {
    if (this.#given?.choice === choice && this.#given.vocabulary?.key === vocabulary?.key) return;
    this.#given = { choice, vocabulary, name };
    this.title.replaceChildren(el("bdi", {}, name));
    this.#update();
  }

  #draw() {
    this.#costs = [];
    const rows = this.#body.messages.map((message, at) => {
      const options = [...new Set([...ROLES, message.role])].map((role) => el("option", {}, role));
      const onchange = ({ target }) => this.#change(() => (message.role = target.value));
      const role = el("select", { "aria-label": `Role of message ${at + 1}`, onchange }, options);
      role.value = message.role;
      const isText = typeof message.content === "string";
      const oninput = ({ target }) => this.#change(() => (message.content = target.value));
      const name = `Message ${at + 1}`;
      const text = el("textarea", { rows: 1, dir: "auto", "aria-label": name, disabled: !isText, oninput });
      text.value = isText ? message.content : JSON.stringify(message.content ?? message.tool_calls ?? null);
      const onclick = () => this.#change(() => this.#body.messages.splice(at, 1), true);
      const remove = el("button", { type: "button", "aria-label": `Remove message ${at + 1}`, onclick }, "×");
      this.#costs.push(el("span", { class: "about" }));
      return el("li", { class: "turn" }, role, text, this.#costs[at], remove);
    });
    this.rows.replaceChildren(...rows);
  }

  #change(change, isDrawn = false) {
    change();
    if (isDrawn) this.#draw();
    this.#update();
  }

  #add() {
    const role = this.#body.messages.at(-1)?.role === "user" ? "assistant" : "user";
    this.#change(() => this.#body.messages.push({ role, content: "" }), true);
    this.rows.lastElementChild.querySelector("textarea").focus();
  }

  /** Takes the messages of a body, and keeps all else that is in it, such as tools. */
  #paste() {
    try {
      const given = JSON.parse(this.pasted.value);
      const body = Array.isArray(given) ? { messages: given } : given;
      if (!Array.isArray(body?.messages) || body.messages.some((each) => typeof each?.role !== "string")) {
        throw new Error("it has no list of messages with roles");
      }
      this.#change(() => (this.#body = body), true);
    } catch (error) {
      this.#fail(`This is not the body of a request: ${error.message}. The conversation stays as it was.`);
    }
  }

  async #update() {
    const { vocabulary, name } = this.#given;
    if (!vocabulary) return this.#fail(`Open a model first: ${name} is not here.`);
    const options = this.begins.checked ? {} : { addGenerationPrompt: false };
    if (this.mask.value) options.mask = this.mask.value;
    const body = JSON.stringify(this.#body);
    const ask = (more) => this.#engine.newest("chat", "chat", vocabulary, body, { ...options, ...more }, MOST_SHOWN);
    let note = "";
    try {
      const result = await ask({}).catch((error) => {
        if (!/^the file has no chat template/.test(error.message)) throw error;
        note = "This file has no chat template, so ChatML is used, as llama-server does.";
        return ask({ template: "chatml" });
      });
      if (result === STALE) return;
      this.note.textContent = [note, ...result.warnings.map(({ message }) => message)].join(" ");
      this.#result = result;
      this.problem.hidden = true;
      this.strip.update(result.text, toBytes.encode(result.text), result, MOST_SHOWN);
      this.#mark();
    } catch (error) {
      const todo = "Change a message, or choose another model.";
      this.#fail(`${name} could not render this conversation. ${error.name}: ${error.message}. ${todo}`);
    }
  }

  #fail(message) {
    this.problem.textContent = message;
    this.problem.hidden = false;
  }

  /** Says what each message costs, and marks what the budget leaves out and what the mask covers. */
  #mark() {
    if (!this.#result) return;
    const { ids, messageSpans, assistantMask } = this.#result;
    const { messages } = this.#body;
    const budget = this.budget.valueAsNumber || Infinity;
    const { out, total } = leftOut(messages, messageSpans, ids.length, budget);
    const inMessages = messageSpans.reduce((sum, span) => sum + (span ? span[1] - span[0] : 0), 0);
    const facts = [` · ${(ids.length - inMessages).toLocaleString("en")} of them outside the messages`];
    if (out.size) facts.push(` · ${total.toLocaleString("en")} without the grey ones`);
    if (total > budget) facts.push(`, still more than ${budget.toLocaleString("en")}`);
    if (assistantMask) facts.push(` · the mask covers ${assistantMask.filter(Boolean).length.toLocaleString("en")}`);
    this.counts.replaceChildren(el("strong", {}, plural(ids.length, "token")), ...facts);
    messageSpans.forEach((span, at) => {
      this.#costs[at].textContent = span ? plural(span[1] - span[0], "token") : "not written";
      this.rows.children[at].classList.toggle("left-out", out.has(at));
    });
    const grey = [...out].flatMap((at) => (messageSpans[at] ? [messageSpans[at]] : []));
    for (const [at, piece] of [...this.strip.list.querySelectorAll(".piece")].entries()) {
      piece.classList.toggle("left-out", grey.some(([start, end]) => start <= at && at < end));
      piece.classList.toggle("unmasked", assistantMask?.[at] === false);
    }
  }
}
