"""Adds a release of llama.cpp to what ggtok knows about releases: `python/ggtok/lab/llama_cpp_releases.json`.

    python scripts/add_release.py LIBRARY LLAMA_CPP

`LIBRARY` is a shared library of llama.cpp, such as the one in a wheel of xllamacpp, and `LLAMA_CPP` is its source.
Releases are added in their order. What an earlier one opens is known, so that only new names are tried:

1. architectures and pre-tokenizers, as overrides of an embedded vocabulary,
2. types of tensors, in a file with a single tensor, each with the elements and the bytes of its blocks.

The table `tokenizer` and the list `changes` are written by hand. A change is what `python -m tests.differential` finds
beside an older release (`--libllama`) and not beside a newer one. `signs` is a pattern of bytes: only texts in which it
is found are answered differently.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

from ggtok import _ggtok
from ggtok.lab.verify.binding import LlamaCpp
from ggtok.lab.verify.child import Child
from ggtok.lab.verify.library import find_library
from ggtok.lab.verify.verify import REFERENCE
from ggtok.tokenizer.keys import PRE

PACKAGE = Path(__file__).resolve().parents[1] / "python" / "ggtok"
DATA = PACKAGE / "lab" / "llama_cpp_releases.json"
MOST_TYPES = 64
"""Types of tensors that are tried: there are about 40."""


def with_tensor(kind: int) -> bytes:
    """The embedded vocabulary with a tensor that has no elements, and so no data of its type."""
    data = bytearray((PACKAGE / "vocabularies" / "spm.gguf").read_bytes())
    metadata = _ggtok.Metadata.read(bytes(data), len(data), {})
    assert isinstance(metadata, _ggtok.Metadata)
    struct.pack_into("<Q", data, 8, 1)
    file = bytes(data[: metadata.size]) + struct.pack("<Q1sIQIQ", 1, b"a", 1, 0, kind, 0)
    return file + bytes(-len(file) % 32)


def add(data: dict[str, Any], library: str, source: Path) -> None:
    """Adds a release, and what it opens first."""
    found = find_library(library)
    names = re.findall(r'\{ *LLM_ARCH_\w+, *"([^"]+)"', (source / "src" / "llama-arch.cpp").read_text(encoding="utf-8"))
    bpe = str(PACKAGE / "vocabularies" / "bpe.gguf")
    tables = {"architecture": ("general.architecture", names), "pre-tokenizer": (PRE, _ggtok.pretokenizers())}
    child = Child(REFERENCE, (found.path,), timeout=60)
    says = child.ask([("library",)])[0][1]
    build = (found.release or says["release"] or sys.exit(f"{library} does not say which release it is"))[1:]
    if int(build) in [row["build"] for row in data["releases"]]:
        child.close()
        sys.exit(f"b{build} was added before")
    for table, (key, tried) in tables.items():
        known = {name for row in data[table].values() for name in row}
        new = [name for name in tried if name not in known]
        answers = child.ask([("open", bpe, {key: name}) for name in new])
        if opened := [name for name, answer in zip(new, answers, strict=True) if answer[0] == "ok"]:
            data[table][build] = opened
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        llama_cpp = LlamaCpp(found.path)
        elements = llama_cpp.optional("ggml_blck_size", ctypes.c_int64, [ctypes.c_int])
        size = llama_cpp.optional("ggml_type_size", ctypes.c_size_t, [ctypes.c_int])
        known = {kind for row in data["tensor type"].values() for kind in row}
        for kind in range(MOST_TYPES):
            Path(file.name).write_bytes(with_tensor(kind))
            if str(kind) not in known and child.ask([("open", file.name, {})])[0][0] == "ok":
                data["tensor type"].setdefault(build, {})[str(kind)] = [elements(kind), size(kind)]
    child.close()
    data["releases"].append({"build": int(build), "from": found.package or "a library", "ggml": says["ggml"]})


def written(data: dict[str, Any]) -> str:
    """The file: a row of a table is a line."""
    parts = []
    for name, value in data.items():
        rows = value if isinstance(value, list) else value.items() if isinstance(value, dict) else None
        if rows is None:
            parts.append(f"{json.dumps(name)}: {json.dumps(value)}")
            continue
        texts = (json.dumps(row, ensure_ascii=False) for row in rows)
        if isinstance(value, dict):
            texts = (f"{json.dumps(key)}: {json.dumps(row, ensure_ascii=False)}" for key, row in rows)
        parts.append(f"{json.dumps(name)}: " + "[{"[isinstance(value, dict)] + "\n" + ",\n".join(texts) + "\n")
        parts[-1] += "]}"[isinstance(value, dict)]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    """Reads the arguments, and writes the file."""
    parser = argparse.ArgumentParser(description="add a release of llama.cpp to what is known about releases")
    parser.add_argument("library", help="a shared library of llama.cpp")
    parser.add_argument("source", type=Path, help="llama.cpp's tree, from which the names of architectures are read")
    options = parser.parse_args()
    data = json.loads(DATA.read_text(encoding="utf-8"))
    add(data, options.library, options.source)
    DATA.write_text(written(data), encoding="utf-8")


if __name__ == "__main__":
    main()
