"""Opens a tokenizer by the name of its model. For a file without a tokenizer, the error says what the file is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TypeVar

from ..errors import DownloadError, GgtokError, ModelNotFoundError
from ..tokenizer.base import BaseTokenizer
from ..tokenizer.base import opened as opened_file
from ..tokenizer.check import warn
from ..tokenizer.findings import Finding
from ..tokenizer.metadata import Scalar
from ..tokenizer.seam import metadata_of
from .find import is_url, located_model
from .model import Prompts

Opened = TypeVar("Opened", bound=BaseTokenizer)


def opened(
    cls: type[Opened], name: str | os.PathLike[str], overrides: Mapping[str, Scalar] | None, offline: bool | None
) -> Opened:
    """The tokenizer of a model: `Tokenizer.from_model`."""
    if is_url(name):
        return _at_url(cls, str(name), overrides, offline)
    try:
        model = located_model(name)
    except ModelNotFoundError as error:
        if not str(name).lower().startswith("hf:"):
            raise
        if offline is False:
            return _on_hub(cls, str(name)[3:], overrides)
        hint = "" if offline else "; offline=False reads it from the Hub"
        problem = f"{error}{hint}"
        raise ModelNotFoundError(problem, name=error.name, nearest=error.nearest, places=error.places) from None
    tokenizer = opened_file(cls, model.path, overrides, findings=tuple(findings(model.prompts)))
    warn(tokenizer.vocab, metadata_of(tokenizer))
    return tokenizer


def findings(prompts: Prompts) -> Iterator[Finding]:
    """What a caller of a chat template should know about the prompts that the model really gets."""
    if prompts.writer:
        message = f"Ollama writes the prompts of this model with its own {prompts.writer}, not the file's chat template"
        advice = (
            "the ids of a conversation can differ from Ollama's, those of a text cannot; docs/chat.md says what to do"
        )
        yield Finding("ollama-prompt", "warning", message, advice, "tokenizer.chat_template")
    if prompts.added:
        message = f"Ollama adds {' and '.join(prompts.added)} to conversations with this model"
        advice = "`ollama show --modelfile` prints what it adds; pass it yourself to get the same ids"
        yield Finding("ollama-added", "warning", message, advice)


def _on_hub(cls: type[Opened], name: str, overrides: Mapping[str, Scalar] | None) -> Opened:
    """A model of the Hub, read from the network."""
    from . import hub, web

    check_online(f"hf:{name}", offline=False)
    if web.is_set("HF_HUB_OFFLINE"):
        raise DownloadError("HF_HUB_OFFLINE forbids the network", url=f"hf:{name}")
    return _at_url(cls, hub.resolved(name), overrides, offline=False)


def _at_url(cls: type[Opened], url: str, overrides: Mapping[str, Scalar] | None, offline: bool | None) -> Opened:
    from . import hub, remote, web

    check_online(web.shown(url), offline)
    if repository := hub.repository_of(url):
        url = hub.resolved(repository)
    with remote.Head(url) as head:
        try:
            return cls.from_gguf(head, overrides=overrides)
        except GgtokError as error:
            if not isinstance(error, DownloadError):
                error.path = head.url
            raise


def check_online(name: str, offline: bool | None) -> None:
    """Raises `DownloadError` if the network is forbidden."""
    from . import web

    if offline or web.is_set("GGTOK_OFFLINE"):
        by = "offline=True" if offline else "GGTOK_OFFLINE"
        raise DownloadError(f"{by} forbids the network", url=name)
