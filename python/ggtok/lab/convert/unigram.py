"""What exports of a Unigram vocabulary have in common."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from ..._ggtok import charsmap
from .vocabulary import NORMAL, SPACE, UNUSED, USER_DEFINED, Vocabulary

LEAF, WIDE = 1 << 8, 1 << 9
LABEL = 1 << 31 | 0xFF
"""The bits of a node of the character map's double array: has a value, offset in units of 256, and label."""


def unigram_scores(vocabulary: Vocabulary) -> list[float]:
    """The scores, and the lowest one for tokens that llama.cpp does not look for in words.

    They would be found where their text occurs, and the score of unknown characters follows from the lowest of all.
    """
    pairs = list(zip(vocabulary.scores, vocabulary.attributes, strict=True))
    lowest = min((score for score, bits in pairs if bits & NORMAL), default=0.0)
    return [max(score, lowest) if bits & (NORMAL | UNUSED) else lowest for score, bits in pairs]


def charsmap_of(vocabulary: Vocabulary) -> bytes:
    """The character map. Ends the export if other libraries would apply it where llama.cpp does not.

    llama.cpp leaves a text that starts like a user-defined token as it is, even if the token is not complete.
    """
    found = charsmap(vocabulary.tokenizer)
    nodes = struct.unpack_from(f"<{int.from_bytes(found[:4], 'little') // 4}I", found, 4) if found else ()
    for token in vocabulary.special:
        start = token.text[:-1]
        if vocabulary.attributes[token.id] & USER_DEFINED and (
            " " in start or SPACE in start or any(_is_mapped(nodes, rest) for rest in _suffixes(start))
        ):
            vocabulary.refuse(
                f"llama.cpp does not normalize what begins like the user-defined token {token.text!r}, which it would"
            )
    return found


def _suffixes(text: str) -> Iterator[memoryview]:
    """What is left of a text from each of its characters on, without copies."""
    data = memoryview(text.encode())
    return (data[at:] for at, byte in enumerate(data) if byte & 0xC0 != 0x80)


def _is_mapped(nodes: Sequence[int], text: memoryview) -> bool:
    """Whether the character map replaces some start of a text. The array is XCDA's: sentencepiece `normalizer.cc`."""
    at = _base(nodes[0]) if nodes else 0
    for byte in text:
        at ^= byte
        if at >= len(nodes) or nodes[at] & LABEL != byte:
            return False
        if nodes[at] & LEAF:
            return True
        at ^= _base(nodes[at])
    return False


def _base(node: int) -> int:
    """The place of a node's children, relative to its own."""
    return node >> 10 << (8 if node & WIDE else 0)
