"""A conversation and a template: the body of a request, and what the template writes for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from .._ggtok import Rendering
from ..errors import ArgumentTypeError, GgtokError
from ..tokenizer.arguments import one_of, without_surrogates
from ..tokenizer.base import BaseTokenizer
from ..tokenizer.findings import Finding
from ..tokenizer.seam import findings_of
from ..tokenizer.vocab import special_texts
from . import templates, unread
from .encoding import MASKS, ChatEncoding, ChatMedia
from .plain import listed

Message: TypeAlias = Mapping[str, Any]
Messages: TypeAlias = Iterable[Message] | Mapping[str, Any]
Tool: TypeAlias = Mapping[str, Any] | Callable[..., Any]
Continued: TypeAlias = bool | Literal["content", "reasoning_content"]


class Options(NamedTuple):
    """Arguments of `Tokenizer.apply_chat_template`."""

    tools: Iterable[Tool] | None = None
    documents: Iterable[Message] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: Continued | None = None
    template: str | None = None
    template_text: str | None = None
    media_marker: str | None = None
    raw: bool = False
    warnings: list[Finding] | None = None


IN_BODY = ("tools", "documents", "add_generation_prompt", "continue_final_message")
"""Options that are fields of a request too."""


class EncodeSettings(NamedTuple):
    """Further arguments of `Tokenizer.encode_chat`."""

    add_special: bool = True
    refuse_user_defined: bool = False
    trust: bool = False

    @property
    def safe(self) -> dict[str, bool]:
        """Those of an encoding that knows who wrote what."""
        return {"add_special": self.add_special, "refuse_user_defined": self.refuse_user_defined}


class Conversation:
    """What `Tokenizer.apply_chat_template` is given. `closes` and `now` are as in `ChatTemplate.render`.

    Another `body` can take the place of the first, if it has tools where that has any.
    """

    def __init__(
        self,
        tokenizer: BaseTokenizer,
        messages: Messages,
        options: Options,
        variables: Mapping[str, Any],
        closes: bool | None = None,
        now: tuple[int, int, str] | None = None,
    ) -> None:
        self.tokenizer, self.options, self._closes = tokenizer, options, closes
        without_surrogates("media_marker", options.media_marker)
        if not isinstance(options.warnings, list | None):
            raise ArgumentTypeError(f"warnings must be a list, not {type(options.warnings).__name__}")
        self.body = body_of(messages, options, variables)
        self._special = special_texts(tokenizer.vocab)
        has_tools = bool(self.body.get("tools"))
        self.source = templates.chosen(tokenizer.metadata, options.template, options.template_text, has_tools)
        # The program that the model was found in may not use the file's templates as they are.
        self._served = findings_of(tokenizer) if options.template_text is None else ()
        unread.report(self._served, options.warnings)
        clock = time.localtime()
        self._now = now or (int(time.time()), clock.tm_gmtoff, clock.tm_zone)

    def render(self, body: Mapping[str, Any] | None = None) -> Rendering:
        """What the template writes for this conversation, or for another body."""
        return templates.compiled(self.source).render(
            self.body if body is None else body,
            bos=self._special.get("bos_token", ""),
            eos=self._special.get("eos_token", ""),
            media_marker=self.options.media_marker,
            closes=self._closes,
            now=self._now,
        )

    def text(self) -> str:
        """The text without a BOS and an EOS that the vocabulary adds, as from llama-server's `/apply-template`."""
        if self.options.raw:
            return self._raw()
        text, special, vocab = self._reported().text, self._special, self.tokenizer.vocab
        text = text.removeprefix(special.get("bos_token", "")) if vocab.add_bos else text
        return text.removesuffix(special.get("eos_token", "")) if vocab.add_eos else text

    def ids(self, settings: EncodeSettings) -> list[int]:
        if self.options.raw or settings.trust:
            return self._read_everywhere(settings)
        return self._reported().ids(self.tokenizer, **settings.safe)

    def encoding(self, settings: EncodeSettings, mask: str) -> ChatEncoding:
        """The ids with the tokens of each message."""
        one_of("mask", mask, MASKS)
        if self.options.raw or settings.trust:
            raise GgtokError("return_spans needs to know who wrote what: raw=True and trust=True do not go with it")
        rendering = self.render()
        ids, masked = rendering.encode(self.tokenizer, mask=mask, **settings.safe)
        self.report(rendering)
        return self.described(ids, rendering, masked)

    def described(self, ids: list[int], rendering: Rendering, masked: tuple[Any, ...]) -> ChatEncoding:
        """The ids of a rendering with all that is known of them: `masked` is as from `Rendering.masked`."""
        spans, own, media = masked
        found = (*self._served, *unread.findings(templates.compiled(self.source), rendering))
        return ChatEncoding(ids, rendering.text, spans, own, found, tuple(ChatMedia(*row) for row in media))

    def report(self, rendering: Rendering, first: int = 0) -> None:
        """Reports what the model does not see, of messages from `first` on."""
        unread.report(unread.findings(templates.compiled(self.source), rendering, first), self.options.warnings)

    def _reported(self) -> Rendering:
        rendering = self.render()
        self.report(rendering)
        return rendering

    def _raw(self) -> str:
        from .raw import render

        return render(self.source, self.body, self._special)

    def _read_everywhere(self, settings: EncodeSettings) -> list[int]:
        """The ids of the text with control tokens wherever they are written. BOS and EOS are added once."""
        add_special, refuse_user_defined, trust = settings
        if not trust:
            raise GgtokError("raw=True mixes the template's text with the messages': its ids need trust=True")
        if refuse_user_defined:
            raise GgtokError("trust=True reads all tokens in all of the text: refuse_user_defined does not go with it")
        rendering = None if self.options.raw else self._reported()
        text = self._raw() if rendering is None else rendering.data
        ids = self.tokenizer.encode(text, add_special=add_special, parse_special=True)
        vocab = self.tokenizer.vocab
        if add_special and vocab.add_bos and ids[:2] == [vocab.bos_id] * 2:
            del ids[0]
        is_own = rendering is None or (bool(text) and rendering.is_template(len(text) - 1))
        if add_special and vocab.add_eos and is_own and ids[-2:] == [vocab.eos_id] * 2:
            del ids[-1]
        return ids


def body_of(messages: Messages, options: Options, variables: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request. What is not of a type that a request has is left to fail by name when it is rendered."""
    body = dict(messages) if isinstance(messages, Mapping) else {"messages": listed(messages)}
    given = {name: getattr(options, name) for name in IN_BODY}
    body |= {name: listed(value) for name, value in given.items() if value is not None}
    if isinstance(options.continue_final_message, str):
        one_of("continue_final_message", options.continue_final_message, (True, False, "content", "reasoning_content"))
    if body.get("tools"):
        from . import schema

        body["tools"] = schema.schemas(body["tools"])
    if variables:
        before = body.get("chat_template_kwargs")
        body["chat_template_kwargs"] = {**before, **variables} if isinstance(before, Mapping) else variables
    return body
