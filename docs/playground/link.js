/* A case as the fragment of an address, and back: the text, the names of the vocabularies, and the options.
 *
 * `#v=bpe&t=text`, where `v` and `w` are the vocabularies (`file:` before the name of a file, `hf:owner/name:Q4_K_M`
 * for one on the Hugging Face Hub, or the address of a file), `s=1` reads special tokens, `b=0` adds no BOS or EOS, and
 * `k=3` shows the steps of the token with that index, `k=3.merge.2` one of them. A long text is in `z` instead of
 * `t`: deflate and base64url. */

/** The most characters of a fragment: mail and chat programs cut longer addresses. */
export const MOST_CHARACTERS = 8000;

/** The most bytes of a text in a link, because a small link may hold a huge one. */
const MOST_BYTES = 1 << 20;
const PLAIN = 400; // a longer fragment is compressed
const KIND = "deflate-raw";

/** What a stream makes of some bytes. */
async function streamed(bytes, transform) {
  const reader = new Blob([bytes]).stream().pipeThrough(transform).getReader();
  const all = [];
  let size = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.length;
    if (size > MOST_BYTES) throw new RangeError("the text of this link is too long");
    all.push(part.value);
  }
  return new Uint8Array(await new Blob(all).arrayBuffer());
}

async function compressed(text) {
  const bytes = await streamed(new TextEncoder().encode(text), new CompressionStream(KIND));
  const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function expanded(value) {
  const letters = atob(value.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const text = await streamed(bytes, new DecompressionStream(KIND));
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(text);
}

/** The fragment of a case, or null if the text is too long for a link. */
export async function toFragment({ text, vocabulary, other, special, bos, step }, most = MOST_CHARACTERS) {
  const given = new URLSearchParams({ v: vocabulary });
  if (other) given.set("w", other);
  if (special) given.set("s", "1");
  if (!bos) given.set("b", "0");
  if (step !== null) given.set("k", step);
  if (text.length > MOST_BYTES) return null;
  const plain = new URLSearchParams([...given, ["t", text]]).toString();
  if (plain.length <= PLAIN) return plain;
  const packed = new URLSearchParams([...given, ["z", await compressed(text)]]).toString();
  const shorter = packed.length < plain.length ? packed : plain;
  return shorter.length <= most ? shorter : null;
}

/** The case of a fragment. `text` is null if there is none in it. Rejects if the text cannot be read. */
export async function fromFragment(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const text = given.has("z") ? await expanded(given.get("z")) : given.get("t");
  return {
    text,
    vocabulary: given.get("v") || null,
    other: given.get("w") || null,
    special: given.get("s") === "1",
    bos: given.get("b") !== "0",
    step: /^\d{1,6}(\.[\w.]{1,40})?$/.exec(given.get("k"))?.[0] ?? null,
  };
}
