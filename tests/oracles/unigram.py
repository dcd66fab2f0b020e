"""Unigram: normalize, then the path through the text with the highest sum of token scores (Viterbi).

Source: llama.cpp, llama-vocab.cpp, `llm_tokenizer_ugm_session`. Scores add up as doubles; of equal paths the first
found wins. User-defined tokens score 0 and pass normalization untouched, which llama.cpp decides by the longest
stretch of text that is a *prefix* of any of them, whole token or not. Quadratic in the longest token.
"""

from __future__ import annotations

import struct

from . import utf8
from .gguf_vocab import NORMAL, UNUSED, USER_DEFINED, Vocab, as_float32

ESCAPED_SPACE = "\u2581".encode()


def encode(vocab: Vocab, text: bytes, *, continues: bool = False) -> list[int]:
    """With `continues`, no space is put before the text."""
    normalized = normalize(vocab, text, continues=continues)
    unknown = -1 if vocab.unk is None else vocab.unk
    tokens = vocab.ids_of(NORMAL | USER_DEFINED | UNUSED)
    longest = max(map(len, tokens), default=0)
    unknown_score = as_float32(vocab.lowest_score - 10)
    # best[end] is (score, start of its last token, that token); position 0 is the text's start.
    best: dict[int, tuple[float, int, int]] = {0: (0.0, 0, unknown)}

    def offer(start: int, end: int, id: int, score: float) -> None:
        total = best[start][0] + score
        if end not in best or total > best[end][0]:
            best[end] = (total, start, id)

    start = 0
    while start < len(normalized):
        step = min(utf8.sequence_len(normalized[start]), len(normalized) - start)
        for end in range(start + 1, min(len(normalized), start + longest) + 1):
            id = tokens.get(normalized[start:end])
            if id is not None:
                offer(start, end, id, 0.0 if vocab.attributes[id] & USER_DEFINED else vocab.scores[id])
        if normalized[start : start + step] not in tokens:
            offer(start, start + step, unknown, unknown_score)
        start += step

    ids: list[int] = []
    at = len(normalized)
    while at > 0:
        _, at, id = best[at]
        if not (id == unknown and ids[-1:] == [unknown]):
            ids.append(id)
    return ids[::-1]


def normalize(vocab: Vocab, text: bytes, *, continues: bool = False) -> bytes:
    """Characters replaced, spaces escaped, merged or added as the vocabulary's flags say."""
    space = ESCAPED_SPACE if vocab.escape_whitespaces else b" "
    replaced = bytearray()
    at = 0
    while at < len(text):
        replacement, consumed = normalize_prefix(vocab, text, at)
        replaced += replacement
        at += consumed
    result = bytearray()
    in_word = prefixed = continues
    for byte in replaced:
        if byte == ord(" "):
            in_word = False
            result += b"" if vocab.remove_extra_whitespaces else space
            continue
        if not in_word and (vocab.remove_extra_whitespaces or (vocab.add_space_prefix and not prefixed)):
            result += space
            prefixed = True
        in_word = True
        result.append(byte)
    return bytes(result)


def normalize_prefix(vocab: Vocab, text: bytes, at: int) -> tuple[bytes, int]:
    """The replacement of the text at `at`, and how many bytes it replaces."""
    passed = max((common_prefix(token, text[at:]) for token in vocab.ids_of(USER_DEFINED)), default=0)
    if passed:
        return text[at : at + passed], passed
    replacement = replace(vocab.charsmap, text[at:]) if vocab.charsmap else None
    if replacement:
        return replacement
    decoded = utf8.decode(text, at)
    return (text[at : at + decoded[1]], decoded[1]) if decoded else (utf8.encode(utf8.REPLACEMENT), 1)


def common_prefix(left: bytes, right: bytes) -> int:
    length = 0
    while length < min(len(left), len(right)) and left[length] == right[length]:
        length += 1
    return length


class Xcda:
    """XOR-compressed compact double array (Kanda, 2018): one 32-bit unit per node.

    LCHECK is bits 0-7 (bit 31 marks units that hold a value), LEAF bit 8, BASE bits 10-30, eight bits further left if
    bit 9 is set.
    """

    def __init__(self, charsmap: bytes) -> None:
        (size,) = struct.unpack_from("<I", charsmap)
        self.units: tuple[int, ...] = struct.unpack_from(f"<{size // 4}I", charsmap, 4)
        self.replacements = charsmap[4 + size :]

    def base(self, index: int) -> int:
        unit = self.units[index]
        return unit >> 10 << (8 if unit & 1 << 9 else 0)

    def lcheck(self, index: int) -> int:
        return self.units[index] & (1 << 31 | 0xFF)

    def leaf(self, index: int) -> bool:
        return bool(self.units[index] & 1 << 8)

    def value(self, index: int) -> int:
        return self.units[index] & ~(1 << 31)


def replace(charsmap: bytes, text: bytes) -> tuple[bytes, int] | None:
    """The replacement of the longest prefix of `text` that has one, and that prefix's length."""
    xcda = Xcda(charsmap)
    node = xcda.base(0)
    found = None
    for length, byte in enumerate(text, 1):
        node ^= byte
        if byte == 0 or xcda.lcheck(node) != byte:
            break
        leaf = xcda.leaf(node)
        node ^= xcda.base(node)
        if leaf:
            start = xcda.value(node)
            found = xcda.replacements[start : xcda.replacements.index(0, start)], length
    return found


def build_charsmap(replacements: dict[bytes, bytes]) -> bytes:
    """A charsmap for `replacements`, by first fit; keys and values without zero bytes. For tests."""
    units = [0] * 256 * (sum(map(len, replacements)) + 2)
    used = {0}
    texts = b""

    def place(node: int, prefix: bytes) -> None:
        nonlocal texts
        labels = sorted({key[len(prefix)] for key in replacements if key.startswith(prefix) and key != prefix})
        leaf = prefix in replacements
        wanted = [*labels, 0] if leaf else labels
        base = next(base for base in range(1, len(units)) if not used & {node ^ base ^ label for label in wanted})
        children = {label: node ^ base ^ label for label in wanted}
        used.update(children.values())
        units[node] |= base << 10 | leaf << 8
        if leaf:
            units[children[0]] = 1 << 31 | len(texts)
            texts += replacements[prefix] + b"\0"
        for label in labels:
            units[children[label]] |= label
            place(children[label], prefix + bytes([label]))

    place(0, b"")
    blob = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(blob)) + blob + (texts or b"\0")
