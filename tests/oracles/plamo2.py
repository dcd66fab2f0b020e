"""PLaMo-2: the cheapest way to cut the text into tokens, found from its end; what is no token costs 1000 per character.

Source: llama.cpp, llama-vocab.cpp, `llm_tokenizer_plamo2`. A token costs minus its score, in units of 1/10000; equal
costs go to the longer token. Unknown characters come out as byte tokens, by a formula of llama.cpp's that is not UTF-8
for lead bytes.
"""

from __future__ import annotations

import math

from . import utf8
from .gguf_vocab import BYTE, Vocab

UNKNOWN_COST = 10_000_000
TOO_DEAR = 20_000_000


def encode(vocab: Vocab, text: bytes, *, continues: bool = False) -> list[int]:
    """With `continues`, a byte order mark at the start is kept."""
    characters = utf8.code_points(text, beyond=True)
    if characters[:1] == [0xFEFF] and not continues:
        characters = characters[1:]
    tokens = {
        tuple(utf8.code_points(token)): (cost(score), id)
        for id, (token, score) in enumerate(zip(vocab.texts, vocab.scores, strict=True))
        if not vocab.attributes[id] & BYTE and math.isfinite(score) and cost(score) < TOO_DEAR
    }
    longest = max(map(len, tokens), default=1)
    # best[at] is the cost from `at` to the end, then the first token's length and id.
    best: list[tuple[int, int, int]] = [(0, 0, -1)]
    for at in reversed(range(len(characters))):
        choices = []
        for length in range(min(longest, len(characters) - at), 0, -1):
            token = tokens.get(tuple(characters[at : at + length]))
            if token:
                choices.append((best[length - 1][0] + token[0], length, token[1]))
        choices.append((best[0][0] + UNKNOWN_COST, 1, -1))
        best.insert(0, min(choices, key=lambda choice: choice[0]))
    ids, at = [], 0
    while at < len(characters):
        _, length, id = best[at]
        ids += [id] if id >= 0 else byte_tokens(vocab, characters[at])
        at += length
    return ids


def cost(score: float) -> int:
    """Rounded half away from zero, as C's round() does."""
    scaled = abs(score * 1e4)
    whole = math.floor(scaled) + (scaled - math.floor(scaled) >= 0.5)
    return -whole if score > 0 else whole


def byte_tokens(vocab: Vocab, code_point: int) -> list[int]:
    size = 1 + (code_point >= 0x80) + (code_point >= 0x800) + (code_point >= 0x10000)
    ids = []
    for index in range(size):
        high = code_point & 0xFF if size == 1 else (0xF00 >> size) & 0xFF if index == 0 else 0x80
        low = code_point >> ((size - index - 1) * 6) & 0x3F
        ids.append(vocab.ids[b"<0x%02X>" % (high | low)])
    return ids
