"""How the texts of tokens spell bytes, as llama.cpp reads them (unicode.cpp, llama-vocab.cpp)."""

from __future__ import annotations

DNA_MARKER = "\ue000".encode()
"""Ends the tokens of hybrid DNA's groups of six letters."""


def byte_alphabet() -> dict[int, str]:
    """GPT-2's printable character for each byte: itself if printable, else the next one starting at U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(others)}


BYTE_ALPHABET = byte_alphabet()


def byte_encode(word: bytes) -> bytes:
    """Bytes as GPT-2's characters."""
    return "".join(BYTE_ALPHABET[byte] for byte in word).encode()


BYTES = [byte_encode(bytes([byte])) for byte in range(256)]
"""The token of each byte in byte-level BPE."""
BYTE_TOKENS = [b"<0x%02X>" % byte for byte in range(256)]
"""The token of each byte everywhere else."""


def unescape_rwkv(text: bytes) -> bytes:
    r"""The bytes that RWKV spells with `\n`, `\x00` and so on."""
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
