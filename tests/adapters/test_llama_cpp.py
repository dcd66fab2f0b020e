"""`ggtok.adapters.llama_cpp` in llama-cpp-python, against its own tokenizer."""

from __future__ import annotations

from typing import Any

import ggtok
import pytest
from conftest import VOCABULARIES
from ggtok.adapters.llama_cpp import Tokenizer

llama_cpp: Any = pytest.importorskip(
    "llama_cpp", reason="llama-cpp-python is not installed, and has to be compiled: pip install llama-cpp-python"
)

TEXTS = [b"", b"What is LoRA?", b" a  b\n", "naïve \U0001f600".encode(), b"<s>a</s><|im_end|> b", b"\xff\xfe a"]


@pytest.mark.parametrize("kind", ["bpe", "spm", "unigram", "wordpiece"])
def test_as_its_own_tokenizer(kind: str) -> None:
    path = VOCABULARIES / f"{kind}.gguf"
    adapter = Tokenizer(ggtok.Tokenizer.from_gguf(path))
    assert isinstance(adapter, llama_cpp.BaseLlamaTokenizer)
    with_ours = llama_cpp.Llama(str(path), vocab_only=True, verbose=False, tokenizer=adapter)
    own = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
    assert with_ours.tokenizer_ is adapter
    for text in TEXTS:
        for add_bos in (True, False):
            for special in (True, False):
                ids = own.tokenize(text, add_bos, special)
                assert with_ours.tokenize(text, add_bos, special) == ids
                for start in range(min(3, len(ids))):
                    for shown in (True, False):
                        mine = with_ours.detokenize(ids[start:], special=shown)
                        assert mine == own.detokenize(ids[start:], special=shown)
    for line in ("naïve \ud800 a", "a b"):
        ids = own.tokenizer().encode(line)
        assert adapter.encode(line) == ids
        assert adapter.decode(ids) == own.tokenizer().decode(ids)
