"""The tools whose models are found, and the stores with the simplest layouts: RamaLama's, Jan's and GPT4All's.

A store is a module, or a class, with two functions: `places` returns its folders, and `models` its models. It may have
`find`, which returns the model of a name that is not one of `models`, and `TITLE`, what people call the tool. The
documentation has the docstrings of `places` and `models`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

from .model import (
    Model,
    data_home,
    dicts,
    files_below,
    folders,
    from_environment,
    home,
    inside,
    is_gguf,
    is_model,
    model_at,
    read_json,
    read_text,
    text_of,
)

STORES = {
    "ollama": "ggtok.stores.ollama",
    "hf": "ggtok.stores.huggingface",
    "lmstudio": "ggtok.stores.lmstudio",
    "docker": "ggtok.stores.docker",
    "ramalama": "ggtok.stores.tools:RamaLama",
    "jan": "ggtok.stores.tools:Jan",
    "gpt4all": "ggtok.stores.tools:GPT4All",
}
"""Each prefix of a name and its store, as other distributions declare theirs: an entry point in `ggtok.stores`.

Ours are not declared in the metadata, which takes longer to read than a tokenizer to open, and which a source checkout
does not have.
"""


def application_data(variable: str, default: str) -> Path:
    """Where applications keep their data on this system. On Windows a variable names the folder."""
    if sys.platform == "darwin":
        return home() / "Library/Application Support"
    return (from_environment(variable) or home() / default) if os.name == "nt" else data_home()


class RamaLama:
    """`store/TYPE/ORGANIZATION/NAME/{refs/TAG.json,snapshots,blobs}`.

    Source: `ramalama/model_store` of RamaLama 0.25. A ref lists files with their types; a snapshot has links to blobs,
    and the colon of a digest is a hyphen in a file name.
    """

    TITLE = "RamaLama"
    ROOT = Path("/var/lib/ramalama")
    """The folder of the user root."""
    DEPTH = 10
    """How many folders deep refs are: an organization of any number of folders, a name, `refs`."""

    def places(self) -> list[Path]:
        """`RAMALAMA_STORE`, `XDG_DATA_HOME/ramalama` or `~/.local/share/ramalama`; and `/var/lib/ramalama`."""
        own = from_environment("RAMALAMA_STORE") or data_home() / "ramalama"
        return [own / "store", self.ROOT / "store"]

    def models(self) -> Iterator[Model]:
        """`smollm:135m`, `hf://owner/repo`: as `ramalama list` shows them; the end of a name is enough."""
        for place in self.places():
            for kind in folders(place):
                for path in files_below(kind, self.DEPTH):
                    name, _, tag = path.rpartition("/refs/")
                    if name and tag.endswith(".json"):
                        yield self._model(f"{kind.name}://{name}:{tag[:-5]}", kind / name, read_json(kind / path))

    def find(self, name: str) -> Model | None:
        """The model of a name, or of its end: `smollm:135m` is `ollama://library/smollm:135m`. No tag is `latest`."""
        name = name.replace(":///", "://").lower()
        wanted = name if ":" in name.rpartition("/")[2] else f"{name}:latest"
        return next((model for model in self.models() if f"/{model.name.lower()}".endswith(f"/{wanted}")), None)

    @staticmethod
    def _model(name: str, folder: Path, ref: dict[str, Any] | None) -> Model:
        if ref is None:
            return Model(name, "", "its ref cannot be read")
        files = dicts(ref.get("files"))
        kinds = [text_of(file.get("type")) for file in files]
        if "gguf" not in kinds:
            return Model(name, "", f"it has no GGUF file, but {', '.join(sorted({*kinds})) or 'no files at all'}")
        snapshot = inside(text_of(ref.get("hash")).replace(":", "-"))
        inner = inside(text_of(files[kinds.index("gguf")].get("name")))
        path = folder / "snapshots" / snapshot / inner
        return model_at(name, path) if snapshot and inner else Model(name, "", "its ref names no file")


class Jan:
    """`llamacpp/models/**/model.yml` in the data folder, each of which names a GGUF file.

    Source: Jan's documentation ("Jan data folder") and its llama.cpp extension. `model_path` is absolute, or relative
    to the data folder. A model's name is the folder of its `model.yml`.
    """

    TITLE = "Jan"

    def places(self) -> list[Path]:
        r"""`llamacpp/models` in its data folder: `~/.local/share/Jan/data`, `~/Library/Application Support/Jan/data`,
        `%APPDATA%\Jan\data`, or the one of its settings."""
        return [self._data() / "llamacpp/models"]

    def models(self) -> Iterator[Model]:
        """`owner/model`: the folder of its `model.yml`."""
        for place in self.places():
            for file in files_below(place):
                folder, _, name = file.rpartition("/")
                if name == "model.yml" and folder:
                    written = model_path(read_text(place / file) or "")
                    missing = Model(folder, "", f"{place / file} names no file (model_path)")
                    yield model_at(folder, self._data() / written) if written else missing

    @staticmethod
    def _data() -> Path:
        """What the settings name, or `data` beside them."""
        base = application_data("APPDATA", "AppData/Roaming") / "Jan"
        chosen = text_of((read_json(base / "settings.json") or {}).get("data_folder"))
        return Path(chosen) if chosen else base / "data"


COMMENT = re.compile(r"[ \t]#")


def model_path(text: str) -> str:
    """The value of `model_path` in YAML: plain, in quotes, or folded over several lines. Jan writes flat files."""
    lines = iter(text.replace("\r\n", "\n").split("\n"))
    values = (value for key, colon, value in (line.partition(":") for line in lines) if key.rstrip() == "model_path")
    first = COMMENT.split(next(values, ""), 1)[0].strip()
    others = [line.strip() for line in takewhile(lambda line: line[:1] in (" ", "\t") and line.strip(), lines)]
    value = " ".join(others if first in (">", ">-", "|", "|-") else [first, *others]).strip()
    if value.startswith("'") and value.endswith("'") and len(value) > 1:
        return value[1:-1].replace("''", "'")
    if value.startswith('"'):
        import json

        try:
            return text_of(json.loads(value))
        except ValueError:
            return ""
    return value


class GPT4All:
    """GGUF files in one folder, which differs by system, and in the cache of its Python package."""

    TITLE = "GPT4All"

    def places(self) -> list[Path]:
        r"""`~/.local/share/nomic.ai/GPT4All`, `~/Library/Application Support/nomic.ai/GPT4All`,
        `%LOCALAPPDATA%\nomic.ai\GPT4All`; and `~/.cache/gpt4all`."""
        base = application_data("LOCALAPPDATA", "AppData/Local")
        return [base / "nomic.ai/GPT4All", home() / ".cache/gpt4all"]

    def models(self) -> Iterator[Model]:
        """`Llama-3-8B`: the name of the file."""
        return (model_at(file[:-5], path) for file, path in self._files() if is_model(file))

    def find(self, name: str) -> Model | None:
        """The model of a file name, with or without `.gguf`."""
        wanted = name.lower() if is_gguf(name) else f"{name.lower()}.gguf"
        return next((model_at(name, path) for file, path in self._files() if file.lower() == wanted), None)

    def _files(self) -> list[tuple[str, Path]]:
        return [(file, place / file) for place in self.places() for file in files_below(place, 1) if is_gguf(file)]
