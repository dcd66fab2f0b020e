"""How well vocabularies fit texts: bytes per token, tokens per word, what is unknown, what of a vocabulary is used.

Sources: fertility, tokens per word, by Rust et al., "How Good is Your Tokenizer?" (2021); parity between languages by
Petrov et al., "Language Model Tokenizers Introduce Unfairness Between Languages" (2023).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from .._ggtok import word_counts
from ..errors import ArgumentTypeError, GgtokError
from ..tokenizer.base import READ_SIZE, BaseTokenizer
from ..tokenizer.numbers import at_least
from ..tokenizer.text_or_path import either, is_file_name, paths, refuse_lone, warn_of_name, watched
from ..tokenizer.vocab import TokenAttribute, attributes
from .explain.utf8 import to_text

TextSource: TypeAlias = str | os.PathLike[str] | Iterable[str]

ALL = "all"
"""The name of the row about all texts together."""

TEXTS_AT_ONCE = 1024
"""How many texts of an iterable are encoded together."""


class Score(NamedTuple):
    """How one vocabulary fits one text. BOS, EOS and SEP are not counted."""

    tokenizer: str
    """Its name."""
    text: str
    """The name of the text, or "all"."""
    bytes: int
    """The length of the text in UTF-8."""
    characters: int
    words: int
    """Words by Unicode's Annex 29: every Han character is one."""
    tokens: int
    unknown: int
    """Tokens that stand for unknown text."""
    byte_fallback: int
    """Tokens that stand for a byte, or otherwise for a part of a character."""
    used: int
    """How many different tokens there are."""
    usable: int
    """How many different tokens any text could have: those that are neither control, unknown nor unused tokens."""
    parity: float | None
    """Tokens relative to the reference text, which is 1; `None` without a reference."""

    @property
    def bytes_per_token(self) -> float:
        """How many bytes of UTF-8 a token stands for: more is better."""
        return self.bytes / self.tokens if self.tokens else 0.0

    @property
    def tokens_per_word(self) -> float:
        """How many tokens a word takes: 1 is best."""
        return self.tokens / self.words if self.words else 0.0

    @property
    def unknown_rate(self) -> float:
        """The share of tokens that stand for unknown text, from 0 to 1."""
        return self.unknown / self.tokens if self.tokens else 0.0

    @property
    def byte_fallback_rate(self) -> float:
        """The share of tokens that stand for less than a character, from 0 to 1."""
        return self.byte_fallback / self.tokens if self.tokens else 0.0

    @property
    def vocabulary_use(self) -> float:
        """The share of the usable tokens that occur in the text, from 0 to 1."""
        return self.used / self.usable if self.usable else 0.0


class WordScore(NamedTuple):
    """A word that takes several tokens."""

    tokenizer: str
    """The name of the tokenizer."""
    word: str
    times: int
    """How often it occurs in the texts."""
    tokens: int
    """How many tokens it takes, by itself or after a space, whichever is fewer."""


class Evaluation(NamedTuple):
    """How vocabularies fit texts, as `ggtok.evaluate` returns it. `print` shows a table."""

    scores: tuple[Score, ...]
    """One per text and tokenizer, in the order given; at the end "all", if there are several texts."""
    reference: str | None
    """The text that `parity` is relative to."""
    worst: tuple[WordScore, ...]
    """For each tokenizer, the words that cost the most tokens beyond one, each time that they occur."""
    unused: Mapping[str, tuple[int, ...]]
    """The usable tokens that no text has, by tokenizer."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dict per score, with its figures and rates, for JSON and data frames."""
        rates = ("bytes_per_token", "tokens_per_word", "unknown_rate", "byte_fallback_rate", "vocabulary_use")
        return [score._asdict() | {name: getattr(score, name) for name in rates} for score in self.scores]

    def __str__(self) -> str:
        rows = rows_of(self)
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        marks = [f"{'<' if place < 2 else '>'}{width}" for place, width in enumerate(widths)]
        return "\n".join("  ".join(map(format, row, marks)).rstrip() for row in rows)

    def _repr_html_(self) -> str:
        from ..tokenizer.notebook import table

        head, *rows = rows_of(self)
        return table(head, rows, texts=2)

    def to_svg(self, path: str | os.PathLike[str]) -> None:
        """Writes a chart of the bytes per token: one panel per text, one bar per tokenizer. Light and dark.

        Raises:
            OSError: The file cannot be written.
        """
        from ..tokenizer.files import write
        from .chart import Panel, bars

        panels: dict[str, dict[str, float]] = {}
        for score in self.scores:
            panels.setdefault(score.text, {})[score.tokenizer] = score.bytes_per_token
        drawn = bars("Bytes per token (longer is better)", [Panel(*item) for item in panels.items()])
        write(path, drawn.encode())


def rows_of(evaluation: Evaluation) -> list[list[str]]:
    """The table of figures as texts, with its head."""
    names = ["text", "tokenizer", "tokens", "bytes/token", "tokens/word", "unknown", "byte fallback", "used"]
    rows = [names + ["parity"] * (evaluation.reference is not None)]
    before = None
    for score in evaluation.scores:
        row = [score.text if score.text != before else "", score.tokenizer, f"{score.tokens:,}"]
        row += [f"{score.bytes_per_token:.2f}", f"{score.tokens_per_word:.2f}"]
        row += [f"{rate:.2%}" for rate in (score.unknown_rate, score.byte_fallback_rate, score.vocabulary_use)]
        rows.append(row + ([] if score.parity is None else [f"{score.parity:.2f}"]))
        before = score.text
    return [row + [""] * (len(rows[0]) - len(row)) for row in rows]


def evaluate(
    tokenizers: BaseTokenizer | Sequence[BaseTokenizer] | Mapping[str, BaseTokenizer],
    texts: os.PathLike[str] | Iterable[str] | Mapping[str, TextSource] | None = None,
    *,
    files: Iterable[str | os.PathLike[str]] | Mapping[str, str | os.PathLike[str]] | None = None,
    reference: str | None = None,
    threads: int | None = None,
    progress: Callable[[int], object] | None = None,
    worst: int = 0,
) -> Evaluation:
    """Compares how well vocabularies fit texts.

    Args:
        tokenizers: One, several, or several by name. Without names, they are named by `general.name` of their files.
        texts: Texts, or several kinds of them by name. Each is an iterable of texts; a `str`, which by name is a text
            itself; or a path (`os.PathLike`) of a file, which is read in parts and as a whole text.
        files: Instead of `texts`, the paths of files, by name or as a list. In a list they are named by their stems.
        reference: The name of a text of which the others are translations: `parity` says how many tokens they have for
            each of its tokens.
        threads: How many threads encode the texts of an iterable; `None`: one per core.
        progress: Called with the length in bytes of each part of a text that was read. What it raises ends the
            evaluation.
        worst: How many of the words that cost the most tokens are listed for each tokenizer.

    Returns:
        An `Evaluation`: one `Score` per text and tokenizer, the worst words, and the tokens that no text has.

    Raises:
        TypeError: An argument has the wrong type, such as a single `str` as `texts`; or there are neither texts nor
            files, or both.
        GgtokError: There is nothing to evaluate, two names are equal, or `reference` names no text.
        OSError: A file cannot be read.

    Warns (`TokenizerWarning`) of a text that is the name of an existing file.

    >>> import ggtok
    >>> names = "bpe", "unigram"
    >>> print(ggtok.evaluate(
    ...     {name: ggtok.Tokenizer.builtin(name) for name in names},
    ...     {"en": "What is this called in English?", "de": "Wie heißt das auf Deutsch?"},
    ...     reference="en",
    ... ))
    text  tokenizer  tokens  bytes/token  tokens/word  unknown  byte fallback   used  parity
    en    bpe             7         4.43         1.17    0.00%          0.00%  0.05%    1.00
          unigram         8         3.88         1.33    0.00%          0.00%  0.07%    1.00
    de    bpe            13         2.08         2.60    0.00%          0.00%  0.10%    1.86
          unigram        11         2.45         2.20    0.00%          0.00%  0.09%    1.38
    all   bpe            20         2.90         1.82    0.00%          0.00%  0.15%
          unigram        19         3.05         1.73    0.00%          0.00%  0.14%
    """
    named = _named_tokenizers(tokenizers)
    sources = _sources(texts, files)
    if not named or not sources:
        raise GgtokError(f"no {'texts' if named else 'tokenizers'} to evaluate")
    if reference is not None and reference not in sources:
        raise GgtokError(f"reference must be one of {', '.join(map(repr, sources))}, not {reference!r}")
    if ALL in sources:
        raise GgtokError(f"no text can be named {ALL!r}: that is the row for all texts")

    num_worst, words_of_all = at_least(0, worst, "worst"), Counter[str]()
    found: dict[tuple[str, str], Counter[int]] = {}
    sizes: dict[str, tuple[int, int, int]] = {}
    for text, source in sources.items():
        found |= {(text, name): Counter() for name in named}
        num_bytes = characters = num_words = 0
        for parts, ids in _read(text, source, named, threads):
            for part in parts:
                words = word_counts(decoded := part.decode("utf-8", "replace"))
                num_bytes, characters = num_bytes + len(part), characters + len(decoded)
                num_words += sum(words.values())
                if num_worst:
                    words_of_all.update(words)
                if progress is not None:
                    progress(len(part))
            for name, new in ids.items():
                found[text, name].update(new)
        sizes[text] = num_bytes, characters, num_words
    rows = list(sources)
    if len(rows) > 1:
        num_bytes, characters, num_words = map(sum, zip(*sizes.values(), strict=True))
        sizes[ALL] = num_bytes, characters, num_words
        found |= {(ALL, name): sum((found[text, name] for text in rows), Counter()) for name in named}
        rows.append(ALL)
    kinds = {name: _kinds(tokenizer) for name, tokenizer in named.items()}
    scores = []
    for text in rows:
        for name in named:
            counts, (unknown, partial, usable) = found[text, name], kinds[name]
            tokens, parity = counts.total(), None
            if reference is not None and text != ALL:
                ours = found[reference, name].total()
                parity = tokens / ours if ours else None
            lost, split = (sum(counts[id] for id in ids) for ids in (unknown, partial))
            used = len(counts.keys() & usable)
            scores.append(Score(name, text, *sizes[text], tokens, lost, split, used, len(usable), parity))
    unused = {name: tuple(sorted(kinds[name][2] - found[rows[-1], name].keys())) for name in named}
    listed = [each for name, tok in named.items() for each in _worst(name, tok, words_of_all, num_worst, threads)]
    return Evaluation(tuple(scores), reference, tuple(listed), unused)


def _worst(name: str, tok: BaseTokenizer, words: Counter[str], num: int, threads: int | None) -> list[WordScore]:
    """The words that take the most tokens beyond one each, the worst first."""
    forms = (list(words), [f" {word}" for word in words])
    tokens = map(min, *(tok.count_batch(texts, threads=threads, add_special=False) for texts in forms))
    rows = zip(words, words.values(), tokens, strict=True)
    scores = (WordScore(name, *row) for row in rows if row[2] > 1)
    return nsmallest(num, scores, lambda score: (score.times * (1 - score.tokens), score.word))


def _sources(
    texts: TextSource | Mapping[str, TextSource] | None,
    files: Iterable[str | os.PathLike[str]] | Mapping[str, str | os.PathLike[str]] | None,
) -> dict[str, TextSource]:
    """The texts by name."""
    either(texts, files, "evaluate")
    if isinstance(texts, Mapping):
        return dict(texts)
    refuse_lone(texts)
    if texts is not None:
        return {"text": texts}
    if isinstance(files, Mapping):
        return dict(zip(files, paths(list(files.values())), strict=True))
    sources: dict[str, TextSource] = {}
    for path in paths(files or ()):
        name = os.path.splitext(os.path.basename(path))[0]
        if name in sources:
            raise GgtokError(f"two files are named {name!r}: pass a dict of paths by name")
        sources[name] = path
    return sources


def _named_tokenizers(
    tokenizers: BaseTokenizer | Iterable[BaseTokenizer] | Mapping[str, BaseTokenizer],
) -> dict[str, BaseTokenizer]:
    if isinstance(tokenizers, BaseTokenizer):
        tokenizers = [tokenizers]
    pairs = tokenizers.items() if isinstance(tokenizers, Mapping) else [(None, item) for item in tokenizers]
    named: dict[str, BaseTokenizer] = {}
    for number, (given, tokenizer) in enumerate(pairs, 1):
        if not isinstance(tokenizer, BaseTokenizer):
            raise ArgumentTypeError(f"tokenizers must be ggtok.Tokenizer, not {type(tokenizer).__name__}")
        name = given or str(tokenizer.metadata.get("general.name") or f"tokenizer {number}")
        if name in named:
            raise GgtokError(f"two tokenizers are named {name!r}: pass a dict of tokenizers by name")
        named[name] = tokenizer
    return named


def _read(
    name: str, source: TextSource, tokenizers: Mapping[str, BaseTokenizer], threads: int | None
) -> Iterator[tuple[list[bytes], Mapping[str, Iterable[int]]]]:
    """One text, part by part, each with the ids that are added for each tokenizer."""
    if isinstance(source, os.PathLike):
        encoders = {which: tokenizer.encoder(add_special=False) for which, tokenizer in tokenizers.items()}
        for part in parts_of(source):
            yield [part], {which: encoder.push(part) for which, encoder in encoders.items()}
        yield [], {which: encoder.flush() for which, encoder in encoders.items()}
        return

    if isinstance(source, str) and is_file_name(source):
        warn_of_name(f"the text {name!r}", source)
    documents = iter([source] if isinstance(source, str) else watched(source))
    while several := list(islice(documents, TEXTS_AT_ONCE)):
        for text in several:
            if not isinstance(text, str):
                found = type(text).__name__
                raise ArgumentTypeError(f"the text {name!r} must be str, a path or an iterable of str, not of {found}")
        ids = {
            which: memoryview(tokenizer.encode_batch(several, threads=threads, add_special=False).buffers()[0])
            for which, tokenizer in tokenizers.items()
        }
        yield [text.encode("utf-8", "surrogatepass") for text in several], ids


def parts_of(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The bytes of a file in parts of at most `READ_SIZE`, each up to a line's end, or else a space or a character."""
    rest = b""
    with open(path, "rb") as file:
        while data := file.read(READ_SIZE - len(rest)):
            rest += data
            if len(rest) < READ_SIZE:
                continue
            cut = 1 + rest.rfind(b"\n") or 1 + rest.rfind(b" ")
            if cut == 0:
                # As in Chinese. The last character may not be whole.
                cut = next((at for at in range(len(rest) - 1, len(rest) - 4, -1) if rest[at] & 0xC0 != 0x80), len(rest))
            yield rest[:cut]
            rest = rest[cut:]
    if rest:
        yield rest


def _kinds(tokenizer: BaseTokenizer) -> tuple[set[int], set[int], set[int]]:
    """The tokens that stand for unknown text, those for a part of a character, and all that a text can have."""
    lost, byte = int(TokenAttribute.UNKNOWN), int(TokenAttribute.BYTE)
    never = lost | int(TokenAttribute.UNUSED | TokenAttribute.CONTROL)
    bits_of, pieces = attributes(tokenizer.vocab), tokenizer.vocab.pieces
    unknown = {id for id, bits in enumerate(bits_of) if bits & lost} | {-1}
    if (unk := tokenizer.vocab.unk_id) is not None:
        unknown.add(unk)
    usable = {id for id, bits in enumerate(bits_of) if not bits & never}
    partial = {id for id in usable if bits_of[id] & byte or isinstance(to_text(pieces[id]), bytes)}
    return unknown, partial, usable
