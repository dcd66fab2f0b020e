// Every call of the JavaScript package, with its types: tests/test_wasm.py has the compiler check it.

import init, { ChatRequestError, ChatTemplateError, GgtokError, GGUFError, TokenAttribute, Tokenizer, Trace, UnsupportedError } from "ggtok";

export async function calls(file: File, module: WebAssembly.Module): Promise<void> {
  await init();
  await init(module);
  const tok: Tokenizer = await Tokenizer.fromFile(file);
  const ids: Int32Array = tok.encode("text", { addSpecial: false, parseSpecial: true });
  const { spans }: { spans: Uint32Array } = tok.encodeWithOffsets(new Uint8Array(3), { unit: "byte" });
  const text: string = tok.decode([...ids, spans.length], { removeSpecial: true });
  const bytes: Uint8Array = tok.decodeBytes(ids, { cleanSpaces: true, unparseSpecial: true });
  const trace: Trace = tok.explain(bytes);
  const json: string[] = [trace.toJSON(), trace.why(0, 1), tok.kind, tok.model, tok.pre ?? "", tok.name ?? text];
  const isControl: boolean = (tok.token(0).attributes & TokenAttribute.CONTROL) !== 0;
  const numbers: (number | null)[] = [tok.count("text"), tok.size, tok.specialIds.fimPre, ...tok.eogIds];
  const flags: boolean[] = [tok.settings.addBos, isControl, tok.piece(0, { special: false }).length > json.length];
  const messages = [{ role: "user", content: "Hi", name: "Ann" }];
  const chat = tok.encodeChat({ messages, tools: [] }, { mask: "turn", now: new Date(0), addSpecial: false });
  const places: ([number, number] | null)[] = chat.messageSpans;
  const said: boolean[] = chat.assistantMask ?? [];
  const { parts, warnings } = tok.applyChatTemplate(messages, { template: "chatml", now: { seconds: 0, zone: "UTC" } });
  json.push(chat.text.slice(parts[0].start, parts[0].end), warnings[0].code, String(parts[0].message));
  numbers.push(chat.ids[0], places.length, said.length, chat.media.length);
  trace.free();
  tok.free();
  try {
    Tokenizer.fromBytes(bytes);
  } catch (error) {
    if (error instanceof GGUFError) numbers.push(error.offset ?? 0);
    if (error instanceof ChatTemplateError) numbers.push(error.line ?? 0, error.column ?? 0);
    if (error instanceof ChatRequestError) json.push(error.field ?? "");
    if (error instanceof UnsupportedError) json.push(error.unknown, ...error.nearest);
    if (!(error instanceof GgtokError)) throw error;
  }
  // @ts-expect-error: a tokenizer is not made this way.
  new Tokenizer(flags);
  // @ts-expect-error: an unknown mask.
  tok.encodeChat(messages, { mask: "all" });
  // @ts-expect-error: an unknown unit.
  tok.encodeWithOffsets("text", { unit: "word" });
}
