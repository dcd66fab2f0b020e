/* What people drop: how large it is, and what to say about a file that has no tokenizer. */

export function sizeOf(bytes) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let at = 0;
  for (; bytes >= 1000 && at < units.length - 1; at++) bytes /= 1000;
  return `${at && bytes < 10 ? bytes.toFixed(1) : Math.round(bytes)} ${units[at]}`;
}

const GGML = ["lmgg", "fmgg", "tjgg"]; // the letters of ggml, ggmf and ggjt, from the last

const startsWith = (head, letters) => Array.from(letters).every((letter, at) => head[at] === letter.charCodeAt(0));

/** What a file is by its first bytes, if it is not a GGUF file. */
function kindOf(head) {
  if (startsWith(head, "%PDF")) return "a PDF";
  if (startsWith(head, "PK")) return "a ZIP file, as PyTorch’s weights are";
  if (startsWith(head, "\x80\x02") || startsWith(head, "\x80\x04")) return "a Python pickle";
  if (GGML.some((letters) => startsWith(head, letters))) return "a GGML file, which is older than GGUF";
  if (head[0] === 0x3c) return "a web page";
  if (head[8] === 0x7b && head[9] === 0x22) return "a safetensors file, which has weights and no tokenizer";
  if (head[0] === 0x7b || head[0] === 0x5b) return "JSON";
  if (head[0] === 0x0a && head[2] === 0x0a) return "perhaps a SentencePiece model";
  return null;
}

/** A sentence for a file that could not be opened, with the core's message. */
export async function whatIsWrong(file, error) {
  let head;
  try {
    head = new Uint8Array(await file.slice(0, 16).arrayBuffer());
  } catch {
    return `${file.name} could not be read. Is it a folder, or has it been moved?`;
  }
  if (!head.length) return `${file.name} is empty.`;
  if (!startsWith(head, "GGUF")) {
    const kind = kindOf(head);
    return `${file.name} is not a GGUF file${kind ? `: it is ${kind}` : ""}. Take a model’s .gguf file.`;
  }
  const part = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/i.exec(file.name);
  if (part && part[2] !== "00001") {
    const [, name, at, of] = part;
    const first = `${name}-00001-of-${of}.gguf`;
    return `${file.name} is part ${Number(at)} of ${Number(of)}. The tokenizer is in the first: ${first}.`;
  }
  const message = `${file.name} could not be opened. ${error.name}: ${error.message}.`;
  if (!/mmproj|clip/i.test(file.name)) return message;
  return `${message} Files named mmproj have an image encoder; the tokenizer is in the model’s own file.`;
}
