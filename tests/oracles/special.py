"""The tokens of a text in parts: special tokens are cut out, and each fragment between them is a text by itself.

Source: llama.cpp, llama-vocab.cpp, `tokenizer_st_partition` and `llama_vocab::impl::tokenize`. Each special text is
looked for in the whole text, the longest first; a match cuts the text for all shorter ones. llama.cpp has no parts:
here each byte says whether a control token may be there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ggtok import Tokenizer

from .gguf_vocab import CONTROL, LSTRIP, RSTRIP, UNKNOWN, Vocab

SPACES = b" \t\n\v\f\r"
Item = tuple[int | None, int, int]
"""A special token and where it is, or None and where a fragment is."""
Token = tuple[int, int, int]
"""An id and its span in bytes."""


def partition(vocab: Vocab, text: bytes, allowed: Sequence[bool]) -> list[Item]:
    """The special tokens of a text and the fragments between them."""
    items: list[Item] = [(None, 0, len(text))]
    for id in vocab.special:
        needle, attribute = vocab.texts[id], vocab.attributes[id]

        def found(start: int, end: int, needle: bytes = needle, attribute: int = attribute) -> int:
            """Where the token is, or -1."""
            for at in range(start, end - len(needle) + 1):
                may_be_here = not attribute & (CONTROL | UNKNOWN) or all(allowed[at : at + len(needle)])
                if text[at : at + len(needle)] == needle and may_be_here:
                    return at
            return -1

        parts: list[Item] = []
        for item, start, end in items:
            if item is not None:
                parts.append((item, start, end))
                continue
            while (at := found(start, end)) >= 0:
                left = len(text[start:at].rstrip(SPACES)) if attribute & LSTRIP else at - start
                parts += [(None, start, start + left), (id, at, at + len(needle))]
                start = at + len(needle)
                if attribute & RSTRIP:
                    start = end - len(text[start:end].lstrip(SPACES))
            parts.append((None, start, end))
        items = [(item, start, end) for item, start, end in parts if item is not None or start < end]
    return items


def encode(
    vocab: Vocab, tokenizer: Tokenizer, text: bytes, allowed: Sequence[bool], *, add_special: bool, continues: bool
) -> list[Token]:
    """The tokens of the whole text: those that are added, and those of the fragments."""
    after = tokenizer.encode("", add_special=add_special, continues=True)
    before = [] if continues else tokenizer.encode("", add_special=add_special)
    tokens = [(id, 0, 0) for id in before[: len(before) - len(after)]]
    for special, start, end in partition(vocab, text, allowed):
        if special is not None:
            tokens.append((special, start, end))
        else:
            flags: dict[str, Any] = {"add_special": False, "continues": continues}
            ids, found = tokenizer.encode_with_offsets(text[start:end], unit="byte", **flags).tolist()
            tokens += [(id, start + first, start + last) for id, (first, last) in zip(ids, found, strict=True)]
        continues = False
    return tokens + [(id, len(text), len(text)) for id in after]
