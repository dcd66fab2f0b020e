"""Byte-pair encoding: cut into pieces, then merge the adjacent pair of lowest rank, leftmost first.

Source: llama.cpp, llama-vocab.cpp, `llm_tokenizer_bpe_session` with its hybriddna and whitespace variants. Merges are
looked up by the texts of the two sides, whether or not these are tokens. A symbol that is not a token in the end is
spelled byte by byte, and bytes that are not tokens are dropped. O(n^3).
"""

from __future__ import annotations

from itertools import pairwise

from . import classes, pretokenize, utf8
from .gguf_vocab import Vocab

DNA_MARKER = "\ue000".encode()


def encode(vocab: Vocab, text: bytes) -> list[int]:
    if vocab.model == "hybriddna" and {b"<dna>", b"</dna>", b"<oov>"} <= vocab.ids.keys():
        return encode_dna(vocab, text)
    if vocab.model == "whitespace":
        return [id for segment in split_at_spaces(vocab, text) for id in encode_plain(vocab, segment)]
    return encode_plain(vocab, text)


def encode_plain(vocab: Vocab, text: bytes) -> list[int]:
    family = pretokenize.family(vocab.pre or "default")
    ids: list[int] = []
    for word in pretokenize.split(text, family.patterns):
        ids += encode_word(vocab, byte_encode(word) if family.byte_encode else word, family)
    return ids


def encode_word(vocab: Vocab, word: bytes, family: pretokenize.Family) -> list[int]:
    whole = vocab.ignore_merges or (family.name == "gemma4" and not word.strip(b"\n"))
    symbols = [word] if whole and word in vocab.ids else utf8.pieces(word)
    while True:
        ranked = [(vocab.ranks[pair], at) for at, pair in enumerate(pairwise(symbols)) if pair in vocab.ranks]
        if not ranked:
            break
        at = min(ranked)[1]
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
    ids: list[int] = []
    for symbol in symbols:
        if symbol in vocab.ids:
            ids.append(vocab.ids[symbol])
            continue
        spelled = [bytes([byte]) if family.byte_encode else b"<0x%02X>" % byte for byte in symbol]
        ids += [vocab.ids[byte] for byte in spelled if byte in vocab.ids]
    return ids


def byte_alphabet() -> dict[int, str]:
    """GPT-2's printable character for each byte: itself if printable, else the next one starting at U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(others)}


BYTE_ALPHABET = byte_alphabet()


def byte_encode(word: bytes) -> bytes:
    return "".join(BYTE_ALPHABET[byte] for byte in word).encode()


def split_at_spaces(vocab: Vocab, text: bytes) -> list[bytes]:
    segments = [b""]
    for code_point in utf8.code_points(text):
        if classes.flags(code_point) & classes.WHITESPACE:
            segments.append(b"")
        else:
            segments[-1] += utf8.encode(classes.lowercase(code_point) if vocab.lowercase else code_point)
    return [segment for segment in segments if segment]


def encode_dna(vocab: Vocab, text: bytes) -> list[int]:
    """Text between `<dna>` and `</dna>` in groups of six letters, the last one padded with A."""
    before, opening, rest = text.partition(b"<dna>")
    ids = encode_plain(vocab, before) if before else []
    if not opening:
        return ids
    sequence, closing, rest = rest.partition(b"</dna>")
    ids.append(vocab.ids[b"<dna>"])
    sequence = sequence.upper()
    for at in range(0, len(sequence), 6):
        group = sequence[at : at + 6].ljust(6, b"A") + DNA_MARKER
        ids.append(vocab.ids.get(group, vocab.ids[b"<oov>"]))
    if closing:
        ids.append(vocab.ids[b"</dna>"])
        ids += encode_dna(vocab, rest) if rest else []
    return ids
