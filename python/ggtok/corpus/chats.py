"""Conversations to tokens and masks: each is rendered by the file's chat template, as `Tokenizer.encode_chat` does.

A conversation is JSON text, or a list of structs. A struct has all fields of its type, so those that are null count as
absent. What the template refuses, or what is not a list of messages, is a bad row.

Complexity: as rendering, one conversation at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any

from ..errors import GgtokError
from ..tokenizer.base import BaseTokenizer
from ..tokenizer.findings import Finding, warn_of
from .blocks import BadRow
from .packages import np, npt, pa
from .pairs import joined
from .settings import Encoding, day
from .shapes import conversations_of, listed
from .sums import add

if TYPE_CHECKING:
    from ..chat.encoding import ChatEncoding

Found = dict[str, tuple[int, str, str]]
"""By its code, what the model does not see: in how many conversations, and the message and the advice of the first."""

NUM_AT_ONCE = 256
"""Conversations that are Python objects at the same time."""


@dataclass(slots=True)
class Chats:
    """The conversations of a column. A null has neither tokens nor a mask."""

    ids: list[pa.LargeListArray] = field(default_factory=list)
    """For each chunk of the column the tokens of its conversations, without bad ones."""
    masks: list[pa.LargeListArray] = field(default_factory=list)
    """1 for each token that the assistant wrote; of a pair, the number of its part."""
    bad: list[tuple[int, str, bytes]] = field(default_factory=list)
    """The place of each bad row in the column, what is wrong with it, and the row as JSON."""
    found: Found = field(default_factory=dict)


def is_conversation(type: pa.DataType) -> bool:
    """Whether a column of this type may hold lists of messages that are not JSON text."""
    is_list = pa.types.is_nested(type) and hasattr(type, "value_type")
    return is_list and bool(pa.types.is_struct(type.value_type))


def encode_chats(table: pa.Table, tokenizer: BaseTokenizer, encoding: Encoding, eos_id: int | None) -> Chats:
    """The tokens and masks of a table of conversations. With `eos_id`, each ends with it.

    Raises `ChatTemplateError` if the chat template is missing or has a syntax error.
    """
    from ..chat.conversation import Conversation, EncodeSettings, Options, body_of
    from ..chat.templates import chosen, compiled

    compiled(chosen(tokenizer.metadata, None, encoding.template_text, False))
    settings, variables = EncodeSettings(encoding.add_special), dict(encoding.variables)
    findings: list[Finding] = []
    options = Options(template_text=encoding.template_text, warnings=findings)
    now = None if encoding.date is None else (day(encoding.date), 0, "UTC")
    tools = _rows(*table.column(encoding.tools).chunks) if encoding.tools is not None else repeat(None)
    others = [_rows(*table.column(name).chunks) for name in encoding.others]
    names = (encoding.field, *encoding.others)
    conversations: dict[bool, Conversation] = {}  # a file may have another template for tools
    chats, start, end = Chats(), 0, [] if eos_id is None else [eos_id]
    for chunk in table.column(encoding.field).chunks:
        ids: list[npt.NDArray[np.int32] | None] = []
        masks: list[npt.NDArray[np.int8] | None] = []
        for index, (first, given, *more) in enumerate(zip(_rows(chunk), tools, *others, strict=False), start):
            if first is None:
                ids.append(None)
                masks.append(None)
                continue
            encoded: list[ChatEncoding] = []
            try:
                for messages in (found := conversations_of(encoding.shape, names, [first, *more])):
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
                chats.bad.append((index, str(error), _json([first, *more] if others else first)))
                continue
            reported = [finding for each in encoded for finding in each.warnings]
            for finding in {finding.code: finding for finding in reversed(reported)}.values():
                add(chats.found, {finding.code: (1, finding.message, finding.advice)})
            rows = [[*each.ids, *(() if each.ids[-1:] == end else end)] for each in encoded]
            row, mask = joined(*rows) if encoding.is_pair else (rows[0], encoded[0].assistant_mask)
            ids.append(np.array(row, np.int32))
            masks.append(np.array([*mask, *[False] * (len(row) - len(mask))], np.int8))
        chats.ids.append(pa.array(ids, pa.large_list(pa.int32())))
        chats.masks.append(pa.array(masks, pa.large_list(pa.int8())))
        start += len(chunk)
    return chats


def warn_of_found(found: Found) -> None:
    """One warning for each kind of finding."""
    for code, (count, message, advice) in found.items():
        warn_of(Finding(code, "warning", f"in {count:,} conversations, such as one where {message}", advice))


def _rows(*chunks: pa.Array) -> Iterator[Any]:
    """JSON text (`str` or `bytes`), a list, or `None` for a null."""
    for chunk in chunks:
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
