"""What `Tokenizer` writes as files of other formats and reads from them: targets are checked before any work."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from ...errors import ArgumentTypeError
from ...tokenizer.base import BaseTokenizer, TokenizerT, opened
from ...tokenizer.files import Target, check_target, read, write
from ...tokenizer.metadata import Source
from ...tokenizer.seam import metadata_of, path_of
from . import architectures, edits, from_tokenizers, probes, sentencepiece, tiktoken, transformers
from .gguf import gguf_bytes


def to_gguf(tokenizer: TokenizerT, target: Target, changes: edits.Edits, overwrite: bool) -> TokenizerT:
    inputs = () if overwrite else (path_of(tokenizer),)
    check_target(target, inputs, overwrite=overwrite)
    data = gguf_bytes(edits.entries(metadata_of(tokenizer), changes))
    new = opened(type(tokenizer), data)
    write(target, data, inputs, overwrite=overwrite)
    return new


def export(tokenizer: BaseTokenizer, target: Target, exported: Callable[[BaseTokenizer], bytes]) -> None:
    inputs = (path_of(tokenizer),)
    check_target(target, inputs)
    write(target, exported(tokenizer), inputs)


def to_transformers(tokenizer: BaseTokenizer, folder: str | os.PathLike[str]) -> None:
    if not isinstance(folder, (str, os.PathLike)):
        raise ArgumentTypeError(f"the folder must be a path, not {type(folder).__name__}")
    inputs = (path_of(tokenizer),)
    found = transformers.files(tokenizer).items()
    data = {os.path.join(os.fsdecode(folder), name): content for name, content in found}
    for path in data:
        check_target(path, inputs)
    for path in data:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write(path, data[path], inputs)


def to_tiktoken(tokenizer: BaseTokenizer, target: Target) -> dict[str, Any]:
    inputs = (path_of(tokenizer),)
    check_target(target, inputs)
    settings_target = os.fsdecode(target) + ".json" if isinstance(target, (str, os.PathLike)) else None
    if settings_target is not None:
        check_target(settings_target, inputs)
    data, settings = tiktoken.exported(tokenizer)
    write(target, data, inputs)
    if settings_target is not None:
        write(settings_target, tiktoken.settings_json(settings), inputs)
    return settings


def from_sentencepiece(cls: type[TokenizerT], source: Source, vocab_size: int | None) -> TokenizerT:
    return opened(cls, sentencepiece.imported(read(source), vocab_size), made_from=source)


def from_tokenizers_json(
    cls: type[TokenizerT],
    source: Source,
    config: Source | Mapping[str, Any] | None,
    pre: str | None,
    vocab_size: int | None,
    architecture: str | None,
) -> TokenizerT:
    meant = architectures.of(from_tokenizers.beside(source, "config.json"), architecture)
    settings = from_tokenizers.read_config(source, config, meant.rules)
    data, library = from_tokenizers.imported(read(source), settings, meant, pre, vocab_size)
    tokenizer = opened(cls, data, made_from=source)
    if library is not None:
        probes.warn_of_differences(tokenizer, library)
    return tokenizer
