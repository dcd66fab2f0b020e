"""What a user of ggtok writes, checked as strictly as type checkers can. It is never run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import ggtok
from ggtok import adapters, corpus, errors, trace


def opened(path: Path) -> ggtok.Tokenizer:
    try:
        return ggtok.Tokenizer.from_gguf(path, overrides={"tokenizer.ggml.add_bos_token": False})
    except ggtok.UnsupportedError as error:
        print(error.name, error.path)
    except errors.GGUFError as error:
        print(error.key, error.offset)
    return ggtok.Tokenizer.from_model("ollama:llama3.2", offline=True)


def encoded(tok: ggtok.Tokenizer, text: str) -> list[int]:
    ids = tok.encode(text, add_special=False, parse_special=True)
    assert tok.count(text) == len(ids)
    print(tok.decode(ids), tok.decode_bytes(ids).hex(), tok.piece(ids[0]).decode())
    batch = tok.encode_batch([text, b"bytes"], threads=2)
    print(batch.tolist(), len(batch), batch.to_arrow(), batch.to_dict(), batch == batch)
    print(tok.count_batch([text]), tok.decode_batch(batch), tok.decode_batch([[1, 2]]))
    encoding = tok.encode_with_offsets(text, unit="byte")
    print(encoding.tolist(), len(encoding))
    print(tok.encode_parts([("a", True), ("b", False)]), tok.count_parts([("a", True)]))
    for chunk in tok.split(text, 10, overlap=2, boundaries=["paragraph", "word"]):
        print(chunk.text, chunk.start, chunk.end, chunk.count, chunk.to_dict()["text"])
    print(tok.truncate(text, 5, side="left"), tok.split_batch([text], 4)[0][0].count)
    decoder = tok.decoder(stop=["</s>"])
    decoder.prime(ids)
    out: str = decoder.push(ids) + decoder.flush()
    encoder = tok.encoder()
    print(out, encoder.push("a") + encoder.flush())
    with open("text.txt", "rb") as file:
        print(tok.count_file(file), tok.check()[0].severity)
    return ids


def vocabulary(tok: ggtok.Tokenizer) -> Iterator[str]:
    vocab = tok.vocab
    for token in vocab:
        if ggtok.TokenAttribute.CONTROL in token.attributes:
            yield token.text
    print(vocab.bos_id, vocab.eog_ids, vocab.kind, vocab.id("a"), vocab[3].score, vocab.merges[0], vocab.pieces[0])
    print(vocab.search("a"), len(vocab), tok.metadata["general.name"], vocab.settings, tok.releases.same_since)


def chat(tok: ggtok.Tokenizer) -> list[int]:
    def weather(city: str) -> str:
        """The weather.

        Args:
            city: Where.
        """
        return city

    messages = [{"role": "user", "content": "Hi"}]
    text: str = tok.apply_chat_template(messages, tools=[weather], enable_thinking=False)
    encoding = tok.encode_chat(messages, return_spans=True, mask="content")
    print(text, encoding.message_spans, encoding.assistant_mask, encoding.to_dict(), encoding.media)
    number: int = tok.count_messages({"messages": messages}, trust=True)
    growing = tok.chat(messages)
    turn = growing.append({"role": "assistant", "content": "Hello"}, ids=[1, 2], trust="ids")
    kept = tok.trim_messages(messages, 100, keep=lambda message: message["role"] == "system")
    print(turn.kept, turn.new_ids, growing.ids, growing.fork().num_tokens, kept[0]["role"], number)
    print(tok.rerank("a", "b"), tok.encode_infill("a", "b", extra_files={"a.py": "b"}))
    return tok.encode_chat(messages)


def laboratory(tok: ggtok.Tokenizer, other: ggtok.Tokenizer) -> None:
    found = tok.explain("What is LoRA?")
    assert isinstance(found, ggtok.Trace)
    print(found.ids, found.why(0, 4), json.loads(found.to_json()), len(found.fragments))
    found.to_html("page.html")
    steps = found.fragments[0].steps
    if isinstance(steps, trace.Bpe):
        print([pop.bigram.rank for piece in steps.pieces for pop in piece.merging.pops])
    difference = ggtok.diff(tok, other, "text")
    if difference.first_difference is not None:
        print(difference.first_difference.index, difference.moved[0].text, difference.to_dict())
    scores = ggtok.evaluate({"a": tok}, {"en": "text"}, reference="en").scores
    print(scores[0].bytes_per_token, scores[0].parity)
    trained = ggtok.train(["text"], kind="bpe", vocab_size=300)
    trained.to_gguf("new.gguf", add_tokens=["<a>"], special={"eos": "</s>"}, flags={"add_bos": True})
    trained.to_tokenizers_json("tokenizer.json")
    print(trained.to_tiktoken("a.tiktoken")["pat_str"], ggtok.edit("a.gguf", "b.gguf", name="b"))
    outcome = ggtok.verify(tok, ["a"], seconds=1)
    print(outcome.agrees, outcome.differences, str(outcome.library), ggtok.find("hf:owner/repo"))


def others(tok: ggtok.Tokenizer) -> None:
    tokenizer = adapters.tokenizers.Tokenizer(tok)
    tokenizer.enable_padding(length=8, direction="left")
    print(tokenizer.encode("a").offsets, tokenizer.ggtok.encode("a")[0], adapters.langchain.length_function(tok)("a"))
    report = corpus.build(["a.txt"], "out", tokenizer=tok, format="parquet")
    print(report)
    print(corpus.info("out"), hash(tok), tok == tok, repr(tok))
