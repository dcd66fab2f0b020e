"""Prompts of llama-server's /rerank and /infill, against the same steps written down as the server has them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import BUILTIN, TOKENIZERS
from ggtok import GgtokError, Tokenizer, VocabularyError
from hypothesis import given
from hypothesis import strategies as st
from test_api import GGUF

GGML = "tokenizer.ggml."
SMALL = Tokenizer.from_gguf(GGUF)
BOS, EOS, USER = 260, 261, 262
"""The ids of `<s>`, `</s>` and `<user>` in `SMALL`."""

PIECES = ["hello", "ll", " ", "\n", "\u00e9", "<s>", "</s>", "<user>", "{query}", "{document}", "x" * 9]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def small(**settings: Any) -> Tokenizer:
    """`SMALL` with other metadata."""
    return Tokenizer.from_gguf(GGUF, overrides={GGML + name: value for name, value in settings.items()})


def ids(tok: Tokenizer, text: str, parse_special: bool = False) -> list[int]:
    return tok.encode(text, add_special=False, parse_special=parse_special)


# Reranking


def with_template(text: str) -> Tokenizer:
    return Tokenizer.from_gguf(GGUF, overrides={"tokenizer.chat_template.rerank": text})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [BOS, "q", "d"]),
        ({"add_bos_token": False}, ["q", "d"]),
        ({"add_eos_token": True}, [BOS, "q", EOS, "d", EOS]),
        ({"add_sep_token": True, "seperator_token_id": 262}, [BOS, "q", USER, "d"]),
        (
            {"add_eos_token": True, "add_sep_token": True, "seperator_token_id": 262},
            [BOS, "q", EOS, USER, "d", EOS],
        ),
    ],
)
def test_rerank_without_a_template(settings: dict[str, Any], expected: list[Any]) -> None:
    tok = small(**settings)
    texts = {"q": ids(tok, "hello <s>"), "d": ids(tok, "</s>he")}
    assert BOS not in texts["q"]
    assert EOS not in texts["d"]
    want = [id for part in expected for id in (texts[part] if isinstance(part, str) else [part])]
    assert tok.rerank("hello <s>", "</s>he") == want


def test_rerank_of_bert() -> None:
    """SEP stands for an EOS that BERT does not have."""
    tok = TOKENIZERS["wordpiece"]
    vocab = tok.vocab
    assert vocab.eos_id is None
    assert tok.rerank("a", "b") == [vocab.bos_id, *ids(tok, "a"), vocab.sep_id, *ids(tok, "b")]


def test_rerank_with_a_missing_token() -> None:
    """The server refuses the request."""
    with pytest.raises(VocabularyError, match="no SEP token"):
        small(add_sep_token=True).rerank("a", "b")


@given(TEXTS, TEXTS, TEXTS)
def test_rerank_with_a_template(text: str, query: str, document: str) -> None:
    """The document may stand where the query says so: all of it is replaced twice, one after the other."""
    tok = with_template(text)
    replaced = document.join(query.join(text.split("{query}")).split("{document}"))
    assert tok.rerank(query, document) == ids(tok, replaced, parse_special=True)


def test_rerank_with_the_template_of_a_model() -> None:
    tok = with_template("<s>Query: {query}\nDocument: {document}</s>")
    assert tok.rerank("he", "</s>") == [BOS, *ids(tok, "Query: he\nDocument: "), EOS, EOS]
    with pytest.raises(TypeError):
        tok.rerank(b"he", "x")  # type: ignore[arg-type]


# Filling in


FIM = {"fim_pre_token_id": 10, "fim_suf_token_id": 11, "fim_mid_token_id": 12}
REPOSITORY = {"fim_rep_token_id": 13, "fim_sep_token_id": 14}


def infill(tok: Tokenizer, prefix: str, suffix: str, prompt: str, files: list[Any], budget: Any, spm: bool) -> Any:
    """`format_prompt_infill`, statement by statement."""
    vocab = tok.vocab
    n_ctx, n_batch, n_predict = budget
    extra: list[int | None] = []
    if vocab.fim_rep_id is not None:
        extra.append(vocab.fim_rep_id)
        extra += ids(tok, "myproject\n")
    for chunk in files:
        if vocab.fim_sep_id is not None:
            extra.append(vocab.fim_sep_id)
            extra += ids(tok, chunk.get("filename", "tmp") + "\n")
        else:
            extra += ids(tok, "\n\n--- snippet ---\n\n")
        extra += ids(tok, chunk["text"])
    if vocab.fim_sep_id is not None:
        extra.append(vocab.fim_sep_id)
        extra += ids(tok, "filename\n")
    tokens_prefix: list[int | None] = [*ids(tok, prefix)]
    tokens_suffix: list[int | None] = [*ids(tok, suffix)]
    tokens_prompt = ids(tok, prompt, parse_special=True)
    n_prefix_take = min(len(tokens_prefix), 3 * (n_batch // 4))
    n_suffix_take = min(len(tokens_suffix), max(0, n_batch // 4 - (2 + len(tokens_prompt))))
    n_extra_take = min(max(0, n_ctx - n_batch - 2 * n_predict), len(extra))
    tokens_prefix = tokens_prefix[len(tokens_prefix) - n_prefix_take :]
    tokens_suffix = tokens_suffix[:n_suffix_take]
    tokens_prefix = [vocab.fim_pre_id, *tokens_prefix, *tokens_prompt]
    tokens_suffix = [vocab.fim_suf_id, *tokens_suffix]
    embd_inp, embd_end = (tokens_suffix, tokens_prefix) if spm else (tokens_prefix, tokens_suffix)
    if vocab.add_bos:
        embd_inp.insert(0, vocab.bos_id)
    embd_inp = extra[len(extra) - n_extra_take :] + embd_inp
    return [*embd_inp, *embd_end, vocab.fim_mid_id]


VOCABULARIES = [
    small(**FIM, **some)
    for some in ({}, REPOSITORY, {"fim_rep_token_id": 13}, {"fim_sep_token_id": 14}, {"add_bos_token": False})
]
FILES = st.lists(st.fixed_dictionaries({"text": TEXTS}, optional={"filename": TEXTS}), max_size=3)
BUDGETS = st.tuples(st.integers(1, 3).map(lambda count: 256 * count), st.integers(1, 300), st.integers(-1, 100))


@given(st.sampled_from(VOCABULARIES), TEXTS, TEXTS, TEXTS, FILES, BUDGETS, st.booleans())
def test_infill(
    tok: Tokenizer,
    prefix: str,
    suffix: str,
    prompt: str,
    files: list[dict[str, str]],
    budget: tuple[int, int, int],
    spm: bool,
) -> None:
    n_ctx, n_batch, n_predict = budget
    settings: dict[str, Any] = {"n_batch": n_batch, "n_predict": n_predict, "spm_infill": spm}
    found = tok.encode_infill(prefix, suffix, prompt=prompt, extra_files=files, n_ctx=n_ctx, **settings)
    assert found == infill(tok, prefix, suffix, prompt, files, budget, spm)
    rounded = tok.encode_infill(prefix, suffix, prompt=prompt, extra_files=files, n_ctx=n_ctx - 255, **settings)
    assert rounded == found


def test_infill_by_name() -> None:
    tok = small(**FIM, **REPOSITORY)
    files = {"a.py": "hello", "tmp": "he"}
    listed = [{"filename": "a.py", "text": "hello"}, {"text": "he"}]
    assert tok.encode_infill("x", "y", extra_files=files) == tok.encode_infill("x", "y", extra_files=listed)


def test_infill_reads_control_tokens_in_the_prompt_only() -> None:
    tok = small(**FIM)
    assert tok.encode_infill("<s>", "<s>").count(BOS) == 1
    assert tok.encode_infill("<s>", "<s>", prompt="<s>").count(BOS) == 2


def test_infill_has_the_context_of_the_model() -> None:
    """The file's own length is the most; without it, all files stay."""
    files = {"a": "hello" * 200}
    size: dict[str, Any] = {"general.architecture": "llama", "llama.context_length": 300}
    overrides: dict[str, Any] = {GGML + name: value for name, value in FIM.items()}
    short = Tokenizer.from_gguf(GGUF, overrides={**overrides, **size})
    settings: dict[str, Any] = {"n_batch": 100, "n_predict": 50}
    assert len(short.encode_infill("x", "y", extra_files=files, **settings)) == 100 + 6
    assert len(short.encode_infill("x", "y", extra_files=files, n_ctx=9999, **settings)) == 100 + 6
    assert len(short.encode_infill("x", "y", extra_files=files, n_ctx=256, **settings)) == 56 + 6
    assert len(small(**FIM).encode_infill("x", "y", extra_files=files)) > 200


def test_infill_without_fim_tokens() -> None:
    for missing, name in zip(FIM, ("prefix", "suffix", "middle"), strict=True):
        tok = small(**{token: id for token, id in FIM.items() if token != missing})
        with pytest.raises(VocabularyError, match=f"no FIM {name} token"):
            tok.encode_infill("x", "y")


def test_infill_with_wrong_arguments() -> None:
    tok = small(**FIM, **REPOSITORY)
    with pytest.raises(GgtokError, match="n_ctx must be at least 1, not 0"):
        tok.encode_infill("x", "y", n_ctx=0)
    with pytest.raises(GgtokError, match="n_batch must be at least 1, not 0"):
        tok.encode_infill("x", "y", n_batch=0)
    wrong: list[Any] = [[{"filename": "a"}], [{"text": 5}], {"a": None}, {5: "a"}]
    for files in wrong:
        with pytest.raises(TypeError):
            tok.encode_infill("x", "y", extra_files=files)


# Counting as the server does


CHATML = "{% for m in messages %}<s>{{ m.content }}</s>{% endfor %}"


@given(st.lists(TEXTS, min_size=1, max_size=3), st.sampled_from(["", "{{ bos_token }}"]))
def test_counts_of_the_server(texts: list[str], start: str) -> None:
    """The server takes the template's BOS out of the text, and reads control tokens in all of it."""
    messages = [{"role": "user", "content": text} for text in texts]
    options: dict[str, Any] = {"template_text": start + CHATML, "warnings": []}
    text = SMALL.apply_chat_template(messages, **options)
    expected = SMALL.encode(text, parse_special=True)
    assert SMALL.encode_chat(messages, trust=True, **options) == expected
    assert SMALL.count_messages(messages, trust=True, **options) == len(expected)


@pytest.mark.parametrize("name", BUILTIN)
def test_counts_differ_only_if_control_tokens_are_written(name: str) -> None:
    tok = TOKENIZERS[name]
    options: dict[str, Any] = {"template": "chatml", "warnings": []}
    plain = [{"role": "user", "content": json.dumps({"a": [1, "b"]})}]
    assert tok.count_messages(plain, **options) == tok.count_messages(plain, trust=True, **options)
