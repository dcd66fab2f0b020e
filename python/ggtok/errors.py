"""What ggtok raises. Every error is a `GgtokError`, and thereby a `ValueError`."""

from __future__ import annotations

__all__ = ["GGUFError", "GgtokError", "TokenIndexError", "UnsupportedError", "VocabularyError"]


class GgtokError(ValueError):
    """The base of all errors that ggtok raises."""


class GGUFError(GgtokError):
    """A file is not GGUF, is damaged, or a metadata key has another type than it must have.

    `key`, `offset` (in bytes from the start of the file), `expected` and `found` are `None` where they do not apply.
    """

    def __init__(
        self,
        problem: str,
        *,
        key: str | None = None,
        offset: int | None = None,
        expected: str | None = None,
        found: str | None = None,
    ) -> None:
        self.key, self.offset, self.expected, self.found = key, offset, expected, found
        place = [f"key {key!r}"] if key is not None else []
        place += [f"byte {offset}"] if offset is not None else []
        message = f"{problem} ({', '.join(place)})" if place else problem
        if expected is not None:
            message += f": expected {expected}"
            message += f", found {found}" if found is not None else ""
        super().__init__(message)


class VocabularyError(GgtokError):
    """A file is sound but its vocabulary is not."""


class UnsupportedError(GgtokError):
    """A file asks for a tokenizer or pre-tokenizer that ggtok does not know.

    `name` is what it asks for, `nearest` are the most similar names that ggtok does know.
    """

    def __init__(self, message: str, name: str | None = None, nearest: tuple[str, ...] = ()) -> None:
        self.name, self.nearest = name, nearest
        super().__init__(message)


class TokenIndexError(GgtokError, IndexError):
    """A token id is outside the vocabulary."""
