"""The texts of tokens as the original tokenizer writes them, and their ids."""

from __future__ import annotations

from functools import cached_property

from ..tokenizer.base import BaseTokenizer
from ..tokenizer.vocab import TokenAttribute, attributes

_SPACE = "\u2581"
_ADDED = TokenAttribute.CONTROL | TokenAttribute.UNKNOWN | TokenAttribute.USER_DEFINED


class Names:
    """The texts of a vocabulary. llama.cpp marks the starts of WordPiece's words, `##` marks their continuations."""

    def __init__(self, tok: BaseTokenizer) -> None:
        self._vocab = tok.vocab
        added = int(_ADDED)
        self.attributes = attributes(tok.vocab)
        self.added = {id for id, bits in enumerate(self.attributes) if bits & added}
        """The ids that are not part of the model: control, user-defined and unknown tokens."""

    @cached_property
    def texts(self) -> list[str]:
        """The text of each token."""
        texts = [token.text for token in self._vocab]
        if self._vocab.kind != "wordpiece" or _SPACE in texts:
            return texts
        return [
            text if id in self.added else text[1:] if text.startswith(_SPACE) else f"##{text}"
            for id, text in enumerate(texts)
        ]

    @cached_property
    def ids(self) -> dict[str, int]:
        """The lowest id of each text, in the order of the ids."""
        ids: dict[str, int] = {}
        for id, text in enumerate(self.texts):
            ids.setdefault(text, id)
        return ids
