"""Results fit where they land: notebooks, JSON, pickles."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import ggtok
import pytest
from conftest import shared_files
from ggtok import Tokenizer
from test_html import Page

BPE = Tokenizer.builtin("bpe")
HOSTILE = "<script>alert(1)</script> & \"'"


def results() -> dict[str, Any]:
    named = {HOSTILE: BPE}
    edited = ggtok.Tokenizer.builtin("unigram")
    return {
        "Evaluation": ggtok.evaluate(named, {"a": [HOSTILE], "b": ["b"]}),
        "Diff": ggtok.diff(BPE, edited, HOSTILE),
        "no Diff": ggtok.diff(BPE, BPE),
        "Why": BPE.explain(HOSTILE).why(0, len(HOSTILE)),
        "Batch": BPE.encode_batch([HOSTILE] * 30),
        "empty Batch": BPE.encode_batch([]),
    }


@pytest.mark.parametrize("name", ["Evaluation", "Diff", "no Diff", "Why", "Batch", "empty Batch"])
def test_notebooks(name: str) -> None:
    result = results()[name]
    page = Page(result._repr_html_())
    text = "".join(text for texts in page.texts.values() for text in texts)
    assert set(page.texts) <= {"div", "table", "thead", "tbody", "tr", "th", "td", "pre"}
    assert {name for _, name, _ in page.attributes} <= {"style"}
    if name in ("Diff", "no Diff", "Why"):
        assert text == str(result)
    if name == "Evaluation":
        assert HOSTILE in text
    if name == "Batch":
        assert "and 18 more" in text


def test_json_objects() -> None:
    chunk = BPE.split("One. Two.", 3)[0]
    assert json.loads(json.dumps(chunk.to_dict())) == {"text": "One. ", "start": 0, "end": 5, "count": 3}
    batch = BPE.encode_batch(["one text", "and another"])
    assert json.loads(json.dumps(batch.to_dict())) == {"ids": [[6053, 7301], [6019, 7237]]}
    talk = [{"role": "user", "content": "Hi"}]
    chat = BPE.encode_chat(talk, template_text="{{ messages[0].content }}", return_spans=True)
    row = json.loads(json.dumps(chat.to_dict()))
    assert (row["ids"], row["text"], row["message_spans"]) == (chat.ids, "Hi", [[0, len(chat.ids)]])
    assert row["assistant_mask"] == [False] * len(chat.ids)


@pytest.mark.parametrize("path", shared_files("vocabs/*small.gguf"))
def test_vocabularies_pickle(path: Any) -> None:
    vocab = Tokenizer.from_gguf(path).vocab
    for other in (pickle.loads(pickle.dumps(vocab)), copy.deepcopy(vocab), copy.copy(vocab)):
        assert other == vocab
        assert hash(other) == hash(vocab)
        assert other[0] == vocab[0]
        assert len(other) == len(vocab)
    assert vocab != BPE.vocab
