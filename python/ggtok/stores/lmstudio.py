"""LM Studio's models: `PUBLISHER/MODEL/*.gguf`, in the folder that its settings name.

Source: `findLMStudioHome.ts` of LM Studio's SDK: `~/.lmstudio-home-pointer` has the path of its folder; otherwise that
is `~/.cache/lm-studio`, if it exists, or `~/.lmstudio`. `downloadsFolder` in `settings.json` replaces `models` in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from . import quantization
from .model import Model, files_below, folders, home, is_gguf, read_json, read_text, text_of

TITLE = "LM Studio"


def places() -> list[Path]:
    """`downloadsFolder` of its settings, or `models` in the folder that `~/.lmstudio-home-pointer` names,
    `~/.cache/lm-studio` or `~/.lmstudio`."""
    pointed = (read_text(home() / ".lmstudio-home-pointer") or "").strip()
    cache = home() / ".cache/lm-studio"
    folder = Path(pointed) if pointed else cache if cache.is_dir() else home() / ".lmstudio"
    downloads = text_of((read_json(folder / "settings.json") or {}).get("downloadsFolder"))
    return [Path(downloads) if downloads else folder / "models"]


def models() -> Iterator[Model]:
    """`publisher/model`, `publisher/model:TAG`, `publisher/model/file.gguf`: with tags as in the Hugging Face cache."""
    for name, folder in _repositories():
        yield from quantization.models(name, _files(folder))


def find(name: str) -> Model | None:
    """The model of a name: `PUBLISHER/MODEL`, `PUBLISHER/MODEL:TAG` or `PUBLISHER/MODEL/FILE`."""
    return quantization.find(name, _repositories(), _files)


def _repositories() -> Iterator[tuple[str, Path]]:
    """`PUBLISHER/MODEL` and its folder."""
    for publisher in (each for place in places() for each in folders(place)):
        for model in folders(publisher):
            yield f"{publisher.name}/{model.name}", model


def _files(model: Path) -> dict[str, Path]:
    return {file: model / file for file in files_below(model) if is_gguf(file)}
