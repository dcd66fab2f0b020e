"""The metadata that a tokenizer is written with, after edits: keys set, tokens changed and added, special tokens named.

Only metadata is read, so that a file whose tokenizer does not open can be mended.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from operator import index as as_int
from typing import Any, NamedTuple, TypeAlias

from ..._ggtok import Array, ChatTemplate, Metadata
from ...errors import ArgumentTypeError, GgtokError, TokenIndexError, VocabularyError
from ...tokenizer.arguments import items_of, mapping
from ...tokenizer.keys import (
    ARRAYS,
    BYTE,
    CHAT_TEMPLATE,
    CONTROL,
    FLAGS,
    GGML,
    NORMAL,
    SPECIAL,
    TOKEN_TYPE_COUNT,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    Type,
    read_types,
)
from ...tokenizer.metadata import BOM, Scalar, Source, read_metadata, scalars, to_bytes
from .gguf import Packed, Typed, as_typed

Entries = dict[str, Typed | Packed]
MetadataValue: TypeAlias = "Scalar | Sequence[str] | Sequence[int] | Sequence[float]"

TOKENS, MERGES = GGML + "tokens", GGML + "merges"

KEPT = ("general.", "tokenizer.")
"""What of a file's metadata belongs to its tokenizer. The rest describes tensors."""

ALIASES = {"fim_pre": "prefix", "fim_suf": "suffix", "fim_mid": "middle"}
"""Special tokens that a file can name in a second, deprecated way, which wins."""

ADDED_SCORE = -1000
"""What llama.cpp's converters give an added token: it is found by its text, not by its score."""

TOKEN_TYPES = {
    **{"normal": NORMAL, "unknown": UNKNOWN, "control": CONTROL},
    **{"user_defined": USER_DEFINED, "unused": UNUSED, "byte": BYTE},
}
"""The types of tokens by name."""

FIELDS = {"text": TOKENS, "type": GGML + "token_type", "score": GGML + "scores"}
"""What a change of a token has apart from its id, and the key of each."""

DEFAULTS = {GGML + "token_type": NORMAL, GGML + "scores": 0}
"""What a file without one of these lists has for each token."""

_TYPES = {"str": Type.STRING, "int": Type.UINT32, "bool": Type.BOOL, "float": Type.FLOAT32}
_PYTHON_TYPES: dict[Type, Any] = {Type.STRING: str, Type.BOOL: bool, Type.FLOAT32: float, Type.FLOAT64: float}


class Edits(NamedTuple):
    """What `Tokenizer.to_gguf` and `ggtok.edit` change."""

    add_tokens: Iterable[str] = ()
    add_control_tokens: Iterable[str] = ()
    special: Mapping[str, int | str | None] | None = None
    flags: Mapping[str, bool | None] | None = None
    chat_template: str | None = None
    name: str | None = None
    metadata: Mapping[str, MetadataValue | None] | None = None
    tokens: Iterable[Mapping[str, Any]] = ()
    merges_from: Source | None = None


def entries(metadata: Metadata, edits: Edits, *, every_key: bool = False, has_weights: bool = False) -> Entries:
    """Everything that `Tokenizer.to_gguf` writes, by key, or with `every_key` all keys of the file.

    Tokens that are added come last. Weights have a row for each token: with them, new tokens fill unused places.
    """
    types = key_types(metadata)
    result = source(metadata, types, every_key)
    given = mapping("metadata", edits.metadata or {})
    for key, value in given.items():
        _set(result, types, key, value)
    if edits.merges_from is not None:
        result[MERGES] = _merges(edits.merges_from)
    _change(result, edits.tokens)
    added = _added(result, edits.add_tokens, edits.add_control_tokens)
    if added and has_weights:
        _fill(result, added)
    elif added:
        append(result, _elements(added))

    values: dict[str, MetadataValue | None] = {}
    for slot, token in mapping("special", edits.special or {}).items():
        _known(slot, set(SPECIAL) - set(ALIASES.values()), "special token")
        values[GGML + SPECIAL[slot]] = None if token is None else _id(result, slot, token)
        if slot in ALIASES:
            values[GGML + SPECIAL[ALIASES[slot]]] = None
    for flag, is_set in mapping("flags", edits.flags or {}).items():
        _known(flag, FLAGS, "flag")
        if is_set is not None and not isinstance(is_set, bool):
            raise ArgumentTypeError(f"the flag {flag} must be True, False or None, not {type(is_set).__name__}")
        values[GGML + FLAGS[flag]] = is_set
    texts = {CHAT_TEMPLATE: edits.chat_template, "general.name": edits.name}
    values |= {key: text for key, text in texts.items() if text is not None}
    twice = values.keys() & given.keys()
    if twice:
        raise GgtokError(f"{min(twice)} is given twice: in metadata and by its own argument")
    for key, value in values.items():
        _set(result, types, key, value)
    return result


def key_types(metadata: Metadata) -> dict[str, Type]:
    """The types of all keys that are single values and known."""
    read = read_types(scalars(metadata).get("general.architecture", ""))
    types = {key: _TYPES[kind] for key, kind in read.items()}
    return types | {CHAT_TEMPLATE: Type.STRING}


def source(metadata: Metadata, types: Mapping[str, Type], every_key: bool = False) -> Entries:
    """What a file says about its tokenizer, or all that it says, with overrides as they were read."""
    result: Entries = {}
    for key, (kind, value) in metadata.entries().items():
        if every_key or key.startswith(KEPT) or key in types:
            result[key] = Packed.read(metadata, key, value) if isinstance(value, Array) else Typed(Type(kind), value)
    for key, override in metadata.overrides.items():
        # An override of an array or of another type than is expected changes nothing, as when the file was read.
        typed = None if isinstance(result.get(key), Packed) else _typed(result, types, key, override)
        if typed is not None and (key.startswith(KEPT) or key in types):
            result[key] = typed
    return result


def _typed(result: Entries, types: Mapping[str, Type], key: str, value: Any) -> Typed | None:
    """A value in the type that its key has, or `None` if it has the wrong type."""
    kind = types.get(key) or result.get(key, as_typed(key, value)).type
    if type(value) is not _PYTHON_TYPES.get(kind, int):
        return None
    return Typed(kind, int(value) & 0xFFFFFFFF if kind is Type.UINT32 else value)


def _set(result: Entries, types: Mapping[str, Type], key: str, value: MetadataValue | None) -> None:
    if not isinstance(key, str):
        raise ArgumentTypeError(f"the key of metadata must be str, not {type(key).__name__}")
    if key.startswith(GGML) and key not in result:
        _known(key, {*types, *ARRAYS, TOKEN_TYPE_COUNT}, "key")
    if value is None:
        result.pop(key, None)
        return
    old = result.get(key)
    if isinstance(value, (list, tuple)):
        result[key] = _array(old, types, key, value)
        return
    if type(value) not in (str, int, float, bool):
        kinds = "str, int, float, bool, a list or None"
        raise ArgumentTypeError(f"the value of {key} must be {kinds}, not {type(value).__name__}")
    if key in ARRAYS or (isinstance(old, Packed) and key not in types):
        raise GgtokError(f"{key} is an array: its value is a list, not {value!r}")
    if isinstance(value, str) and f"{key}.".startswith(f"{CHAT_TEMPLATE}."):
        value = value.removeprefix(BOM)
        ChatTemplate(value, key)
    typed = _typed(result, types, key, value)
    if typed is None or typed.value != value:
        kind = types.get(key) or result[key].type
        raise GgtokError(f"{key} is {kind.name.lower()}: {value!r} does not fit")
    result[key] = typed


def _array(old: Typed | Packed | None, types: Mapping[str, Type], key: str, value: Sequence[Any]) -> Typed | Packed:
    """An array with elements of the type that it has in the file, or that is known."""
    single = types.get(key, old.type if isinstance(old, Typed) else None)
    if single is not None:
        raise GgtokError(f"{key} is {single.name.lower()}, not an array")
    kind = ARRAYS.get(key) or (old.type if old is not None else None)
    if kind is None:
        return as_typed(key, list(value))
    if any(isinstance(each, str) != (kind is Type.STRING) for each in value):
        raise GgtokError(f"{key} is an array of {kind.name.lower()}: some elements of the list do not fit")
    return Packed.of(kind, value)


def _known(name: str, names: Iterable[str], what: str) -> None:
    known = sorted(names)
    if name not in known:
        near = difflib.get_close_matches(str(name), known, 3, 0.4) or known
        raise GgtokError(f"no {what} is called {name!r}: the nearest are {', '.join(near)}")


def _merges(source: Source) -> Packed:
    """The merges of another file."""
    other = read_metadata(source)
    merges = other.get(MERGES)
    if not isinstance(merges, Array) or merges.kind != Type.STRING:
        raise GgtokError(f"the file that merges are taken from has no list {MERGES}")
    return Packed.read(other, MERGES, merges)


def texts_of(file: Entries) -> list[bytes]:
    """The texts of the tokens; none if they are not a list of strings."""
    tokens = file.get(TOKENS)
    return tokens.elements() if isinstance(tokens, Packed) and tokens.type is Type.STRING else []


def _size(result: Entries) -> int:
    """The number of tokens."""
    tokens = result.get(TOKENS)
    return tokens.size if isinstance(tokens, Packed) else 0


def _in_range(result: Entries, what: str, id: Any) -> int:
    if isinstance(id, bool):
        raise ArgumentTypeError(f"{what} must be an id, not bool")
    number, size = as_int(id), _size(result)
    if not 0 <= number < size:
        raise TokenIndexError(f"{what} is {number}: there are {size} tokens")
    return number


def _id(result: Entries, slot: str, token: int | str) -> int:
    """The id of a special token, given by id or by text, which may be one of those that are added."""
    key = GGML + SPECIAL[slot]
    if not isinstance(token, str):
        return _in_range(result, key, token)
    texts, text = texts_of(result), to_bytes(token)
    if text not in texts:
        raise VocabularyError(f"{key} is {token!r}, and the vocabulary has no such token")
    return texts.index(text)


def _text(text: object, what: str) -> bytes:
    if not isinstance(text, str):
        raise ArgumentTypeError(f"{what} must be str, not {type(text).__name__}")
    raw = to_bytes(text)
    if not raw or b"\0" in raw:
        raise VocabularyError(f"a token cannot have the text {text!r}: it is empty or has a NUL in it")
    return raw


def _change(result: Entries, changes: Iterable[Mapping[str, Any]]) -> None:
    """Renames tokens, retypes them and sets their scores."""
    new: dict[str, dict[int, Any]] = {}
    ids: set[int] = set()
    for change in items_of("tokens", changes, "mappings"):
        if not isinstance(change, Mapping) or "id" not in change:
            raise GgtokError(f"a change of a token must be an object with an id, not {change!r}")
        id = _in_range(result, "the id of a token", change["id"])
        if id in ids:
            raise GgtokError(f"token {id} is given twice")
        ids.add(id)
        for field in change.keys() - {"id"}:
            _known(field, FIELDS, f"field of a token (token {id})")
            new.setdefault(FIELDS[field], {})[id] = _changed(field, change[field], id)
    for key, values in new.items():
        if key in DEFAULTS:
            result.setdefault(key, Packed.of(ARRAYS[key], [DEFAULTS[key]] * _size(result)))
        old = result[key]
        if not isinstance(old, Packed) or old.size <= max(values):
            raise VocabularyError(f"{key} has no element for token {max(values)}")
        result[key] = old.replaced(values)
    renamed = new.get(TOKENS, {})
    first: dict[bytes, int] = {}
    for id, text in enumerate(texts_of(result) if renamed else ()):
        other = first.setdefault(text, id)
        if other != id and renamed.keys() & {id, other}:
            raise VocabularyError(f"tokens {other} and {id} would both have the text {text.decode(errors='replace')!r}")


def _changed(field: str, value: Any, id: int) -> Any:
    """What a field becomes in the file."""
    if field == "text":
        return _text(value, f"the text of token {id}")
    if field == "type":
        _known(value, TOKEN_TYPES, f"type of a token (token {id})")
        return TOKEN_TYPES[value]
    if type(value) not in (int, float):
        raise ArgumentTypeError(f"the score of token {id} must be a number, not {type(value).__name__}")
    return value


def _added(result: Entries, plain: Iterable[str], control: Iterable[str]) -> dict[bytes, int]:
    """The texts of new tokens with their types, in the order of their ids."""
    added: dict[bytes, int] = {}
    ids: dict[bytes, int] | None = None
    for argument, given, kind in (("add_tokens", plain, USER_DEFINED), ("add_control_tokens", control, CONTROL)):
        for text in items_of(argument, given, "str"):
            raw = _text(text, f"a token of {argument}")
            if ids is None:
                ids = {other: id for id, other in enumerate(texts_of(result))}
            if raw in ids:
                raise VocabularyError(f"the token {text!r} cannot be added: token {ids[raw]} has this text")
            if raw in added:
                raise VocabularyError(f"the token {text!r} cannot be added twice")
            added[raw] = kind
    if added and not ids:
        raise VocabularyError("tokens cannot be added to a file without a list of tokens")
    return added


def _fill(result: Entries, added: Mapping[bytes, int]) -> None:
    """Puts new tokens into unused places, the first ones first."""
    types = result.get(GGML + "token_type")
    unused = [id for id, kind in enumerate(types.elements() if isinstance(types, Packed) else ()) if kind == UNUSED]
    if len(unused) < len(added):
        raise VocabularyError(
            f"{len(added)} tokens cannot be added: the weights have a row for each of the {_size(result)} tokens, of "
            f"which {len(unused)} are unused"
        )
    for key, values in _elements(added).items():
        old = result.get(GGML + key)
        if isinstance(old, Packed):
            result[GGML + key] = old.replaced(dict(zip(unused, values, strict=False)))


def append(result: Entries, added: Mapping[str, list[Any]]) -> None:
    """Extends the arrays that have an element per token. Unread elements after the last token are cut off."""
    size = _size(result)
    result.setdefault(GGML + "token_type", Packed.of(Type.INT32, [NORMAL] * size))
    for key, more in added.items():
        old = result.get(GGML + key)
        if isinstance(old, Packed):
            elements = old.elements()[:size]
            if len(elements) < size:
                raise VocabularyError(f"{GGML}{key} has {len(elements)} elements for {size} tokens")
            result[GGML + key] = Packed.of(old.type, elements + more)
    for key in result:
        if key.endswith(".vocab_size") and not key.startswith(KEPT):
            result[key] = Typed(Type.UINT32, size + len(added["tokens"]))


def _elements(added: Mapping[bytes, int]) -> dict[str, list[Any]]:
    """What the arrays that have an element per token have for new ones."""
    return {"tokens": list(added), "token_type": list(added.values()), "scores": [ADDED_SCORE] * len(added)}
