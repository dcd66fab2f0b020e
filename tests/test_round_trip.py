"""A text comes back as it was: encoded and decoded, it is the same bytes, in every vocabulary that keeps them.

A vocabulary comes back as it was too: written in another format and read again, it gives the same ids.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from conftest import SHARED, shared_files
from ggtok import ConversionError, Tokenizer

CODE = "find . -name '*.py' ; if x != y\n"
TEXTS = [
    CODE,
    "def f(x) :\n\treturn x [ 0 ] , 'it' 's' , I 'm , we 're , you 've\r\n",
    " leading and trailing ",
    "  two\n\n\n   lines \n",
    "naïve café, 中文 。 한국어 , e\u0301 👩‍👩‍👧 !",
    "<|im_end|> [CLS] </s> <user>",
    "\ufffd\x00\x7f",
    " ",
    "",
]

CHANGES_TEXTS = {
    "bert-bge": "WordPiece",
    "bert-bge-l1-s0": "WordPiece",
    "nomic-bert-moe": "Unigram with a character map",
    "ugm-nfkc-small": "Unigram with a character map",
    "ugm-keepws-small": "Unigram with a character map",
    "whitespace-lower-small": "drops white space and lowercases",
}
"""The vocabularies of docs/how/detokenizing.md that do not keep every text, and why."""


def kept(tokenizer: Tokenizer, text: str) -> str:
    """The text as SPM keeps it: a `▁` is a space."""
    return text.replace("\u2581", " ") if tokenizer.vocab.kind == "spm" else text


@lru_cache(1)
def opened(path: Path) -> Tokenizer:
    """One is kept, because a file takes each of its ways in turn."""
    return Tokenizer.from_gguf(path)


@lru_cache(1)
def recorded(path: Path) -> list[Any]:
    """llama.cpp's answers about texts."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [case for case in map(json.loads, lines) if "text" in case]


@cache
def documents() -> list[str]:
    """Pieces of the corpora, cut anywhere."""
    random, cut = Random(7), []
    for name in ("en", "code", "multi", "cjk"):
        text = (SHARED / "corpora" / f"{name}.txt").read_text(encoding="utf-8")
        starts = [random.randrange(len(text)) for _ in range(50)]
        cut += [text[start : start + random.randrange(400)] for start in starts]
    return cut


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_decoding_is_the_inverse_of_encoding(path: Path) -> None:
    tokenizer = Tokenizer.from_gguf(path)
    texts = [*TEXTS, *documents()]
    lost = [text for text in texts if tokenizer.decode(tokenizer.encode(text)) != kept(tokenizer, text)]
    assert bool(lost) == (path.stem in CHANGES_TEXTS), lost[:3]
    lost = [text for text in texts if tokenizer.decode(tokenizer.encode(text, add_special=False)) != text]
    assert bool(lost) == (path.stem in CHANGES_TEXTS), lost[:3]


def through_tokenizers(tokenizer: Tokenizer, folder: Path) -> Tokenizer:
    tokenizer.to_tokenizers_json(folder / "tokenizer.json")
    return Tokenizer.from_tokenizers_json(folder / "tokenizer.json")


def through_transformers(tokenizer: Tokenizer, folder: Path) -> Tokenizer:
    tokenizer.to_transformers(folder)
    return Tokenizer.from_tokenizers_json(folder / "tokenizer.json")


def through_sentencepiece(tokenizer: Tokenizer, folder: Path) -> Tokenizer:
    tokenizer.to_sentencepiece(folder / "tokenizer.model")
    return Tokenizer.from_sentencepiece(folder / "tokenizer.model")


def through_gguf(tokenizer: Tokenizer, folder: Path) -> Tokenizer:
    return tokenizer.to_gguf(folder / "tokenizer.gguf")


BYTE_LEVEL = {"deepseek-llm", "gpt-2", "llama-bpe", "mpt", "qwen2"}
EXACT: dict[Callable[[Tokenizer, Path], Tokenizer], set[str]] = {
    through_tokenizers: {"bert-bge", "bert-bge-l1-s0", "gemma-4", "nomic-bert-moe", *BYTE_LEVEL},
    through_transformers: {"bert-bge", "gpt-2", "nomic-bert-moe"},
    through_sentencepiece: {"baichuan", "llama-spm"},
}
"""The vocabularies that come back with all ids. Of others, an error or a warning says what cannot be expressed."""


ONE_OF_EACH_KIND = {"bert-bge", "gpt-2", "llama-spm", "nomic-bert-moe"}
"""For transformers there are settings beside the `tokenizer.json` that all vocabularies come through."""


def ways() -> list[Any]:
    """Vocabularies, and what they come through."""
    return [
        pytest.param(*file.values, through, id=f"{file.id}-{through.__name__}", marks=file.marks)
        for file in shared_files("vocabs/*.gguf")
        for through in [*EXACT, through_gguf]
        if through is not through_transformers or file.id in ONE_OF_EACH_KIND
    ]


@pytest.mark.parametrize(("path", "through"), ways())
def test_other_formats_give_the_ids_back(
    path: Path, through: Callable[[Tokenizer, Path], Tokenizer], tmp_path: Path, shared: Path
) -> None:
    tokenizer = opened(path)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            again = through(tokenizer, tmp_path)
    except ConversionError:
        is_exact = False
    else:
        is_exact = not caught
    assert is_exact == (path.stem in EXACT.get(through, {path.stem}))
    assert {str(each.message).rpartition(" ")[2] for each in caught} <= {"[conversion-differs]"}
    if not is_exact:
        return
    cases = recorded(shared / "conformance" / f"{path.stem}.jsonl.gz")
    assert len(cases) > 500
    flags = [{name: case[name] for name in ("add_special", "parse_special")} for case in cases]
    pairs = list(zip(cases, flags, strict=True))
    assert all(again.encode(case["text"], **some) == case["ids"] for case, some in pairs)
    if through is not through_sentencepiece:
        assert [token.text for token in again.vocab] == [token.text for token in tokenizer.vocab]
    if path.stem in BYTE_LEVEL:
        assert again.vocab.pre == ("olmo" if path.stem == "mpt" and through is not through_gguf else path.stem)
    if path.stem == "gemma-4":
        assert again.vocab.model == "gemma4"
        assert again.encode("Hello", add_special=False) == [9259]


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_the_shell_gives_the_bytes_back(path: Path) -> None:
    def ggtok(command: str, data: bytes) -> bytes:
        line = [sys.executable, "-m", "ggtok", command, "-m", str(path)]
        return subprocess.run(line, input=data, capture_output=True, check=True).stdout

    data = (CODE + documents()[60]).encode()
    assert (ggtok("decode", ggtok("encode", data)) == data) == (path.stem not in CHANGES_TEXTS)


@pytest.mark.parametrize("name", ["bpe", "spm"])
@pytest.mark.parametrize("text", TEXTS)
def test_embedded_vocabularies_give_texts_back(name: str, text: str) -> None:
    tokenizer = Tokenizer.builtin(name)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == tokenizer.decode_batch([ids])[0] == text
    decoder = tokenizer.decoder()
    assert "".join([decoder.push(id) for id in ids]) + decoder.flush() == text


def test_clean_spaces_is_what_llama_detokenize_does() -> None:
    tokenizer, ids = Tokenizer.builtin("wordpiece"), Tokenizer.builtin("wordpiece").encode("it is, isn't it")
    assert tokenizer.vocab.clean_spaces
    assert tokenizer.decode(ids) == " it is , isn ' t it"
    assert tokenizer.decode(ids, clean_spaces=True) == " it is, isn't it"
    spm = Tokenizer.builtin("spm")
    assert not spm.vocab.clean_spaces
    assert spm.decode(spm.encode("x != y"), clean_spaces=True) == " x != y"
    decoder = tokenizer.decoder(clean_spaces=True)
    assert "".join([decoder.push(id) for id in ids]) + decoder.flush() == " it is, isn't it"
