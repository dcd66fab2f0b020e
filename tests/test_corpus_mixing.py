"""Mixing: weights and repeats of sources, a budget of tokens, and a part for validation."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import ggtok
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ggtok.cli import main
from ggtok.corpus import build, info, plan, verify
from ggtok.corpus.continuing import Budget
from ggtok.corpus.folder import folder_of
from ggtok.corpus.manifest import Manifest, Shard
from ggtok.corpus.settings import Format
from ggtok.corpus.writing import writer_of
from ggtok.errors import CorpusError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shard_rows import rows_of

KB = 1 << 10
BPE = ggtok.Tokenizer.builtin("bpe")
OPTIONS: dict[str, Any] = {"tokenizer": BPE, "format": "parquet", "keep": ["text"], "shard_size": 64 * KB}


def write(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    return path


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two inputs of four shards each."""
    monkeypatch.setattr(plan, "LEAST_PIECE", 4 * KB)
    chance = random.Random(1)
    (tmp_path / "in").mkdir()
    return [
        write(
            tmp_path / "in" / f"{name}.jsonl",
            [f"{name} {at} {''.join(chance.choices('abcdefgh ', k=100))}" for at in range(2000)],
        )
        for name in "ab"
    ]


def texts(folder: Path, pattern: str = "[0-9]*.parquet") -> list[str]:
    return [text for path in sorted(folder.glob(pattern)) for text in pq.read_table(path)["text"].to_pylist()]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "vocabulary.gguf"}


def of(name: str, found: list[str]) -> Counter[str]:
    return Counter(text for text in found if text[0] == name)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    documents=st.lists(st.text(max_size=12), min_size=1, max_size=40),
    share=st.sampled_from([0.01, 0.3, 0.9]),
    shuffle=st.sampled_from([None, 1]),
)
def test_validation_is_a_partition_and_a_text_is_in_one_part(
    tmp_path_factory: pytest.TempPathFactory, documents: list[str], share: float, shuffle: int | None
) -> None:
    folder = tmp_path_factory.mktemp("partition")
    documents += documents[: len(documents) // 2]
    source = write(folder / "a.jsonl", documents)
    build([source], folder / "out", **OPTIONS, validation=share, shuffle=shuffle)
    train, held_out = texts(folder / "out"), texts(folder / "out", "val-*.parquet")
    assert Counter(train + held_out) == Counter(documents)
    assert not set(train) & set(held_out)
    pq.write_table(pa.table({"text": list(reversed(documents))}), folder / "b.parquet")
    build([folder / "b.parquet"], folder / "other", **OPTIONS, validation=share)
    assert set(texts(folder / "other", "val-*.parquet")) == set(held_out)


def test_validation_does_not_depend_on_shards_threads_order_and_weights(sources: list[Path], tmp_path: Path) -> None:
    variants: list[dict[str, Any]] = [
        {"threads": 1},
        {"threads": 3},
        {"shard_size": 512 * KB},
        {"shuffle": 5},
        {"weights": {sources[0]: 2.5}},
        {"tokenizer": "spm"},
    ]
    found = []
    for number, variant in enumerate(variants):
        build(sources, tmp_path / str(number), **(OPTIONS | {"validation": 0.05} | variant))
        found.append(texts(tmp_path / str(number), "val-*.parquet"))
        assert not set(found[-1]) & set(texts(tmp_path / str(number)))
    assert 120 < len(found[0]) < 280
    assert all(sorted(each) == sorted(found[0]) for each in found)
    assert files(tmp_path / "0") == files(tmp_path / "1")
    built = info(tmp_path / "0")
    assert built.validation["documents"] == len(found[0])
    assert built.validation["tokens"] == sum(map(len, BPE.encode_batch(found[0]).tolist()))


@pytest.mark.parametrize("format", get_args(Format))
def test_every_format_has_a_part_for_validation_which_verify_checks(
    sources: list[Path], tmp_path: Path, format: Format
) -> None:
    options: dict[str, Any] = {"tokenizer": BPE, "format": format, "validation": 0.1}
    build(sources, tmp_path / "out", **options)
    assert verify(tmp_path / "out", sample=None).documents == 4000
    assert verify(tmp_path / "out").problems == []
    assert 300 < len(rows_of(tmp_path / "out" / "val-00000", format)) < 500
    path = tmp_path / "out" / f"val-00000{writer_of(format).suffixes[0]}"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert [problem.split()[0] for problem in verify(tmp_path / "out", sample=0).problems] == [path.name]
    path.unlink()
    build(sources, tmp_path / "out", **options)
    assert verify(tmp_path / "out").problems == []
    with pytest.warns(ggtok.TokenizerWarning, match=r"b\.jsonl changed"):
        build(sources[:1], tmp_path / "out", **options)
    assert verify(tmp_path / "out", sample=None).documents == 2000


def test_verify_finds_a_document_in_the_wrong_part(sources: list[Path], tmp_path: Path) -> None:
    build(sources, tmp_path / "out", **OPTIONS, validation=0.1)
    manifest = tmp_path / "out" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"validation": 0.1', '"validation": 0.2'))
    assert any("does not have the tokens" in problem for problem in verify(tmp_path / "out").problems)


@pytest.mark.parametrize("shuffle", [None, 7])
def test_a_weight_repeats_a_source_and_samples_the_rest(
    sources: list[Path], tmp_path: Path, shuffle: int | None
) -> None:
    weights = {sources[0]: 2.5, sources[1]: 0.25}
    built = build(sources, tmp_path / "out", **OPTIONS, weights=weights, shuffle=shuffle)
    found = texts(tmp_path / "out")
    repeats = Counter(of("a", found).values())
    assert repeats.keys() == {2, 3}
    assert abs(repeats[3] - 1000) < 120
    assert set(of("b", found).values()) == {1}
    assert abs(len(of("b", found)) - 500) < 100
    assert [source.documents for source in built.sources] == [sum(of(name, found).values()) for name in "ab"]
    assert verify(tmp_path / "out", sample=None).problems == []
    if shuffle is None:  # a pass follows the other, so that repeats are far from each other
        assert found[:2000] == [json.loads(line)["text"] for line in sources[0].read_text().splitlines()]
    build(sources, tmp_path / "again", **OPTIONS, weights=weights, shuffle=shuffle, threads=3)
    assert files(tmp_path / "again") == files(tmp_path / "out")


def test_another_weight_makes_the_shards_of_its_source_anew(sources: list[Path], tmp_path: Path) -> None:
    build(sources, tmp_path / "out", **OPTIONS)
    with pytest.warns(ggtok.TokenizerWarning, match=r"a\.jsonl changed"):
        build(sources, tmp_path / "out", **OPTIONS, weights={sources[0]: 2})
    found = texts(tmp_path / "out")
    assert {*of("a", found).values()} == {2}
    assert {*of("b", found).values()} == {1}
    assert verify(tmp_path / "out", sample=None).problems == []


def test_a_weight_is_of_a_folder_or_pattern_too_and_bad_rows_count_once(sources: list[Path], tmp_path: Path) -> None:
    with open(sources[1], "a") as file:
        file.write("not JSON\n")
    folder = sources[0].parent
    built = build([folder], tmp_path / "out", **OPTIONS, weights={folder: 2}, skip_bad=True)
    assert (built.documents, built.rejected) == (8000, 1)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"in/c.jsonl": 1}, "not one of the sources"),
        ({"in/a.jsonl": 0}, "more than 0"),
        ({"in/a.jsonl": float("nan")}, "more than 0"),
        ({"in/a.jsonl": 1e9}, "at most 100"),
    ],
)
def test_weights_out_of_range_are_refused(
    sources: list[Path], monkeypatch: pytest.MonkeyPatch, weights: dict[str, float], message: str
) -> None:
    monkeypatch.chdir(sources[0].parent.parent)
    with pytest.raises(CorpusError, match=message):
        build(["in/a.jsonl"], "out", **OPTIONS, weights=weights)
    with pytest.raises(CorpusError, match="at most 1, not 2"):
        build(["-"], "out", **OPTIONS, input_format="jsonl", weights={"-": 2})


@pytest.mark.parametrize("share", [-0.1, 1, float("nan")])
def test_a_share_for_validation_out_of_range_is_refused(sources: list[Path], tmp_path: Path, share: float) -> None:
    with pytest.raises(CorpusError, match="validation must be"):
        build(sources, tmp_path / "out", **OPTIONS, validation=share)


def test_a_budget_is_reached_by_the_first_shards_whatever_the_threads(sources: list[Path], tmp_path: Path) -> None:
    options = OPTIONS | {"shuffle": 3}
    everything = build(sources, tmp_path / "all", **options)
    budget = everything.tokens // 2
    learned = {
        name: sum(map(len, pq.read_table(tmp_path / "all" / name)["input_ids"].to_pylist()))
        for name in sorted(path.name for path in (tmp_path / "all").glob("[0-9]*.parquet"))
    }
    total, expected = 0, []
    for name, tokens in learned.items():
        expected.append(name)
        total += tokens
        if total >= budget:
            break
    assert 1 < len(expected) < len(learned)
    for threads in (1, 3):
        built = build(sources, tmp_path / str(threads), **options, budget=budget, threads=threads)
        assert built.is_complete
        assert built.tokens == total
        assert sorted(path.name for path in (tmp_path / str(threads)).glob("[0-9]*.parquet")) == expected
        for path in (tmp_path / str(threads)).glob("*.parquet"):
            assert path.read_bytes() == (tmp_path / "all" / path.name).read_bytes()
        assert verify(tmp_path / str(threads), sample=None).problems == []
    assert files(tmp_path / "1") == files(tmp_path / "3")
    shares = [source.tokens / built.tokens for source in built.sources]
    assert all(abs(share - 0.5) < 0.1 for share in shares)


def test_a_budget_looks_at_each_shard_once(sources: list[Path], tmp_path: Path) -> None:
    """However many shards are done, and in whatever order."""
    looks = Counter[str]()

    class Seen(Shard):
        def __getattribute__(self, name: str) -> Any:
            looks[name] += 1
            return super().__getattribute__(name)

    build(sources, tmp_path / "out", **OPTIONS, budget=1000 * 7 - 3)
    manifest = Manifest.read(folder_of(str(tmp_path / "out")))
    assert manifest is not None
    manifest.shards = []
    budget = Budget(manifest)
    shards = [Seen(f"{number:05}", tokens=7) for number in range(2000)]
    random.Random(1).shuffle(shards)
    looks.clear()
    for shard in shards:
        budget.add(shard)
    assert budget.is_reached
    assert [Shard.__getattribute__(shard, "name") for shard in budget.shards] == [f"{at:05}" for at in range(1000)]
    assert looks["tokens"] == 1000
    assert looks.total() < 20 * len(shards)


def test_a_mixture_that_was_stopped_ends_as_one_that_was_not(sources: list[Path], tmp_path: Path) -> None:
    options = OPTIONS | {"shuffle": 3, "validation": 0.02, "weights": {sources[0]: 1.5}, "budget": 200_000}
    build(sources, tmp_path / "whole", **options)
    stop_at = 0

    def stop(state: ggtok.corpus.State) -> None:
        if state.shards > stop_at:
            raise KeyboardInterrupt

    for stop_at in (0, 1):  # noqa: B007
        with pytest.raises(KeyboardInterrupt):
            build(sources, tmp_path / "stopped", **options, progress=stop)
    build(sources, tmp_path / "stopped", **options)
    assert files(tmp_path / "stopped") == files(tmp_path / "whole")
    before = files(tmp_path / "whole")
    build(sources, tmp_path / "whole", **options)
    assert files(tmp_path / "whole") == before
    (tmp_path / "whole" / "00000.parquet").unlink()
    build(sources, tmp_path / "whole", **options)
    assert files(tmp_path / "whole") == before
    with pytest.raises(CorpusError, match="the order of all documents depends on them"):
        build(sources[:1], tmp_path / "whole", **(options | {"weights": {}}))


def test_a_budget_ends_a_stream_and_one_that_is_not_reached_warns(tmp_path: Path) -> None:
    import gzip

    chance = random.Random(2)
    rows = "".join(json.dumps({"text": str(chance.random())}) + "\n" for _ in range(20000))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(rows.encode()))
    options: dict[str, Any] = {"tokenizer": BPE, "format": "megatron", "shard_size": 64 * KB}
    everything = build([tmp_path / "a.jsonl.gz"], tmp_path / "all", **options)
    built = build([tmp_path / "a.jsonl.gz"], tmp_path / "out", **options, budget=everything.tokens // 3)
    assert 1 < built.shards < everything.shards
    assert everything.tokens // 3 <= built.tokens < everything.tokens // 2
    assert verify(tmp_path / "out", sample=None).problems == []
    with pytest.warns(ggtok.TokenizerWarning, match="fewer tokens than the budget"):
        build([tmp_path / "a.jsonl.gz"], tmp_path / "more", **options, budget=10**9)


def test_chats_are_held_out_by_their_messages(tmp_path: Path) -> None:
    talks = [[{"role": "user", "content": f"Hello {at % 200}"}] for at in range(400)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"messages": talk}) + "\n" for talk in talks))
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    options: dict[str, Any] = {"tokenizer": BPE, "format": "parquet", "messages": "messages", "template_text": template}
    built = build([tmp_path / "a.jsonl"], tmp_path / "out", **options, validation=0.2)
    parts = [
        {
            tuple(row)
            for path in (tmp_path / "out").glob(pattern)
            for row in pq.read_table(path)["input_ids"].to_pylist()
        }
        for pattern in ("[0-9]*.parquet", "val-*.parquet")
    ]
    assert not parts[0] & parts[1]
    assert built.validation["documents"] == 2 * len(parts[1]) > 40
    assert verify(tmp_path / "out", sample=None).masks == 400


def test_the_command_takes_percents_units_and_sources(
    sources: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["corpus", "build", "in/a.jsonl", "in/b.jsonl", "-o", "out", "--builtin", "bpe", "--format", "parquet"]
    mixed = ["--weight", "in/a.jsonl=1.5", "--validation", "5%", "--budget", "0.15M", "--shard-size", "64K"]
    assert main([*command, *mixed]) == 0
    shown = capsys.readouterr().out
    assert "for validation" in shown
    assert "% of tokens" in shown
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert [manifest["settings"][name] for name in ("validation", "budget")] == [0.05, 150_000]
    assert [each["weight"] for each in manifest["inputs"]] == [1.5, 1.0]
    for wrong in (["--weight", "in/a.jsonl"], ["--budget", "10X"], ["--validation", "much"]):
        assert main([*command, *wrong]) == 2


# Weights by tokens


def uneven(tmp_path: Path) -> list[Path]:
    """Three sources whose documents have different lengths; one is a folder, and one is compressed."""
    import gzip

    chance = random.Random(3)
    found = []
    for name, number, most in (("a", 900, 10), ("b", 300, 200), ("c", 600, 60)):
        rows = [
            f"{name}{at} " + "".join(chance.choices("abcdefgh ", k=chance.randint(1, most))) for at in range(number)
        ]
        found.append(write(tmp_path / f"{name}.jsonl", rows))
    (tmp_path / "folder").mkdir()
    lines = found[2].read_text().splitlines(keepends=True)
    (tmp_path / "folder" / "1.jsonl").write_text("".join(lines[:200]))
    (tmp_path / "folder" / "2.jsonl.gz").write_bytes(gzip.compress("".join(lines[200:]).encode()))
    return [*found[:2], tmp_path / "folder"]


def tokens_of(folder: Path) -> Counter[str]:
    found = Counter[str]()
    for text in texts(folder):
        found[text[0]] += BPE.count(text)
    return found


@pytest.mark.parametrize("more", [{}, {"budget": 60_000}, {"shuffle": 5, "validation": 0.1, "budget": 20_000}])
def test_weights_by_tokens_are_shares_of_the_tokens(tmp_path: Path, more: dict[str, Any]) -> None:
    sources = uneven(tmp_path)
    options = OPTIONS | {"token_weights": True, "weights": dict(zip(sources, (20, 50, 30), strict=True))} | more
    built = build(sources, tmp_path / "out", **options)
    found, whole = tokens_of(tmp_path / "out"), Counter[str]()
    for name in "abc":
        lines = (tmp_path / f"{name}.jsonl").read_text().splitlines()
        whole[name] = sum(BPE.count_batch([json.loads(line)["text"] for line in lines]))
    total = more.get("budget", min(whole["a"] / 0.2, whole["b"] / 0.5, whole["c"] / 0.3))
    few = 4 * max(BPE.count(text) for text in texts(tmp_path / "out"))
    for name, share in (("a", 0.2), ("b", 0.5), ("c", 0.3)):
        assert abs(found[name] - share * total) < few < share * total / 4
    if not more:
        assert set(Counter(texts(tmp_path / "out")).values()) == {1}
    assert verify(tmp_path / "out", sample=None).problems == []
    build(sources, tmp_path / "threads", **options, threads=3)
    assert files(tmp_path / "threads") == files(tmp_path / "out")
    assert built.is_complete


def test_tokens_are_counted_once_and_a_change_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ggtok.corpus import run

    sources = uneven(tmp_path)
    options = OPTIONS | {"token_weights": True, "weights": dict(zip(sources, (20, 50, 30), strict=True))}
    build(sources, tmp_path / "out", **options)
    before = files(tmp_path / "out")
    monkeypatch.setattr(run, "sample_places", None)  # counting would fail
    (tmp_path / "out" / "00000.parquet").unlink()
    build(sources, tmp_path / "out", **options)
    assert files(tmp_path / "out") == before
    monkeypatch.undo()
    with pytest.raises(CorpusError, match="the setting shares has changed"):
        build(sources, tmp_path / "out", **(options | {"weights": dict.fromkeys(sources, 1)}))
    sources[0].write_text(sources[0].read_text() * 2)
    with pytest.raises(CorpusError, match="the order of all documents depends on them"):
        build(sources, tmp_path / "out", **options)
    with pytest.warns(ggtok.TokenizerWarning, match="are made anew"):
        build(sources, tmp_path / "out", **options, rebuild=True)
    found = tokens_of(tmp_path / "out")
    assert abs(found["a"] / found.total() - 0.2) < 0.02


def test_weights_by_tokens_that_cannot_be(tmp_path: Path) -> None:
    sources = uneven(tmp_path)
    empty = write(tmp_path / "empty.jsonl", [""])
    wrong: list[tuple[list[Any], dict[str, Any], str]] = [
        (sources, {"weights": {sources[0]: 1}}, "a weight for each source"),
        (sources, {}, "a weight for each source"),
        (sources[:1], {"weights": {sources[0]: 1}, "part": (1, 2)}, "no part"),
        (["-"], {"weights": {"-": 1}, "input_format": "jsonl"}, "no standard input"),
        (sources[:1], {"weights": {sources[0]: 1}, "budget": 10**9}, r"a\.jsonl: it has too few tokens: all would be"),
        ([*sources, empty], {"weights": dict.fromkeys([*sources, empty], 1)}, r"empty\.jsonl: it has no tokens"),
    ]
    for inputs, options, problem in wrong:
        with pytest.raises(CorpusError, match=problem):
            build(inputs, tmp_path / "out", **OPTIONS, token_weights=True, **options)


def test_the_command_weighs_by_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uneven(tmp_path)
    monkeypatch.chdir(tmp_path)
    command = ["corpus", "build", "a.jsonl", "b.jsonl", "-o", "out", "--builtin", "bpe", "--format", "parquet"]
    assert main([*command, "--weight", "a.jsonl=1", "--weight", "b.jsonl=4", "--token-weights"]) == 0
    shares = [source.tokens / info(tmp_path / "out").tokens for source in info(tmp_path / "out").sources]
    assert abs(shares[0] - 0.2) < 0.02
