"""Fill in the middle: every cut is undone, the shares, what decides, and what stays whole."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import ggtok
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ggtok.cli import main
from ggtok.corpus import build, info, verify
from ggtok.corpus.infilling import _sections
from ggtok.errors import CorpusError, VocabularyError
from hypothesis import given
from hypothesis import strategies as st

BPE = ggtok.Tokenizer.builtin("bpe")
PRE, SUF, MID = (BPE.encode(f"<|fim_{name}|>", parse_special=True)[0] for name in ("prefix", "suffix", "middle"))
OPTIONS: dict[str, Any] = {"tokenizer": BPE, "format": "parquet"}


@pytest.fixture(scope="module")
def texts() -> list[str]:
    chance = random.Random(1)
    return ["", "a", *("".join(chance.choices("abc déf 中文 🙂\n", k=chance.choice([3, 30, 300]))) for _ in range(998))]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> Path:
    path = tmp_path_factory.mktemp("fim") / "in.parquet"
    pq.write_table(pa.table({"text": texts}), path, row_group_size=100)
    return path


def ids_of(folder: Path) -> list[list[int]]:
    return [ids for path in sorted(folder.glob("*.parquet")) for ids in pq.read_table(path)["input_ids"].to_pylist()]


def undone(ids: list[int], end: int = 0) -> tuple[str, str, str, bool]:
    """The sections of a document that was cut, and whether it begins with the suffix."""
    ids = ids[: len(ids) - end]
    pre, suf, mid = (ids.index(id) for id in (PRE, SUF, MID))
    prefix, suffix = ids[pre + 1 : mid if suf < pre else suf], ids[suf + 1 : pre if suf < pre else mid]
    assert min(pre, suf) == 0
    return BPE.decode(prefix), BPE.decode(ids[mid + 1 :]), BPE.decode(suffix), suf < pre


@pytest.mark.parametrize("end", [0, 1])
def test_documents_are_cut_by_their_text_and_the_seed_alone(
    source: Path, texts: list[str], tmp_path: Path, end: int
) -> None:
    more: dict[str, Any] = {"fim": 0.7, "fim_spm": 0.25, "append_eos": bool(end)}
    build([source], tmp_path / "out", **OPTIONS, **more)
    found, kinds = {}, []
    for text, ids in zip(texts, ids_of(tmp_path / "out"), strict=True):
        assert ids[len(ids) - end :] == [BPE.vocab.eos_id] * end
        if MID not in ids:
            assert ids == [*BPE.encode(text), *[BPE.vocab.eos_id] * end]
            continue
        prefix, middle, suffix, is_spm = undone(ids, end)
        assert prefix + middle + suffix == text
        asked = BPE.encode_infill(prefix, suffix, n_batch=1 << 16, spm_infill=is_spm)
        asked = asked[asked.index(SUF if is_spm else PRE) :]  # without a repository before it
        assert ids == [*asked, *BPE.encode(middle), *[BPE.vocab.eos_id] * end]
        found[text] = ids
        kinds.append(is_spm)
    assert abs(len(kinds) - 700) < 50
    assert abs(sum(kinds) - len(kinds) / 4) < 50
    pq.write_table(pa.table({"text": texts[::-1]}), tmp_path / "other.parquet")
    build([tmp_path / "other.parquet"], tmp_path / "other", **OPTIONS, **more, threads=3, shard_size=1 << 16)
    assert ids_of(tmp_path / "other") == ids_of(tmp_path / "out")[::-1]
    build([source], tmp_path / "seed", **OPTIONS, **more, shuffle=1)
    assert sorted(ids_of(tmp_path / "seed")) != sorted(ids_of(tmp_path / "out"))
    checked = verify(tmp_path / "out", sample=None)
    assert (checked.problems, checked.documents, checked.changed) == ([], 1000, None)
    assert checked.decoded == 1000 - len(kinds)


@given(st.lists(st.one_of(st.text(max_size=9), st.binary(max_size=9)), max_size=9), st.integers(0, 3), st.data())
def test_sections_are_the_text_and_end_at_characters(texts: list[Any], skipped: int, data: st.DataObject) -> None:
    raw = [text if isinstance(text, bytes) else text.encode("utf-8", "replace") for text in texts]
    array = pa.array(raw, pa.large_binary()).slice(min(skipped, len(raw)))
    places = st.floats(0, 1, exclude_max=True)
    chance = np.array([[data.draw(places), data.draw(places)] for _ in array]).reshape(-1, 2)
    sections = _sections(array, chance).to_pylist()
    assert [b"".join(sections[at : at + 3]) for at in range(0, len(sections), 3)] == array.to_pylist()
    for number, text in enumerate(texts[skipped:]):
        if isinstance(text, str):
            characters = [len(section.decode()) for section in sections[3 * number : 3 * number + 3]]
            first, second = sorted(int(each * (len(text) + 1)) for each in chance[number])
            assert characters == [first, second - first, len(text) - second]


def test_documents_begin_and_end_as_others_do(source: Path, texts: list[str], tmp_path: Path) -> None:
    added = {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": True}
    data = tmp_path / "bpe.gguf"
    BPE.to_gguf(data)
    both = ggtok.Tokenizer.from_gguf(data, overrides=added)
    for share in (0.001, 1):
        build([source], tmp_path / str(share), tokenizer=both, format="parquet", fim=share)
        for text, ids in zip(texts, ids_of(tmp_path / str(share)), strict=True):
            assert (ids[0], ids[-1]) == (both.vocab.bos_id, both.vocab.eos_id)
            assert "".join(undone(ids[1:], 1)[:3]) == text if MID in ids else ids == both.encode(text)


def test_documents_that_would_be_too_long_stay_whole(source: Path, texts: list[str], tmp_path: Path) -> None:
    build([source], tmp_path / "out", **OPTIONS, fim=1, max_length=40, too_long="split")
    found = ids_of(tmp_path / "out")
    assert all(ids.index(MID) > max(ids.index(PRE), ids.index(SUF)) for ids in found if {PRE, SUF, MID} & {*ids})
    assert max(map(len, found)) == 40
    assert {"".join(undone(ids)[:3]) for ids in found if MID in ids} < set(texts)
    assert verify(tmp_path / "out", sample=None).problems == []


def test_the_command_fills_in(source: Path, tmp_path: Path) -> None:
    command = ["corpus", "build", str(source), "-o", str(tmp_path / "out"), "--builtin", "bpe", "--format", "flat"]
    assert main([*command, "--fim", "90%", "--fim-spm", "10%"]) == 0
    encoding = info(tmp_path / "out").settings["encoding"]
    assert [encoding[name] for name in ("fim", "fim_spm", "fim_seed")] == [0.9, 0.1, 0]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"fim": 1.5}, "fim and fim_spm must be shares from 0 to 1"),
        ({"fim": float("nan")}, "fim and fim_spm must be shares from 0 to 1"),
        ({"fim": 0.5, "fim_spm": -1}, "fim and fim_spm must be shares from 0 to 1"),
        ({"fim": 0.5, "messages": "messages"}, "fim is for texts"),
        ({"fim": 0.5, "tokenizer": "spm"}, "the vocabulary has no FIM prefix token"),
    ],
)
def test_what_cannot_be_filled_in(source: Path, tmp_path: Path, options: dict[str, Any], problem: str) -> None:
    with pytest.raises((CorpusError, VocabularyError), match=problem):
        build([source], tmp_path / "out", **(OPTIONS | options))
