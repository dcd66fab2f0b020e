"""Results fit where they land: notebooks, JSON, pickles."""

from __future__ import annotations

import copy
import html.parser
import json
import pickle
from typing import Any

import ggtok
import pytest
from conftest import shared_files
from ggtok import Tokenizer

BPE = Tokenizer.builtin("bpe")
HOSTILE = "<script>alert(1)</script> & \"'"


class Reader(html.parser.HTMLParser):
    """Checks that elements are closed in order, and collects the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert {name for name, _ in attrs} <= {"style"}
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


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
    page = Reader(result._repr_html_())
    assert page.seen <= {"div", "table", "thead", "tbody", "tr", "th", "td", "p", "ul", "li", "code"}
    assert "script" not in page.seen
    if name == "Evaluation":
        assert HOSTILE in page.text
    if name == "Batch":
        assert "and 18 more" in page.text


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
