"""The unit of work: Arrow tables of documents in, the same tables with a column of tokens out.

1. The column of the texts is checked: it is there, it holds texts, and texts that must be UTF-8 are.
2. Each of its chunks is encoded in place by `Tokenizer.encode_batch`.
3. Documents get an EOS, and those that are too long are cut or dropped.

Complexity: as encoding. The ids of one chunk are in memory besides the table.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from .._ggtok import encode_batch
from ..errors import ArgumentTypeError, CorpusError
from ..tokenizer.base import BaseTokenizer
from ..tokenizer.batch import Batch
from ..tokenizer.numbers import num_threads
from ..tokenizer.vocab import FLAGS_READ
from .blocks import IDS, MASK, Block, num_tokens, picked
from .chats import encode_chats, is_conversation, warn_of_found
from .infilling import infilled
from .lists import short
from .names import check_column
from .packages import pa, pc
from .pairs import lengths, separated
from .settings import Encoding, Masks, Names, TooLong, encoding_of


def encode_table(
    table: Any,
    tokenizer: BaseTokenizer,
    field: str = "text",
    *,
    messages: Names | None = None,
    tools: str | None = None,
    template: str | None = None,
    template_text: str | None = None,
    variables: Mapping[str, Any] | None = None,
    mask: Masks = "turn",
    shape: str | None = None,
    date: str | None = None,
    threads: int | None = None,
    add_special: bool = True,
    parse_special: bool = False,
    append_eos: bool = False,
    max_length: int | None = None,
    too_long: TooLong = "cut",
    ids: str = IDS,
) -> pa.Table:
    """Adds a column with the tokens of each text to an Arrow table.

    Args:
        table: A pyarrow table or record batch, or another object with the Arrow PyCapsule interface (a polars, pandas
            or DuckDB table).
        tokenizer: The tokenizer. On a worker of an engine, `TableEncoder` opens it once per process.
        field: The column of the texts: string, large_string, string_view, binary, large_binary or binary_view,
            dictionary-encoded or not. A null has no tokens, and its ids are null.
        messages: Instead of `field`, the column with a conversation: a list of messages (structs), or its JSON text.
            ShareGPT's `from` and `value` are read too. With `shape`, the names of its columns.
            The chat template renders it as `Tokenizer.encode_chat` does, on one thread, and a column
            `assistant_mask` (`list<int8>`) has a 1 for each token that the assistant wrote.
        tools: With `messages`: the column with the tools of each conversation, in the same forms.
        template: With `messages`: the name of one of the tokenizer's templates, or "chatml", as in `encode_chat`.
        template_text: With `messages`: a chat template in place of the tokenizer's.
        variables: With `messages`: variables of the template.
        mask: With `messages`: what the mask covers, as in `Tokenizer.encode_chat`.
        shape: How rows hold conversations: "messages" (the default), "sharegpt" (a list under `conversations`),
            "completion" (`prompt` and `completion`, texts or messages), "alpaca" (`instruction`, `input`, `output`), or
            "preference" (`chosen`, `rejected`, `prompt`), whose tokens are in three columns: `prompt_ids`,
            `chosen_ids` and `rejected_ids`.
        date: With `messages`: the day that a template is told, such as "2026-11-30". Default: today.
        threads: The number of threads. Default: `OMP_NUM_THREADS` if it is set, as engines do for a worker's share of
            the cores; otherwise all cores that this process may use, as `Tokenizer.encode_batch`.
        add_special: As in `Tokenizer.encode`.
        parse_special: As in `Tokenizer.encode`.
        append_eos: Whether to end each text with EOS, unless `add_special` adds it by the vocabulary's own rule.
        max_length: The most tokens of a text, with BOS and EOS. Default: no limit.
        too_long: What happens to a longer one: "cut" keeps its first `max_length` tokens (so it does not end with EOS),
            "drop" leaves its row out.
        ids: The name of the new column.

    Returns:
        The columns of the table, and after them `ids`: `list<int32>`, in chunks of at most 2**31 - 1 ids.

    Raises:
        CorpusError: The column is missing (the nearest names are listed) or holds something other than texts, a column
            is already called `ids`, a text of a string column is not UTF-8 (its row is named; binary columns
            may hold any bytes), a conversation cannot be rendered (its row is named), the vocabulary has no EOS to
            append, or an argument is out of range.
        ChatTemplateError: With `messages`, the file's chat template is missing or has a syntax error.
        DependencyError: pyarrow or numpy is not installed.
        TypeError: `table` is not an Arrow table.
        GgtokError: As `Tokenizer.encode_batch`.

    >>> import ggtok, pyarrow
    >>> table = pyarrow.table({"text": ["one text", "What is LoRA?"], "url": ["a", "b"]})
    >>> ggtok.corpus.encode_table(table, ggtok.Tokenizer.builtin("bpe"), max_length=4).to_pydict()["input_ids"]
    [[6053, 7301], [9713, 5981, 6266, 78]]
    """
    chat = tools, template, template_text, variables, mask, shape, date
    special = add_special, parse_special, append_eos
    encoding = encoding_of(field, messages, chat, special, max_length, too_long)
    return encode_rows(table_of(table), tokenizer, encoding, granted_threads(threads, None), ids)


def encode_block(
    block: Block, tokenizer: BaseTokenizer, encoding: Encoding, threads: int | None, ids: str = IDS
) -> Block:
    """The documents of a block with their tokens, and all its bad rows: those that the reader found come first.

    The columns are taken to be there, and texts to be UTF-8 if their column says so, since the reader has looked. A
    conversation that cannot be rendered is a bad row. Raises what `encode_table` does for all else.
    """
    table = block.table
    new = [ids, MASK] if encoding.is_chat else [ids]
    if taken := next((name for name in new if name in table.column_names), None):
        raise CorpusError(f"the table has a column {taken!r} already: rename it, or choose another name with ids=")
    eos_id = _eos_to_append(tokenizer, encoding)
    if encoding.is_chat:
        return _limited(encode_chats(block, tokenizer, encoding, eos_id, ids), new, encoding)
    options = num_threads(threads), None, "right", encoding.add_special, encoding.parse_special, False, eos_id

    def encode(texts: pa.Array) -> pa.LargeListArray:
        return Batch(encode_batch(tokenizer, texts, *options), None).to_arrow()

    rearrange = partial(infilled, encoding=encoding, tokenizer=tokenizer, encode=encode)
    chunks = filter(len, table.column(encoding.field).chunks)
    tokens = map(rearrange if encoding.fim else encode, chunks)
    return _limited(replace(block, table=table.append_column(ids, short(tokens, pa.int32()))), new, encoding)


def encode_rows(
    table: pa.Table, tokenizer: BaseTokenizer, encoding: Encoding, threads: int | None, ids: str
) -> pa.Table:
    """The table with the tokens of its rows. Raises what `encode_table` does."""
    source, start = f"column {encoding.field!r}", 1
    for name in (encoding.field, *encoding.others, *([] if encoding.tools is None else [encoding.tools])):
        check_column(name, table.column_names)
    column = table.column(encoding.field)
    if not holds_documents(column.type, encoding.is_chat):
        wanted = "lists of messages or their JSON text" if encoding.is_chat else "strings or binary"
        raise CorpusError(f"{source} must hold {wanted}, not {column.type}")
    for chunk in [] if encoding.is_chat else column.chunks:
        for row, *_ in broken(plain(chunk)):
            problem = "the text is not UTF-8 (a binary column may hold any bytes)"
            raise CorpusError(problem, source=source, row=start + row)
        start += len(chunk)
    encoded = encode_block(Block(table, [], 0, source), tokenizer, encoding, threads, ids)
    if encoded.bad:
        raise CorpusError(encoded.bad[0].reason, source=source, row=encoded.bad[0].row)
    warn_of_found(encoded.found)
    return separated(encoded.table, ids) if encoding.is_pair else encoded.table


def _limited(block: Block, columns: list[str], encoding: Encoding) -> Block:
    """The block without what is too long, unless it is split later."""
    table, most = block.table, encoding.max_length
    if most is None:
        return block
    is_long = (lengths(table) if encoding.is_pair else num_tokens(table.column(columns[0]))) > most
    if (num_long := int(is_long.sum())) and encoding.too_long == "drop":
        table = picked(table, ~is_long)
    elif num_long and encoding.too_long == "cut":
        for name in columns:
            cut = pc.list_slice(table.column(name), 0, most)
            table = table.set_column(table.column_names.index(name), name, cut)
    return replace(block, table=table, num_long=num_long)


def _eos_to_append(tokenizer: BaseTokenizer, encoding: Encoding) -> int | None:
    """The id of EOS if documents are to end with it and the vocabulary's own rule does not add it."""
    vocab = tokenizer.vocab
    if not encoding.append_eos:
        return None
    if vocab.eos_id is None:
        raise CorpusError("append_eos: the vocabulary has no EOS")
    if vocab.kind == "wordpiece":
        has_eos = vocab.eos_id == vocab.sep_id
    else:
        has_eos = vocab.add_eos and "add_eos" in FLAGS_READ.get(vocab.kind, ())
    return None if has_eos and encoding.add_special and not encoding.is_chat else vocab.eos_id


def holds_documents(type: pa.DataType, is_chat: bool) -> bool:
    """Whether a column of this type holds texts, only nulls, or, if that is wanted, conversations."""
    kind = type.value_type if pa.types.is_dictionary(type) else type
    return is_text(kind) or bool(pa.types.is_null(kind)) or (is_chat and is_conversation(kind))


def is_text(type: pa.DataType) -> bool:
    """Whether a column of this type holds texts."""
    return is_string(type) or str(type) in ("binary", "large_binary", "binary_view")


def is_string(type: pa.DataType) -> bool:
    """Whether a column of this type holds texts that are UTF-8."""
    return str(type) in ("string", "large_string", "string_view")


def plain(texts: pa.Array) -> pa.Array:
    """Texts with 64-bit offsets and without a dictionary; other types as they are."""
    if pa.types.is_dictionary(texts.type):
        texts = texts.dictionary.take(texts.indices)  # which are checked
    if pa.types.is_null(texts.type):
        return texts.cast(pa.large_utf8())
    if not is_text(texts.type):
        return texts
    as_bytes = texts.view(pa.binary_view()) if pa.types.is_string_view(texts.type) else texts
    as_bytes = as_bytes.cast(pa.large_binary())
    return as_bytes.view(pa.large_utf8()) if is_string(texts.type) else as_bytes  # UTF-8 or not


def broken(texts: pa.Array) -> Iterator[tuple[int, str, bytes]]:
    """The rows whose string is not UTF-8, why, and the bytes. Raises `ArrowInvalid` if the column itself is damaged."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        if not pa.types.is_large_string(texts.type):
            raise
        texts = texts.view(pa.large_binary())
        texts.validate(full=True)
        for at, text in enumerate(texts):
            data = text.as_py() or b""
            try:
                data.decode()
            except UnicodeDecodeError as error:
                yield at, f"byte {error.start + 1:,} is not UTF-8", data


def table_of(table: Any) -> pa.Table:
    """An Arrow table as pyarrow's. Raises `TypeError` for something else."""
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__"):
        with suppress(pa.ArrowInvalid):  # a column
            return pa.table(table)
    raise ArgumentTypeError(f"expected an Arrow table or record batch, not {type(table).__name__}")


def granted_threads(threads: int | None = None, default: int | None = 1) -> int | None:
    """The number of threads to encode with: as many as are asked for, otherwise as an engine grants, or `default`.

    Engines such as Ray and Spark tell a worker its share of the cores by the variable `OMP_NUM_THREADS`.

    Raises `CorpusError` if that is not a number.
    """
    granted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # more numbers are for nested loops
    if threads is not None or not granted:
        return default if threads is None else threads
    if not granted.isdecimal() or int(granted) == 0:
        raise CorpusError(f"the variable OMP_NUM_THREADS must be a number of threads, not {granted!r}")
    return int(granted)
