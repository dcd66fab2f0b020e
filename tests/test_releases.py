"""Which releases of llama.cpp open a file and answer as today: the data, `Tokenizer.releases`, and `check`.

`GGTOK_LLAMA_CPP_RELEASES` names a folder with libraries of other releases (`*.so`, at any depth): then `verify` must
agree with what the data says about each of them.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import ggtok
import pytest
from conftest import TOKENIZERS, VOCABULARIES, shared_files
from ggtok import Tokenizer, _ggtok
from ggtok.cli import main
from ggtok.lab.releases import builds, data, meets, parse
from ggtok.lab.verify.library import described, installed
from oracles.gguf_vocab import Vocab, write

BUILDS = builds()
SOME = ("b6301", "b8352", "b9093", "b9538", "b9713", "b11549")
LIBRARIES = {
    release: path
    for path in sorted(Path(os.environ.get("GGTOK_LLAMA_CPP_RELEASES") or "/nowhere").rglob("*.so"))
    if (release := described(str(path)).release) in SOME
}
LOWERCASE, STRIP = "tokenizer.ggml.normalizer.lowercase", "tokenizer.ggml.normalizer.strip_accents"
PRE = "tokenizer.ggml.pre"
TEXTS = (
    *("e\u0301! \u00dcn\u00ef \u0623\u064f \u0928\u0940", "[CLS] Upper \u00c9", " ~/ ~~ x =~ y", "a</s> b"),
    *("[PAD]", "<s> a", "The end.\n\n  x1 22 333", "\u01f0\u03c3"),
)
"""At least one of them shows each change."""


def of(name: str, **overrides: Any) -> Tokenizer:
    return Tokenizer.from_gguf(VOCABULARIES / f"{name}.gguf", overrides=overrides or None)


@lru_cache(1)
def opened(path: Path) -> Tokenizer:
    """One is kept, because tests ask the same file about every release in turn."""
    return Tokenizer.from_gguf(path)


def codes(tokenizer: Tokenizer, release: str | int) -> list[tuple[str, str]]:
    """What `check` says about a release."""
    found = [(finding.severity, finding.code) for finding in tokenizer.check(llama_cpp=release)]
    return [row for row in found if row[1].startswith(("llama-cpp", "file-refused"))]


def test_the_data_is_sound() -> None:
    assert sorted(BUILDS) == BUILDS
    assert len(BUILDS) >= 15
    for table in ("tokenizer", "architecture", "pre-tokenizer", "tensor type"):
        rows = {int(build): list(names) for build, names in data()[table].items()}
        assert list(rows) == sorted(rows)
        assert {*rows} <= {*BUILDS}
        names = [name for row in rows.values() for name in row]
        assert len(names) == len({*names})
    assert {name for row in data()["pre-tokenizer"].values() for name in row} <= set(_ggtok.pretokenizers())
    assert {name for row in data()["tokenizer"].values() for name in row} <= set(_ggtok.models())
    since = [row["build"] for row in data()["changes"]]
    assert since == sorted(since, reverse=True)
    assert {*since, data()["default_ids"]} <= {*BUILDS[1:]}
    for row in data()["changes"]:
        assert set(row["concerns"].get("pre", ())) <= set(_ggtok.pretokenizers())
        assert set(row["concerns"].get("kind", ())) <= set(_ggtok.models().values())


EMBEDDED: dict[str, list[str]] = {"bpe": [], "spm": [], "unigram": [], "wordpiece": ["wordpiece-marks"]}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_the_embedded_vocabularies(name: str) -> None:
    found = [change.code for change in TOKENIZERS[name].releases.changes if parse(change.first_new) > 9000]
    assert found == EMBEDDED[name]
    assert TOKENIZERS[name].releases.opens_since == "b6301 or older"


@pytest.mark.parametrize(
    ("vocabulary", "concerns", "met"),
    [
        (of("wordpiece"), {"kind": ["wordpiece"]}, True),
        (of("wordpiece"), {"kind": ["wordpiece"], "settings": [["lowercase", False]]}, False),
        (of("wordpiece", **{LOWERCASE: False}), {"kind": ["wordpiece"], "settings": [["lowercase", False]]}, True),
        (of("wordpiece"), {"found": ["[nonesuch]", "[PAD]"]}, True),
        (of("wordpiece"), {"found": ["[CLS]"]}, False),
        (of("bpe"), {"pre": ["qwen2", "gpt-2"]}, True),
        (of("bpe"), {"pre": ["gpt-2"]}, False),
        (of("spm"), {"settings": [["add_bos", True], ["add_eos", True]]}, True),
        (of("bpe"), {"settings": [["add_bos", True], ["add_eos", True]]}, False),
        (of("spm"), {"scores": ["INT32"]}, False),
        (of("spm"), {"scores": ["INT32", "FLOAT32"]}, True),
        (of("spm"), {}, True),
    ],
)
def test_predicates(vocabulary: Tokenizer, concerns: Mapping[str, Any], met: bool) -> None:
    assert meets(vocabulary, concerns) is met


@pytest.mark.parametrize(("release", "build"), [("b9538", 9538), ("9538", 9538), (9538, 9538), ("b1", 1)])
def test_releases_are_build_numbers(release: str | int, build: int) -> None:
    assert parse(release) == build


@pytest.mark.parametrize("release", ["b12x", "2026.9", "", "b", "b0", "-1", "B9538", "b 1", "\u0661", "9" * 10, 0, -1])
def test_what_is_not_a_release(release: str | int, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ggtok.GgtokError, match="is not a release of llama"):
        TOKENIZERS["spm"].check(llama_cpp=release)
    assert main(["check", "--builtin", "spm", f"--llama-cpp={release}"]) == 2
    assert capfd.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("release", [True, 9538.0, b"b9538"])
def test_a_release_of_another_type(release: Any) -> None:
    with pytest.raises(TypeError, match="llama_cpp must be a release"):
        TOKENIZERS["spm"].check(llama_cpp=release)


@pytest.mark.parametrize(
    ("tokenizer", "release", "expected"),
    [
        (of("spm"), BUILDS[-1], []),
        (of("spm"), BUILDS[-1] + 1, [("note", "llama-cpp-unmeasured")]),
        (of("wordpiece"), "b9713", []),
        (of("wordpiece"), "b9538", [("warning", "llama-cpp-differs")]),
        (of("wordpiece"), "b9600", [("warning", "llama-cpp-differs")]),
        (of("wordpiece", **{LOWERCASE: False}), "b9294", [("warning", "llama-cpp-differs")] * 2),
        (of("bpe", **{PRE: "minicpm5"}), "b9294", [("error", "llama-cpp-too-old")]),
        (of("bpe", **{PRE: "minicpm5"}), "b9400", [("warning", "llama-cpp-too-old")]),
        (of("bpe", **{PRE: "minicpm5"}), "b9538", []),
        (of("bpe", **{PRE: "minicpm5"}), "b6000", [("error", "llama-cpp-too-old"), ("note", "llama-cpp-unmeasured")]),
        (of("bpe", **{PRE: "deepseek-v3"}), "b10229", [("warning", "llama-cpp-differs")]),
    ],
)
def test_check(tokenizer: Tokenizer, release: str | int, expected: list[tuple[str, str]]) -> None:
    assert codes(tokenizer, release) == expected


def test_what_check_says() -> None:
    before, between = (of("wordpiece").check(llama_cpp=release)[0] for release in ("b9538", "b9600"))
    assert before.message.startswith("llama.cpp b9538 answers differently: since b9713, and not in b9538, accents are")
    assert before.advice == (
        "use b9713 or newer, and recompute stored ids and embeddings; for example, "
        "encode('e\\u0301!', add_special=False) with "
        "the built-in vocabulary wordpiece gave [1, 5], and now gives [47, 5]"
    )
    assert between.message.startswith("llama.cpp b9600 may answer differently: since b9713, and not in b9538, accents ")


def test_releases_of_a_later_name() -> None:
    releases = of("bpe", **{PRE: "minicpm5"}).releases
    assert (releases.opens_since, releases.same_since) == ("b9538", "b9538")
    assert [*map(str, releases.changes)] == ["since b9538, and not in b9294, it accepts the pre-tokenizer minicpm5"]
    releases = of("wordpiece", **{LOWERCASE: False}).releases
    assert [change.code for change in releases.changes][:2] == ["wordpiece-marks", "wordpiece-lowercase"]
    assert str(releases.changes[1]).startswith("since b9538, and not in b9294, text is lowercased only if ")
    measured = f"(measured up to b{BUILDS[-1]})"
    assert str(releases) == f"opens it since b6301 or older, answers the same since b9713 {measured}"
    assert str(of("spm").releases) == f"opens it and answers the same since b6301 or older {measured}"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (("bos", "unknown", "seperator", "mask"), None),
        (("bos", "unknown", "seperator"), "the default mask id 103"),
        (("bos", "seperator", "mask"), "the default unk id 100"),
    ],
)
def test_default_ids_outside_the_vocabulary(given: tuple[str, ...], found: str | None) -> None:
    few = Vocab("bert", [b"a", b"b"], [1, 1])
    ids = {f"tokenizer.ggml.{name}_token_id": 1 for name in given}
    tokenizer = Tokenizer.from_gguf(write(few.metadata() | ids))
    errors = [finding for finding in tokenizer.check(llama_cpp="b10229") if finding.code == "llama-cpp-too-old"]
    assert tokenizer.releases.opens_since == ("b10566" if found else "b6301 or older")
    assert len(errors) == bool(found)
    for finding in errors:
        since = f"since b10566, and not in b10229, it accepts {found}, which is outside the vocabulary"
        assert finding.message == f"llama.cpp b10229 does not open this file: {since}"


@pytest.mark.parametrize(
    ("architecture", "since"), [("llama", "b6301 or older"), ("qwen35", "b8156"), ("nonesuch", None)]
)
def test_architectures(architecture: str, since: str | None) -> None:
    tokenizer = of("spm", **{"general.architecture": architecture})
    assert tokenizer.releases.opens_since == since
    assert (codes(tokenizer, "b8000") == []) == (architecture == "llama")
    if since is None:
        reason = f"no release up to b{BUILDS[-1]} accepts the architecture nonesuch"
        assert tokenizer.releases.unclaimed == (reason,)
        assert str(tokenizer.releases) == f"nothing is claimed: {reason}"
        assert [row[0] for row in codes(tokenizer, BUILDS[-1])] == ["error"]
        assert [row[0] for row in codes(tokenizer, BUILDS[-1] + 1)] == ["warning"]


def test_the_commands(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--builtin", "wordpiece", "--llama-cpp", "9538"]) == 0
    assert "[llama-cpp-differs]" in capfd.readouterr().out
    bpe = str(VOCABULARIES / "bpe.gguf")
    assert main(["check", "-m", bpe, "--override-kv", f"{PRE}=str:glm5", "--llama-cpp", "b9538"]) == 1
    assert "[llama-cpp-too-old]" in capfd.readouterr().out
    assert main(["inspect", "--builtin", "wordpiece"]) == 0
    assert "answers the same since b9713" in capfd.readouterr().out
    assert main(["inspect", "--builtin", "wordpiece", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["llama_cpp"]["same_since"] == "b9713"


@pytest.mark.parametrize("release", SOME)
@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_check_and_releases_agree(path: Path, release: str) -> None:
    """And `verify` with them, if there is a library."""
    tokenizer = opened(path)
    found, releases, build = codes(tokenizer, release), tokenizer.releases, parse(release)
    first, same = (int(str(text).split()[0][1:]) for text in (releases.opens_since, releases.same_since))
    assert (("error", "llama-cpp-too-old") in found) == (build < first)
    assert bool(found) == (build < same)


@pytest.mark.parametrize("release", SOME)
@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_verify_agrees(path: Path, release: str) -> None:
    if release not in LIBRARIES:
        pytest.skip("GGTOK_LLAMA_CPP_RELEASES names no folder with this release")
    tokenizer = Tokenizer.from_gguf(path)
    result = ggtok.verify(tokenizer, TEXTS, library=LIBRARIES[release])
    assert result.library.release == release
    assert result.agrees == (not codes(tokenizer, release)), str(result)
    assert result.num_unknown == 0, str(result)
    missing = {row.code for row in tokenizer.releases.changes if parse(release) < parse(row.first_new)}
    assert {change.code for change in result.known} <= missing


@pytest.mark.usefixtures("llama_cpp")
def test_a_release_is_added_with_the_names_that_are_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "scripts"))
    script: Any = importlib.import_module("add_release")
    (tmp_path / "src").mkdir()
    names = '{ LLM_ARCH_LLAMA, "llama" },\n{ LLM_ARCH_GEMMA4, "gemma4" }, { LLM_ARCH_CLIP, "clip" },'
    (tmp_path / "src" / "llama-arch.cpp").write_text(names)
    before = {"releases": [], "architecture": {"1": ["llama"]}, "pre-tokenizer": {"1": ["qwen2"]}, "tensor type": {}}
    data: dict[str, Any] = json.loads(json.dumps(before))
    (path, *_) = installed()
    script.add(data, str(path), tmp_path)
    build = str(data["releases"][0]["build"])
    assert data["architecture"] == {"1": ["llama"], build: ["gemma4"]}
    assert set(data["pre-tokenizer"][build]) == set(_ggtok.pretokenizers()) - {"qwen2"}
    assert data["tensor type"][build]["2"] == [32, 18]
    assert json.loads(script.written(data)) == data
    with pytest.raises(SystemExit):
        script.add(data, str(path), tmp_path)
    committed = script.DATA.read_text("utf-8")
    assert script.written(json.loads(committed)) == committed
