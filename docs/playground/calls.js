/* What a worker does: calls of an engine, as WebAssembly. It runs beside the page, so typing never waits for it. There
 * are two workers: `worker.js` has the small engine, and `full.js` the one that knows traces and chats too.
 *
 * A message is `{id, call, args}`, its answer `{id, result}` or `{id, error: {name, message}}`. Each call names its
 * vocabulary as `{key, file}`, without `file` for an embedded one. So nothing has to be set up first, and a new worker
 * takes the place of one that crashed. */

const MOST_OPEN = 4; // a large vocabulary takes about 100 MB

const opened = new Map(); // by key: a tokenizer, the tokens that were shown; the one that was used last is at the end
let ggtok = null; // the engine
let code; // a promise of its WebAssembly, if the page loads it
let trace = null; // the one that is shown

const start = async () => ggtok.default(await code);

/** A vocabulary of the page, compressed: few servers compress files of a kind that they do not know. */
async function embedded(key) {
  const response = await fetch(new URL(`ggtok/vocabularies/${key}.gguf.deflate`, import.meta.url));
  if (!response.ok) throw new Error(`the vocabulary could not be loaded (${response.status})`);
  const whole = response.body.pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(whole).arrayBuffer());
}

/** A file whose reads are counted. */
function counted(file) {
  const reads = { bytes: 0 };
  const slice = (from = 0, to = file.size) => {
    const part = file.slice(from, to);
    reads.bytes += part.size;
    return part;
  };
  return [{ size: file.size, name: file.name, slice }, reads];
}

async function open({ key, file }) {
  let entry = opened.get(key);
  if (!entry) {
    if (file) {
      await start();
      const [blob, reads] = counted(file);
      entry = { tokenizer: await ggtok.Tokenizer.fromFile(blob), read: reads.bytes };
    } else {
      const [bytes] = await Promise.all([embedded(key), start()]);
      entry = { tokenizer: ggtok.Tokenizer.fromBytes(bytes), read: bytes.length };
    }
    entry.known = new Map();
    for (const [oldest, { tokenizer }] of opened) {
      if (opened.size < MOST_OPEN) break;
      opened.delete(oldest);
      tokenizer.free();
    }
  }
  opened.delete(key);
  opened.set(key, entry);
  return entry;
}

/** What the first `shown` of some ids are: their texts, and whether they are special. */
function tokensOf({ tokenizer, known }, ids, shown) {
  const { CONTROL, USER_DEFINED } = ggtok.TokenAttribute;
  const tokens = new Map();
  for (const id of ids.subarray(0, shown)) {
    if (!known.has(id)) {
      const { text, attributes } = tokenizer.token(id);
      known.set(id, { text, isSpecial: (attributes & (CONTROL | USER_DEFINED)) !== 0 });
    }
    tokens.set(id, known.get(id));
  }
  return tokens;
}

const calls = {
  /** What a vocabulary is. */
  async about(vocabulary) {
    const { tokenizer, read } = await open(vocabulary);
    const { kind, pre, size } = tokenizer;
    return { kind, pre, size, read };
  },
  /** How many bytes of a file are needed at least, if its beginning is not enough. */
  async needed(head, size) {
    await start();
    return ggtok.bytesNeeded(new Uint8Array(await head.arrayBuffer()), size);
  },
  /** All ids and their spans in bytes, and what the first `shown` tokens are. */
  async encode(vocabulary, text, options, shown) {
    const entry = await open(vocabulary);
    const { ids, spans } = entry.tokenizer.encodeWithOffsets(text, { ...options, unit: "byte" });
    return { ids, spans, tokens: tokensOf(entry, ids, shown) };
  },
  /** The same of a conversation, and its text and messages. */
  async chat(vocabulary, body, options, shown) {
    const entry = await open(vocabulary);
    const chat = entry.tokenizer.encodeChat(body, { ...options, unit: "byte" });
    return { ...chat, tokens: tokensOf(entry, chat.ids, shown) };
  },
  /** What is shown of a text's trace, as JSON; `why` may then be asked about it. */
  async explain(vocabulary, text, options) {
    const { tokenizer } = await open(vocabulary);
    await calls.forget();
    trace = tokenizer.explain(text, options);
    return trace.toPage();
  },
  /** Why the bytes of the last trace's text are not one token. */
  why: async (start, end) => JSON.parse(trace.why(start, end)),
  /** Frees the trace when its view is closed. */
  async forget() {
    trace?.free();
    trace = null;
  },
};

async function answer({ id, call, args }) {
  try {
    const result = await calls[call](...args);
    const moved = [result?.ids?.buffer, result?.spans?.buffer].filter(Boolean);
    postMessage({ id, result }, moved);
  } catch (error) {
    if (error.cause) {
      // The engine ran out of memory or hit a bug, and has a new instance that knows nothing of the old one's objects.
      opened.clear();
      trace = null;
    }
    postMessage({ id, error: { name: error.name, message: error.message } });
  }
}

/** Answers messages with an engine, one after another: a tokenizer is not freed while another call waits to use it. */
export function serve(engine, sent) {
  [ggtok, code] = [engine, sent];
  let last = Promise.resolve();
  onmessage = ({ data }) => {
    if (data.call) last = last.then(() => answer(data));
  };
}
