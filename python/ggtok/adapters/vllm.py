"""A tokenizer for vLLM, which opens GGUF files in the mode `ggtok`."""

from __future__ import annotations

import logging
from functools import cached_property

from ..errors import DependencyError, GgtokError
from ..tokenizer.seam import users_class
from ._shared import Names, load, special_ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence
    from typing import Any, Literal, Self

    from ..chat.conversation import Message, Tool
    from ..tokenizer.base import BaseTokenizer

__all__ = ["Tokenizer", "register"]

MODE = "ggtok"
"""The name of the mode: `--tokenizer-mode ggtok`."""

_NOT_VARIABLES = ("return_dict", "return_tensors", "padding", "truncation", "max_length")
"""What vLLM passes for transformers."""


def register() -> None:
    """Makes the tokenizer mode `ggtok` known to vLLM, in this process.

    An installed ggtok registers itself when vLLM starts, as a plugin of the group `vllm.general_plugins`.

    Raises `DependencyError` if vLLM is not installed, or is a version without a registry of tokenizers.
    """
    try:
        tokenizers, renderers = load("vllm.tokenizers", "vllm"), load("vllm.renderers.registry", "vllm")
        registries = tokenizers.TokenizerRegistry, renderers.RENDERER_REGISTRY
    except (AttributeError, DependencyError) as error:
        needs = "this adapter needs a vLLM with a registry of tokenizers and renderers: pip install -U vllm"
        raise DependencyError(needs) from error
    if MODE not in registries[0].tokenizers:
        registries[0].register(MODE, __name__, "Tokenizer")
        # This one gives the messages to the tokenizer, and passes ids on.
        registries[1].register(MODE, "vllm.renderers.deepseek_v32", "DeepseekV32Renderer")


def plugin() -> None:
    """What vLLM calls when it starts. A version without registries still starts, with a warning in the log."""
    try:
        register()
    except DependencyError as error:
        logging.getLogger("ggtok").warning("the tokenizer mode %s is missing: %s", MODE, error)


class Tokenizer:
    """A tokenizer with the protocol `vllm.tokenizers.TokenizerLike`.

    Control tokens in a text are read, because vLLM encodes prompts that templates have made. With `tokenize=True`
    a conversation's come from the template only.

    Args:
        tok: The tokenizer.
        truncation_side: Which side of a text that is too long is cut: "left" or "right".

    >>> import ggtok
    >>> tokenizer = ggtok.adapters.vllm.Tokenizer(ggtok.Tokenizer.builtin("spm"))
    >>> tokenizer.encode("What is LoRA?", max_length=3)
    [9819, 4304, 9910]
    >>> tokenizer.convert_ids_to_tokens([2224, 351])
    ['▁What', '▁is']
    """

    is_fast = True

    def __init__(
        self, tok: BaseTokenizer, *, truncation_side: Literal["left", "right"] = "left", name: str = ""
    ) -> None:
        self._tok, self._names, self.truncation_side, self.name_or_path = tok, Names(tok), truncation_side, name
        vocab = tok.vocab
        self.bos_token_id = vocab.bos_id
        """The id of BOS."""
        self.eos_token_id = vocab.eos_id
        """The id of EOS."""
        self.pad_token_id = vocab.eos_id if vocab.pad_id is None else vocab.pad_id
        """The id of the padding token, or of EOS if there is none."""
        self.vocab_size = len(vocab)
        """The number of tokens."""
        self.max_token_id = len(vocab) - 1
        """The highest id."""
        self.all_special_ids = special_ids(tok)
        """The ids of control and unknown tokens."""

    @classmethod
    def from_pretrained(cls, path_or_repo_id: str | os.PathLike[str], *_: object, **options: Any) -> Self:
        """Opens a GGUF file or a model by its name. Raises what `ggtok.Tokenizer.from_model` does.

        Of the options `truncation_side` is used; the others are for Hugging Face's repositories.
        """
        tok = users_class().from_model(path_or_repo_id)
        return cls(tok, truncation_side=options.get("truncation_side", "left"), name=str(path_or_repo_id))

    @property
    def all_special_tokens(self) -> list[str]:
        """The texts of control and unknown tokens."""
        return [self._names.texts[id] for id in self.all_special_ids]

    @cached_property
    def max_chars_per_token(self) -> int:
        """The most characters of a token's text."""
        return max(map(len, self._names.texts))

    def num_special_tokens_to_add(self) -> int:
        """The number of tokens that `add_special_tokens` adds to a text."""
        return self._tok.count("")

    def get_vocab(self) -> dict[str, int]:
        """The ids by the texts of the tokens."""
        return dict(self._names.ids)

    def get_added_vocab(self) -> dict[str, int]:
        """The ids of control, user-defined and unknown tokens by their texts."""
        return {self._names.texts[id]: id for id in sorted(self._names.added)}

    def encode(
        self, text: str, truncation: bool | None = None, max_length: int | None = None, add_special_tokens: bool = True
    ) -> list[int]:
        """The ids of a text, of which `max_length` are kept if it is given and `truncation` is not false."""
        ids = self._tok.encode(text, add_special=add_special_tokens, parse_special=True)
        if max_length is None or truncation is False or len(ids) <= max_length:
            return ids
        return ids[len(ids) - max_length :] if self.truncation_side == "left" else ids[:max_length]

    def __call__(
        self,
        text: str | list[str],
        text_pair: str | None = None,
        add_special_tokens: bool = True,
        truncation: bool = False,
        max_length: int | None = None,
    ) -> Any:
        """The ids and attention masks of one or several texts, a `transformers.BatchEncoding`.

        Raises `DependencyError` if transformers is not installed, and `ValueError` for a pair of texts.
        """
        if text_pair is not None:
            raise GgtokError("this tokenizer takes no pairs of texts")
        length = max_length if truncation else None
        rows = [
            self.encode(one, max_length=length, add_special_tokens=add_special_tokens)
            for one in ([text] if isinstance(text, str) else text)
        ]
        masks = [[1] * len(ids) for ids in rows]
        data: dict[str, Any] = {"input_ids": rows, "attention_mask": masks}
        if isinstance(text, str):
            data = {name: lists[0] for name, lists in data.items()}
        return load("transformers", "transformers").BatchEncoding(data)

    def apply_chat_template(
        self,
        messages: Iterable[Message] | None = None,
        tools: Iterable[Tool] | None = None,
        *,
        conversation: Iterable[Message] | None = None,
        chat_template: str | None = None,
        tokenize: bool = True,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        documents: Iterable[Message] | None = None,
        **variables: Any,
    ) -> str | list[int]:
        """The ids of a conversation, or its text, by the file's chat template.

        Args:
            messages: The messages.
            tools: The tools.
            conversation: The messages as vLLM has parsed them, which are used if they are given.
            chat_template: The text of another template.
            tokenize: Whether to return ids. They have control tokens only where the template writes them.
            add_generation_prompt: As in `ggtok.Tokenizer.encode_chat`, as are all that follow.
            continue_final_message: As said above.
            documents: As said above.
            **variables: Further variables of the template. Those that are `None` are left out.

        Raises what `ggtok.Tokenizer.encode_chat` does.
        """
        given = {name: value for name, value in variables.items() if value is not None and name not in _NOT_VARIABLES}
        from ..chat.conversation import Conversation, EncodeSettings, Options

        given_messages = (conversation if conversation is not None else messages) or ()
        options = Options(tools, documents, add_generation_prompt, continue_final_message, template_text=chat_template)
        chat = Conversation(self._tok, given_messages, options, given, closes=True)
        return chat.ids(EncodeSettings()) if tokenize else chat.text()

    def convert_tokens_to_ids(self, tokens: str | list[str]) -> Any:
        """The id of a token, or those of several. `None` for a text that is not a token."""
        if isinstance(tokens, str):
            return self._names.ids.get(tokens)
        return [self._names.ids.get(token) for token in tokens]

    def convert_ids_to_tokens(self, ids: Sequence[int], skip_special_tokens: bool = False) -> list[str]:
        """The texts of tokens. Ids that are not in the vocabulary have an empty one."""
        texts = self._names.texts
        skipped = frozenset(self.all_special_ids if skip_special_tokens else ())
        return [texts[id] if 0 <= id < len(texts) else "" for id in ids if id not in skipped]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """The text that tokens stand for, with the space that it may start with."""
        ids = [self._names.ids.get(token) for token in tokens]
        return b"".join([self._tok.piece(id) for id in ids if id is not None]).decode("utf-8", "replace")

    def decode(self, ids: Sequence[int] | int, skip_special_tokens: bool = False) -> str:
        """The text of ids; a single one keeps the space that it may start with."""
        several = [ids] if isinstance(ids, int) else ids
        if len(several) == 1:
            [single] = several
            return self._tok.piece(single, special=not skip_special_tokens).decode("utf-8", "replace")
        return self._tok.decode(several, unparse_special=not skip_special_tokens)

    def __len__(self) -> int:
        return self.vocab_size

    def __repr__(self) -> str:
        return f"<ggtok.adapters.vllm.Tokenizer of {self._tok!r}>"
