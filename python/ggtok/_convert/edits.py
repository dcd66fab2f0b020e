"""The metadata that a tokenizer is written with, after edits: tokens added, special tokens and flags changed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from operator import index as as_int
from typing import NamedTuple

from .. import _ggtok
from .._arguments import items_of, mapping
from .._base import BaseTokenizer
from .._ggtok import Array, Metadata
from .._keys import (
    CHAT_TEMPLATE,
    CONTROL,
    FLAGS,
    GGML,
    NORMAL,
    SPECIAL,
    TOKEN_TYPE_COUNT,
    USER_DEFINED,
    Type,
    read_types,
)
from .._metadata import Scalar, to_bytes
from .._vocab import TokenAttribute
from ..errors import ArgumentTypeError, GgtokError, TokenIndexError, VocabularyError
from .gguf import Packed, Typed

Entries = dict[str, Typed | Packed]

KEPT = ("general.", "tokenizer.")
"""What of a file's metadata belongs to its tokenizer. The rest describes tensors."""

ALIASES = {"fim_pre": "prefix", "fim_suf": "suffix", "fim_mid": "middle"}
"""Special tokens that a file can name in a second, deprecated way, which wins."""

ADDED_SCORE = -1000.0
"""What llama.cpp's converters give an added token: it is found by its text, not by its score."""

_TYPES = {"str": Type.STRING, "int": Type.UINT32, "bool": Type.BOOL, "float": Type.FLOAT32}
_PYTHON_TYPES = {Type.STRING: str, Type.BOOL: bool, Type.FLOAT32: float, Type.FLOAT64: float}


class Edits(NamedTuple):
    """What `Tokenizer.to_gguf` and `ggtok.edit` change."""

    add_tokens: Iterable[str] = ()
    add_control_tokens: Iterable[str] = ()
    special: Mapping[str, int | str | None] | None = None
    flags: Mapping[str, bool | None] | None = None
    chat_template: str | None = None
    name: str | None = None
    metadata: Mapping[str, Scalar | None] | None = None


def entries(tokenizer: BaseTokenizer, edits: Edits, *, every_key: bool = False, has_weights: bool = False) -> Entries:
    """Everything that `Tokenizer.to_gguf` writes, by key, or with `every_key` all keys of the file.

    Tokens that are added come last. Weights have a row for each token: with them, new tokens fill unused places.
    """
    types = key_types(tokenizer)
    result = source(tokenizer._metadata, types, every_key)
    added = _added(tokenizer, edits.add_tokens, edits.add_control_tokens)
    size = len(tokenizer.vocab)
    places: dict[bytes, int] = {}
    if added and has_weights:
        places = dict(zip(added, _unused(tokenizer, len(added)), strict=True))
        _fill(result, places, added)
    elif added:
        places = dict(zip(added, range(size, size + len(added)), strict=True))
        _append(tokenizer, result, added)

    values: dict[str, Scalar | None] = {}
    for slot, token in mapping("special", edits.special or {}).items():
        _known(slot, set(SPECIAL) - set(ALIASES.values()), "special token")
        values[GGML + SPECIAL[slot]] = None if token is None else _id(tokenizer, places, slot, token)
        if slot in ALIASES:
            values[GGML + SPECIAL[ALIASES[slot]]] = None
    for flag, is_set in mapping("flags", edits.flags or {}).items():
        _known(flag, FLAGS, "flag")
        if is_set is not None and not isinstance(is_set, bool):
            raise ArgumentTypeError(f"the flag {flag} must be True, False or None, not {type(is_set).__name__}")
        values[GGML + FLAGS[flag]] = is_set
    texts = {CHAT_TEMPLATE: edits.chat_template, "general.name": edits.name}
    values |= {key: text for key, text in texts.items() if text is not None}
    metadata = mapping("metadata", edits.metadata or {})
    twice = values.keys() & metadata.keys()
    if twice:
        raise GgtokError(f"{min(twice)} is given twice: in metadata and by its own argument")
    for key, value in (values | metadata).items():
        _set(result, types, key, value)
    return result


def key_types(tokenizer: BaseTokenizer) -> dict[str, Type]:
    """The types of all keys that are single values and known."""
    read = read_types(tokenizer.metadata.get("general.architecture", ""))
    types = {key: _TYPES[kind] for key, kind in read.items()}
    return types | {CHAT_TEMPLATE: Type.STRING}


def source(metadata: Metadata, types: Mapping[str, Type], every_key: bool = False) -> Entries:
    """What a file says about its tokenizer, or all that it says, with overrides as they were read."""
    result: Entries = {}
    for key, (kind, value) in metadata.entries().items():
        if every_key or key.startswith(KEPT) or key in types:
            result[key] = Packed.read(metadata, key, value) if isinstance(value, Array) else Typed(Type(kind), value)
    for key, override in metadata.overrides.items():
        typed = _typed(result, types, key, override)
        # An override of another type than is expected changes nothing, as when the file was read.
        if typed is not None and (key.startswith(KEPT) or key in types):
            result[key] = typed
    return result


def _typed(result: Entries, types: Mapping[str, Type], key: str, value: Scalar) -> Typed | None:
    """A value in the type that its key has, or `None` if it has the wrong type."""
    old = result.get(key)
    if isinstance(old, Packed):
        return None
    by_value = _TYPES[type(value).__name__]
    if by_value is Type.UINT32 and not 0 <= value < 1 << 32:  # type: ignore[operator]
        by_value = Type.INT64
    kind = types.get(key) or (by_value if old is None else old.type)
    if type(value) is not _PYTHON_TYPES.get(kind, int):
        return None
    return Typed(kind, int(value) & 0xFFFFFFFF if kind is Type.UINT32 else value)


def _set(result: Entries, types: Mapping[str, Type], key: str, value: Scalar | None) -> None:
    if not isinstance(key, str):
        raise ArgumentTypeError(f"the key of metadata must be str, not {type(key).__name__}")
    if key.startswith(GGML) and key not in result:
        _known(key, {*types, TOKEN_TYPE_COUNT}, "key")
    if value is None:
        result.pop(key, None)
        return
    if isinstance(result.get(key), Packed):
        raise GgtokError(f"{key} is an array: only single values can be replaced")
    if type(value) not in (str, int, float, bool):
        raise ArgumentTypeError(f"the value of {key} must be str, int, float, bool or None, not {type(value).__name__}")
    typed = _typed(result, types, key, value)
    if typed is None or typed.value != value:
        kind = types.get(key) or result[key].type
        raise GgtokError(f"{key} is {kind.name.lower()}: {value!r} does not fit")
    result[key] = typed


def _known(name: str, names: Iterable[str], what: str) -> None:
    known = sorted(names)
    if name not in known:
        near = difflib.get_close_matches(str(name), known, 3, 0.4) or known
        raise GgtokError(f"there is no {what} {name!r}: the nearest are {', '.join(near)}")


def _id(tokenizer: BaseTokenizer, added: Mapping[bytes, int], slot: str, token: int | str) -> int:
    """The id of a special token, given by id or by text, which may be one of those that are added."""
    size = max(len(tokenizer.vocab), *(id + 1 for id in added.values()), 0)
    if isinstance(token, str):
        text = to_bytes(token)
        id = added.get(text, _ggtok.id_of_text(tokenizer, text))
        if id is None:
            raise VocabularyError(f"the special token {slot} is {token!r}, and the vocabulary has no such token")
        return id
    if isinstance(token, bool):
        raise ArgumentTypeError(f"the special token {slot} must be an id or a text, not bool")
    id = as_int(token)
    if not 0 <= id < size:
        raise TokenIndexError(f"the special token {slot} is {id}: there are {size} tokens")
    return id


def _added(tokenizer: BaseTokenizer, plain: Iterable[str], control: Iterable[str]) -> dict[bytes, int]:
    """The texts of new tokens with their types, in the order of their ids."""
    added: dict[bytes, int] = {}
    for argument, texts, kind in (("add_tokens", plain, USER_DEFINED), ("add_control_tokens", control, CONTROL)):
        for text in items_of(argument, texts, "str"):
            if not isinstance(text, str):
                raise ArgumentTypeError(f"{argument} must hold str, not {type(text).__name__}")
            raw = to_bytes(text)
            id = _ggtok.id_of_text(tokenizer, raw)
            if not raw or b"\0" in raw:
                raise VocabularyError(f"the token {text!r} cannot be added: it is empty or has a NUL in it")
            if id is not None:
                raise VocabularyError(f"the token {text!r} cannot be added: token {id} has this text")
            if raw in added:
                raise VocabularyError(f"the token {text!r} cannot be added twice")
            added[raw] = kind
    if added and tokenizer.vocab.kind in ("none", "test"):
        raise VocabularyError(f"tokens cannot be added to a vocabulary of kind {tokenizer.vocab.kind!r}")
    return added


def _unused(tokenizer: BaseTokenizer, count: int) -> list[int]:
    """The first places of a vocabulary that are unused."""
    ids = [id for id in range(len(tokenizer.vocab)) if TokenAttribute.UNUSED in tokenizer.vocab[id].attributes]
    if len(ids) < count:
        raise VocabularyError(
            f"{count} tokens cannot be added: the weights have a row for each of the {len(tokenizer.vocab)} tokens, of "
            f"which {len(ids)} are unused"
        )
    return ids[:count]


def _fill(result: Entries, places: Mapping[bytes, int], added: Mapping[bytes, int]) -> None:
    """Puts new tokens into unused places."""
    new: dict[str, Sequence[bytes | float]] = {
        "tokens": list(added),
        "token_type": list(added.values()),
        "scores": [ADDED_SCORE] * len(added),
    }
    for key, values in new.items():
        old = result.get(GGML + key)
        if isinstance(old, Packed):
            result[GGML + key] = old.replaced(dict(zip(places.values(), values, strict=True)))


def _append(tokenizer: BaseTokenizer, result: Entries, added: dict[bytes, int]) -> None:
    """Extends the arrays that have an element per token. Unread elements after the last token are cut off."""
    size = len(tokenizer.vocab)
    new: dict[str, Packed] = {
        "tokens": Packed.strings(added),
        "token_type": Packed.of(Type.INT32, list(added.values())),
    }
    result.setdefault(GGML + "token_type", Packed.of(Type.INT32, [NORMAL] * size))
    scores = result.get(GGML + "scores")
    if scores is not None:
        as_read = float if scores.type is Type.FLOAT32 else int
        new["scores"] = Packed.of(scores.type, [as_read(ADDED_SCORE)] * len(added))
    for key, more in new.items():
        old = result[GGML + key]
        assert isinstance(old, Packed)
        if key != "tokens":
            old = Packed(old.type, size, old.data[: 4 * size])
        result[GGML + key] = old + more
    for key in result:
        if key.endswith(".vocab_size") and not key.startswith(KEPT):
            result[key] = Typed(Type.UINT32, size + len(added))
