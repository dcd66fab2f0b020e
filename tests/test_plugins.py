"""Stores and commands of other distributions, and what CONTRIBUTING.md says about adding one of ours."""

from __future__ import annotations

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ggtok
import pytest
from click.shell_completion import get_completion_class
from ggtok import ModelNotFoundError, Tokenizer, TokenizerWarning, _plugins, adapters, cli
from ggtok.stores import find
from ggtok.stores.tools import STORES
from store_trees import Home, isolated, vocabulary
from test_cli import call

ROOT = Path(__file__).resolve().parents[1]
CACHES = (_plugins.added, _plugins._warn, find.loaded, cli._loaded)
GOOD = "def places():\n    return []\ndef models():\n    yield 'x', '/x.gguf'\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """Nothing that was read before is remembered, nor what a test reads."""
    modules = {*sys.modules}
    for cache in CACHES:
        cache.cache_clear()
    yield Home(isolated(tmp_path / "home", monkeypatch))
    for cache in CACHES:
        cache.cache_clear()
    for name in {*sys.modules} - modules:
        if name.startswith("acme"):
            del sys.modules[name]


class Site:
    """A folder of installed distributions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, module: str, code: str, entry_points: str, name: str = "acme-models") -> None:
        """A distribution of one module. `entry_points` is the text of its file, without heads a store `acme`."""
        info = self.folder / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        (self.folder / f"{module}.py").write_text(code)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            entry_points if entry_points[0] == "[" else f"[ggtok.stores]\n{entry_points}"
        )


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return Site(tmp_path / "site")


def names() -> list[str]:
    return [model.name for each in find.stores() for model in each.models()]


# What CONTRIBUTING.md says


def diffs() -> dict[str, list[tuple[str, str]]]:
    """For each file that its diffs change, the lines that each hunk replaces and the new ones."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found: dict[str, list[tuple[str, str]]] = {}
    for block in re.findall(r"^```diff\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^--- .*\n", block, flags=re.MULTILINE)[1:]:
            head, *hunks = part.split("@@\n")
            lines = [hunk.splitlines() for hunk in hunks]
            hunk_lines = [
                tuple("".join(f"{line[1:]}\n" for line in hunk if line[:1] != other) for other in "+-")
                for hunk in lines
            ]
            found[head.removeprefix("+++ b/").strip()] = hunk_lines  # type: ignore[assignment]
    return found


DIFFS = diffs()


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of ggtok, to which the diffs were applied."""
    folder = tmp_path_factory.mktemp("changed")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(ggtok.__file__).parent, folder / "python/ggtok", ignore=ignored)
    shutil.copytree(ROOT / "scripts", folder / "scripts", ignore=ignored)
    for file, hunks in DIFFS.items():
        path = folder / file
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for old, new in hunks:
            assert text.count(old) == 1 or not text, (file, old)
            text = text.replace(old, new) if old else new
        path.write_text(text, encoding="utf-8")
    return folder


def run(folder: Path, *command: str, home: Path | None = None) -> str:
    paths = [str(folder / "python"), str(folder), *sys.path]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "HOME": str(home or folder), "ACME_MODELS": ""}
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_numbers_of_files() -> None:
    """A store is one file, and an adapter two; a corpus format is a file and its name in a list."""
    ours = [file for file in DIFFS if file.startswith("python/")]
    assert [file for file in ours if "stores" in file] == ["python/ggtok/stores/tools.py"]
    assert [file[20:] for file in ours if "corpus" in file] == ["settings.py", "writing/lines.py"]
    assert len([file for file in ours if "adapters" in file]) == 2 == len(ours) - 3


def test_a_store_of_ours(changed: Path, tmp_path: Path) -> None:
    (tmp_path / ".acme/models/team").mkdir(parents=True)
    (tmp_path / ".acme/models/team/large.gguf").write_bytes(vocabulary("spm"))
    code = "import ggtok; print(ggtok.Tokenizer.from_model('ACME:team/Large').vocab.kind)"
    assert run(changed, "-c", code, home=tmp_path) == "spm\n"
    assert run(changed, "-m", "ggtok", "models", "acme", home=tmp_path).split()[5:7] == ["acme:team/large", "spm"]
    assert "  acme      Acme\n" in run(changed, "-m", "ggtok", "models", "--help")
    lists = run(changed, "scripts/generate_lists.py".join((f"{changed}/", "")))
    assert "| Acme | `acme:small`, `acme:team/large` | the path of the file in the folder |" in lists
    assert "| Acme | `ACME_MODELS` or `~/.acme/models` |" in lists


def test_an_adapter(changed: Path) -> None:
    code = """
import types, sys, ggtok
tok = ggtok.Tokenizer.builtin("bpe")
try:
    ggtok.adapters.acme.splitter(tok)
except ggtok.DependencyError as error:
    print(error)
sys.modules["acme"] = types.SimpleNamespace(Splitter=lambda count: count("What is LoRA?"))
print(ggtok.adapters.acme.splitter(tok), *ggtok.adapters.__all__[:2])
"""
    missing, found = run(changed, "-c", code).splitlines()
    assert missing.endswith("pip install acme-splitter")
    assert found == "6 acme chonkie"
    lists = run(changed, f"{changed}/scripts/generate_lists.py")
    assert "| `acme` | A counter for Acme's splitter. | `acme.splitter` |" in lists
    assert ".. autofunction:: ggtok.adapters.acme.splitter" in lists


def test_a_corpus_format(changed: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "in.txt", tmp_path / "out"
    source.write_text("one text\n\nWhat is LoRA?\n")
    options = ["-o", str(out), "--format", "lines", "--input-format", "lines", "--builtin", "bpe"]
    for _ in "once", "again":
        run(changed, "-m", "ggtok", "corpus", "build", str(source), *options)
    assert (out / "00000.ids").read_text() == "6053 7301\n\n9713 5981 6266 78 9612 30\n"
    verified = run(changed, "-m", "ggtok", "corpus", "verify", str(out), "--builtin", "bpe")
    assert "3 encoded again, with the same tokens" in verified


def test_type_checkers_know_every_adapter() -> None:
    tree = ast.parse(Path(adapters.__file__).read_text(encoding="utf-8"))
    listed = [
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
    ]
    assert listed == adapters.__all__


def test_another_distribution(home: Home, site: Site) -> None:
    """As CONTRIBUTING.md writes it: its store, its command, help and completion."""
    (project,), (module,) = DIFFS["pyproject.toml"], DIFFS["acme_models.py"]
    groups = tomllib.loads(project[1])["project"]["entry-points"]
    rows = "".join(
        f"[{group}]\n{''.join(f'{key} = {at}' for key, at in points.items())}\n" for group, points in groups.items()
    )
    site.add("acme_models", module[1], rows)
    path = home.write(home.folder / ".acme/models/Small.gguf", vocabulary("spm"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ggtok.find("acme:Small") == ggtok.find("ACME:small") == path
        assert Tokenizer.from_model("acme:small").vocab.kind == "spm"
        with pytest.raises(
            ModelNotFoundError, match="acme has no model 'acme:smal'; did you mean acme:Small"
        ) as caught:
            ggtok.find("acme:smal")
    assert caught.value.places == (str(home.folder / ".acme/models"),)
    assert call("count", "-m", "acme:small", "-p", "Hi").code == 0
    assert call("models", "acme", "--json").json[0]["name"] == "acme:Small"
    assert names() == ["acme:Small"]
    assert call("acme").out == b"1\n"
    assert "Count Acme's models." in call("acme", "--help").out.decode()
    assert re.search(r"^  acme +Count Acme's models\.$", call("--help").out.decode(), re.MULTILINE)
    assert re.search(r"^  acme +acme$", call("models", "--help").out.decode(), re.MULTILINE)
    assert "did you mean ggtok acme?" in call("acmee").err
    assert completed("ac") == completed("models", "ac") == ["acme"]
    assert completed("count", "-m", "ac") == completed("count", "-m", "acme:") == ["acme:Small"]


def completed(*words: str) -> list[str]:
    kind = get_completion_class("zsh")
    assert kind is not None
    found = kind(cli.group, {}, "ggtok", "_GGTOK_COMPLETE").get_completions(list(words[:-1]), words[-1])
    return [item.value for item in found]


def test_the_store_of_the_page(home: Home, site: Site) -> None:
    """The code in docs/open.md, with the entry point below it."""
    page = (ROOT / "docs/open.md").read_text(encoding="utf-8").split("### Other stores\n")[1]
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (rows,) = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    ((prefix, value),) = tomllib.loads(rows)["project"]["entry-points"]["ggtok.stores"].items()
    site.add(value, code, f"{prefix} = {value}")
    path = home.write(home.folder / ".acme/models/m.gguf", vocabulary("spm"))
    assert ggtok.find(f"{prefix}:m") == path
    assert find.store(prefix).title == "Acme's models"  # type: ignore[union-attr]


def test_a_class_with_find(home: Home, site: Site) -> None:
    code = """
class Store:
    TITLE = 5
    def places(self): return ["/a"]
    def models(self): return [("long-name", "", "it is far away")]
    def find(self, name): return ("long-name", "/a/b.gguf") if name == "l" else None
"""
    site.add("acme_class", code, "acme = acme_class:Store [extra]")
    assert ggtok.find("acme:l") == Path("/a/b.gguf")
    with pytest.raises(ModelNotFoundError, match="5 has no model 'acme:x'"):
        ggtok.find("acme:x")
    assert [(model.name, model.problem) for model in find.stores(["acme"])[0].models()] == [
        ("acme:long-name", "it is far away")
    ]


# When the metadata is read


def test_known_names_read_no_metadata(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def read() -> list[Any]:
        raise AssertionError("the metadata of distributions was read")

    monkeypatch.setattr("importlib.metadata.distributions", read)
    paths = home.all()
    for name, path in paths.items():
        assert ggtok.find(name) == path
        assert Tokenizer.from_model(name) == Tokenizer.from_model(path)
        assert find.names_from(name) == [name]
        with pytest.raises(ModelNotFoundError):
            ggtok.find(f"{name.partition(':')[0]}:no-such-model")
    for name in ("https://a/b", "no/such/file.gguf", "C:/no/such/file.gguf"):
        with pytest.raises(ModelNotFoundError):
            ggtok.find(name)
    for command in (["encode", "-p", "a"], ["count", "-m", "ollama:llama3.2", "-p", "a"], ["encode", "--help"]):
        assert call(*command).code == 0
    assert call("models", "ollama").code == 0
    for unknown in (lambda: ggtok.find("acme:x"), lambda: call("acme"), lambda: call("--help"), lambda: call("models")):
        with pytest.raises(AssertionError, match="was read"):
            unknown()


def test_prefixes_that_are_not_known_are_not_kept(home: Home, site: Site) -> None:
    for number in range(50):
        with pytest.raises(ModelNotFoundError):
            ggtok.find(f"acme{number}:x")
    assert find.loaded.cache_info().currsize <= len(STORES)


def test_our_own_stores_need_no_metadata() -> None:
    """They work in a source checkout, where there is none."""
    code = "import sys; sys.modules['importlib.metadata'] = None; import ggtok; ggtok.find('jan:x')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ModelNotFoundError: Jan has no model 'jan:x'" in done.stderr


# Plug-ins that are broken


BROKEN = {
    "raise RuntimeError('no')": "RuntimeError: no",
    "import sys; sys.exit(3)": "SystemExit: 3",
    "class Panic(BaseException): ...\nraise Panic('p')": "Panic: p",
    "import acme_missing": "ModuleNotFoundError: No module named 'acme_missing'",
    "def": "SyntaxError: ",
    "def places(): ...": "has no attribute 'models'",
    "models = places = 5": "TypeError: places and models must be functions",
}


@pytest.mark.parametrize("code", BROKEN)
def test_a_store_that_does_not_load(home: Home, site: Site, code: str) -> None:
    site.add("acme_broken", code, "acme = acme_broken")
    with pytest.warns(TokenizerWarning) as caught, pytest.raises(ModelNotFoundError, match="no such file 'acme:x'"):
        ggtok.find("acme:x")
    (warning,) = caught
    assert f"the store 'acme' of the distribution acme-models is broken: {BROKEN[code]}"[:60] in str(warning.message)
    assert BROKEN[code] in str(warning.message)
    assert warning.filename == __file__
    paths = home.all()
    assert {*names()} == {*paths}
    done = call("models", "--paths")
    assert (done.code, done.err) == (0, "")  # it was said before


def found_anyway() -> set[str]:
    """All models but one, after a search for a model that `acme` does not have."""
    with pytest.raises(ModelNotFoundError):
        ggtok.find("acme:y")
    return {*names()} - {"acme:x"}


NONSENSE = {
    "models": ["5", "[5]", "['ab']", "[('a',)]", "[('a', 5)]", "[('a', '')]", "[(5, '/a')]", "[('a', '/a', 'b')]"],
    "places": ["5", "[5]", "None"],
    "find": ["5", "('a', b'/a', '')", "1 / 0"],
}


@pytest.mark.parametrize(
    ("function", "value"), [(name, value) for name, values in NONSENSE.items() for value in values]
)
def test_a_store_that_returns_nonsense(home: Home, site: Site, function: str, value: str) -> None:
    arguments = "name" if function == "find" else ""
    site.add("acme_nonsense", f"{GOOD}\ndef {function}({arguments}): return {value}\n", "acme = acme_nonsense")
    paths = home.all()
    with pytest.warns(TokenizerWarning, match="'acme' of the distribution acme-models is broken: ") as caught:
        assert {*paths} == found_anyway()
    assert len(caught) == 1


def test_models_before_a_failure_are_kept(home: Home, site: Site) -> None:
    site.add("acme_half", f"{GOOD}    raise OSError(5, 'Input/output error')\n", "acme = acme_half")
    with pytest.warns(TokenizerWarning, match="OSError"):
        assert names() == ["acme:x"]
    done = call("models", "--paths")
    assert done.out.split() == [b"name", b"file", b"acme:x", b"/x.gguf"]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("ollama = acme_good", "the store 'ollama' of the distribution acme-models is not used: ggtok has one"),
        ("c = acme_good", "the store 'c' of the distribution acme-models is not used: its name does not match"),
        ("Acme = acme_good", "its name does not match"),
        ("acme_good", "the entry points of the distribution acme-models cannot be read"),
        ("acme = ???", "the store 'acme' of the distribution acme-models is broken: "),
        ("acme = acme_good:nothing", "has no attribute 'nothing'"),
        ("acme =", "acme-models"),
    ],
)
def test_entry_points_that_cannot_be_used(home: Home, site: Site, rows: str, problem: str) -> None:
    site.add("acme_good", GOOD, rows)
    site.add("acme_other", GOOD, "other = acme_other", "other-models")
    paths = home.all()
    with pytest.warns(TokenizerWarning, match=re.escape(problem)) as caught:
        assert {*names()} == {*paths, "other:x"}
    assert len(caught) == 1
    assert ggtok.find("ollama:llama3.2") == paths["ollama:llama3.2"]


def test_metadata_that_is_damaged(home: Home, site: Site) -> None:
    site.add("acme_one", GOOD, "acme = acme_one")
    (site.folder / "acme_models-1.0.dist-info/METADATA").unlink()
    site.add("acme_two", GOOD, "other = acme_two", "other-models")
    (site.folder / "other_models-1.0.dist-info/entry_points.txt").write_bytes(b"[ggtok.stores]\n\xff = acme_two")
    with pytest.warns(TokenizerWarning, match="the entry points of the distribution .* cannot be read: ") as caught:
        assert names() in ([], ["acme:x"])  # by the version of Python
    assert len(caught) in (1, 2)


def test_two_distributions_with_one_name(home: Home, site: Site) -> None:
    site.add("acme_one", GOOD, "acme = acme_one", "b-models")
    site.add("acme_two", GOOD, "acme = acme_two", "a-models")
    with pytest.warns(TokenizerWarning, match="'acme' of the distribution b-models is not used: a-models has one"):
        assert names() == ["acme:x"]
    assert find.store("acme").tool is importlib.import_module("acme_two")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("rows", "code", "problem"),
    [
        (
            "acme = acme_cli:command",
            "import sys; sys.exit()",
            "the command 'acme' of the distribution acme-models is broken: ",
        ),
        (
            "acme = acme_cli:command",
            "def command(): ...",
            "TypeError: acme_cli:command is a function, not a click.Command",
        ),
        (
            "encode = acme_cli:command",
            "",
            "the command 'encode' of the distribution acme-models is not used: ggtok has one",
        ),
    ],
)
def test_a_command_that_cannot_be_used(home: Home, site: Site, rows: str, code: str, problem: str) -> None:
    site.add("acme_cli", code, f"[ggtok.commands]\n{rows}")
    done = call("acme")
    warning, error = done.err.splitlines()
    assert done.code == 2
    assert warning.startswith("ggtok: warning: ")
    assert problem in warning
    assert error.startswith("ggtok: error: no such command 'acme': ")
    for cache in CACHES:
        cache.cache_clear()
    done = call("--help")
    assert done.code == 0
    assert len(done.err.splitlines()) == 1
    assert b"  encode " in done.out
    assert b"  acme" not in done.out
    assert call("encode", "-p", "a").out == call("encode", "--builtin", "bpe", "-p", "a").out.replace(
        b"\n", b"  # embedded vocabulary bpe\n"
    )


def test_completion_shows_no_warnings(home: Home, site: Site) -> None:
    site.add("acme_broken", "raise RuntimeError", "acme = acme_broken")
    environment = os.environ | {"_GGTOK_COMPLETE": "bash_complete", "COMP_WORDS": "ggtok models ", "COMP_CWORD": "2"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-m", "ggtok"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert [line.partition(",")[2] for line in done.stdout.splitlines()] == [*STORES]
