/* Models by their names: what a name or a link means, the files of a repository on the Hugging Face Hub, and the
 * beginning of a file at an address. Nothing here asks for anything before it is called.
 *
 * Only the Hub gets the token. A browser takes it out of a request that is redirected to another server. */

const HUB = "https://huggingface.co";
export const WELL_KNOWN = {
  "Llama 3.2": "hf:bartowski/Llama-3.2-1B-Instruct-GGUF",
  "Qwen 3": "hf:Qwen/Qwen3-0.6B-GGUF",
  "Gemma 3": "hf:ggml-org/gemma-3-1b-it-GGUF",
  "gpt-oss": "hf:ggml-org/gpt-oss-20b-GGUF",
  Mistral: "hf:bartowski/Mistral-7B-Instruct-v0.3-GGUF",
  "Phi-4": "hf:unsloth/Phi-4-mini-instruct-GGUF",
  "DeepSeek R1": "hf:bartowski/DeepSeek-R1-Distill-Qwen-1.5B-GGUF",
};
const FIRST_READ = 1 << 20; // each further read is at least as long as all before it together
const MOST_READ = 1 << 28; // ten times the longest head of any known model
const PATIENCE = 20_000; // milliseconds without a byte
const PREFERRED = ["Q4_K_M", "Q8_0"]; // as llama.cpp prefers them
const COMPANIONS = ["mmproj", "imatrix", "mtp-", "eagle3-", "dflash-", "dspark-"];
const SPLIT = /-(\d{5})-of-\d{5}\.gguf$/i;

/** A sentence for people about a model that cannot be had. `wantsToken` if a token may help. */
export class Refusal extends Error {
  constructor(message, wantsToken = false) {
    super(message);
    this.wantsToken = wantsToken;
  }
}

/** The choice that a typed name or link means, such as `hf:owner/name:Q4_K_M` or the address of a file, or null. */
export function choiceOf(typed) {
  const text = typed.trim().replace(/^(https?:\/\/)?(www\.)?(huggingface\.co|hf\.co)\//i, "hf:");
  if (/^https?:\/\/[^\s/]+\/\S/i.test(text)) return text;
  const [path] = text.replace(/^hf:/, "").split(/[?#]/);
  const match = /^([\w.-]+\/[\w.-]+)(?::([\w.-]+)|\/(?:(?:blob|resolve|tree|raw)\/[^/]+\/?)?(.*))?$/.exec(path);
  if (!match) return null;
  const [, repository, tag, file] = match;
  return `hf:${repository}${tag ? `:${tag}` : file ? `/${decodeURIComponent(file)}` : ""}`;
}

export const isRemote = (choice) => /^(hf:|https?:)/.test(choice ?? "");

/** The parts of a choice on the Hub. */
function partsOf(choice) {
  const [, repository, tag, file] = /^hf:([^/]+\/[^/:]+)(?::(.+)|\/(.+))?$/.exec(choice) ?? [];
  if (!repository) throw new Refusal(`${choice} names no model: write owner/name, or paste a link to a .gguf file.`);
  return { repository, tag, file };
}

/** What work on an answer of a server gives. Server and network have some time for it. */
async function patient(work, name, abort) {
  let late;
  const silence = new Promise((_, reject) => {
    const problem = `${name}: the server has sent nothing for ${PATIENCE / 1000} seconds. Try again.`;
    late = setTimeout(() => reject(new Refusal(problem)), PATIENCE);
  });
  try {
    return await Promise.race([work, silence]);
  } catch (error) {
    abort.abort();
    if (error instanceof Refusal || error.name === "AbortError") throw error;
    let cause = "there is no network, or the server does not allow other sites to read it";
    if (error instanceof SyntaxError) cause = "the server’s answer makes no sense";
    else if (!navigator.onLine) cause = "this computer is offline";
    throw new Refusal(`${name} could not be read: ${cause}. Try again, or drop the file here.`);
  } finally {
    clearTimeout(late);
  }
}

/** An answer with a good status. */
async function ask(address, name, token, abort, headers = {}) {
  const isHub = new URL(address).origin === HUB;
  if (isHub && token) headers.Authorization = `Bearer ${token}`;
  const bare = { credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store" };
  const response = await patient(fetch(address, { headers, signal: abort.signal, ...bare }), name, abort);
  if (response.ok) return response;
  abort.abort();
  throw refusalOf(response, name, isHub, Boolean(token));
}

function refusalOf({ status, headers }, name, isHub, hasToken) {
  const code = headers.get("x-error-code");
  const repository = /^(?:hf:)?([^/]+\/[^/:]+)/.exec(name)?.[1];
  if (status === 429) {
    const wait = headers.get("retry-after") ?? /t=(\d+)/.exec(headers.get("ratelimit") ?? "")?.[1] ?? "some";
    return new Refusal(`${name}: the server had too many requests (429). Try again in ${wait} seconds.`);
  }
  if (isHub && (status === 403 || code === "GatedRepo")) {
    const todo = hasToken ? "This token has no access to it" : "Then give an access token";
    return new Refusal(`${name} is gated: accept its terms on ${HUB}/${repository}. ${todo}.`, true);
  }
  if (isHub && (status === 401 || (status === 404 && code !== "EntryNotFound"))) {
    const todo = hasToken ? "this token cannot see it" : "it is private and needs an access token";
    return new Refusal(`The Hub has no model named ${repository}, or ${todo}. Check the spelling.`, true);
  }
  const meanings = { 401: "access is refused", 403: "access is refused", 404: "there is no such file" };
  const todo = status in meanings ? "Check the name, or drop the file here" : "Try again later";
  return new Refusal(`${name}: ${meanings[status] ?? "the server answers with an error"} (${status}). ${todo}.`);
}

/** The JSON at an address. */
async function json(address, name, token, abort) {
  const response = await ask(address, name, token, abort);
  return patient(response.json(), name, abort);
}

/** Names of models with GGUF files, the most downloaded first: `[{id, downloads}]`. */
export async function suggestions(typed, token, abort) {
  const query = new URLSearchParams({ search: typed, filter: "gguf", sort: "downloads", direction: -1, limit: 8 });
  return json(`${HUB}/api/models?${query}`, typed, token, abort);
}

function isModel(path) {
  const name = path.split("/").at(-1).toLowerCase();
  const isFirst = (SPLIT.exec(path)?.[1] ?? "00001") === "00001";
  return name.endsWith(".gguf") && isFirst && !COMPANIONS.some((mark) => name.includes(mark));
}

/** The models among the files of a repository, `[{path, size}]`. */
export async function filesOf(choice, token, abort) {
  const { repository } = partsOf(choice);
  const answer = await json(`${HUB}/api/models/${repository}?blobs=true`, `hf:${repository}`, token, abort);
  const all = answer.siblings.map(({ rfilename: path, size }) => ({ path, size }));
  all.sort((a, b) => (a.path < b.path ? -1 : 1));
  const models = all.filter(({ path }) => isModel(path));
  if (models.length) return models;
  const isOther = all.some(({ path }) => path.toLowerCase().endsWith(".gguf"));
  const why = isOther ? "only files that go with a model, such as a projector (mmproj)" : "no GGUF file";
  throw new Refusal(`${repository} has ${why}. Look for a repository of the same model whose name ends in GGUF.`);
}

/** The file that a choice means, as llama.cpp chooses it. */
function fileOf(choice, files) {
  const { repository, tag, file } = partsOf(choice);
  if (file) return files.find(({ path }) => path.toLowerCase() === file.toLowerCase()) ?? { path: file };
  const isMarked = (path, wanted) => [".", "-"].some((end) => path.toLowerCase().includes(wanted.toLowerCase() + end));
  const marked = (wanted) => files.find(({ path }) => isMarked(path, wanted));
  const found = tag ? marked(tag) : (PREFERRED.map(marked).find(Boolean) ?? files[0]);
  if (found) return found;
  throw new Refusal(`${repository} has no file for ${tag}: it has ${files.map(({ path }) => path).join(", ")}.`);
}

/** The short choice that means a file: by its tag if that finds it. */
export function shortest(choice, path, files) {
  const { repository } = partsOf(choice);
  const tag = /[-.]([A-Z0-9_]+)(-\d{5}-of-\d{5})?\.gguf$/i.exec(path)?.[1];
  const byTag = `hf:${repository}:${tag}`;
  return tag && fileOf(byTag, files).path === path ? byTag : `hf:${repository}/${path}`;
}

/** The beginning of the file that a choice means: `{file, size, read, isWhole}`; `isWhole` if the server knows no
 * ranges. `needed(head, size)` says how many bytes are needed at least if these are too few. `onRead(bytes)` is
 * called often. */
export async function readHead(choice, { token, files, needed, onRead, abort }) {
  let [address, size] = [choice, null];
  if (choice.startsWith("hf:")) {
    const found = fileOf(choice, files ?? (partsOf(choice).file ? [] : await filesOf(choice, token, abort)));
    const path = found.path.split("/").map(encodeURIComponent).join("/");
    [address, size] = [`${HUB}/${partsOf(choice).repository}/resolve/main/${path}`, found.size ?? null];
  }
  let head = new Blob();
  let whole = null; // the answer of a server that sends the whole file
  for (let goal = FIRST_READ; goal; ) {
    if (goal > MOST_READ) throw new Refusal(`${choice} is not a model: its header is over ${MOST_READ >> 20} MiB.`);
    let reader = whole;
    if (!whole) {
      const response = await ask(address, choice, token, abort, { Range: `bytes=${head.size}-${goal - 1}` });
      const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(response.headers.get("content-range") ?? "");
      const isPart = response.status === 206;
      const total = Number(isPart ? range?.[2] : response.headers.get("content-length")) || null;
      if ((range && Number(range[1]) !== head.size) || (size && total && size !== total)) {
        throw new Refusal(`${choice}: the server contradicts itself about the file’s size. Try again later.`);
      }
      size ??= total;
      reader = response.body.getReader();
      if (!isPart) whole = reader;
    }
    const end = Math.min(goal, size ?? goal);
    head = await readInto(head, reader, end, choice, onRead, abort);
    if (!whole) head = head.slice(0, end);
    const isCut = head.size < end && size;
    if (isCut) throw new Refusal(`${choice} ends early, after ${head.size} of ${size} bytes. Try again.`);
    const more = await needed(head, head.size < end ? head.size : (size ?? Number.MAX_SAFE_INTEGER));
    goal = more && Math.min(Math.max(more, 2 * head.size), size ?? Infinity);
  }
  whole?.cancel().catch(() => {});
  return { file: head, size, isWhole: whole !== null };
}

async function readInto(head, reader, end, name, onRead, abort) {
  const parts = [head];
  let at = head.size;
  while (at < end) {
    const { done, value } = await patient(reader.read(), name, abort);
    if (done) break;
    parts.push(value);
    at += value.length;
    onRead(at);
  }
  return new Blob(parts);
}
