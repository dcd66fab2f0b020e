"""The columns that trainers read. `tests/trainers` trains with the real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ggtok
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ggtok.corpus import build, verify
from ggtok.errors import CorpusError

TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
TEMPLATE += "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"

READ = {
    "trl": ({"input_ids", "labels"}, {"seq_lengths", "cu_seqlens"}),
    "axolotl": ({"input_ids", "labels", "attention_mask"}, None),
    "torchtune": ({"tokens", "labels"}, {"seq_lens", "input_pos", "cu_seqlens"}),
}
"""What each collator takes of a row, and what it can have besides if rows are packed."""


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chats") / "in.jsonl"
    rows = [
        [{"role": "user", "content": f"Question {n}?"}, {"role": "assistant", "content": "An answer. " * (n % 9)}]
        for n in range(60)
    ]
    path.write_text("".join(json.dumps({"messages": row, "text": row[1]["content"]}) + "\n" for row in rows))
    return path


def rows_of(folder: Path, format: str = "parquet") -> list[dict[str, Any]]:
    paths = sorted(folder.glob(f"*.{format}"))
    tables = [pq.read_table(path) if format == "parquet" else pa.ipc.open_file(path).read_all() for path in paths]
    return [row for table in tables for row in table.to_pylist()]


@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.parametrize("trainer", READ)
def test_labels_are_those_of_the_mask(chats: Path, tmp_path: Path, trainer: str, format: Any) -> None:
    options: dict[str, Any] = {"tokenizer": "bpe", "format": format, "messages": "messages", "template_text": TEMPLATE}
    build([chats], tmp_path / "plain", **options)
    build([chats], tmp_path / "out", trainer=trainer, **options)
    ids = "tokens" if trainer == "torchtune" else "input_ids"
    for plain, row in zip(rows_of(tmp_path / "plain", format), rows_of(tmp_path / "out", format), strict=True):
        assert row.keys() == READ[trainer][0]
        assert row[ids] == plain["input_ids"]
        own = zip(plain["input_ids"], plain["assistant_mask"], strict=True)
        assert row["labels"] == [id if mine else -100 for id, mine in own]
        assert -100 in row["labels"]
        assert row.get("attention_mask", [1] * len(row[ids])) == [1] * len(row[ids])
    assert verify(tmp_path / "out", tokenizer="bpe", sample=None).masks == 60
    assert verify(tmp_path / "out", tokenizer="bpe", sample=None).problems == []


@pytest.mark.parametrize("trainer", ["trl", "torchtune"])
@pytest.mark.parametrize("is_chat", [True, False])
def test_packed_sequences(chats: Path, tmp_path: Path, trainer: str, is_chat: bool) -> None:
    options: dict[str, Any] = {"tokenizer": "bpe", "format": "parquet", "pack": 64, "pad_id": 0}
    options |= {"messages": "messages", "template_text": TEMPLATE} if is_chat else {"nulls": "skip"}
    build([chats], tmp_path / "plain", **options)
    build([chats], tmp_path / "out", trainer=trainer, **options)
    columns, more = READ[trainer]
    for plain, row in zip(rows_of(tmp_path / "plain"), rows_of(tmp_path / "out"), strict=True):
        assert row.keys() == columns | (more or set())
        bounds = plain["cu_seqlens"]
        sizes = [end - start for start, end in zip(bounds, [*bounds[1:], 64], strict=True) if end > start]
        assert row["seq_lengths" if trainer == "trl" else "seq_lens"] == sizes
        assert row.get("input_pos", [at for size in sizes for at in range(size)]) == [
            at for size in sizes for at in range(size)
        ]
        mask = plain.get("assistant_mask", [1] * bounds[-1] + [0] * (64 - bounds[-1]))
        assert row["labels"] == [id if own else -100 for id, own in zip(plain["input_ids"], mask, strict=True)]
    assert verify(tmp_path / "out", tokenizer="bpe", sample=None).problems == []


def test_texts_are_learned_whole(chats: Path, tmp_path: Path) -> None:
    build([chats], tmp_path / "out", tokenizer="bpe", format="parquet", trainer="trl")
    assert all(row["labels"] == row["input_ids"] for row in rows_of(tmp_path / "out"))


def test_what_a_trainer_does_not_take(chats: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"tokenizer": ggtok.Tokenizer.builtin("bpe")}
    for more, problem in (
        ({"format": "parquet", "trainer": "keras"}, "trainer must be 'trl', 'axolotl' or 'torchtune', not 'keras'"),
        ({"format": "flat", "trainer": "trl"}, "trainer is for the formats parquet and arrow"),
        ({"format": "arrow", "trainer": "axolotl", "pack": 64}, "axolotl packs documents itself: leave pack out"),
    ):
        with pytest.raises(CorpusError, match=problem):
            build([chats], tmp_path / "out", **options, **more)


@pytest.mark.parametrize(
    ("kept", "options"),
    [
        ("labels", {"trainer": "trl"}),
        ("tokens", {"trainer": "torchtune"}),
        ("attention_mask", {"trainer": "axolotl"}),
        ("attention_mask", {"attention_mask": True}),
        ("chosen_ids", {"shape": "preference", "template_text": TEMPLATE}),
    ],
)
def test_a_kept_column_does_not_double_one_that_is_written(tmp_path: Path, kept: str, options: dict[str, Any]) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps({"text": "a", kept: "b", "prompt": "How?", "chosen": "So.", "rejected": "No."}) + "\n")
    problem = f"a column {kept!r} is written for the tokens, so it cannot be kept too"
    with pytest.raises(CorpusError, match=problem):
        build([source], tmp_path / "out", tokenizer="bpe", format="parquet", keep=[kept], **options)
