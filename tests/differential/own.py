"""ggtok with a cache of any size, whose calls must agree with each other before they are compared with llama.cpp."""

from __future__ import annotations

from random import Random
from typing import Any

from ggtok.lab.verify.answerers import Ours
from ggtok.lab.verify.binding import Overrides

CACHE_LIMITS = (0, 1 << 14, 1 << 16, 1 << 20, 1 << 26, 1 << 26)
"""In bytes: from no cache, through those that forget all the time, to the default."""


class Checked(Ours):
    """ggtok. Where several calls must agree, this class compares them."""

    def open(self, path: str, overrides: Overrides) -> int:
        """As there, with one of the sizes of caches."""
        from ggtok import set_cache_limit

        self._random = Random(f"{path} {overrides}")
        set_cache_limit(self._random.choice(CACHE_LIMITS))
        return super().open(path, overrides)

    def encode(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        """`encode`, which must return the same with cold and warm caches, `count`, and sometimes `encode_batch`."""
        flags: dict[str, Any] = {"add_special": add_special, "parse_special": parse_special}
        ids = self._tokenizer.encode(text, **flags)
        again, count = self._tokenizer.encode(text, **flags), self._tokenizer.count(text, **flags)
        if again != ids:
            raise AssertionError(f"the second call returns {again}, the first returned {ids}")
        if count != len(ids):
            raise AssertionError(f"count returns {count}, encode returns {len(ids)} ids")
        if self._random.random() < 0.1:
            batch = self._tokenizer.encode_batch([text, text[::-1], text], threads=2, **flags).tolist()
            if batch != [ids, self._tokenizer.encode(text[::-1], **flags), ids]:
                raise AssertionError(f"encode_batch returns {batch[0]} and {batch[2]}, encode returns {ids}")
        return ids

    def decode(self, ids: list[int], remove_special: bool, unparse_special: bool) -> bytes:
        """`decode_bytes` with `clean_spaces`; without, it must return the joined pieces."""
        cleaned = super().decode(ids, remove_special, unparse_special)
        if not remove_special:
            joined = self._joined(ids, unparse_special)
            decoded = self._tokenizer.decode_bytes(ids, unparse_special=unparse_special)
            if joined != decoded:
                raise AssertionError(f"decode_bytes returns {decoded!r}, the pieces are {joined!r}")
        return cleaned

    def _joined(self, ids: list[int], special: bool) -> bytes:
        """The pieces, without the space that encoding puts in front of the text."""
        tokenizer = self._tokenizer
        pieces = [tokenizer.piece(id, special=special) for id in ids]
        if ids[:1] == [tokenizer.vocab.bos_id] and not pieces[0]:
            del pieces[0]
        if pieces and tokenizer.vocab.settings["add_space_prefix"]:
            pieces[0] = pieces[0].removeprefix(b" ")
        return b"".join(pieces)
