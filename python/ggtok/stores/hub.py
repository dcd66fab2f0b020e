"""A model on the Hugging Face Hub: the list of a repository's files, and the address of the one that a name means."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from ..errors import DownloadError, ModelNotFoundError
from . import huggingface, quantization
from .model import companion, dicts, inside, text_of
from .web import MAX_SECONDS, Client, endpoint, origin

MAX_PAGES = 20
"""The Hub lists some thousand files on a page."""


def resolved(name: str) -> str:
    """The URL of the file that `owner/repo`, `owner/repo:TAG` or `owner/repo/file.gguf` means.

    Raises `ModelNotFoundError` if the repository has no such file, and `DownloadError` if the hub does not answer.
    """
    parsed = huggingface.parse(name)
    if parsed is None:
        raise ModelNotFoundError(f"'hf:{name}' is not of the form hf:owner/repo[:TAG]", name=f"hf:{name}")
    repository, rest, tag = parsed
    files = _files(repository)
    file = quantization.named(files, rest, tag)
    base = f"{endpoint()}/{repository}/resolve/main/"
    if file is None:
        near = tuple(f"hf:{each}" for each in quantization.names(repository, files).values())
        has = f"it has {', '.join(near)}" if near else "it has no GGUF files"
        raise ModelNotFoundError(
            f"{endpoint()}/{repository} has no file for 'hf:{name}': {has}", name=name, nearest=near
        )
    if kind := companion(file):
        raise ModelNotFoundError(f"'hf:{name}' cannot be opened: it is {kind}", name=f"hf:{name}")
    return base + quote(file)


def repository_of(url: str) -> str | None:
    """`owner/repo` if a URL is the page of a repository on the Hub, which is not a file."""
    try:
        parts, hub = urlsplit(url), urlsplit(endpoint())
        is_there = origin(parts) == origin(hub) and parts.path.startswith(hub.path)
    except ValueError:
        return None
    path = parts.path[len(hub.path) :].strip("/") if is_there else ""
    parsed = huggingface.parse(path)
    return path if parsed and not parsed[1] else None


def _files(repository: str) -> list[str]:
    """The paths of all files, sorted."""
    url: str | None = f"{endpoint()}/api/models/{repository}/tree/main?recursive=true"
    found: list[str] = []
    with Client(f"{endpoint()}/{repository}", MAX_SECONDS) as client:
        for _ in range(MAX_PAGES):
            if url is None:
                return sorted(found)
            page, url = client.get_json(url)
            if not isinstance(page, list):
                raise DownloadError("the server's answer is not a list of files", url=client.name)
            found += [inside(text_of(item.get("path"))) for item in dicts(page) if item.get("type") == "file"]
    raise DownloadError("the server's list of files does not end", url=client.name)
