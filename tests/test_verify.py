"""`ggtok verify`: finding and opening a llama.cpp, what is compared, known faults, and the command.

`GGTOK_LLAMA_CPP_RELEASES` names a folder with libraries of other releases (`*.so`, at any depth), which must open.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from random import Random

import ggtok
import pytest
from conftest import TOKENIZERS, VOCABULARIES
from differential import answerers, mutant
from ggtok.cli import main
from ggtok.lab.verify import library
from ggtok.lab.verify.aborts import abort
from ggtok.lab.verify.binding import LAYOUTS, word_of_flags
from ggtok.lab.verify.child import Child
from ggtok.lab.verify.comparing import Comparing
from ggtok.lab.verify.report import pack, unpack
from ggtok.lab.verify.text_generator import BEYOND_UNICODE, ODD_UNITS, TextGenerator, overlong
from ggtok.lab.verify.verify import PART, _batches, _named

SPM = VOCABULARIES / "spm.gguf"
RELEASES = sorted(Path(os.environ.get("GGTOK_LLAMA_CPP_RELEASES") or "/nowhere").rglob("*.so"))
BEYOND = b"\xf4\x90\x80\x80"

needs_llama_cpp = pytest.mark.skipif(
    not any(library.installed()), reason="llama.cpp itself comes in the wheel xllamacpp"
)


def named(module: type) -> str:
    return f"{module.__module__}:{module.__name__}"


@pytest.mark.parametrize(
    ("defaults", "word"),
    [
        ([0, 1 << 32, 0, 0, 0, 0, 0, 0x100, 0, 0, 0x7F24911C5110, 0], 7),
        ([0, 0, 0x1000003E7, 0x7FB200000000, 0, 0, 0, 0, 0x100000100, 0, 0, 0], 8),
        ([0, 0, 0x1FFFFFFFF, 0x1, 0, 0, 0, 0, 0x10000, 0x7F2565FAAFA1, 0, 0], 8),
        ([0, 0, 0x1FFFFFFFF, 0, 0, 0, 0, 0, 0xA5A5A50001000100, 0, 0, 0], 8),
        ([0, 0, 0x1FFFFFFFF, 0x1FFFFFFFF, 0x7FE500000000, 0, 0, 0, 0, 0x10000, 0, 0], 9),
        ([0, 0, 0x1FFFFFFFF, 0, 0, 0, 0, 0, 0, 0, 0x10000, 0], None),
        ([0, 0, 0, 0, 0, 0, 0, 0, 0x1, 0, 0, 0], None),
        ([0, 0, 0, 0, 0, 0, 0, 0x7FB200000000, 0x100, 0, 0, 0], None),
        ([0, 0, 0, 0, 0, 0, 0, 0, 0x300, 0, 0, 0], None),
    ],
)
def test_the_defaults_tell_the_layout(defaults: list[int], word: int | None) -> None:
    """Those of b4798, b7079, b10229, b6301 with any bytes in its padding, and b11063; then what none of them has."""
    assert word_of_flags(defaults) == word
    assert word is None or word * 8 in LAYOUTS


@pytest.mark.parametrize(
    "path", RELEASES or [pytest.param(None, marks=pytest.mark.skip("GGTOK_LLAMA_CPP_RELEASES names none"))]
)
def test_every_release_opens(path: Path) -> None:
    """A release that reads this vocabulary as today gives the same answers."""
    found = ggtok.verify(TOKENIZERS["spm"], ["What is LoRA?", " a  b\n"], library=path)
    assert found.agrees, str(found)
    assert found.calls["encode"] == 4 + 2 * 4


@pytest.mark.parametrize(
    ("package", "version", "release"),
    [
        ("xllamacpp", "2026.10.11549", "b11549"),
        ("xllamacpp", "2026.4.8672.1", "b8672"),
        ("xllamacpp", "0.2.14", "b8352"),
        ("xllamacpp", "0.1.20", None),
        ("llama-cpp-python", "0.3.36", None),
    ],
)
def test_the_release_of_a_package(package: str, version: str, release: str | None) -> None:
    assert library.release_of(package, version) == release


def test_a_library_is_described_by_the_package_around_it(tmp_path: Path) -> None:
    path = tmp_path / "llama_cpp" / "lib" / "libllama.so"
    path.parent.mkdir(parents=True)
    path.touch()
    assert library.find_library(path) == library.Library(str(path))
    information = tmp_path / "llama_cpp_python-0.3.36.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: llama-cpp-python\nVersion: 0.3.36\n")
    assert library.find_library(path).package == "llama-cpp-python 0.3.36"
    assert str(library.find_library(path)) == "llama.cpp of an unknown release, from llama-cpp-python 0.3.36"


def test_the_library_of_llama_cpp_python_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "llama_cpp" / "lib" / "libllama.so"
    path.parent.mkdir(parents=True)
    path.touch()
    (tmp_path / "llama_cpp" / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert path in library.installed()


def test_no_library(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(library, "PACKAGES", {"xllamacpp": ("a_module_that_is_not_there", ())})
    with pytest.raises(ggtok.DependencyError, match="pip install xllamacpp"):
        ggtok.verify(TOKENIZERS["spm"])
    assert main(["verify", "--builtin", "spm"]) == 2
    assert capfd.readouterr().err.startswith("ggtok: error: llama.cpp is not installed")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/nowhere/libllama.so", "no such file"),
        (str(Path(__file__).parent), "this is a folder"),
        (__file__, "it cannot be loaded: (?!/)"),
        (sys.executable, "cannot|has no"),
    ],
)
def test_a_file_that_is_not_llama_cpp(path: str, reason: str) -> None:
    with pytest.raises(ggtok.LibraryError, match=reason) as raised:
        ggtok.verify(TOKENIZERS["spm"], ["a"], library=path)
    assert raised.value.path == path


@pytest.mark.skipif(sys.platform != "linux", reason="libc.so.6 is Linux's")
def test_another_library(capfd: pytest.CaptureFixture[str]) -> None:

    name = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libc" in line)
    assert main(["verify", "--builtin", "spm", "--libllama", name]) == 2
    assert "it is not llama.cpp" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        (answerers.Dying, "ended the process (exit code 3: the reason)"),
        (answerers.Unknown, "its parameters have an unknown layout"),
    ],
)
def test_a_library_that_does_not_open(
    reference: type, reason: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ggtok.lab.verify.verify.REFERENCE", named(reference))
    with pytest.raises(ggtok.LibraryError) as raised:
        ggtok.verify(TOKENIZERS["spm"], ["a"], library=__file__)
    assert reason in str(raised.value)
    assert main(["verify", "--builtin", "spm", "--libllama", __file__]) == 2
    told = capfd.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)


@needs_llama_cpp
@pytest.mark.parametrize("name", TOKENIZERS)
def test_all_answers_are_the_same(name: str, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"One line\r\n\n  another: \xe2\x82\xac \xc3\n<s> <|im_end|> [SEP]")
    found = ggtok.verify(TOKENIZERS[name], ["What is LoRA?", b"\xff"], files=[path], seconds=0.5, seed=3)
    assert found.agrees, str(found)
    assert found.texts["texts"] == 2
    assert found.texts["files"] == 1
    assert found.texts["lines"] == 3
    assert found.texts["made up"] >= 49
    assert found.calls["token"] == TOKENIZERS[name].vocab_size
    assert found.calls["encode"] >= 4 * 6
    assert found.model == str(VOCABULARIES / f"{name}.gguf")


@needs_llama_cpp
def test_overrides_reach_llama_cpp() -> None:
    tok = ggtok.Tokenizer.from_gguf(SPM, overrides={"tokenizer.ggml.add_bos_token": False, "general.name": 'a,"b'})
    found = ggtok.verify(tok, ["a"])
    assert found.agrees, str(found)
    assert found.overrides["tokenizer.ggml.add_bos_token"] is False


@needs_llama_cpp
def test_the_log_outlives_the_binding_that_set_it() -> None:
    code = """
        import ctypes, gc, os, sys
        from ggtok.lab.verify.binding import LlamaCpp
        kept = LlamaCpp(sys.argv[1])
        LlamaCpp(sys.argv[1])
        gc.collect()
        # These take the place of what was freed.
        log = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
        freed = [log(lambda *_: os._exit(3)) for _ in range(50)]
        kept.open(sys.argv[2], {})
    """
    path = library.find_library().path
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), path, SPM], check=True)


@needs_llama_cpp
def test_a_tokenizer_without_a_file() -> None:
    found = ggtok.verify(ggtok.Tokenizer.from_gguf(SPM.read_bytes()), ["a text"])
    assert found.agrees, str(found)
    assert found.model is None


@needs_llama_cpp
def test_an_abort_that_is_known_is_no_difference() -> None:
    found = ggtok.verify(TOKENIZERS["bpe"], [b"a" + BEYOND, "still there"])
    assert found.agrees, str(found)
    ((death, count),) = found.aborts.items()
    assert (death.deviation, count) == ("bytes that decode to a code point beyond U+10FFFF", 1)
    assert found.calls["encode"] == 4 + 2 + 3


@needs_llama_cpp
def test_an_abort_that_is_not_known_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ggtok.lab.verify.verify.REFERENCE", named(mutant.Crashing))
    found = ggtok.verify(TOKENIZERS["bpe"], [b"some text " + mutant.FATAL_TEXT, "another"])
    assert not found.agrees
    assert found.differences[0].query == ("encode", mutant.FATAL_TEXT, False, False)
    assert [death.deviation for death in found.aborts] == [None]


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ggtok.lab.verify.verify.OURS", named(mutant.WrongOurs))


@needs_llama_cpp
@pytest.mark.usefixtures("wrong")
def test_a_difference_is_shrunk_and_its_command_repeats_it(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a text.txt"
    path.write_bytes(b"a long text\nwith 1a in it\n")
    arguments = [
        "verify",
        "-m",
        str(SPM),
        "--text",
        str(path),
        "--override-kv",
        "tokenizer.ggml.add_bos_token=bool:false",
    ]
    assert main([*arguments, "--json"]) == 1
    found = json.loads(capfd.readouterr().out)
    assert found["num_differences"] == 8
    difference = found["differences"][0]
    assert difference["call"] == "encode(b'1a', add_special=False, parse_special=False)"
    command = shlex.split(difference["command"])
    assert command[:2] == ["ggtok", "verify"]
    assert main(command[1:]) == 1
    assert difference["call"] in capfd.readouterr().out


@needs_llama_cpp
def test_the_command_of_a_difference_that_is_gone(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "-m", str(SPM), "--repeat", pack(["encode", b"1a", False, False])]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert re.fullmatch(r"✓ identical to llama.cpp b\d+ · 1 answer · 0 differences", lines[-1])
    assert "compared     encode 1" in lines


@pytest.mark.parametrize(
    "arguments",
    [
        ["--repeat", "nonsense"],
        ["--repeat", pack(["encode", 1])],
        ["--repeat", "W10=", "--seed", "1"],
        ["--seconds", "-1"],
        ["--seconds", "nan"],
        ["--text", "/nowhere/text"],
    ],
)
def test_bad_arguments(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--builtin", "spm", *arguments]) == 2
    assert capfd.readouterr().err.count("\n") == 1


def test_texts_and_seconds_are_checked() -> None:
    with pytest.raises(TypeError, match="single"):
        ggtok.verify(TOKENIZERS["spm"], "one text")
    with pytest.raises(ggtok.GgtokError, match="seconds"):
        ggtok.verify(TOKENIZERS["spm"], seconds=float("inf"))


def test_large_files_are_read_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "large"
    lines = [b"%d " % number + b"x" * 100 for number in range(30_000)]
    path.write_bytes(b"\n".join(lines) + b"\n" + b"y" * (PART + 5))
    texts = list(_named(None, [path], lambda *_: None))
    parts = [text for kind, text in texts if kind == "files"]
    assert b"".join(parts) == path.read_bytes()
    assert PART - 4 < max(map(len, parts)) <= PART
    assert [text for kind, text in texts if kind == "lines"][:30_000] == lines
    assert all(part.endswith(b"\n") for part in parts[:3])


def test_batches_are_bounded() -> None:
    texts = [("lines", b"x" * (PART // 3))] * 7 + [("files", b"a")] + [("lines", b"b")] * 600
    batches = list(_batches(texts))
    assert [(kind, text) for kind, batch in batches for text in batch] == texts
    assert max(sum(map(len, batch)) for _, batch in batches) <= PART
    assert max(len(batch) for _, batch in batches) == 256


@pytest.mark.parametrize(
    ("how", "message", "kind", "deviation"),
    [
        ("SIGABRT", "terminate called\n  what():  invalid codepoint", "bpe", True),
        (
            "SIGABRT",
            "/a/src/llama-vocab.cpp:1: GGML_ASSERT(token_left.find(' ') == std::string::npos) failed",
            "bpe",
            True,
        ),
        ("SIGABRT", "  what():  _Map_base::at", "spm", True),
        ("SIGABRT", "GGML_ASSERT(special_sep_id != LLAMA_TOKEN_NULL) failed", "wordpiece", True),
        ("SIGABRT", "GGML_ASSERT(vocab.token_eos() != LLAMA_TOKEN_NULL) failed", "bpe", True),
        ("SIGABRT", "  what():  _Map_base::at", "bpe", False),
        ("no answer in 60 s", "", "rwkv", True),
        ("no answer in 60 s", "", "bpe", False),
        ("SIGSEGV", "", "bpe", False),
        ("SIGABRT", "", None, False),
    ],
)
def test_reasons_of_aborts(how: str, message: str, kind: str | None, deviation: bool) -> None:
    found = abort(("encode", b"a", True, False), how, message, kind)
    assert (found.deviation is not None) == deviation
    assert "/a/" not in str(found)


def test_only_opening_aborts_on_a_byte_token() -> None:
    message = "/a/src/llama-vocab.cpp:3207: fatal error"
    assert abort(("open", "a.gguf", {}), "SIGABRT", message, None).deviation == "a byte token in a WordPiece vocabulary"
    assert abort(("encode", b"a", True, False), "SIGABRT", message, "wordpiece").deviation is None


def test_only_decoding_aborts_on_an_id_that_does_not_exist() -> None:
    message = "  what():  vector::_M_range_check: __n (which is 18446744073709551615) >= this->size() (which is 25)"
    assert abort(("decode", [3, -1], True, False), "SIGABRT", message, "wordpiece").deviation is not None
    assert abort(("decode", [3], True, False), "SIGABRT", message, "wordpiece").deviation is None
    assert abort(("encode", b"a", True, False), "SIGABRT", message, "wordpiece").deviation is None


def test_a_long_text_may_overflow_the_stack() -> None:
    assert abort(("encode", b"a" * 1_000_000, True, False), "SIGSEGV", "", "bpe").deviation is not None


def test_calls_are_packed_in_a_word() -> None:
    for values in (["encode", b"\xff\0", True, False], ["decode", [1, -1], False, True], ["specials", ["bos"]]):
        assert unpack(pack(values)) == values
    for word in ("", "é", "W10=", "e30=", "[]", "W1tb"):
        with pytest.raises(ggtok.GgtokError):
            unpack(word)


def test_a_child_outlives_hangs_and_ends() -> None:
    child = Child(named(answerers.Sleeping), timeout=60.0)
    try:
        answers = child.ask([("double", 1), ("end",), ("double", 2)])
        child.timeout = 0.2
        answers += child.ask([("sleep",)])
        child.timeout = 60.0
        answers += child.ask([("fail",), ("double", 3)])
    finally:
        child.close()
    assert answers[0::2][:2] == [("ok", 2), ("ok", 4)]
    assert answers[1] == ("died", "exit code 3", "the reason")
    assert answers[3][:2] == ("died", "no answer in 0.2 s")
    assert answers[4][:2] == ("error", ["KeyError", "LookupError", "Exception", "BaseException", "object"])
    assert answers[5] == ("ok", 6)


@needs_llama_cpp
def test_odd_units_with_gemma_4(shared: Path) -> None:
    """Where llama.cpp aborts on a space that is not escaped, ggtok answers; elsewhere both agree."""
    units = [unit for unit in dict.fromkeys(ODD_UNITS) if len(unit) > 1 and unit[-1:] in b"\xa0\x8a\xad\xa1"]
    texts = [*units, *(b"\n" + unit + b"\n" for unit in units), b"\xc0\xa0a", b" \xe0\x80\xa0"]
    found = ggtok.verify(ggtok.Tokenizer.from_gguf(shared / "vocabs" / "gemma-4.gguf"), texts)
    assert found.agrees, str(found)
    assert {death.deviation for death in found.aborts} == {"a merge meets a space"}


@needs_llama_cpp
def test_progress_and_json(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"some text")
    told: list[tuple[str, int, int]] = []
    found = ggtok.verify(TOKENIZERS["spm"], files=[path], seconds=0.2, progress=lambda *state: told.append(state))
    assert told[0] == (str(path), 0, 9)
    assert told[-1][0] == "made-up texts"
    row = json.loads(json.dumps(found.to_dict()))
    assert {*row} == {
        *("library", "model", "overrides", "seed", "seconds", "texts", "calls"),
        *("aborts", "num_differences", "num_unknown", "known", "differences"),
    }
    assert (row["library"]["path"], row["num_differences"]) == (found.library.path, 0)
    answers, texts = sum(found.calls.values()), sum(found.texts.values())
    end = f"· {answers:,} answers · {texts:,} texts · 0 differences"
    assert str(found).splitlines()[-1] == f"✓ identical to llama.cpp {found.library.release} {end}"


@needs_llama_cpp
def test_the_empty_text_is_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []
    compare_texts = Comparing.compare_texts

    def recorded(self: Comparing, texts: Sequence[bytes]) -> list[list[int]]:
        compared.extend(texts)
        return compare_texts(self, texts)

    monkeypatch.setattr(Comparing, "compare_texts", recorded)
    assert ggtok.verify(TOKENIZERS["spm"], seconds=0.1).agrees
    assert b"" in compared


def test_the_same_seed_makes_the_same_texts() -> None:
    first, second = (TextGenerator(Random("1"), [b"a", b"bc"], [b"<s>"]) for _ in range(2))
    texts = [first.text() for _ in range(300)]
    assert texts == [second.text() for _ in range(300)]
    assert any(b"\xc0" in text for text in texts)


def test_overlong_forms_have_the_bits_of_their_character() -> None:
    for character in range(0x80):
        for form in overlong(character):
            first, *others = form
            assert all(0x80 <= each < 0xC0 for each in others)
            bits = f"{first:08b}"[len(form) + 1 :] + "".join(f"{each:08b}"[2:] for each in others)
            assert int(bits, 2) == character


def test_few_invalid_texts_are_beyond_unicode() -> None:
    """llama.cpp aborts on these, and what else is in such a text is not compared."""
    generator = TextGenerator(Random("1"), [b"a"], [b"<s>"])
    texts = [generator.invalid_bytes(100) for _ in range(200)]
    assert 0 < sum(any(each in text for each in BEYOND_UNICODE) for text in texts) < 30
