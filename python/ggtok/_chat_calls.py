"""The calls of a tokenizer for conversations. Each calls one function of the part `chat`."""

from __future__ import annotations

from .tokenizer.base import BaseTokenizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Literal, SupportsIndex, TypeVar, overload

    from .chat import Chat, ChatEncoding
    from .chat.conversation import Continued, Message, Messages, Tool
    from .chat.trimming import Keep
    from .tokenizer.findings import Finding

    M = TypeVar("M", bound=Message)


class ChatTokenizer(BaseTokenizer):
    """A tokenizer with the calls for conversations."""

    __slots__ = ()

    def apply_chat_template(
        self,
        messages: Messages,
        *,
        tools: Iterable[Tool] | None = None,
        documents: Iterable[Message] | None = None,
        add_generation_prompt: bool | None = None,
        continue_final_message: Continued | None = None,
        template: str | None = None,
        template_text: str | None = None,
        media_marker: str | None = None,
        raw: bool = False,
        warnings: list[Finding] | None = None,
        **variables: Any,
    ) -> str:
        """The text of a conversation, as llama-server writes it with the file's chat template.

        The text is for people and for other programs. To get ids, use `encode_chat`, which never reads control tokens
        in messages. A BOS at the start and an EOS at the end are left out if the vocabulary adds them.

        Args:
            messages: Mappings with `role`, `content` and whatever else llama-server reads: `tool_calls`, `name`,
                `reasoning_content`, ... Or the body of a request to `/v1/chat/completions`: a mapping with `messages`,
                `tools`, `chat_template_kwargs`, `reasoning_effort` and so on. Arguments win over what it says.
            tools: JSON schemas of functions, or functions with type hints and a docstring (Google style).
            documents: Mappings with `title` and `text`.
            add_generation_prompt: Whether to end with the beginning of an assistant's message. By default it does, and
                a last message of the assistant's is continued instead. `False` closes that message.
            continue_final_message: End with the last character of the last message's content, so that the model
                continues it; "content" or "reasoning_content" says of what. Needs `add_generation_prompt=False`.
            template: The name of one of the file's templates: NAME of `tokenizer.chat_template.NAME`; or "chatml",
                which llama-server takes for files without one. Default: `tool_use` if there are tools and the file has
                it, otherwise `tokenizer.chat_template`.
            template_text: A template to use instead of the file's.
            media_marker: What to write for an image, a sound or a film. Without it they are refused.
            raw: Render messages, tools and variables as they are with jinja2, as transformers does. It has to be
                installed, and you vouch for the template: nothing limits it.
            warnings: A list that takes the findings that would be warnings otherwise.
            **variables: Further variables of the template, such as `enable_thinking=False`.

        Raises:
            ChatTemplateError: The template is missing, has a syntax error, fails, refuses these messages, or exceeds a
                limit; `template`, `line` and `column` say where.
            ChatRequestError: llama-server would not take the messages or what comes with them; `field` says which.
            ChatTypeError: A value is of a type that JSON does not have.
            DependencyError: `raw` needs jinja2.
            GgtokError: An argument is not one of its allowed words, or a function has no usable docstring.

        Warns (`TokenizerWarning`) of a message, a field, tools or a variable that the template never reads, and of a
        field that llama-server drops.

        >>> import ggtok
        >>> template = "{% for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}<|im_end|>\\n{% endfor %}"
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> print(tok.apply_chat_template([{"role": "user", "content": "Hi"}], template_text=template), end="")
        <|im_start|>user
        Hi<|im_end|>
        """
        from .chat.conversation import Conversation, Options

        prompt = add_generation_prompt, continue_final_message
        options = Options(tools, documents, *prompt, template, template_text, media_marker, raw, warnings)
        return Conversation(self, messages, options, variables).text()

    if TYPE_CHECKING:

        @overload
        def encode_chat(
            self,
            messages: Messages,
            *,
            return_spans: Literal[False] = False,
            mask: Literal["turn", "content"] = "turn",
            add_special: bool = True,
            refuse_user_defined: bool = False,
            trust: bool = False,
            tools: Iterable[Tool] | None = None,
            documents: Iterable[Message] | None = None,
            add_generation_prompt: bool | None = None,
            continue_final_message: Continued | None = None,
            template: str | None = None,
            template_text: str | None = None,
            media_marker: str | None = None,
            raw: bool = False,
            warnings: list[Finding] | None = None,
            **variables: Any,
        ) -> list[int]: ...
        @overload
        def encode_chat(
            self,
            messages: Messages,
            *,
            return_spans: Literal[True],
            mask: Literal["turn", "content"] = "turn",
            **rendering: Any,
        ) -> ChatEncoding: ...

    def encode_chat(
        self,
        messages: Messages,
        *,
        return_spans: bool = False,
        mask: Literal["turn", "content"] = "turn",
        add_special: bool = True,
        refuse_user_defined: bool = False,
        trust: bool = False,
        tools: Iterable[Tool] | None = None,
        documents: Iterable[Message] | None = None,
        add_generation_prompt: bool | None = None,
        continue_final_message: Continued | None = None,
        template: str | None = None,
        template_text: str | None = None,
        media_marker: str | None = None,
        raw: bool = False,
        warnings: list[Finding] | None = None,
        **variables: Any,
    ) -> list[int] | ChatEncoding:
        """The ids of a conversation. Control tokens come from the template only, never from the caller's strings.

        Args:
            messages: As in `apply_chat_template`, as are all arguments that are not listed here.
            return_spans: Whether to return a `ChatEncoding`: ids, the tokens of each message, an assistant mask,
                findings, and where the markers of images are.
            mask: What the assistant mask covers if the template has no `{% generation %}`. "turn": all that the model
                would generate: content, thinking, tool calls with their syntax, and the end of the turn. "content": the
                strings of messages with the role `assistant`.
            add_special: Whether to add BOS and EOS if the vocabulary asks for them. What the template writes itself
                is not added again.
            refuse_user_defined: Whether to refuse user-defined tokens that work like control tokens in the caller's
                strings: tags such as `<|tool_call>`, and those that the template writes. They are read in every text.
            trust: Read control tokens in the whole text, as llama-server does: whoever writes a message can end it.
                The ids are then the server's, and their number its `usage.prompt_tokens`.

        Raises:
            ChatTemplateError: As `apply_chat_template`; or, with `return_spans`, it cannot be known what the assistant
                would generate.
            VocabularyError: The vocabulary reads control tokens in every text (RWKV, PLaMo-2), and a message contains
                one; a string has a token that `refuse_user_defined` refuses; or as `encode`.
            ChatRequestError, ChatTypeError, DependencyError: As `apply_chat_template`.
            GgtokError: As `apply_chat_template`; or `raw` is given without `trust`, or with `return_spans`.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> ids = tok.encode_chat([{"role": "user", "content": "<|im_end|>"}], add_generation_prompt=False)
        >>> ids.count(tok.vocab.id("<|im_end|>")), tok.decode(ids)
        (1, 'user\\n<|im_end|>\\n')
        """
        from .chat.conversation import Conversation, EncodeSettings, Options

        prompt = add_generation_prompt, continue_final_message
        options = Options(tools, documents, *prompt, template, template_text, media_marker, raw, warnings)
        chat = Conversation(self, messages, options, variables)
        settings = EncodeSettings(add_special, refuse_user_defined, trust)
        return chat.encoding(settings, mask) if return_spans else chat.ids(settings)

    def count_messages(
        self,
        messages: Messages,
        *,
        add_special: bool = True,
        refuse_user_defined: bool = False,
        trust: bool = False,
        tools: Iterable[Tool] | None = None,
        documents: Iterable[Message] | None = None,
        add_generation_prompt: bool | None = None,
        continue_final_message: Continued | None = None,
        template: str | None = None,
        template_text: str | None = None,
        media_marker: str | None = None,
        raw: bool = False,
        warnings: list[Finding] | None = None,
        **variables: Any,
    ) -> int:
        """The number of ids of a conversation: `len(tok.encode_chat(...))`, with the same arguments and errors.

        With `trust=True` it is llama-server's `usage.prompt_tokens`.

        >>> import ggtok
        >>> template = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"
        >>> chat = [{"role": "user", "content": "Hi"}]
        >>> ggtok.Tokenizer.builtin("bpe").count_messages(chat, template_text=template)
        4
        """
        from .chat.conversation import Conversation, EncodeSettings, Options

        prompt = add_generation_prompt, continue_final_message
        options = Options(tools, documents, *prompt, template, template_text, media_marker, raw, warnings)
        settings = EncodeSettings(add_special, refuse_user_defined, trust)
        return len(Conversation(self, messages, options, variables).ids(settings))

    def chat(
        self,
        messages: Messages = (),
        *,
        add_special: bool = True,
        tools: Iterable[Tool] | None = None,
        documents: Iterable[Message] | None = None,
        add_generation_prompt: bool | None = None,
        template: str | None = None,
        template_text: str | None = None,
        media_marker: str | None = None,
        raw: bool = False,
        warnings: list[Finding] | None = None,
        **variables: Any,
    ) -> Chat:
        """A conversation that grows: `append` returns the new ids, and encodes only what the template changed.

        Args:
            messages: Messages to begin with, which are rendered when ids are first needed. Default: none.
            add_special: As in `encode_chat`.
            tools: As in `apply_chat_template`, as are all arguments that are not listed here.
            add_generation_prompt: Whether the ids end with the beginning of an assistant's message, unless the last
                message is the assistant's, which is closed. Default: they do.
            raw: Not for chats: `True` raises `GgtokError`.

        Raises what `encode_chat` does for its arguments. See docs/chat.md.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> chat = tok.chat()
        >>> turn = chat.append({"role": "user", "content": "Hi"})
        >>> turn.kept, tok.decode(turn.new_ids)
        (0, 'user\\nHi\\nassistant\\n')
        """
        from .chat.chat import Chat
        from .chat.conversation import Conversation, Options
        from .chat.growing import Growing

        prompt = add_generation_prompt, None
        options = Options(tools, documents, *prompt, template, template_text, media_marker, raw, warnings)
        conversation = Conversation(self, messages, options, variables, closes=True)
        first = conversation.body.pop("messages", None)
        return Chat(Growing(conversation, add_special), first)

    if TYPE_CHECKING:

        @overload
        def trim_messages(
            self, messages: Mapping[str, Any], max_tokens: SupportsIndex, *, keep: Keep = 1, **rendering: Any
        ) -> dict[str, Any]: ...
        @overload
        def trim_messages(
            self, messages: Iterable[M], max_tokens: SupportsIndex, *, keep: Keep = 1, **rendering: Any
        ) -> list[M]: ...

    def trim_messages(
        self, messages: Any, max_tokens: SupportsIndex, *, keep: Keep = 1, **rendering: Any
    ) -> list[Any] | dict[str, Any]:
        """The conversation without its oldest turns, so that `count_messages` is at most `max_tokens`.

        A turn begins with a user's message, or with the system messages just before it, and ends where the next one
        begins: tool calls stay with their results. System messages at the start and the last turn always stay. As many
        turns stay as fit: with the next older one the conversation would be too long, or the template refuses it.

        Args:
            messages: As in `count_messages`: messages, or the body of a request.
            max_tokens: The most tokens of the result, with the generation prompt. Leave room for the answer.
            keep: How many of the last turns must stay; or a function that takes a message and says whether its turn
                must stay, besides the last one.
            **rendering: All other arguments of `count_messages`, such as `tools`, `template` and variables of the
                template.

        Returns:
            A list of the messages that stay, the same objects. For the body of a request, a new body with that list.

        Raises:
            GgtokError: What must stay takes more than `max_tokens`: the error says how many. Or `max_tokens` or `keep`
                is less than 1.
            ChatTemplateError: The template refuses whatever is left, or as `count_messages`.
            ChatRequestError, VocabularyError, TypeError: As `count_messages`.

        Takes about as long as three calls of `count_messages`. Warns as that does, about the messages that stay.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> questions = ["Hello!", "Who are you?", "What is LoRA?"]
        >>> messages = [{"role": "user", "content": text} for text in questions]
        >>> [message["content"] for message in tok.trim_messages(messages, 30)]
        ['Who are you?', 'What is LoRA?']
        >>> kept = tok.trim_messages(messages, 30, keep=lambda message: message["content"] == "Hello!")
        >>> [message["content"] for message in kept]
        ['Hello!', 'What is LoRA?']
        """
        from .chat.trimming import trimmed

        return trimmed(self, messages, max_tokens, keep, rendering)

    def rerank(self, query: str, document: str) -> list[int]:
        """The ids from which a reranker scores a document, as llama-server's `/rerank` makes them.

        If the file has a template named `rerank`, the texts replace `{query}` and `{document}` in it. Control tokens
        are read in all of the result, so a query or a document can contain some. Otherwise the ids are BOS, query, EOS,
        SEP, document, EOS: those of the special tokens that the vocabulary adds, with SEP for an EOS that it does not
        have. Control tokens in the two texts are then read as text.

        Raises:
            VocabularyError: The vocabulary adds a token that it does not have; or as `encode`.
            TypeError: An argument is not a string.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("wordpiece")
        >>> tok.decode(tok.rerank("What is LoRA?", "A radio."), unparse_special=True)
        '[CLS] what is lora ?[SEP] a radio .'
        """
        from .chat.prompts import rerank

        return rerank(self, query, document)

    def encode_infill(
        self,
        prefix: str,
        suffix: str,
        *,
        prompt: str = "",
        extra_files: Mapping[str, str] | Iterable[Mapping[str, str]] = (),
        n_ctx: SupportsIndex | None = None,
        n_batch: SupportsIndex = 2048,
        n_predict: SupportsIndex = -1,
        spm_infill: bool = False,
    ) -> list[int]:
        """The ids from which a model fills a gap in code, as llama-server's `/infill` makes them.

        Files of the repository come first, then BOS if the vocabulary adds it, the prefix with the prompt, and the
        suffix, each after its FIM token. Control tokens are read in the prompt only. What is too long is cut: the
        prefix at its start, to three quarters of `n_batch`; the suffix at its end, so that it and the prompt take a
        quarter; and the files at their start, to what the context has left.

        Args:
            prefix: The text before the gap.
            suffix: The text after it.
            prompt: The beginning of what fills it.
            extra_files: Texts by file name, or mappings with `filename` and `text`, as the server takes them.
            n_ctx: The server's context, of one slot. Default: the model's own length; no limit if the file has none.
            n_batch: The server's `--batch-size`.
            n_predict: The server's `--predict`. A request's own number of tokens does not count.
            spm_infill: The server's `--spm-infill`: the suffix comes before the prefix.

        Raises:
            VocabularyError: The vocabulary lacks one of these FIM tokens, or adds a BOS that it does not have; or as
                `encode`.
            GgtokError: `n_ctx` or `n_batch` is less than 1.
            TypeError: An argument has the wrong type, or a file has no text.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> ids = tok.encode_infill("def double(x):\\n    return ", "\\n", extra_files={"one.py": "ONE = 1"})
        >>> print(tok.decode(ids, unparse_special=True))
        <|repo_name|>myproject
        <|file_sep|>one.py
        ONE = 1<|file_sep|>filename
        <|fim_prefix|>def double(x):
            return <|fim_suffix|>
        <|fim_middle|>
        """
        from .chat.prompts import infill

        return infill(self, (prefix, suffix, prompt), extra_files, (n_ctx, n_batch, n_predict), spm_infill)
