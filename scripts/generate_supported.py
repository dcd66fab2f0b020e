"""The tables of docs/supported.md, from those that the installed ggtok uses. `docs/conf.py` puts them into the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ggtok import _ggtok

ALGORITHMS = {
    "spm": "SentencePiece's byte-pair encoding: merges by score",
    "bpe": "byte-pair encoding: merges by rank",
    "wordpiece": "WordPiece: longest match within a word",
    "unigram": "Unigram: highest sum of scores",
    "rwkv": "longest match over bytes",
    "plamo2": "lowest sum of costs",
    "test": "for llama.cpp's own tests: five bytes make a token",
    "none": "no vocabulary: the file opens, and encoding raises `VocabularyError`",
}
PLAIN_BYTES = "Pieces keep their bytes, which are not spelled as GPT-2's printable characters."
FLAGS = ("clean_spaces", "ignore_merges", "add_bos", "add_sep", "escape_whitespaces")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)) + "\n"


def shown(pattern: str) -> str:
    """A pattern in printable ASCII: everything else as escapes."""
    return "".join(char if " " <= char <= "~" else char.encode("unicode_escape").decode() for char in pattern)


def pages() -> dict[str, str]:
    """The page, and the part below its introduction."""
    models, names, families = _ggtok.models(), _ggtok.pretokenizers(), _ggtok.families()
    model_rows = [(f"`{name}`", kind, ALGORITHMS[kind]) for name, kind in models.items()]
    name_rows = []
    for name, row in names.items():
        flags = [f"`{flag}`" for flag in FLAGS if row[flag]]  # type: ignore[literal-required]
        flags += [] if row["lowercase"] else ["not `lowercase`"]
        flags += [] if row["has_bos"] else ["no default BOS"]
        name_rows.append((f"`{name}`", row["family"], ", ".join(flags)))
    family_parts = []
    for name, family in families.items():
        patterns = "".join(f"    {shown(pattern)}\n" for pattern in family["patterns"])
        pieces = "" if family["byte_encode"] else f"\n{PLAIN_BYTES}\n"
        opening = f'<details id="{name}">\n<summary><code>{name}</code></summary>\n'
        family_parts.append(f"{opening}{pieces}\n{patterns or 'No pattern.' + chr(10)}\n</details>\n")
    text = f"""\
## Vocabulary types: `tokenizer.ggml.model`

{table(("value", "kind", "algorithm"), model_rows)}
`gemma4` writes spaces as `▁` and always uses its own patterns. `hybriddna` reads k-mers between `<dna>` and `</dna>`.
`whitespace` drops whitespace, and nothing merges across it.

## Pre-tokenizers: `tokenizer.ggml.pre`

{len(names)} names, {len(families)} families of patterns. If a file of kind `bpe` has no name, `default` is used, with a
warning. The flags are defaults; a file can override those that have a key.

{table(("name", "family", "flags"), name_rows)}
## Families

The patterns of a family apply one after another, each to the pieces that the one before leaves. Line ends and
characters beyond ASCII are shown as escapes.

{chr(10).join(family_parts)}"""
    return {"supported": text}
