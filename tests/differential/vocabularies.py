"""What to open: every vocabulary by a name that identifies it, and random overrides of its metadata.

`llama-bpe` is a file of the shared folder, `builtin:spm` one of the wheel's own, `pre:qwen2` gpt-2, or the
wheel's `bpe` without that folder, under another pre-tokenizer, `small:unigram:17` a generated one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random

from ggtok.lab.verify.answerers import FIM_SLOTS

from . import small
from .paths import ROOT, shared

BUILTIN = ROOT / "python" / "ggtok" / "vocabularies"
FLAG_KEYS = [
    *(f"tokenizer.ggml.{key}" for key in ("add_bos_token", "add_eos_token", "add_sep_token", "add_space_prefix")),
    *(f"tokenizer.ggml.{key}" for key in ("remove_extra_whitespaces", "normalizer.lowercase")),
    "tokenizer.ggml.normalizer.strip_accents",
]
OLD_FIM_SLOTS = ["prefix", "suffix", "middle"]
ID_KEYS = [
    f"tokenizer.ggml.{name}_token_id"
    for name in ["bos", "eos", "eot", "eom", "unknown", "seperator", "padding", "mask", *FIM_SLOTS, *OLD_FIM_SLOTS]
]
MODELS = ["gpt2", "llama", "bert", "t5", "plamo2", "gemma4", "whitespace", "hybriddna", "test", "none", "unheard-of"]
NAMES = ["Phi-3 mini", "modern-bert", "other"]
ARCHITECTURES = ["nomic-bert-moe", "jina-bert-v3", "llama"]


@dataclass(frozen=True)
class Target:
    """A vocabulary's name and the overrides to open it with."""

    name: str
    overrides: dict[str, bool | int | float | str] = field(default_factory=dict)

    def path(self, directory: Path) -> Path:
        """The file to open; a generated one is written into `directory` first."""
        scheme, _, rest = self.name.rpartition(":")
        if scheme == "builtin":
            return BUILTIN / f"{rest}.gguf"
        if scheme == "pre":
            file = shared() / "vocabs" / "gpt-2.gguf"
            return file if file.exists() else BUILTIN / "bpe.gguf"
        if scheme.startswith("small:"):
            kind, seed = scheme.removeprefix("small:"), int(rest)
            path = directory / f"{kind}-{seed}.gguf"
            if not path.exists():
                small.write(kind, seed, path)
            return path
        path = shared() / "vocabs" / f"{self.name}.gguf"
        if not path.exists():
            raise FileNotFoundError(f"no vocabulary is called {self.name!r}")
        return path

    def all_overrides(self) -> dict[str, bool | int | float | str]:
        """The overrides together with the one that the name stands for."""
        scheme, _, rest = self.name.rpartition(":")
        return {"tokenizer.ggml.pre": rest, **self.overrides} if scheme == "pre" else dict(self.overrides)


def pre_tokenizer_names() -> list[str]:
    """Every value of `tokenizer.ggml.pre` that llama.cpp or ggtok knows."""
    names = set()
    with suppress(FileNotFoundError):
        names |= set(json.loads((shared() / "reference" / "pretokenizers.json").read_text("utf-8"))["pre"])
    with suppress(ImportError):
        from ggtok import _ggtok

        names |= set(_ggtok.pretokenizers())
    return sorted(names)


def random_overrides(rng: Random) -> dict[str, bool | int | float | str]:
    """A few flags; now and then special ids, in range or not, another kind, or a name that has its own rules."""
    overrides: dict[str, bool | int | float | str] = {
        key: rng.random() < 0.5 for key in FLAG_KEYS if rng.random() < 0.4
    }
    if rng.random() < 0.3:
        for key in rng.sample(ID_KEYS, rng.randint(1, 3)):
            overrides[key] = rng.choice([rng.randrange(200), rng.randrange(400_000)])
    if rng.random() < 0.2:
        overrides["tokenizer.ggml.pre"] = rng.choice([*pre_tokenizer_names(), "unheard-of", ""])
    if rng.random() < 0.05:
        overrides["tokenizer.ggml.model"] = rng.choice(MODELS)
    if rng.random() < 0.1:
        overrides["general.name"] = rng.choice(NAMES)
    if rng.random() < 0.05:
        overrides["general.architecture"] = rng.choice(ARCHITECTURES)
    return overrides


def deck(rng: Random) -> list[Target]:
    """One pass over everything: each name once as it is, each file once with overrides, and some small ones."""
    files = [*(path.stem for path in sorted((shared() / "vocabs").glob("*.gguf")))]
    files += [f"builtin:{path.stem}" for path in sorted(BUILTIN.glob("*.gguf"))]
    pre = [f"pre:{name}" for name in pre_tokenizer_names()] if "gpt-2" in files else []
    small_ones = [f"small:{kind}:{rng.randrange(1_000_000)}" for kind in small.KINDS for _ in range(9)]
    targets = [Target(name) for name in [*files, *pre, *small_ones]]
    some = rng.sample(pre, min(20, len(pre)))
    targets += [Target(name, random_overrides(rng)) for name in [*files, *some, *small_ones]]
    rng.shuffle(targets)
    return targets


def targets(seed: int, pattern: str = "*") -> Iterator[Target]:
    """Endless shuffled passes over what matches the pattern, or over the one vocabulary that it names."""
    cycle = 0
    while True:
        rng = Random(f"{seed}/deck/{cycle}")
        chosen = [target for target in deck(rng) if fnmatchcase(target.name, pattern)]
        yield from chosen or [Target(pattern), Target(pattern, random_overrides(rng))]
        cycle += 1
