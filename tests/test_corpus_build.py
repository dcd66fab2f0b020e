"""A corpus from files to shards: nothing is lost, nothing comes twice, however often the run is stopped."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from hashlib import sha256
from pathlib import Path
from typing import Any

import ggtok
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ggtok.corpus import build, info, reading, run, verify
from ggtok.corpus.child import Child
from ggtok.corpus.documents import Watch
from ggtok.errors import CorpusError, GgtokError
from shard_rows import rows_of

MB = 1 << 20
BPE = ggtok.Tokenizer.builtin("bpe")
SPM = ggtok.Tokenizer.builtin("spm")


def texts(number: int, seed: int = 0) -> list[str]:
    """Texts of very different lengths, some of them empty."""
    chance = random.Random(seed)
    words = ["one", "text", "naïve", "日本語", "\n", "  ", '"quoted"', "12345", "𝛼β", "def f(x):\n\treturn x"]
    lengths = [0, 1, 3, 50, 300, 2000]
    return [f"{n} " * (n % 7 > 0) + " ".join(chance.choices(words, k=chance.choice(lengths))) for n in range(number)]


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs of several formats, together about 12 MB."""
    path = tmp_path_factory.mktemp("inputs")
    write_jsonl(path / "a.jsonl", [{"text": text, "id": n} for n, text in enumerate(texts(1500, 1))])
    write_jsonl(path / "b.jsonl.gz", [{"text": text, "id": n} for n, text in enumerate(texts(1500, 2))])
    table = pa.table({"text": texts(1000, 3), "id": pa.array(range(1000), pa.int64())})
    pq.write_table(table, path / "c.parquet", row_group_size=100)
    return path


def ids_of(folder: Path) -> list[list[int]]:
    """The tokens of every document, in the order of the shards."""
    found = info(folder)
    names = dict.fromkeys(file.name.split(".")[0] for file in found.files)
    return [ids for name in names for ids in rows_of(folder / name, found.format)]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def encoded(rows: list[str], **options: Any) -> list[list[int]]:
    return BPE.encode_batch(rows, **options).tolist()


@pytest.mark.parametrize("format", ["parquet", "arrow", "megatron", "datatrove", "flat"])
def test_every_document_is_written_once_and_in_order(folder: Path, tmp_path: Path, format: Any) -> None:
    found = build([folder], tmp_path / "out", tokenizer="bpe", format=format, shard_size=MB)
    expected = encoded([*texts(1500, 1), *texts(1500, 2), *texts(1000, 3)])
    assert found.shards > 5
    assert found.documents == 4000
    assert found.tokens == sum(map(len, expected))
    assert ids_of(tmp_path / "out") == [ids for ids in expected if ids or format != "flat"]
    assert verify(tmp_path / "out", tokenizer=BPE, sample=None).problems == []


def test_the_number_of_threads_changes_no_byte(folder: Path, tmp_path: Path) -> None:
    for threads in (1, 2, 5):
        build(
            [folder], tmp_path / str(threads), tokenizer=BPE, format="flat", shard_size=MB, threads=threads, shuffle=3
        )
    assert contents(tmp_path / "1") == contents(tmp_path / "2") == contents(tmp_path / "5")


def test_many_threads_are_processes(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments: dict[str, Any] = {"tokenizer": BPE, "format": "flat", "shard_size": MB, "threads": 3}
    build([folder], tmp_path / "threads", **arguments)
    monkeypatch.setattr("ggtok.corpus.run.MOST_THREADS", 2)
    build([folder], tmp_path / "processes", **arguments)
    assert contents(tmp_path / "threads") == contents(tmp_path / "processes")
    (folder / "bad.jsonl").write_text("{}\n")
    with pytest.raises(CorpusError, match=r"bad\.jsonl, row 1"):
        build([folder], tmp_path / "bad", **arguments)
    (folder / "bad.jsonl").unlink()


def test_short_inputs_are_read_in_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads would wait for the GIL: two took twice as long as one. A process gets the inputs of its task only."""
    (tmp_path / "in").mkdir()
    for number, text in enumerate(texts(300, 1)):
        (tmp_path / f"in/{number:03}.txt").write_text(text + "a" * 20_000)
    sent: list[Any] = []
    send = Child._send

    def noted(child: Child, message: object) -> None:
        sent.append(message)
        send(child, message)

    monkeypatch.setattr(Child, "_send", noted)
    arguments: dict[str, Any] = {"tokenizer": BPE, "format": "parquet", "shard_size": MB}
    build([tmp_path / "in"], tmp_path / "one", threads=1, **arguments)
    assert not sent
    build([tmp_path / "in"], tmp_path / "two", threads=2, **arguments)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    given = [message[1] for message in sent if isinstance(message, tuple)]
    assert sorted(number for inputs in given for number in inputs) == [*range(300)]
    assert all(not message.inputs for message in sent if not isinstance(message, tuple))


def command(folder: Path, output: Path, *options: str) -> list[str]:
    return [
        *(sys.executable, "-m", "ggtok", "corpus", "build", str(folder), "-o", str(output), "--builtin", "bpe"),
        *("--format", "parquet", "--shard-size", "256K", *options),
    ]


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # it is deleted at the end
        return 0


def wait_for_growth(path: Path, process: subprocess.Popen[bytes]) -> None:
    before = size_of(path)
    while process.poll() is None and size_of(path) == before:
        time.sleep(0.002)


def test_killed_at_random_moments_it_ends_with_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    subprocess.run(command(folder, tmp_path / "whole"), check=True, capture_output=True)
    chance, codes, journal = random.Random(20), set[int](), tmp_path / "out" / "journal.jsonl"
    for kill in range(8):
        process = subprocess.Popen(command(folder, tmp_path / "out"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        is_writing = kill % 4 != 3  # the others hit it anywhere, perhaps after its end: so the first is sure to hit it
        if is_writing:
            wait_for_growth(journal, process)
        time.sleep(chance.uniform(0, 0.03 * kill if is_writing else 1))
        process.kill()
        codes.add(process.wait())
        process.communicate()
        for path in (tmp_path / "out").glob("*.parquet"):
            pq.read_metadata(path)  # what has its name is complete
    assert -signal.SIGKILL in codes
    subprocess.run(command(folder, tmp_path / "out"), check=True, capture_output=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_with_a_message(folder: Path, tmp_path: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        command(folder, tmp_path / "out", "--threads", "1"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_for_growth(tmp_path / "out" / "journal.jsonl", process)
    process.send_signal(number)
    _, message = process.communicate()
    assert process.returncode == 128 + number
    assert b"the same command continues" in message
    assert not list((tmp_path / "out").glob(".*.part"))
    shards = info(tmp_path / "out").shards
    assert shards > 0
    found = build([folder], tmp_path / "out", tokenizer="bpe", format="parquet", shard_size=MB // 4)
    assert found.is_complete
    assert found.shards > shards


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"append_eos": True}, "setting append_eos has changed: it was False, and now it is True"),
        ({"tokenizer": "spm"}, "tokenizer has changed"),
        ({"part": (1, 2)}, "it is all of the inputs, and this is part 1 of 2"),
    ],
)
def test_it_does_not_continue_another_corpus(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [{"text": text} for text in texts(10)])
    arguments: dict[str, Any] = {"tokenizer": "bpe", "format": "megatron"}
    build([source], tmp_path / "out", **arguments)
    before = contents(tmp_path / "out")
    with pytest.raises(CorpusError, match=message):
        build([source], tmp_path / "out", **(arguments | change))
    assert contents(tmp_path / "out") == before


def test_what_is_missing_of_a_complete_corpus_is_made_again(folder: Path, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"tokenizer": "bpe", "format": "datatrove", "shard_size": MB}
    found = build([folder], tmp_path / "out", **arguments)
    before = contents(tmp_path / "out")
    (tmp_path / "out" / "journal.jsonl").touch()  # as if the run was killed after its manifest was complete
    build([folder], tmp_path / "out", **arguments)
    assert contents(tmp_path / "out") == before
    found.files[0].unlink()
    os.truncate(found.files[-1], 10)
    problems = verify(tmp_path / "out", tokenizer=BPE).problems
    assert any(f"{found.files[0].name} is missing" in each for each in problems)
    assert any(found.files[-1].name in each for each in problems)
    build([folder], tmp_path / "out", **arguments)
    assert contents(tmp_path / "out") == before


def test_an_input_that_changes_during_the_run_is_an_error(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [{"text": text} for text in texts(2000)])

    def append(state: ggtok.corpus.State) -> None:
        assert state.phase == "encoding" or (state.documents, state.tokens, state.shards) == (0, 0, 0)
        if state.phase == "encoding" and source.stat().st_size == size:  # it was surveyed
            with source.open("a") as file:
                file.write('{"text": "late"}\n')

    size = source.stat().st_size
    with pytest.raises(CorpusError, match=r"a\.jsonl: it has changed during the run"):
        build([source], tmp_path / "out", tokenizer="bpe", format="flat", progress=append)
    assert not info(tmp_path / "out").is_complete


def test_a_missing_shard_of_a_stream_is_made_again(folder: Path, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"tokenizer": "bpe", "format": "flat", "shard_size": MB // 4}
    found = build([folder / "b.jsonl.gz"], tmp_path / "out", **arguments)
    before = contents(tmp_path / "out")
    for file in found.files[4:6]:
        file.unlink()
    build([folder / "b.jsonl.gz"], tmp_path / "out", **arguments)
    assert contents(tmp_path / "out") == before


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [{"text": "a"}])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(CorpusError, match=r"it holds thesis\.txt"):
        build([source], tmp_path / "out", tokenizer="bpe", format="flat")
    with pytest.raises(CorpusError, match="this is a file"):
        build([source], source, tokenizer="bpe", format="flat")


def test_two_runs_do_not_share_a_folder(folder: Path, tmp_path: Path) -> None:
    def interfere(_: object) -> None:
        with pytest.raises(CorpusError, match="another run is using"):
            build([folder], tmp_path / "out", tokenizer="bpe", format="flat")

    assert build([folder], tmp_path / "out", tokenizer="bpe", format="flat", progress=interfere).is_complete


BAD: list[dict[str, Any]] = [{"text": "fine"}, {"text": 5}, {"text": "also fine"}, {"other": "x"}]


def test_a_bad_row_is_named_and_stops_the_run(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", BAD)
    with pytest.raises(CorpusError, match=r"a\.jsonl, row 2: ") as caught:
        build([source], tmp_path / "out", tokenizer="bpe", format="parquet")
    assert caught.value.row == 2
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["manifest.json", "vocabulary.gguf"]


def test_bad_rows_can_go_to_a_file_of_their_own(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", BAD)
    found = build([source], tmp_path / "out", tokenizer="bpe", format="parquet", skip_bad=True)
    assert (found.documents, found.rejected) == (2, 2)
    rejected = [json.loads(line) for line in (tmp_path / "out" / "00000.rejected.jsonl").read_text().splitlines()]
    assert [(row["row"], json.loads(row["data"])) for row in rejected] == [(2, BAD[1]), (4, BAD[3])]
    assert all(row["source"].endswith("a.jsonl") and row["reason"] for row in rejected)
    assert ids_of(tmp_path / "out") == encoded(["fine", "also fine"])


def test_special_tokens_follow_the_vocabulary_and_stand_in_the_manifest(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [{"text": "one"}, {"text": ""}])
    bos, eos = SPM.vocab.bos_id, SPM.vocab.eos_id
    for name, options, expected, added in (
        ("rule", {}, [[bos, *plain(SPM, "one")], [bos]], (True, False)),
        ("none", {"add_special": False}, [plain(SPM, "one"), []], (False, False)),
        ("eos", {"append_eos": True}, [[bos, *plain(SPM, "one"), eos], [bos, eos]], (True, True)),
    ):
        build([source], tmp_path / name, tokenizer=SPM, format="megatron", **options)  # type: ignore[arg-type]
        assert ids_of(tmp_path / name) == expected
        said = json.loads((tmp_path / name / "manifest.json").read_bytes())["tokenizer"]
        assert (said["adds_bos"], said["adds_eos"]) == added


def plain(tokenizer: ggtok.Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special=False)


def test_long_documents_are_cut_or_dropped_and_counted(tmp_path: Path) -> None:
    rows = ["a b c d e f g", "a"]
    source = write_jsonl(tmp_path / "a.jsonl", [{"text": row} for row in rows])
    cut = build([source], tmp_path / "cut", tokenizer="bpe", format="flat", max_length=3)
    assert ids_of(tmp_path / "cut") == [encoded(rows)[0][:3], encoded(rows)[1]]
    dropped = build([source], tmp_path / "drop", tokenizer="bpe", format="flat", max_length=3, too_long="drop")
    assert ids_of(tmp_path / "drop") == encoded(rows)[1:]
    assert (cut.cut, cut.dropped, dropped.cut, dropped.dropped) == (1, 0, 0, 1)


def test_columns_are_carried_over(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"text": "one", "id": "x", "score": 1.5}, {"text": "two", "score": [1]}]
    source = write_jsonl(tmp_path / "a.jsonl", rows)
    build([source], tmp_path / "out", tokenizer="bpe", format="parquet", keep=["id", "score", "text"])
    table = pq.read_table(tmp_path / "out" / "00000.parquet").drop_columns("input_ids").to_pylist()
    assert table == [{"id": "x", "score": "1.5", "text": "one"}, {"id": None, "score": "[1]", "text": "two"}]


def test_a_field_that_no_document_has_is_a_warning(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [{"text": "one", "url": "x"}, {"text": "two"}])
    with pytest.warns(ggtok.TokenizerWarning, match="none of the first 2 documents of .* has a field 'urls'"):
        build([source], tmp_path / "out", tokenizer="bpe", format="parquet", keep=["url", "urls"])


def test_a_stream_is_cut_into_the_same_shards_from_a_pipe(folder: Path, tmp_path: Path) -> None:
    data = gzip.decompress((folder / "b.jsonl.gz").read_bytes())
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    base = [
        *(sys.executable, "-m", "ggtok", "corpus", "build", "-", "--input-format", "jsonl", "--builtin", "bpe"),
        *("--format", "megatron", "--shard-size", "256K", "-o"),
    ]
    subprocess.run([*base, str(whole)], input=data, check=True, capture_output=True)
    assert ids_of(whole) == encoded(texts(1500, 2))
    process = subprocess.Popen([*base, str(stopped)], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    for at in range(0, len(data) // 2, 7777):  # parts of odd sizes
        process.stdin.write(data[at : min(at + 7777, len(data) // 2)])
    process.stdin.flush()
    process.kill()
    process.communicate()
    changed = data.replace(b'"text": "', b'"text": "X', 1)
    has_shards = (stopped / "journal.jsonl").exists()
    done = subprocess.run([*base, str(stopped)], input=changed, capture_output=True, check=False)
    if has_shards:
        assert done.returncode == 2
        assert b"standard input" in done.stderr
        subprocess.run([*base, str(stopped)], input=data, check=True, capture_output=True)
        assert contents(stopped) == contents(whole)


def test_the_command_compares_standard_input_with_a_finished_corpus(tmp_path: Path) -> None:
    data = b"".join(b"line %d of some words\n" % number for number in range(8000))
    out = tmp_path / "out"
    command = [
        *(sys.executable, "-m", "ggtok", "corpus", "build", "-", "--input-format", "lines", "--builtin", "bpe"),
        *("--format", "flat", "--shard-size", "64K", "-o", str(out)),
    ]
    subprocess.run(command, input=data, check=True, capture_output=True)
    before = contents(out)
    assert len([name for name in before if name.endswith(".npy")]) > 2
    changed = data.replace(b"7000", b"700O")
    for given, shard in ((data, None), (changed, "00000-00002"), (data + b"more\n", "00000-00002"), (data[:9999], "")):
        done = subprocess.run(command, input=given, capture_output=True, check=False)
        assert done.returncode == (0 if shard is None else 2), done.stderr
        if shard is not None:
            assert b"it is not what the last run read: shard " + shard.encode() in done.stderr
        assert contents(out) == before


def test_chats_are_rendered_with_a_mask_on_several_processes(tmp_path: Path) -> None:
    chats: list[Any] = [
        [{"role": "user", "content": f"Question {n}?"}, {"role": "assistant", "content": "An answer." * (n % 9)}]
        for n in range(400)
    ]
    for part in range(3):
        write_jsonl(tmp_path / f"{part}.jsonl", [{"messages": chat} for chat in chats])
    path = Path(ggtok.__file__).parent / "vocabularies" / "bpe.gguf"
    answer = "{% generation %}{{ m.content }}{% endgeneration %}"
    template = "{% for m in messages %}<|im_start|>{{ m.role }}\n" + answer + "{% endfor %}"
    tokenizer = ggtok.Tokenizer.from_gguf(path, overrides={"tokenizer.chat_template": template})
    for threads in (1, 3):
        found = build(
            [tmp_path / f"{part}.jsonl" for part in range(3)],
            tmp_path / str(threads),
            tokenizer=tokenizer,
            format="parquet",
            messages="messages",
            shard_size=1 << 16,
            threads=threads,
        )
        assert found.documents == 1200
    assert contents(tmp_path / "1") == contents(tmp_path / "3")
    row = pq.read_table(tmp_path / "1" / "00000.parquet").to_pylist()[1]
    assert row["input_ids"] == tokenizer.encode_chat(chats[1], add_generation_prompt=False)
    assert 0 < sum(row["assistant_mask"]) < len(row["assistant_mask"]) == len(row["input_ids"])


def test_packed_sequences_hold_every_document(folder: Path, tmp_path: Path) -> None:
    found = build(
        [folder], tmp_path / "out", tokenizer="bpe", format="arrow", pack=512, shuffle=1, shard_size=MB, pad_id=0
    )
    expected = sorted(encoded([*texts(1500, 1), *texts(1500, 2), *texts(1000, 3)]))
    pieces = [ids[at : at + 512] for ids in expected for at in range(0, len(ids), 512)]
    assert sorted(ids_of(tmp_path / "out")) == sorted(pieces)
    assert found.packing
    assert verify(tmp_path / "out", tokenizer=BPE, sample=None).problems == []


def test_verify_reads_a_stream_once(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = build([folder / "b.jsonl.gz"], tmp_path / "out", tokenizer=BPE, format="megatron", shard_size=MB // 4)
    assert found.shards > 5
    calls: list[Any] = []

    def counted(*arguments: Any) -> Iterator[Any]:
        calls.append(arguments)
        return reading.read(*arguments)

    monkeypatch.setattr("ggtok.corpus.documents.read", counted)
    for sample in (1, 10, None):
        assert verify(tmp_path / "out", tokenizer=BPE, sample=sample).problems == []
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "csv"}, "format must be 'parquet'"),
        ({"format": "megatron", "keep": ["id"]}, "keep is for the formats parquet and arrow"),
        ({"format": "flat", "pack": 10}, "pack is for the formats"),
        ({"format": "parquet", "pack": 10, "keep": ["id"]}, "keep cannot carry columns over"),
        ({"format": "parquet", "id_field": "id"}, "id_field is for the format flat"),
        ({"format": "arrow", "compression": "snappy"}, "^Arrow files can be compressed with zstd and lz4, not with"),
        ({"format": "parquet", "max_length": 0}, "max_length must be at least 1"),
        ({"format": "parquet", "shard_size": 10}, "shard_size must be at least 65536"),
        ({"format": "parquet", "threads": 0}, "threads must be at least 1"),
        ({"format": "parquet", "pack": 10, "pad_id": 10**6}, "1000000 is outside the vocabulary"),
        ({"format": "parquet", "field": "input_ids"}, "input_ids"),
        ({"format": "parquet", "nulls": "keep"}, "nulls must be 'error'"),
    ],
)
def test_settings_that_contradict_each_other(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [{"text": "one", "input_ids": "x"}])
    with pytest.raises(GgtokError, match=message):
        build([source], tmp_path / "out", tokenizer="bpe", **options)
    assert not list(tmp_path.glob("out/*.parquet"))


def test_a_damaged_manifest_or_journal_is_an_error(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [{"text": "one"}])
    with pytest.raises(CorpusError, match="this is not a corpus"):
        info(tmp_path)
    build([source], tmp_path / "out", tokenizer="bpe", format="flat")
    whole = (tmp_path / "out" / "manifest.json").read_text()
    for damaged in (whole[:-20], "[]", "{}", whole.replace('"manifest": 1', '"manifest": 9')):
        (tmp_path / "out" / "manifest.json").write_text(damaged)
        with pytest.raises(CorpusError, match=r"manifest\.json"):
            build([source], tmp_path / "out", tokenizer="bpe", format="flat")


def test_info_adds_up(folder: Path, tmp_path: Path) -> None:
    build([folder], tmp_path / "out", tokenizer="bpe", format="megatron", shard_size=MB)
    found = info(tmp_path / "out")
    lengths = [len(ids) for ids in ids_of(tmp_path / "out")]
    for least, most, documents in found.lengths:
        assert documents == sum(least <= length <= most for length in lengths)
    assert sum(source.tokens for source in found.sources) == found.tokens == sum(lengths)
    assert [source.documents for source in found.sources] == [1500, 1500, 1000]
    assert found.text_bytes == sum(len(t.encode()) for t in [*texts(1500, 1), *texts(1500, 2), *texts(1000, 3)])
    page = found._repr_html_()
    assert f"{found.tokens:,}" in page
    assert "b.jsonl.gz" in page
    heads = re.findall("<th [^>]*>([^<]*)</th>", page)
    assert heads == ["corpus", "", "source", "documents", "tokens", "% of tokens", "bytes per token"]
    assert json.loads(json.dumps(found.to_dict()))["documents"] == 4000
    assert "0 more" not in page


def test_the_smallest_sources_are_summed_up(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number}.txt").write_text("word\n\n" * (100 + number))
    build(sorted(tmp_path.glob("*.txt")), tmp_path / "out", tokenizer="bpe", format="flat")
    found = info(tmp_path / "out")._repr_html_()
    assert "11.txt" in found
    assert "1.txt" not in found.replace("11.txt", "")
    assert "and 2 more" in found


def lines(number: int) -> Iterator[str]:
    return (f"line {n}" for n in range(number))


def test_text_files_and_lines(tmp_path: Path) -> None:
    for n in range(3):
        (tmp_path / f"{n}.txt").write_text(f"document {n}\nof two lines")
    build([tmp_path / "*.txt"], tmp_path / "files", tokenizer="bpe", format="flat")
    assert ids_of(tmp_path / "files") == encoded([f"document {n}\nof two lines" for n in range(3)])
    build([tmp_path / "*.txt"], tmp_path / "lines", tokenizer="bpe", format="flat", input_format="lines")
    assert ids_of(tmp_path / "lines") == encoded([row for n in range(3) for row in (f"document {n}", "of two lines")])


TOOL = {"type": "function", "function": {"name": "look", "description": "d", "parameters": {}}}
WITH_TOOLS = (
    "{% for t in tools %}[{{ t.function.name }}]{% endfor %}{{ note }}"
    "{% for m in messages %}<|im_start|>{{ m.role }}:{{ m.content }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant:{% endif %}"
)


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_tools_template_variables_and_mask_of_chats(tmp_path: Path, format: str) -> None:
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello", "mood": "good"}]
    rows = [{"messages": talk, "tools": [TOOL] if number % 2 else None} for number in range(40)]
    if format == "jsonl":
        source = tmp_path / "in.jsonl"
        write_jsonl(source, rows)
    else:
        source = tmp_path / "in.parquet"
        texts = {name: [row[name] and json.dumps(row[name]) for row in rows] for name in ("messages", "tools")}
        pq.write_table(pa.table(texts), source)
    options: dict[str, Any] = {"messages": "messages", "tools": "tools", "template_text": WITH_TOOLS}
    options |= {"variables": {"note": "N", "nope": 1}, "mask": "content"}
    with pytest.warns(ggtok.TokenizerWarning) as caught:
        build([source], tmp_path / "out", tokenizer="bpe", format="parquet", **options)
    said = [str(warning.message) for warning in caught]
    assert [text.partition(",")[0] for text in said] == ["in 40 conversations"] * 2
    assert "'mood'" in said[0]
    assert "'nope'" in said[1]

    tok = ggtok.Tokenizer.builtin("bpe")
    for number, row in enumerate(pq.read_table(tmp_path / "out" / "00000.parquet").to_pylist()):
        own = [id for id, mine in zip(row["input_ids"], row["assistant_mask"], strict=True) if mine]
        assert tok.decode(own, unparse_special=True) == "Hello"
        assert tok.decode(row["input_ids"]).startswith("[look]N" if number % 2 else "N")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    encoding = manifest["settings"]["encoding"]
    assert (encoding["mask"], encoding["variables"]) == ("content", [["note", "N"], ["nope", 1]])
    assert manifest["tokenizer"]["chat_template_sha256"] == sha256(WITH_TOOLS.encode()).hexdigest()
    found = verify(tmp_path / "out", tokenizer="bpe")
    assert (found.problems, found.documents, found.masks) == ([], 40, 40)
    assert "rendered again by the corpus's own template" in found.notes[0]
    for change in ({"mask": "turn"}, {"variables": {"note": "M"}}, {"template_text": "{{ messages }}"}):
        with pytest.raises(CorpusError, match=r"has changed"):
            build([source], tmp_path / "out", tokenizer="bpe", format="parquet", **options | change)


def test_a_field_with_tools_is_not_dropped_silently(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "Hi"}]
    write_jsonl(tmp_path / "in.jsonl", [{"messages": talk, "tools": [TOOL]}])
    with pytest.warns(ggtok.TokenizerWarning, match=r"have a field 'tools', and it is left out"):
        build([tmp_path / "in.jsonl"], tmp_path / "out", tokenizer="bpe", format="parquet", messages="messages")
    with pytest.raises(CorpusError, match="tools is for conversations: give messages too"):
        build([tmp_path / "in.jsonl"], tmp_path / "other", tokenizer="bpe", format="parquet", tools="tools")


def test_a_run_does_not_look_at_all_tasks_for_each_message(monkeypatch: pytest.MonkeyPatch) -> None:
    looked, state, is_done = 0, run.State(), Future.done

    def counted(future: Future[Any]) -> bool:
        nonlocal looked
        looked += 1
        return is_done(future)

    def work(item: int, send: Watch) -> int:
        for _ in range(100 if item == 299 else 1):
            time.sleep(0.001)
            send((1, 0, 0))
        return item

    monkeypatch.setattr(Future, "done", counted)
    assert run._on_threads(work, [*range(300)], 2, state, lambda state: None) == [*range(300)]
    assert state.bytes == 399
    assert looked < 3000
