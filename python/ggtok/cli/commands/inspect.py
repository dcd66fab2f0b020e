"""The command `ggtok inspect`: what a file's tokenizer is, and its problems."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import click

from ... import Tokenizer
from ..._ggtok import merges, special_ids
from ...lab.diff import quoted
from ...tokenizer.findings import Finding
from ...tokenizer.vocab import FLAGS_READ, TokenAttribute, attributes
from ..options import Model, as_json, takes_models
from ..output import lossless, print_json
from ..table import print_pairs
from .check import opened

TEMPLATE = "tokenizer.chat_template"
FLAGS = ("add_bos", "add_eos", "add_sep")
ENCODERS = ("bos", "eos", "unk", "sep", "pad", "mask")
"""The special tokens of a model that does not generate."""


@click.command(short_help="Show what a file's tokenizer is.")
@takes_models
@as_json
def command(models: list[Model], as_json: bool) -> None:
    """Show what the tokenizer of a GGUF file is: its kind, size, special tokens and flags; what was repaired when it
    was opened, as llama.cpp does; and what ggtok check finds."""
    for number, model in enumerate(models):
        tokenizer = opened(model)
        if as_json:
            print_json(file=model.path and lossless(os.fsencode(model.path)), **facts(tokenizer))
            continue
        if number:
            print()
        print_pairs([("file", model.path or "")] * (len(models) > 1) + _rows(tokenizer))


def facts(tokenizer: Tokenizer) -> dict[str, Any]:
    """All of it, for JSON."""
    vocab, releases = tokenizer.vocab, tokenizer.releases
    return {
        "name": tokenizer.metadata.get("general.name"),
        "kind": vocab.kind,
        "model": vocab.model,
        "pre": vocab.pre,
        "size": len(vocab),
        "merges": len(merges(tokenizer)),
        "attributes": _attributes(tokenizer),
        "special": {
            name: {"id": id, "piece": lossless(tokenizer.piece(id))}
            for name, id in special_ids(tokenizer).items()
            if id is not None
        },
        "eog_ids": sorted(vocab.eog_ids),
        **{name: getattr(vocab, name) for name in FLAGS},
        "settings": dict(vocab.settings),
        "chat_templates": _templates(tokenizer),
        "llama_cpp": {name: getattr(releases, name) for name in ("opens_since", "same_since", "unclaimed")},
        "repairs": list(tokenizer.repairs),
        "findings": [finding._asdict() for finding in tokenizer.check()],
    }


def _rows(tokenizer: Tokenizer) -> list[tuple[str, str]]:
    """For people: only what applies to the kind. A row without a value is left out."""
    found, piece = facts(tokenizer), tokenizer.piece
    generates = found["kind"] != "wordpiece"
    special = {name: row["id"] for name, row in found["special"].items() if generates or name in ENCODERS}
    if "nl" in special and b"\n" not in piece(special["nl"]):
        del special["nl"]  # llama.cpp names another token where the vocabulary has no newline
    kinds = [f"{number} {name}" for name, number in found["attributes"].items()]
    rows = [("name", str(found["name"] or "")), ("kind", found["kind"]), ("pre-tokenizer", found["pre"] or "")]
    rows += [("tokens", f"{found['size']}" + f" ({', '.join(kinds)})" * bool(kinds))]
    rows += [("merges", str(found["merges"] or ""))]
    rows += [(f"{name} token", f"{id:<8}{quoted(piece(id))}") for name, id in special.items()]
    rows += [("end of generation", f"{id:<8}{quoted(piece(id))}") for id in found["eog_ids"] if generates]
    read = [*FLAGS_READ.get(found["kind"], ()), *["lowercase"] * (found["model"] == "whitespace")]
    rows += [(name, "yes" if found[name] else "no") for name in FLAGS if name in read]
    rows += [("other flags", ", ".join(name for name in read if name not in FLAGS and found["settings"][name]))]
    rows += [("chat template", ", ".join(found["chat_templates"]) or "none" * generates)]
    rows += [("llama.cpp", str(tokenizer.releases))]
    rows += [("repaired", repair) for repair in found["repairs"]]
    return rows + [("problem", str(Finding(**finding))) for finding in found["findings"]]


def _attributes(tokenizer: Tokenizer) -> dict[str, int]:
    """How many tokens have each attribute."""
    bits = Counter(attributes(tokenizer.vocab))
    counts = {each.name: sum(number for value, number in bits.items() if value & each) for each in TokenAttribute}
    return {str(name).lower(): number for name, number in counts.items() if number}


def _templates(tokenizer: Tokenizer) -> list[str]:
    """The names of the chat templates; the one without a name is "default"."""
    keys = [key for key in tokenizer.metadata if key == TEMPLATE or key.startswith(TEMPLATE + ".")]
    return [key.removeprefix(TEMPLATE)[1:] or "default" for key in keys]
