"""The recipes of docs/corpus-engines.md, each as a program with several worker processes. `.ci/engines` runs them.

A program reads four Parquet files. Then the ids of every document are compared with those of `encode`, and what its
processes did is read from the log of `probe/sitecustomize.py`.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import ggtok
import numpy as np
import pytest

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/corpus-engines.md").read_text(encoding="utf-8")
TOKENIZER = ggtok.Tokenizer.builtin("spm")
NUM_FILES, NUM_ROWS = 4, 500
SECONDS = 240


def needs(package: str) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed: pip install 'ggtok[engines]', or run .ci/engines")


def blocks(heading: str) -> list[str]:
    """The programs below a heading of the page."""
    section = re.split(r"^##+ ", PAGE.split(f"# {heading}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]
    found = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found
    return found


class Shared:
    """The folder that the recipes call `/shared`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log"
        (folder / "corpus").mkdir()
        shutil.copy(Path(ggtok.__file__).parent / "vocabularies/spm.gguf", folder / "model.gguf")
        words = ["the", "quick", "brown", "fox", "isn't", "lazy", "and", "then", "some", "知之", "\n", "naïve", "</s>"]
        pick = random.Random(28)
        self.texts = [" ".join(pick.choices(words, k=pick.randrange(60))) for _ in range(NUM_FILES * NUM_ROWS)]
        for file, start in enumerate(range(0, len(self.texts), NUM_ROWS)):
            ids = pa.array(range(start, start + NUM_ROWS), pa.int64())
            table = pa.table({"id": ids, "text": self.texts[start : start + NUM_ROWS]})
            pq.write_table(table, folder / f"corpus/{file}.parquet", row_group_size=50)

    def run(self, program: str, *, succeeds: bool = True, **environment: str) -> str:
        """Runs a program, and returns what it wrote if it failed, as it should."""
        self.log.write_text("")
        path = self.folder / "recipe.py"
        path.write_text(program.replace("/shared/", f"{self.folder}/"), encoding="utf-8")
        known = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        places = [str(Path(__file__).parent / "probe"), *filter(None, [os.environ.get("PYTHONPATH")])]
        own = {"GGTOK_PROBE": str(self.log), "PYTHONPATH": os.pathsep.join(places), "PYSPARK_PYTHON": sys.executable}
        result = subprocess.run(
            [sys.executable, str(path)],
            env=known | own | environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        output = result.stdout + result.stderr
        assert (result.returncode == 0) is succeeds, output[-20_000:]
        return output

    def ids(self, text: str) -> list[int]:
        return [*TOKENIZER.encode(text), TOKENIZER.vocab.eos_id or 0]

    def check_table(self) -> pa.Table:
        """Every document is there once, with its text and its ids. Returns the table."""
        table = pq.read_table(self.folder / "tokens")
        assert sorted(table["id"].to_pylist()) == list(range(len(self.texts)))
        for row in table.to_pylist():
            text = self.texts[row["id"]]
            assert (row["text"], row["input_ids"]) == (text, self.ids(text))
        assert table.schema.field("input_ids").type.value_type == pa.int32()
        return table

    def check_processes(self, at_least: int, threads: int) -> None:
        """At least so many processes encoded, each of which opened the tokenizer once and took so many threads."""
        lines = [line.split() for line in self.log.read_text().splitlines()]
        busy = {process for process, what, *_ in lines if what == "batch"}
        assert len(busy) >= at_least
        opens = [process for process, what, *_ in lines if what == "open"]
        assert busy <= set(opens)
        assert len(opens) == len(set(opens))
        assert {number for _, what, *rest in lines for number in rest} == {str(threads)}


@pytest.fixture
def shared(tmp_path: Path) -> Shared:
    return Shared(tmp_path)


RAY = """import ray
ray.init(num_cpus=6, include_dashboard=False)
ray.data.DataContext.get_current().target_max_block_size = 20_000  # so that a small corpus has many blocks
"""


def test_ray(shared: Shared) -> None:
    needs("ray")
    (recipe,) = blocks("Ray Data")
    assert "num_cpus=1" in recipe
    shared.run(RAY + recipe.replace("num_cpus=1", "num_cpus=2"))
    shared.check_table()
    shared.check_processes(2, threads=2)


def test_ray_starts_again(shared: Shared) -> None:
    """The second run encodes what the first has not written."""
    needs("ray")
    program = RAY + blocks("Restart")[0] + blocks("Ray Data")[0]
    assert "the power is out" in shared.run(program, succeeds=False, GGTOK_FAIL_AFTER="25")
    first = {path.name for path in (shared.folder / "tokens").iterdir()}
    shared.run(program)
    kept = first & {path.name for path in (shared.folder / "tokens").iterdir()}
    assert kept  # except a file that the checkpoint does not know yet
    shared.check_table()
    shared.check_processes(1, threads=1)


def test_spark(shared: Shared) -> None:
    needs("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    (recipe,) = blocks("Spark")
    options = "--master local[4] --conf spark.task.cpus=2 --conf spark.ui.enabled=false pyspark-shell"
    shared.run(recipe, PYSPARK_SUBMIT_ARGS=options)
    table = shared.check_table()
    assert pa.types.is_list(table.schema.field("input_ids").type)
    shared.check_processes(2, threads=2)


def test_datatrove(shared: Shared) -> None:
    needs("datatrove")
    (recipe,) = blocks("datatrove")
    shared.run(recipe)
    found: list[list[int]] = []
    for path in sorted((shared.folder / "tokens").glob("*.ds")):
        ids, ends = np.fromfile(path, "<u2"), np.fromfile(f"{path}.index", "<u8")
        found += [part.tolist() for part in np.split(ids, ends[:-1])]
        assert ends[-1] == len(ids)
    # Files go to the two tasks in turn.
    texts = [self for task in range(2) for file in range(task, NUM_FILES, 2) for self in rows_of(shared, file)]
    assert found == [shared.ids(text) for text in texts if text]
    shared.check_processes(1, threads=1)  # a busy machine may give both tasks to one of the two


def rows_of(shared: Shared, file: int) -> list[str]:
    return shared.texts[file * NUM_ROWS : (file + 1) * NUM_ROWS]


def test_datasets(shared: Shared) -> None:
    needs("datasets")
    (recipe,) = blocks("datasets")
    shared.run(recipe, HF_HOME=str(shared.folder / "cache"), HF_HUB_OFFLINE="1")
    shared.check_table()
    shared.check_processes(2, threads=1)


def test_polars(shared: Shared) -> None:
    needs("polars")
    (recipe,) = blocks("Polars")
    shared.run(recipe)
    shared.check_table()
    shared.check_processes(1, threads=os.cpu_count() or 1)


def test_daft(shared: Shared) -> None:
    needs("daft")
    (recipe,) = blocks("Daft")
    shared.run(recipe, DAFT_ANALYTICS_ENABLED="0", DO_NOT_TRACK="true")
    shared.check_table()
    shared.check_processes(2, threads=1)


def test_every_recipe_is_tested() -> None:
    headings = re.findall(r"^##+ (.*?)\n+(?:(?!##).*\n)*?```python", PAGE, re.MULTILINE)
    assert headings == ["Ray Data", "Restart", "Spark", "datatrove", "datasets", "Polars", "Daft"]
