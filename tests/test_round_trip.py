"""A text comes back as it was: encoded and decoded, it is the same bytes, in every vocabulary that keeps them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from conftest import SHARED, shared_files
from ggtok import Tokenizer

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
