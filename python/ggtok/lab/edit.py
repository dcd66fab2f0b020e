"""Edits of a model's tokenizer in a new file, with all tensors as they were.

The new file has the keys of the old one in their order. A value that is not edited keeps its bytes; edited values are
written in the file's byte order. The list of tensors stays the same, because its offsets count from the start of the
data; the data is copied after new padding. The parts of a split file are copied beside the first, which has the keys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import zip_longest
from typing import Any, BinaryIO, NamedTuple

from .._ggtok import Metadata
from ..errors import ArgumentTypeError, GgtokError
from ..tokenizer.base import TokenizerT, opened
from ..tokenizer.files import check_target, replacing
from ..tokenizer.findings import Finding, warn_of
from ..tokenizer.keys import MODEL
from ..tokenizer.metadata import MAX_BYTES, Source, read_metadata
from .convert.edits import Edits, MetadataValue, entries
from .convert.gguf import Packed, Typed, header, packed
from .convert.tensors import Tensors, aligned, copy
from .diagnosis import check_file
from .releases import check

DESCRIBE_TENSORS = re.compile(r"general\.(alignment|architecture)|split\..*")
"""Keys that say where tensors are and how they are read."""


class Change(NamedTuple):
    """What is different in the new file."""

    key: str
    """The key, or one element of its array: `tokenizer.ggml.tokens[7]`."""
    old: object
    """`None` if there was no such key."""
    new: object
    """`None` if the key is removed."""


def edit(
    cls: type[TokenizerT],
    /,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    add_tokens: Iterable[str] = (),
    add_control_tokens: Iterable[str] = (),
    special: Mapping[str, int | str | None] | None = None,
    flags: Mapping[str, bool | None] | None = None,
    chat_template: str | None = None,
    name: str | None = None,
    metadata: Mapping[str, MetadataValue | None] | None = None,
    tokens: Iterable[Mapping[str, Any]] = (),
    merges_from: Source | None = None,
    overwrite: bool = False,
    progress: Callable[[int], object] | None = None,
) -> TokenizerT | None:
    """Writes a GGUF file that is another one with its tokenizer edited: the same tensors, byte for byte.

    The source need not open: its metadata is read and nothing else, so a broken file can be mended. The result is
    opened and checked. Each error that is left is a `TokenizerWarning`. So is whatever stops the result from being
    opened, if the source did not open either; the file is still written.

    The file appears under its name when it is complete. If anything fails, or Ctrl-C is pressed, nothing is left, and a
    file that was there stays as it was.

    Args:
        source: The path of a GGUF file, with tensors or without. Of a split file, the first part: the others are copied
            too.
        target: The path of the new file. For a split file it ends like the source, in `-00001-of-0000N.gguf`.
        add_tokens: Texts of tokens to add (user-defined tokens). Weights have a row for each token, so in a file with
            tensors they take the places of unused tokens, the first ones first.
        add_control_tokens: The same for control tokens.
        special: As in `Tokenizer.to_gguf`.
        flags: As in `Tokenizer.to_gguf`.
        chat_template: As in `Tokenizer.to_gguf`.
        name: As in `Tokenizer.to_gguf`.
        metadata: Further values by key, of any part of the metadata; a list for an array. They have the type that
            llama.cpp reads, or else the one that the key has in the file, or else an `int` is `uint32`. `None` takes a
            key out of the file. Keys that say where the tensors are (`general.alignment`, `general.architecture`,
            `split.*`) cannot be changed.
        tokens: Changes of tokens by their ids: `{"id": 7, "text": "<begin>", "type": "control", "score": 0}`, each
            field but the id optional. Types are `normal`, `unknown`, `control`, `user_defined`, `unused` and `byte`.
        merges_from: Another GGUF file of the same vocabulary, whose merges are taken.
        overwrite: Whether a GGUF file with tensors at `target` may be replaced. It may never be the source.
        progress: Called with the number of bytes that were copied, every 16 MiB or sooner.

    Returns:
        The tokenizer of the new file; `None` if it has none, such as a projector, or does not open yet.

    Raises:
        GGUFError: The file is damaged.
        VocabularyError, TokenIndexError: As `Tokenizer.to_gguf`; there are too few unused tokens; or two tokens would
            have the same text.
        ChatTemplateError: llama.cpp does not read the new chat template.
        GgtokError: As `Tokenizer.to_gguf`; a key to remove is not there; a change of a token is not one, or is of a
            token that is changed twice; the source opens, and the new file would not; `target` is the source, needs
            `overwrite`, or is not a regular file; or a part of a split file is missing or has another name.
        OSError: A file cannot be read or written.
        TypeError: An argument has the wrong type.

    >>> import ggtok, os, tempfile
    >>> source = os.path.join(os.path.dirname(ggtok.__file__), "vocabularies", "bpe.gguf")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = os.path.join(folder, "fixed.gguf")
    ...     new = ggtok.edit(source, target, metadata={"tokenizer.ggml.pre": "llama-bpe"})
    >>> new.vocab.pre
    'llama-bpe'
    """
    changes = Edits(add_tokens, add_control_tokens, special, flags, chat_template, name, metadata, tokens, merges_from)
    edited = Edited(source, changes)
    tokenizer = edited.write(cls, target, overwrite=overwrite, progress=progress)
    for finding in edited.findings:
        warn_of(finding)
    return tokenizer


class Edited:
    """A file with edits, before it is written."""

    findings: list[Finding]
    """The errors of what was written. That a file without a tokenizer has none is not one."""

    def __init__(self, source: str | os.PathLike[str], edits: Edits) -> None:
        if not isinstance(source, (str, os.PathLike)):
            raise ArgumentTypeError(f"the source must be a path, not {type(source).__name__}")
        self.path = os.fsdecode(source)
        part = re.search(r"-(\d{5})-of-\d{5}\.gguf\Z", self.path)
        if part is not None and int(part[1]) != 1:
            raise GgtokError(f"{self.path} is part {int(part[1])} of a split file: the metadata is in part 1")
        self.old = _read(self.path)
        self.parts = _parts(self.path, self.old)
        for key, value in (edits.metadata or {}).items():
            _check_key(self.old, key, value)
        self.before = entries(self.old, Edits(), every_key=True)
        has_weights = self.old.tensor_count > 0 or len(self.parts) > 1
        self.after = entries(self.old, edits, every_key=True, has_weights=has_weights)

    @property
    def size(self) -> int:
        """How many bytes are copied."""
        return sum(map(os.path.getsize, self.parts)) - self.old.size

    def changes(self) -> Iterator[Change]:
        """What is different, in the order of the new file; keys that are gone come last."""
        for key, new in self.after.items():
            old = self.before.get(key)
            if old == new:
                continue
            if isinstance(old, Packed) and isinstance(new, Packed) and old.type is new.type:
                yield from _elements(key, old, new)
            else:
                yield Change(key, _shown(old), _shown(new))
        for key, old in self.before.items():
            if key not in self.after:
                yield Change(key, _shown(old), None)

    def write(
        self,
        cls: type[TokenizerT],
        target: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        progress: Callable[[int], object] | None = None,
    ) -> TokenizerT | None:
        """Writes the file, as `edit` says."""
        if not isinstance(target, (str, os.PathLike)):
            raise ArgumentTypeError(f"the target must be a path, not {type(target).__name__}")
        targets = list(_targets(os.fsdecode(target), len(self.parts)))
        places = [check_target(path, self.parts, overwrite=overwrite, regular=True) for path in targets]
        advance = progress or (lambda _: None)
        try:
            with ExitStack() as stack:
                # The first part is renamed last: when it appears, the others exist.
                new = [stack.enter_context(replacing(path)) for path in places]
                for path, file in zip(self.parts[1:], new[1:], strict=True):
                    with open(path, "rb") as part:
                        copy(part, file, 0, os.path.getsize(path), advance)
                with open(self.path, "rb") as part:
                    self._write_first(part, new[0], advance)
                tokenizer = self._judged(cls, new[0].name, targets[0])
        except GgtokError as error:
            error.path = self.path
            raise
        except OSError as error:
            if error.filename is None or os.fsdecode(error.filename).endswith(".part"):
                error.filename = targets[0]
            raise
        return tokenizer

    def _judged(self, cls: type[TokenizerT], written: str, target: str) -> TokenizerT | None:
        """The tokenizer of the new file, if it opens. It must, if the source's does."""
        self.findings = []
        if MODEL not in self.old and MODEL not in self.after:
            return None
        try:
            tokenizer = opened(cls, written, made_from=target)
        except GgtokError:
            try:
                opened(cls, self.path)
            except GgtokError:
                tokenizer = None
            else:
                raise
        found = check_file(written) if tokenizer is None else check(tokenizer)
        self.findings = [finding for finding in found if finding.severity == "error"]
        return tokenizer

    def _write_first(self, source: BinaryIO, target: BinaryIO, advance: Callable[[int], object]) -> None:
        tensors = Tensors.of(source, self.old)
        big_endian = self.old.big_endian
        values = (
            self.old.raw(key) if self.before.get(key) == value else packed(key, value, big_endian)
            for key, value in self.after.items()
        )
        head = header(len(self.after), self.old.version, self.old.tensor_count, big_endian) + b"".join(values)
        if len(head) > MAX_BYTES:
            raise GgtokError(f"the metadata would have {len(head)} bytes, more than 4 GiB")
        head += tensors.infos
        target.write(head)
        if self.old.tensor_count:
            target.write(b"\0" * (aligned(len(head), self.old) - len(head)))
            copy(source, target, tensors.start, tensors.end, advance)
        target.flush()


def _read(path: str) -> Metadata:
    try:
        return read_metadata(path, flawed=True)
    except GgtokError as error:
        error.path = path
        raise


def _check_key(old: Metadata, key: str, value: object) -> None:
    """Refuses keys that belong to the tensors, and the removal of a missing key."""
    if isinstance(key, str) and DESCRIBE_TENSORS.fullmatch(key) and value != old.get(key):
        raise GgtokError(f"{key} cannot be changed: it says where the tensors are or how they are read")
    if value is None and key not in old:
        import difflib

        near = difflib.get_close_matches(str(key), old.entries(), 3, 0.4)
        raise GgtokError(
            f"the file has no key {key!r} to remove" + (f": the nearest are {', '.join(near)}" if near else "")
        )


def _parts(path: str, metadata: Metadata) -> list[str]:
    """The paths of all parts of a file: itself alone unless it is split."""
    count = metadata.get("split.count")
    if not isinstance(count, int) or count < 2:
        return [path]
    parts = []
    for part in _targets(path, count):
        if not os.path.isfile(part):
            raise GgtokError(f"a part of the split file {path} is missing: {part}")
        parts.append(part)
    return parts


def _targets(path: str, count: int) -> Iterable[str]:
    """The paths of `count` parts, of which the first is given, as llama.cpp looks for them."""
    if count == 1:
        return [path]
    ending = f"-00001-of-{count:05}.gguf"
    if not path.endswith(ending):
        raise GgtokError(f"{path} must end in {ending}: it is the first of {count} parts of a split file")
    return (f"{path.removesuffix(ending)}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1))


def _elements(key: str, old: Packed, new: Packed) -> Iterator[Change]:
    for place, (a, b) in enumerate(zip_longest(old.elements(), new.elements())):
        if a != b:
            yield Change(f"{key}[{place}]", _shown(a), _shown(b))


def _shown(value: object) -> object:
    """A value as people read it."""
    if isinstance(value, Typed):
        return value.value
    if isinstance(value, Packed):
        return f"array of {value.size} {value.type.name.lower()}"
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
