"""Draws what the pages of docs/how show of one example: four steps of each algorithm, and all its steps as a live page.

    python scripts/generate_how.py FOLDER

`docs/conf.py` runs this while the site is built, and puts what `parts.json` says of a page into it. The drawings are
those of the explain page, so both change together.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import partial
from html import escape
from pathlib import Path
from typing import NamedTuple, TypeAlias

from draw_steps import Picture, Stage, draw_all, stages
from ggtok import Tokenizer
from ggtok.lab.convert.gguf import Value, gguf_bytes
from ggtok.lab.explain.html import page, trie_page
from ggtok.lab.explain.trie import explain_trie, trie_sections

TEXT = "Hello World, unaffable naïve 👋"
"""It has something for every kind: an accent, capital letters, an affix, and a character without a token."""
CHAT = f"<|im_start|>user\n{TEXT}<|im_end|>"
WORDS = ["un", "uni", "unique", "que", "quick"]
EMBEDDED = f"This is “{TEXT}” with the embedded vocabulary `{{}}`:"
NARROW = 340
"""The width of a drawing on a phone, in pixels."""

NORMAL, UNKNOWN, BYTE = 1, 2, 6
"""Types of tokens in a GGUF file."""


Tracer: TypeAlias = "Callable[[], tuple[str, str]]"
"""Makes a trace as JSON, and its live page."""


class Step(NamedTuple):
    """A step to draw."""

    stage: str
    """A pattern that the title of its stage matches."""
    at: int | None
    """Of the stage; negative numbers count from its end. None is the stage as one step, before it is opened."""
    caption: str = ""
    """Instead of what the explain page says."""
    of: Tracer | None = None
    """Instead of the page's own trace."""


class Example(NamedTuple):
    """What a page shows."""

    name: str
    """For a reader that cannot see it."""
    intro: str
    """What is shown, as Markdown."""
    trace: Tracer
    steps: list[Step]


def traced(tok: Callable[[], Tokenizer], text: str = TEXT, parse_special: bool = False) -> tuple[str, str]:
    trace = tok().explain(text, parse_special=parse_special)
    return trace._raw.page(), page(trace)


def built() -> tuple[str, str]:
    trie, made = explain_trie(WORDS, ["unique", "unit"])
    return made, trie_page(trie.words, made, trie_sections(trie))


def rwkv() -> Tokenizer:
    """RWKV's algorithm with the tokens of the embedded BPE vocabulary."""
    pieces = dict.fromkeys(piece for piece in Tokenizer.builtin("bpe").vocab.pieces if piece)
    texts = [
        "".join(chr(byte) if 32 < byte < 127 and byte != 92 else f"\\x{byte:02x}" for byte in each) for each in pieces
    ]
    return opened("rwkv", ["<s>", *texts], [], [3] + [NORMAL] * len(texts))


def plamo2() -> Tokenizer:
    """PLaMo-2's algorithm with the tokens and scores of the embedded Unigram vocabulary."""
    tokens = {token.text.replace("▁", " "): token.score for token in Tokenizer.builtin("unigram").vocab}
    tokens = {text: score for text, score in tokens.items() if text and not text.startswith("<")}
    texts = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *tokens]
    types = [UNKNOWN] + [BYTE] * 256 + [NORMAL] * len(tokens)
    return opened("plamo2", texts, [0.0] * 257 + [*tokens.values()], types)


def opened(model: str, texts: list[str], scores: list[float], types: list[int]) -> Tokenizer:
    values: dict[str, Value] = {"model": model, "tokens": texts, "token_type": types}
    if scores:
        values["scores"] = scores
    return Tokenizer.from_gguf(gguf_bytes({f"tokenizer.ggml.{key}": value for key, value in values.items()}))


def embedded(name: str) -> Callable[[], Tokenizer]:
    return partial(Tokenizer.builtin, name)


def answer(name: str, caption: str) -> Step:
    """The tokens of the text with an embedded vocabulary."""
    return Step("Tokens", 0, caption, partial(traced, embedded(name)))


EXAMPLES = {
    "bpe": Example(
        "byte-pair encoding",
        EMBEDDED.format("bpe"),
        partial(traced, embedded("bpe")),
        [Step("Cutting", 0), Step("unaffable", 3), Step("unaffable", None), Step("👋", None)],
    ),
    "spm": Example(
        "SPM",
        EMBEDDED.format("spm"),
        partial(traced, embedded("spm")),
        [Step("Spaces", 0), Step("World", 2), Step("World", None), Step("👋", None)],
    ),
    "wordpiece": Example(
        "WordPiece",
        EMBEDDED.format("wordpiece"),
        partial(traced, embedded("wordpiece")),
        [Step("Cutting", 0), Step("unaffable", 1), Step("unaffable", None), Step("👋", None)],
    ),
    "unigram": Example(
        "Unigram",
        EMBEDDED.format("unigram"),
        partial(traced, embedded("unigram")),
        [Step("Rewriting", None), Step("unaffable", 3), Step("unaffable", None), Step("👋", None)],
    ),
    "rwkv": Example(
        "RWKV",
        f"This is “{TEXT}” with the tokens of the embedded vocabulary `bpe` in a vocabulary of RWKV:",
        partial(traced, rwkv),
        [Step("Hello", 0), Step("unaffable", 1), Step("unaffable", None), Step("👋", None)],
    ),
    "plamo2": Example(
        "PLaMo-2",
        f"This is “{TEXT}” with the tokens of the embedded vocabulary `unigram` in a vocabulary of PLaMo-2:",
        partial(traced, plamo2),
        [Step("World", 2), Step("World", None), Step("unaffable", None), Step("👋", None)],
    ),
    "special-tokens": Example(
        "special tokens",
        f"This is “{TEXT}” as a message, with `parse_special=True` and the embedded vocabulary `bpe`:",
        partial(traced, embedded("bpe"), CHAT, parse_special=True),
        [Step("Special tokens$", 0), Step("im_start", 0), Step("im_end", 0), Step("Tokens", 0)],
    ),
    "detokenizing": Example(
        "tokens and their pieces",
        f"These are the tokens of “{TEXT}” with the four embedded vocabularies:",
        partial(traced, embedded("spm")),
        [
            answer(
                "spm",
                "SPM: ▁ becomes a space, and the first one goes, because encoding put it there. Four byte "
                "tokens are 👋 together: none of them is text alone.",
            ),
            answer(
                "bpe",
                "BPE: each letter of a token's spelling stands for a byte. The bytes are joined first, and "
                "read as text then.",
            ),
            answer(
                "wordpiece", "WordPiece: ▁ becomes a space. Case and accents are lost, and so is 👋: it has no token."
            ),
            answer("unigram", "Unigram: ▁ becomes a space. 👋 is unknown, and no token stands for it."),
        ],
    ),
    "xcda": Example(
        "a double array",
        f"This is a double array of {', '.join(WORDS)}:",
        built,
        [Step("Insert un$", -1), Step("Insert unique$", 3), Step("Packed", 2), Step("Look up unit in the XCDA", -1)],
    ),
}
"""By the name of the page."""


def place(stages: list[Stage], step: Step) -> tuple[int, int | None]:
    """The position of a step. Raises `LookupError` if its stage is missing, so that the build fails."""
    for at, stage in enumerate(stages):
        if re.search(step.stage, stage.title):
            return at, step.at
    raise LookupError(f"no stage {step.stage!r} in {[stage.title for stage in stages]}")


def write(name: str, example: Example, folder: Path) -> str:
    """Writes the pictures and the live page. Returns the part of the page that shows them."""
    trace, live_page = example.trace()
    (folder / f"{name}.html").write_text(live_page, encoding="utf-8")
    drawn: dict[str, list[Step]] = {}
    for step in example.steps:
        drawn.setdefault(step.of()[0] if step.of else trace, []).append(step)
    figures: list[str] = []
    for trace, steps in drawn.items():
        found = stages(trace)
        places = [place(found, step) for step in steps]
        drawings = zip(steps, draw_all(trace, places), draw_all(trace, places, NARROW), strict=True)
        for step, wide, narrow in drawings:
            figures.append(figure(f"{name}-{len(figures) + 1}", step.caption, wide, narrow, folder))
    live = f"steps/{name}.html"
    return (
        f"{example.intro}\n\n"
        f'<iframe class="live" src="{live}" title="All steps of {example.name}"></iframe>\n\n'
        f'These are four of its steps; <a href="{live}">all of them are on a separate page</a> too:\n\n'
        f'<div class="steps">\n{"".join(figures)}</div>\n'
    )


def figure(name: str, caption: str, wide: Picture, narrow: Picture, folder: Path) -> str:
    """A picture with its caption, and another one for phones."""
    for ending, picture in (("", wide), ("-narrow", narrow)):
        (folder / f"{name}{ending}.svg").write_text(picture.svg, encoding="utf-8")
    caption = caption or wide.caption
    width, height = re.findall(r' (?:width|height)="([\d.]+)"', wide.svg)[:2]
    return (
        f"<figure>\n<figcaption>{escape(caption)}</figcaption>\n"
        f'<picture><source media="(max-width: 46em)" srcset="steps/{name}-narrow.svg">'
        f'<img src="steps/{name}.svg" width="{width}" height="{height}" loading="lazy" alt=""></picture>\n</figure>\n'
    )


def main() -> int:
    """Writes everything into a folder."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    parts = {f"how/{name}": write(name, example, folder) for name, example in EXAMPLES.items()}
    parts["explain"] = (
        f"This is one, of {EMBEDDED.format('bpe').removeprefix('This is ')}\n\n"
        '<iframe class="live" src="how/steps/bpe.html" loading="lazy" title="All steps of a text"></iframe>\n'
    )
    (folder / "parts.json").write_text(json.dumps(parts), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
