"""SentencePiece BPE: merge the adjacent pair whose joined text is the best token, until no pair is a token.

Source: llama.cpp, llama-vocab.cpp, `llm_tokenizer_spm_session`. Best means highest score, then leftmost. What is no
token in the end comes out byte by byte. O(n^3).

Deviation: a byte that is no token, at which llama.cpp ends the process, becomes the unknown token.
"""

from __future__ import annotations

from itertools import pairwise

from . import utf8
from .gguf_vocab import Vocab


def encode(vocab: Vocab, text: bytes) -> list[int]:
    symbols = utf8.pieces(text)
    while True:
        candidates = [
            (-vocab.scores[vocab.ids[left + right]], at)
            for at, (left, right) in enumerate(pairwise(symbols))
            if left + right in vocab.ids
        ]
        if not candidates:
            break
        at = min(candidates)[1]
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
    ids: list[int] = []
    for symbol in symbols:
        ids += [vocab.ids[symbol]] if symbol in vocab.ids else [byte_token(vocab, byte) for byte in symbol]
    return [id for id in ids if id >= 0]


def byte_token(vocab: Vocab, byte: int) -> int:
    """`<0xXX>`, else the byte itself, else the unknown token, else -1."""
    unknown = -1 if vocab.unk is None else vocab.unk
    return vocab.ids.get(b"<0x%02X>" % byte, vocab.ids.get(bytes([byte]), unknown))
