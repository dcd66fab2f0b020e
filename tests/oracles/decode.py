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


def decode(vocab: Vocab, ids: Sequence[int], remove_special: bool, unparse_special: bool, clean_spaces: bool) -> bytes:
    strip_space = vocab.add_space_prefix
    ids = list(ids)
    is_bos_removed = remove_special and vocab.add_bos and ids[:1] == [vocab.bos]
    if not clean_spaces and ids[:1] == [vocab.bos] and not piece(vocab, ids[0], unparse_special):
        ids = ids[1:]
    elif is_bos_removed:
        ids = ids[1:]
        strip_space = strip_space and not clean_spaces
    if remove_special and vocab.add_eos and ids[-1:] == [vocab.eos]:
        ids = ids[:-1]
    pieces = [piece(vocab, id, unparse_special) for id in ids]
    if strip_space and pieces:
        pieces[0] = pieces[0].removeprefix(b" ")
    text = b"".join(pieces)
    if clean_spaces and vocab.clean_spaces:
        text = re.sub(rb" ([?!.,])", rb"\1", text)
        text = text.replace(b" ' ", b"'")
        text = re.sub(rb" ('s|'m|'re|'ve)", rb"\1", text)
    return text
