// Makes calls of the JavaScript package for tests/test_wasm.py: a request in JSON per line, and an answer per request.
//
// A request is a list of steps `[target, method, ...arguments]`, which are made in order. The target is "package" (the
// functions below) or the number of an earlier object. Bytes are `{"base64": ...}` both ways.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const folder = pathToFileURL(`${process.argv[2]}/`);
const ggtok = await import(new URL("ggtok.js", folder));
const engine = await import(new URL("ggtok_bg.js", folder));
const objects = [];

/** A file of which only some bytes exist: the first ones; the rest is zeros up to `size`, and is never to be read. */
class LazyFile {
  constructor(bytes, size) {
    Object.assign(this, { bytes, size, reads: [] });
  }

  slice(start, end) {
    this.reads.push([start, end]);
    const part = new Uint8Array(Math.min(end, this.size) - start);
    part.set(this.bytes.subarray(start, end));
    return { arrayBuffer: async () => part.buffer };
  }
}

const own = {
  init: () => ggtok.default(),
  bytesNeeded: (bytes, size) => ggtok.bytesNeeded(bytes, size),
  names: () => Object.keys(ggtok),
  properties: (number) => Object.keys(objects[number]),
  fromBytes: (bytes) => keep(ggtok.Tokenizer.fromBytes(bytes)),
  fromBlob: async (bytes) => keep(await ggtok.Tokenizer.fromFile(new Blob([bytes]))),
  async fromLazyFile(bytes, size) {
    const file = new LazyFile(bytes, size);
    return [keep(await ggtok.Tokenizer.fromFile(file)), file.reads];
  },
  /** The bytes of the engine's memory. */
  memory: async () => (await engine.default()).memory.buffer.byteLength,
  /** Leaves the engine this many bytes less than it can have. */
  async exhaust(left) {
    const { memory } = await engine.default();
    memory.grow(65536 - memory.buffer.byteLength / 65536 - Math.ceil(left / 65536));
  },
  /** Has the next call of `count` stop the engine in the middle, as a bug would. */
  breakCount() {
    const { prototype } = engine.RawTokenizer;
    const { count } = prototype;
    prototype.count = function () {
      prototype.count = count;
      return count.call({ __wbg_ptr: 0 }, new Uint8Array(), true, false);
    };
  },
  isError: (name, base) => ggtok[name].prototype instanceof ggtok[base] && ggtok[base].prototype instanceof Error,
};

function keep(object) {
  objects.push(object);
  return objects.length - 1;
}

function read(value) {
  return typeof value?.base64 === "string" ? new Uint8Array(Buffer.from(value.base64, "base64")) : value;
}

function shown(value) {
  if (value instanceof Int32Array || value instanceof Uint32Array) return Array.from(value);
  if (value instanceof Uint8Array) return { base64: Buffer.from(value).toString("base64") };
  if (value instanceof ggtok.Trace) return keep(value);
  if (value?.ids) return { ...value, ids: shown(value.ids), ...(value.spans && { spans: shown(value.spans) }) };
  return value === undefined ? null : value;
}

async function step([target, name, ...values]) {
  try {
    const object = target === "package" ? own : objects[target];
    const member = object[name];
    return shown(typeof member === "function" ? await member.apply(object, values.map(read)) : member);
  } catch (error) {
    const { name, message, stack, cause, ...details } = error;
    return { error: name, message, details };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const answers = [];
  for (const request of JSON.parse(line)) answers.push(await step(request));
  process.stdout.write(`${JSON.stringify(answers)}\n`);
}
