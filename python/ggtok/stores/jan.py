"""Jan's models: `llamacpp/models/**/model.yml` in its data folder, each of which names a GGUF file.

Source: Jan's documentation ("Jan data folder") and its llama.cpp extension. `model_path` is absolute, or relative to
the data folder. A model's name is the folder of its `model.yml`.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from .model import Model, data_home, files_below, from_environment, home, read_json, read_text, text_of

PREFIX = "jan"
TITLE = "Jan"

COMMENT = re.compile(r"[ \t]#")


def places() -> list[Path]:
    """The folder with the models of llama.cpp."""
    return [_data() / "llamacpp/models"]


def models() -> Iterator[Model]:
    """All models of all places."""
    for place in places():
        for file in files_below(place):
            folder, _, name = file.rpartition("/")
            if name == "model.yml" and folder:
                yield _model(folder, place / file)


def find(name: str) -> Model | None:
    """The model of a name."""
    wanted = f"{PREFIX}:{name}".lower()
    return next((model for model in models() if model.name.lower() == wanted), None)


def _data() -> Path:
    """Jan's data folder: what its settings name, or `data` beside them."""
    if sys.platform == "darwin":
        base = home() / "Library/Application Support/Jan"
    elif os.name == "nt":
        base = (from_environment("APPDATA") or home() / "AppData/Roaming") / "Jan"
    else:
        base = data_home() / "Jan"
    settings = read_json(base / "settings.json")
    chosen = text_of(settings.get("data_folder")) if isinstance(settings, dict) else ""
    return Path(chosen) if chosen else base / "data"


def _model(name: str, file: Path) -> Model:
    written = _model_path(read_text(file) or "")
    if not written:
        return Model(f"{PREFIX}:{name}", "", f"{file} names no file (model_path)")
    path = _data() / written
    if os.path.isfile(path):
        return Model(f"{PREFIX}:{name}", str(path))
    return Model(f"{PREFIX}:{name}", "", f"its file is missing: {path}")


def _model_path(text: str) -> str:
    """The value of `model_path` in YAML: plain, in quotes, or folded over several lines. Jan writes flat files."""
    lines = iter(text.replace("\r\n", "\n").split("\n"))
    values = (value for key, colon, value in (line.partition(":") for line in lines) if key.rstrip() == "model_path")
    first = COMMENT.split(next(values, ""), 1)[0].strip()
    others = [line.strip() for line in takewhile(lambda line: line[:1] in (" ", "\t") and line.strip(), lines)]
    value = " ".join(others if first in (">", ">-", "|", "|-") else [first, *others]).strip()
    if value.startswith("'") and value.endswith("'") and len(value) > 1:
        return value[1:-1].replace("''", "'")
    if value.startswith('"'):
        try:
            return text_of(json.loads(value))
        except ValueError:
            return ""
    return value
