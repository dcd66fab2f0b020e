"""Which pre-tokenizer a byte-level BPE file was made with, by the ids of a test text.

Source: llama.cpp `conversion/base.py`, `get_vocab_base_pre`: a pre-tokenizer is known by the SHA-256 of `str(ids)` of
one text, with the special tokens that the file adds. `digests.json` has the text and the table.

The ids come from our own tokenizer, once for each family of patterns; the family that gives a digest of the table is
the right one, because the digest is of the ids that the file's own library gave. Only tokens that occur in the text
take part, so a candidate takes about a millisecond.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from typing import Any

from .. import _ggtok
from .._keys import GGML, NORMAL, USER_DEFINED
from ..errors import ConversionError, GgtokError
from .gguf import Packed, gguf_bytes
from .vocabulary import STAND_INS


def table() -> tuple[str, dict[str, str]]:
    """The test text, and the names by digest."""
    with open(os.path.join(os.path.dirname(__file__), "digests.json"), encoding="utf-8") as file:
        content = json.load(file)
    return content["text"], content["names"]


def digest(ids: Sequence[int]) -> str:
    """The digest of the ids of the test text."""
    return hashlib.sha256(str(list(ids)).encode()).hexdigest()


def pre_of(
    format: str,
    tokens: dict[int, tuple[str, int]],
    merges: list[tuple[str, str]],
    around: tuple[list[int], list[int]],
    patterns: str,
) -> str:
    """The name that llama.cpp's converter finds.

    Args:
        format: For the error.
        tokens: The text and the token type of each id.
        merges: The merge rules.
        around: The ids that the file adds before and after a text.
        patterns: The file's own patterns, for the names that the error lists.

    Raises:
        ConversionError: The digest is in no table, as for every vocabulary that is not well known.
    """
    text, names = table()
    raw = text.encode()
    spelled = "".join(STAND_INS[byte] for byte in raw)
    used = [id for id, (token, kind) in tokens.items() if token in (text if kind == USER_DEFINED else spelled)]
    kept = [merge for merge in merges if merge[0] + merge[1] in spelled]
    entries: dict[str, Any] = {
        f"{GGML}model": "gpt2",
        f"{GGML}tokens": Packed.strings([*(tokens[id][0] for id in used), "\0"]),
        f"{GGML}token_type": [*(tokens[id][1] for id in used), NORMAL],
        f"{GGML}merges": Packed.strings(f"{left} {right}" for left, right in kept),
    }
    seen = set()
    for name, row in _ggtok.pretokenizers().items():
        key = (row["family"], row["ignore_merges"])
        if key in seen or name == "gemma4":
            continue
        seen.add(key)
        ids = _ids(entries | {f"{GGML}pre": name}, raw)
        found = names.get(digest([*around[0], *(used[id] for id in ids), *around[1]]))
        if found is not None:
            return found
    near = ", ".join(_nearest(patterns))
    raise ConversionError(
        format, f"llama.cpp's converter does not know this pre-tokenizer; give its name as pre, for example {near}"
    )


def _ids(entries: dict[str, Any], text: bytes) -> list[int]:
    from .._base import BaseTokenizer

    try:
        tokenizer = BaseTokenizer._opened(gguf_bytes(entries))
    except GgtokError:
        return []
    return tokenizer.encode(text, add_special=False)


def _nearest(patterns: str) -> list[str]:
    """One name each of the families whose patterns are the most like these."""
    from difflib import SequenceMatcher

    families = _ggtok.families()
    likeness = {
        name: SequenceMatcher(None, "".join(row["patterns"]), patterns, autojunk=False).ratio()
        for name, row in families.items()
    }
    names = {row["family"]: name for name, row in reversed(_ggtok.pretokenizers().items())}
    return [names[family] for family in sorted(likeness, key=lambda name: -likeness[name])[:3]]
