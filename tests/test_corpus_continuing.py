"""Continuing a corpus: what is kept if inputs, options or places have changed, and what is refused."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import chdir
from inspect import signature
from pathlib import Path
from typing import Any, get_args

import ggtok
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ggtok.corpus import build, info, verify
from ggtok.corpus.manifest import Shard
from ggtok.corpus.settings import Format, Masks
from ggtok.errors import CorpusError
from shard_rows import rows_of

LEAST = 1 << 16
BPE = ggtok.Tokenizer.builtin("bpe")
PLAIN: dict[str, Any] = {"tokenizer": BPE, "format": "megatron", "shard_size": LEAST}


def write_rows(path: Path, rows: list[str]) -> Path:
    data = "".join(json.dumps({"text": row, "id": f"{path.stem}-{n}"}) + "\n" for n, row in enumerate(rows)).encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def rows(name: str, number: int = 2000) -> list[str]:
    return [f"{name} has a line {n} of some words" for n in range(number)]


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    """Three inputs, each of more than two shards."""
    (tmp_path / "in").mkdir()
    return [write_rows(tmp_path / "in" / f"{name}.jsonl", rows(name)) for name in "abc"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def shards(folder: Path) -> dict[str, tuple[bytes, int]]:
    """The files of shards, with the time of each."""
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in info(folder).files}


def ids_of(folder: Path) -> list[tuple[int, ...]]:
    found = info(folder)
    names = dict.fromkeys(file.name.split(".")[0] for file in found.files)
    return sorted(tuple(ids) for name in names for ids in rows_of(folder / name, found.format))


def encoded(*names: str) -> list[tuple[int, ...]]:
    return sorted(tuple(ids) for name in names for ids in BPE.encode_batch(rows(name)).tolist())


def read_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of inputs whose documents are read from now on."""
    from ggtok.corpus import reading

    calls: list[str] = []

    def counted(source: Any, *others: Any) -> Iterator[Any]:
        calls.append(source.name.rpartition("/")[2])
        return reading.read(source, *others)

    monkeypatch.setattr("ggtok.corpus.documents.read", counted)
    return calls


ALL = "{% for m in messages %}{{ m.content }}{% endfor %}"

EVERY: dict[str, dict[str, Any]] = {
    "field": {"field": "id"},
    "messages": {"messages": "chat", "template_text": ALL},
    "tools": {"tools": "functions"},
    "shape": {"messages": "chat", "template_text": ALL, "shape": "messages"},
    "date": {"messages": "chat", "template_text": ALL + "{{ strftime_now('%Y') }}", "date": "2020-02-02"},
    "trainer": {"trainer": "axolotl", "format": "parquet"},
    "template": {"template": "chatml"},
    "template_text": {"template_text": "{{ messages[0].content }}{{ messages[1].content }}"},
    "variables": {"variables": {"b": [1, {"c": None}], "a": 1.5}, "template_text": "{{ a }}{{ b }}" + ALL},
    "mask": {"mask": get_args(Masks)[-1]},
    "input_format": {"input_format": "jsonl"},
    "keep": {"keep": ["id", "text"], "format": "parquet"},
    "id_field": {"id_field": "id", "format": "flat"},
    "nulls": {"nulls": "empty"},
    "skip_bad": {"skip_bad": True},
    "max_bad": {"skip_bad": True, "max_bad": 0.5},
    "add_special": {"add_special": False},
    "parse_special": {"parse_special": True},
    "append_eos": {"append_eos": True},
    "max_length": {"max_length": 4},
    "too_long": {"max_length": 4, "too_long": "drop"},
    "overlap": {"max_length": 4, "too_long": "split", "overlap": 2, "format": "parquet"},
    "fim": {"fim": 0.5},
    "fim_spm": {"fim": 0.5, "fim_spm": 1},
    "weights": {},  # by the source
    "token_weights": {"token_weights": True},
    "budget": {"budget": 4000},
    "validation": {"validation": 0.5},
    "shuffle": {"shuffle": 7},
    "pack": {"pack": 64, "pad_id": 0, "format": "parquet"},
    "pad_id": {"pack": 64, "pad_id": 3, "format": "arrow"},
    "attention_mask": {"attention_mask": True, "format": "arrow"},
    "compression": {"compression": "zstd", "format": "parquet"},
    "shard_size": {"shard_size": 1 << 17},
    "part": {"part": (2, 2)},  # where `a.jsonl` is
    "rebuild": {"rebuild": True},
    "rehash": {"rehash": True},
    "threads": {"threads": 1},
    "progress": {"progress": lambda state: None},
    **{format: {"format": format} for format in get_args(Format)},
}
"""A value for each option of `build`, with what it needs."""


def options_of_build() -> list[str]:
    given = {"sources", "output", "tokenizer", "format"}
    return [name for name in signature(build).parameters if name not in given] + list(get_args(Format))


@pytest.mark.parametrize("option", options_of_build())
def test_every_option_can_be_continued(tmp_path: Path, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the name of an input decides which part it is in
    chat = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}]
    row = {"text": "one text", "id": "x", "chat": chat, "functions": []}
    source = Path("a.jsonl")
    source.write_text((json.dumps(row) + "\n") * 2000)
    assert option in EVERY, f"tell this test a value for {option}"
    arguments = PLAIN | EVERY[option]
    if option in ("weights", "token_weights"):
        arguments["weights"] = {source: 1.5}
    if option in ("tools", "template", "template_text", "variables", "mask"):
        arguments = EVERY["messages"] | arguments
    if option == "template":
        del arguments["template_text"]
    build([source], tmp_path / "out", **arguments)
    before = contents(tmp_path / "out")
    build([source], tmp_path / "out", **arguments)
    assert contents(tmp_path / "out") == before
    for file in info(tmp_path / "out").files[:2]:
        file.unlink()
    build([source], tmp_path / "out", **arguments)
    assert contents(tmp_path / "out") == before
    changed = {"pack": 128} if "pack" in arguments else {"append_eos": not arguments.get("append_eos")}
    with pytest.raises(CorpusError, match=f"the setting {next(iter(changed))} has changed"):
        build([source], tmp_path / "out", **(arguments | changed | {"rebuild": False}))


def test_a_folder_behind_a_link(tmp_path: Path, sources: list[Path]) -> None:
    """`..` leads out of what a link leads to."""
    deep = tmp_path / "far" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / "out").symlink_to(deep, target_is_directory=True)
    (tmp_path / "link").symlink_to(sources[0].parent, target_is_directory=True)
    inputs = [tmp_path / "link" / source.name for source in sources]
    build(inputs, tmp_path / "out", **PLAIN)
    before = contents(deep)
    for folder in (tmp_path / "out", deep):
        assert (found := verify(folder)).documents > 5000
        assert not found.notes
        build(inputs, folder, **PLAIN)
        build(sources, folder, **PLAIN)
        assert contents(deep) == before


def test_an_input_that_is_added_adds_shards(tmp_path: Path, sources: list[Path]) -> None:
    build(sources[:2], tmp_path / "out", **PLAIN)
    before = shards(tmp_path / "out")
    build(sources, tmp_path / "out", **PLAIN)
    after = shards(tmp_path / "out")
    assert before.items() < after.items()
    assert ids_of(tmp_path / "out") == encoded("a", "b", "c")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    runs = {shard["name"]: shard["run"] for shard in manifest["shards"]}
    assert runs == {name.removesuffix(".bin"): int(name not in before) for name in after if name.endswith(".bin")}
    assert verify(tmp_path / "out", sample=None).problems == []


def test_the_default_size_of_shards_stays_when_inputs_are_added(
    tmp_path: Path, sources: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ggtok.corpus.building.FEW", 1 << 16)
    big = write_rows(tmp_path / "big.jsonl", rows("big", 100) * 600)
    build(sources[:2], tmp_path / "out", tokenizer=BPE, format="megatron")
    assert build([*sources[:2], big], tmp_path / "out", tokenizer=BPE, format="megatron").is_complete
    assert info(tmp_path / "out").shards > 32  # for their size alone there would be 16


def test_an_input_that_was_removed_takes_its_documents_along(tmp_path: Path, sources: list[Path]) -> None:
    build(sources, tmp_path / "out", **PLAIN)
    before = shards(tmp_path / "out")
    with pytest.warns(ggtok.TokenizerWarning, match=r"b\.jsonl changed: .* are made anew"):
        build([sources[0], sources[2]], tmp_path / "out", **PLAIN)
    after = shards(tmp_path / "out")
    assert before.items() & after.items()
    assert ids_of(tmp_path / "out") == encoded("a", "c")
    assert {path.name for path in (tmp_path / "out").glob("*.bin")} == {n for n in after if n.endswith(".bin")}


def test_a_bad_input_that_was_repaired_leaves_finished_shards(
    tmp_path: Path, sources: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    good = sources[2].read_bytes()
    sources[2].write_bytes(good + b'{"text": 5}\n')
    with pytest.raises(CorpusError, match=r"c\.jsonl, row 2001"):
        build(sources, tmp_path / "out", **PLAIN, threads=1)
    before = shards(tmp_path / "out")
    assert len(before) >= 4
    sources[2].write_bytes(good)
    calls = read_calls(monkeypatch)
    with pytest.warns(ggtok.TokenizerWarning, match=r"c\.jsonl changed"):
        build(sources, tmp_path / "out", **PLAIN)
    assert "a.jsonl" not in calls
    assert ids_of(tmp_path / "out") == encoded("a", "b", "c")
    kept = shards(tmp_path / "out").items() & before.items()
    assert len(kept) >= 4


def test_bad_rows_can_be_skipped_after_they_stopped_a_run(tmp_path: Path, sources: list[Path]) -> None:
    sources[2].write_bytes(sources[2].read_bytes() + b'{"text": 5}\n')
    with pytest.raises(CorpusError, match="row 2001"):
        build(sources, tmp_path / "out", **PLAIN, threads=1)
    before = shards(tmp_path / "out")
    assert build(sources, tmp_path / "out", **PLAIN, skip_bad=True).rejected == 1
    assert before.items() < shards(tmp_path / "out").items()
    assert ids_of(tmp_path / "out") == encoded("a", "b", "c")
    with pytest.raises(CorpusError, match="row 2001"):  # only the shard with the bad row is made again
        build(sources, tmp_path / "out", **PLAIN)
    assert before.items() <= shards(tmp_path / "out").items()


def test_a_run_that_was_stopped_after_a_change_ends_as_one_that_was_not(tmp_path: Path, sources: list[Path]) -> None:
    chance = random.Random(1)
    write_rows(tmp_path / "in" / "d.jsonl.gz", [str(chance.random()) for _ in range(20000)])
    for name in ("whole", "stopped"):
        build(sources[:2], tmp_path / name, **PLAIN)
    everything = [*sources, tmp_path / "in" / "d.jsonl.gz"]
    build(everything, tmp_path / "whole", **PLAIN)

    stop_at = 2

    def stop(state: ggtok.corpus.State) -> None:
        if state.shards > stop_at:
            raise KeyboardInterrupt

    while stop_at < 8:
        stop_at += 2
        with pytest.raises(KeyboardInterrupt):
            build(everything, tmp_path / "stopped", **PLAIN, progress=stop, threads=1)
    build(everything, tmp_path / "stopped", **PLAIN)
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


@pytest.mark.parametrize("option", [{"shuffle": 3}, {"budget": 30_000}])
def test_an_order_over_everything_is_refused_or_built_anew(
    tmp_path: Path, sources: list[Path], option: dict[str, Any]
) -> None:
    build(sources[:2], tmp_path / "out", **PLAIN, **option)
    before = contents(tmp_path / "out")
    with pytest.raises(CorpusError, match="the order of all documents depends on them"):
        build(sources, tmp_path / "out", **PLAIN, **option)
    assert contents(tmp_path / "out") == before
    build(sources, tmp_path / "out", **PLAIN, **option, rebuild=True)
    build(sources, tmp_path / "new", **PLAIN, **option)
    files = {file.name: file.read_bytes() for file in info(tmp_path / "new").files}
    assert {name: data for name, data in contents(tmp_path / "out").items() if name in files} == files
    assert len(list((tmp_path / "out").glob("*.bin"))) == len(files) // 2


def test_other_settings_are_refused_or_built_anew(tmp_path: Path, sources: list[Path]) -> None:
    build(sources, tmp_path / "out", **PLAIN)
    other = PLAIN | {"format": "flat", "shard_size": 4 * LEAST}
    with pytest.raises(CorpusError, match="setting format has changed"):
        build(sources, tmp_path / "out", **other)
    build(sources, tmp_path / "out", **other, rebuild=True)
    assert ids_of(tmp_path / "out") == encoded("a", "b", "c")
    assert not list((tmp_path / "out").glob("*.bin"))


def test_a_run_that_made_no_shard_does_not_block_the_next(tmp_path: Path) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": 5}\n')
    with pytest.raises(CorpusError, match="row 1"):
        build([source], tmp_path / "out", **PLAIN)
    write_rows(source, rows("a"))
    build([source], tmp_path / "out", tokenizer="spm", format="flat")
    assert info(tmp_path / "out").documents == 2000


def test_inputs_that_moved_and_another_working_directory_change_nothing(
    tmp_path: Path, sources: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with chdir(tmp_path):
        build(["in/a.jsonl", "in/b.jsonl"], "out", **(PLAIN | {"format": "flat"}))
    before = shards(tmp_path / "out")
    calls = read_calls(monkeypatch)
    with chdir(tmp_path / "in"):
        build(["a.jsonl", "b.jsonl"], "../out", **(PLAIN | {"format": "flat"}))
        assert verify("../out", sample=0).problems == []
    (tmp_path / "in").rename(tmp_path / "moved")
    moved = [tmp_path / "moved" / path.name for path in sources]
    build(moved[:2], tmp_path / "out", **(PLAIN | {"format": "flat"}))
    assert calls == []
    assert shards(tmp_path / "out") == before
    assert verify(tmp_path / "out", sample=None).documents == 4000
    shutil.copy(moved[0], tmp_path / "copy.jsonl")  # with another time, so it is read
    build([tmp_path / "copy.jsonl", moved[1], moved[2]], tmp_path / "out", **(PLAIN | {"format": "flat"}))
    assert before.items() < shards(tmp_path / "out").items()
    assert info(tmp_path / "out").sources[0].name == "in/a.jsonl"


def test_a_finished_corpus_is_not_read_again_unless_something_changed(
    tmp_path: Path, sources: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    build(sources, tmp_path / "out", **PLAIN)
    before, calls = contents(tmp_path / "out"), read_calls(monkeypatch)
    build(sources, tmp_path / "out", **PLAIN)
    assert (contents(tmp_path / "out"), calls) == (before, [])
    status = sources[1].stat()
    os.utime(sources[1], ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))
    build(sources, tmp_path / "out", **PLAIN)
    assert set(calls) >= {"b.jsonl"}
    assert shards(tmp_path / "out").keys() == {name for name in before if name[0] == "0"}
    calls.clear()
    build(sources, tmp_path / "out", **PLAIN)
    assert calls == []
    build(sources, tmp_path / "out", **PLAIN, rehash=True)
    assert set(calls) == {"a.jsonl", "b.jsonl", "c.jsonl"}


def test_a_flipped_byte_is_found_by_its_time_or_by_looking_at_everything(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "a.jsonl", rows("a", 9000))
    build([source], tmp_path / "out", **PLAIN)
    data, status = source.read_bytes(), source.stat()
    source.write_bytes(data.replace(b"line 2000 ", b"line 2x00 "))
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    build([source], tmp_path / "out", **PLAIN)  # nothing to see: size, time and sample are the same
    assert verify(tmp_path / "out", sample=None).problems
    with pytest.warns(ggtok.TokenizerWarning, match=r"a\.jsonl changed"):
        build([source], tmp_path / "out", **PLAIN, rehash=True)
    assert verify(tmp_path / "out", sample=None).problems == []
    source.write_bytes(data)
    with pytest.warns(ggtok.TokenizerWarning, match=r"a\.jsonl changed"):
        build([source], tmp_path / "out", **PLAIN)
    assert verify(tmp_path / "out", sample=None).problems == []


def test_files_can_be_bad_as_a_whole(tmp_path: Path, sources: list[Path]) -> None:
    broken = write_rows(tmp_path / "in" / "z.jsonl.gz", rows("z", 9000))
    broken.write_bytes(broken.read_bytes()[:-2000])
    (tmp_path / "in" / "y.parquet").write_bytes(b"PAR1 and nothing else")
    everything = [*sources, broken, tmp_path / "in" / "y.parquet"]
    with pytest.raises(CorpusError, match=r"y\.parquet"):
        build(everything, tmp_path / "out", **PLAIN)
    found = build(everything, tmp_path / "out", **PLAIN, skip_bad=True)
    assert found.rejected == 2
    assert found.documents >= 6000
    lines = [
        json.loads(line)
        for path in (tmp_path / "out").glob("*.rejected.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert sorted(Path(line["source"]).name for line in lines) == ["y.parquet", "z.jsonl.gz"]
    assert any("ends early" in line["reason"] for line in lines)
    before = contents(tmp_path / "out")
    build(everything, tmp_path / "out", **PLAIN, skip_bad=True)
    assert contents(tmp_path / "out") == before


def test_bad_rows_have_a_bound(tmp_path: Path) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": "good"}\n' * 98 + '{"text": 5}\n' * 2)
    for bound in (0.01, 1):
        with pytest.raises(CorpusError, match="2 of 100 rows are bad, more than 1"):
            build([source], tmp_path / "out", **PLAIN, skip_bad=True, max_bad=bound)
    for bound in (0.02, 2):
        assert build([source], tmp_path / "out", **PLAIN, skip_bad=True, max_bad=bound).rejected == 2
    source.write_text('{"text": 5}\n' * 100)
    with pytest.raises(CorpusError, match="all 100 rows are bad"):
        build([source], tmp_path / "bad", **PLAIN, skip_bad=True)


@pytest.mark.parametrize("bound", [0.01, 20])
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_too_many_bad_rows_end_a_run_as_soon_as_it_is_known(tmp_path: Path, suffix: str, bound: float) -> None:
    rows = [{"text": "good" * 10} if at % 10 else {"text": None} for at in range(20_000)]
    source = tmp_path / f"a{suffix}"
    if suffix == ".jsonl":
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), source, row_group_size=500, use_dictionary=False)
    with pytest.raises(CorpusError, match=r"rows are bad, more than .*; all shards are kept for another bound"):
        build([source], tmp_path / "out", **PLAIN, skip_bad=True, max_bad=bound, threads=1)
    first = info(tmp_path / "out")
    assert first.shards
    assert 20 < first.rejected < 2000
    assert build([source], tmp_path / "out", **PLAIN, skip_bad=True, max_bad=0.1).rejected == 2000


def test_bad_rows_are_summed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "good " * 1000}) + "\n" + '{"text": 5}\n' * 2)
    source = tmp_path / "many.jsonl"
    source.write_text((tmp_path / "a.jsonl").read_text() * 600)
    summed, add = list[str](), Shard.add

    def counted(sums: Shard, shard: Shard) -> None:
        summed.append(shard.name)
        add(sums, shard)

    monkeypatch.setattr(Shard, "add", counted)
    monkeypatch.setattr("ggtok.corpus.run.POLL", 0)
    found = build([source], tmp_path / "out", **PLAIN, skip_bad=True, max_bad=1200, threads=1)
    assert found.rejected == 1200
    assert found.shards > 30
    # While they are made, at the end, for the manifest, for warnings and for what is returned.
    assert len([*filter(None, summed)]) <= 5 * found.shards


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_bad_rows_at_the_start_do_not_end_what_ends_well(tmp_path: Path, suffix: str) -> None:
    bad, good = ['{"text": 5}\n'] * 3000, [json.dumps({"text": f"good {at}"}) + "\n" for at in range(300_000)]
    source = tmp_path / f"a{suffix}"
    data = "".join(bad + good).encode()
    source.write_bytes(gzip.compress(data, 1) if suffix.endswith(".gz") else data)
    assert build([source], tmp_path / "out", **PLAIN, skip_bad=True, max_bad=0.01).rejected == 3000


def test_a_killed_run_leaves_no_file_that_a_later_plan_does_not_replace(tmp_path: Path, sources: list[Path]) -> None:
    build(sources[:1], tmp_path / "out", **PLAIN)
    for name in ("00009.bin", "00009.idx", "00009.rejected.jsonl"):  # renamed, but not in the journal
        (tmp_path / "out" / name).write_bytes(b"left")
    (tmp_path / "out" / "00009.txt").write_text("mine")
    build(sources[:2], tmp_path / "out", **PLAIN)
    assert not list((tmp_path / "out").glob("00009.bin"))
    assert (tmp_path / "out" / "00009.txt").read_text() == "mine"


def test_a_stream_whose_last_document_fills_a_shard(tmp_path: Path) -> None:
    """It has no further shard without documents, which the next run could not find again."""
    source = write_rows(tmp_path / "in.jsonl.gz", [random.Random(n).randbytes(LEAST // 4).hex() for n in range(4)])
    assert source.stat().st_size > LEAST
    found = build([source], tmp_path / "whole", **PLAIN)
    assert [shard.documents for shard in found._manifest.shards] == [2, 2]

    def stop(state: Any) -> None:
        if state.shards:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build([source], tmp_path / "out", **PLAIN, progress=stop)
    build([source], tmp_path / "out", **PLAIN)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
