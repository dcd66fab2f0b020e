"""Every entry point with every hostile argument: an ordinary exception comes out or a result, never a panic.

Entry points are found by introspection. One that this file has no arguments for fails a test, so a new one is covered.
"""

from __future__ import annotations

import array
import contextlib
import copy
import ctypes
import io
import operator
import os
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import ggtok
import pytest
from ggtok import _ggtok
from ggtok._train import DEFAULTS, _core_settings
from oracles.gguf_vocab import Vocab


class HostileError(Exception):
    """What hostile objects raise."""


EXPECTED = (
    *(TypeError, ValueError, LookupError, OverflowError, AttributeError, OSError, EOFError, HostileError),
    BufferError,  # of `__dlpack__`
    NotImplementedError,  # of iterating over a memoryview with two dimensions
    ggtok.DependencyError,
)
"""A panic would be a `PanicException`, which is not even an `Exception`."""


def ending(file: Any) -> Any:
    """A file that ends: some hostile objects can be read for ever."""
    if not hasattr(file, "read"):
        return file
    ended = io.BytesIO()
    reads = iter([file.read, file.read, ended.read])
    return type("Ending", (), {"read": lambda _, size: next(reads)(size)})()


TOKENIZER = ggtok.Tokenizer.builtin("spm")
BATCH_IDS = array.array("i", [1, 2, 3])
TOKEN = TOKENIZER.vocab[7]
METADATA = _ggtok.Metadata.read(
    Vocab(
        "llama",
        [b"<unk>", b"<s>", b"</s>", b"\xe2\x96\x81", b"a"],
        [2, 3, 3, 1, 1],
        [0.0, 0.0, 0.0, -1.0, -2.0],
        merges=[b"a b"],
    ).gguf(),
    None,
    {},
)
assert isinstance(METADATA, _ggtok.Metadata)
TOKENS = METADATA.get("tokenizer.ggml.tokens")
assert isinstance(TOKENS, _ggtok.Array)
CORE = _ggtok.Tokenizer(METADATA)
CUT = {"add_special": True, "parse_special": True}
ENCODE = {"text": "What is LoRA?", "add_special": True, "parse_special": True, "continues": True}
PARTS = {"parts": [("What is", True), (b" LoRA?", False)], "add_special": True, "continues": True}
CHAT: dict[str, Any] = {
    "messages": [{"role": "user", "content": "a"}],
    "tools": [{"name": "a"}],
    "documents": [{"title": "a"}],
    "add_generation_prompt": True,
    "template_text": "{{ messages[0].content }}",
}
ENCODING = TOKENIZER.encode_with_offsets("What is")
TINY = ggtok.Tokenizer.from_gguf(Vocab("llama", [b"<unk>", b"<s>", b"</s>", b"a"], [2, 3, 3, 1], [0.0] * 4).gguf())
EXPLAIN: dict[str, Any] = {
    "tokenizer": CORE,
    "argument": "a a",
    "add_special": True,
    "parse_special": True,
    "continues": True,
}
RAW_TRACE = _ggtok.explain(*EXPLAIN.values())
TRACE = TOKENIZER.explain("What is")
BYTE_TOKENS = [b"<0x%02X>" % byte for byte in range(256)]
TINY_SPM = ggtok.Tokenizer.from_gguf(
    Vocab("llama", [b"<unk>", b"<s>", b"</s>", b"a", *BYTE_TOKENS], [2, 3, 3, 1] + [6] * 256, [0.0] * 260).gguf()
)
FLAT = _ggtok.encode_batch(CORE, ["a", "a a"], 1, False, False, False)
BUFFER = FLAT.ids()
CODE = {"threads": 2, "add_special": True, "parse_special": True, "continues": True}
DECODE = {"ids": [1, 300], "remove_special": True, "unparse_special": True, "clean_spaces": True}


def comparing(name: str) -> Callable[..., object]:
    return lambda other: getattr(operator, name)(ENCODING, other)


TRAINER: dict[str, Any] = {
    "vocab_size": 300,
    "special_tokens": [("<s>", 3)],
    "threads": 2,
    "memory": None,
    "progress": None,
}


def settings_of(kind: str, **changes: object) -> dict[str, Any]:
    """What `ggtok.train` passes to a trainer."""
    return TRAINER | _core_settings(kind, DEFAULTS[kind] | changes)


def trainer() -> _ggtok.Trainer:
    return _ggtok.Trainer.bpe(**settings_of("bpe"))


ARGUMENTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "_ggtok.Tokenizer.__new__": (lambda metadata: _ggtok.Tokenizer(metadata), {"metadata": METADATA}),
    "_ggtok.Tokenizer.encode": (CORE.encode, ENCODE),
    "_ggtok.Tokenizer.encode_array": (CORE.encode_array, ENCODE),
    "_ggtok.Tokenizer.count": (CORE.count, ENCODE),
    "_ggtok.Tokenizer.encode_with_offsets": (CORE.encode_with_offsets, ENCODE | {"unit": "char"}),
    "_ggtok.Tokenizer.encode_parts": (CORE.encode_parts, PARTS),
    "_ggtok.Tokenizer.count_parts": (CORE.count_parts, PARTS),
    "_ggtok.Tokenizer.encode_parts_with_offsets": (CORE.encode_parts_with_offsets, PARTS | {"unit": "byte"}),
    "_ggtok._encoding": (_ggtok._encoding, {"ids": bytes(4), "offsets": bytes(16)}),
    "_ggtok.Encoding.__len__": (lambda: len(ENCODING), {}),
    "_ggtok.Encoding.__eq__": (lambda other: other == ENCODING, {"other": None}),
    **{f"_ggtok.Encoding.__{name}__": (comparing(name), {"other": None}) for name in ("ne", "lt", "le", "gt", "ge")},
    "_ggtok.Encoding.__reduce__": (ENCODING.__reduce__, {}),
    "_ggtok.Encoding.__repr__": (lambda: repr(ENCODING), {}),
    "_ggtok.Encoding.ids": (lambda: ENCODING.ids, {}),
    "_ggtok.Encoding.offsets": (lambda: ENCODING.offsets, {}),
    "_ggtok.Encoding.tolist": (ENCODING.tolist, {}),
    "_ggtok.Tokenizer.decode": (CORE.decode, DECODE | {"errors": "replace"}),
    "_ggtok.Tokenizer.decode_bytes": (CORE.decode_bytes, DECODE),
    "_ggtok.Tokenizer.decoder": (
        CORE.decoder,
        {"stop": ["a", b"b"], "remove_special": True, "unparse_special": True, "clean_spaces": True, "text": False},
    ),
    "_ggtok.StreamDecoder.push": (lambda ids: CORE.decoder().push(ids), {"ids": [1, 3]}),
    "_ggtok.StreamDecoder.prime": (lambda prompt_ids: CORE.decoder().prime(prompt_ids), {"prompt_ids": [1, 3]}),
    "_ggtok.StreamDecoder.flush": (lambda: CORE.decoder().flush(), {}),
    "_ggtok.StreamDecoder.copy": (lambda: CORE.decoder().copy(), {}),
    "_ggtok.StreamDecoder.__copy__": (lambda: copy.copy(CORE.decoder()), {}),
    "_ggtok.StreamDecoder.stopped": (lambda: CORE.decoder().stopped, {}),
    "_ggtok.Tokenizer.encoder": (CORE.encoder, {"add_special": True, "parse_special": True}),
    "_ggtok.StreamEncoder.push": (lambda text: CORE.encoder().push(text), {"text": "What is LoRA?"}),
    "_ggtok.StreamEncoder.push_count": (lambda text: CORE.encoder().push_count(text), {"text": "What is LoRA?"}),
    "_ggtok.StreamEncoder.flush": (lambda: CORE.encoder().flush(), {}),
    "_ggtok.StreamEncoder.flush_count": (lambda: CORE.encoder().flush_count(), {}),
    "_ggtok.StreamEncoder.num_waiting": (lambda: CORE.encoder().num_waiting, {}),
    "_ggtok.Tokenizer.piece": (CORE.piece, {"id": 3, "special": True}),
    "_ggtok.Tokenizer.repairs": (lambda: CORE.repairs, {}),
    "_ggtok.Tokenizer.heap_bytes": (lambda: CORE.heap_bytes, {}),
    "_ggtok.Tokenizer._split": (
        CORE._split,
        {"text": "a b", "max_tokens": 8, "overlap": 1, "boundaries": ["word"]} | CUT,
    ),
    "_ggtok.Tokenizer._truncate": (CORE._truncate, {"text": "a b", "max_tokens": 2, "side": "right"} | CUT),
    "_ggtok.Tokenizer._size": (CORE._size, {}),
    "_ggtok.Tokenizer._token": (CORE._token, {"id": 3}),
    "_ggtok.Tokenizer._token_id": (CORE._token_id, {"text": b"a"}),
    "_ggtok.Tokenizer._kind": (CORE._kind, {}),
    "_ggtok.Tokenizer._special": (CORE._special, {}),
    "_ggtok.Tokenizer._settings": (CORE._settings, {}),
    "_ggtok.Tokenizer._eog": (CORE._eog, {}),
    "_ggtok.cache_limit": (_ggtok.cache_limit, {}),
    "_ggtok.set_cache_limit": (_ggtok.set_cache_limit, {"num_bytes": 1 << 20}),
    "_ggtok.Tokenizer._canonical_bytes": (CORE._canonical_bytes, {}),
    "_ggtok.Metadata.read": (_ggtok.Metadata.read, {"data": b"GGUF", "total": 4, "overrides": {"general.name": "x"}}),
    "_ggtok.Metadata.data": (lambda: METADATA.data, {}),
    "_ggtok.Metadata.overrides": (lambda: METADATA.overrides, {}),
    "_ggtok.Metadata.size": (lambda: METADATA.size, {}),
    "_ggtok.Metadata.big_endian": (lambda: METADATA.big_endian, {}),
    "_ggtok.Metadata.version": (lambda: METADATA.version, {}),
    "_ggtok.Metadata.tensor_count": (lambda: METADATA.tensor_count, {}),
    "_ggtok.Metadata.entries": (METADATA.entries, {}),
    "_ggtok.Metadata.get": (METADATA.get, {"key": "general.name"}),
    "_ggtok.Metadata.raw": (METADATA.raw, {"key": "general.name"}),
    "_ggtok.Metadata.__contains__": (lambda key: key in METADATA, {"key": "general.name"}),
    "_ggtok.Array.kind": (lambda: TOKENS.kind, {}),
    "_ggtok.Array.__len__": (lambda: len(TOKENS), {}),
    "_ggtok.Array.__repr__": (lambda: repr(TOKENS), {}),
    "_ggtok.Array.strings": (TOKENS.strings, {}),
    "_ggtok.Array.raw": (TOKENS.raw, {}),
    "_ggtok.Array.tobytes": (TOKENS.tobytes, {}),
    "_ggtok.Buffer.__len__": (lambda: len(BUFFER), {}),
    "_ggtok.Buffer.__getitem__": (lambda index: BUFFER[index], {"index": 1}),
    "_ggtok.Buffer.__iter__": (lambda: list(BUFFER), {}),
    "_ggtok.Buffer.__repr__": (lambda: repr(BUFFER), {}),
    "_ggtok.Buffer.__buffer__": (lambda: memoryview(BUFFER), {}),  # type: ignore[arg-type, unused-ignore]
    "_ggtok.Buffer.__dlpack__": (
        BUFFER.__dlpack__,
        {"stream": None, "max_version": (1, 0), "dl_device": (1, 0), "copy": None},
    ),
    "_ggtok.Buffer.__dlpack_device__": (BUFFER.__dlpack_device__, {}),
    "_ggtok.Buffer.tolist": (BUFFER.tolist, {}),
    "_ggtok.Buffer.dtype": (lambda: BUFFER.dtype, {}),
    "_ggtok.Buffer.shape": (lambda: BUFFER.shape, {}),
    "_ggtok.FlatBatch.__new__": (
        lambda **arguments: _ggtok.FlatBatch(*arguments.values()),
        {"ids": bytes(8), "offsets": struct.pack("<3q", 0, 0, 2), "nulls": b"\1\0"},
    ),
    "_ggtok.FlatBatch.__reduce__": (FLAT.__reduce__, {}),
    "_ggtok.FlatBatch.__len__": (lambda: len(FLAT), {}),
    "_ggtok.FlatBatch.__eq__": (lambda other: other == FLAT, {"other": FLAT}),
    "_ggtok.FlatBatch.__ne__": (lambda other: other != FLAT, {"other": FLAT}),
    "_ggtok.FlatBatch.__lt__": (lambda other: other > FLAT, {"other": FLAT}),
    "_ggtok.FlatBatch.__le__": (lambda other: other >= FLAT, {"other": FLAT}),
    "_ggtok.FlatBatch.__gt__": (lambda other: other < FLAT, {"other": FLAT}),
    "_ggtok.FlatBatch.__ge__": (lambda other: other <= FLAT, {"other": FLAT}),
    "_ggtok.FlatBatch.null_count": (lambda: FLAT.null_count, {}),
    "_ggtok.FlatBatch.ids": (FLAT.ids, {}),
    "_ggtok.FlatBatch.offsets": (FLAT.offsets, {}),
    "_ggtok.FlatBatch.select": (FLAT.select, {"start": 0, "len": 2, "step": 1}),
    "_ggtok.FlatBatch.tolist": (FLAT.tolist, {}),
    "_ggtok.FlatBatch.pad": (
        FLAT.pad,
        {"length": 9, "left": True, "value": 0, "multiple_of": 2, "to_numpy": False},
    ),
    "_ggtok.FlatBatch.arrow_schema": (FLAT.arrow_schema, {}),
    "_ggtok.FlatBatch.arrow_array": (FLAT.arrow_array, {"requested_schema": FLAT.arrow_schema()}),
    "_ggtok.import_numpy": (_ggtok.import_numpy, {}),
    "_ggtok.encode_batch": (_ggtok.encode_batch, {"tokenizer": CORE, "texts": ["a", b"b"]} | CODE),
    "_ggtok.count_batch": (_ggtok.count_batch, {"tokenizer": CORE, "texts": ["a", b"b"]} | CODE),
    "_ggtok.decode_batch": (
        _ggtok.decode_batch,
        {
            "tokenizer": CORE,
            "batch": [[1]],
            "remove_special": True,
            "unparse_special": True,
            "clean_spaces": True,
            "errors": "replace",
        },
    ),
    "_ggtok.pieces": (_ggtok.pieces, {"tokenizer": CORE}),
    "_ggtok.texts": (_ggtok.texts, {"tokenizer": CORE}),
    "_ggtok.scores": (_ggtok.scores, {"tokenizer": CORE}),
    "_ggtok.attributes": (_ggtok.attributes, {"tokenizer": CORE}),
    "_ggtok.charsmap": (_ggtok.charsmap, {"tokenizer": CORE}),
    "_ggtok.id_of_piece": (_ggtok.id_of_piece, {"tokenizer": CORE, "piece": b"a"}),
    "_ggtok.ids_with_prefix": (_ggtok.ids_with_prefix, {"tokenizer": CORE, "prefix": b"a"}),
    "_ggtok.unreachable_tokens": (_ggtok.unreachable_tokens, {"tokenizer": CORE}),
    "_ggtok.unused_merges": (_ggtok.unused_merges, {"tokenizer": CORE}),
    "_ggtok.merges": (_ggtok.merges, {"tokenizer": CORE}),
    "_ggtok.explain": (_ggtok.explain, EXPLAIN),
    "_ggtok.explain_trie": (_ggtok.explain_trie, {"words": ["a", b"ab"], "queries": ["abc"]}),
    "_ggtok.RawTrace.json": (RAW_TRACE.json, {}),
    "_ggtok.RawTrace.tokens": (RAW_TRACE.tokens, {}),
    "_ggtok.RawTrace.why": (RAW_TRACE.why, {"start": 0, "end": 1}),
    "_ggtok.Trainer.bpe": (_ggtok.Trainer.bpe, settings_of("bpe", whole_characters=True)),
    "_ggtok.Trainer.spm": (_ggtok.Trainer.spm, settings_of("spm")),
    "_ggtok.Trainer.unigram": (
        _ggtok.Trainer.unigram,
        settings_of("unigram", normalization="identity", seed_size=99, num_sub_iterations=1),
    ),
    "_ggtok.Trainer.wordpiece": (_ggtok.Trainer.wordpiece, settings_of("wordpiece", by="likelihood")),
    "_ggtok.Trainer.push": (lambda **arguments: trainer().push(**arguments), {"texts": ["a b"], "first": 0}),
    "_ggtok.Trainer.push_file": (
        lambda **arguments: trainer().push_file(**arguments),
        {"block": b"a b", "is_last": True, "path": "a", "start": 0},
    ),
    "_ggtok.Trainer.finish_counting": (lambda: trainer().finish_counting(), {}),
    "_ggtok.Trainer.finish": (lambda: trainer().finish(), {}),
    "train": (
        ggtok.train,
        {
            "texts": ["a b a b"],
            "kind": "bpe",
            "vocab_size": 258,
            "special": {"eos": "</s>"},
            "control_tokens": ["<a>"],
            "user_defined_tokens": ["<b>"],
            "unused_tokens": ["<c>"],
            "name": "a",
            "chat_template": "a",
            "progress": None,
            "threads": 2,
            "memory": 1 << 20,
        },
    ),
    "_ggtok.apply_charsmap": (_ggtok.apply_charsmap, {"charsmap": b"", "text": "a"}),
    "_ggtok.compile_charsmap": (_ggtok.compile_charsmap, {"name": "identity", "tsv": None}),
    "_ggtok.families": (_ggtok.families, {}),
    "_ggtok.flag_keys": (_ggtok.flag_keys, {}),
    "_ggtok.loader_texts": (_ggtok.loader_texts, {}),
    "_ggtok.models": (_ggtok.models, {}),
    "_ggtok.pretokenizers": (_ggtok.pretokenizers, {}),
    "_ggtok.special_keys": (_ggtok.special_keys, {}),
    "Tokenizer.from_gguf": (
        ggtok.Tokenizer.from_gguf,
        {"source": b"GGUF", "overrides": {"general.name": "x"}},
    ),
    "Tokenizer.to_gguf": (
        lambda target, **edits: TINY_SPM.to_gguf(target, **edits),
        {
            "target": io.BytesIO(),
            "add_tokens": ["<a>"],
            "add_control_tokens": ["<b>"],
            "special": {"bos": 1},
            "flags": {"add_bos": True},
            "chat_template": "a",
            "name": "a",
            "metadata": {"general.url": "a"},
        },
    ),
    "Tokenizer.to_sentencepiece": (lambda target: TINY_SPM.to_sentencepiece(target), {"target": io.BytesIO()}),
    "Tokenizer.to_tokenizers_json": (
        lambda target: TINY_SPM.to_tokenizers_json(target),
        {"target": io.BytesIO()},
    ),
    "Tokenizer.to_tiktoken": (lambda target: TINY_SPM.to_tiktoken(target), {"target": io.BytesIO()}),
    "Tokenizer.to_transformers": (lambda folder: TINY_SPM.to_transformers(folder), {"folder": "transformers"}),
    "Tokenizer.from_sentencepiece": (
        lambda source, **arguments: ggtok.Tokenizer.from_sentencepiece(ending(source), **arguments),
        {"source": b"\x0a\x03\x0a\x01a", "vocab_size": 4},
    ),
    "Tokenizer.from_tokenizers_json": (
        lambda source, config, **arguments: ggtok.Tokenizer.from_tokenizers_json(
            ending(source), config=ending(config), **arguments
        ),
        {
            "source": b'{"model": {"type": "WordPiece", "vocab": {"a": 0}}}',
            "config": {"bos_token": "a"},
            "pre": "gpt-2",
            "vocab_size": 4,
        },
    ),
    "Tokenizer.builtin": (ggtok.Tokenizer.builtin, {"name": "spm"}),
    "Tokenizer.count_file": (
        lambda file, **flags: TOKENIZER.count_file(ending(file), **flags),
        {"file": io.BytesIO(b"a"), "add_special": True, "parse_special": True},
    ),
    "Tokenizer.encode_batch": (TOKENIZER.encode_batch, ENCODE | {"texts": ["a", b"b"], "threads": 2}),
    "Tokenizer.split": (
        TOKENIZER.split,
        {"text": "a b", "max_tokens": 8, "overlap": 1, "boundaries": ["word"]} | CUT,
    ),
    "Tokenizer.split_batch": (
        TOKENIZER.split_batch,
        {"texts": ["a b"], "max_tokens": 8, "overlap": 1, "boundaries": ["word"], "threads": 2} | CUT,
    ),
    "Tokenizer.truncate": (TOKENIZER.truncate, {"text": "a b", "max_tokens": 8, "side": "right"} | CUT),
    **{
        f"Tokenizer.{name}": (getattr(TOKENIZER, name), CHAT)
        for name in ("apply_chat_template", "encode_chat", "count_messages")
    },
    "Tokenizer.count_batch": (TOKENIZER.count_batch, {"texts": ["a", b"b"]} | CODE),
    "Tokenizer.decode_batch": (
        TOKENIZER.decode_batch,
        {"batch": [[1]], "remove_special": True, "unparse_special": True, "clean_spaces": True, "errors": "replace"},
    ),
    "Tokenizer.explain": (TOKENIZER.explain, ENCODE),
    "Trace.ids": (lambda: TRACE.ids, {}),
    "Trace.offsets": (lambda: TRACE.offsets, {}),
    "Trace.why": (TRACE.why, {"start": 0, "end": 4}),
    "Trace.to_json": (TRACE.to_json, {}),
    "Trace.to_text": (TRACE.to_text, {"tables": ["queue"], "width": 80, "max_rows": 9, "colors": True}),
    "Trace.to_html": (lambda path: TRACE.to_html(os.fspath(path) and os.devnull), {"path": "page.html"}),
    "Tokenizer.vocab_size": (lambda: TOKENIZER.vocab_size, {}),
    "Tokenizer.check": (TOKENIZER.check, {}),
    "diff": (
        ggtok.diff,
        {"a": TINY, "b": TINY, "text": "a", "add_special": True, "parse_special": True},
    ),
    "evaluate": (
        ggtok.evaluate,
        {"tokenizers": [TINY], "texts": {"a": "a b", "b": ["a"]}, "reference": "a", "threads": 2},
    ),
    **{
        f"Score.{name}": (lambda name=name: getattr(ggtok.evaluate(TINY, ["a"]).scores[0], name), {})
        for name in ("bytes_per_token", "tokens_per_word", "unknown_rate", "byte_fallback_rate", "vocabulary_use")
    },
    "Evaluation.to_dicts": (ggtok.evaluate(TINY, ["a"]).to_dicts, {}),
    "Evaluation.__str__": (lambda: str(ggtok.evaluate(TINY, ["a"])), {}),
    "Evaluation.to_svg": (ggtok.evaluate(TINY, ["a"]).to_svg, {"path": os.devnull}),
    "_ggtok.count_words": (_ggtok.count_words, {"text": "a b"}),
    "Vocab.pieces": (lambda: TOKENIZER.vocab.pieces, {}),
    "Vocab.merges": (lambda: TOKENIZER.vocab.merges, {}),
    "Vocab.id_of_piece": (TOKENIZER.vocab.id_of_piece, {"piece": "a"}),
    "Vocab.search": (TOKENIZER.vocab.search, {"query": "a", "match": "prefix"}),
    "Tokenizer.metadata": (lambda: TOKENIZER.metadata, {}),
    "Tokenizer.vocab": (lambda: TOKENIZER.vocab, {}),
    "Tokenizer.__eq__": (lambda other: other == TOKENIZER, {"other": TOKENIZER}),
    "Tokenizer.__getitem__": (lambda index: TOKENIZER.vocab[index], {"index": 1}),
    "Vocab.id": (TOKENIZER.vocab.id, {"text": "a"}),
    "Vocab.index": (TOKENIZER.vocab.index, {"value": "a", "start": 0, "stop": 9}),
    "Vocab.count": (lambda value: value in TOKENIZER.vocab, {"value": TOKEN}),
    "Batch.tolist": (lambda: TOKENIZER.encode_batch(["a"]).tolist(), {}),
    "Batch.to_dict": (lambda: TOKENIZER.encode_batch(["a"]).to_dict(), {}),
    "Batch.__getitem__": (lambda index: TOKENIZER.encode_batch(["a"])[index], {"index": 0}),
    "Batch.pad": (
        lambda **arguments: TOKENIZER.encode_batch(["a"]).pad(**arguments),
        {"length": 9, "side": "left", "value": 7, "multiple_of": 2},
    ),
    "Batch.attention_mask": (lambda: TOKENIZER.encode_batch(["a"]).attention_mask, {}),
    "Batch.buffers": (lambda: TOKENIZER.encode_batch(["a"]).buffers(), {}),
    "Batch.null_count": (lambda: TOKENIZER.encode_batch(["a"]).null_count, {}),
    "Batch.to_arrow": (lambda: TOKENIZER.encode_batch(["a"]).to_arrow(), {}),
    "Batch.__arrow_c_array__": (
        TOKENIZER.encode_batch(["a"]).__arrow_c_array__,
        {"requested_schema": FLAT.arrow_schema()},
    ),
    "Batch.ids": (lambda: TOKENIZER.encode_batch(["a"]).ids, {}),
    "Batch.offsets": (lambda: TOKENIZER.encode_batch(["a"]).offsets, {}),
}
del ARGUMENTS["Tokenizer.encode_batch"][1]["text"]


def raising(*_: object, **__: object) -> Any:
    raise HostileError


def lying(name: str, value: object) -> Any:
    """An object whose special method `name` returns `value`, or raises it."""

    def method(*_: object, **__: object) -> object:
        if value is HostileError:
            raise HostileError
        return value

    return type("Lying", (), {name: method})()


class Emptying(list[Any]):
    """A list with an element that empties it when it is read as an id."""

    def __init__(self) -> None:
        super().__init__([1, self, 2, 3])

    def __index__(self) -> int:
        self.clear()
        return 1


class LongList(list[Any]):
    def __len__(self) -> int:
        return 2**62


class Text(str):
    """A text with hostile methods."""

    __slots__ = ()
    encode = __len__ = __str__ = __iter__ = raising


class Array:
    """It has a dtype, but it is no array."""

    dtype = "int32"

    def __init__(self, items: object) -> None:
        self.items = items

    def tolist(self) -> object:
        return self.items


def generator(*items: object) -> Iterator[object]:
    yield from items
    raise HostileError


def hostile() -> list[Any]:
    """Fresh objects, because some can be used up."""
    recursive: list[Any] = []
    recursive.append(recursive)
    released = memoryview(b"abc")
    released.release()
    values: list[Any] = [None, True, 0, 1, -1, 2**31, -(2**31) - 1, 2**63, 2**64, -(2**70), 10**5000]
    values += [1.5, float("nan"), float("-inf"), 1j, object(), object, raising, Ellipsis, NotImplemented]
    values += ["", "a", "\0", "\ud800", "\udcff\ud83d", "a" * 70_000, Text("a"), Text("\udfff"), b"", b"\xff\xfe\0"]
    values += [bytearray(b"ab"), memoryview(b"abcdef")[::2], memoryview(b"abcd").cast("I"), memoryview(b"ab")[::-1]]
    values += [memoryview(b"abcd").cast("B", (2, 2)), released, array.array("i", [1, 2]), array.array("d", [0.5])]
    values += [(ctypes.c_ubyte * 2)(), (ctypes.c_int * 2)(), (ctypes.c_char * 2)(), io.BytesIO(b"x"), io.StringIO("x")]
    values += [[None], ["a", 1], [1, "a"], [b"a", None], [[1]], recursive, (1, 2.5), (2**80,), [10**5000], Emptying()]
    values += [LongList([1]), LongList(["a"]), {}, {"a": 1}, {1: object()}, {"bos": 2**40, "eos": -1}, {"add_bos": 7}]
    values += [{"general.name": "\ud800"}, {"tokenizer.ggml.tokens": 1}, {"general.name": None}, {"a"}, range(10**5)]
    values += [
        range(3),
        iter([1, "a"]),
        generator(),
        generator("a", b"b"),
        generator(1, 2),
        slice(None),
        slice("a", "b"),
    ]
    for name in ("__index__", "__iter__", "__len__", "__bool__", "__str__", "__repr__", "__fspath__", "read", "__eq__"):
        values += [lying(name, value) for value in (HostileError, None, -1, 2**70, "a", b"a", object())]
    values += [lying("__getitem__", HostileError), lying("__buffer__", HostileError), lying("__buffer__", 7)]
    values += [Array(items) for items in (None, [1], ["a"], [2**70], HostileError)]
    values += [TOKEN, TOKEN._replace(id=2**70), ggtok.Token("a", 1, None, None)]  # type: ignore[arg-type]
    try:
        import numpy as np
    except ImportError:
        return values
    types = [*np.typecodes["All"].replace("O", ""), "S0", "U2", "V3", ">i4", "<u2"]
    values += [np.zeros(2, code) for code in types] + [np.zeros((2, 2), "i4"), np.zeros(4, "i4")[::-2], np.int32(1)]
    values += [
        np.array([None, "a"], object),
        np.array(["a", "b"]),
        np.array(5),
        np.zeros(0, "i4"),
        np.zeros(2, "f4, i4"),
    ]
    values += [
        np.array([1, 2**31], "u4"),
        np.array([2**63], "u8"),
        np.frombuffer(b"abc", "u1"),
        np.zeros((1,) * 30, "u1"),
    ]
    return values


def entry_points() -> set[str]:
    """What the built module has, and what is public in Python on top of it."""
    found = set()
    for name, thing in vars(_ggtok).items():
        if isinstance(thing, type):
            found |= {
                f"_ggtok.{name}.{member}" for member, value in vars(thing).items() if callable_or_getter(member, value)
            }
        elif callable(thing):
            found.add(f"_ggtok.{name}")
    for kind in (ggtok.Tokenizer, ggtok.Vocab, ggtok.Batch, ggtok.Trace):
        for member in dir(kind):
            inherited = hasattr(_ggtok.Tokenizer, member) and kind is ggtok.Tokenizer
            plain = kind in (ggtok.Vocab, ggtok.Trace) and type(getattr(kind, member)).__name__ == "member_descriptor"
            if not member.startswith("_") and not inherited and not plain:
                found.add(f"{kind.__name__}.{member}")
    return found


def callable_or_getter(name: str, value: object) -> bool:
    return name != "__class_getitem__" and (callable(value) or type(value).__name__ == "getset_descriptor")


def calls() -> Iterator[tuple[str, str, Callable[[], object]]]:
    for name, (function, arguments) in ARGUMENTS.items():
        yield name, "as it should be", partial(function, **arguments)
        yield name, "too many arguments", partial(function, *range(9))
        for argument in arguments:
            for index, value in enumerate(hostile()):
                yield name, f"{argument} = hostile()[{index}]", partial(function, **arguments | {argument: value})


def call(name: str, what: str, function: Callable[[], object]) -> str:
    """The name of the exception; one that is not expected fails the test."""
    try:
        function()
    except EXPECTED as error:
        return type(error).__name__
    except BaseException as error:
        raise AssertionError(f"{name}, {what}: {type(error).__name__}: {error}") from error
    return "none"


def walk() -> dict[str, int]:
    """How often each exception came. Files are written to a folder that is removed."""
    limit = _ggtok.cache_limit()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        seen = Counter(call(*each) for each in calls())
    _ggtok.set_cache_limit(limit)
    assert TOKENIZER.encode("What is LoRA?") == ggtok.Tokenizer.builtin("spm").encode("What is LoRA?")
    return seen


def test_every_entry_point_is_known() -> None:
    assert entry_points() - set(ARGUMENTS) == set()


@pytest.mark.parametrize("name", [name for name in ARGUMENTS if name.startswith("_ggtok.Trainer.")])
def test_trainers_take_their_own_arguments(name: str) -> None:
    """Otherwise the walk would get no further than the signature."""
    function, arguments = ARGUMENTS[name]
    with contextlib.suppress(ggtok.TrainingError):  # the corpus is empty
        function(**arguments)


@pytest.mark.filterwarnings("ignore")
def test_no_panic() -> None:
    seen = walk()
    assert seen["none"] > 500
    assert {"TypeError", "HostileError", "TokenIndexError"} <= set(seen)
    assert "DependencyError" not in seen


def test_no_panic_without_numpy() -> None:
    code = "import sys; sys.modules['numpy'] = None; import test_entry_points; print(test_entry_points.walk())"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "DependencyError" in done.stdout


def test_a_panic_is_a_typed_error() -> None:
    """A panic that Python can provoke: the numpy crate finds something else where it keeps its borrow flags."""
    code = """
import ggtok, numpy as np
core = getattr(np, "_core", None) or np.core
core.multiarray._RUST_NUMPY_BORROW_CHECKING_API = 7
tok = ggtok.Tokenizer.builtin("bpe")
for _ in range(2):
    try:
        tok.decode(np.array([9713], np.int32))
    except ggtok.GgtokError as error:
        print(error)
print(tok.decode([9713]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second, text = done.stdout.splitlines()
    assert first == second
    assert first.startswith("this is a bug in ggtok, please report it: ")
    assert text == "What"
