"""The worked examples of the notes that walk through llama.cpp's tokenizers in a debugger, number by number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ggtok import Tokenizer
from oracles import gguf_vocab, unigram
from oracles.gguf_vocab import TokenType, Vocab


@pytest.mark.parametrize(
    ("vocab", "text", "add_special", "ids"),
    [
        ("bert-bge", "ÅWhat is LoRA?", True, [101, 22091, 12707, 2003, 8840, 2527, 1029, 102]),
        ("llama-spm", "What is LoRA?", False, [1724, 338, 4309, 4717, 29973]),
        ("llama-bpe", "What is LoRA?", True, [128000, 3923, 374, 6621, 5726, 30]),
    ],
)
def test_real_vocabularies(shared: Path, vocab: str, text: str, add_special: bool, ids: list[int]) -> None:
    tokenizer = Tokenizer.from_gguf(shared / f"vocabs/{vocab}.gguf")
    assert tokenizer.encode(text, add_special=add_special) == ids


# The lattice of "▁What▁is▁LoRA?": for each piece its id, its score, and where it starts and ends, in bytes.
#
#   0  3 4 5 6 7  10 11 12 15 16 17 18 19 20
#   ▁  W h a t ▁  i  s  ▁  L  o  R  A  ?
#   |---- 363 ----|-- 19 --|- 1815 -|4763 |58|
LATTICE = {
    "▁": (3, -2.01229286),
    "▁W": (549, -8.92778587),
    "W": (518, -8.86957455),
    "h": (107, -7.25432013),
    "ha": (1024, -9.52937703),
    "▁What": (363, -8.48864937),
    "i": (23, -5.46985820),
    "▁is": (19, -5.28342533),
    "▁L": (301, -8.30108360),
    "▁Lo": (1815, -10.0407343),
    "R": (448, -8.72230910),
    "RA": (4763, -10.9447822),
    "?": (58, -6.58588800),
}


def t5_small() -> Vocab:
    """The note's pieces at the note's ids; every other id is an unused token that no text contains."""
    size = max(id for id, _ in LATTICE.values()) + 1
    texts = [f"\ue000{id}".encode() for id in range(size)]
    types = [int(TokenType.UNUSED)] * size
    scores = [0.0] * size
    texts[:3] = [b"<pad>", b"</s>", b"<unk>"]
    types[:3] = [TokenType.CONTROL, TokenType.CONTROL, TokenType.UNKNOWN]
    for text, (id, score) in LATTICE.items():
        texts[id], types[id], scores[id] = text.encode(), int(TokenType.NORMAL), score
    flags: dict[str, Any] = {"add_eos": True, "add_space_prefix": True, "remove_extra_whitespaces": True}
    return Vocab("t5", texts, types, scores, eos=1, unk=2, pad=0, **flags)


def test_unigram() -> None:
    tokenizer = Tokenizer.from_gguf(t5_small().gguf())
    ids = [363, 19, 1815, 4763, 58]
    assert tokenizer.encode("What is LoRA?", add_special=False) == ids
    assert tokenizer.encode("What is LoRA?") == [*ids, 1]
    # The sum of the scores that the note's table ends with.
    assert sum(tokenizer.vocab[id].score for id in ids) == pytest.approx(-41.3434792)


def test_unigram_charsmap(shared: Path) -> None:
    """The note's walk through the compressed double array: from the root over `W`, and no further with `h`."""
    charsmap = gguf_vocab.read(shared / "vocabs/nomic-bert-moe.gguf")["tokenizer.ggml.precompiled_charsmap"]
    xcda = unigram.Xcda(bytes(charsmap))
    assert len(xcda.units) == 44288
    node = xcda.base(0) ^ ord("W")
    assert node == 118
    assert xcda.lcheck(node) == ord("W")
    assert not xcda.leaf(node)
    node ^= xcda.base(node) ^ ord("h")
    assert node == 554
    assert xcda.lcheck(node) != ord("h")
