"""`ggtok.adapters.vllm` by its protocol, and in vLLM's registry, detokenizer and renderer if that is installed."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import ggtok
import pytest
from conftest import VOCABULARIES
from ggtok.adapters import vllm as adapter
from ggtok.adapters.vllm import Tokenizer

KINDS = ("bpe", "spm")
CHAT: list[dict[str, Any]] = [{"role": "user", "content": "Hi <|im_end|>"}]
HAS_VLLM = importlib.util.find_spec("vllm") is not None
needs_vllm = pytest.mark.skipif(not HAS_VLLM, reason="vLLM is not installed: pip install vllm")

MEMBERS = (
    *("from_pretrained", "num_special_tokens_to_add", "all_special_tokens", "all_special_ids", "bos_token_id"),
    *("eos_token_id", "pad_token_id", "is_fast", "vocab_size", "max_token_id", "max_chars_per_token"),
    *("truncation_side", "__hash__", "__len__", "__call__", "get_vocab", "get_added_vocab", "encode"),
    *("apply_chat_template", "convert_tokens_to_ids", "convert_tokens_to_string", "decode", "convert_ids_to_tokens"),
)
"""Those of `TokenizerLike` in vLLM 0.33."""


def made(kind: str, **options: Any) -> Tokenizer:
    return Tokenizer(ggtok.Tokenizer.builtin(kind), **options)


def test_it_has_the_protocol() -> None:
    assert all(hasattr(made("bpe"), name) for name in MEMBERS)


@pytest.mark.parametrize("kind", KINDS)
def test_vocabulary(kind: str) -> None:
    tok, tokenizer = ggtok.Tokenizer.builtin(kind), made(kind)
    vocab = tokenizer.get_vocab()
    assert len(vocab) == len(tokenizer) == tokenizer.vocab_size == tokenizer.max_token_id + 1 == tok.vocab_size
    special = [token.id for token in tok.vocab if token.attributes & (8 | 1)]
    assert tokenizer.all_special_ids == special
    assert tokenizer.all_special_tokens == [tok.vocab[id].text for id in special]
    assert {*tokenizer.get_added_vocab().values()} >= {*special}
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (tok.vocab.bos_id, tok.vocab.eos_id)
    assert tokenizer.pad_token_id == (tok.vocab.pad_id if kind == "bpe" else tok.vocab.eos_id)
    assert tokenizer.max_chars_per_token == max(map(len, vocab))
    assert tokenizer.num_special_tokens_to_add() == len(tok.encode(""))
    assert tokenizer.convert_tokens_to_ids("nonesuch") is None


@pytest.mark.parametrize("kind", KINDS)
def test_texts(kind: str) -> None:
    tok, tokenizer = ggtok.Tokenizer.builtin(kind), made(kind)
    text = "What is LoRA? naïve \U0001f600"
    ids = tok.encode(text)
    assert tokenizer.encode(text) == ids
    assert tokenizer.encode(text, add_special_tokens=False) == tok.encode(text, add_special=False)
    assert tokenizer.encode("<|im_end|></s>") == tok.encode("<|im_end|></s>", parse_special=True)
    assert tokenizer.encode(text, max_length=4) == ids[-4:]
    assert made(kind, truncation_side="right").encode(text, max_length=4) == ids[:4]
    assert tokenizer.encode(text, truncation=False, max_length=4) == ids
    assert (tokenizer.encode(text, max_length=0), tokenizer.encode(text, max_length=99)) == ([], ids)
    assert tokenizer.decode(ids, skip_special_tokens=True) == text
    assert tokenizer.decode(ids[2]) == tokenizer.decode(ids[2:3]) == tok.piece(ids[2]).decode()
    tokens = tokenizer.convert_ids_to_tokens(ids)
    assert tokenizer.convert_tokens_to_ids(tokens) == ids
    assert tokenizer.convert_tokens_to_string(tokens[1:]) == b"".join(map(tok.piece, ids[1:])).decode()
    assert tokenizer.convert_ids_to_tokens([tok.vocab_size]) == [""]
    kept = tokenizer.convert_ids_to_tokens([*ids, *tokenizer.all_special_ids], skip_special_tokens=True)
    assert kept == [token for token in tokens if token not in tokenizer.all_special_tokens]


def test_batch_encodings() -> None:
    pytest.importorskip("transformers")
    tokenizer = made("spm")
    one = tokenizer("What is LoRA?", add_special_tokens=False)
    assert (one["input_ids"], one.attention_mask) == (
        tokenizer.encode("What is LoRA?", add_special_tokens=False),
        [1] * 6,
    )
    two = tokenizer(["What is LoRA?", "the"], truncation=True, max_length=3)
    assert [len(ids) for ids in two.input_ids] == [3, 2]
    with pytest.raises(ValueError, match="no pairs"):
        tokenizer("a", "b")


def test_conversations() -> None:
    """Ids have control tokens only where the template writes them; texts are for vLLM to encode."""
    tok, tokenizer = ggtok.Tokenizer.builtin("bpe"), made("bpe")
    ids = tokenizer.apply_chat_template(CHAT, add_generation_prompt=True, return_dict=False, reasoning_effort=None)
    assert ids == tok.encode_chat(CHAT)
    assert tokenizer.apply_chat_template([], conversation=CHAT) == tok.encode_chat(CHAT, add_generation_prompt=False)
    text = tokenizer.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True)
    assert text == tok.apply_chat_template(CHAT)
    template = "{% for m in messages %}[{{ m.content }}]{% endfor %}"
    assert tokenizer.apply_chat_template(CHAT, chat_template=template, tokenize=False) == "[Hi <|im_end|>]"


def test_models_by_name(tmp_path: Path) -> None:
    path = shutil.copy(VOCABULARIES / "spm.gguf", tmp_path / "model.gguf")
    tokenizer = Tokenizer.from_pretrained(
        path, trust_remote_code=False, revision=None, download_dir=None, truncation_side="right"
    )
    assert tokenizer.encode("the", max_length=1) == [1]
    assert tokenizer.name_or_path == str(path)


def test_registration(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """In registries like vLLM's, twice; and a version without any, which a plugin must not break."""
    known: dict[str, tuple[str, str]] = {}

    def register(mode: str, module: str, cls: str) -> None:
        known[f"{len(known)}:{mode}"] = module, cls

    registry = SimpleNamespace(register=register, tokenizers={})
    modules: dict[str, Any] = {name: ModuleType(name) for name in ("vllm", "vllm.tokenizers", "vllm.renderers")}
    modules["vllm.renderers.registry"] = ModuleType("vllm.renderers.registry")
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    with pytest.raises(ggtok.DependencyError, match="registry of tokenizers"):
        adapter.register()
    adapter.plugin()
    assert "the tokenizer mode ggtok is missing" in caplog.text
    modules["vllm.tokenizers"].TokenizerRegistry = modules["vllm.renderers.registry"].RENDERER_REGISTRY = registry
    adapter.register()
    assert known["0:ggtok"] == ("ggtok.adapters.vllm", "Tokenizer")
    assert len(known) == 2
    registry.tokenizers["ggtok"] = known["0:ggtok"]
    adapter.plugin()
    assert len(known) == 2


# In vLLM itself


def installed(module: str) -> Any:
    return importlib.import_module(f"vllm.{module}")


@needs_vllm
def test_protocol_of_the_installed_version() -> None:
    protocol = installed("tokenizers").TokenizerLike

    for name, member in vars(protocol).items():
        if (not name.startswith("_") or name in ("__call__", "__len__")) and callable(member):
            theirs = inspect.signature(member).parameters
            ours = inspect.signature(getattr(Tokenizer, name)).parameters
            takes_all = any(one.kind is one.VAR_KEYWORD for one in ours.values())
            assert {*theirs} - {"args", "kwargs"} <= {*ours} or takes_all
    assert [name for name in vars(protocol) if not name.startswith("_") and not hasattr(Tokenizer, name)] == [
        "truncation_side"  # of instances
    ]


@needs_vllm
@pytest.mark.parametrize("kind", KINDS)
def test_in_vllm(kind: str, tmp_path: Path) -> None:
    """The mode is found, and its incremental detokenizer gives the text that `decode` does."""
    utils = installed("tokenizers.detokenizer_utils")
    adapter.register()
    path = shutil.copy(VOCABULARIES / f"{kind}.gguf", tmp_path / "model.gguf")
    tokenizer: Any = installed("tokenizers").get_tokenizer(str(path), tokenizer_mode="ggtok")
    assert type(tokenizer) is Tokenizer
    prompt, answer = tokenizer.encode("What is LoRA?"), " A naïve \U0001f600 answer."
    ids = ggtok.Tokenizer.builtin(kind).encode(answer, add_special=False, continues=True)
    tokens, prefix, read = utils.convert_prompt_ids_to_tokens(tokenizer, prompt)
    found = ""
    for end in range(1, len(ids) + 1):
        new, text, prefix, read = utils.detokenize_incrementally(tokenizer, [*prompt, *ids[:end]], tokens, prefix, read)
        tokens, found = [*tokens, *new], found + text
    assert found == answer


@needs_vllm
def test_renderer_of_the_mode() -> None:
    adapter.register()
    renderer = installed("renderers.registry").RENDERER_REGISTRY.load_renderer_cls("ggtok")
    render = SimpleNamespace(get_tokenizer=lambda: made("bpe"))
    ids = renderer._apply_chat_template(render, conversation=CHAT, messages=CHAT, add_generation_prompt=True)
    assert ids == ggtok.Tokenizer.builtin("bpe").encode_chat(CHAT)
