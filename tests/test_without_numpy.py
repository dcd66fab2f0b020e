"""Without numpy all of the API works, except what is a numpy array by its name."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
    import sys
    sys.modules["numpy"] = None
    import pickle, ggtok
    tok = ggtok.Tokenizer.builtin("bpe")
    batch = tok.encode_batch(["one text", "and another", ""])
    encoding = tok.encode_with_offsets("What is")
"""


def run(code: str) -> str:
    code = textwrap.dedent(PRELUDE) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_pruning() -> None:
    run("""
        smaller, ids = ggtok.prune(tok, ["one text"])
        assert type(ids) is memoryview and ids.format == "i" and len(ids) == 13000
        assert smaller.encode("one text") == [ids[id] for id in tok.encode("one text")]
    """)


def test_batches() -> None:
    run("""
        rows = [[6053, 7301], [6019, 7237], []]
        assert batch.tolist() == rows and len(batch) == 3
        row = batch[1]
        assert type(row) is memoryview and row.format == "i" and row.readonly
        assert row.tolist() == list(row) == rows[1] and row[0] == 6019 and row[1:].tolist() == [7237]
        assert [ids.tolist() for ids in batch] == rows and batch[-1].tolist() == []
        assert batch[1:].tolist() == rows[1:] and batch[::-1].tolist() == rows[::-1]
        assert pickle.loads(pickle.dumps(batch)) == batch == tok.encode_batch(iter(["one text", "and another", ""]))
        assert repr(batch) == "<ggtok.Batch of 3 texts, 4 tokens>"
        ids, offsets = batch.buffers()
        assert memoryview(ids).tolist() == [6053, 7301, 6019, 7237] and offsets.tolist() == [0, 2, 4, 4]
        ids, mask = batch.pad(3, side="left")
        assert ids.shape == mask.shape == (3, 3) and ids.format == "i" and mask.format == "?"
        assert ids.tolist() == [[12991, 6053, 7301], [12991, 6019, 7237], [12991] * 3]
        assert mask.tolist() == [[False, True, True]] * 2 + [[False] * 3] and ids[0, 2] == 7301
        assert batch.attention_mask.tolist() == [[True, True], [True, True], [False, False]]
        assert tok.encode_batch([]).pad()[0].tolist() == []
        assert tok.decode_batch(batch) == tok.decode_batch(batch.tolist()) == ["one text", "and another", ""]
        assert tok.decode_batch(batch[:1]) == [tok.decode(batch[0])] == ["one text"]
        assert tok.count_batch(["one text", ""]) == [2, 0]
    """)


def test_nanoarrow_needs_no_numpy() -> None:
    run("""
        import nanoarrow as na
        assert na.Array(batch).to_pylist() == batch.tolist()
        assert tok.encode_batch(na.Array(["one text", None], na.string())).null_count == 1
    """)


def test_all_else() -> None:
    run("""
        ids = tok.encode("What is LoRA?")
        assert tok.decode(ids) == tok.decode(iter(ids)) == "What is LoRA?" and tok.count("a") == 1
        assert encoding.tolist() == ([9713, 5981], [(0, 4), (4, 7)]) and encoding == encoding and len(encoding) == 2
        assert tok.vocab_size == len(tok.vocab.pieces) and tok.vocab.id_of_piece(b" is") == 5981
        assert tok.check() == [] and not ggtok.diff(tok, ggtok.Tokenizer.builtin("bpe"))
        assert pickle.loads(pickle.dumps(tok)) == tok
        Array = type("Array", (), {"dtype": "int32", "tolist": lambda self: [9713]})
        assert tok.decode(Array()) == tok.decode([9713]) == "What"
    """)


@pytest.mark.parametrize(
    "call", ["tok.encode_array('a')", "batch.ids", "batch.offsets", "encoding.ids", "encoding.offsets"]
)
def test_arrays_say_what_to_install(call: str) -> None:
    code = f"""
        for _ in range(2):
            try:
                {call}
            except ggtok.DependencyError as error:
                assert isinstance(error, ggtok.GgtokError) and isinstance(error, ImportError)
                assert isinstance(error.__cause__, ModuleNotFoundError)
                print(error)
    """
    assert run(code).splitlines() == ["arrays need numpy, which is not installed: pip install numpy"] * 2


def test_pyarrow_is_not_installed() -> None:
    code = """
        sys.modules["pyarrow"] = None
        try:
            batch.to_arrow()
        except ggtok.DependencyError as error:
            print(error)
    """
    assert run(code) == "to_arrow needs pyarrow, which is not installed: pip install pyarrow\n"


def test_a_broken_numpy_is_reported() -> None:
    code = """
        del sys.modules["numpy"]
        class Broken:
            def find_spec(self, name, *_):
                if name == "numpy":
                    raise ImportError("broken")
        sys.meta_path.insert(0, Broken())
        for call in (lambda: batch[0], batch.pad, lambda: batch.ids, lambda: tok.encode_array("a")):
            try:
                call()
            except ggtok.DependencyError as error:
                print(error)
    """
    assert run(code).splitlines() == ["arrays need numpy, which cannot be imported"] * 4


def test_nothing_imports_numpy_before_it_is_needed() -> None:
    code = """
        del sys.modules["numpy"]
        tok.decode_batch(batch), batch.tolist(), batch[1:], batch == batch, repr(batch), tok.count_batch(["a"])
        print("numpy" in sys.modules, len(batch[0]), "numpy" in sys.modules)
    """
    assert run(code) == "False 2 True\n"
