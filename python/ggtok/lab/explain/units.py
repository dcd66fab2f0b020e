"""A trace as the units that a reader walks through: one for each piece, word or place, in named stages.

A unit is one step until it is opened; then each of its inner steps is one. `merge_units` and `choose_units` make those
of each algorithm, with the sentences of `words.json`, which the page shares. Pictures are lines of parts with a style.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ...trace import Text, Token
from .record import Record
from .tables import Span
from .utf8 import to_bytes, to_text
from .words import said

Said: TypeAlias = list[tuple[str, bool]]
"""Sentences in parts, each with whether it is emphasised."""

Line: TypeAlias = list[tuple[str, str]]
"""A line of a picture in parts, each with its style."""

VISIBLE = {code: 0x2400 + code for code in range(0x20)} | {0x0A: "↵", 0x20: "␣", 0x7F: "␡"}
"""How spaces and controls are shown."""


class Step(NamedTuple):
    """What a reader sees at once."""

    caption: Said
    picture: list[Line]
    span: Span | None = None
    """The bytes of the text that it is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A part of a stage."""

    stage: str
    """A name of `words.json`."""
    tokens: range
    """The places of the tokens that are known once it is done."""
    whole: Callable[[], Step]
    """The unit as one step."""
    length: int = 0
    """How many steps are inside; none if it does not open."""
    inside: Callable[[int], Step] | None = None
    """A step inside."""
    line: Callable[[int], str] | None = None
    """The unit on one line of so many columns, if it is worth one."""


def face(data: bytes) -> str:
    """Bytes as a reader knows them: characters, and in hexadecimal what is a part of one."""
    found = to_text(data)
    if isinstance(found, str):
        return "".join(each if each.isprintable() and each != " " else escaped(each) for each in found)
    parts, at = [""], 0
    while at < len(data):
        size = next((size for size in (1, 2, 3, 4) if isinstance(to_text(data[at : at + size]), str)), 0)
        if size:
            parts[-1] += face(data[at : at + size])
        else:
            parts += [f"{data[at]:02X}", ""]
        at += size or 1
    return " ".join(filter(None, parts))


def escaped(character: str) -> str:
    """What is shown for a character that does not print."""
    shown = VISIBLE.get(ord(character))
    if shown is not None:
        return shown if isinstance(shown, str) else chr(shown)
    return f"⟨{ord(character):04X}⟩"


def text_face(text: Text) -> str:
    """The same for a text of a trace."""
    return face(to_bytes(text))


def number(value: float | None) -> str:
    """A score or a rank, with as many digits as help."""
    if value is None:
        return "none"
    written = str(value) if isinstance(value, int) else f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")
    return written.replace("-", "\u2212")


def counted(key: str, n: int, **values: object) -> Said:
    """A sentence about a number of things: its form for none or for one, if it has that."""
    from .words import words

    ending = {0: "_none", 1: "_one"}.get(n, "")
    name = f"{key}{ending}" if f"{key}{ending}" in words()["captions"] else key
    return said(f"captions.{name}", n=f"{n:,}", **values)


def joined(*sentences: Said) -> Said:
    """Sentences one after the other, with spaces between them."""
    found: Said = []
    for sentence in sentences:
        if sentence:
            found += [(" ", False), *sentence] if found else sentence
    return found


def special_units(trace: Record) -> Iterator[Unit]:
    """The search for special tokens, if any are in the text."""
    rows = [(match, True) for match in trace.special] + [(match, False) for match in trace.unread]
    if not rows:
        return
    text = to_bytes(trace.text)

    def marked(upto: int) -> list[Line]:
        line, at = [], 0
        for match, is_read in sorted(rows[:upto], key=lambda row: row[0].start):
            line += [(face(text[at : match.start]), ""), (face(text[match.start : match.end]), _MARKS[is_read])]
            at = match.end
        return [[*line, (face(text[at:]), "")]]

    def inside(step: int) -> Step:
        if step == 0:
            return Step(said("captions.special_start"), marked(0))
        match, is_read = rows[step - 1]
        key = "captions.special_read" if is_read else "captions.special_unread"
        return Step(said(key, text=text_face(match.text), token=match.token), marked(step), (match.start, match.end))

    def whole() -> Step:
        last = inside(len(rows))
        return last._replace(caption=joined(said("captions.special_start"), last.caption))

    yield Unit(stage="special", tokens=range(0), whole=whole, length=len(rows) + 1, inside=inside)


_MARKS = {True: "won", False: "lost"}


def tokens_unit(trace: Record) -> Unit:
    """The last unit: the numbers."""

    def whole() -> Step:
        size = len(trace.code_points)
        characters = f"{size:,} character{'s' * (size != 1)}"
        caption = counted("tokens", len(trace.tokens), characters=characters)
        if trace.added_before is not None:
            caption = joined(caption, said("captions.added_before", text=text_face(trace.tokens[0].text)))
        if trace.added_after is not None:
            caption = joined(caption, said("captions.added_after", text=text_face(trace.tokens[-1].text)))
        return Step(caption, [_of_token(token) for token in trace.tokens])

    return Unit(stage="tokens", tokens=range(len(trace.tokens)), whole=whole)


def _of_token(token: Token) -> Line:
    return [(f"{token.id:>7}  ", "lost"), (text_face(token.piece or token.text), "")]
