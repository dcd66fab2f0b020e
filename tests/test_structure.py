"""What `scripts/check_structure.py` finds in a tree that is made up."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
structure: Any = importlib.import_module("check_structure")

TREE = {
    **{f"rust/{crate}/Cargo.toml": "[dependencies]\n" for crate in structure.CRATES},
    **{f"rust/{crate}/src/lib.rs": "" for crate in structure.CRATES},
    "rust/core/src/lib.rs": "mod text;\nmod work;\npub use text::Text;\n",
    "rust/core/src/text.rs": "mod part;\nuse crate::work::{self, once};\npub struct Text;\n",
    "rust/core/src/text/part.rs": "use super::Text;\n#[cfg(test)]\nmod tests {\n    use crate::many::Batch;\n}\n",
    "rust/core/src/work.rs": "// use crate::text::Text;\npub fn once() {}\n",
    "python/ggtok/__init__.py": "from .tokenizer.vocab import Vocab\n",
    "python/ggtok/_facade.py": "from .lab.train import train\n",
    "python/ggtok/lab/_own.py": "",
    "python/ggtok/lab/train.py": "from .._ggtok import Trainer\nfrom ..tokenizer.seam import path_of\n",
    "python/ggtok/tokenizer/base.py": 'class Base:\n    __slots__ = ("_path",)\n    _path: str\n',
    "python/ggtok/tokenizer/seam.py": '"""A.\n\n- `vocab`: `Vocab`\n"""\ndef path_of(tok):\n    return tok._path\n',
    "python/ggtok/tokenizer/vocab.py": "from .._ggtok import kind\nfrom ..errors import GgtokError\nclass Vocab: ...\n",
    "python/ggtok/errors.py": "class GgtokError(Exception): ...\n",
    "python/ggtok/trace.py": "# DO NOT EDIT\n" * 700,
}


def found(root: Path, **changed: str) -> list[str]:
    """The problems of the tree with other texts in some files."""
    for name, text in {**TREE, **changed}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(structure.problems(root))


@pytest.mark.parametrize(
    ("file", "text", "problems"),
    [
        ("python/ggtok/errors.py", "", []),
        ("rust/core/src/work.rs", "use crate::text::Text;\n", ["rust/core/src/work imports text", "circle: "]),
        ("rust/core/src/text/part.rs", "use crate::Tokenizer;\n", ["rust/core/src/text/part imports lib"]),
        ("rust/core/src/text/part.rs", "mod a;\nmod b;\nfn f() {\n    crate::many::Batch\n}\n", ["imports lib"]),
        ("rust/core/src/new.rs", "", ["rust/core/src/new is on no floor"]),
        ("rust/train/src/lib.rs", "mod a;\nmod b;\n", []),
        ("rust/core/Cargo.toml", '[dependencies]\nggtok-train = "1"\n', ["rust/core depends on rust/train"]),
        (
            "python/ggtok/errors.py",
            "from .tokenizer.vocab import Vocab",
            ["errors imports tokenizer/vocab", "circle: "],
        ),
        (
            "python/ggtok/tokenizer/vocab.py",
            "import ggtok\n",
            ["python/ggtok/tokenizer/vocab imports __init__", "circle: "],
        ),
        ("python/ggtok/lab/train.py", "from .. import _ggtok\n", ["lab/train imports __init__"]),
        ("python/ggtok/lab/train.py", "if TYPE_CHECKING:\n    from ggtok import x\n", ["lab/train imports __init__"]),
        ("python/ggtok/cli/__init__.py", "from .._facade import Tokenizer\n", ["cli/__init__ imports _facade"]),
        ("python/ggtok/cli/__init__.py", "from .. import Tokenizer\nfrom ..lab.train import DEFAULTS\n", []),
        ("python/ggtok/cli/__init__.py", "from ..lab.train import _count\n", ["imports _count from lab/train"]),
        ("python/ggtok/cli/__init__.py", "from ..lab import _own\n", ["imports lab/_own"]),
        ("python/ggtok/lab/train.py", "from ..tokenizer.vocab import Vocab\n", []),
        ("python/ggtok/lab/train.py", "from ..tokenizer.vocab import Token\n", ["imports Token from tokenizer/vocab"]),
        ("python/ggtok/lab/train.py", "from ..tokenizer import vocab\n", ["imports tokenizer/vocab"]),
        ("python/ggtok/lab/train.py", "tok._path\n", ["lab/train reads tok._path"]),
        ("python/ggtok/lab/train.py", "self.tok._path\n", ["lab/train reads self.tok._path"]),
        ("python/ggtok/lab/train.py", "self._path = _path\nself._path\nrow._replace(a=1)\n", []),
        ("python/ggtok/tokenizer/vocab.py", "tok._path\n", []),
        ("python/ggtok/__init__.py", "", ["tokenizer/seam lists Vocab, which is not used"]),
        ("python/ggtok/new/a.py", "a = 1\n", ["new/a is on no floor", "python/ggtok/new has 1 lines of code"]),
        ("python/ggtok/chat/a.py", "a = 1\n" * 599, []),
        ("tests/test_long.py", "\n" * 601, ["tests/test_long.py has 601 lines, more than 600"]),
    ],
)
def test_problems(tmp_path: Path, file: str, text: str, problems: list[str]) -> None:
    shown = found(tmp_path, **{file: text})
    assert len(shown) == len(problems), shown
    assert all(problem in line for problem, line in zip(problems, shown, strict=True)), shown


def test_siblings_in_a_circle(tmp_path: Path) -> None:
    files = {
        "lib": "mod a;\nmod b;\nmod c;\n",
        "a": "use super::b::B;\n",
        "b": "use crate::c;\n",
        "c": "use crate::{a::A};\n",
    }
    (line,) = found(tmp_path, **{f"rust/train/src/{name}.rs": text for name, text in files.items()})
    assert line.startswith("rust/train/src has a circle: ")


def test_types_in_a_circle(tmp_path: Path) -> None:
    text = "if TYPE_CHECKING:\n    from .steps import Step\n"
    files = {"python/ggtok/chat/a.py": text, "python/ggtok/chat/steps.py": "from .a import A\n"}
    (line,) = found(tmp_path, **files)
    assert line.startswith("python/ggtok has a circle: ")


def test_namesakes(tmp_path: Path) -> None:
    code = """
        class Place(NamedTuple):
            \"\"\"Place of a text.\"\"\"
            Place = 1
        if TYPE_CHECKING:
            Place: TypeAlias = int
    """
    rust = """
        pub(crate) struct Place<'a>(&'a str);
        trait Read {
            type Item;
        }
        impl Read for Place<'_> {
            type Item = u8;
        }
    """
    files = {
        "python/ggtok/chat/a.py": dedent(code) + "Place = str | bytes\n",
        "python/ggtok/lab/a.py": 'Place = TypeVar("Place")\n',
        "rust/core/src/work/a.rs": dedent(rust) + "pub type Place = u8;\n",
        "rust/train/src/b.rs": dedent(rust) + "enum Place {}\n",
        "rust/wasm/src/c.rs": dedent(rust),
        "rust/wasm/src/d.rs": "type Item = u8;\n",
        **{f"python/ggtok/adapters/{name}.py": "class Tokenizer:\n    ...\n" for name in "abcd"},
    }
    most = structure.MOST_NAMESAKES
    assert [line for line in found(tmp_path, **files) if "types called" in line] == [
        f"python/ has 4 types called Place, more than {most}",
        f"rust/ has 4 types called Item, more than {most}",
        f"rust/ has 5 types called Place, more than {most}",
    ]


def test_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(structure.BUDGETS, "chat", 3)
    monkeypatch.setitem(structure.BUDGETS, "rust/chat", 2)
    code = '"""A module.\n\na = 1\n"""\n\n# a comment\na = 1\nb = """\nc\n"""\n'
    rust = "//! Chats.\n\nfn a() {}\n// a\nfn b() {}\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n"
    files = {"python/ggtok/chat/a.py": code, "rust/chat/src/lib.rs": rust, "rust/chat/tests/a.rs": "fn d() {}\n"}
    assert found(tmp_path, **files) == ["python/ggtok/chat has 4 lines of code, more than its budget of 3"]
