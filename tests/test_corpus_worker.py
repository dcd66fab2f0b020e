"""`TableEncoder`, which travels to the workers of an engine, and the module `ggtok.corpus`."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import ggtok
import polars
import pyarrow as pa
import pytest
from conftest import BUILTIN, TOKENIZERS, VOCABULARIES
from ggtok.corpus import TableEncoder, worker
from ggtok.errors import CorpusError
from ggtok.tokenizer.numbers import num_threads

TEXTS = ["one text", None, "What is LoRA?"]
BPE, SPM = TOKENIZERS["bpe"], TOKENIZERS["spm"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copy(VOCABULARIES / "bpe.gguf", tmp_path / "model.gguf"))


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are opened in this process."""
    paths: list[str] = []
    from_gguf = ggtok.Tokenizer.from_gguf

    def open(source: Any) -> ggtok.Tokenizer:
        paths.append(source)
        return from_gguf(source)

    monkeypatch.setattr(ggtok.Tokenizer, "from_gguf", open)
    return paths


def ids(texts: list[str | None], tokenizer: ggtok.Tokenizer = BPE) -> list[list[int] | None]:
    return [None if text is None else tokenizer.encode(text) for text in texts]


def test_pickled_as_path_and_settings(model: Path) -> None:
    encoder = TableEncoder(model, "body", append_eos=True, max_length=3, too_long="drop", ids="tokens")
    table = pa.table({"body": TEXTS})
    wanted = encoder(table)
    assert wanted["tokens"].to_pylist() == [[*BPE.encode("one text"), BPE.vocab.eos_id], None]
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        data = pickle.dumps(encoder, protocol)
        assert len(data) < 400 + len(str(model))
        again = pickle.loads(data)
        assert again(table).equals(wanted)
        assert again.tokenizer is encoder.tokenizer
    assert repr(encoder) == f"<ggtok.corpus.TableEncoder {str(model)!r}, column 'body'>"


def test_every_option_is_that_of_encode_table() -> None:
    options: list[dict[str, Any]] = [
        *({"add_special": False}, {"parse_special": True}, {"append_eos": True}, {"max_length": 2}),
        *({"max_length": 2, "too_long": "drop"}, {"ids": "tokens"}, {"threads": 2}),
    ]
    table = pa.table({"text": ["<s> one text", "a"]})
    for each in options:
        wanted = ggtok.corpus.encode_table(table, SPM, **each)
        assert pickle.loads(pickle.dumps(TableEncoder("spm", **each)))(table).equals(wanted)


@pytest.mark.parametrize("name", BUILTIN)
def test_embedded_vocabularies(name: str) -> None:
    assert TableEncoder(name).tokenizer == TOKENIZERS[name]


def test_a_file_with_the_name_of_an_embedded_vocabulary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(VOCABULARIES / "spm.gguf", "bpe")
    assert TableEncoder("bpe").tokenizer == BPE
    assert TableEncoder(Path("bpe")).tokenizer == TableEncoder("./bpe").tokenizer == SPM


def test_opened_once_in_a_process(model: Path, opens: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    encoders = [TableEncoder(model), pickle.loads(pickle.dumps(TableEncoder(model, "body")))]
    monkeypatch.chdir(model.parent)
    encoders.append(TableEncoder("model.gguf"))
    start = threading.Barrier(6)
    found: list[object] = []

    def use(encoder: TableEncoder) -> None:
        start.wait()
        found.append(encoder.tokenizer)

    threads = [threading.Thread(target=use, args=(encoder,)) for encoder in encoders * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opens == [str(model)]
    assert all(tokenizer is found[0] for tokenizer in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*use of fork")
def test_a_process_that_is_forked_while_a_tokenizer_is_opened(model: Path) -> None:
    with worker._LOCK:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(20)
            os._exit(0 if TableEncoder(model).tokenizer == BPE else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_file_that_changes_is_opened_again(model: Path, opens: list[str]) -> None:
    encoder = TableEncoder(model)
    assert encoder.tokenizer == BPE
    shutil.copy(VOCABULARIES / "spm.gguf", model)
    assert encoder.tokenizer == SPM
    os.utime(model, (1, 1))
    assert encoder.tokenizer == SPM
    assert opens == [str(model)] * 3
    assert list(worker._OPENED).count(str(model)) == 1


def test_a_file_that_a_worker_does_not_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for model in ("absent.gguf", tmp_path / "absent.gguf"):
        encoder = TableEncoder(model)
        with pytest.raises(CorpusError, match=r"no such file on the machine .*every worker needs") as caught:
            encoder(pa.table({"text": ["a"]}))
        again = pickle.loads(pickle.dumps(caught.value))
        assert again.source == caught.value.source == str(tmp_path / "absent.gguf")
        assert str(again) == str(caught.value)


def test_a_worker_takes_the_threads_that_it_is_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int | None] = []

    def watched(threads: int | None) -> int:
        taken.append(threads)
        return num_threads(threads)

    monkeypatch.setattr("ggtok.corpus.table.num_threads", watched)
    table = pa.table({"text": ["a"]})
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    TableEncoder("bpe")(table)
    ggtok.corpus.encode_table(table, BPE)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    TableEncoder("bpe")(table)
    TableEncoder("bpe", threads=2)(table)
    ggtok.corpus.encode_table(table, BPE)
    assert taken == [1, None, 3, 2, 3]


def test_tables_stay_what_they_are() -> None:
    encoder = TableEncoder("bpe", max_length=5, too_long="drop")
    batch, wanted = pa.RecordBatch.from_pydict({"text": TEXTS}), ids(TEXTS[:2])
    for table in (pa.table(batch), batch):
        assert type(encoder(table)) is type(table)
        assert encoder(table)["input_ids"].to_pylist() == wanted
    frame = encoder(polars.DataFrame({"text": TEXTS}))
    assert type(frame) is polars.DataFrame
    assert frame.to_dict(as_series=False) == {"text": TEXTS[:2], "input_ids": wanted}
    long = encoder(batch.slice(2))
    assert (type(long), long.num_rows, long.schema.names) == (pa.RecordBatch, 0, ["text", "input_ids"])
    with pytest.raises(TypeError, match="expected an Arrow table or record batch, not dict"):
        encoder({"text": TEXTS})


def test_each() -> None:
    batches = [pa.RecordBatch.from_pydict({"text": TEXTS[n:]}) for n in range(3)]
    result = list(TableEncoder("bpe").each(iter([*batches, batches[0].slice(0, 0)])))
    assert [type(batch) for batch in result] == [pa.RecordBatch] * 3
    assert [batch["input_ids"].to_pylist() for batch in result] == [ids(TEXTS[n:]) for n in range(3)]


def test_batches_whose_ids_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ggtok.corpus.lists.MOST_IDS", 6)
    batch = pa.RecordBatch.from_pydict({"text": ["one text"] * 5})
    assert [each.num_rows for each in TableEncoder("bpe").each([batch])] == [3, 2]
    assert TableEncoder("bpe")(pa.table(batch)).num_rows == 5
    with pytest.raises(CorpusError, match="a record batch cannot hold that many tokens"):
        TableEncoder("bpe")(batch)


def test_bad_arguments() -> None:
    for model in (None, 3, BPE, b"bpe"):
        with pytest.raises(TypeError, match="model must be a path or the name of a vocabulary, not "):
            TableEncoder(model)  # type: ignore[arg-type]
    with pytest.raises(CorpusError, match="max_length must be at least 1, not 0"):
        TableEncoder("bpe", max_length=0)


# The module


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_module_is_imported_when_it_is_used() -> None:
    heavy = "{'numpy', 'pyarrow', 'jinja2', 'ggtok.corpus'}"
    code = f"import sys, ggtok; print(sorted({heavy} & sys.modules.keys())); ggtok.corpus.TableEncoder('bpe')"
    code += f"; import ggtok.corpus; print(sorted({heavy} & sys.modules.keys()))"
    assert run(code).splitlines() == ["[]", "['ggtok.corpus']"]
    assert "corpus" in dir(ggtok)


@pytest.mark.parametrize("package", ["pyarrow", "numpy"])
def test_without_a_package(package: str) -> None:
    code = f"""import sys
sys.modules[{package!r}] = None
import ggtok
encoder = ggtok.corpus.TableEncoder("bpe")
for call in (lambda: encoder(None), lambda: ggtok.corpus.encode_table(None, encoder.tokenizer)):
    try:
        call()
    except ggtok.DependencyError as error:
        print(error)
"""
    problem = f"ggtok.corpus needs {package}, which is not installed: pip install 'ggtok[corpus]'"
    assert run(code).splitlines() == [problem] * 2


def test_build_without_xxhash(tmp_path: Path) -> None:
    """Only what writes or checks a corpus needs it, and says so before it begins."""
    text = tmp_path / "in.txt"
    text.write_text("What is LoRA?")
    call = f"ggtok.corpus.build([{str(text)!r}], {str(tmp_path / 'out')!r}, tokenizer='bpe', format='flat')"
    code = f"""import sys
sys.modules["xxhash"] = None
import ggtok, pyarrow
ggtok.corpus.TableEncoder("bpe")(pyarrow.table({{"text": ["a"]}}))
try:
    {call}
except ggtok.DependencyError as error:
    print(error)
"""
    assert run(code) == "ggtok.corpus needs xxhash, which is not installed: pip install 'ggtok[corpus]'"
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]
