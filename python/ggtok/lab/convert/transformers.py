"""A folder that `AutoTokenizer.from_pretrained` opens: the tokenizer, its special tokens and its chat templates.

Source: transformers `tokenization_utils_base.py`, `save_pretrained`, and llama.cpp `gguf-py/gguf/vocab.py`,
`SpecialVocab`, which reads the same files.
"""

from __future__ import annotations

import json
from typing import Any

from ...tokenizer.base import BaseTokenizer
from ...tokenizer.keys import CHAT_TEMPLATE
from ...tokenizer.vocab import TokenAttribute, special_texts
from . import tokenizers_json

UNLIMITED = 10**30
"""What transformers writes for a model whose context has no known length."""


def files(tokenizer: BaseTokenizer) -> dict[str, bytes]:
    """The files by their names in the folder."""
    special = _special(tokenizer)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": tokenizer.vocab.add_bos,
        "add_eos_token": tokenizer.vocab.add_eos,
        "clean_up_tokenization_spaces": False,
        "model_max_length": _context_length(tokenizer),
        "additional_special_tokens": _others(tokenizer, special),
        **special,
    }
    return {
        "tokenizer.json": tokenizers_json.exported(tokenizer),
        "tokenizer_config.json": _json(config),
        "special_tokens_map.json": _json(special),
        **{_file_of(name): text.encode("utf-8", "surrogateescape") for name, text in _templates(tokenizer).items()},
    }


def _special(tokenizer: BaseTokenizer) -> dict[str, str]:
    found = special_texts(tokenizer.vocab)
    if tokenizer.vocab.kind == "wordpiece" and "bos_token" in found:
        found["cls_token"] = found["bos_token"]
    return found


def _others(tokenizer: BaseTokenizer, special: dict[str, str]) -> list[str]:
    """The control tokens that have no name."""
    found = (token for token in tokenizer.vocab if TokenAttribute.CONTROL in token.attributes)
    return [token.text for token in found if token.text not in special.values()]


def _context_length(tokenizer: BaseTokenizer) -> int:
    length = tokenizer.metadata.get(f"{tokenizer.metadata.get('general.architecture')}.context_length")
    return length if type(length) is int else UNLIMITED


def _templates(tokenizer: BaseTokenizer) -> dict[str, str]:
    """The chat templates by name; the default one has none."""
    found = {
        key.removeprefix(CHAT_TEMPLATE)[1:]: text
        for key, text in tokenizer.metadata.items()
        if key.startswith(CHAT_TEMPLATE)
    }
    return {name: text for name, text in found.items() if isinstance(text, str) and "/" not in name}


def _file_of(name: str) -> str:
    return f"additional_chat_templates/{name}.jinja" if name else "chat_template.jinja"


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"
