"""Token pieces and whole texts from ids.

Source: llama.cpp, llama-vocab.cpp, `token_to_piece`, `llama_decode_text` and `detokenize`. The three passes that clean
up spaces are written as equivalent replacements.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from . import spelling
from .gguf_vocab import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED, Vocab

ESCAPED_SPACE = "\u2581".encode()
BYTE_OF = {character: byte for byte, character in spelling.BYTE_ALPHABET.items()}


def piece(vocab: Vocab, id: int, special: bool) -> bytes:
    attribute = vocab.attributes[id]
    # Hybriddna's groups of six lose their marker.
    text = vocab.texts[id].removesuffix(spelling.DNA_MARKER) if vocab.model == "hybriddna" else vocab.texts[id]
    if not special and attribute & (UNKNOWN | CONTROL):
        return b""
    if vocab.kind == "rwkv":
        return spelling.unescape_rwkv(text)
    if vocab.kind == "plamo2":
        spelled = re.fullmatch(rb"<0x([0-9A-Fa-f]{2})>", text) if attribute & BYTE else None
        return bytes([int(spelled[1], 16)]) if spelled else text
    if attribute & (UNKNOWN | CONTROL | USER_DEFINED):
        return text
    if attribute & NORMAL:
        if vocab.kind == "bpe" and not vocab.escape_whitespaces:
            return decode_bytes(text)
        return text.replace(ESCAPED_SPACE, b" ")
    return bytes([int(text[3:5], 16)]) if attribute & BYTE else b""


def decode_bytes(text: bytes) -> bytes:
    """GPT-2's characters back to bytes; any other character leaves llama.cpp's error text."""
    result = b""
    for character in text.decode():
        if character in BYTE_OF:
            result += bytes([BYTE_OF[character]])
        else:
            result += b"[UNK_BYTE_0x" + character.encode().hex().encode() + text + b"]"
    return result


def decode(
    vocab: Vocab,
    ids: Sequence[int],
    remove_special: bool,
    unparse_special: bool,
    clean_spaces: bool,
    prompt: Sequence[int] = (),
) -> bytes:
    """What belongs to the ids in the text of the prompt and the ids, with every byte's origin."""
    whole = [(id, True) for id in prompt] + [(id, False) for id in ids]
    strip_space = vocab.add_space_prefix
    if whole and whole[0][0] == vocab.bos:
        if not clean_spaces and not piece(vocab, whole[0][0], unparse_special):
            whole = whole[1:]
        elif remove_special and vocab.add_bos:
            whole, strip_space = whole[1:], strip_space and not clean_spaces
    if remove_special and vocab.add_eos and whole and whole[-1][0] == vocab.eos:
        whole = whole[:-1]
    pieces = [(piece(vocab, id, unparse_special), is_prompt) for id, is_prompt in whole]
    if strip_space and pieces:
        pieces[0] = (pieces[0][0].removeprefix(b" "), pieces[0][1])
    text = b"".join(piece for piece, _ in pieces)
    origins = [is_prompt for piece, is_prompt in pieces for _ in piece]
    passes = [(rb" (?=[?!.,])", 1), (rb" ' ", 2), (rb" (?='s|'m|'re|'ve)", 1)]
    for pattern, removed in passes if clean_spaces and vocab.clean_spaces else ():
        gone = {at for found in re.finditer(pattern, text) for at in (found.start(), found.end() - 1)[:removed]}
        kept = [at for at in range(len(text)) if at not in gone]
        text, origins = bytes(text[at] for at in kept), [origins[at] for at in kept]
    return bytes(byte for byte, is_prompt in zip(text, origins, strict=True) if not is_prompt)
