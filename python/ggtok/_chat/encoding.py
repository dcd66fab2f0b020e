"""From a text with origins to ids: control tokens only in what the template wrote, and the tokens of each message.

1. The text is cut into parts where it passes from the template to the caller's strings and back.
2. The parts are encoded together. Control tokens are recognized only wholly inside the template's parts.
3. BOS and EOS that both the template and the vocabulary write are kept once.
4. Spans in characters become spans of tokens.

If an operation of the template lost track of a string, it is encoded as the caller's; if it would have other ids as the
template's, that is an error.

Complexity: O(n) beside encoding.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, NamedTuple, NoReturn

from .._base import BaseTokenizer
from .._vocab import control_ids
from ..errors import ChatTemplateError, VocabularyError
from .rendering import Rendered, Source
from .text import Text, plain

ASSISTANT = frozenset(("assistant", "model", "ai"))
"""The roles of messages that the model writes."""


class ChatEncoding(NamedTuple):
    """The ids of a conversation and which of them belong to which message: what `encode_chat` returns with spans.

    >>> import ggtok
    >>> tok = ggtok.Tokenizer.builtin("bpe")
    >>> template = "{% for m in messages %}<|im_start|>{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}"
    >>> chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    >>> encoding = tok.encode_chat(chat, template_text=template, return_spans=True)
    >>> encoding.message_spans
    [(0, 6), (6, 15)]
    >>> tok.decode([id for id, own in zip(encoding.ids, encoding.assistant_mask, strict=True) if own])
    ' Hello'
    """

    ids: list[int]
    text: str
    """The rendered text."""
    message_spans: list[tuple[int, int] | None]
    """For each message the tokens (start, end) from the first to the last that the template writes for it, or `None`
    if it writes none."""
    assistant_mask: list[bool]
    """For each token whether the assistant says it."""

    def to_dict(self) -> dict[str, Any]:
        """The same as a dict, for JSON."""
        return self._asdict()


class Encoded(NamedTuple):
    """Ids, and the characters that each comes from."""

    ids: list[int]
    spans: list[tuple[int, int]]


def parts_of(text: Text, unknown: bool = False) -> list[tuple[str, bool]]:
    """A text's parts, and whether control tokens are read in each. `unknown` is for what has no known origin."""
    parts: list[tuple[str, bool]] = []
    value = plain(text)
    for trusted, spans in groupby(text.spans(), lambda span: unknown if span[2].trusted is None else span[2].trusted):
        places = [place for start, end, _ in spans for place in (start, end)]
        parts.append((value[places[0] : places[-1]], trusted))
    return parts


def encode(tokenizer: BaseTokenizer, rendered: Rendered, source: Source, add_special: bool) -> Encoded:
    """The ids of a rendered conversation, with the span of each in the text, in characters.

    Raises `ChatTemplateError` if it is unknown whether a control token is the template's, and `VocabularyError`
    if the vocabulary itself reads a control token in a string of the caller.
    """
    ids, spans = stretch(tokenizer, rendered.text, source, add_special)
    first, last = twice(tokenizer, rendered.text, ids, add_special)
    return Encoded(ids[first : len(ids) - last], spans[first : len(spans) - last])


def stretch(
    tokenizer: BaseTokenizer, text: Text, source: Source, add_special: bool, at: int = 0, *, continues: bool = False
) -> Encoded:
    """The same for a stretch of a text that starts at character `at`. BOS or EOS may be there twice."""
    parts = parts_of(text)
    encoding = tokenizer.encode_parts_with_offsets(parts, add_special=add_special, continues=continues, unit="char")
    encoded = Encoded(*encoding.tolist())
    if any(origin.trusted is None for _, origin in text.runs):
        as_template = parts_of(text, True)
        if tokenizer.encode_parts(as_template, add_special=add_special, continues=continues) != encoded.ids:
            _refuse_unknown(text, source)
    _check_control(tokenizer, text, *encoded, at)
    return encoded


def with_spans(
    encoded: Encoded, rendered: Rendered, source: Source, sampled: Iterable[tuple[int, int]] = ()
) -> ChatEncoding:
    """The ids with the tokens of each message. Those that a model is known to have sampled are its own.

    Raises `ChatTemplateError` if the assistant says something and no token would be its own.
    """
    text, (ids, spans) = rendered.text, encoded
    generated = _ranges(text, lambda origin: origin.generated)
    if not rendered.generation:
        own = {index for index, role in enumerate(rendered.inputs.roles) if role in ASSISTANT}
        generated = _ranges(text, lambda origin: origin.trusted is False and origin.message in own)
    mask = [False] * len(ids)
    for start, end in generated:
        low, high = _tokens(spans, start, end)
        mask[low:high] = [True] * (high - low)
    for low, high in sampled:
        mask[low:high] = [True] * (high - low)
    if not any(mask) and _is_anything_said(rendered):
        why = "it has no {% generation %}, and none of its text is found to come from an assistant's message"
        if rendered.generation:
            why = "nothing is written inside {% generation %} for these messages"
        raise ChatTemplateError(f"there is no assistant mask: {why}", template=source.name)
    return ChatEncoding(ids, str(plain(text)), _message_spans(rendered, spans), mask)


def _is_anything_said(rendered: Rendered) -> bool:
    """Whether the assistant has a message that is not empty."""
    messages = rendered.inputs.variables["messages"]
    said = (message for message, role in zip(messages, rendered.inputs.roles, strict=True) if role in ASSISTANT)
    return any(message.get(key) for message in said for key in ("content", "reasoning_content", "tool_calls"))


def _refuse_unknown(text: Text, source: Source) -> NoReturn:
    lost = [str(piece) for piece in text.pieces() if piece.runs[0][1].trusted is None]
    longest = max(lost, key=len)
    problem = "it changes strings so that they cannot be followed, and they contain the text of a control token: "
    raise ChatTemplateError(f"{problem}{longest[:100]!r}", template=source.name)


def _check_control(tokenizer: BaseTokenizer, text: Text, ids: list[int], spans: list[tuple[int, int]], at: int) -> None:
    """No control token may come from a string of the caller.

    RWKV, PLaMo-2 and some SPM vocabularies find control tokens in any text, as ordinary tokens.
    """
    vocab = tokenizer.vocab
    control = control_ids(vocab, ids)
    control.discard(-1 if vocab.unk_id is None else vocab.unk_id)
    if not control:
        return
    for start, end in _ranges(text, lambda origin: origin.trusted is not True):
        for index in range(*_tokens(spans, start, end)):
            if ids[index] in control and spans[index][0] < spans[index][1]:
                token = vocab[ids[index]]
                problem = f"this vocabulary reads the control token {token.text!r} (id {token.id}) in every text"
                raise VocabularyError(f"{problem}, so no message may contain it: it does at character {at + start}")


def twice(tokenizer: BaseTokenizer, text: Text, ids: list[int], add_special: bool) -> tuple[int, int]:
    """How many tokens at the start and end are there because the vocabulary adds what the template wrote already."""
    vocab, runs = tokenizer.vocab, text.runs
    if not add_special or not runs:
        return 0, 0
    first = runs[0][1].trusted is True and vocab.bos_id is not None and ids[:2] == [vocab.bos_id] * 2
    last = runs[-1][1].trusted is True and vocab.eos_id is not None and ids[-2:] == [vocab.eos_id] * 2
    return int(first and vocab.add_bos), int(last and vocab.add_eos)


def _ranges(text: Text, wanted: Callable[[Any], bool]) -> Iterable[tuple[int, int]]:
    """Where the wanted runs are, in characters."""
    return ((start, end) for start, end, origin in text.spans() if wanted(origin))


def _tokens(spans: list[tuple[int, int]], start: int, end: int) -> tuple[int, int]:
    """The tokens that share a character with a range. Spans never decrease."""
    low = bisect_right(spans, start, key=lambda span: span[1])
    return low, max(low, bisect_left(spans, end, key=lambda span: span[0]))


def _message_spans(rendered: Rendered, spans: list[tuple[int, int]]) -> list[tuple[int, int] | None]:
    """From the first to the last character of each message, in tokens."""
    hulls: list[tuple[int, int] | None] = [None] * len(rendered.inputs.roles)
    for start, end, origin in rendered.text.spans():
        if origin.message is not None:
            hull = hulls[origin.message]
            hulls[origin.message] = (start if hull is None else hull[0], end)
    return [None if hull is None else _tokens(spans, *hull) for hull in hulls]
