"""Nothing that exists is destroyed: no call replaces its own input, or weights, unasked."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ggtok
import pytest
from click.testing import CliRunner
from ggtok import GgtokError, Tokenizer
from ggtok.cli import group

SPM = Tokenizer.builtin("spm")


def with_tensors(path: Path) -> Path:
    """A GGUF file that says it has a tensor."""
    SPM.to_gguf(path)
    data = bytearray(path.read_bytes())
    data[8] = 1
    path.write_bytes(bytes(data) + b"weights")
    return path


def ways(path: Path) -> Iterator[Path]:
    """Paths that lead to the same file."""
    link, hard = path.with_name("link"), path.with_name("hard")
    link.symlink_to(path)
    os.link(path, hard)
    yield from (path, link, hard, Path(os.path.relpath(path)), path.parent / "." / path.name)


WRITERS: dict[str, Callable[[Tokenizer, Path], Any]] = {
    "to_gguf": lambda tok, path: tok.to_gguf(path),
    "to_sentencepiece": lambda tok, path: tok.to_sentencepiece(path),
    "to_tokenizers_json": lambda tok, path: tok.to_tokenizers_json(path),
    "to_html": lambda tok, path: tok.explain("a").to_html(path),
    "to_svg": lambda tok, path: ggtok.evaluate(tok, {"a": ["a b"]}).to_svg(path),
}


@pytest.mark.parametrize("writer", [name for name in WRITERS if name not in ("to_html", "to_svg")])
def test_the_file_it_was_opened_from_stays(writer: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    SPM.to_gguf(path)
    before = path.read_bytes()
    tok = Tokenizer.from_gguf(path)
    for way in ways(path):
        with pytest.raises(GgtokError, match="is also an input"):
            WRITERS[writer](tok, way)
    assert path.read_bytes() == before
    with open(path, "rb") as file, pytest.raises(GgtokError, match="is also an input"):
        WRITERS[writer](Tokenizer.from_gguf(file), path)
    tok.to_gguf(path, name="new", overwrite=True)
    assert Tokenizer.from_gguf(path).metadata["general.name"] == "new"


@pytest.mark.parametrize("writer", WRITERS)
def test_weights_stay(writer: str, tmp_path: Path) -> None:
    path = with_tensors(tmp_path / "model.gguf")
    before = path.read_bytes()
    with pytest.raises(GgtokError, match="is a GGUF file with tensors"):
        WRITERS[writer](SPM, path)
    assert path.read_bytes() == before
    assert SPM.to_gguf(path, overwrite=True) == SPM


def test_tiktoken_and_imported_files_stay(tmp_path: Path) -> None:
    bpe = Tokenizer.builtin("bpe")
    path = tmp_path / "tokenizer.json"
    bpe.to_tokenizers_json(path)
    tok = Tokenizer.from_tokenizers_json(path, pre="qwen2")
    for write in (tok.to_tokenizers_json, tok.to_gguf, tok.to_tiktoken):
        with pytest.raises(GgtokError, match="is also an input"):
            write(path)
    with pytest.raises(GgtokError, match="is also an input"):
        tok.to_tiktoken(tmp_path / "tokenizer")  # its settings are tokenizer.json
    assert os.listdir(tmp_path) == ["tokenizer.json"]


def test_the_path_is_not_part_of_a_tokenizer(tmp_path: Path) -> None:
    import pickle

    path = tmp_path / "model.gguf"
    SPM.to_gguf(path)
    tok = Tokenizer.from_gguf(path)
    assert tok == SPM
    assert hash(tok) == hash(SPM)
    copy = pickle.loads(pickle.dumps(tok))
    assert copy.to_gguf(path) == tok


def test_permissions_of_a_replaced_file_stay(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    path.chmod(0o604)
    SPM.explain("a").to_html(path)
    assert path.stat().st_mode & 0o777 == 0o604
    file = io.BytesIO()
    SPM.to_gguf(file)
    assert file.getvalue()[:4] == b"GGUF"


COMMANDS: dict[str, list[str]] = {
    "train": ["train", "{0}", "-o", "{1}", "--vocab-size", "260"],
    "explain": ["explain", "--builtin", "spm", "{0}", "--html", "{1}"],
    "evaluate": ["evaluate", "--builtin", "spm", "{0}", "--svg", "{1}"],
    "evaluate with a name": ["evaluate", "--builtin", "spm", "a={0}", "--svg", "{1}"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_replaces_its_input(name: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("my words " * 100)
    for way in ways(path):
        done = CliRunner().invoke(group, [part.format(path, way) for part in COMMANDS[name]])
        assert isinstance(done.exception, GgtokError)
        assert "is also an input" in str(done.exception)
    assert path.read_text() == "my words " * 100


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_leave_weights_alone(name: str, tmp_path: Path) -> None:
    path, text = with_tensors(tmp_path / "model.gguf"), tmp_path / "mine.txt"
    text.write_text("my words " * 100)
    before = path.read_bytes()
    command = [part.format(text, path) for part in COMMANDS[name]]
    assert isinstance(CliRunner().invoke(group, command).exception, GgtokError)
    assert path.read_bytes() == before
    if name == "train":
        assert CliRunner().invoke(group, [*command, "--force"]).exit_code == 0
        assert Tokenizer.from_gguf(path).vocab_size == 260


def test_a_model_is_an_input_too(tmp_path: Path) -> None:
    path, text = tmp_path / "model.gguf", tmp_path / "mine.txt"
    SPM.to_gguf(path)
    text.write_text("a")
    for command in (
        ["explain", "-m", str(path), str(text), "--html"],
        ["evaluate", "-m", str(path), str(text), "--svg"],
    ):
        assert isinstance(CliRunner().invoke(group, [*command, str(path)]).exception, GgtokError)
    assert Tokenizer.from_gguf(path) == SPM
