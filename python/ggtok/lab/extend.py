"""Extending: new tokens for a vocabulary that exists, trained on texts, and what each of them replaces.

The core trains; this file appends what it returns to the metadata of the base.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from .._ggtok import Trainer, special_ids
from ..errors import GgtokError, UnsupportedError, VocabularyError
from ..tokenizer.base import BaseTokenizer, TokenizerT
from ..tokenizer.findings import Finding, warn_of
from ..tokenizer.keys import GGML, Type
from ..tokenizer.numbers import at_least, num_threads
from ..tokenizer.seam import metadata_of
from ..tokenizer.text_or_path import either, paths, refuse_lone
from .convert.edits import MERGES, Edits, append, entries
from .convert.gguf import Packed, gguf_bytes
from .train import DEFAULTS, Corpus, count


def extend(
    cls: type[TokenizerT],
    /,
    base: BaseTokenizer,
    texts: Corpus | None = None,
    *,
    files: Iterable[str | os.PathLike[str]] | None = None,
    num_tokens: int,
    progress: Callable[[str, int, int], object] | None = None,
    threads: int | None = None,
) -> TokenizerT:
    """Trains on texts and adds tokens to a vocabulary. The old tokens keep their ids, and new ones follow them.

    The base encodes the words of the texts, and the most frequent pair of neighbouring tokens becomes a token, over and
    over. New tokens do not cross words. Frequent characters that the base lacks become tokens too: before all pairs for
    Unigram and WordPiece, which cannot express them, and for SPM where they save more than a pair.

    A text in which no new token appears keeps all of its ids, for every text and all four kinds:

    - BPE: appended merges rank last, so all old ones are done before them, and no new token can take part in an old
      merge.
    - SPM: new pieces score below all old ones. None is the beginning or the end of an old token that merging does not
      make, so none completes an old token.
    - WordPiece: a word that was known stays known, because what follows a new token can be written in single letters.
      Those letters that the base lacks as tokens are added before anything else.
    - Unigram: no new score is below the old minimum, so an unknown character costs the same. A new token scores higher
      than its parts.

    Special tokens, flags and everything else of the base's metadata stay as they are. Tensors are not written: a model
    needs a row of its embeddings for each new token, and `replaced` says what to make it from.

    The result depends on the texts, not on `threads`.

    Args:
        base: A BPE, SPM, WordPiece or Unigram tokenizer.
        texts: As in `train`.
        files: As in `train`.
        num_tokens: How many tokens to add. If the texts have too few pairs that occur twice, there are fewer, and a
            warning says so.
        progress: As in `train`.
        threads: As in `train`.

    Returns:
        A tokenizer, as if opened from a file.

    Raises:
        TrainingError: The texts have no words or add no tokens, `num_tokens` is too small for the letters that
            WordPiece needs, or the base's scores are not finite.
        UnsupportedError: The base is of another kind, for which nothing can be trained, such as RWKV or PLaMo-2.
        VocabularyError: A special token has an id beyond the last token of the base, in its file or by llama.cpp's
            defaults, and a new token would get it.
        GgtokError, OSError, TypeError: As `train`.

    Warns (`TokenizerWarning`) if fewer tokens than requested could be added.

    >>> import ggtok
    >>> base = ggtok.Tokenizer.builtin("bpe")
    >>> tok = ggtok.extend(base, ["Das Eichhörnchen und die Eichhörnchen"] * 9, num_tokens=6)
    >>> [tok.piece(id).decode() for id in tok.encode("Ein Eichhörnchen")]
    ['E', 'in', ' Eichhörnchen']
    >>> tok.encode("What is LoRA?") == base.encode("What is LoRA?")
    True
    """
    either(texts, files, "extend")
    refuse_lone(texts)
    corpus: Any = texts if files is None else paths(files)
    if base.vocab.kind not in DEFAULTS:
        raise UnsupportedError(f"{base.vocab.kind} cannot be extended: ggtok trains tokens for {', '.join(DEFAULTS)}")
    num_tokens = at_least(1, num_tokens, "num_tokens")
    settings = {"base": base, "num_tokens": num_tokens, "threads": num_threads(threads)}
    trainer = Trainer("extend", settings, None, progress)
    count(trainer, corpus)
    trainer.finish_counting()
    new, types, scores, merges = trainer.finish()
    if len(new) < num_tokens:
        message = f"{len(new)} tokens were added, not {num_tokens}: no other pair occurs twice in the texts"
        warn_of(Finding("fewer-tokens", "warning", message, "give more texts for more tokens"))

    written = entries(metadata_of(base), Edits())
    if scores:
        written.setdefault(f"{GGML}scores", Packed.of(Type.FLOAT32, [0.0] * len(base.vocab)))
    append(written, {"tokens": new, "token_type": types, "scores": scores or [0.0] * len(new)})
    if merges:
        old = written.get(MERGES)
        written[MERGES] = Packed.strings([*(old.elements() if isinstance(old, Packed) else ()), *merges])
    extended = cls.from_gguf(gguf_bytes(written))
    if special_ids(base) != special_ids(extended) or base.vocab.eog_ids != extended.vocab.eog_ids:
        raise VocabularyError("a special token has an id beyond the last token of the base: a new one would get it")
    return extended


def replaced(base: BaseTokenizer, extended: BaseTokenizer) -> dict[int, list[int]]:
    """For each token that an extended vocabulary has and its base has not, the old ids that it stands for.

    A row of embeddings for a new token can start as the mean of the rows of these ids. For BPE and SPM, putting them in
    the place of each new id turns the ids of any text into those of the base.

    Raises `GgtokError` if the tokens of the base are not the first ones of the other.

    >>> import ggtok
    >>> base = ggtok.Tokenizer.builtin("bpe")
    >>> tok = ggtok.extend(base, ["Das Eichhörnchen und die Eichhörnchen"] * 9, num_tokens=6)
    >>> {id: [base.piece(old).decode() for old in ids] for id, ids in ggtok.replaced(base, tok).items()}[13004]
    [' E', 'ich', 'h', 'ör', 'n', 'chen']
    """
    size, kind = len(base.vocab), base.vocab.kind
    texts = [token.text for token in extended.vocab]
    if kind != extended.vocab.kind or [token.text for token in base.vocab] != texts[:size]:
        raise GgtokError("the first tokens of the extended vocabulary must be those of the base")
    parts: dict[str, list[Any]] = {}
    for pair in extended.vocab.merges or ():
        text = "".join(pair)
        if text not in parts and base.vocab.id(text) is None:
            sides = [parts.get(side) or [base.vocab.id(side)] for side in pair]
            parts[text] = [id for ids in sides for id in ids if id is not None]

    def old_ids(id: int) -> list[int]:
        text = texts[id]
        if kind == "bpe":
            return parts.get(text) or base.encode(extended.piece(id), add_special=False)
        starts_word = kind == "wordpiece" and text.startswith("▁")
        return base.encode(text[starts_word:], add_special=False, continues=not starts_word)

    return {id: old_ids(id) for id in range(size, len(texts))}
