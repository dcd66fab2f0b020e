// The JavaScript package's types and documentation.

/**
 * Loads the engine. Must be awaited once before the first call; more calls do no harm.
 *
 * @param source Where `ggtok_bg.wasm` is, or the module itself. Default: beside `ggtok.js`.
 */
export default function init(source?: string | URL | Response | ArrayBuffer | WebAssembly.Module): Promise<void>;

/**
 * How many bytes of a file of `size` bytes are needed at least, if these first ones are not enough to open it;
 * `undefined` if they are. For files that arrive in pieces.
 *
 * @throws {GGUFError} The bytes are not GGUF, or are damaged.
 */
export function bytesNeeded(bytes: Uint8Array, size: number): number | undefined;

/** Which special tokens a text gets. */
export interface EncodeOptions {
  /** Add BOS and EOS (or what the vocabulary asks for). Default: `true`. */
  addSpecial?: boolean;
  /** Read control tokens that are written in the text as such. Default: `false`, they stay text. */
  parseSpecial?: boolean;
}

/** How ids become text. */
export interface DecodeOptions {
  /** Leave out BOS and EOS where the vocabulary adds them. Default: `false`. */
  removeSpecial?: boolean;
  /** Write control tokens out. Default: `false`. */
  unparseSpecial?: boolean;
  /** Remove spaces as `llama_detokenize` does, if the vocabulary asks for it. Default: `false`. */
  cleanSpaces?: boolean;
}

/** What offsets count: UTF-16 code units (the indexes of a string), code points, or bytes of UTF-8. */
export type Unit = "utf16" | "char" | "byte";

/** The algorithm of a vocabulary. */
export type Kind = "spm" | "bpe" | "wordpiece" | "unigram" | "rwkv" | "plamo2" | "test" | "none";

/** Flags that steer encoding and decoding, by llama.cpp's names. */
export interface Settings {
  readonly addBos: boolean;
  readonly addEos: boolean;
  readonly addSep: boolean;
  readonly addSpacePrefix: boolean;
  readonly ignoreMerges: boolean;
  readonly cleanSpaces: boolean;
  readonly removeExtraWhitespaces: boolean;
  readonly escapeWhitespaces: boolean;
  readonly lowercase: boolean;
  readonly stripAccents: boolean;
}

/** The ids of special tokens; `null` if the vocabulary has no such token. */
export type SpecialIds = Readonly<
  Record<
    | "bos"
    | "eos"
    | "eot"
    | "eom"
    | "unk"
    | "sep"
    | "nl"
    | "pad"
    | "mask"
    | "fimPre"
    | "fimSuf"
    | "fimMid"
    | "fimPad"
    | "fimRep"
    | "fimSep",
    number | null
  >
>;

/** One entry of a vocabulary. */
export interface Token {
  /** Its position in the vocabulary. */
  id: number;
  /** Its text as in the file; U+FFFD stands for bytes that are not UTF-8. */
  text: string;
  /** A log probability (Unigram) or merge priority (SPM); 0 if the file has no scores. */
  score: number;
  /** Bits of `TokenAttribute`. */
  attributes: number;
}

/** llama.cpp's token attributes, one bit each. */
export const TokenAttribute: {
  readonly UNKNOWN: 1;
  readonly UNUSED: 2;
  readonly NORMAL: 4;
  readonly CONTROL: 8;
  readonly USER_DEFINED: 16;
  readonly BYTE: 32;
  readonly NORMALIZED: 64;
  readonly LSTRIP: 128;
  readonly RSTRIP: 256;
  readonly SINGLE_WORD: 512;
};

/** A message as llama-server reads it: `role`, `content`, `tool_calls`, `reasoning_content`, ... */
export interface Message {
  role: string;
  content?: string | readonly object[] | null;
  [field: string]: unknown;
}

/** The body of a request to `/v1/chat/completions`. */
export interface ChatRequest {
  messages: readonly Message[];
  tools?: readonly object[];
  chat_template_kwargs?: Record<string, unknown>;
  [field: string]: unknown;
}

/** How a conversation becomes text. What is passed here wins over what the body of a request says. */
export interface ChatOptions {
  /** JSON schemas of functions. */
  tools?: readonly object[];
  /** Objects with `title` and `text`. */
  documents?: readonly object[];
  /**
   * End with the beginning of an assistant's message. By default it does, and a last message of the assistant's is
   * continued instead. `false` closes that message.
   */
  addGenerationPrompt?: boolean;
  /** End with the last character of the last message. Needs `addGenerationPrompt: false`. */
  continueFinalMessage?: boolean | "content" | "reasoning_content";
  /** The name of one of the file's templates, or `"chatml"`, which llama-server takes for files without one. */
  template?: string;
  /** A template to use instead of the file's. */
  templateText?: string;
  /** What to write for an image, a sound or a film. Without it they are refused. */
  mediaMarker?: string;
  /** Further variables of the template, such as `{ enable_thinking: false }`. */
  variables?: Record<string, unknown>;
  /** The time that templates write: by default now, in the zone of this machine. `offset` is in seconds. */
  now?: Date | { seconds: number; offset?: number; zone?: string };
}

/** The text of a conversation. */
export interface ChatText {
  text: string;
  /** Who wrote which part of the text, and for which message. Places are indexes of the string. */
  parts: { start: number; end: number; isCaller: boolean; message: number | null }[];
  /** What the model does not see. `index` is the message that it is about. */
  warnings: { code: string; message: string; subject: string | null; index: number | null }[];
}

/** The ids of a conversation. */
export interface ChatEncoding extends ChatText {
  ids: Int32Array;
  /** For each token the place in the text that it comes from, as in `encodeWithOffsets`. */
  spans: Uint32Array;
  /** For each message its tokens, from the first to the one after the last; `null` if the template writes none. */
  messageSpans: ([start: number, end: number] | null)[];
  /** The tokens of the markers of images, sounds and films. */
  media: { message: number; part: number; start: number; end: number }[];
  /** For each token whether the assistant says it, if `mask` was asked for. */
  assistantMask?: boolean[];
}

/** A vocabulary with its algorithm: text to tokens and back, exactly as llama.cpp does. */
export class Tokenizer {
  private constructor();

  /**
   * Opens the tokenizer of a GGUF file, or of its beginning as far as the metadata goes.
   *
   * @throws {GGUFError} The bytes are not GGUF, or are damaged.
   * @throws {VocabularyError} The file is sound, but its vocabulary is not.
   * @throws {UnsupportedError} The tokenizer is not one that llama.cpp has.
   */
  static fromBytes(bytes: Uint8Array): Tokenizer;

  /** As `fromBytes`, from a file that the user chose. Reads the metadata, never the weights. */
  static fromFile(file: Blob): Promise<Tokenizer>;

  /** The ids of a text. Bytes need not be UTF-8. */
  encode(text: string | Uint8Array, options?: EncodeOptions): Int32Array;

  /**
   * The ids of a text, and for each the place in the text that it comes from: `spans[2 * i]` to `spans[2 * i + 1]`.
   * `unit` says what they count, by default the indexes of the string.
   */
  encodeWithOffsets(
    text: string | Uint8Array,
    options?: EncodeOptions & { unit?: Unit },
  ): { ids: Int32Array; spans: Uint32Array };

  /** How many ids a text has. */
  count(text: string | Uint8Array, options?: EncodeOptions): number;

  /**
   * The text of some ids. U+FFFD stands for bytes that are not UTF-8.
   *
   * @throws {TokenIndexError} An id is outside the vocabulary.
   */
  decode(ids: ArrayLike<number>, options?: DecodeOptions): string;

  /** The bytes of some ids. */
  decodeBytes(ids: ArrayLike<number>, options?: DecodeOptions): Uint8Array;

  /** The bytes that a token stands for; none for a control token if `special` is `false`. */
  piece(id: number, options?: { special?: boolean }): Uint8Array;

  /** A token of the vocabulary. */
  token(id: number): Token;

  /** Every step from a text to its tokens. The text has at most 1 MiB. */
  explain(text: string | Uint8Array, options?: EncodeOptions): Trace;

  /**
   * The text of a conversation, as llama-server writes it with the file's chat template. Takes messages, the body of a
   * request, or its JSON, in which numbers stay as they are written. U+FFFD stands for a lone surrogate.
   *
   * @throws {ChatTemplateError} The template is missing, has a syntax error, fails, refuses these messages, or exceeds
   *   a limit.
   * @throws {ChatRequestError} llama-server would not take the messages or what comes with them.
   */
  applyChatTemplate(
    messages: readonly Message[] | ChatRequest | string | Uint8Array,
    options?: ChatOptions,
  ): ChatText;

  /**
   * The ids of a conversation. Control tokens are read in what the template wrote, and never in messages. `mask` asks
   * for the tokens that the assistant says: whole turns, or its strings alone. `unit` is what spans count.
   *
   * @throws {VocabularyError} The vocabulary itself reads a control token in a message.
   */
  encodeChat(
    messages: readonly Message[] | ChatRequest | string | Uint8Array,
    options?: ChatOptions & { addSpecial?: boolean; mask?: "turn" | "content"; unit?: Unit },
  ): ChatEncoding;

  /** The algorithm. */
  readonly kind: Kind;
  /** The pre-tokenizer of a BPE vocabulary (`tokenizer.ggml.pre`); `null` for other kinds. */
  readonly pre: string | null;
  /** The algorithm by its name in the file (`tokenizer.ggml.model`). */
  readonly model: string;
  /** The name of the model (`general.name`); `null` if the file has none. */
  readonly name: string | null;
  /** How many tokens there are. */
  readonly size: number;
  readonly settings: Settings;
  readonly specialIds: SpecialIds;
  /** The tokens that end generation, in ascending order. */
  readonly eogIds: readonly number[];

  /** Frees the memory now. It is also freed some time after the last reference is gone. */
  free(): void;
}

/** Every step from a text to its tokens. */
export class Trace {
  private constructor();

  /** The JSON text of all steps, as Python's `Trace.to_json()` writes it. */
  toJSON(): string;
  /** The JSON text of what a page shows: the text, its tokens, and the steps as a reader walks through them. */
  toPage(): string;

  /**
   * Why some bytes of the text did or did not become one token, as JSON: `outcome`, `message` and `reasons`.
   *
   * @throws {GgtokError} The range is empty, or extends beyond the text.
   */
  why(startByte: number, endByte: number): string;

  /** Frees the memory now. */
  free(): void;
}

/** The base of all errors of ggtok. Messages are those of the Python package. */
export class GgtokError extends Error {}

/** A file is not GGUF or is damaged, or a key has the wrong type. */
export class GGUFError extends GgtokError {
  /** The key at fault. */
  readonly key?: string;
  /** Where, in bytes from the start of the file. */
  readonly offset?: number;
  readonly expected?: string;
  readonly found?: string;
}

/** A file is sound but its vocabulary is not, or a text needs a special token that the vocabulary does not have. */
export class VocabularyError extends GgtokError {}

/** A file names a tokenizer or pre-tokenizer that llama.cpp does not have. */
export class UnsupportedError extends GgtokError {
  /** That name. */
  readonly unknown: string;
  /** The most similar names that are known. */
  readonly nearest: readonly string[];
}

/** A token id is not in the vocabulary. */
export class TokenIndexError extends GgtokError {}

/** A chat template is missing, fails, or refuses a conversation. */
export class ChatTemplateError extends GgtokError {
  /** Its name. */
  readonly template?: string;
  /** Where, from 1. */
  readonly line?: number;
  /** Where in the line, in bytes from 1. */
  readonly column?: number;
}

/** A conversation, or what is passed with it, is not a request that llama-server takes. */
export class ChatRequestError extends GgtokError {
  /** What is at fault, such as `messages[2].content[1]`. */
  readonly field?: string;
}

/** There is not enough memory for a file or a text. Tokenizers may have to be opened again: they say so. */
export class MemoryError extends GgtokError {}
