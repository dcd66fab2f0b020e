"""Files with weights that `ggtok.edit` writes: the same tensors, the new tokenizer, or nothing at all."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ggtok
import pytest
from click.testing import CliRunner
from conftest import reference_reader
from ggtok import GgtokError, GGUFError, Tokenizer, VocabularyError
from ggtok.cli import group
from ggtok.lab.convert import tensors as tensors_module
from ggtok.tokenizer.metadata import read_metadata
from gguf import GGUFValueType as Type
from tiny_model import TOKENS, shapes, write_model

TEMPLATE = "{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}"


def digests(*paths: Path) -> dict[str, str]:
    """The hash of each tensor."""
    readers = [reference_reader(path) for path in paths]
    found = {
        each.name: hashlib.sha256(each.data.tobytes()).hexdigest() for reader in readers for each in reader.tensors
    }
    assert found.keys() == shapes().keys()
    return found


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    write_model(path)
    return path


@pytest.fixture
def runs(llama_cpp: Any) -> Callable[[Path], bool]:
    """Whether llama.cpp loads a model, weights and all."""
    library = llama_cpp._load()

    def runs(path: Path) -> bool:
        loaded = library.llama_model_load_from_file(os.fsencode(path), library.llama_model_default_params())
        if loaded:
            library.llama_model_free(loaded)
        return bool(loaded)

    return runs


def test_the_tensors_stay_and_the_tokenizer_changes(model: Path, tmp_path: Path, runs: Callable[[Path], bool]) -> None:
    before, target = model.read_bytes(), tmp_path / "fixed.gguf"
    assert runs(model)
    new = ggtok.edit(
        model,
        target,
        chat_template=TEMPLATE,
        special={"bos": "<s>", "eot": "<|end|>"},
        add_control_tokens=["<|end|>"],
        add_tokens=["<note>"],
        metadata={"general.description": "long " * 1000, "llama.context_length": 128},
    )
    assert model.read_bytes() == before
    assert digests(target) == digests(model)
    assert runs(target)
    opened = Tokenizer.from_gguf(target)
    assert new == opened
    assert (opened.vocab_size, opened.vocab.eot_id, opened.vocab.id("<note>")) == (len(TOKENS), 263, 3)
    assert opened.metadata["llama.context_length"] == 128
    assert opened.apply_chat_template([{"role": "user", "content": "a"}]) == "[user] a"
    old_keys, new_keys = (list(read_metadata(path).entries()) for path in (model, target))
    assert new_keys[: len(old_keys)] == old_keys


@pytest.mark.parametrize("alignment", [None, 8, 64, 4096])
@pytest.mark.parametrize("big_endian", [False, True])
def test_alignment_and_byte_order(tmp_path: Path, alignment: int | None, big_endian: bool) -> None:
    source, target = tmp_path / "a.gguf", tmp_path / "b.gguf"
    write_model(source, alignment=alignment, big_endian=big_endian)
    for length in range(0, 70, 23):
        ggtok.edit(source, target, name="x" * length, add_tokens=["<note>"], overwrite=True)
        assert digests(target) == digests(source)
        metadata = read_metadata(target)
        assert metadata.big_endian == big_endian
        assert metadata.get("general.name") == "x" * length
        assert Tokenizer.from_gguf(target).vocab.id("<note>") == 3
        old = read_metadata(source)
        edited = {"tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.ggml.scores"}
        for key in old.entries().keys() - edited:
            assert metadata.raw(key) == old.raw(key)


def test_split_files(tmp_path: Path, runs: Callable[[Path], bool]) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    write_model(tmp_path / "m.gguf", per_part=5)
    names = [f"m-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
    sources, targets = [tmp_path / name for name in names], [folder / name for name in names]
    assert runs(sources[0])
    ggtok.edit(sources[0], targets[0], chat_template=TEMPLATE)
    assert runs(targets[0])
    assert digests(*targets) == digests(*sources)
    assert sorted(os.listdir(folder)) == names
    with pytest.raises(GgtokError, match=r"must end in -00001-of-00003\.gguf"):
        ggtok.edit(sources[0], folder / "m.gguf", chat_template=TEMPLATE)
    with pytest.raises(GgtokError, match="is part 2 of a split file: the metadata is in part 1"):
        ggtok.edit(sources[1], folder / names[0], metadata={"general.name": "x"})
    sources[2].unlink()
    with pytest.raises(GgtokError, match=f"is missing: .*{names[2]}"):
        ggtok.edit(sources[0], targets[0], chat_template=TEMPLATE, overwrite=True)


@pytest.mark.parametrize(
    ("edits", "error", "message"),
    [
        ({"metadata": {"general.alignment": 64}}, GgtokError, "general.alignment cannot be changed"),
        ({"metadata": {"split.count": 2}}, GgtokError, "split.count cannot be changed"),
        ({"metadata": {"tokenizer.ggml.eos_token": None}}, GgtokError, "no key 'tokenizer.ggml.eos_token' to remove"),
        ({"metadata": {"llama.context_length": "x"}}, GgtokError, "llama.context_length is uint32: 'x' does not fit"),
        ({"metadata": {"llama.context_length": 1 << 40}}, GgtokError, "llama.context_length is uint32"),
        ({"metadata": {"tokenizer.ggml.tokens": None}}, GgtokError, "the vocabulary has no list of tokens"),
        ({"metadata": {"tokenizer.ggml.model": "nope"}}, GgtokError, "nope"),
        ({"add_tokens": ["1", "2", "3"]}, VocabularyError, "3 tokens cannot be added: the weights have a row"),
        ({"add_tokens": ["b"]}, VocabularyError, "token 261 has this text"),
        ({"special": {"bos": 264}}, IndexError, "there are 264 tokens"),
    ],
)
def test_what_cannot_be_edited(model: Path, edits: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ggtok.edit(model, model.with_name("new.gguf"), **edits)
    assert os.listdir(model.parent) == ["model.gguf"]


def test_damaged_files_give_nothing(model: Path) -> None:
    data, target = model.read_bytes(), model.with_name("new.gguf")
    size = read_metadata(model).size
    for end in (size, size + 7, size + 30, size + 400):
        model.write_bytes(data[:end])
        with pytest.raises(GGUFError, match=r"model\.gguf.*ends (inside the list|before the data) of"):
            ggtok.edit(model, target, name="x")
    for offset, junk in ((size, b"\xff" * 8), (size + 8 + len("token_embd.weight"), b"\xff" * 4)):
        model.write_bytes(data[:offset] + junk + data[offset + len(junk) :])
        with pytest.raises(GGUFError, match=r"too long|too many dimensions"):
            ggtok.edit(model, target, name="x")
    assert os.listdir(model.parent) == ["model.gguf"]


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_everything_as_it_was(
    model: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    target = model.with_name("new.gguf")
    target.write_bytes(b"kept")
    monkeypatch.setattr(tensors_module, "SLICE", 1000)
    copied: list[int] = []

    def progress(size: int) -> None:
        copied.append(size)
        if len(copied) == 20:
            raise failure

    with pytest.raises(type(failure)) as caught:
        ggtok.edit(model, target, name="x", progress=progress)
    if isinstance(caught.value, OSError):
        assert caught.value.filename == str(target)
    assert target.read_bytes() == b"kept"
    assert sorted(os.listdir(model.parent)) == ["model.gguf", "new.gguf"]


def test_without_the_system_call(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File systems that cannot copy by themselves are read and written."""
    target = model.with_name("new.gguf")

    def refuses(*_: object) -> int:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "copy_file_range", refuses, raising=False)
    copied: list[int] = []
    ggtok.edit(model, target, name="x", progress=copied.append)
    assert digests(target) == digests(model)
    assert sum(copied) >= sum(each.n_bytes for each in reference_reader(model).tensors)


def test_the_source_is_never_the_target(model: Path) -> None:
    before = model.read_bytes()
    link, hard = model.with_name("link.gguf"), model.with_name("hard.gguf")
    link.symlink_to(model)
    os.link(model, hard)
    for target in (model, link, hard, Path(os.path.relpath(model))):
        with pytest.raises(GgtokError, match="choose another name"):
            ggtok.edit(model, target, name="x", overwrite=True)
    assert model.read_bytes() == before


def test_permissions_stay(model: Path) -> None:
    target = model.with_name("new.gguf")
    ggtok.edit(model, target, name="x")
    target.chmod(0o640)
    ggtok.edit(model, target, name="y", overwrite=True)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


# The command


def call(*arguments: str) -> Any:
    return CliRunner().invoke(group, ["edit", *arguments])


def test_the_command(model: Path) -> None:
    template, target = model.with_name("t.jinja"), str(model.with_name("new.gguf"))
    template.write_text(TEMPLATE)
    edits = ["--set", "tokenizer.ggml.add_bos_token=false", "--set-template", str(template), "--add-token", "<note>"]
    edits += ["--set", "general.quick=int:7", "--special", "eot=</s>", "--remove", "llama.more"]
    shown = call(str(model), *edits, "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert shown.output.splitlines() == [
        'tokenizer.ggml.tokens[3]: "[PAD0]" -> "<note>"',
        "tokenizer.ggml.scores[3]: -3.0 -> -1000.0",
        "tokenizer.ggml.token_type[3]: 5 -> 4",
        "tokenizer.ggml.add_bos_token: none -> False",
        "general.quick: none -> 7",
        "tokenizer.ggml.eot_token_id: none -> 2",
        f'tokenizer.chat_template: none -> "{TEMPLATE[:59]}… ({len(TEMPLATE)} characters)',
        'llama.more: "array of 2 float32" -> none',
    ]
    assert not os.path.exists(target)
    done = call(str(model), *edits, "-o", target)
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, f"{target}: {len(TOKENS)} tokens")
    assert Tokenizer.from_gguf(target).metadata["general.quick"] == 7
    assert digests(Path(target)) == digests(model)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "-o names the file to write"),
        (["--dry-run"], "nothing to change"),
        (["--dry-run", "--set", "llama.context_length=x"], "expected an int"),
        (["--dry-run", "--set", "general.new=x"], "a new one is set with a type, KEY=TYPE:VALUE"),
        (["--dry-run", "--set", "llama.more=1"], "llama.more is an array: its value is a JSON list"),
        (["--dry-run", "--set", "llama.more=[a]"], "llama.more"),
        (["--dry-run", "--rename", "7"], "is not NAME=VALUE"),
        (["--dry-run", "--rename", "x=y"], "expected an int"),
        (["--dry-run", "--rename", "3=a", "--rename", "3=b"], "the text of token 3 is given twice"),
        (["--dry-run", "--score", "3=high"], "expected a float"),
        (["--dry-run", "--retype", "3=contrl"], "the nearest are control"),
        (["--dry-run", "--special", "eos=9999"], "tokenizer.ggml.eos_token_id is 9999: there are 264 tokens"),
        (["--dry-run", "--set", "general.name"], "is not NAME=VALUE"),
        (["--dry-run", "--set", "general.name=a", "--remove", "general.name"], "general.name is given twice"),
    ],
)
def test_errors_of_the_command(model: Path, arguments: list[str], message: str) -> None:
    done = call(str(model), *arguments)
    assert done.exit_code != 0
    assert message in f"{done.output}{done.exception}"


def test_types_of_the_file_are_kept(model: Path) -> None:
    target = model.with_name("new.gguf")
    ggtok.edit(model, target, metadata={"llama.attention.layer_norm_rms_epsilon": 0.25, "general.flag": True})
    entries = read_metadata(target).entries()
    assert entries["llama.attention.layer_norm_rms_epsilon"][0] == Type.FLOAT32
    assert entries["general.flag"][0] == Type.BOOL
