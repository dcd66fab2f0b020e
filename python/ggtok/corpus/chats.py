"""Conversations to tokens and masks: each is rendered by the file's chat template, as `Tokenizer.encode_chat` does.

A conversation is JSON text, or a list of structs. A struct has all fields of its type, so those that are null count as
absent. What the template refuses, or what is not a list of messages, is a bad row.

Complexity: as rendering, one conversation at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING, Any

from ..errors import GgtokError
from ..tokenizer.base import BaseTokenizer
from ..tokenizer.findings import Finding, warn_of
from .blocks import MASK, ROW, BadRow, Block, Found, picked
from .lists import short
from .packages import np, npt, pa
from .pairs import joined
from .settings import Encoding, day
from .shapes import conversations_of, listed
from .sums import add

if TYPE_CHECKING:
    from ..chat.encoding import ChatEncoding

NUM_AT_ONCE = 256
"""Conversations that are Python objects at the same time."""


def is_conversation(type: pa.DataType) -> bool:
    """Whether a column of this type may hold lists of messages that are not JSON text."""
    is_list = pa.types.is_nested(type) and hasattr(type, "value_type")
    return is_list and bool(pa.types.is_struct(type.value_type))


def encode_chats(block: Block, tokenizer: BaseTokenizer, encoding: Encoding, eos_id: int | None, ids: str) -> Block:
    """The conversations of a block with their tokens and masks. With `eos_id`, each ends with it.

    A mask has 1 for each token that the assistant wrote; of a pair, the number of its part. A null has neither.

    Raises `ChatTemplateError` if the chat template is missing or has a syntax error.
    """
    from ..chat.conversation import Conversation, EncodeSettings, Options, body_of
    from ..chat.templates import chosen, compiled

    compiled(chosen(tokenizer.metadata, encoding.template, encoding.template_text, False))
    settings, variables = EncodeSettings(encoding.add_special), dict(encoding.variables)
    findings: list[Finding] = []
    options = Options(template=encoding.template, template_text=encoding.template_text, warnings=findings)
    now = None if encoding.date is None else (day(encoding.date), 0, "UTC")
    table, names, end = block.table, (encoding.field, *encoding.others), [] if eos_id is None else [eos_id]
    numbers = table.column(ROW).to_pylist() if ROW in table.column_names else range(1, table.num_rows + 1)
    tools = _rows(table.column(encoding.tools)) if encoding.tools is not None else repeat(None)
    conversations: dict[bool, Conversation] = {}  # a file may have another template for tools
    tokens: list[npt.NDArray[np.int32] | None] = []
    masks: list[npt.NDArray[np.int8] | None] = []
    bad, is_good = list(block.bad), np.ones(table.num_rows, bool)
    unseen: Found = {}
    rows = zip(*(_rows(table.column(name)) for name in names), strict=True)
    for index, (values, given) in enumerate(zip(rows, tools, strict=False)):
        if values[0] is None:
            tokens.append(None)
            masks.append(None)
            continue
        encoded: list[ChatEncoding] = []
        try:
            for messages in (found := conversations_of(encoding.shape, names, values)):
                body = {"messages": messages, "add_generation_prompt": len(encoded) < len(found) - 2}  # of a pair
                if given not in (None, "null"):
                    body["tools"] = listed(given, "the list of tools", "tools must be a list")
                body = body_of(body, options, variables)
                has_tools = bool(body.get("tools"))
                if has_tools not in conversations:
                    conversations[has_tools] = Conversation(tokenizer, body, options, {}, closes=True, now=now)
                conversations[has_tools].body = body
                encoded.append(conversations[has_tools].encoding(settings, encoding.mask))
                findings.clear()  # `encoded` has them too
        except (GgtokError, TypeError, ValueError, RecursionError) as error:
            data = _json(list(values) if encoding.others else values[0])
            bad.append(BadRow(block.source, numbers[index], str(error), data))
            is_good[index] = False
            continue
        reported = [finding for each in encoded for finding in each.warnings]
        for finding in {finding.code: finding for finding in reversed(reported)}.values():
            add(unseen, {finding.code: (1, finding.message, finding.advice)})
        parts = [[*each.ids, *(() if each.ids[-1:] == end else end)] for each in encoded]
        row, mask = joined(*parts) if encoding.is_pair else (parts[0], encoded[0].assistant_mask)
        tokens.append(np.array(row, np.int32))
        masks.append(np.array([*mask, *[False] * (len(row) - len(mask))], np.int8))
    if not is_good.all():
        table = picked(table, is_good)
    for name, lists, kind in ((ids, tokens, pa.int32()), (MASK, masks, pa.int8())):
        table = table.append_column(name, short([pa.array(lists, pa.large_list(kind))], kind))
    return replace(block, table=table, bad=bad, found=unseen)


def warn_of_found(found: Found) -> None:
    """One warning for each kind of finding."""
    for code, (count, message, advice) in found.items():
        warn_of(Finding(code, "warning", f"in {count:,} conversations, such as one where {message}", advice))


def _rows(column: pa.ChunkedArray) -> Iterator[Any]:
    """JSON text (`str` or `bytes`), a list, or `None` for a null."""
    for chunk in column.chunks:
        for start in range(0, len(chunk), NUM_AT_ONCE):
            for row in chunk.slice(start, NUM_AT_ONCE).to_pylist():
                yield _plain(row, chunk.type)


def _plain(value: Any, type: pa.DataType) -> Any:
    """A value of Arrow as JSON has it: without fields that are null, and maps as dicts."""
    if value is None or not pa.types.is_nested(type):
        return value
    if pa.types.is_struct(type):
        return {each.name: _plain(value[each.name], each.type) for each in type if value[each.name] is not None}
    if pa.types.is_map(type):
        return {key: _plain(item, type.item_type) for key, item in value}
    return [_plain(item, type.value_type) for item in value]


def _json(row: Any) -> bytes:
    """A row as JSON, cut to the length that is kept of a bad row."""
    if isinstance(row, bytes):
        return row[: BadRow.MOST_DATA]
    text = row if isinstance(row, str) else json.dumps(row, ensure_ascii=False, default=repr)
    return text[: BadRow.MOST_DATA].encode("utf-8", "replace")[: BadRow.MOST_DATA]
