"""A tokenizer in the form of `tokenizers.Tokenizer`, for programs that were written for huggingface/tokenizers."""

from __future__ import annotations

import os
from asyncio import to_thread
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from itertools import groupby, islice, product
from typing import Any, Self, TypeAlias

from ..errors import GgtokError
from ..lab.convert.edits import Edits
from ..lab.convert.files import to_gguf
from ..tokenizer.arguments import items_of, one_of
from ..tokenizer.base import BaseTokenizer
from ..tokenizer.batch import Batch
from ..tokenizer.seam import users_class
from ..tokenizer.vocab import TokenAttribute
from ._arguments import STRATEGIES, Padding, Truncation, checked, kept_lengths, sequences
from ._encoding import Direction, Encoding, Run, Runs, Source, check_direction, num_tokens, parts
from ._generation import special_ids
from ._names import Names
from ._packages import load

Cut: TypeAlias = tuple[Runs, Callable[[], list[Runs]]]
"""What truncation keeps, and what makes the parts that it cuts off."""


__all__ = ["Encoding", "Tokenizer"]


class Tokenizer:
    """A tokenizer with the calls of `tokenizers.Tokenizer`. The ids are llama.cpp's.

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
        self._set(tok)
        self.encode_special_tokens, self._threads = encode_special_tokens, threads
        self._truncation: Truncation | None = None
        self._padding: Padding | None = None

    def _set(self, tok: BaseTokenizer) -> None:
        vocab, added = tok.vocab, tok.encode("")
        starts = bool(added) and (vocab.add_bos or vocab.kind == "wordpiece") and added[0] == vocab.bos_id
        self._tok, self._names, self._before, self._after = tok, Names(tok), added[:starts], added[starts:]

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

    # From text to ids

    def encode(
        self,
        sequence: str | Sequence[str],
        pair: str | Sequence[str] | None = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> Encoding:
        """Encodes a text or a pair of texts, with BOS, EOS and SEP where the vocabulary asks for them.

        Args:
            sequence: The text. With `is_pretokenized` its words, each of which is encoded by itself.
            pair: A second text. A vocabulary of kind `wordpiece` gives `[CLS] A [SEP] B [SEP]`; of another kind the
                tokens of `sequence` and then those of `pair`, each with its BOS and EOS.
            is_pretokenized: As said above.
            add_special_tokens: Whether to add BOS, EOS and SEP.

        Raises:
            TypeError: A text has the wrong type.
            GgtokError: The texts cannot be truncated as `enable_truncation` wants.

        >>> import ggtok
        >>> tokenizer = ggtok.adapters.tokenizers.Tokenizer(ggtok.Tokenizer.builtin("wordpiece"))
        >>> encoding = tokenizer.encode("one text", "another")
        >>> encoding.tokens, encoding.type_ids
        (['[CLS]', 'one', 'text', '[SEP]', 'another', '[SEP]'], [0, 0, 0, 0, 1, 1])
        """
        texts = [checked(text, is_pretokenized) for text in ((sequence,) if pair is None else (sequence, pair))]
        sequences = [
            [self._source(text, self._body(text)) for text in (words if is_pretokenized else [words])]
            for words in texts
        ]
        return self._finished([self._joined(sequences, add_special_tokens)])[0]

    def encode_batch(
        self, input: Iterable[Any], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Encoding]:
        """Encodes several texts or pairs on several threads.

        Args:
            input: Texts, and pairs of texts as tuples or lists.
            is_pretokenized: As in `encode`.
            add_special_tokens: As in `encode`.

        Raises what `encode` does.
        """
        items = [sequences(item, is_pretokenized) for item in items_of("input", input, "texts and pairs of texts")]
        flat = [text for item in items for words in item for text in (words if is_pretokenized else [words])]
        reads = not self.encode_special_tokens
        rows = self._tok.encode_batch(flat, threads=self._threads, add_special=False, parse_special=reads)
        sources = map(self._source, flat, rows)
        joined = [
            self._joined(
                [list(islice(sources, len(words) if is_pretokenized else 1)) for words in item], add_special_tokens
            )
            for item in items
        ]
        return self._finished(joined)

    encode_batch_fast = encode_batch
    """The same: spans are only computed if somebody asks for them."""

    async def async_encode(
        self,
        sequence: str | Sequence[str],
        pair: str | Sequence[str] | None = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> Encoding:
        """`encode` in another thread."""
        return await to_thread(self.encode, sequence, pair, is_pretokenized, add_special_tokens)

    async def async_encode_batch(
        self, input: Iterable[Any], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Encoding]:
        """`encode_batch` in another thread."""
        return await to_thread(self.encode_batch, input, is_pretokenized, add_special_tokens)

    async_encode_batch_fast = async_encode_batch

    def _body(self, text: str) -> list[int]:
        return self._tok.encode(text, add_special=False, parse_special=not self.encode_special_tokens)

    def _source(self, text: str, ids: Any) -> Source:
        tok, reads, names = self._tok, not self.encode_special_tokens, self._names

        def more() -> tuple[list[str], list[tuple[int, int]]]:
            ids, spans = tok.encode_with_offsets(text, add_special=False, parse_special=reads).tolist()
            return [names.texts[id] for id in ids], spans

        return Source(ids, more)

    def _added(self, ids: list[int], type_id: int) -> Runs:
        source = Source.added(ids, [self._names.texts[id] for id in ids])
        return (Run(source, 0, len(ids), None, type_id),) if ids else ()

    def _joined(self, sequences: list[list[Source]], add_special_tokens: bool) -> Cut:
        """What is kept of a text or a pair, with added tokens, and what overflows."""
        runs = [
            tuple(Run(source, 0, len(source), number, number) for source in sources)
            for number, sources in enumerate(sequences)
        ]
        return self._with_added(runs, add_special_tokens)

    def _with_added(self, runs: list[Runs], add_special_tokens: bool) -> Cut:
        num_added = self.num_special_tokens_to_add(len(runs) > 1) if add_special_tokens else 0
        cuts = self._truncated(runs, num_added)
        kept = self._template([parts[0] for parts in cuts], add_special_tokens)
        if all(len(parts) == 1 for parts in cuts):
            return kept, list

        def others() -> list[Runs]:
            """Each part of the first text with each of the second; the part that is kept comes last, without itself."""
            first, *rest = product(cuts[0], *cuts[1:])
            chosen = sorted(rest, key=lambda parts: parts[0] is first[0])
            return [self._template([*parts], add_special_tokens) for parts in chosen]

        return kept, others

    def _template(self, runs: list[Runs], add_special_tokens: bool) -> Runs:
        """Each text with its added tokens."""
        found: Runs = ()
        for number, body in enumerate(runs):
            starts = add_special_tokens and (number == 0 or self._tok.vocab.kind != "wordpiece")
            found += self._added(self._before, number) if starts else ()
            found += body
            found += self._added(self._after, number) if add_special_tokens else ()
        return found

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """The number of tokens that `add_special_tokens` adds to a text or a pair.

        >>> import ggtok
        >>> tokenizer = ggtok.adapters.tokenizers.Tokenizer(ggtok.Tokenizer.builtin("wordpiece"))
        >>> tokenizer.num_special_tokens_to_add(False), tokenizer.num_special_tokens_to_add(True)
        (2, 3)
        """
        single = len(self._before) + len(self._after)
        again = 0 if self._tok.vocab.kind == "wordpiece" else len(self._before)
        return single + (again + len(self._after) if is_pair else 0)

    def post_process(
        self, encoding: Encoding, pair: Encoding | None = None, add_special_tokens: bool = True
    ) -> Encoding:
        """Truncates, adds BOS, EOS and SEP, and pads, for encodings that were made without."""
        encodings = [encoding] if pair is None else [encoding, pair]
        runs = [
            tuple(run._replace(sequence=number, type_id=number) for run in encoding._runs)
            for number, encoding in enumerate(encodings)
        ]
        return self._finished([self._with_added(runs, add_special_tokens)])[0]

    # Truncation and padding

    def enable_truncation(
        self, max_length: int, stride: int = 0, strategy: str = "longest_first", direction: str = "right"
    ) -> None:
        """Truncates what is encoded from now on.

        Args:
            max_length: The most tokens, with added ones.
            stride: How many tokens each part in `Encoding.overflowing` repeats.
            strategy: "longest_first", "only_first" or "only_second": which text of a pair is cut.
            direction: "right" keeps the start, "left" the end.

        Raises `GgtokError`, a `ValueError`, if an argument has another value.
        """
        one_of("strategy", strategy, STRATEGIES)
        if max_length < 0 or stride < 0:
            raise GgtokError("max_length and stride must not be negative")
        side = check_direction(direction)
        self._truncation = Truncation(max_length=max_length, stride=stride, strategy=strategy, direction=side)

    def no_truncation(self) -> None:
        """Encodes whole texts again."""
        self._truncation = None

    @property
    def truncation(self) -> dict[str, Any] | None:
        """The arguments of `enable_truncation`; `None` if texts are not truncated."""
        return None if self._truncation is None else {**self._truncation}

    def _truncated(self, runs: list[Runs], num_added: int) -> list[list[Runs]]:
        """The parts of each text: the one that is kept, then those that overflow."""
        settings = self._truncation
        lengths = [num_tokens(text) for text in runs]
        budget = sum(lengths) if settings is None else max(settings["max_length"] - num_added, 0)
        if settings is None or sum(lengths) <= budget:
            return [[text] for text in runs]
        kept = kept_lengths(lengths, budget, settings["strategy"])
        side: Direction = "left" if settings["direction"] == "left" else "right"
        return [parts(text, length, settings["stride"], side) for text, length in zip(runs, kept, strict=True)]

    def enable_padding(
        self,
        direction: str = "right",
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
            length: The length of every encoding. Default: that of the longest one.
            pad_to_multiple_of: Round the length up to a multiple of this.

        Raises `GgtokError`, a `ValueError`, if the vocabulary has no padding token and no `pad_id` is given, or an
        argument has another value.
        """
        side = check_direction(direction)
        if pad_id is None:
            pad_id = self._tok.vocab.pad_id
        if pad_id is None:
            raise GgtokError("the vocabulary has no padding token: pass the id to fill with as pad_id=")
        self._padding = Padding(
            length=length,
            pad_to_multiple_of=pad_to_multiple_of,
            pad_id=pad_id,
            pad_token=self.id_to_token(pad_id) or "[PAD]" if pad_token is None else pad_token,
            pad_type_id=pad_type_id,
            direction=side,
        )

    def no_padding(self) -> None:
        """Encodes without padding again."""
        self._padding = None

    @property
    def padding(self) -> dict[str, Any] | None:
        """The arguments of `enable_padding`; `None` if nothing is padded."""
        return None if self._padding is None else {**self._padding}

    def _finished(self, joined: list[Cut]) -> list[Encoding]:
        """The encodings, padded."""
        settings = self._padding
        if settings is None:
            return [Encoding(*kept_and_others) for kept_and_others in joined]
        longest = max((num_tokens(kept) for kept, _ in joined), default=0)
        multiple = settings["pad_to_multiple_of"] or 1
        length = -(-(longest if settings["length"] is None else settings["length"]) // multiple) * multiple
        encodings = [Encoding(*kept_and_others) for kept_and_others in joined]
        for encoding in encodings:
            encoding.pad(
                length,
                direction=settings["direction"],
                pad_id=settings["pad_id"],
                pad_type_id=settings["pad_type_id"],
                pad_token=settings["pad_token"],
            )
        return encodings

    # From ids to text

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """The text of ids, without control tokens unless `skip_special_tokens=False`.

        That of a vocabulary of kind `wordpiece` has no space at its start nor before punctuation, as in tokenizers.

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

    async def async_decode_batch(
        self, sequences: Batch | Iterable[Sequence[int]], skip_special_tokens: bool = True
    ) -> list[str]:
        """`decode_batch` in another thread."""
        return await to_thread(self.decode_batch, sequences, skip_special_tokens)

    # The vocabulary

    @property
    def ggtok(self) -> Any:
        """The `ggtok.Tokenizer` that does the work."""
        return self._tok

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """The ids by the texts of the tokens. Control, user-defined and unknown tokens are the added ones."""
        if with_added_tokens:
            return dict(self._names.ids)
        return {text: id for text, id in self._names.ids.items() if id not in self._names.added}

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        """The number of tokens, with control and user-defined ones or without."""
        return self._tok.vocab_size - (0 if with_added_tokens else len(self._names.added))

    def get_added_tokens_decoder(self) -> dict[int, Any]:
        """The control and user-defined tokens by their ids, each a `tokenizers.AddedToken`.

        Raises `DependencyError` if tokenizers is not installed.
        """
        added_token, special = load("tokenizers", "tokenizers").AddedToken, {*special_ids(self._tok)}

        def added(id: int) -> Any:
            bits = TokenAttribute(self._names.attributes[id])
            strips = {"lstrip": TokenAttribute.LSTRIP in bits, "rstrip": TokenAttribute.RSTRIP in bits}
            return added_token(self._names.texts[id], **strips, normalized=False, special=id in special)

        return {id: added(id) for id in sorted(self._names.added)}

    def token_to_id(self, token: str) -> int | None:
        """The id of the token with this text; `None` if there is none."""
        return self._names.ids.get(token)

    def id_to_token(self, id: int) -> str | None:
        """The text of a token; `None` for an id that is not in the vocabulary."""
        return self._names.texts[id] if 0 <= id < self._tok.vocab_size else None

    def add_tokens(self, tokens: Iterable[Any]) -> int:
        """Adds tokens that are found in every text (user-defined tokens), and returns how many were new.

        Args:
            tokens: Texts, or objects with the attributes of a `tokenizers.AddedToken`. Those that are `special` become
                control tokens.

        Raises `GgtokError`, a `ValueError`, for an `AddedToken` with `lstrip`, `rstrip` or `single_word`, which a GGUF
        file cannot express; and what `ggtok.Tokenizer.to_gguf` does.
        """
        return self._add(tokens, special=False)

    def add_special_tokens(self, tokens: Iterable[Any]) -> int:
        """Adds control tokens, and returns how many were new. Takes and raises what `add_tokens` does."""
        return self._add(tokens, special=True)

    def _add(self, tokens: Iterable[Any], special: bool) -> int:
        new: dict[str, bool] = {}
        for token in tokens:
            text = token if isinstance(token, str) else token.content
            for flag in ("lstrip", "rstrip", "single_word") if not isinstance(token, str) else ():
                if getattr(token, flag, False):
                    raise GgtokError(f"the token {text!r} has {flag}, which a GGUF file cannot express")
            if text and text not in self._names.ids:
                new.setdefault(text, special or getattr(token, "special", False))
        # An edit adds user-defined tokens first, so there is one for each stretch of a kind: ids follow the order.
        for is_control, group in groupby(new, key=new.__getitem__):
            texts: list[str] = [*group]
            user, control = ((), texts) if is_control else (texts, ())
            self._set(to_gguf(self._tok, BytesIO(), Edits(user, control), overwrite=False))
        return len(new)

    def __repr__(self) -> str:
        return f"<ggtok.adapters.tokenizers.Tokenizer of {self._tok!r}>"
