"""Writes the seeds of the fuzz target `gguf`: small files of every kind, cut from the embedded vocabularies.

`python rust/fuzz/seeds.py`, with ggtok and gguf installed. The other targets make their vocabularies from noise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ggtok
import gguf
from ggtok import _ggtok

SEEDS = Path(__file__).parent / "seeds" / "gguf"
NUM_TOKENS = 40
RULES = "FB01\t66 69\nFF21\t41\n"


def cut(name: str) -> dict[str, Any]:
    """The keys of an embedded vocabulary, with few tokens."""
    path = Path(ggtok.__file__).parent / "vocabularies" / f"{name}.gguf"
    values: dict[str, Any] = {}
    for key, field in gguf.GGUFReader(path).fields.items():
        value: Any = field.contents()
        if field.types[0] is gguf.GGUFValueType.ARRAY:
            value = value[:NUM_TOKENS]
            if key.endswith("precompiled_charsmap"):
                value = list(_ggtok.compile_charsmap(name=None, tsv=RULES))
        elif not key.startswith("tokenizer.ggml") and key != "general.architecture":
            continue
        values[key] = (field.types[0], value)
    return values


def write(path: Path, values: dict[str, Any], endianess: gguf.GGUFEndian = gguf.GGUFEndian.LITTLE) -> None:
    writer = gguf.GGUFWriter(path, "", endianess=endianess)
    writer.kv_data[0].clear()
    for key, (kind, value) in values.items():
        sub_type = None
        if kind is gguf.GGUFValueType.ARRAY:
            kinds = gguf.GGUFValueType
            types = {str: kinds.STRING, float: kinds.FLOAT32, int: kinds.INT32}
            sub_type = kinds.UINT8 if "charsmap" in key else types[type(value[0])]
        writer.add_key_value(key, value, kind, sub_type=sub_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def main() -> None:
    SEEDS.mkdir(parents=True, exist_ok=True)
    none = {"general.architecture": (gguf.GGUFValueType.STRING, "llama")}
    none |= {"tokenizer.ggml.model": (gguf.GGUFValueType.STRING, "none")}
    none |= {"llama.vocab_size": (gguf.GGUFValueType.UINT32, 2**31 - 1)}
    write(SEEDS / "none.gguf", none)
    for name in ("bpe", "spm", "unigram", "wordpiece"):
        values = cut(name)
        write(SEEDS / f"{name}.gguf", values)
        if name == "spm":
            write(SEEDS / "big-endian.gguf", values, gguf.GGUFEndian.BIG)
            values["tokenizer.ggml.model"] = (gguf.GGUFValueType.STRING, "rwkv")
            values["tokenizer.ggml.tokens"][1][0] = "\\n"
            write(SEEDS / "rwkv.gguf", values)


if __name__ == "__main__":
    main()
