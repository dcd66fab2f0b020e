// The classes that users of the package see, over the engine that wasm-bindgen makes. Their documentation: ggtok.d.ts.
//
// A call of the engine throws JSON for an error (rust/wasm/src/failure.rs). Anything else that it throws means that its
// instance stopped in the middle of something: a new one replaces it, and what the old one held is gone.

import load, { __wbg_reset_state as renew, RawHead, RawTokenizer } from "./ggtok_bg.js";

/** The first part of a file that is read: more than small vocabularies need, and quick to read. */
const FIRST_READ = 1 << 20;

export class GgtokError extends Error {
  constructor(message, details = {}) {
    super(message);
    Object.assign(this, details);
  }
}

export class GGUFError extends GgtokError {}
export class VocabularyError extends GgtokError {}
export class UnsupportedError extends GgtokError {}
export class TokenIndexError extends GgtokError {}
export class MemoryError extends GgtokError {}
export class ChatTemplateError extends GgtokError {}
export class ChatRequestError extends GgtokError {}

const ERRORS = {
  GgtokError,
  GGUFError,
  VocabularyError,
  UnsupportedError,
  TokenIndexError,
  MemoryError,
  ChatTemplateError,
  ChatRequestError,
};
// Bundlers shorten the names of classes.
for (const [name, { prototype }] of Object.entries(ERRORS)) prototype.name = name;

export const TokenAttribute = Object.freeze({
  UNKNOWN: 1,
  UNUSED: 2,
  NORMAL: 4,
  CONTROL: 8,
  USER_DEFINED: 16,
  BYTE: 32,
  NORMALIZED: 64,
  LSTRIP: 128,
  RSTRIP: 256,
  SINGLE_WORD: 512,
});

/** The number of the instance of the engine; 0 before there is one. */
let instance = 0;
let loading;

export default async function init(source) {
  loading ??= start(source).catch((error) => {
    loading = undefined;
    throw error;
  });
  await loading;
}

async function start(source) {
  const own = new URL("ggtok_bg.wasm", import.meta.url);
  if (source === undefined && own.protocol === "file:" && globalThis.process?.versions?.node) {
    // Node does not fetch files. A name in a variable is not followed by bundlers.
    const module = "node:fs/promises";
    source = await (await import(module)).readFile(own);
  }
  await load({ module_or_path: source ?? own });
  instance = 1;
}

/** Calls the engine, with its errors as classes. */
function call(work) {
  try {
    return work();
  } catch (error) {
    if (typeof error === "string") {
      const { name, message, details } = JSON.parse(error, (_, value) => value ?? undefined);
      throw new ERRORS[name](message, details);
    }
    instance += 1;
    renew();
    // A trap without a message: the engine gave up, as it does when memory runs out.
    const isTrap = error instanceof WebAssembly.RuntimeError && /unreachable/i.test(error.message);
    if (isTrap) throw new MemoryError("there is not enough memory: the engine was restarted", { cause: error });
    throw new GgtokError(`this is a bug in ggtok, please report it: ${error.message}`, { cause: error });
  }
}

/** What the engine holds for an object, until it is freed or its instance is gone. */
class Held {
  #what;
  #raw;
  #instance = instance;

  constructor(what, raw) {
    this.#what = what;
    this.#raw = raw;
  }

  get raw() {
    if (!this.#raw) throw new GgtokError(`the ${this.#what} was freed`);
    if (this.#instance !== instance) throw new GgtokError(`the engine was restarted, and the ${this.#what} is gone`);
    return this.#raw;
  }

  /** Calls the engine with it. */
  call(work) {
    const { raw } = this;
    return call(() => work(raw));
  }

  /** It, for a call that consumes it. */
  take() {
    const { raw } = this;
    this.#raw = undefined;
    return raw;
  }

  free() {
    if (this.#instance === instance) this.#raw?.free();
    this.#raw = undefined;
  }
}

/** The bytes of a text. A lone surrogate becomes the three bytes that encode it, as in Python. */
function bytesOf(text) {
  if (text instanceof Uint8Array) return text;
  if (typeof text !== "string") throw new TypeError(`a text must be a string or a Uint8Array, not ${typeof text}`);
  const parts = text.split(/([\uD800-\uDFFF])/u);
  if (parts.length === 1) return new TextEncoder().encode(text);
  const bytes = parts.flatMap((part, at) => {
    if (at % 2 === 0) return Array.from(new TextEncoder().encode(part));
    const code = part.charCodeAt(0);
    return [0xed, 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)];
  });
  return Uint8Array.from(bytes);
}

/** Ids as the engine takes them. */
function idsOf(ids, size) {
  if (ids instanceof Int32Array) return ids;
  const checked = new Int32Array(ids.length);
  for (let at = 0; at < ids.length; at += 1) checked[at] = idOf(ids[at], size);
  return checked;
}

function idOf(id, size) {
  if (!Number.isInteger(id)) throw new TypeError(`a token id must be an integer, not ${String(id)}`);
  if (id !== (id | 0)) throw new TokenIndexError(`token id ${id} is outside the vocabulary of ${size} tokens`);
  return id;
}

function checkUnit(unit) {
  if (!["utf16", "char", "byte"].includes(unit)) {
    throw new GgtokError(`unit must be 'utf16', 'char' or 'byte', not ${JSON.stringify(unit)}`);
  }
}

/** JSON as bytes. U+FFFD stands for a lone surrogate, which is the only character that is written as such an escape. */
function jsonOf(value) {
  const escapes = /\\(?:u[dD][89a-fA-F][0-9a-fA-F]{2}|.)/g;
  const text = JSON.stringify(value) ?? "null";
  return new TextEncoder().encode(text.replace(escapes, (escape) => (escape.length === 6 ? "\uFFFD" : escape)));
}

/** The body of a request, as bytes: from messages, from the whole body, or from its JSON. */
function bodyOf(messages) {
  if (messages instanceof Uint8Array) return messages;
  if (typeof messages === "string") return new TextEncoder().encode(messages);
  return jsonOf(Array.isArray(messages) ? { messages } : messages);
}

/** Names this machine's zone. Made on first use, which takes a while. */
let zones;

/** A moment as seconds, the seconds that its zone is ahead, and the zone's name. */
function momentOf(now) {
  if (!(now instanceof Date)) return [Math.floor(now.seconds), Math.floor(now.offset ?? 0), String(now.zone ?? "UTC")];
  zones ??= new Intl.DateTimeFormat("en-US", { timeZoneName: "short" });
  const zone = zones.formatToParts(now).find(({ type }) => type === "timeZoneName")?.value ?? "";
  return [Math.floor(now.getTime() / 1000), -60 * now.getTimezoneOffset(), zone];
}

/** The options of a conversation, as the engine takes them. */
function chatOptionsOf({ now = new Date(), template, templateText, mediaMarker, variables, ...options }) {
  for (const [name, value] of Object.entries({ template, templateText, mediaMarker })) {
    if (value !== undefined && typeof value !== "string") {
      throw new TypeError(`${name} must be a string, not ${typeof value}`);
    }
  }
  if (template !== undefined && templateText !== undefined) {
    throw new TypeError("pass template (a name) or templateText, not both");
  }
  const fields = {
    tools: options.tools,
    documents: options.documents,
    add_generation_prompt: options.addGenerationPrompt,
    continue_final_message: options.continueFinalMessage,
  };
  return [jsonOf({ fields, variables }), template, templateText, mediaMarker, ...momentOf(now)];
}

/** The metadata of a file of `size` bytes, as far as it has been read. */
class Head extends Held {
  #size;
  at = 0;
  end;

  constructor(size) {
    if (!instance) throw new GgtokError("the engine is not loaded: await init() first");
    super("file", call(() => new RawHead()));
    this.#size = size;
    this.end = Math.min(FIRST_READ, size);
  }

  /** Takes the bytes from `at` to `end`. Returns whether more are needed, from the new `at` to the new `end`. */
  push(part) {
    // A file that has become shorter ends here.
    const size = part.length < this.end - this.at ? this.at + part.length : this.#size;
    const needed = this.call((raw) => raw.push(part, size));
    this.at = this.end;
    this.end = Math.min(size, Math.max(needed ?? 0, 2 * this.end));
    return needed !== undefined;
  }
}

export function bytesNeeded(bytes, size) {
  const head = new Held("file", call(() => new RawHead()));
  try {
    return head.call((raw) => raw.push(bytes, size));
  } finally {
    head.free();
  }
}

const making = Symbol("making");

export class Tokenizer {
  #held;

  constructor(key, head) {
    if (key !== making) throw new TypeError("a tokenizer is made by Tokenizer.fromBytes or Tokenizer.fromFile");
    const file = head.take();
    this.#held = new Held("tokenizer", call(() => RawTokenizer.open(file)));
    Object.freeze(Object.assign(this, JSON.parse(this.#held.call((raw) => raw.info()))));
  }

  static fromBytes(bytes) {
    if (!(bytes instanceof Uint8Array)) throw new TypeError("a file must be a Uint8Array");
    const head = new Head(bytes.length);
    try {
      while (head.push(bytes.subarray(head.at, head.end)));
      return new Tokenizer(making, head);
    } finally {
      head.free();
    }
  }

  static async fromFile(file) {
    const head = new Head(file.size);
    try {
      while (head.push(new Uint8Array(await file.slice(head.at, head.end).arrayBuffer())));
      return new Tokenizer(making, head);
    } finally {
      head.free();
    }
  }

  encode(text, { addSpecial = true, parseSpecial = false } = {}) {
    const bytes = bytesOf(text);
    return this.#held.call((raw) => raw.encode(bytes, addSpecial, parseSpecial));
  }

  encodeWithOffsets(text, { unit = "utf16", addSpecial = true, parseSpecial = false } = {}) {
    const bytes = bytesOf(text);
    checkUnit(unit);
    const isString = typeof text === "string";
    const numbers = this.#held.call((raw) => raw.spans(bytes, isString, unit, addSpecial, parseSpecial));
    const count = numbers.length / 3;
    return { ids: new Int32Array(numbers.slice(0, count).buffer), spans: numbers.slice(count) };
  }

  count(text, { addSpecial = true, parseSpecial = false } = {}) {
    const bytes = bytesOf(text);
    return this.#held.call((raw) => raw.count(bytes, addSpecial, parseSpecial));
  }

  decode(ids, options) {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.decodeBytes(ids, options));
  }

  decodeBytes(ids, { removeSpecial = false, unparseSpecial = false, cleanSpaces = false } = {}) {
    const checked = idsOf(ids, this.size);
    return this.#held.call((raw) => raw.decode(checked, removeSpecial, unparseSpecial, cleanSpaces));
  }

  piece(id, { special = true } = {}) {
    const checked = idOf(id, this.size);
    return this.#held.call((raw) => raw.piece(checked, special));
  }

  token(id) {
    const checked = idOf(id, this.size);
    return JSON.parse(this.#held.call((raw) => raw.token(checked)));
  }

  explain(text, { addSpecial = true, parseSpecial = false } = {}) {
    const bytes = bytesOf(text);
    return new Trace(making, this.#held.call((raw) => raw.explain(bytes, addSpecial, parseSpecial)));
  }

  applyChatTemplate(messages, options = {}) {
    return this.#chat(messages, options, () => ({}));
  }

  encodeChat(messages, { addSpecial = true, mask, unit = "utf16", ...options } = {}) {
    checkUnit(unit);
    if (![undefined, "turn", "content"].includes(mask)) {
      throw new GgtokError(`mask must be 'turn' or 'content', not ${JSON.stringify(mask)}`);
    }
    return this.#chat(messages, options, (chat) => {
      const encoded = this.#held.call((raw) => raw.encode_chat(chat, addSpecial, mask ?? "", unit));
      const [ids, spans, messageSpans, media, assistantMask] = JSON.parse(encoded);
      const numbers = { ids: Int32Array.from(ids), spans: Uint32Array.from(spans) };
      return { ...numbers, messageSpans, media, ...(assistantMask && { assistantMask }) };
    });
  }

  /** Renders a conversation, and joins what it is with what `more` finds out about it. */
  #chat(messages, options, more) {
    const body = bodyOf(messages);
    const asked = chatOptionsOf(options);
    const chat = new Held("conversation", this.#held.call((raw) => raw.chat(body, ...asked)));
    try {
      return { ...JSON.parse(chat.call((raw) => raw.text())), ...more(chat.raw) };
    } finally {
      chat.free();
    }
  }

  free() {
    this.#held.free();
  }
}

export class Trace {
  #held;

  constructor(key, raw) {
    if (key !== making) throw new TypeError("a trace is made by Tokenizer.explain");
    this.#held = new Held("trace", raw);
  }

  toJSON() {
    return this.#held.call((raw) => raw.json());
  }

  toPage() {
    return this.#held.call((raw) => raw.page());
  }

  why(startByte, endByte) {
    return this.#held.call((raw) => raw.why(startByte, endByte));
  }

  free() {
    this.#held.free();
  }
}
