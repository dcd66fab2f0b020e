"""Splitting documents that are too long into pieces: every token once, what is learned, and what cannot be asked."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, get_args

import ggtok
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ggtok.cli import main
from ggtok.corpus import TableEncoder, build, encode_table, info, verify
from ggtok.corpus.blocks import MASK
from ggtok.corpus.settings import Format
from ggtok.corpus.writing import writer_of
from ggtok.errors import CorpusError
from shard_rows import rows_of

BPE = ggtok.Tokenizer.builtin("bpe")
MOST = 32
CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
CHATML += "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("split") / "in.jsonl"
    chance = random.Random(1)
    long = ["".join(chance.choices("abcdefgh ", k=chance.choice([9, 300, 2000]))) for _ in range(80)]
    rows = [
        {"text": text, "id": str(at), "messages": [{"role": "assistant", "content": text or "-"}]}
        for at, text in enumerate(["", "one text", *long])
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def split(ids: list[int], overlap: int) -> list[list[int]]:
    """The naive way."""
    found = [ids[:MOST]]
    while len(ids) > MOST:
        ids = ids[MOST - overlap :]
        found.append(ids[:MOST])
    return found


def documents(source: Path, name: str = "text") -> list[Any]:
    return [json.loads(line)[name] for line in source.read_text().splitlines()]


@pytest.mark.parametrize("overlap", [0, 1, 16])
@pytest.mark.parametrize("format", get_args(Format))
def test_every_piece_is_there_and_repeated_tokens_are_not_learned(
    source: Path, tmp_path: Path, format: Format, overlap: int
) -> None:
    options: dict[str, Any] = {"tokenizer": BPE, "format": format, "max_length": MOST, "too_long": "split"}
    built = build([source], tmp_path / "out", **options, overlap=overlap)
    wanted = [piece for text in documents(source) for piece in split(BPE.encode(text), overlap)]
    found = rows_of(tmp_path / "out" / "00000", format)
    assert found == [piece for piece in wanted if piece or format != "flat"]
    whole = [BPE.encode(text) for text in documents(source)]
    assert (built.documents, built.tokens, built.cut) == (82, sum(map(len, whole)), sum(len(i) > MOST for i in whole))
    if overlap and writer_of(format).has_masks:
        masks = rows_of(tmp_path / "out" / "00000", format, MASK)
        learned = [id for ids, mask in zip(found, masks, strict=True) for id, own in zip(ids, mask, strict=True) if own]
        assert learned == [id for ids in whole for id in ids]
    checked = verify(tmp_path / "out", sample=None)
    assert (checked.problems, checked.documents, checked.decoded) == ([], 82, 82)


@pytest.mark.parametrize("pack", [None, 64])
def test_labels_of_conversations_and_kept_columns(source: Path, tmp_path: Path, pack: int | None) -> None:
    options: dict[str, Any] = {"tokenizer": BPE, "format": "parquet", "messages": "messages", "template_text": CHATML}
    options |= {"trainer": "trl", "max_length": MOST, "pack": pack, "pad_id": 0 if pack else None}
    options |= {"shuffle": 3, "keep": [] if pack else ["id"]}
    build([source], tmp_path / "out", **options, too_long="split", overlap=7)
    rows = pq.read_table(tmp_path / "out" / "00000.parquet").to_pylist()
    learned = sorted(label for row in rows for label in row["labels"] if label != -100)
    expected = []
    for talk in documents(source, "messages"):
        encoded = BPE.encode_chat(talk, template_text=CHATML, add_generation_prompt=False, return_spans=True)
        expected += [id for id, own in zip(encoded.ids, encoded.assistant_mask, strict=True) if own]
    assert learned == sorted(expected)
    if not pack:
        assert len(rows) > len({row["id"] for row in rows}) == 82
    assert verify(tmp_path / "out", sample=None).problems == []


@pytest.mark.parametrize("overlap", [0, 5])
@pytest.mark.parametrize("format", get_args(Format))
def test_a_shard_without_documents_for_validation(tmp_path: Path, format: Format, overlap: int) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "one text"}\n{"text": 5}\n')
    options: dict[str, Any] = {"max_length": MOST, "too_long": "split", "overlap": overlap, "skip_bad": True}
    build([tmp_path / "in.jsonl"], tmp_path / "out", tokenizer=BPE, format=format, validation=0.001, **options)
    assert rows_of(tmp_path / "out" / "00000", format) == [BPE.encode("one text")]
    assert verify(tmp_path / "out", sample=None).problems == []


def test_the_command_splits(source: Path, tmp_path: Path) -> None:
    command = ["corpus", "build", str(source), "-o", str(tmp_path / "out"), "--builtin", "bpe", "--format", "megatron"]
    assert main([*command, "--max-length", "32", "--too-long", "split", "--overlap", "8"]) == 0
    assert info(tmp_path / "out").settings["encoding"]["overlap"] == 8


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"too_long": "split"}, "split needs a length: give max_length too"),
        ({"too_long": "split", "max_length": 8, "overlap": 5}, "overlap must be from 0 to half of max_length"),
        ({"too_long": "split", "max_length": 8, "overlap": -1}, "overlap must be from 0 to half of max_length"),
        ({"too_long": "cut", "max_length": 8, "overlap": 1}, "is for too_long='split': 1 given"),
        ({"too_long": "break", "max_length": 8}, "too_long must be 'cut', 'drop' or 'split', not 'break'"),
        ({"too_long": "split", "max_length": 8, "keep": ["text"]}, "so keep cannot name the text"),
    ],
)
def test_what_cannot_be_split(source: Path, tmp_path: Path, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(CorpusError, match=problem):
        build([source], tmp_path / "out", tokenizer=BPE, format="parquet", **options)


def test_a_table_that_is_encoded_keeps_its_rows() -> None:
    wrong: Any = {"too_long": "split", "max_length": 8}
    for call in (lambda: encode_table(pa.table({"text": ["a"]}), BPE, **wrong), lambda: TableEncoder("bpe", **wrong)):
        with pytest.raises(CorpusError, match="too_long must be 'cut' or 'drop', not 'split'"):
            call()
