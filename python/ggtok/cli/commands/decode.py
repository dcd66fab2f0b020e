"""The command `ggtok decode`: token ids to text, from plain numbers or from what `ggtok encode --json` writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import click

from ... import StreamDecoder
from ..inputs import PART, Source, kind, naming, parse_json, parse_json_values, sources
from ..options import DEFAULT, Model, as_json, repeatable, takes_model
from ..output import Writer, lossless, print_json

BETWEEN = bytes.maketrans(b"[],", b"   ")
"""A printed list can be pasted: brackets and commas are white space."""

COMMENT = re.compile(rb"#[^\n]*")
"""What encode writes after the ids if no model was given."""

NUMBER = re.compile(rb"[+-]?[0-9]{1,4000}")
MAX_DIGITS = 4000
"""A longer number is not an id, and no more of one is kept until its end arrives."""


@click.command(short_help="Turn token ids into text.")
@click.argument("files", nargs=-1, type=click.Path(), metavar="[FILE]...")
@repeatable("-p", "--ids", metavar="IDS", help='The ids: -p "9713 5981"')
@takes_model
@click.option("--lines", is_flag=True, help="Decode each line separately, and write one line for each.")
@click.option("--remove-special", is_flag=True, help="Remove the BOS and EOS that encoding adds.")
@click.option("--unparse-special", is_flag=True, help="Write special tokens as their text.")
@click.option("--clean-spaces", is_flag=True, help="Remove spaces before punctuation as llama_detokenize does.")
@as_json
def command(
    files: tuple[str, ...], ids: tuple[str, ...], model: Model, lines: bool, as_json: bool, **options: Any
) -> None:
    """Turn the ids in files, or in standard input, into the bytes of their text.

    What encode read comes back byte for byte, except from vocabularies that normalize texts, such as WordPiece.

    Ids are numbers separated by white space, commas or brackets, or the objects that ggtok encode --json writes.
    """
    inputs = sources(files, ids, "ids themselves are given with -p")
    tokenizer = model.open(DEFAULT)
    writer = Writer()
    for source in inputs:
        for line, numbers in _texts(source, lines):
            decoder = tokenizer.decoder(text=False, **options)
            pieces = _pieces(decoder, numbers, source.at(line))
            if as_json:
                print_json(**source.json(line), text=lossless(b"".join(pieces)), **model.json)
            else:
                for piece in pieces:
                    writer.write(piece)
                writer.write(b"\n" if lines else b"")
    if not as_json:
        writer.end()


def _pieces(decoder: StreamDecoder[bytes], numbers: Iterable[list[int]], where: str) -> Iterator[bytes]:
    """The text of ids that arrive in parts."""
    with naming(where):
        for part in numbers:
            yield decoder.push(part)
        yield decoder.flush()


def _texts(source: Source, lines: bool) -> Iterator[tuple[int | None, Iterable[list[int]]]]:
    """The ids of each text in parts, with the number of its line if it has one to itself."""
    if lines:
        for batch in source.lines():
            for line, data in batch:
                where = source.at(line)
                if data.lstrip()[:1] == b"{":
                    yield line, [_field(parse_json(data, where), where)]
                else:
                    parts = (data[start : start + PART] for start in range(0, len(data), PART))
                    yield line, _numbers_of(parts, where)
        return
    rest = source.parts()
    first = next((part for part in rest if part.strip()), b"")
    if first.lstrip()[:1] == b"{":
        for line, value in parse_json_values(first + b"".join(rest), source.name):
            yield line, [_field(value, source.at(line))]
    else:
        yield None, _numbers_of(chain((first,), rest), source.name)


def _numbers_of(parts: Iterable[bytes], where: str) -> Iterator[list[int]]:
    """The numbers in text that arrives in parts, which may end inside a number."""
    rest = b""
    for part in parts:
        words = (rest + part).translate(BETWEEN)
        end = max(words.rfind(space) for space in (b" ", b"\n", b"\t", b"\r")) + 1
        if (comment := words.rfind(b"#")) > words.rfind(b"\n"):
            end = min(end, comment)
        yield _numbers(words[:end], where)
        rest = words[end:]
        if len(rest) > MAX_DIGITS:
            break
    yield _numbers(rest, where)


def _numbers(text: bytes, where: str) -> list[int]:
    words = COMMENT.sub(b"", text).translate(BETWEEN).split()
    try:
        if b"_" not in text:
            return [int(word) for word in words]
    except ValueError:
        pass
    wrong = next(word for word in words if not NUMBER.fullmatch(word))[:40].decode("utf-8", "backslashreplace")
    raise click.ClickException(f"{where}: {wrong!r} is not a token id: ids are numbers")


def _field(value: Any, where: str) -> list[int]:
    """The ids of an object that `ggtok encode --json` wrote."""
    ids = value.get("ids") if isinstance(value, dict) else None
    if not isinstance(ids, list) or not all(type(id) is int for id in ids):
        raise click.ClickException(f'{where}: expected an object with "ids", a list of numbers, found {kind(value)}')
    return ids
