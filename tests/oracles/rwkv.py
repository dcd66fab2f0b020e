r"""RWKV: the longest token at each position, over raw bytes; token texts are escaped (`\n`, `\x00`, ...).

Source: llama.cpp, llama-vocab.cpp, `llama_unescape_rwkv_token` and `llm_tokenizer_rwkv_session`. A byte that starts
tokens of which none matches sends llama.cpp back to the start of the text forever; here that is a LookupError.
"""

from __future__ import annotations

from functools import lru_cache

from .gguf_vocab import Vocab


def encode(vocab: Vocab, text: bytes) -> list[int]:
    tokens = unescaped(tuple(vocab.texts))
    longest = max(map(len, tokens))
    ids, at = [], 0
    while at < len(text):
        ends = [end for end in range(min(len(text), at + longest), at, -1) if text[at:end] in tokens]
        if ends:
            ids.append(tokens[text[at : ends[0]]])
            at = ends[0]
        elif any(token.startswith(text[at : at + 1]) for token in tokens):
            raise LookupError("llama.cpp never ends here")
        else:
            ids.append(-1 if vocab.unk is None else vocab.unk)
            at += 1
    return ids


@lru_cache(maxsize=2)
def unescaped(texts: tuple[bytes, ...]) -> dict[bytes, int]:
    return {unescape(text): id for id, text in enumerate(texts)}


def unescape(text: bytes) -> bytes:
    result, at = bytearray(), 0
    while at < len(text):
        if text[at] != ord("\\"):
            result.append(text[at])
            at += 1
        elif text[at + 1 : at + 2] == b"x":
            result.append(int(text[at + 2 : at + 4], 16))
            at += 4
        else:
            following = text[at + 1 : at + 2]
            result += {b"t": b"\t", b"n": b"\n", b"r": b"\r"}.get(following, following)
            at += 2
    return bytes(result)
