"""The rows that people have: shapes of conversations, paths, several fields, CSV and JSON arrays, and bad ones."""

from __future__ import annotations

import csv
import gzip
import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import ggtok
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ggtok.corpus import TableEncoder, build, encode_table, info, reading
from ggtok.corpus.blocks import ROW, BadRow
from ggtok.corpus.reading import array, separated
from ggtok.corpus.settings import Reading
from ggtok.corpus.sources import inputs
from ggtok.errors import ChatTemplateError, CorpusError

BPE = ggtok.Tokenizer.builtin("bpe")
CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
CHATML += "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
ASKED = [{"role": "user", "content": "How?"}, {"role": "assistant", "content": "So."}]
IDS = BPE.encode_chat(ASKED, template_text=CHATML, add_generation_prompt=False)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Rows as the ending says."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows, indent=1))
    elif path.suffix in (".csv", ".tsv"):
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, [*rows[0]], delimiter="," if path.suffix == ".csv" else "\t")
            writer.writeheader()
            writer.writerows(rows)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def ids_of(folder: Path) -> list[list[int]]:
    """The tokens of every document."""
    files = [folder / file.name for file in info(folder).files if file.name.endswith(".parquet")]
    return [ids for file in files for ids in pq.read_table(file)["input_ids"].to_pylist()]


def texts_of(path: Path, wanted: Reading) -> tuple[dict[int, Any], list[BadRow]]:
    """The texts of an input by their rows, and the bad rows."""
    [source] = inputs([path])
    blocks = list(reading.read(source, 0, None, 1, wanted))
    found: dict[int, Any] = {}
    for block in blocks:
        found |= dict(zip(block.table[ROW].to_pylist(), block.table[wanted.field].to_pylist(), strict=True))
    return found, [bad for block in blocks for bad in block.bad]


# ------------------------------------------------------------------------------------------------------------- shapes

SHAPED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"messages": ASKED}, {"messages": "messages"}),
    ({"messages": json.dumps(ASKED)}, {"messages": "messages"}),
    ({"dialog": ASKED}, {"shape": "messages", "messages": "dialog"}),
    ({"conversations": [{"from": "human", "value": "How?"}, {"from": "gpt", "value": "So."}]}, {"shape": "sharegpt"}),
    ({"c": [{"from": "user", "value": "How?"}, {"from": "assistant", "value": "So."}]}, {"messages": "c"}),
    ({"prompt": "How?", "completion": "So."}, {"shape": "completion"}),
    ({"q": "How?", "a": "So."}, {"shape": "completion", "messages": ["q", "a"]}),
    ({"prompt": ASKED[:1], "completion": ASKED[1:]}, {"shape": "completion"}),
    ({"prompt": json.dumps(ASKED[:1]), "completion": "So."}, {"shape": "completion"}),
    ({"instruction": "How?", "input": None, "output": "So."}, {"shape": "alpaca"}),
    ({"instruction": "How?", "input": "", "output": "So."}, {"shape": "alpaca"}),
    ({"row": {"talk": ASKED}}, {"messages": "row.talk"}),
    ({"row": {"q": "How?", "a": "So."}}, {"shape": "completion", "messages": ["row.q", "row.a"]}),
]


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".parquet"])
@pytest.mark.parametrize(("row", "options"), SHAPED, ids=str)
def test_shapes(tmp_path: Path, row: dict[str, Any], options: dict[str, Any], suffix: str) -> None:
    source = write(tmp_path / f"in{suffix}", [row, row])
    build([source], tmp_path / "out", tokenizer="bpe", format="parquet", template_text=CHATML, **options)
    assert ids_of(tmp_path / "out") == [IDS, IDS]
    [mask, _] = pq.read_table(tmp_path / "out" / "00000.parquet")["assistant_mask"].to_pylist()
    assert BPE.decode([id for id, own in zip(IDS, mask, strict=True) if own], unparse_special=True) == "So.<|im_end|>"
    if suffix == ".parquet" and "." not in str(options):
        table = pq.read_table(source)
        assert encode_table(table, BPE, template_text=CHATML, **options)["input_ids"].to_pylist() == [IDS, IDS]
        assert TableEncoder("bpe", template_text=CHATML, **options)(table)["input_ids"].to_pylist() == [IDS, IDS]


def test_an_alpaca_input_follows_its_instruction(tmp_path: Path) -> None:
    source = write(tmp_path / "in.csv", [{"instruction": "Add", "input": "1, 2", "output": "3"}])
    build([source], tmp_path / "out", tokenizer="bpe", format="parquet", template_text=CHATML, shape="alpaca")
    asked = [{"role": "user", "content": "Add\n\n1, 2"}, {"role": "assistant", "content": "3"}]
    assert ids_of(tmp_path / "out") == [BPE.encode_chat(asked, template_text=CHATML, add_generation_prompt=False)]


TURN = {"role": "user", "content": "How?"}
BAD: list[tuple[str, dict[str, Any], str]] = [
    ("messages", {"messages": [{"content": "How?"}]}, "messages[0]: a message must have a role"),
    ("messages", {"messages": [TURN, {"role": "", "content": "How?"}]}, "messages[1]: a message must have a role"),
    ("messages", {"messages": [TURN, {"role": "assistant"}]}, "messages[1]: a message must have content"),
    ("messages", {"messages": [{"role": "user", "content": None}]}, "messages[0]: a message must have content"),
    ("messages", {"messages": [{"role": "user", "content": []}]}, "messages[0]: a message must have content"),
    ("messages", {"messages": [{"role": "assistant", "tool_calls": []}]}, "messages[0]: a message must have content"),
    ("messages", {"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "must have a text"),
    ("messages", {"messages": [{"role": "user", "content": [{"type": "image"}]}]}, 'type "image" are not known'),
    ("messages", {"messages": [{"role": "user", "content": 5}]}, "expected a string or an array, got a number"),
    ("messages", {"messages": ["How?"]}, "a message must be an object, not a string"),
    ("messages", {"messages": []}, "there are no messages"),
    ("messages", {"messages": "How?"}, "the conversation is not JSON"),
    ("messages", {"messages": {"role": "user"}}, "field 'messages' is an object, not a list of messages"),
    ("sharegpt", {"conversations": [{"from": "human"}]}, "messages[0]: a message must have content"),
    ("sharegpt", {"conversations": [{"from": 5, "value": "How?"}]}, "messages[0].role: expected a string"),
    ("sharegpt", {"messages": []}, "it has no field 'conversations'"),
    ("completion", {"prompt": "How?"}, "'completion' is missing or null"),
    ("completion", {"prompt": "How?", "completion": None}, "'completion' is missing or null"),
    ("alpaca", {"instruction": "How?", "input": "x"}, "'output' is missing or null"),
]


@pytest.mark.parametrize(("shape", "row", "reason"), BAD, ids=str)
def test_rows_without_a_role_or_text_are_bad_rows(tmp_path: Path, shape: str, row: Any, reason: str) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("\n" + json.dumps(row) + "\n")
    options: dict[str, Any] = {"tokenizer": "bpe", "format": "parquet", "template_text": CHATML, "shape": shape}
    with pytest.raises(CorpusError) as caught:
        build([source], tmp_path / "out", **options)
    assert str(caught.value).startswith(f"{source}, row 2: ")
    assert reason in str(caught.value)
    with pytest.raises(CorpusError, match="all 1 rows are bad"):
        build([source], tmp_path / "others", skip_bad=True, **options)
    rejected = json.loads((tmp_path / "others" / "00000.rejected.jsonl").read_bytes())
    assert rejected["row"] == 2
    assert reason in rejected["reason"]


def test_shapes_that_cannot_be_read(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", [{"text": "a"}])
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"shape": "dpo"}, "shape must be 'messages', 'sharegpt', 'completion', 'alpaca' or 'preference', not 'dpo'"),
        ({"shape": "alpaca", "messages": "a"}, "messages must name 3 fields, such as instruction, input, output: 1"),
        ({"messages": ["a", "b"]}, "messages must name 1 fields, such as messages: 2 given"),
        ({"messages": "a", "date": "today"}, "date must be a day such as 2026-11-30, not 'today'"),
        ({"date": "2026-11-30"}, "date is for conversations"),
    ]
    for options, problem in wrong:
        with pytest.raises(CorpusError, match=problem):
            build([source], tmp_path / "out", tokenizer="bpe", format="flat", **options)


# -------------------------------------------------------------------------------------------------------------- dates

DATED = "{{ strftime_now('%Y-%m-%d') }}{% for m in messages %}{{ m.role }}{{ m.content }}{% endfor %}"


def test_a_template_is_told_the_day_of_the_first_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write(tmp_path / "in.jsonl", [{"messages": ASKED}])
    options: dict[str, Any] = {"tokenizer": "bpe", "format": "parquet", "messages": "messages"}
    time.strptime("2001", "%Y")  # the first call in a process needs the real strftime
    monkeypatch.setattr(time, "strftime", lambda _: "2001-02-03")
    build([source], tmp_path / "out", template_text=DATED, **options)
    monkeypatch.undo()
    [ids] = ids_of(tmp_path / "out")
    assert BPE.decode(ids).startswith("2001-02-03user")
    (tmp_path / "out" / "00000.parquet").unlink()
    build([source], tmp_path / "out", template_text=DATED, **options)  # on another day
    assert ids_of(tmp_path / "out") == [ids]
    build([source], tmp_path / "given", template_text=DATED, date="2001-02-03", **options)
    assert ids_of(tmp_path / "given") == [ids]
    with pytest.raises(CorpusError, match="the setting date has changed: it was '2001-02-03'"):
        build([source], tmp_path / "out", template_text=DATED, date="2001-02-04", **options)
    build([source], tmp_path / "undated", template_text=CHATML, **options)
    manifest = json.loads((tmp_path / "undated" / "manifest.json").read_text())
    assert manifest["settings"]["encoding"]["date"] is None


# --------------------------------------------------------------------------------------------- paths, several fields


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".parquet", ".arrow"])
def test_paths_and_several_fields(tmp_path: Path, suffix: str) -> None:
    rows: list[dict[str, Any]] = [
        {"doc": {"text": "a", "more": {"title": "A"}}, "id": "1"},
        {"doc": None, "id": "2"},
        {"doc": {"text": "b", "more": None}, "id": "3"},
        {"doc": {"text": None, "more": {"title": "C"}}, "id": "4"},
    ]
    path = tmp_path / f"in{suffix}"
    if suffix == ".arrow":
        table = pa.Table.from_pylist(rows)
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    else:
        write(path, rows)
    wanted = Reading("doc.text", columns=("doc.more.title", "id"), nulls="skip", others=("doc.more.title",))
    if suffix.startswith(".js"):
        found, bad = texts_of(path, wanted)
        assert found == {1: "a\n\nA", 3: "b"}
        assert [(each.row, each.reason) for each in bad] == [(2, "it has no field 'doc.text': there are 'doc', 'id'")]
    else:
        found, bad = texts_of(path, wanted)
        assert (found, bad) == ({1: "a\n\nA", 3: "b"}, [])
        with pytest.raises(CorpusError, match=r"no column is called 'doc.txt'"):
            texts_of(path, Reading("doc.txt"))
        with pytest.raises(CorpusError, match=r"column 'doc.more' has the type struct<"):
            texts_of(path, Reading("doc.more"))
    build([path], tmp_path / "out", tokenizer="bpe", format="parquet", field=["id", "doc.text"], keep=["doc.text"])
    assert ids_of(tmp_path / "out") == [BPE.encode(text) for text in ("1\n\na", "2", "3\n\nb", "4")]


def test_a_name_with_a_dot_is_not_a_path(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"doc.text": "a", "doc": {"text": "b"}}]
    for suffix in (".jsonl", ".parquet"):
        assert texts_of(write(tmp_path / f"in{suffix}", rows), Reading("doc.text")) == ({1: "a"}, [])


# ---------------------------------------------------------------------------------------------------------- CSV, TSV


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("size", [64, 1 << 20])
def test_separated_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, size: int) -> None:
    monkeypatch.setattr(separated, "MOST_RECORD", size)
    chance = random.Random(1)
    texts = ["".join(chance.choices('a,"\t\n ä', k=chance.choice([1, 9]))) for _ in range(60)]
    path = write(tmp_path / f"in{suffix}", [{"n": n, "text": text} for n, text in enumerate(texts)])
    assert texts_of(path, Reading())[0] == dict(enumerate(texts, 2))
    zipped = tmp_path / f"zipped{suffix}.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    assert texts_of(zipped, Reading(columns=("n",)))[0] == dict(enumerate(texts, 2))


def test_bad_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(separated, "MOST_RECORD", 24)
    path = tmp_path / "in.csv"
    path.write_bytes(b'id,text\n1,"a\nb"\n\n3,c\n5,\xff\n6,f\n')
    found, bad = texts_of(path, Reading())
    assert found == {2: "a\nb", 3: "c", 5: "f"}
    assert [(each.row, each.reason) for each in bad] == [(4, "column 'text': byte 1 is not UTF-8")]
    for data, problem in (
        (b"", "in.csv: it is not valid CSV: Empty CSV file"),
        (b"id,body\n1,2\n", "in.csv: it is not valid CSV: Column 'text' in include_columns does not exist"),
        (b"text\n" + b"a" * 99 + b"\n", "in.csv: a record has more than 24 bytes"),
        (b"id,text\n1,a\n2\n", "in.csv: it is not valid CSV: CSV parse error: Row #3: Expected 2 columns, got 1"),
    ):
        path.write_bytes(data)
        with pytest.raises(CorpusError, match=problem):
            texts_of(path, Reading())


# ------------------------------------------------------------------------------------------------------- JSON arrays


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_json_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(array, "BLOCK_SIZE", size)
    chance = random.Random(1)
    texts = ["".join(chance.choices('a,"\t\n{}[]\\ ä', k=chance.choice([0, 9]))) for _ in range(60)]
    rows = [{"text": text, "more": [{"x": [text]}]} for text in texts]
    path = tmp_path / "in.json"
    for indent in (None, 2):
        for mark in ("", "\ufeff"):
            path.write_text(mark + json.dumps(rows, indent=indent, ensure_ascii=not indent) + "\r\n")
            assert texts_of(path, Reading()) == (dict(enumerate(texts, 1)), [])
    path.write_text(" [ ] ")
    assert texts_of(path, Reading()) == ({}, [])


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_bad_json_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(array, "BLOCK_SIZE", size)
    path = tmp_path / "in.json"
    path.write_bytes(b'[{"text": "a"}, {"txt": "b"}, {"text": 1}, {"text" "c"}, {"text": "\xff"}, {"text": "d"}]')
    found, bad = texts_of(path, Reading())
    assert found == {1: "a", 6: "d"}
    assert [each.row for each in bad] == [2, 3, 4, 5]
    assert bad[0].reason == "it has no field 'text': the nearest is 'txt'"
    assert bad[3].reason == "byte 11 is not UTF-8"
    for data, problem in (
        (b"", "row 1: the array ends early"),
        (b'{"text": "a"}\n', "row 1: it is not an array of objects .JSON Lines are input_format 'jsonl'"),
        (b'[{"text": "a"}', "row 2: the array ends early"),
        (b'[{"text": "a', "row 1: the array ends early"),
        (b'[{"text": "a"} {"text": "b"}]', "row 2: it is not an array of objects"),
        (b'[{"text": "a"}, 5, {"text": "b"}]', "row 2: it is not an array of objects"),
        (b'[{"text": "a"},]', "row 2: it is not an array of objects"),
        (b'["a"]', "row 1: it is not an array of objects"),
        (b"[[{}]]", "row 1: it is not an array of objects"),
        (b'[{"text": "a"}] x', "something follows the array"),
    ):
        path.write_bytes(data)
        with pytest.raises(CorpusError, match=problem):
            texts_of(path, Reading())
    monkeypatch.setattr(array, "MOST_LINE", 9)
    path.write_bytes(b'[{"text": "aaaaaaaaaaaaaaaaa"}]')
    if size == 1:
        with pytest.raises(CorpusError, match="row 1: the object has more than 9 bytes"):
            texts_of(path, Reading())


# ---------------------------------------------------------------------------------------------------- train and count


def test_train_reads_what_a_corpus_reads(tmp_path: Path) -> None:
    texts = ["low lower lowest", "new newer newest"] * 20
    expected = ggtok.train(texts, kind="bpe", vocab_size=270).fingerprint
    rows = [{"text": text, "id": "no"} for text in texts]
    plain = tmp_path / "plain.txt"
    plain.write_text("low lower lowest")
    for suffix in (".jsonl", ".parquet"):
        path = write(tmp_path / f"in{suffix}", rows)
        assert ggtok.train(files=[path], kind="bpe", vocab_size=270).fingerprint == expected
        assert ggtok.train([path], kind="bpe", vocab_size=270).fingerprint == expected
    for suffix in (".jsonl", ".json", ".csv", ".tsv", ".parquet"):
        path = write(tmp_path / f"body{suffix}", [{"body": text, "id": "no"} for text in texts])
        assert ggtok.train(files=[path], field="body", kind="bpe", vocab_size=270).fingerprint == expected
    packed = tmp_path / "plain.txt.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    one = ggtok.train(files=[plain], kind="bpe", vocab_size=260)
    assert ggtok.train(files=[packed], kind="bpe", vocab_size=260).fingerprint == one.fingerprint
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n{"txt": "b"}\n')
    with pytest.raises(CorpusError, match=r"in.jsonl, row 2: it has no field 'text'"):
        ggtok.train(files=[tmp_path / "in.jsonl"], kind="bpe", vocab_size=270)


def test_count_reads_what_a_corpus_reads(tmp_path: Path) -> None:
    def count(*arguments: object) -> str:
        command = [sys.executable, "-m", "ggtok", "count", "--builtin", "bpe", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip() or done.stderr.strip()

    rows = [{"text": "What is LoRA?", "id": "no"}] * 3
    for suffix in (".jsonl", ".json", ".csv", ".parquet"):
        path = write(tmp_path / f"in{suffix}", rows)
        assert count(path, "--field", "text") == "18"
    assert count(tmp_path / "in.parquet") == "18"
    raw = (tmp_path / "in.jsonl").read_bytes()
    assert count(tmp_path / "in.jsonl") == str(BPE.count(raw))
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(raw))
    assert count(packed) == str(BPE.count(raw))
    assert count(packed, "--field", "text") == "18"
    assert "packed.jsonl.gz, row 1: it has no field 'txt': the nearest is 'text'" in count(packed, "--field", "txt")
    packed.write_bytes(packed.read_bytes()[:-9])
    assert "the gzip data ends early" in count(packed)


def test_a_template_by_its_name(tmp_path: Path) -> None:
    """For a model without a template, as an error advises."""
    source = tmp_path / "a.jsonl"
    source.write_text(json.dumps({"messages": ASKED}))
    table = pa.table({"messages": [json.dumps(ASKED)]})
    tokenizer = ggtok.Tokenizer.builtin("spm")
    options: dict[str, Any] = {"tokenizer": tokenizer, "format": "parquet", "messages": "messages"}
    for again in ("", "again"):
        with pytest.raises(ChatTemplateError, match=r"no chat template .* or template='chatml' to do as llama-server"):
            build([source], tmp_path / "out", **options)
        build([source], tmp_path / f"named{again}", template="chatml", **options)
    expected = [tokenizer.encode_chat(ASKED, template="chatml", add_generation_prompt=False)]
    assert ids_of(tmp_path / "named") == ids_of(tmp_path / "namedagain") == expected
    encoded = encode_table(table, tokenizer, messages="messages", template="chatml")
    assert encoded["input_ids"].to_pylist() == expected
    assert TableEncoder("spm", messages="messages", template="chatml")(table)["input_ids"].to_pylist() == expected
    with pytest.raises(CorpusError, match="template is for conversations: give messages too"):
        encode_table(table, tokenizer, "messages", template="chatml")
