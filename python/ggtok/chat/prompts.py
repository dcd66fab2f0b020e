"""Prompts that llama-server puts together out of ids: those of `/rerank` and `/infill`.

Source: llama.cpp's `format_prompt_rerank` and `format_prompt_infill` (tools/server/server-common.cpp). Deviations:
(1) where the server sends an id that the vocabulary does not have, there is an error; (2) `/infill` takes a prefix and
a suffix with ids among their strings, which are not accepted here. Complexity: as encoding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index as as_int
from typing import Any, SupportsIndex, TypeAlias

from ..errors import VocabularyError
from ..tokenizer.arguments import items_of, mapping
from ..tokenizer.base import BaseTokenizer
from ..tokenizer.keys import CHAT_TEMPLATE
from ..tokenizer.numbers import at_least

CONTEXT_STEP = 256
"""llama.cpp rounds the length of a context up to a multiple of it."""

Files: TypeAlias = Mapping[str, str] | Iterable[Mapping[str, Any]]

REPOSITORY, CURRENT_FILE, UNNAMED_FILE = "myproject\n", "filename\n", "tmp"
"""What the server calls the repository, the file to be completed, and one without a name."""

SNIPPET = "\n\n--- snippet ---\n\n"
"""Separates files where the vocabulary has no token for that."""


def rerank(tokenizer: BaseTokenizer, query: str, document: str) -> list[int]:
    """See `Tokenizer.rerank`."""
    template = tokenizer.metadata.get(f"{CHAT_TEMPLATE}.rerank")
    if isinstance(template, str):
        text = template.partition("\0")[0].replace("{query}", query).replace("{document}", document)
        return tokenizer.encode(text, add_special=False, parse_special=True)

    vocab = tokenizer.vocab
    end = [_needed("EOS", vocab.eos_id if vocab.eos_id is not None else vocab.sep_id)] if vocab.add_eos else []
    return [
        *([_needed("BOS", vocab.bos_id)] if vocab.add_bos else []),
        *tokenizer.encode(query, add_special=False),
        *end,
        *([_needed("SEP", vocab.sep_id)] if vocab.add_sep else []),
        *tokenizer.encode(document, add_special=False),
        *end,
    ]


def infill(
    tokenizer: BaseTokenizer,
    texts: tuple[str, str, str],
    files: Files,
    budget: tuple[SupportsIndex | None, SupportsIndex, SupportsIndex],
    spm_infill: bool,
) -> list[int]:
    """See `Tokenizer.encode_infill`. `texts` are prefix, suffix and prompt; `budget` is context, batch, answer."""
    vocab = tokenizer.vocab
    before, after, middle = fim_ids(tokenizer)
    prefix, suffix = (tokenizer.encode(text, add_special=False) for text in texts[:2])
    prompt = tokenizer.encode(texts[2], add_special=False, parse_special=True)
    extra = _repository(tokenizer, files)

    n_batch, n_predict = at_least(1, budget[1], "n_batch"), as_int(budget[2])
    prefix = prefix[max(len(prefix) - 3 * (n_batch // 4), 0) :]
    suffix = suffix[: max(n_batch // 4 - (2 + len(prompt)), 0)]
    n_ctx = _slot_length(tokenizer, budget[0])
    if n_ctx is not None:
        extra = extra[max(len(extra) - max(n_ctx - n_batch - 2 * n_predict, 0), 0) :]

    parts = [before, *prefix, *prompt], [after, *suffix]
    first, last = reversed(parts) if spm_infill else parts
    bos = [_needed("BOS", vocab.bos_id)] if vocab.add_bos else []
    return [*extra, *bos, *first, *last, middle]


def fim_ids(tokenizer: BaseTokenizer) -> list[int]:
    """The tokens before a prefix, a suffix and a middle. Raises `VocabularyError` if one is missing."""
    vocab = tokenizer.vocab
    ids = (("prefix", vocab.fim_pre_id), ("suffix", vocab.fim_suf_id), ("middle", vocab.fim_mid_id))
    return [_needed(f"FIM {name}", id) for name, id in ids]


def _repository(tokenizer: BaseTokenizer, files: Files) -> list[int]:
    """The ids of files of the same repository, each after its name."""
    vocab = tokenizer.vocab
    ids = [] if vocab.fim_rep_id is None else [vocab.fim_rep_id, *tokenizer.encode(REPOSITORY, add_special=False)]
    for name, text in _named(files):
        if vocab.fim_sep_id is None:
            ids += tokenizer.encode(SNIPPET, add_special=False)
        else:
            ids += [vocab.fim_sep_id, *tokenizer.encode(name + "\n", add_special=False)]
        ids += tokenizer.encode(text, add_special=False)
    if vocab.fim_sep_id is not None:
        ids += [vocab.fim_sep_id, *tokenizer.encode(CURRENT_FILE, add_special=False)]
    return ids


def _named(files: Files) -> Iterable[tuple[str, Any]]:
    """The name and the text of each file."""
    if isinstance(files, Mapping):
        return files.items()
    each = (mapping("a file of extra_files", file) for file in items_of("extra_files", files, "mappings"))
    return ((file.get("filename", UNNAMED_FILE), file.get("text")) for file in each)


def _slot_length(tokenizer: BaseTokenizer, n_ctx: SupportsIndex | None) -> int | None:
    """The length of a slot's context: never more than what the model was trained with, which the file may not say."""
    trained = tokenizer.metadata.get(f"{tokenizer.metadata.get('general.architecture')}.context_length")
    lengths = [trained] if isinstance(trained, int) else []
    if n_ctx is not None:
        lengths.append(-(at_least(1, n_ctx, "n_ctx") // -CONTEXT_STEP) * CONTEXT_STEP)
    return min(lengths, default=None)


def _needed(name: str, id: int | None) -> int:
    if id is None:
        raise VocabularyError(f"the vocabulary has no {name} token, which this needs")
    return id
