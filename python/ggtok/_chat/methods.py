"""What a tokenizer does with conversations. jinja2 is imported by the first call, not with the package."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Literal, TypeAlias, overload

    from .encoding import ChatEncoding
    from .rendering import Chat, Rendered, Source

    Message: TypeAlias = Mapping[str, Any]
    Tool: TypeAlias = Mapping[str, Any] | Callable[..., Any]


class ChatMethods:
    """The calls of a tokenizer that take messages."""

    __slots__ = ()

    def apply_chat_template(
        self,
        messages: Iterable[Message],
        *,
        tools: Iterable[Tool] | None = None,
        documents: Iterable[Message] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        template: str | None = None,
        template_text: str | None = None,
        raw: bool = False,
        **variables: Any,
    ) -> str:
        """The text of a conversation, as the file's chat template writes it.

        The text is for people and for other programs. To get ids, use `encode_chat`, which never reads control tokens
        in messages.

        Args:
            messages: Mappings with `role`, `content` and whatever else the template reads: `tool_calls`, `name`,
                `reasoning_content`, ... Keys whose value is `None` are left out.
            tools: JSON schemas of functions, or functions with type hints and a docstring (Google style).
            documents: Mappings with `title` and `text`.
            add_generation_prompt: Whether to end with the beginning of an assistant's message.
            continue_final_message: End with the last character of the last message's content, for the model to go on.
                Needs `add_generation_prompt=False`.
            template: The name of one of the file's templates: NAME of `tokenizer.chat_template.NAME`. Default:
                `tool_use` if there are tools and the file has it, otherwise `tokenizer.chat_template`.
            template_text: A template to use instead of the file's.
            raw: Pass messages, tools and variables to the template as they are, as transformers does. Otherwise the
                template gets what llama-server would give it: docs/chat.md says what that changes.
            **variables: Further variables of the template, such as `enable_thinking=False`.

        Raises:
            ChatTemplateError: There is no template, it is invalid, it refuses these messages, or it exceeds a limit;
                `template` and `line` say where.
            GgtokError: There are no messages, a value is nested too deeply, or the arguments of a tool call are not
                JSON.
            TypeError: A value is of a type that templates cannot use.

        Warns (`TokenizerWarning`) of a message, a field, tools or a variable that the template never reads.

        >>> import ggtok
        >>> template = "{% for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}<|im_end|>\\n{% endfor %}"
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> print(tok.apply_chat_template([{"role": "user", "content": "Hi"}], template_text=template), end="")
        <|im_start|>user
        Hi<|im_end|>
        """
        _set_ending(variables, add_generation_prompt, continue_final_message)
        given, chat, source = self._chat(messages, tools, documents, template, template_text, variables, raw)
        if continue_final_message:
            return str.__str__(_traced(given, chat, source, True).text)
        text = chat.render(source)
        _warn(given, chat, source, text)
        return text

    if TYPE_CHECKING:

        @overload
        def encode_chat(
            self,
            messages: Iterable[Message],
            *,
            return_spans: Literal[False] = False,
            add_special: bool = True,
            tools: Iterable[Tool] | None = None,
            documents: Iterable[Message] | None = None,
            add_generation_prompt: bool = True,
            continue_final_message: bool = False,
            template: str | None = None,
            template_text: str | None = None,
            raw: bool = False,
            **variables: Any,
        ) -> list[int]: ...
        @overload
        def encode_chat(
            self,
            messages: Iterable[Message],
            *,
            return_spans: Literal[True],
            add_special: bool = True,
            tools: Iterable[Tool] | None = None,
            documents: Iterable[Message] | None = None,
            add_generation_prompt: bool = True,
            continue_final_message: bool = False,
            template: str | None = None,
            template_text: str | None = None,
            raw: bool = False,
            **variables: Any,
        ) -> ChatEncoding: ...

    def encode_chat(
        self,
        messages: Iterable[Message],
        *,
        return_spans: bool = False,
        add_special: bool = True,
        tools: Iterable[Tool] | None = None,
        documents: Iterable[Message] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        template: str | None = None,
        template_text: str | None = None,
        raw: bool = False,
        **variables: Any,
    ) -> list[int] | ChatEncoding:
        """The ids of a conversation. Control tokens come from the template only, never from the caller's strings.

        Args:
            messages: As in `apply_chat_template`, as are all arguments that are not listed here.
            return_spans: Whether to return a `ChatEncoding`: ids, the tokens of each message, and an assistant mask.
                The mask covers what lies inside `{% generation %}`; in a template without it, the strings of messages
                with the role `assistant`, without the token that ends a turn.
            add_special: Whether to add BOS and EOS where the vocabulary asks for them. What the template writes itself
                is not added again.

        Raises:
            ChatTemplateError: As `apply_chat_template`; or the template changes strings in such a way that ggtok cannot
                tell whether a control token comes from it; or, with `return_spans`, the assistant says something and
                the mask would be empty.
            VocabularyError: The vocabulary reads control tokens in every text (RWKV, PLaMo-2), and a message contains
                one; or as `encode`.
            GgtokError, TypeError: As `apply_chat_template`.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> ids = tok.encode_chat([{"role": "user", "content": "<|im_end|>"}], add_generation_prompt=False)
        >>> ids.count(tok.vocab.id("<|im_end|>")), tok.decode(ids)
        (1, 'user\\n<|im_end|>\\n')
        """
        _set_ending(variables, add_generation_prompt, continue_final_message)
        given, chat, source = self._chat(messages, tools, documents, template, template_text, variables, raw)
        rendered = _traced(given, chat, source, continue_final_message)
        from . import encoding

        encoded = encoding.encode(self, rendered, source, add_special)
        return encoding.with_spans(encoded, rendered, source) if return_spans else encoded.ids

    def count_messages(
        self,
        messages: Iterable[Message],
        *,
        add_special: bool = True,
        tools: Iterable[Tool] | None = None,
        documents: Iterable[Message] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        template: str | None = None,
        template_text: str | None = None,
        raw: bool = False,
        **variables: Any,
    ) -> int:
        """The number of ids of a conversation: `len(tok.encode_chat(...))`, with the same arguments and errors.

        >>> import ggtok
        >>> template = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"
        >>> chat = [{"role": "user", "content": "Hi"}]
        >>> ggtok.Tokenizer.builtin("bpe").count_messages(chat, template_text=template)
        4
        """
        return len(
            self.encode_chat(
                messages,
                add_special=add_special,
                tools=tools,
                documents=documents,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=continue_final_message,
                template=template,
                template_text=template_text,
                raw=raw,
                **variables,
            )
        )

    def _chat(
        self,
        messages: Iterable[Message],
        tools: Iterable[Tool] | None,
        documents: Iterable[Message] | None,
        template: str | None,
        text: str | None,
        variables: Mapping[str, Any],
        raw: bool,
    ) -> tuple[Chat, Chat, Source]:
        """The conversation as it was passed and as the template gets it, and the template."""
        from datetime import datetime

        from . import openai, rendering, schema, templates

        tool_list = None if tools is None else schema.schemas(tools)
        source = templates.chosen(self.metadata, template, text, bool(tool_list))  # type: ignore[attr-defined]
        chat = rendering.Chat(
            messages=messages if isinstance(messages, (str, bytes)) else _listed(messages),
            tools=tool_list,
            documents=None if documents is None else _listed(documents),
            variables=variables,
            special=templates.special_tokens(self.vocab),  # type: ignore[attr-defined]
            now=datetime.now(),
        )
        return chat, chat if raw else openai.adapted(chat, source), source


def _set_ending(variables: dict[str, Any], add_generation_prompt: bool, continue_final_message: bool) -> None:
    """Tells the template how the conversation ends."""
    if continue_final_message and add_generation_prompt:
        raise ValueError("continue_final_message needs add_generation_prompt=False")
    variables["add_generation_prompt"] = bool(add_generation_prompt)


def _listed(values: Iterable[Any]) -> Sequence[Any]:
    """The values, to be read more than once. What is no iterable is refused later, by name."""
    from collections.abc import Iterable, Mapping

    if not isinstance(values, Iterable) or isinstance(values, Mapping):
        return values  # type: ignore[return-value]
    return [value for value in values]  # noqa: C416 (list() would believe a wrong length hint)


def _warn(given: Chat, chat: Chat, source: Source, text: str) -> None:
    from . import unread

    unread.warn(given, chat, source, text)


def _traced(given: Chat, chat: Chat, source: Source, continue_final_message: bool) -> Rendered:
    rendered = chat.trace(source)
    _warn(given, chat, source, rendered.text)
    if not continue_final_message:
        return rendered
    from .continuing import cut

    return cut(rendered, source)
