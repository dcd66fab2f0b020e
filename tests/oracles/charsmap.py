"""Builds the character map of a Unigram vocabulary: an XOR-compressed compact double array (Kanda, 2018).

A node is one 32-bit unit: the label in bits 0 to 7 (bit 31 marks a unit that holds a value), whether it has a value in
bit 8, and its base in bits 10 to 30.
"""

from __future__ import annotations

import struct


def build(replacements: dict[bytes, bytes]) -> bytes:
    """The map for `replacements`, by first fit; keys and values have no zero bytes."""
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
