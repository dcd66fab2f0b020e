"""A folder that `AutoTokenizer.from_pretrained` opens: the tokenizer, its special tokens and its chat templates.

Source: transformers `tokenization_utils_base.py`, `save_pretrained`, and llama.cpp `gguf-py/gguf/vocab.py`,
`SpecialVocab`, which reads the same files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...tokenizer.base import BaseTokenizer
from ...tokenizer.keys import CHAT_TEMPLATE
from ...tokenizer.metadata import Scalar
from ...tokenizer.vocab import TokenAttribute, ids_with, special_texts
from . import tokenizers_json

UNLIMITED = 10**30
"""What transformers writes for a model whose context has no known length."""


def files(tokenizer: BaseTokenizer) -> dict[str, bytes]:
    """The files by their names in the folder."""
    vocab, metadata = tokenizer.vocab, tokenizer.metadata
    special = special_texts(vocab)
    if vocab.kind == "wordpiece" and "bos_token" in special:
        special["cls_token"] = special["bos_token"]
    control = [vocab[id].text for id in ids_with(vocab, any_of=TokenAttribute.CONTROL)]
    length = metadata.get(f"{metadata.get('general.architecture')}.context_length")
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": vocab.add_bos,
        "add_eos_token": vocab.add_eos,
        "clean_up_tokenization_spaces": False,
        "model_max_length": length if type(length) is int else UNLIMITED,
        "additional_special_tokens": [text for text in control if text not in special.values()],
        **special,
    }
    return {
        "tokenizer.json": tokenizers_json.exported(tokenizer),
        "tokenizer_config.json": _json(config),
        "special_tokens_map.json": _json(special),
        **{_file_of(name): text.encode("utf-8", "surrogateescape") for name, text in _templates(metadata).items()},
    }


def _templates(metadata: Mapping[str, Scalar]) -> dict[str, str]:
    """The chat templates by name; the default one has none."""
    found = {
        key.removeprefix(CHAT_TEMPLATE)[1:]: text for key, text in metadata.items() if key.startswith(CHAT_TEMPLATE)
    }
    return {name: text for name, text in found.items() if isinstance(text, str) and "/" not in name}


def _file_of(name: str) -> str:
    return f"additional_chat_templates/{name}.jinja" if name else "chat_template.jinja"


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"
