"""`ggtok.corpus.build`: from a call's arguments to settings that do not contradict each other."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from operator import index as as_int
from typing import Any, get_args

from ..chat.prompts import fim_ids
from ..chat.templates import chosen
from ..errors import CorpusError
from ..tokenizer.arguments import file_name, items_of, mapping, one_of
from ..tokenizer.base import BUILTIN, BaseTokenizer
from ..tokenizer.findings import Finding, warn_of
from ..tokenizer.numbers import at_least, num_threads
from ..tokenizer.seam import users_class
from .chats import warn_of_found
from .continuing import Options
from .folder import Folder, folder_of
from .manifest import Manifest
from .overview import Info
from .packages import check_packages
from .plan import Part
from .reading import read
from .run import Progress, run
from .settings import (
    MOST_PACK,
    Compression,
    Encoding,
    Format,
    InputFormat,
    Masks,
    Names,
    Nulls,
    Reading,
    Settings,
    TooLongOrSplit,
    Writing,
    encoding_of,
    names_of,
)
from .shapes import PAIR
from .shard import Job
from .sources import STANDARD_INPUT, Input, inputs
from .trainers import TRAINERS, Trainer
from .writing import formats_with, writer_of

LEAST_SHARD = 1 << 16
"""Bytes of input per shard, at the least: smaller ones would be all overhead."""

SHARDS, FEW, MANY = 16, 8 << 20, 128 << 20
"""How many shards are made, and the fewest and most bytes of input of each: enough for all cores to end together."""

TokenizerOrPath = BaseTokenizer | str | os.PathLike[str]


def build(
    sources: Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    tokenizer: TokenizerOrPath,
    format: Format,
    field: Names = "text",
    messages: Names | None = None,
    tools: str | None = None,
    template: str | None = None,
    template_text: str | None = None,
    variables: Mapping[str, Any] | None = None,
    mask: Masks = "turn",
    shape: str | None = None,
    date: str | None = None,
    input_format: InputFormat | None = None,
    keep: Iterable[str] = (),
    id_field: str | None = None,
    nulls: Nulls = "error",
    skip_bad: bool = False,
    add_special: bool = True,
    parse_special: bool = False,
    append_eos: bool = False,
    max_length: int | None = None,
    too_long: TooLongOrSplit = "cut",
    overlap: int = 0,
    fim: float = 0.0,
    fim_spm: float = 0.5,
    weights: Mapping[Any, float] | None = None,
    token_weights: bool = False,
    budget: int | None = None,
    validation: float = 0.0,
    shuffle: int | None = None,
    pack: int | None = None,
    pad_id: int | None = None,
    attention_mask: bool = False,
    trainer: str | None = None,
    compression: Compression | None = None,
    shard_size: int | None = None,
    part: tuple[int, int] | None = None,
    max_bad: float | None = None,
    rebuild: bool = False,
    rehash: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Info:
    """Encodes files into training data, in a folder that a run can be stopped in and continued at any time.

    The work is cut into shards. A shard is written under another name, flushed, renamed and then noted in a journal; on
    a store, it is uploaded as whole objects. At the end, `manifest.json` names the tokenizer, all settings, each input
    and each shard, with hashes. The same call again makes the shards that are missing. However often a run was stopped
    or killed, and whatever the number of threads, the files are the same, byte for byte.

    If inputs were added, removed or changed since, or bad rows are to be skipped now, the shards of the other inputs
    are kept. What is new is in further shards, so the order of documents may differ from a build of all at once. With
    `shuffle` or `budget` all shards depend on all inputs, and only `rebuild` helps.

    Args:
        sources: Files, folders (all files in them with a known ending), patterns such as `data/*.jsonl.gz`, "-" for
            standard input, or URLs of these, such as `s3://bucket/data/*.parquet` or
            `hf://datasets/owner/name`. Documents keep their order; the files of a folder or pattern are sorted by name.
        output: The folder, new, empty, or of the same corpus; or a URL of one, such as `s3://bucket/tokens`.
        tokenizer: A tokenizer, a model as `Tokenizer.from_model` takes it, or the name of an embedded vocabulary.
        format: "parquet", "arrow", "megatron", "datatrove" or "flat".
        field: The column or JSON field that holds the text, or several, whose texts are joined by blank lines. A path
            such as `doc.text` leads through objects and structs.
        messages: Instead of `field`, the column or JSON field with a conversation, a list of messages. It is rendered
            by the file's chat template as `encode_chat` does, and `assistant_mask` marks what the assistant wrote.
            With `shape`, its fields if they are called otherwise, in that order.
        tools: With `messages`: the column or field with the tools of each conversation.
        template: With `messages`: the name of one of the tokenizer's templates, or "chatml", as in `encode_chat`.
        template_text: With `messages`: a chat template in place of the tokenizer's.
        variables: With `messages`: variables of the template, such as `{"enable_thinking": False}`.
        mask: With `messages`: what the mask covers: "turn" or "content", as in `encode_chat`.
        shape: How rows hold conversations: "messages" (a list, with the names of OpenAI or ShareGPT), "sharegpt" (the
            same under `conversations`), "completion" (`prompt` and `completion`, each a text or messages), "alpaca"
            (`instruction`, `input` and `output`) or "preference" (`chosen`, `rejected` and `prompt`, each a text or
            messages). Rows of the last are written as `prompt_ids`, `chosen_ids` and `rejected_ids`.
        date: With `messages`: the day that a template is told, such as "2026-11-30". Default: the day of the first run.
        input_format: "text" (a document per file), "lines" (a document per line), "jsonl", "json" (an array of
            objects), "csv", "tsv", "parquet" or "arrow". Default: what the ending of each file says.
        keep: Columns or fields to carry over ("parquet" and "arrow"). JSON values that are not strings become their
            JSON text.
        id_field: The column or field with the name of each document, for the index of "flat".
        nulls: What a null is: "error" (a bad row), "skip" (no document), or "empty" (an empty document).
        skip_bad: Whether bad rows go to a separate file, `*.rejected.jsonl`, with the reason. Otherwise the first one
            stops the run. From where a file is damaged, the rest of it is one bad row.
        add_special: Whether BOS, EOS and SEP are added by the vocabulary's own rule, as in `encode`.
        parse_special: Whether control tokens written in a text are read as tokens, as in `encode`.
        append_eos: Whether every document ends with EOS, also if the vocabulary's rule does not add it.
        max_length: The most tokens of a document.
        too_long: Whether longer ones are "cut" after `max_length` tokens, left out ("drop"), or cut into as many pieces
            as it takes ("split"). All are counted.
        overlap: With "split": how many tokens, at most half of `max_length`, a piece repeats from the one before. They
            are not to be learned a second time: `assistant_mask` is 0 for them, and labels are -100.
        fim: The share of documents to fill in the middle of, by the vocabulary's own tokens: cut at two places between
            characters, into a prefix, a suffix and a middle after both. The text and the seed of `shuffle` decide. A
            document that would be longer than `max_length` stays as it is.
        fim_spm: The share of those in the order suffix, prefix, middle (SPM) instead of prefix, suffix, middle (PSM).
        weights: How often the documents of a source are read, by the source as it is named in `sources`: with 2.5 all
            of them twice, and a sample of half of them a third time. Default: 1. The seed of `shuffle` also chooses the
            sample.
        token_weights: Whether weights are the proportions of the sources in the tokens to train with, such as 30 and
            70. Then each source must have one, and all documents are encoded once before, to count their tokens. There
            are as many tokens as `budget` says, otherwise as many as can be without reading a document twice.
        budget: The number of tokens after which the corpus ends, with the shard that reaches it. Give `shuffle` too, so
            that it is a sample of all inputs.
        validation: The share of documents, such as 0.005, that go to files called `val-*` instead. A hash of a
            document's text decides, so a text is never in both parts, and no other setting changes its part. Weights do
            not repeat these documents.
        shuffle: A seed: pieces of the inputs are shuffled, and then documents within a buffer. The order depends on
            nothing else. Compressed JSON Lines are unpacked into a temporary folder for that.
        pack: Pack documents into sequences of this length, with their boundaries ("parquet" and "arrow").
        pad_id: What fills packed sequences. Default: the vocabulary's padding token, else its EOS.
        attention_mask: Whether to write a mask of the tokens that are not padding ("parquet" and "arrow").
        trainer: Whose columns to write ("parquet" and "arrow"): "trl", "axolotl" or "torchtune". A token that is not to
            be learned has the label -100.
        compression: "zstd", "lz4", "snappy" or "none" (the default), of Parquet and Arrow. Compressed tokens take a
            third of the bytes, and a third more time.
        shard_size: Bytes of input per shard, as far as documents, row groups and compressed files allow. Default: a
            sixteenth of the inputs, but at least 8 MiB and at most 128 MiB.
        part: `(3, 10)` takes the third of ten parts of the inputs: each job of a cluster takes one, with the same
            inputs and another folder. Short inputs are divided by their names, long ones by pieces too, so more inputs
            change nothing for those that were there.
        max_bad: The most bad rows: an `int`, or a `float` for a share of all rows. If there are more, the run fails as
            soon as that is certain; the shards are kept. For a share, the lines of files are counted first, and if
            there are inputs whose rows are not known (compressed ones, CSV, JSON arrays), it is compared at the end.
        rebuild: Whether all shards are made anew if the inputs or settings do not let them be kept.
        rehash: Whether the documents of all finished shards are read and compared. Otherwise this is so for inputs
            whose size, time or sample (64 KiB of the start, middle and end) has changed.
        threads: Shards that are made at once. Default: the number of cores that this process may use.
        progress: Called several times a second with a `State`: bytes, documents, tokens, shards.

    Returns:
        What the folder holds.

    Raises:
        CorpusError: An input is missing or damaged, a row is bad, all rows are bad or more than `max_bad`, the folder
            holds something else or a corpus of other settings, settings contradict each other, or a file cannot be
            written. The message names the file and row.
        DependencyError: pyarrow, numpy or xxhash is not installed: `pip install 'ggtok[corpus]'`; or fsspec's package
            for a URL is not: `pip install 'ggtok[remote]'`.
        GgtokError: The tokenizer cannot be opened.
        TypeError: An argument has the wrong type.

    Memory is bounded whatever the corpus: per thread, a few blocks of 4 MB or the longest document, and the buffer of
    the writer (16 MiB for "parquet").

    >>> import ggtok, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "in.jsonl").write_text('{"text": "one text"}\\n{"text": "What is LoRA?"}\\n')
    >>> info = ggtok.corpus.build([folder / "in.jsonl"], folder / "out", tokenizer="bpe", format="parquet")
    >>> info.documents, info.tokens
    (2, 8)
    """
    for name, value, known in (
        ("format", format, Format),
        ("input_format", input_format, (None, *get_args(InputFormat))),
        ("nulls", nulls, Nulls),
        ("compression", compression, (None, *get_args(Compression))),
        ("trainer", trainer, (None, *TRAINERS)),
    ):
        one_of(name, value, known, CorpusError)
    sources = [os.fsdecode(file_name(source)) for source in items_of("sources", sources, "files")]
    check_packages("xxhash")
    tokenizer = opened(tokenizer)
    kept = tuple(dict.fromkeys(items_of("keep", keep, "names")))
    first, *joined = names_of("field", field)
    for name, is_given, trait in (
        ("keep", bool(kept), "is_table"),
        ("pack", pack is not None, "is_table"),
        ("attention_mask", attention_mask, "is_table"),
        ("trainer", trainer is not None, "is_table"),
        ("compression", compression is not None, "is_table"),
        ("id_field", id_field is not None, "has_index"),
        (f"shape={PAIR!r}", shape == PAIR, "is_table"),
    ):
        if is_given and not getattr(writer_of(format), trait):
            raise CorpusError(f"{name} is for the {formats_with(trait)}: {format} has no place for it")
    if (format, compression) == ("arrow", "snappy"):
        raise CorpusError("Arrow files can be compressed with zstd and lz4, not with snappy")
    if too_long == "split" and {first, *joined} & {*kept}:
        raise CorpusError("split repeats the columns that are kept in each piece, so keep cannot name the text")
    if pack is not None and kept:
        raise CorpusError("pack puts several documents into a row, so keep cannot carry columns over")
    if (bound := _bound(max_bad)) is not None and not skip_bad:
        raise CorpusError("max_bad is for rows that are skipped: give skip_bad too")
    columns_of = TRAINERS.get(trainer or "", Trainer())
    if pack is not None and trainer is not None and columns_of.lengths is None:
        raise CorpusError(f"{trainer} packs documents itself: leave pack out")
    if pad_id is not None and pack is None:
        raise CorpusError("pad_id is for packed sequences: give pack too")
    if pack is not None:
        pack = at_least(1, pack, "pack")
        if pack > MOST_PACK:
            raise CorpusError(f"pack must be at most {MOST_PACK}, not {pack}")
        pad_id = _padding(tokenizer, pad_id)
    unpaired = {"pack": pack is not None, "attention_mask": attention_mask, "trainer": trainer not in (None, "trl")}
    unpaired["max_length without too_long='drop'"] = max_length is not None and too_long != "drop"
    if shape == PAIR and (wrong := next((name for name, is_given in unpaired.items() if is_given), None)):
        raise CorpusError(f"pairs cannot be written with this: {wrong}")
    folder = folder_of(os.fsdecode(file_name(output)))
    chat = tools, template, template_text, variables, mask, shape, date
    special = add_special, parse_special, append_eos
    encoding = encoding_of(first, messages, chat, special, max_length, too_long, overlap)
    if not (0 <= fim <= 1 and 0 <= fim_spm <= 1):
        raise CorpusError(f"fim and fim_spm must be shares from 0 to 1, such as 0.5, not {fim} and {fim_spm}")
    if fim:
        fim_ids(tokenizer)  # raises if it has none
        if encoding.is_chat:
            raise CorpusError("fim is for texts: conversations have no middle to fill in")
        encoding = replace(encoding, fim=float(fim), fim_spm=float(fim_spm), fim_seed=as_int(shuffle or 0))
    if encoding.is_chat:
        encoding = replace(encoding, date=date or _date(tokenizer, encoding, folder))
    read_too = (*kept, *(name for name in (id_field, tools) if name))
    columns = tuple(name for name in dict.fromkeys(read_too) if name != encoding.field)
    given = {os.fsdecode(file_name(name)): weight for name, weight in mapping("weights", weights or {}).items()}
    found = inputs(sources, format=input_format, without=folder.at(), weights=given)
    if not 0 <= validation < 1:
        raise CorpusError(f"validation must be a share from 0 to 1, such as 0.005, not {validation}")
    shares: tuple[tuple[str, float], ...] = ()
    if token_weights:
        if part is not None or STANDARD_INPUT in sources or {*given} != {each.source for each in found}:
            raise CorpusError("token_weights need a weight for each source, and all inputs: no part, no standard input")
        shares = tuple((name, weight / sum(given.values())) for name, weight in given.items())
    name = str(tokenizer.metadata.get("general.name", ""))
    has_mask = encoding.is_chat or encoding.overlap > 0
    kind = format, tokenizer.vocab_size, attention_mask or columns_of.attention_mask, has_mask
    settings = Settings(
        Reading(encoding.field, encoding.is_chat, columns, nulls, encoding.others or tuple(joined)),
        encoding,
        Writing(*kind, kept, id_field, pack, pad_id, compression, name, trainer, encoding.is_pair),
        input_format,
        _shard_size(found) if shard_size is None else at_least(LEAST_SHARD, shard_size, "shard_size"),
        None if shuffle is None else as_int(shuffle),
        skip_bad,
        float(validation),
        None if budget is None else at_least(1, budget, "budget"),
        shares,
    )
    _warn_of_absent(found, settings.reading)
    job = Job(folder, found, settings, tokenizer, 1, part=None if part is None else _part(part, found))
    options = Options(rebuild, rehash, bound, keeps_shard_size=shard_size is None)
    manifest = run(job, num_threads(threads), progress or (lambda _: None), options)
    sums = manifest.sums()
    if settings.budget is not None and sums.tokens < settings.budget:
        message = f"all documents together have fewer tokens than the budget of {settings.budget:,}"
        warn_of(Finding("budget-not-reached", "warning", message, "give sources a greater weight, or add some"))
    warn_of_found(sums.found)
    return Info(folder, manifest)


def _shard_size(found: list[Input]) -> int:
    """The default size. It depends on the inputs alone."""
    sizes = [input.size for input in found]
    return MANY if None in sizes else max(FEW, min(sum(size or 0 for size in sizes) // SHARDS, MANY))


def _part(part: Iterable[int], found: list[Input]) -> Part:
    """The entry of a part. Raises `CorpusError` if there is none of this number, or if standard input is read."""
    numbers = [at_least(1, each, "part") for each in items_of("part", part, "numbers")]
    if len(numbers) != 2 or numbers[0] > numbers[1]:
        raise CorpusError(f"part must be a number from 1 and how many there are, such as (1, 10), not {part}")
    if any(input.size is None for input in found):
        raise CorpusError("standard input cannot be divided into parts")
    names = "\0".join(sorted(input.name for input in found))
    return Part(numbers[0], numbers[1], len(found), sha256(names.encode()).hexdigest())


def _bound(max_bad: float | None) -> float | None:
    """The most bad rows. Raises `CorpusError` if it is out of range."""
    if not isinstance(max_bad, float):
        return None if max_bad is None else at_least(0, max_bad, "max_bad")
    if not 0 <= max_bad <= 1:
        raise CorpusError(f"max_bad must be a share from 0 to 1, or a number of rows, not {max_bad}")
    return max_bad


def _warn_of_absent(found: list[Input], reading: Reading) -> None:
    """Warns of fields to keep that no document at the start of the first JSON Lines file has: they may be misspelt."""
    input = next((input for input in found if input.format == "jsonl" and input.size is not None), None)
    if input is None or not (reading.columns or reading.is_chat):
        return
    looked = replace(reading, columns=(*reading.columns, *({"tools"} - {*reading.columns} if reading.is_chat else ())))
    if (block := next(read(input, 0, None, 1, looked), None)) is None:
        return
    if looked != reading and block.table.column("tools").null_count < block.table.num_rows:
        message = f"documents of {input.name} have a field 'tools', and it is left out"
        warn_of(Finding("tools-absent", "warning", message, "tools='tools' gives it to the template"))
    for name in reading.columns:
        if 0 < block.table.num_rows == block.table.column(name).null_count:
            message = f"none of the first {block.table.num_rows:,} documents of {input.name} has a field {name!r}"
            warn_of(Finding("field-absent", "warning", message, "check its spelling"))


def opened(tokenizer: TokenizerOrPath) -> BaseTokenizer:
    """A tokenizer that was given as such, by its path or name, or by the name of an embedded vocabulary."""
    if isinstance(tokenizer, BaseTokenizer):
        return tokenizer
    cls = users_class()
    opened: BaseTokenizer = cls.builtin(tokenizer) if tokenizer in BUILTIN else cls.from_model(tokenizer)
    return opened


def _date(tokenizer: BaseTokenizer, encoding: Encoding, folder: Folder) -> str | None:
    """The day that a template is told: that of the run that began the folder, or today. `None` if it asks for none."""
    if (before := Manifest.read(folder)) is not None:
        return before.settings.encoding.date
    names = tokenizer.metadata, encoding.template, encoding.template_text
    templates = "".join(chosen(*names, tools).text for tools in (False, True))
    return time.strftime("%Y-%m-%d") if re.search("strftime_now|datetime|date_string", templates) else None


def _padding(tokenizer: BaseTokenizer, pad_id: int | None) -> int:
    """The id that fills packed sequences."""
    vocab = tokenizer.vocab
    found = next((id for id in (pad_id, vocab.pad_id, vocab.eos_id) if id is not None), None)
    if found is None:
        raise CorpusError("the vocabulary has neither a padding token nor EOS: give pad_id")
    tokenizer.piece(found)  # raises if it is not a token
    return as_int(found)
