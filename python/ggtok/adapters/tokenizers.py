"""A tokenizer in the form of `tokenizers.Tokenizer`, for programs that were written for huggingface/tokenizers.

It has the calls that programs make for texts. For everything else, such as pairs of texts, tokenizers opens the file
that `to_tokenizers_json` writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Literal, Self, TypeAlias

from ..errors import ArgumentTypeError, GgtokError
from ..tokenizer.arguments import items_of, one_of
from ..tokenizer.base import BaseTokenizer
from ..tokenizer.batch import Batch
from ..tokenizer.numbers import at_least
from ..tokenizer.seam import users_class
from ._shared import Names

__all__ = ["Encoding", "Tokenizer"]

ELSEWHERE = "tokenizers does that, with the file that to_tokenizers_json writes"

Direction: TypeAlias = Literal["left", "right"]
Span: TypeAlias = tuple[int, int]
Spelled: TypeAlias = tuple[list[str], list[Span]]
"""The texts and spans of tokens."""


class Encoding:
    """The tokens of a text, with attributes of a `tokenizers.Encoding`.

    >>> import ggtok
    >>> tokenizer = ggtok.adapters.tokenizers.Tokenizer(ggtok.Tokenizer.builtin("wordpiece"))
    >>> encoding = tokenizer.encode("Hello world")
    >>> encoding.tokens
    ['[CLS]', 'hell', '##o', 'world', '[SEP]']
    >>> encoding.offsets
    [(0, 0), (0, 4), (4, 5), (6, 11), (0, 0)]
    """

    ids: list[int]
    """The ids."""
    type_ids: list[int]
    """0, except for padding with another type id."""
    attention_mask: list[int]
    """0 for padding, otherwise 1."""
    special_tokens_mask: list[int]
    """1 for BOS, EOS, SEP and padding that were added, otherwise 0."""

    def __init__(self, before: list[int], own: list[int], after: list[int], spell: Callable[[], Spelled]) -> None:
        """`own` are the text's ids, between added ones. `spell` makes texts and spans when they are asked for."""
        self.ids = [*before, *own, *after]
        self.type_ids, self.attention_mask = [0] * len(self), [1] * len(self)
        self.special_tokens_mask = [*[1] * len(before), *[0] * len(own), *[1] * len(after)]
        self._spell = spell

    @cached_property
    def _spelled(self) -> Spelled:
        return self._spell()

    @property
    def tokens(self) -> list[str]:
        """The texts of the tokens, as `id_to_token` returns them."""
        return self._spelled[0]

    @property
    def offsets(self) -> list[Span]:
        """The span of each token in the text, in characters; `(0, 0)` for added tokens."""
        return self._spelled[1]

    def char_to_token(self, char_pos: int) -> int | None:
        """The index of the token that has this character of the text; `None` if there is none. O(n)."""
        return next((at for at, (start, end) in enumerate(self.offsets) if start <= char_pos < end), None)

    def _pad(self, length: int, direction: Direction, id: int, type_id: int, token: str) -> None:
        count, spell = max(length - len(self), 0), self._spell

        def padded(values: list[Any], value: object) -> list[Any]:
            return [value] * count + values if direction == "left" else values + [value] * count

        for name, value in {"ids": id, "type_ids": type_id, "attention_mask": 0, "special_tokens_mask": 1}.items():
            setattr(self, name, padded(getattr(self, name), value))
        self._spell = lambda: (padded(spell()[0], token), padded(spell()[1], (0, 0)))

    def __len__(self) -> int:
        return len(self.ids)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: everything except the tokenizer."""
        return {"_spelled": self._spelled} | {name: value for name, value in vars(self).items() if name != "_spell"}

    def __repr__(self) -> str:
        return f"<ggtok.adapters.tokenizers.Encoding of {len(self)} tokens>"


class Tokenizer:
    """A tokenizer with the calls of `tokenizers.Tokenizer` for texts. The ids are llama.cpp's.

    Control tokens that are written in a text are read, as there. Set `encode_special_tokens` for texts that you do not
    trust: then they stay text, as in `ggtok.Tokenizer.encode`.

    Args:
        tok: The tokenizer.
        encode_special_tokens: Whether control tokens that are written in a text stay text.
        threads: The number of threads for batches. Default: the number of cores that this process may use.

    >>> import ggtok
    >>> tokenizer = ggtok.adapters.tokenizers.Tokenizer(ggtok.Tokenizer.builtin("spm"))
    >>> tokenizer.encode("What is LoRA?").tokens
    ['<s>', '▁What', '▁is', '▁L', 'o', 'RA', '?']
    >>> [encoding.ids for encoding in tokenizer.encode_batch(["one text", "and another"])]
    [[1, 642, 1602], [1, 304, 1425]]
    """

    def __init__(self, tok: BaseTokenizer, *, encode_special_tokens: bool = False, threads: int | None = None) -> None:
        self._tok, self._names, self._threads = tok, Names(tok), threads
        self.encode_special_tokens = encode_special_tokens
        self.truncation: dict[str, Any] | None = None
        """The arguments of `enable_truncation`; `None` if texts are not truncated."""
        self.padding: dict[str, Any] | None = None
        """The arguments of `enable_padding`; `None` if nothing is padded."""
        vocab = tok.vocab
        added = tok.encode("")
        starts = bool(added) and (vocab.add_bos or vocab.kind == "wordpiece") and added[0] == vocab.bos_id
        self._before, self._after = added[:starts], added[starts:]

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Opens a GGUF file. Raises what `ggtok.Tokenizer.from_gguf` does."""
        return cls(users_class().from_gguf(path))

    @classmethod
    def from_pretrained(cls, identifier: str) -> Self:
        """Opens a model by its name, such as `ollama:llama3.2`. Raises what `ggtok.Tokenizer.from_model` does."""
        return cls(users_class().from_model(identifier))

    @classmethod
    def from_buffer(cls, buffer: bytes) -> Self:
        """Opens the bytes of a GGUF file. Raises what `ggtok.Tokenizer.from_gguf` does."""
        return cls(users_class().from_gguf(buffer))

    @property
    def ggtok(self) -> BaseTokenizer:
        """The tokenizer that does the work."""
        return self._tok

    # Encoding

    def encode(
        self, sequence: str, pair: None = None, is_pretokenized: Literal[False] = False, add_special_tokens: bool = True
    ) -> Encoding:
        """Encodes a text, with BOS, EOS and SEP where the vocabulary asks for them.

        Args:
            sequence: The text.
            pair: Only `None`: a second text needs tokenizers itself.
            is_pretokenized: Only `False`: a list of words needs tokenizers itself.
            add_special_tokens: Whether to add BOS, EOS and SEP.

        Raises:
            TypeError: The text is not a string.
            GgtokError: A second text, or a list of words.
        """
        if pair is not None:
            raise GgtokError(f"pairs of texts cannot be encoded here: {ELSEWHERE}")
        return self.encode_batch([sequence], is_pretokenized, add_special_tokens)[0]

    def encode_batch(
        self, input: Iterable[str], is_pretokenized: Literal[False] = False, add_special_tokens: bool = True
    ) -> list[Encoding]:
        """Encodes several texts on several threads. Takes and raises what `encode` does."""
        if is_pretokenized:
            raise GgtokError(f"lists of words cannot be encoded here: {ELSEWHERE}")
        texts = list(items_of("input", input, "texts"))
        for text in texts:
            if not isinstance(text, str):
                kind = type(text).__name__
                raise ArgumentTypeError(f"a text must be str, not {kind}. If it is a pair of texts, {ELSEWHERE}")
        reads = not self.encode_special_tokens
        rows = self._tok.encode_batch(texts, threads=self._threads, add_special=False, parse_special=reads).tolist()
        return self._padded([self._encoding(*row, add_special_tokens) for row in zip(texts, rows, strict=True)])

    encode_batch_fast = encode_batch
    """The same: spans are only computed when they are asked for."""

    def _encoding(self, text: str, ids: list[int], adds: bool) -> Encoding:
        """The encoding of a text, truncated."""
        before, after = (self._before, self._after) if adds else ([], [])
        start, stop = 0, len(ids)
        if self.truncation is not None:
            room = max(self.truncation["max_length"] - len(before) - len(after), 0)
            cuts_start = self.truncation["direction"] == "left"
            start, stop = (max(stop - room, 0), stop) if cuts_start else (0, min(room, stop))
        tok, reads, names, ids = self._tok, not self.encode_special_tokens, self._names, ids[start:stop]

        def spell() -> Spelled:
            spans = tok.encode_with_offsets(text, add_special=False, parse_special=reads).tolist()[1][start:stop]
            tokens = [names.texts[id] for id in (*before, *ids, *after)]
            return tokens, [*[(0, 0)] * len(before), *spans, *[(0, 0)] * len(after)]

        return Encoding(before, ids, after, spell)

    def num_special_tokens_to_add(self, is_pair: Literal[False] = False) -> int:
        """The number of tokens that `add_special_tokens` adds to a text."""
        return len(self._before) + len(self._after)

    # Truncation and padding

    def enable_truncation(
        self, max_length: int, stride: Literal[0] = 0, strategy: str = "longest_first", direction: Direction = "right"
    ) -> None:
        """Truncates what is encoded from now on.

        Args:
            max_length: The most tokens, with added ones.
            stride: Only 0: what is cut off is dropped.
            strategy: Makes no difference for single texts.
            direction: "right" keeps the start, "left" the end.

        Raises `GgtokError`, a `ValueError`, if an argument has another value.
        """
        if stride:
            raise GgtokError(f"parts that overflow, and repeat {stride} tokens, are not kept here: {ELSEWHERE}")
        one_of("direction", direction, Direction)
        self.truncation = {"max_length": at_least(0, max_length, "max_length"), "direction": direction}

    def no_truncation(self) -> None:
        """Encodes whole texts again."""
        self.truncation = None

    def enable_padding(
        self,
        direction: Direction = "right",
        pad_id: int | None = None,
        pad_type_id: int = 0,
        pad_token: str | None = None,
        length: int | None = None,
        pad_to_multiple_of: int | None = None,
    ) -> None:
        """Pads what is encoded from now on: a batch to its longest encoding, or everything to `length`.

        Args:
            direction: Where to fill: "right" or "left".
            pad_id: The id to fill with. Default: the vocabulary's padding token.
            pad_type_id: Its type id.
            pad_token: Its text. Default: the text of `pad_id`.
            length: The length of every encoding. Default: the longest one's.
            pad_to_multiple_of: Round the length up to a multiple of this.

        Raises `GgtokError`, a `ValueError`, if the vocabulary has no padding token and no `pad_id` is given, or an
        argument has another value.
        """
        one_of("direction", direction, Direction)
        id = self._tok.vocab.pad_id if pad_id is None else pad_id
        if id is None:
            raise GgtokError("the vocabulary has no padding token: pass the id to fill with as pad_id=")
        token = self.id_to_token(id) or "[PAD]" if pad_token is None else pad_token
        self.padding = {"direction": direction, "pad_id": id, "pad_type_id": pad_type_id, "pad_token": token}
        self.padding |= {"length": length, "pad_to_multiple_of": pad_to_multiple_of}

    def no_padding(self) -> None:
        """Encodes without padding again."""
        self.padding = None

    def _padded(self, encodings: list[Encoding]) -> list[Encoding]:
        if self.padding is None:
            return encodings
        direction, id, type_id, token, length, multiple = self.padding.values()
        if length is None:
            length = max(map(len, encodings), default=0)
        if multiple:
            length = -(-length // multiple) * multiple
        for encoding in encodings:
            encoding._pad(length, direction, id, type_id, token)
        return encodings

    # Decoding

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """The text of ids, without control tokens unless `skip_special_tokens=False`.

        With a vocabulary of kind `wordpiece`, it has no space at its start or before punctuation, as in tokenizers.

        Raises `TokenIndexError` for an id that is not in the vocabulary.

        >>> import ggtok
        >>> tokenizer = ggtok.adapters.tokenizers.Tokenizer(ggtok.Tokenizer.builtin("spm"))
        >>> tokenizer.decode([1, 642, 1602]), tokenizer.decode([1, 642, 1602], skip_special_tokens=False)
        ('one text', '<s> one text')
        """
        return self.decode_batch([ids], skip_special_tokens)[0]

    def decode_batch(self, sequences: Batch | Iterable[Sequence[int]], skip_special_tokens: bool = True) -> list[str]:
        """The texts of several lists of ids, on several threads. Raises what `decode` does."""
        is_wordpiece = self._tok.vocab.kind == "wordpiece"
        texts = self._tok.decode_batch(
            sequences, threads=self._threads, unparse_special=not skip_special_tokens, clean_spaces=is_wordpiece
        )
        return [text.removeprefix(" ") for text in texts] if is_wordpiece else texts

    # The vocabulary

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """The ids by the texts of the tokens. Control, user-defined and unknown tokens are the added ones."""
        if with_added_tokens:
            return dict(self._names.ids)
        return {text: id for text, id in self._names.ids.items() if id not in self._names.added}

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        """The number of tokens, with control and user-defined ones or without."""
        return self._tok.vocab_size - (0 if with_added_tokens else len(self._names.added))

    def token_to_id(self, token: str) -> int | None:
        """The id of the token with this text; `None` if there is none."""
        return self._names.ids.get(token)

    def id_to_token(self, id: int) -> str | None:
        """The text of a token; `None` for an id that is not in the vocabulary."""
        return self._names.texts[id] if 0 <= id < self._tok.vocab_size else None

    def __repr__(self) -> str:
        return f"<ggtok.adapters.tokenizers.Tokenizer of {self._tok!r}>"
