"""From what the user names to the list of inputs: files, patterns such as `data/*.jsonl.gz`, folders, standard input.

Inputs keep the order of the arguments; the files of a folder or a pattern are sorted by name. Every input is a
different file: a file that is named twice, by whatever spelling or link, is an error, because its documents would count
twice.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CorpusError
from .names import nearest
from .packages import pa
from .remote import Checked, explained, is_url, listed, located, normal
from .settings import InputFormat

STANDARD_INPUT = "-"

MOST_PASSES = 100
"""More is a mistake: past about 40 passes, a document that is read again teaches nothing (Muennighoff et al. 2023)."""

TEXTS = """
    .txt .text .md .markdown .rst .tex .html .htm .xml .yaml .yml .toml .ini .cfg .log .py .pyi .c .h .cc .cpp .hpp .cu
    .rs .go .java .kt .scala .js .mjs .ts .tsx .jsx .css .rb .php .pl .lua .r .jl .hs .ml .swift .cs .sh .sql
"""


class Kind(NamedTuple):
    """A format of inputs."""

    module: str
    """Of `reading`. It has `read`, and that of a table `parts`: where a file can be cut."""
    endings: tuple[str, ...] = ()
    """What files are called."""
    is_table: bool = False
    """Whether a file has columns and is read at any offset: it cannot be a pipe or compressed as a whole."""
    has_lines: bool = False
    """Whether a row is a line, so that a file can be cut after any of them."""


KINDS: dict[InputFormat, Kind] = {
    "text": Kind("lines", tuple(TEXTS.split())),
    "lines": Kind("lines", has_lines=True),
    "jsonl": Kind("lines", (".jsonl", ".ndjson", ".jsonlines"), has_lines=True),
    "json": Kind("array", (".json",)),
    "csv": Kind("separated", (".csv",)),
    "tsv": Kind("separated", (".tsv",)),
    "parquet": Kind("parquet", (".parquet", ".pq"), is_table=True),
    "arrow": Kind("arrow", (".arrow", ".feather", ".ipc"), is_table=True),
}
"""`lines` has no ending: a text is one document unless the user says otherwise."""

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
"""pyarrow's names, by the ending after the format's."""

ARCHIVES = (".zip", ".tar", ".tgz", ".xz", ".7z", ".rar")
"""What cannot be read, whatever it holds."""

FORMAT_OF = {ending: format for format, kind in KINDS.items() for ending in kind.endings}


@dataclass(frozen=True, slots=True)
class Input:
    """A file with documents, or standard input. A manifest lists them with all fields but `source`."""

    name: str
    """The path as it was given, at first, with forward slashes; "-" for standard input."""
    path: str
    """Where it is; in a manifest, as seen from the folder of the corpus."""
    format: InputFormat
    compression: str | None
    """pyarrow's name of it."""
    size: int | None
    """Bytes; `None` for standard input, as are the next two."""
    time: int | None = None
    """When it was last changed, in nanoseconds. A survey finds it, and the sample."""
    sample: str | None = None
    """SHA-256 of its start, middle and end. What was read of it is hashed by shard."""
    weight: float = 1.0
    """How often its documents are read; of a fraction, a sample of them."""
    source: str = ""
    """What the user named to have it read: the file, or its folder or pattern."""

    @property
    def content(self) -> tuple[object, ...]:
        """What is the same for the same file in another place."""
        return self.format, self.compression, self.size, self.sample, self.weight

    def open(self) -> Any:
        """The file, to be read from any place. Raises `OSError` if it cannot be opened."""
        if not is_url(self.path):
            return pa.OSFile(self.path)
        files, path = located(self.path)
        with explained(self.path):
            return pa.PythonFile(Checked(files.open(path, "rb"), self.path, self.size or 0), "r")

    def status(self) -> tuple[int, int]:
        """Its size and the time of its last change, in nanoseconds; of an input on a store the size alone, and 0.

        Raises `CorpusError` if it does not exist.
        """
        try:
            if is_url(self.path):
                files, path = located(self.path)
                with explained(self.name):
                    return files.info(path)["size"] or 0, 0
            status = os.stat(self.path)
        except OSError as error:
            raise CorpusError(f"it cannot be read: {error.strerror}", source=self.name) from error
        return status.st_size, status.st_mtime_ns


def inputs(
    sources: Iterable[str | os.PathLike[str]],
    *,
    format: InputFormat | None = None,
    without: str | os.PathLike[str] | None = None,
    weights: Mapping[str, float] | None = None,
) -> list[Input]:
    """The inputs that some sources stand for.

    Args:
        sources: Files; patterns, unless a file has that very name; folders, whose files with known endings are taken,
            also in folders below, except hidden ones; "-" for standard input.
        format: The format of all of them. Default: by the ending of each.
        without: The output folder. Files in it are not found in folders and by patterns.
        weights: The weights of some of the sources.

    Raises:
        CorpusError: A source does not exist, cannot be read or stands for nothing; a format is unknown; a file comes
            twice; there are no sources; a weight is out of range or of no source.
    """
    names, weights = [os.fspath(source) for source in sources], weights or {}
    for name, weight in weights.items():
        if name not in names:
            raise CorpusError(f"a weight is for {name!r}, which is not one of the sources{nearest(name, tuple(names))}")
        most = 1 if name == STANDARD_INPUT else MOST_PASSES  # which can be read only once
        if not 0 < weight <= most:
            raise CorpusError(f"its weight must be more than 0 and at most {most}, not {weight}", source=name)
    output = None if without is None else normal(name) if is_url(name := os.fspath(without)) else os.path.realpath(name)
    found: list[Input] = []
    seen: dict[tuple[int | str, int], str] = {}
    for source in names:
        for each in _of_source(source, format, output):
            key: tuple[int | str, int] = (each.path, -1)
            if each.size is not None and not is_url(each.path):
                status = os.stat(each.path)
                key = (status.st_dev, status.st_ino)
            if key in seen:
                also = "" if seen[key] == each.name else f", once as {seen[key]}"
                raise CorpusError(f"this file is named twice{also}: its documents would count twice", source=each.name)
            seen[key] = each.name
            found.append(replace(each, weight=float(weights.get(source, 1)), source=source))
    if not found:
        raise CorpusError("there are no inputs: name files, folders or patterns")
    return found


def _of_source(source: str, format: InputFormat | None, output: str | None) -> Iterator[Input]:
    """The inputs that one source stands for."""
    import glob

    if source == STANDARD_INPUT:
        if format is None:
            raise CorpusError('standard input ("-") has no name that tells its format: choose it with input_format')
        if KINDS[format].is_table:
            raise CorpusError(f"{format} cannot be read from standard input: name the file")
        yield Input(STANDARD_INPUT, STANDARD_INPUT, format, None, None)
    elif is_url(source):
        for url, size in listed(source).items():
            if not url.startswith(f"{output}/") and (url == source or _is_of(url, format)):
                yield _known(url, url, size, format)
    elif os.path.isdir(source):
        yield from _of_folder(source, format, output)
    elif os.path.lexists(source) or not glob.has_magic(source):
        if output is not None and _is_below(source, output):
            raise CorpusError("this file is in the output folder", source=_name(source))
        yield _of_file(source, format)
    else:
        paths = sorted(path for path in glob.iglob(source, recursive=True) if not _is_below(path, output))
        if not paths:
            raise CorpusError("no file has this name, and none matches it as a pattern", source=_name(source))
        for path in paths:
            if not os.path.isdir(path):
                yield _of_file(path, format)
            elif "**" not in source:  # else its files match too
                yield from _of_folder(path, format, output)


def _of_folder(folder: str, format: InputFormat | None, output: str | None) -> list[Input]:
    """The files of a folder and of those below it, except hidden ones and those of other formats.

    A folder that links lead to again is not entered again.
    """

    def fail(error: OSError) -> None:
        raise CorpusError(f"this folder cannot be read: {error.strerror}", source=_name(str(error.filename)))

    found: list[Input] = []
    entered: set[tuple[int, int]] = set()
    for place, folders, files in os.walk(folder, followlinks=True, onerror=fail):
        status = os.stat(place)
        if (status.st_dev, status.st_ino) in entered or _is_below(place, output):
            folders.clear()
            continue
        entered.add((status.st_dev, status.st_ino))
        folders[:] = [name for name in folders if not name.startswith(".")]
        wanted = (name for name in files if not name.startswith(".") and _is_of(name, format))
        found += [_of_file(os.path.join(place, name), format) for name in wanted]
    if not found:
        formats = KINDS if format is None else ["text" if format == "lines" else format]
        endings = [ending for each in formats for ending in KINDS[each].endings]
        shown = ", ".join([*endings[:20], *(["..."] if len(endings) > 20 else [])])
        problem = f"this folder has no files to read: looked for {shown}, also compressed"
        raise CorpusError(problem, source=_name(folder))
    names = {each.format == "text": each.name for each in reversed(found)}
    if format is None and len(names) == 2:
        problem = f"this folder has texts, such as {names[True]}, and tables, such as {names[False]}"
        raise CorpusError(f"{problem}: choose which with input_format", source=_name(folder))
    return sorted(found, key=lambda each: each.name)


def _is_of(name: str, format: InputFormat | None) -> bool:
    """Whether a file of a folder is read. With a format, names without a known ending are read too."""
    ending = endings(name)[0]
    known = FORMAT_OF.get(ending)
    if format is None or ending in ARCHIVES:
        return known not in (None, "json")  # which is often about the others
    return known is None or known == format or (known == "text" and format == "lines")


def _of_file(path: str, format: InputFormat | None) -> Input:
    """The input that a file is."""
    name = _name(path)
    try:
        status = os.stat(path)
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        problem = _missing(path) if is_missing else f"this file cannot be read: {error.strerror}"
        raise CorpusError(problem, source=name) from error
    if not stat.S_ISREG(status.st_mode):
        raise CorpusError('this is not a file but a device or pipe: redirect it and name "-"', source=name)
    if not os.access(path, os.R_OK):
        raise CorpusError("permission to read this file is denied", source=name)
    return _known(name, path, status.st_size, format)


def _known(name: str, path: str, size: int, format: InputFormat | None) -> Input:
    """An input of a format that is given, or that its name tells."""
    ending, compression = endings(path)
    if ending in ARCHIVES:
        raise CorpusError(f"{ending} files cannot be read: unpack it first", source=name)
    chosen = format or FORMAT_OF.get(ending)
    if chosen is None:
        *others, last = KINDS
        of = f"the ending {ending!r} is not known" if ending else "a name without an ending does not tell the format"
        raise CorpusError(f"{of}: choose input_format {', '.join(others)} or {last}", source=name)
    if compression and KINDS[chosen].is_table:
        raise CorpusError(f"a {chosen} file cannot be read inside {compression}: unpack it first", source=name)
    return Input(name, path, chosen, compression, size)


def format_of_rows(path: str, field: str | None, rows: tuple[str, ...] = ()) -> tuple[InputFormat, str | None] | None:
    """The format of a file and its compression, by its ending. `None` for a text that is not compressed.

    Without a field, only tables and the formats `rows` have rows; any other is a text.
    """
    ending, compression = endings(path)
    format = FORMAT_OF.get(ending, "text")
    if field is None and format not in rows and not KINDS[format].is_table:
        format = "text"
    return None if format == "text" and compression is None else (format, compression)


def endings(path: str) -> tuple[str, str | None]:
    """The ending that tells the format, in lower case, and the compression."""
    stem, ending = os.path.splitext(path.lower())
    compression = COMPRESSIONS.get(ending)
    return (ending, None) if compression is None else (os.path.splitext(stem)[1], compression)


def _missing(path: str) -> str:
    folder = os.path.dirname(path) or "."
    try:
        names = tuple(sorted(os.listdir(folder)))
    except OSError:
        return "no such file, and no such folder"
    return "no such file" + nearest(os.path.basename(path), names)


def _is_below(path: str, folder: str | None) -> bool:
    """Whether a path is a folder or leads into it. `folder` is a real path."""
    if folder is None:
        return False
    real = os.path.realpath(path)
    return real == folder or real.startswith(os.path.join(folder, ""))


def _name(path: str) -> str:
    """How an input is called: a path with forward slashes, which manifests and tables can hold."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise CorpusError(f"the name of {path!r} is not UTF-8: give the file another one") from None
    return path.replace(os.sep, "/")


def path_from(folder: Path | str, input: Input) -> str:
    """Where an input is, as seen from a folder. What is on another drive, or seen from a URL, has its full path.

    Links to folders are followed: `..` leads out of what they lead to.
    """
    if input.size is None or is_url(input.path):
        return input.path
    within, name = os.path.split(input.path)
    path = os.path.join(os.path.realpath(within), name)
    with suppress(ValueError):  # another drive
        path = path if isinstance(folder, str) else os.path.relpath(path, os.path.realpath(folder))
    return _name(path)


def path_at(folder: Path | str, path: str) -> str:
    """The path or URL of an input that is there, as seen from a folder."""
    return path if is_url(path) else os.path.join(folder, path)
