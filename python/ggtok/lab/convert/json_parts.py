"""Parts of a `tokenizer.json` and of the files beside it. What has another type than expected counts as absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Json: TypeAlias = Mapping[str, Any]

LISTS = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "post_processor": "processors"}
"""What a sequence of each component calls its steps."""


def steps(file: Json, component: str) -> list[Json]:
    """A component of a `tokenizer.json`, or those of a sequence."""
    whole = mapping(file.get(component))
    return [*map(mapping, listed(whole[LISTS[component]]))] if LISTS[component] in whole else [whole]


def kinds(found: list[Json]) -> list[object]:
    return [step.get("type") for step in found]


def mapping(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
