"""Small random vocabularies of every kind as GGUF files: those of the property tests, drawn by a seed.

`write(kind, seed, path)` always writes the same file for the same kind and seed, and a difference replays by them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

sys.path.append(str(Path(__file__).resolve().parents[1]))

from oracles import strategies
from oracles.gguf_vocab import Vocab
from oracles.gguf_vocab import write as written

KINDS = [*strategies.KINDS, "test", "none"]


def drawn(kind: str, seed: int) -> Vocab:
    """What the strategy of a kind draws with this seed: a late one, because the first are the simplest."""
    found: list[Vocab] = []

    @seeded(seed)
    @settings(
        max_examples=9, phases=[Phase.generate], database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(strategies.KINDS[kind])
    def keep(vocab: Vocab) -> None:
        found.append(vocab)

    keep()
    return found[-1]


def metadata(kind: str, seed: int) -> dict[str, Any]:
    """What the file says; now and then nothing about scores or types."""
    rng = Random(f"{kind}/{seed}")
    if kind == "none":
        model = rng.choice(["none", "no_vocab"])
        return {"general.architecture": "llama", "llama.vocab_size": rng.randrange(40), "tokenizer.ggml.model": model}
    values = drawn("spm" if kind == "test" else kind, seed).metadata()
    if kind == "test":
        values["tokenizer.ggml.model"] = "test"
    for key in ("scores", "token_type"):
        if rng.random() < 0.1:
            del values[f"tokenizer.ggml.{key}"]
    return values


def write(kind: str, seed: int, path: Path) -> None:
    """Writes the vocabulary of this kind and seed."""
    path.write_bytes(written(metadata(kind, seed)))
