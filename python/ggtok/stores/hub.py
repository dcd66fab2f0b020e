"""A model on the Hugging Face Hub: the list of a repository's files, and the address of the one that a name means."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from ..errors import DownloadError, ModelNotFoundError
from . import huggingface, quantization
from .model import companion, dicts, inside, text_of
from .web import MAX_SECONDS, Client, endpoint, origin


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
    with Client(f"{endpoint()}/{repository}", MAX_SECONDS) as client:
        answer = client.get_json(f"{endpoint()}/api/models/{repository}")
    files = answer.get("siblings") if isinstance(answer, dict) else None
    if not isinstance(files, list):
        raise DownloadError("the server's answer is not a list of files", url=client.name)
    return sorted(inside(text_of(file.get("rfilename"))) for file in dicts(files))
