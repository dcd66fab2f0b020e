"""Reads the recorded answers of llama.cpp under `GGTOK_SHARED`."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def flags(case: dict[str, Any]) -> dict[str, bool]:
    """What a case was recorded with."""
    names = ("add_special", "parse_special") if case["kind"] == "encode" else ("remove_special", "unparse_special")
    return {name: case[name] for name in names}


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
