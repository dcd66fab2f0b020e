"""`diff`: what was changed in a vocabulary is what is found, and a text parts where a naive comparison says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ggtok
import pytest
from conftest import every_kind
from ggtok import Tokenizer, VocabularyError
from ggtok.lab.diff import Difference
from hypothesis import strategies as st
from oracles import strategies
from oracles.gguf_vocab import TokenType
from test_api import DIFFERENT, GGUF, MERGES, changed, small_vocab

SMALL = Tokenizer.from_gguf(GGUF)


def fields(diff: ggtok.Diff) -> set[str]:
    found = diff.to_dict()
    return {name for name in found if name not in ("cuts", "num_shared") and found[name]}


def test_no_difference() -> None:
    diff = ggtok.diff(SMALL, Tokenizer.from_gguf(GGUF), "any text")
    assert not diff
    assert (fields(diff), repr(diff)) == (set(), "<ggtok.Diff in nothing>")
    assert str(diff) == "No difference between the tokenizers."
    assert str(ggtok.diff(SMALL, SMALL)) == "No difference between the tokenizers."


@pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")
@pytest.mark.parametrize("name", DIFFERENT)
def test_differences_are_those_of_equality(name: str) -> None:
    diff = ggtok.diff(SMALL, DIFFERENT[name]())
    assert diff
    assert not str(diff).startswith("No difference")
    json.dumps(diff.to_dict())


def test_settings_and_special_tokens() -> None:
    other = changed(bos=261, add_eos=True, pre="qwen2")
    diff = ggtok.diff(SMALL, other)
    assert diff.settings["pre"] == ("gpt-2", "qwen2")
    assert diff.settings["add_eos"] == (False, True)
    assert diff.special["bos_id"] == (260, 261)
    assert "bos_id: 260 '<s>' -> 261 '</s>'" in str(diff).splitlines()
    assert fields(diff) == {"settings", "special"}
    assert repr(diff) == "<ggtok.Diff in settings, special>"


def test_tokens() -> None:
    vocab = small_vocab()
    swapped = [*vocab.texts[:256], b"he", b"ll", *vocab.texts[258:-1], b"<new>", b"<last>"]
    diff = ggtok.diff(SMALL, changed(texts=swapped, types=[*vocab.types, int(TokenType.CONTROL)], scores=[0.0] * 264))
    assert [(token.id, token.text) for token in diff.removed] == [(262, "<user>")]
    assert [(token.id, token.text) for token in diff.added] == [(262, "<new>"), (263, "<last>")]
    assert diff.moved == [("ll", 256, 257), ("he", 257, 256)]
    assert diff.settings["size"] == (263, 264)
    assert "tokens moved: 2\n    'll' 256 -> 257\n    'he' 257 -> 256" in str(diff)


def test_scores_and_attributes() -> None:
    vocab = small_vocab()
    scores = [0.0] * 263
    scores[5] = 1.5
    diff = ggtok.diff(SMALL, changed(scores=scores, types=[*vocab.types[:-1], int(TokenType.CONTROL)]))
    assert [(a, b) for _, a, b in diff.scores] == [(0.0, 1.5)]
    assert [(text, a.name, b.name) for text, a, b in diff.attributes] == [("<user>", "USER_DEFINED", "CONTROL")]  # type: ignore[union-attr]
    assert "'<user>' USER_DEFINED -> CONTROL" in str(diff)
    nan = [float("nan")] * 263
    assert not ggtok.diff(changed(scores=nan), changed(scores=nan))


def test_merges() -> None:
    diff = ggtok.diff(SMALL, changed(merges=[b"he l", *MERGES[:-1]]))
    assert (diff.merges_added, diff.merges_removed, diff.merges_moved) == (["he l"], ["hell o"], [])
    diff = ggtok.diff(SMALL, changed(merges=[MERGES[1], MERGES[0], *MERGES[2:]]))
    assert diff.merges_moved == [("l l", 0, 1), ("h e", 1, 0)]
    assert fields(diff) == {"merges_differ", "merges_moved"}
    diff = ggtok.diff(SMALL, changed(merges=[*MERGES, MERGES[0]]))
    assert fields(diff) == {"merges_differ"}
    same = "Both vocabularies have the same tokens; other merges."
    assert str(diff) == f"{same}\nmerges: a rule occurs more than once"


def test_long_lists_are_cut_short() -> None:
    diff = ggtok.diff(SMALL, Tokenizer.builtin("bpe"))
    assert len(str(diff).splitlines()) < 60
    assert " more" in str(diff)


def test_a_text() -> None:
    other = changed(merges=MERGES[:-1])
    diff = ggtok.diff(SMALL, other, "\u00e9\u00e9 hello")
    # BOS, four bytes and a space are equal, then comes hello against hell.
    assert diff.first_difference == Difference(6, 259, 258, 5, 3, b"hello", b"hell")
    assert "the ids first differ at index 6, character 3 (byte 5): 259 b'hello' -> 258 b'hell'" in str(diff)
    assert ggtok.diff(SMALL, other, "he").first_difference is None
    found = ggtok.diff(SMALL, changed(add_eos=True), "he").first_difference
    assert found == Difference(2, None, 261, 2, 2, None, b"</s>")
    assert ggtok.diff(SMALL, changed(bos=261), "he").first_difference == Difference(0, 260, 261, 0, 0, b"<s>", b"</s>")
    assert ggtok.diff(SMALL, changed(bos=261), "he", add_special=False).first_difference is None
    assert ggtok.diff(SMALL, other, b"\xff\xffhello").first_difference == Difference(
        7, 259, 258, 2, 2, b"hello", b"hell"
    )
    assert ggtok.diff(SMALL, other, "\ud800hello").first_difference == Difference(4, 259, 258, 3, 1, b"hello", b"hell")


def test_cuts() -> None:
    """What the ids say is not where the text is cut."""
    other = changed(merges=MERGES[:-1])
    cuts = ggtok.diff(SMALL, other, "\u00e9 hello hello").cuts
    assert cuts == ((3, 8, 2, [b"hello"], [b"hell", b"o"]), 2, False, 7, 9)
    assert cuts
    assert ggtok.diff(SMALL, other, "\u00e9 he").cuts == (None, 0, True, 5, 5)
    cuts = ggtok.diff(SMALL, changed(bos=261), "hello").cuts
    assert cuts == (None, 0, True, 2, 2)  # BOS alone is not another id
    assert not cuts
    assert ggtok.diff(SMALL, other).cuts is None
    assert "; other special tokens, settings." in str(ggtok.diff(SMALL, changed(bos=261, add_eos=True)))
    printed = str(ggtok.diff(SMALL, other, "\u00e9 hello hello"))
    assert printed.startswith("Cuts first differ at character 2: `hello` and `hell·o`. They differ in 2 places. 7 and ")


def test_arguments_of_other_types() -> None:
    wrong: list[tuple[Any, ...]] = [(SMALL, None), ("a", SMALL), (SMALL, SMALL.vocab), (SMALL, SMALL, 7)]
    for arguments in wrong:
        with pytest.raises(TypeError):
            ggtok.diff(*arguments)


def test_the_tokenizer_that_fails_is_named() -> None:
    with pytest.warns(ggtok.TokenizerWarning):
        other = changed(texts=[b"a", b"b"], types=[1, 1], merges=[], bos=None, eos=None, add_bos=False, add_eos=True)
    with pytest.raises(VocabularyError, match=r"^the second tokenizer: .*EOS"):
        ggtok.diff(SMALL, other, "a")
    ggtok.diff(SMALL, other, "a", add_special=False)


@pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")
@every_kind
def test_every_kind(kind: str, data: st.DataObject) -> None:
    """False exactly for equal tokenizers; the first difference is that of the two lists of ids."""
    first = data.draw(strategies.KINDS[kind])
    second = first if data.draw(st.booleans()) else data.draw(strategies.KINDS[kind])
    a, b = (Tokenizer.from_gguf(vocab.gguf()) for vocab in (first, second))
    assert bool(ggtok.diff(a, b)) == (a != b)
    assert not ggtok.diff(b, b)
    text = data.draw(strategies.texts(first))
    ids = a.encode(text), b.encode(text)
    found = ggtok.diff(a, b, text).first_difference
    if ids[0] == ids[1]:
        assert found is None
        return
    assert found is not None
    naive = next((at for at, (x, y) in enumerate(zip(*ids, strict=False)) if x != y), min(map(len, ids)))
    assert (found.index, found.a, found.b) == (naive, *(side[naive] if naive < len(side) else None for side in ids))
    assert 0 <= found.char <= found.byte <= len(text)


def test_real_files(shared: Path) -> None:
    a, b = (Tokenizer.from_gguf(shared / f"vocabs/{name}.gguf") for name in ("llama-bpe", "qwen2"))
    diff = ggtok.diff(a, b, "What is LoRA?")
    assert diff.first_difference is not None
    assert diff.first_difference.index == 0
    texts = [{token.text for token in side.vocab} for side in (a, b)]
    assert {token.text for token in diff.added} == texts[1] - texts[0]
    assert {token.text for token in diff.removed} == texts[0] - texts[1]
