"""Every public call with odd values for each of its arguments: what is refused is refused as docs/api/errors.md says.

An error about a value is a `GgtokError`, one about a type a `TypeError`, one about a file an `OSError`; what a caller's
own object raises passes through. There is nothing else.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import ggtok
import numpy as np
import pytest
from ggtok import GgtokError, Tokenizer
from ggtok.adapters import tokenizers, vllm
from test_api import GGUF as SMALL

TOK, BPE = Tokenizer.from_gguf(SMALL), Tokenizer.builtin("bpe")
GGUF = Path(ggtok.__file__).parent / "vocabularies" / "wordpiece.gguf"
TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
MESSAGES = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
CHAT = {"messages": MESSAGES, "template_text": TEMPLATE}
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"


class OwnError(Exception):
    """What a caller's object raises."""


def raising(*_: object) -> Any:
    raise OwnError


def broken() -> Iterator[str]:
    yield "a"
    raise OwnError


class Raises:
    """Raises for whatever it is asked."""

    __len__ = __iter__ = __index__ = __fspath__ = __float__ = __bool__ = __eq__ = __hash__ = __getitem__ = read = (
        raising
    )


class Lies:
    """Says that it is what it is not."""

    def __len__(self) -> int:
        return 2**62

    def __fspath__(self) -> int:
        return 7

    def read(self, size: int = -1) -> object:
        return 7

    def keys(self) -> list[object]:
        return [7]

    def __getitem__(self, key: object) -> object:
        raise IndexError


class Text(str):
    """A subclass."""


ODD = [
    lambda value=value: value.copy() if isinstance(value, list) else value
    for value in (
        *(None, True, False, 0, 1, -1, 2**31, 2**32, 2**63, 2**64, -(2**63) - 1, 10**400, 1.5, 1j),
        *(float("nan"), float("inf"), Decimal("NaN"), date(2000, 1, 1), object(), len, int, ...),
        *("", " ", "\0", "a\0b", "\ud800", "\udcff", "nonesuch", "a" * 300, Text("a"), "[", "{{", "{% raw"),
        *(b"", b"a\0b", b"\xff", bytearray(b"a"), memoryview(b"abcd")[::2]),
        *(
            [],
            [None],
            [[]],
            [[[1]]],
            [-1],
            [2**40],
            [1.5],
            [""],
            ["a", None],
            ["\ud800"],
            [b"\xff"],
            [{}],
            [[1], [None]],
        ),
        *((), ("a",), ((1, 2), 3), {1}, frozenset("a"), range(3), range(-3, 0)),
        *({}, {"a": 1}, {1: 2}, {"text": None}, {"": ""}, {"\ud800": "\0"}, {"messages": 7}, {"content": []}),
        *([{"role": "user", "content": 1}], [{"role": "\ud800"}], [[1, 2], [3, 4]]),
        *(np.array(1), np.array([[1]]), np.array([1.5]), np.array(["a"]), np.float32(1)),
        *(Path("absent"), Path("."), io.BytesIO(b"a"), io.StringIO("a"), TOK, type, TOK.encode_batch(["a"])),
    )
] + [Raises, Lies, broken, lambda: raising]


def stream(name: str) -> Callable[..., Any]:
    """A method of a new streaming decoder or encoder."""
    return lambda **arguments: getattr(TOK.encoder() if "text" in arguments else TOK.decoder(), name)(**arguments)


def own(make: Callable[[], Any], name: str) -> Callable[..., Any]:
    """A method of a new object."""
    return lambda **arguments: getattr(make(), name)(**arguments)


def chat() -> Any:
    return TOK.chat(MESSAGES[:1], template_text=TEMPLATE)


def calls() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Each call, and arguments that it takes."""
    ids, texts, size = [1, 2], ["a", "b c"], {"text": "a b", "max_tokens": 5}
    special = {"add_special": True, "parse_special": False}
    encode = {"text": "a", **special, "continues": False}
    batch = {"texts": texts, "threads": 1, **special, "continues": False}
    decode = {"ids": ids, "remove_special": True, "unparse_special": True, "clean_spaces": True}
    parts = {"parts": [("a", True)], "add_special": True, "continues": False}
    rendering: dict[str, Any] = {"tools": None, "documents": None, "add_generation_prompt": True, "template": None}
    rendering |= {"media_marker": "<m>", "raw": False, "warnings": [], "variable": 1, "continue_final_message": None}
    rendered = CHAT | rendering
    edits: dict[str, Any] = {
        "add_tokens": ["<x>"],
        "add_control_tokens": ["<y>"],
        "special": {"eos": 1},
        "flags": {"add_bos": True},
    }
    edits |= {"chat_template": "t", "name": "n", "metadata": {"general.author": "a"}, "overwrite": True}
    edits |= {"tokens": [{"id": 1, "score": 0.0}]}
    common: dict[str, Any] = {
        "control_tokens": ["<c>"],
        "user_defined_tokens": ["<u>"],
        "unused_tokens": ["<n>"],
        "name": "n",
    }
    common |= {"chat_template": "t", "threads": 1, "memory": 1 << 20, "progress": lambda *_: None}
    return {
        "Tokenizer.from_gguf": (Tokenizer.from_gguf, {"source": GGUF, "overrides": {"general.name": "x"}}),
        "Tokenizer.from_model": (
            Tokenizer.from_model,
            {"name": str(GGUF), "overrides": {"general.name": "x"}, "offline": True},
        ),
        "Tokenizer.builtin": (Tokenizer.builtin, {"name": "bpe"}),
        "Tokenizer.from_tokenizers_json": (
            Tokenizer.from_tokenizers_json,
            {"source": b"{}", "config": {}, "pre": "gpt-2", "vocab_size": 5},
        ),
        "Tokenizer.from_sentencepiece": (Tokenizer.from_sentencepiece, {"source": b"", "vocab_size": 5}),
        "find": (ggtok.find, {"name": str(GGUF)}),
        "encode": (TOK.encode, encode),
        "encode_array": (TOK.encode_array, encode),
        "encode_with_offsets": (TOK.encode_with_offsets, encode | {"unit": "byte"}),
        "count": (TOK.count, encode),
        "explain": (TOK.explain, encode),
        "encode_parts": (TOK.encode_parts, parts),
        "count_parts": (TOK.count_parts, parts),
        "encode_parts_with_offsets": (TOK.encode_parts_with_offsets, parts | {"unit": "char"}),
        "encode_batch": (TOK.encode_batch, batch | {"max_tokens": 5, "side": "left"}),
        "encode_pair": (TOK.encode_pair, {"context": "a", "continuation": "b", **special, "continues": False}),
        "encoding.tokens_of": (TOK.encode_with_offsets("a b").tokens_of, {"start": 0, "end": 2}),
        "count_batch": (TOK.count_batch, batch),
        "count_file": (TOK.count_file, {"file": io.BytesIO(b"a"), **special}),
        "decode": (TOK.decode, decode | {"errors": "replace"}),
        "decode_bytes": (TOK.decode_bytes, decode),
        "decode_batch": (TOK.decode_batch, {"batch": [ids], "threads": 1, "errors": "replace"}),
        "piece": (TOK.piece, {"id": 1, "special": True}),
        "decoder": (TOK.decoder, {"stop": ["x"], "text": True, **{name: decode[name] for name in [*decode][1:]}}),
        "decoder.push": (stream("push"), {"ids": ids}),
        "decoder.prime": (stream("prime"), {"prompt_ids": ids}),
        "encoder": (TOK.encoder, special),
        "encoder.push": (stream("push"), {"text": "a"}),
        "encoder.push_count": (stream("push_count"), {"text": "a"}),
        "split": (
            TOK.split,
            size | special | {"overlap": 1, "boundaries": ["line"], "prefix": "", "strip": True},
        ),
        "split.patterns": (TOK.split, size | {"boundaries": [re.compile(" ")]}),
        "split.bytes": (TOK.split, {"text": b"a b", "max_tokens": 5, "boundaries": [re.compile(b" ")], "prefix": b""}),
        "split_batch": (
            TOK.split_batch,
            {"texts": texts, "max_tokens": 5, "overlap": 1, "boundaries": ["line"], "strip": True, "threads": 1},
        ),
        "truncate": (TOK.truncate, size | special | {"side": "left"}),
        "apply_chat_template": (TOK.apply_chat_template, rendered),
        "encode_chat": (
            TOK.encode_chat,
            rendered | {"return_spans": True, "mask": "turn", "refuse_user_defined": True, "trust": False},
        ),
        "count_messages": (TOK.count_messages, rendered),
        "trim_messages": (TOK.trim_messages, CHAT | {"max_tokens": 90, "keep": 1, "mask": "turn"}),
        "chat": (TOK.chat, {name: value for name, value in rendered.items() if name != "continue_final_message"}),
        "chat.append": (own(chat, "append"), {"message": MESSAGES[1], "ids": None, "trust": "ids"}),
        "chat.extend": (own(chat, "extend"), {"messages": MESSAGES[1:]}),
        "encode_infill": (
            BPE.encode_infill,
            {"prefix": "a", "suffix": "b", "prompt": "", "extra_files": {"f": "t"}, "n_ctx": 9, "n_batch": 9}
            | {"n_predict": 1, "spm_infill": False},
        ),
        "rerank": (TOK.rerank, {"query": "a", "document": "b"}),
        "check": (TOK.check, {"llama_cpp": "b9538"}),
        "to_gguf": (TOK.to_gguf, {"target": io.BytesIO(), **edits}),
        "to_tokenizers_json": (TOK.to_tokenizers_json, {"target": io.BytesIO()}),
        "to_sentencepiece": (TOK.to_sentencepiece, {"target": io.BytesIO()}),
        "to_tiktoken": (TOK.to_tiktoken, {"target": io.BytesIO()}),
        "to_transformers": (TOK.to_transformers, {"folder": "out"}),
        "vocab.id": (TOK.vocab.id, {"text": "a"}),
        "vocab.id_of_piece": (TOK.vocab.id_of_piece, {"piece": b"a"}),
        "vocab.search": (TOK.vocab.search, {"query": "a", "match": "prefix"}),
        "batch.pad": (
            own(lambda: TOK.encode_batch(texts), "pad"),
            {"length": 3, "side": "left", "value": 0, "multiple_of": 2},
        ),
        "trace.to_text": (
            own(lambda: TOK.explain("a"), "to_text"),
            {"tables": "all", "width": 80, "max_rows": 9, "colors": True},
        ),
        "trace.to_html": (own(lambda: TOK.explain("a"), "to_html"), {"path": "page.html"}),
        "trace.why": (own(lambda: TOK.explain("ab"), "why"), {"start": 0, "end": 1}),
        "diff": (ggtok.diff, {"a": TOK, "b": TOK, "text": "a", **special}),
        "evaluate": (
            ggtok.evaluate,
            {"tokenizers": {"a": TOK}, "texts": {"t": "a b"}, "reference": "t", "threads": 1, "progress": len}
            | {"worst": 2},
        ),
        "prune": (ggtok.prune, {"base": TOK, "texts": texts, "parse_special": True, "threads": 1}),
        "prune.files": (ggtok.prune, {"base": TOK, "files": [__file__]}),
        "evaluate.files": (ggtok.evaluate, {"tokenizers": [TOK], "files": [__file__]}),
        "set_cache_limit": (ggtok.set_cache_limit, {"num_bytes": ggtok.cache_limit()}),
        "train.bpe": (
            ggtok.train,
            {"texts": texts, "kind": "bpe", "vocab_size": 300, "special": {"eos": "</s>"}, **common, "pre": "gpt-2"}
            | {"special_first": True, "min_frequency": 2, "max_token_length": 9, "whole_characters": True}
            | {"transition": None, "first_pre": "gpt-2", "add_bos": False},
        ),
        "train.counts": (
            ggtok.train,
            {"texts": {"a b": 2}, "kind": "bpe", "vocab_size": 257, "pattern": GPT2, "special": {}},
        ),
        "train.superbpe": (
            ggtok.train,
            {
                "texts": texts,
                "kind": "bpe",
                "vocab_size": 300,
                "pre": "superbpe",
                "transition": 280,
                "first_pre": "gpt-2",
            },
        ),
        "train.spm": (
            ggtok.train,
            {"texts": texts, "kind": "spm", "vocab_size": 300, "character_coverage": 0.9, "max_token_length": 9}
            | {
                "limit_alphabet": 9,
                "byte_fallback": True,
                "split_digits": True,
                "normalization": "identity",
                "min_frequency": 1,
            },
        ),
        "train.unigram": (
            ggtok.train,
            {"texts": texts, "kind": "unigram", "vocab_size": 9, "seed_size": 99, "shrinking_factor": 0.5}
            | {"normalization": "identity"},
        ),
        "train.wordpiece": (
            ggtok.train,
            {"texts": texts, "kind": "wordpiece", "vocab_size": 30, "by": "frequency", "strip_accents": True}
            | {"lowercase": True, "min_frequency": 1, "max_token_length": 9},
        ),
        "train.files": (ggtok.train, {"files": [__file__], "kind": "bpe", "vocab_size": 300}),
        "corpus.build": (
            ggtok.corpus.build,
            {"sources": [__file__], "output": "corpus", "tokenizer": TOK, "format": "parquet", "field": "text"}
            | {"input_format": None, "keep": (), "nulls": "skip", "skip_bad": False, **special, "append_eos": True}
            | {"max_length": 9, "too_long": "cut", "shuffle": 1, "pack": 9, "pad_id": 0, "attention_mask": True}
            | {"compression": "none", "shard_size": 1 << 23, "threads": 1, "progress": len}
            | {"part": (1, 2), "rebuild": False, "rehash": False},
        ),
        "corpus.build.chats": (
            ggtok.corpus.build,
            {"sources": [__file__], "output": "corpus", "tokenizer": TOK, "format": "flat", "messages": "m"}
            | {"tools": "t", "template_text": TEMPLATE, "variables": {"a": 1}, "mask": "turn", "id_field": "i"}
            | {"skip_bad": True, "max_bad": 1},
        ),
        "corpus.info": (ggtok.corpus.info, {"folder": "corpus"}),
        "corpus.verify": (
            ggtok.corpus.verify,
            {"folder": "corpus", "tokenizer": TOK, "sample": 9, "threads": 1, "progress": lambda *_: None},
        ),
        "corpus.encode_table": (
            ggtok.corpus.encode_table,
            {"table": {"text": ["a"]}, "tokenizer": TOK, "field": "text", "threads": 1, "append_eos": True}
            | {"max_length": 9, "too_long": "drop", "ids": "ids", "messages": None, "variables": None},
        ),
        "adapters.vllm.encode": (vllm.Tokenizer(TOK).encode, {"text": "a"}),
        "adapters.vllm.decode": (vllm.Tokenizer(TOK).decode, {"ids": ids}),
        "adapters.tokenizers.encode": (tokenizers.Tokenizer(TOK).encode, {"sequence": "a"}),
        "adapters.tokenizers.encode_batch": (tokenizers.Tokenizer(TOK).encode_batch, {"input": ["a"]}),
        "adapters.tokenizers.decode_batch": (tokenizers.Tokenizer(TOK).decode_batch, {"sequences": [ids]}),
    }


ALLOWED = (GgtokError, TypeError, OSError, OwnError)


@pytest.mark.parametrize("name", calls())
def test_every_argument(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ggtok.corpus.run.POLL", 0.001)  # a build that fails waits for it, and many do
    wrong = []
    limit = ggtok.cache_limit()
    for argument in calls()[name][1]:
        for make in ODD:
            call, arguments = calls()[name]
            value = make()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    result = call(**arguments | {argument: value})
                    if isinstance(result, Iterator):
                        list(result)
            except ALLOWED:
                pass
            except (LookupError, UnicodeError) as error:
                if argument != "errors":
                    wrong.append(f"{name}({argument}={value!r:.60}): {error!r}")
            except Exception as error:
                wrong.append(f"{name}({argument}={value!r:.60}): {error!r}")
    ggtok.set_cache_limit(limit)
    assert not wrong, "\n".join(wrong)
