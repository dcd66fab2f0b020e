"""Type checkers in their strictest mode say nothing about a program that uses ggtok, with numpy or without."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

import ggtok
import numpy as np
import pytest

PROGRAMS = Path(__file__).parent / "data/user"


@pytest.fixture(scope="module", params=["with numpy", "without numpy"])
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's program, and an environment in which ggtok is installed."""
    folder = tmp_path_factory.mktemp("project")
    venv.create(folder / "env", symlinks=True)
    packages, programs = [ggtok], ["program.py"]
    if request.param == "with numpy":
        packages.append(np)
        programs.append("arrays.py")
    site = next((folder / "env").rglob("site-packages"))
    for package in packages:
        (site / package.__name__).symlink_to(Path(str(package.__file__)).parent)
    for name in programs:
        (folder / name).write_text((PROGRAMS / name).read_text(encoding="utf-8"), encoding="utf-8")
    return folder


def found(folder: Path, *command: str) -> str:
    """What a type checker writes if it finds something."""
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""


def python(folder: Path) -> str:
    return str(next((folder / "env").rglob("python" if sys.platform != "win32" else "python.exe")))


def test_mypy(project: Path) -> None:
    programs = sorted(path.name for path in project.glob("*.py"))
    assert found(project, "mypy", "--strict", "--python-executable", python(project), *programs) == ""


def test_pyright(project: Path) -> None:
    pytest.importorskip("basedpyright")
    settings = {"include": ["*.py"], "typeCheckingMode": "strict"}
    (project / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    assert found(project, "basedpyright", "--pythonpath", python(project)) == ""
