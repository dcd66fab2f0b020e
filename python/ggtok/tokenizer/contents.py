"""Says what a file is, if it is not the GGUF file of a model: by its first bytes, or by its metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..errors import GGUFError
from .keys import MODEL

HEAD = 4096
"""How many bytes at the start are looked at."""

CONVERT = "llama.cpp's convert_hf_to_gguf.py makes a GGUF file of the model"

SIGNATURES = (
    (rb"version https://git-lfs", "a Git LFS pointer: `git lfs pull` replaces it with the file that it stands for"),
    (rb"\s*<(?i:!doctype|html|head|\?xml)", "a web page: the address of the file itself is another, or needs a login"),
    (rb".{8}\{\s*\"", f"safetensors, which have weights and no tokenizer: {CONVERT}"),
    (rb"\s*\{.*\"(version|truncation|added_tokens)\"", "a tokenizer.json: Tokenizer.from_tokenizers_json reads it"),
    (rb"\s*[\[{]\s*[\"{\[\]}]", "JSON: Tokenizer.from_tokenizers_json reads a tokenizer.json"),
    (rb"\n.{1,2}\n.<", "a model of sentencepiece: Tokenizer.from_sentencepiece reads it"),
    (rb"PK\x03\x04.*data\.pkl|\x80[\x02-\x05]", f"a pickle of PyTorch: {CONVERT}"),
    (rb"PK\x03\x04", "a zip archive: unpack it first"),
    (rb"\x1f\x8b", "compressed with gzip: unpack it first"),
    (rb"\x28\xb5\x2f\xfd|BZh\d|\xfd7zXZ\0|7z\xbc\xaf", "compressed: unpack it first"),
    (rb"lmgg|fmgg|tjgg|algg", f"GGML, the format before GGUF: {CONVERT}"),
    (rb".{4}.\0{3}(blk\.|output|token_embd)", "an importance matrix, which has no tokenizer: give the model itself"),
    (rb"\0{16}", "zeros: it was not downloaded completely"),
)
"""How other kinds of files begin, the most specific first, and what to do with them."""

KINDS = {
    "adapter": "an adapter (LoRA)",
    "mmproj": "a projector (mmproj)",
    "clip": "a projector (mmproj)",
    "imatrix": "an importance matrix",
    "controlvector": "a control vector",
}
"""What a GGUF file is by its `general.type` or `general.architecture`, if it is not a model."""


def not_gguf(head: bytes) -> GGUFError | None:
    """The error for a file that begins like this, if that is known."""
    for start, said in SIGNATURES:
        if re.match(start, head[:HEAD], re.DOTALL):
            return GGUFError(f"this is not a GGUF file but {said}", offset=0)
    return None


def not_model(metadata: Mapping[str, object], path: str | None) -> GGUFError | None:
    """The error for a GGUF file with this metadata, if it is known why it has no tokenizer."""
    found = (KINDS.get(str(metadata.get(f"general.{key}"))) for key in ("type", "architecture"))
    number, count = metadata.get("split.no"), metadata.get("split.count")
    if kind := next(filter(None, found), None):
        problem = f"this is {kind}, which has no tokenizer: give the model itself"
    elif type(number) is int and number > 0:
        named = re.search(r"([^/\\]*)-\d{5}(-of-\d{5}\.gguf)$", path or "", re.IGNORECASE)
        first = f", {named[1]}-00001{named[2]}" if named else ""
        problem = f"this is part {number + 1} of {count} of a split file, and the tokenizer is in part 1{first}"
    else:
        return None
    return GGUFError(problem, key=MODEL)
