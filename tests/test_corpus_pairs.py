"""Preference pairs: their forms, the columns, and what is not a pair. `tests/trainers` trains on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ggtok
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ggtok.cli import main
from ggtok.corpus import TableEncoder, build, encode_table, info, verify
from ggtok.errors import CorpusError

BPE = ggtok.Tokenizer.builtin("bpe")
CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
CHATML += "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
OPTIONS: dict[str, Any] = {"tokenizer": BPE, "format": "parquet", "template_text": CHATML, "shape": "preference"}
PARTS = ["prompt_ids", "chosen_ids", "rejected_ids"]


def said(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


ASKED, GOOD, BAD = [said("user", "How?")], [said("assistant", "So.")], [said("assistant", "No idea.")]
EXPECTED = [
    BPE.encode_chat(ASKED, template_text=CHATML),
    *(BPE.encode(f"{text}<|im_end|>\n", parse_special=True, add_special=False) for text in ("So.", "No idea.")),
]

FORMS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"prompt": "How?", "chosen": "So.", "rejected": "No idea."}, {}),
    ({"prompt": ASKED, "chosen": GOOD, "rejected": BAD}, {}),
    ({"prompt": json.dumps(ASKED), "chosen": json.dumps(GOOD), "rejected": json.dumps(BAD)}, {}),
    ({"prompt": "How?", "chosen": GOOD, "rejected": BAD}, {}),
    ({"prompt": "How?", "chosen": ASKED + GOOD, "rejected": ASKED + BAD}, {}),
    ({"prompt": None, "chosen": ASKED + GOOD, "rejected": ASKED + BAD}, {}),
    ({"chosen": ASKED + GOOD, "rejected": ASKED + BAD}, {"messages": ["chosen", "rejected"]}),
    ({"a": {"good": "So."}, "b": "No idea.", "q": "How?"}, {"messages": ["a.good", "b", "q"]}),
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [row for path in sorted(folder.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
@pytest.mark.parametrize(("row", "options"), FORMS, ids=str)
def test_forms(tmp_path: Path, row: dict[str, Any], options: dict[str, Any], suffix: str) -> None:
    source = write(tmp_path / f"in{suffix}", [row, row])
    built = build([source], tmp_path / "out", **OPTIONS, **options)
    assert rows_of(tmp_path / "out") == [dict(zip(PARTS, EXPECTED, strict=True))] * 2
    assert built.tokens == 2 * sum(map(len, EXPECTED))
    checked = verify(tmp_path / "out", sample=None)
    assert (checked.problems, checked.documents, checked.masks) == ([], 2, 2)
    if suffix == ".parquet" and "." not in str(options):
        table, more = pq.read_table(source), {"template_text": CHATML, "shape": "preference", **options}
        assert encode_table(table, BPE, **more).select(PARTS).to_pylist() == rows_of(tmp_path / "out")
        [batch] = table.to_batches()
        assert TableEncoder("bpe", **more)(batch).select(PARTS).to_pylist() == rows_of(tmp_path / "out")


def test_pairs_are_shuffled_held_out_kept_and_end_with_eos(tmp_path: Path) -> None:
    rows = [{"id": str(n), "prompt": f"Question {n}?", "chosen": f"Yes, {n}.", "rejected": "No."} for n in range(300)]
    source = write(tmp_path / "in.jsonl", rows)
    more: dict[str, Any] = {"trainer": "trl", "shuffle": 3, "validation": 0.2, "keep": ["id"], "append_eos": True}
    build([source], tmp_path / "out", **(OPTIONS | {"format": "arrow"}), **more)
    tables = [pa.ipc.open_file(path).read_all() for path in sorted((tmp_path / "out").glob("*.arrow"))]
    assert [table.column_names for table in tables] == [["id", *PARTS]] * 2
    found = {row["id"]: row for table in tables for row in table.to_pylist()}
    assert len(found) == 300
    assert [*found] != sorted(found)
    for row in rows:
        prompt, chosen, rejected = (found[row["id"]][name] for name in PARTS)
        talk = [said("user", row["prompt"]), said("assistant", row["chosen"])]
        whole = BPE.encode_chat(talk, template_text=CHATML, add_generation_prompt=False)
        assert prompt + chosen == [*whole, BPE.vocab.eos_id]
        assert rejected[-1] == BPE.vocab.eos_id != prompt[-1]
    assert verify(tmp_path / "out", sample=None).problems == []


def test_too_long_pairs_are_dropped_by_their_longer_sequence(tmp_path: Path) -> None:
    long = {"prompt": "How?", "chosen": "So.", "rejected": "No. " * 40}
    source = write(tmp_path / "in.jsonl", [FORMS[0][0], long])
    most = len(EXPECTED[0]) + max(map(len, EXPECTED[1:]))
    for limit, kept in ((most, 1), (most - 1, 0), (1000, 2)):
        out = tmp_path / str(limit)
        built = build([source], out, **OPTIONS, max_length=limit, too_long="drop")
        assert (built.documents, built.dropped, len(rows_of(out))) == (kept, 2 - kept, kept)


NO_PAIR = "'chosen' and 'rejected' must be two answers"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"prompt": "How?", "chosen": "So."}, "it has no field 'rejected'|'rejected' is missing or null"),
        ({"prompt": "How?", "chosen": "So.", "rejected": None}, "'rejected' is missing or null"),
        ({"chosen": "So.", "rejected": "No."}, NO_PAIR),
        ({"chosen": GOOD, "rejected": BAD}, NO_PAIR),
        ({"chosen": ASKED + GOOD, "rejected": ASKED}, NO_PAIR),
        ({"chosen": ASKED + GOOD, "rejected": ASKED + GOOD}, NO_PAIR),
        ({"chosen": ASKED + GOOD, "rejected": [said("user", "Why?"), *BAD]}, NO_PAIR),
        ({"prompt": "How?", "chosen": {"a": 1}, "rejected": "No."}, "field 'chosen' is an object"),
    ],
    ids=str,
)
def test_what_is_not_a_pair_is_a_bad_row(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    source = write(tmp_path / "in.jsonl", [FORMS[0][0], row])
    with pytest.raises(CorpusError, match=rf"row 2: .*({reason})"):
        build([source], tmp_path / "out", **OPTIONS)


@pytest.mark.parametrize("empty", ["chosen", "prompt"])
def test_an_empty_list_is_not_an_answer(tmp_path: Path, empty: str) -> None:
    row = {"prompt": ASKED, "chosen": GOOD, "rejected": BAD}
    source = write(tmp_path / "in.parquet", [row, row | {empty: []}])
    with pytest.raises(CorpusError, match=rf"row 2: .*{NO_PAIR}"):
        build([source], tmp_path / "out", **OPTIONS)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"format": "megatron"},
            "shape='preference' is for the formats parquet and arrow: megatron has",
        ),
        ({"pack": 64}, "pairs cannot be written with this: pack"),
        ({"attention_mask": True}, "pairs cannot be written with this: attention_mask"),
        ({"trainer": "axolotl"}, "pairs cannot be written with this: trainer"),
        ({"max_length": 64}, "pairs cannot be written with this: max_length without too_long='drop'"),
        ({"messages": ["chosen"]}, "messages must name 3 fields, such as chosen, rejected, prompt: 1 given"),
    ],
)
def test_what_pairs_cannot_have(tmp_path: Path, options: dict[str, Any], problem: str) -> None:
    source = write(tmp_path / "in.jsonl", [FORMS[0][0]])
    with pytest.raises(CorpusError, match=problem):
        build([source], tmp_path / "out", **(OPTIONS | options))


def test_the_command_reads_pairs(tmp_path: Path) -> None:
    source, template = write(tmp_path / "in.jsonl", [FORMS[0][0]] * 4), tmp_path / "template.jinja"
    template.write_text(CHATML)
    command = ["corpus", "build", str(source), "-o", str(tmp_path / "out"), "--builtin", "bpe", "--format", "parquet"]
    assert main([*command, "--shape", "preference", "--for", "trl", "--template-file", str(template)]) == 0
    assert info(tmp_path / "out").documents == 4


def test_long_pairs_are_dropped_whatever_their_column_is_called() -> None:
    table = pa.table({"prompt": ["How?"] * 2, "chosen": ["So.", "So. " * 99], "rejected": ["No."] * 2})
    options: dict[str, Any] = {"template_text": CHATML, "shape": "preference", "max_length": 60, "too_long": "drop"}
    assert encode_table(table, BPE, ids="tokens", **options).num_rows == 1
