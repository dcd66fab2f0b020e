"""What llama.cpp's converter does for single architectures, by the table `architectures.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from .json_parts import Json, listed, mapping


class Architecture(NamedTuple):
    """What the converter knows about a model besides its tokenizer."""

    name: str | None
    config: Json
    """What is in the model's `config.json`."""
    rules: Json
    """The row of the table, with the fields that it describes."""

    @property
    def vocab_size(self) -> int | None:
        """The number of tokens that the model declares."""
        size = mapping(self.config.get("text_config")).get("vocab_size", self.config.get("vocab_size"))
        multiple = self.config.get("pad_vocab_size_multiple", 0) or self.rules.get("multiple", 1)
        if type(size) is not int or type(multiple) is not int or "multiple" not in self.rules:
            return size if type(size) is int else None
        return -(size // -multiple) * multiple


def of(config: Json, name: str | None) -> Architecture:
    """The architecture with this name, or else the one in a `config.json`."""
    text = mapping(config.get("text_config"))
    names = [name] if name else [*listed(config.get("architectures")), *listed(text.get("architectures"))]
    rules: Json = next((row for row in rows() if any(each in row["architectures"] for each in names)), {})
    found = Architecture(str(names[0]) if names else None, config, rules)
    return found._replace(rules={**rules, **rules.get("sizes", {}).get(str(found.vocab_size), {})})


def rows() -> list[Json]:
    return listed(json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))["rows"])
