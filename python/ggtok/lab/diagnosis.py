"""Checks of a file that need not open as a tokenizer: what stops it is a finding, if possible with its repair.

A repair is applied to the metadata in memory, and the check goes on with the result, until it opens or there is nothing
that can be mended. So one check finds all repairs that a file needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .._ggtok import Metadata, models, pretokenizers
from ..errors import GgtokError, GGUFError, UnsupportedError, VocabularyError
from ..tokenizer.base import BaseTokenizer, opened
from ..tokenizer.check import CONVERT, origin_of
from ..tokenizer.findings import Finding
from ..tokenizer.keys import ARRAYS, GGML, MODEL, PRE, SPECIAL, Type
from ..tokenizer.metadata import Scalar, Source, read_metadata
from .convert.edits import MERGES, TOKENS, Edits, Entries, entries, key_types, texts_of
from .convert.gguf import Packed, Typed, gguf_bytes
from .releases import check

PYTHON_TYPES = {Type.BOOL: bool, Type.UINT32: int, Type.INT32: int, Type.FLOAT32: float}
"""What numbers become that have another type than is expected."""


def check_file(
    source: Source, *, overrides: Mapping[str, Scalar] | None = None, llama_cpp: str | int | None = None
) -> list[Finding]:
    """Lists problems with a file's tokenizer, as `Tokenizer.check` does, also for a file that does not open.

    What stops the file from being opened comes first. `repair` of a finding has the arguments with which `ggtok.edit`
    mends it, if the file says what would be right.

    Args:
        source: As in `Tokenizer.from_gguf`.
        overrides: As in `Tokenizer.from_gguf`.
        llama_cpp: As in `Tokenizer.check`.

    Raises:
        OSError: The file cannot be read.
        TypeError: An argument has the wrong type.
        GgtokError: `llama_cpp` is not a build number.

    >>> import ggtok, os
    >>> path = os.path.join(os.path.dirname(ggtok.__file__), "vocabularies", "bpe.gguf")
    >>> ggtok.check_file(path)
    []
    >>> [finding.code for finding in ggtok.check_file(b"not GGUF")]
    ['file-damaged']
    """
    try:
        data = read_metadata(source, flawed=True).data
    except GgtokError as error:
        return [Finding("file-damaged", "error", str(error), "download or convert the file again")]
    found: list[Finding] = []
    while True:
        try:
            tokenizer = opened(BaseTokenizer, data, overrides)
        except GgtokError as error:
            metadata = read_metadata(data, flawed=True)
            finding = _what_stops(metadata, error)
            if finding.repair is None or finding in found or finding.key in (overrides or {}):
                return [*found, finding._replace(repair=None)]
            try:
                data = gguf_bytes(entries(metadata, Edits(**finding.repair), every_key=True))
            except GgtokError:  # such as a key that occurs twice and last has a value of a wrong type
                return [*found, finding._replace(repair=None)]
            found.append(finding)
        else:
            return found + check(tokenizer, llama_cpp)


def repair_of(findings: Iterable[Finding]) -> Edits:
    """The repairs of all findings as one."""
    metadata: dict[str, Any] = {}
    tokens: list[Mapping[str, Any]] = []
    for repair in (finding.repair or {} for finding in findings):
        metadata |= repair.get("metadata", {})
        tokens += [change for change in repair.get("tokens", ()) if change not in tokens]
    return Edits(metadata=metadata, tokens=tokens)


def _what_stops(metadata: Metadata, error: GgtokError) -> Finding:
    """The finding about an error that keeps a tokenizer from opening."""
    try:
        file = entries(metadata, Edits(), every_key=True)
    except GgtokError as damage:
        return Finding("file-damaged", "error", str(damage), CONVERT)
    if isinstance(error, GGUFError) and error.key is not None and error.key in file:
        return _of_key(metadata, file, error.key, str(error))
    if MODEL not in file:
        return Finding("tokenizer-missing", "error", str(error), "give the model itself", MODEL)
    if isinstance(error, UnsupportedError):
        return _of_name(file, error)
    if isinstance(error, VocabularyError):
        return _of_vocabulary(file, error)
    return Finding("file-damaged", "error", str(error), CONVERT)


def _of_key(metadata: Metadata, file: Entries, key: str, message: str) -> Finding:
    """A key that is empty, occurs twice or has the wrong type."""
    if not key:
        return Finding("key-empty", "error", message, "remove it from the file", key, (), {"metadata": {key: None}})
    value = _value(file[key])
    try:
        read_metadata(metadata.data)
    except GGUFError:
        repair = None if value is None else {"metadata": {key: value}}
        return Finding("key-twice", "error", message, "keep its last value", key, (), repair)
    advice = "give it the expected type, or convert the model again"
    return Finding("key-type", "error", message, advice, key, (), _retyped(key, value, key_types(metadata).get(key)))


def _value(value: Typed | Packed) -> Any:
    """A value as `ggtok.edit` takes it; `None` for arrays of arrays."""
    if isinstance(value, Typed):
        return value.value
    if value.type is Type.ARRAY:
        return None
    return [each.decode("utf-8", "surrogateescape") if isinstance(each, bytes) else each for each in value.elements()]


def _retyped(key: str, value: Any, kind: Type | None) -> dict[str, Any] | None:
    """The repair of a value that the expected type can hold. A negative id has no repair."""
    to_type = PYTHON_TYPES.get(kind or ARRAYS.get(key, Type.ARRAY))
    values = value if isinstance(value, list) else [value]
    if to_type is None or isinstance(value, list) != (key in ARRAYS):
        return None
    if not all(isinstance(each, (int, float)) and abs(each) < 1 << 31 and to_type(each) == each for each in values):
        return None
    new = [to_type(each) for each in values]
    return {"metadata": {key: new if isinstance(value, list) else new[0] if new[0] >= 0 else None}}


def _of_name(file: Entries, error: UnsupportedError) -> Finding:
    """A tokenizer or a pre-tokenizer that is unknown: mended if it is another spelling of a known one."""
    key, code, known = PRE, "pre-unknown", list(pretokenizers())
    if _value(file[MODEL]) not in models():
        key, code, known = MODEL, "model-unknown", list(models())
    ids = {text.decode("utf-8", "replace"): id for id, text in enumerate(texts_of(file))}
    origin = origin_of(ids.get) if key == PRE else None
    right = [origin.pre] if origin else [name for name in known if _letters(name) == _letters(error.name)]
    repair = {"metadata": {key: right[0]}} if right else None
    advice = f'set it to "{right[0]}"' if right else "set it to the right one, or convert the model again"
    return Finding(code, "error", str(error), advice, key, (), repair)


def _letters(name: object) -> str:
    return "".join(filter(str.isalnum, str(name).casefold()))


def _of_vocabulary(file: Entries, error: VocabularyError) -> Finding:
    ids: dict[bytes, list[int]] = {}
    for id, text in enumerate(texts_of(file)):
        ids.setdefault(text, []).append(id)
    if len(ids) < sum(map(len, ids.values())):
        # Of tokens with one text, one with a special role stays as it is, or else the first.
        roles = [_value(file[GGML + key]) for key in SPECIAL.values() if GGML + key in file]
        spare = [id for same in ids.values() for id in sorted(same, key=lambda id: (id not in roles, id))[1:]]
        changes = [{"id": id, "text": f"[PAD{id}]", "type": "unused"} for id in sorted(spare)]
        is_free = ids.keys().isdisjoint(b"[PAD%d]" % id for id in spare)
        repair = {"tokens": changes} if is_free else None
        advice = "make all but one of them unused, or convert the model again"
        return Finding("tokens-twice", "error", str(error), advice, TOKENS, tuple(sorted(spare)), repair)
    if MERGES not in file:
        advice = "take it from another file of the model: ggtok.edit(..., merges_from=...)"
        return Finding("merges-missing", "error", str(error), advice, MERGES)
    return Finding("vocabulary-unsound", "error", str(error), CONVERT)
