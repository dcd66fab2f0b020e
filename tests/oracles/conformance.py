"""The real vocabularies under `GGTOK_SHARED` as the oracles see them.

What llama.cpp's loader repairs (attributes, special ids, `add_*`) comes from the header of a conformance file, the rest
from the GGUF file, with the flags of `reference/pretokenizers.json`.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import pretokenize
from .gguf_vocab import TokenType, Vocab

KINDS = {"wpm": "wordpiece", "ugm": "unigram"}
"""Kinds whose names in the records are not those of ggtok."""


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a conformance file, texts as bytes under `text` and `out`."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            record: dict[str, Any] = json.loads(line)
            if record["kind"] == "encode":
                record["text"] = _bytes(record, "")
            elif record["kind"] == "decode":
                record["out"] = _bytes(record, "out_")
            yield record


def _bytes(record: dict[str, Any], prefix: str) -> bytes:
    if prefix + "text" in record:
        return str(record[prefix + "text"]).encode("utf-8", "surrogatepass")
    return base64.b64decode(record[prefix + "b64"])


def attributes(header: dict[str, Any]) -> list[int]:
    """One attribute value per id out of the header's ranges."""
    result = [0] * int(header["n_tokens"])
    for bits, ranges in header["attrs"].items():
        for first, last in ranges:
            result[first : last + 1] = [int(bits)] * (last + 1 - first)
    return result


def vocab(header: dict[str, Any], metadata: dict[str, Any]) -> Vocab:
    """The vocabulary of a file's `metadata`, with the values of the conformance file's `header`."""
    values = metadata | header["overrides"]

    def value(key: str, default: Any) -> Any:
        found = values.get(f"tokenizer.ggml.{key}", default)
        return found.decode() if isinstance(found, bytes) else found

    model = value("model", "")
    pre = "gemma4" if model == "gemma4" else value("pre", "")
    family = pretokenize.family(pre or "default") if header["type"] == "bpe" else None
    lowercase = value("normalizer.lowercase", True)
    return Vocab(
        model=model,
        texts=value("tokens", []),
        types=value("token_type", [int(TokenType.NORMAL)] * int(header["n_tokens"])),
        scores=value("scores", []),
        merges=value("merges", []),
        pre=pre,
        bos=header["bos"],
        eos=header["eos"],
        unk=value("unknown_token_id", None),
        sep=header["sep"],
        pad=header["pad"],
        add_bos=header["add_bos"],
        add_eos=header["add_eos"],
        add_space_prefix=value("add_space_prefix", header["type"] == "spm"),
        remove_extra_whitespaces=value("remove_extra_whitespaces", False),
        escape_whitespaces=family.escape_whitespaces if family else True,
        clean_spaces=family.clean_spaces if family else header["type"] == "wpm",
        ignore_merges=family.ignore_merges if family else False,
        lowercase=lowercase,
        strip_accents=value("normalizer.strip_accents", lowercase),
        charsmap=bytes(value("precompiled_charsmap", [])),
        attributes=attributes(header),
    )
