"""Smaller vocabularies: the tokens that texts need are kept, and the others dropped.

The core says which those are (`rust/core/src/inspect/needed.rs`); this file knows the keys of a GGUF file that name
tokens.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, cast

from .._ggtok import import_numpy, needed_for, repaired_ids, special_ids, used_tokens
from ..errors import ArgumentTypeError, DependencyError, GgtokError, UnsupportedError
from ..tokenizer.base import BaseTokenizer, Text, TokenizerT, opened
from ..tokenizer.keys import SPECIAL, Type
from ..tokenizer.numbers import num_threads
from ..tokenizer.seam import metadata_of
from ..tokenizer.text_or_path import either, paths, refuse_lone, watched
from .convert.edits import FIELDS, MERGES, Edits, entries
from .convert.gguf import Packed, Typed, gguf_bytes
from .evaluate import TEXTS_AT_ONCE, parts_of

if TYPE_CHECKING:
    from ..tokenizer.batch import Ids

Corpus: TypeAlias = "os.PathLike[str] | Iterable[Text | os.PathLike[str]]"

REFUSED = {
    "plamo2": "which tokens its search takes also depends on tokens that it does not take",
    "test": "its ids are no more than hashes of words",
}
"""The kinds that are not pruned, and why."""


class Pruned(NamedTuple, Generic[TokenizerT]):
    """A smaller vocabulary, as `ggtok.prune` returns it."""

    tokenizer: TokenizerT
    """The tokenizer with the tokens that were kept, in their old order."""
    ids: Ids
    """The new id of each old one, -1 for a token that was dropped: an array of int32. Without numpy, a `memoryview`."""


def prune(
    base: TokenizerT,
    texts: Corpus | None = None,
    *,
    files: Iterable[str | os.PathLike[str]] | None = None,
    parse_special: bool = False,
    threads: int | None = None,
) -> Pruned[TokenizerT]:
    """Drops the tokens of a vocabulary that texts do not need.

    The texts are encoded to the same tokens as before, under new ids. To that end, besides the tokens that the texts
    have, those stay that are on the way to them: what merges for them (BPE, SPM); what a word of WordPiece matches
    before it turns out to be unknown; and Unigram's lowest token, which the score of unknown text depends on. Special
    tokens stay too, and all that stand for a single byte. Other texts take more tokens than before, or are unknown.

    Args:
        base: A tokenizer of any kind but PLaMo-2. If its file has weights, the result has the metadata only.
        texts: An iterable of texts, among which may be paths (`os.PathLike`) of files, each of which is a text.
        files: Instead of `texts`, the paths of files.
        parse_special: As in `encode`.
        threads: How many threads encode the texts; `None`: one per core. The result does not depend on it.

    Returns:
        A record of the tokenizer and the map from old ids to new ones. The rows of a matrix with one for each token
        (embeddings, and the output if it is separate) that stay are `matrix[ids >= 0]`.

    Raises:
        UnsupportedError: The vocabulary is PLaMo-2's or llama.cpp's test vocabulary.
        GgtokError: There are no texts, or `encode` refuses one, as without a vocabulary.
        OSError: A file cannot be read.
        TypeError: An argument has the wrong type; or there are neither texts nor files, or both.

    Warns (`TokenizerWarning`) of a text that is the name of an existing file.

    >>> import ggtok
    >>> tok = ggtok.Tokenizer.builtin("spm")
    >>> text = "What is called LoRA?"
    >>> smaller, ids = ggtok.prune(tok, [text])
    >>> smaller
    <ggtok.Tokenizer 'ggtok spm' kind='spm', 368 tokens>
    >>> smaller.encode(text) == ids[tok.encode(text)].tolist()
    True
    """
    either(texts, files, "prune")
    refuse_lone(texts)
    if not isinstance(base, BaseTokenizer):
        raise ArgumentTypeError(f"base must be a ggtok.Tokenizer, not {type(base).__name__}")
    kind = base.vocab.kind
    if kind in REFUSED:
        raise UnsupportedError(f"a vocabulary of kind {kind!r} cannot be pruned: {REFUSED[kind]}", kind)
    used = _used(base, paths(files or ()) if texts is None else texts, parse_special, num_threads(threads))

    # Roles stay with their tokens: which of several the loader would find by their texts depends on all tokens.
    roles = {name: id for name, id in special_ids(base).items() if id is not None and name in SPECIAL}
    found = {what: {id for each, _, id in repaired_ids(base) if each == what} for what in ("role", "marked")}
    marked = found["role"] & found["marked"]
    if kind == "unigram":  # the type in the file decides whether a text has such a token
        roles, marked = {name: id for name, id in roles.items() if id not in marked}, set()
    file = entries(metadata_of(base), Edits(special=roles, tokens=[{"id": id, "type": "control"} for id in marked]))
    size = range(len(base.vocab))
    numbers = {key: at.value for key, at in file.items() if key.endswith("_token_id") and isinstance(at, Typed)}
    named = {key: int(id) for key, id in numbers.items() if id in size}
    kept, ranks = needed_for(base, [*used - {-1}, *named.values()])
    ids = array("i", [-1]) * len(size)
    for place, id in enumerate(kept):
        ids[id] = place
    for key in (*FIELDS.values(), MERGES):
        if isinstance(old_list := file.get(key), Packed):
            elements = old_list.elements()
            file[key] = Packed.of(old_list.type, [elements[at] for at in (ranks if key == MERGES else kept)])
    file |= {key: Typed(Type.UINT32, ids[id]) for key, id in named.items()}
    file |= {key: Typed(Type.UINT32, len(kept)) for key in file if key.endswith(".vocab_size")}
    new = opened(type(base), gguf_bytes(file))
    try:
        return Pruned(new, import_numpy().asarray(ids))
    except DependencyError:
        return Pruned(new, cast("Any", memoryview(ids)))


def _used(base: BaseTokenizer, texts: Corpus, parse_special: bool, threads: int) -> set[int]:
    """The tokens of all texts, and those of a newline, which the loader encodes."""
    used, number = {*used_tokens(base, ["\n"], threads, parse_special)}, 0
    documents = iter([texts] if isinstance(texts, os.PathLike) else watched(texts))
    while several := list(islice(documents, TEXTS_AT_ONCE)):
        number += len(several)
        plain = [text for text in several if not isinstance(text, os.PathLike)]
        used.update(used_tokens(base, plain, threads, parse_special))
        for path in (text for text in several if isinstance(text, os.PathLike)):
            encoder = base.encoder(add_special=False, parse_special=parse_special)
            for part in parts_of(path):
                used.update(encoder.push(part))
                if base.vocab.kind == "wordpiece":  # no word goes on in the next part
                    used.update(used_tokens(base, [part], threads, parse_special))
            used.update(encoder.flush())
    if number == 0:
        raise GgtokError("there are no texts to prune for")
    return used
