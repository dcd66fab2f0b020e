"""Every entry point with every hostile argument: an ordinary exception comes out or a result, never a panic.

Entry points and their parameters are found by introspection, so a new one is covered. A parameter with a name that this
file does not know fails the test.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import inspect
import io
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import ggtok
import ggtok.trace
import pytest
from ggtok import _ggtok
from ggtok.lab.train import DEFAULTS, _core_settings
from hypothesis import settings
from oracles.gguf_vocab import Vocab
from oracles.spelling import BYTE_TOKENS


class HostileError(Exception):
    """What hostile objects raise."""


EXPECTED = (
    *(TypeError, ValueError, LookupError, OverflowError, AttributeError, OSError, EOFError, HostileError),
    *(BufferError, RuntimeError),  # of numpy's `__dlpack__`
    NotImplementedError,  # of iterating over a memoryview with two dimensions
    ggtok.DependencyError,
)
"""A panic would be a `PanicException`, which is not even an `Exception`."""


def ending(file: Any) -> Any:
    """A file that ends: some hostile objects can be read for ever."""
    if not hasattr(file, "read"):
        return file
    ended = io.BytesIO()
    reads = iter([file.read, file.read, ended.read])
    return type("Ending", (), {"read": lambda _, size: next(reads)(size)})()


TOKENIZER = ggtok.Tokenizer.builtin("spm")
TOKEN = TOKENIZER.vocab[7]
SPECIAL_TOKENS = [b"<unk>", b"<s>", b"</s>"]
METADATA: Any = _ggtok.Metadata.read(
    Vocab("llama", [*SPECIAL_TOKENS, b"\xe2\x96\x81", b"a"], [2, 3, 3, 1, 1], merges=[b"a b"]).gguf(), None, {}
)
CORE = _ggtok.Tokenizer(METADATA)
TINY = ggtok.Tokenizer.from_gguf(
    Vocab("llama", [*SPECIAL_TOKENS, b"a", *BYTE_TOKENS], [2, 3, 3, 1] + [6] * 256, [0.0] * 260).gguf()
)
ENCODING = TOKENIZER.encode_with_offsets("What is")
BODY = {"messages": [{"role": "user", "content": "a"}]}
CHAT = _ggtok.ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}", "mine")
FLAT = _ggtok.encode_batch(CORE, ["a", "a a"], 1, None, "right", False, False, False, None)
EVALUATION = ggtok.evaluate(TINY, ["a"])
TRAINER: dict[str, Any] = {"vocab_size": 300, "special_tokens": [("<s>", 3)], "threads": 2}


def settings_of(kind: str) -> dict[str, Any]:
    """What `ggtok.train` passes to a trainer."""
    return TRAINER | _core_settings(kind, DEFAULTS[kind])


def trainer(of: str, **changes: object) -> _ggtok.Trainer:
    return _ggtok.Trainer(of, settings_of(of) | changes, None, None)


SUBJECTS: dict[str, Callable[[], Any]] = {
    "": lambda: ggtok,
    "_ggtok": lambda: _ggtok,
    "_ggtok.Tokenizer": lambda: CORE,
    "_ggtok.Encoding": lambda: ENCODING,
    "_ggtok.StreamDecoder": lambda: CORE.decoder(),
    "_ggtok.StreamEncoder": lambda: CORE.encoder(),
    "_ggtok.Metadata": lambda: METADATA,
    "_ggtok.Array": lambda: METADATA.get("tokenizer.ggml.tokens"),
    "_ggtok.FlatBatch": lambda: FLAT,
    "_ggtok.Buffer": lambda: FLAT.ids(),
    "_ggtok.RawTrace": lambda: _ggtok.explain(CORE, "a a", True, True, True),
    "_ggtok.Trainer": lambda: trainer("bpe"),
    "_ggtok.ChatTemplate": lambda: CHAT,
    "_ggtok.Rendering": lambda: CHAT.render(BODY),
    "Tokenizer": lambda: TINY,
    "Vocab": lambda: TOKENIZER.vocab,
    "Batch": lambda: TOKENIZER.encode_batch(["a"]),
    "Trace": lambda: TOKENIZER.explain("What is"),
    "Evaluation": lambda: EVALUATION,
    "Score": lambda: EVALUATION.scores[0],
}
"""Where the entry points are looked up: a fresh object where a call changes it."""

SPECIAL_CALLS: dict[str, Callable[..., object]] = {
    "_ggtok.Tokenizer.__new__": lambda metadata: _ggtok.Tokenizer(metadata),
    "_ggtok.FlatBatch.__new__": lambda ids, offsets, nulls: _ggtok.FlatBatch(ids, offsets, nulls),
    "_ggtok.ChatTemplate.__new__": lambda source, name: _ggtok.ChatTemplate(source, name),
    "_ggtok.Trainer.__new__": lambda kind, settings, memory: _ggtok.Trainer(kind, settings, memory, None),
    "_ggtok.Buffer.__dlpack__": lambda stream, max_version, dl_device, copy: FLAT.ids().__dlpack__(
        stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
    ),
    "_ggtok.Buffer.__iter__": lambda: list(FLAT.ids()),
    "_ggtok.Buffer.__buffer__": lambda: memoryview(FLAT.ids()),  # type: ignore[arg-type, unused-ignore]
    "Tokenizer.from_sentencepiece": lambda source, vocab_size: ggtok.Tokenizer.from_sentencepiece(
        ending(source), vocab_size=vocab_size
    ),
    "Tokenizer.from_tokenizers_json": lambda source, config, pre, vocab_size: ggtok.Tokenizer.from_tokenizers_json(
        ending(source), config=ending(config), pre=pre, vocab_size=vocab_size
    ),
    "Tokenizer.count_file": lambda file, add_special: TOKENIZER.count_file(ending(file), add_special=add_special),
    "Tokenizer.encode_infill": ggtok.Tokenizer.builtin("bpe").encode_infill,
    "Tokenizer.n_best": ggtok.Tokenizer.builtin("unigram").n_best,
    "Tokenizer.trim_messages": lambda messages, max_tokens, keep: TINY.trim_messages(
        messages, max_tokens, keep=keep, template="chatml"
    ),
}
PUBLIC = (
    *("train", "extend", "replaced", "diff", "evaluate", "prune"),
    *("Evaluation.to_dicts", "Evaluation.__str__", "Evaluation.to_svg"),
)
RATES = ("bytes_per_token", "tokens_per_word", "unknown_rate", "byte_fallback_rate", "vocabulary_use")

VALUES: dict[str, Any] = {
    **dict.fromkeys(("add_special", "parse_special", "continues", "special", "remove_special", "left"), True),
    **dict.fromkeys(("unparse_special", "clean_spaces", "return_spans", "add_generation_prompt", "is_last"), True),
    **dict.fromkeys(("strip", "overwrite", "raw", "to_numpy", "continue_final_message", "trust"), False),
    **dict.fromkeys(("text", "argument", "query", "piece", "name", "template_text", "pre", "chat_template"), "a"),
    **dict.fromkeys(("context", "continuation"), "a"),
    **dict.fromkeys(("target", "file"), io.BytesIO()),
    **dict.fromkeys(("tokenizer", "first", "second"), CORE),
    **dict.fromkeys(("value", "start", "index"), 0),
    **dict.fromkeys(("length", "max_tokens", "last"), 9),
    **dict.fromkeys(("stream", "copy", "progress", "tsv", "template", "width", "reference", "offline"), None),
    "texts": ["a b", b"b"],
    "parts": [("What is", True), (b" LoRA?", False)],
    "unit": "char",
    "llama_cpp": "b9538",
    "ids": [1, 3],
    "prompt_ids": [1, 3],
    "batch": [[1]],
    "errors": "replace",
    "stop": ["a", b"b"],
    "id": 3,
    "threads": 2,
    "overlap": 1,
    "boundaries": ["word"],
    "side": "right",
    "num_bytes": 1 << 20,
    **dict.fromkeys(("data", "source"), METADATA.data),
    "config": {"bos_token": "a"},
    "vocab_size": 4,
    "total": len(METADATA.data),
    "prefix": b"a",
    "overrides": {"general.name": "x"},
    "metadata": {"general.url": "a"},
    "key": "general.name",
    "max_version": (1, 0),
    "dl_device": (1, 0),
    "len": 2,
    "step": 1,
    "end": 1,
    "multiple_of": 2,
    "requested_schema": FLAT.arrow_schema(),
    "words": ["a", b"ab"],
    "queries": ["abc"],
    "charsmap": b"",
    "match": "prefix",
    "block": b"a b",
    "path": "page.html",
    "folder": "transformers",
    "add_tokens": ["<a>"],
    "add_control_tokens": ["<b>"],
    "flags": {"add_bos": True},
    "messages": [{"role": "user", "content": "a"}],
    "tools": [{"type": "function", "function": {"name": "a"}}],
    "documents": [{"title": "a"}],
    "tables": ["queue"],
    "max_rows": 9,
    "colors": True,
    "offsets": bytes(16),
    "nulls": b"\1\0",
    "a": TINY,
    "b": TINY,
    "encoding": CORE.encode_with_offsets("a"),
    "column": "pieces",
    "lines": b'{"a": "b", "c": 1}\n',
    "first_row": 1,
    "field": "a",
    "is_raw": False,
    **{
        "mask": "turn",
        "media_marker": "<m>",
        "warnings": [],
        "refuse_user_defined": True,
        "body": BODY,
        "closes": True,
    },
    **{"base": TINY, "extended": TINY, "num_tokens": 1},
    **{"bos": "<s>", "eos": "</s>", "now": (0, 0, "UTC"), "place": (0, 1), "begins": True, "ends": True, "at": 0},
    **{"spans": [(0, 1)]},
    **{"document": "b", "keep": 1},
    **{"alpha": None, "dropout": 0.5, "seed": 1, "setting": (None, 0.5, 1), "n": 2, "told": {0}},
    **{"base": TINY, "used": [3], "counts": [1], "count": 1, "worst": 1},
    **{"ids_a": [3], "tok_a": TINY, "ids_b": [3], "tok_b": TINY},
    **{"suffix": "b", "prompt": "c", "extra_files": {"a.py": "b"}, "spm_infill": True},
    **{"n_ctx": 4096, "n_batch": 2048, "n_predict": 8},
    "columns": ["c"],
    "flawed": True,
    "regex": "a+",
    "classes": vars(ggtok.trace) | {"Trace": ggtok.Trace},
}
"""An argument by the name of its parameter."""

OTHERS: dict[str, dict[str, Any]] = {
    "_ggtok.Rendering.shared": {"other": CHAT.render(BODY)},
    "_ggtok.ChatTemplate.__new__": {"source": "a", "name": "b"},
    "_ggtok._encoding": {"ids": bytes(4), "words": bytes(4)},
    "_ggtok.id_of_text": {"text": b"a"},
    "_ggtok.n_best": {"tokenizer": ggtok.Tokenizer.builtin("unigram")},
    "_ggtok.Tokenizer.decoder": {"text": False},
    "_ggtok.id_of_piece": {"piece": b"a"},
    "_ggtok.FlatBatch.__new__": {"ids": bytes(8), "offsets": struct.pack("<3q", 0, 0, 2)},
    "_ggtok.Tokenizer.__new__": {"metadata": METADATA},
    "_ggtok.Buffer.__getitem__": {"key": 1},
    "_ggtok.compile_charsmap": {"name": "identity"},
    "_ggtok.Trainer.__new__": {"kind": "bpe", "settings": settings_of("bpe"), "memory": None},
    "_ggtok.Trainer.push": {"first": 0},
    "_ggtok.json_lines": {"lines": (b"a", b"b\n", 2), "nulls": "skip"},
    "_ggtok.text_lines": {"lines": (b"a", b"b\n", 2)},
    "Tokenizer.builtin": {"name": "spm"},
    "Tokenizer.from_model": {"name": str(Path(ggtok.__file__).parent / "vocabularies/spm.gguf"), "offline": True},
    "Tokenizer.from_sentencepiece": {"source": b"\x0a\x03\x0a\x01a"},
    "Tokenizer.from_tokenizers_json": {
        "source": b'{"model": {"type": "WordPiece", "vocab": {"a": 0}}}',
        "pre": "gpt-2",
    },
    "Tokenizer.split": {"prefix": "a"},
    "Tokenizer.split_batch": {"texts": ["a b"], "prefix": "a"},
    "Tokenizer.encode_infill": {"prefix": "a"},
    "Tokenizer.trim_messages": {"max_tokens": 99},
    "Tokenizer.to_gguf": {"special": {"bos": 1}, "tokens": [{"id": 3, "score": 1.0}]},
    "prune": {"files": None},
    "Vocab.index": {"value": TOKEN, "stop": 9},
    "Vocab.count": {"value": TOKEN},
    "train": {
        **{"texts": ["a b a b"], "files": None, "kind": "bpe", "vocab_size": 258, "special": {"eos": "</s>"}},
        **{"control_tokens": ["<a>"], "user_defined_tokens": ["<b>"], "unused_tokens": ["<c>"], "memory": 1 << 20},
    },
    "extend": {"texts": ["a b a b"], "files": None},
    "evaluate": {"tokenizers": [TINY], "texts": {"a": "a b", "b": ["a"]}, "files": None, "reference": "a"},
}
"""Arguments of calls in which a name means something else."""


def arguments(name: str) -> tuple[Callable[..., object], dict[str, Any]]:
    """What calls an entry point, and its arguments in order."""
    owner, _, member = name.rpartition(".")
    subject = SUBJECTS[owner]()
    kind = type(inspect.getattr_static(subject, member, None)).__name__
    if name not in SPECIAL_CALLS and kind in ("property", "cached_property", "getset_descriptor", "member_descriptor"):
        return lambda: getattr(SUBJECTS[owner](), member), {}
    found = SPECIAL_CALLS.get(name) or getattr(subject, member)
    parameters = [
        each
        for each in inspect.signature(found).parameters.values()
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    by_name = VALUES | OTHERS.get(name, {})
    assert {each.name for each in parameters} <= by_name.keys(), f"{name} has a parameter without an argument"

    def call(*positional: object, **named: object) -> object:
        function = SPECIAL_CALLS.get(name) or getattr(SUBJECTS[owner](), member)
        if parameters and parameters[0].kind == parameters[0].POSITIONAL_ONLY:
            return function(*positional, *named.values())
        return function(*positional, **named)

    return call, {each.name: by_name[each.name] for each in parameters}


def raising(*_: object, **__: object) -> Any:
    raise HostileError


def lying(name: str, value: object) -> Any:
    """An object whose special method `name` returns `value`, or raises it."""

    def method(*_: object, **__: object) -> object:
        if value is HostileError:
            raise HostileError
        return value

    return type("Lying", (), {name: method})()


class Emptying(list[Any]):
    """A list with an element that empties it when it is read as an id."""

    def __init__(self) -> None:
        super().__init__([1, self, 2, 3])

    def __index__(self) -> int:
        self.clear()
        return 1


class LongList(list[Any]):
    def __len__(self) -> int:
        return 2**62


class Text(str):
    """A text with hostile methods."""

    __slots__ = ()
    encode = __len__ = __str__ = __iter__ = raising


class Array:
    """It has a dtype, but is not an array."""

    dtype = "int32"

    def __init__(self, items: object) -> None:
        self.items = items

    def tolist(self) -> object:
        return self.items


def generator(*items: object) -> Iterator[object]:
    yield from items
    raise HostileError


def hostile() -> list[Any]:
    """Fresh objects, because some can be used up."""
    recursive: list[Any] = []
    recursive.append(recursive)
    released = memoryview(b"abc")
    released.release()
    values: list[Any] = [None, True, 0, 1, -1, 2**31, -(2**31) - 1, 2**63, 2**64, -(2**70), 10**5000]
    values += [1.5, float("nan"), float("-inf"), 1j, object(), object, raising, Ellipsis, NotImplemented]
    values += ["", "a", "\0", "\ud800", "\udcff\ud83d", "a" * 70_000, Text("a"), Text("\udfff"), b"", b"\xff\xfe\0"]
    values += [bytearray(b"ab"), memoryview(b"abcdef")[::2], memoryview(b"abcd").cast("I"), memoryview(b"ab")[::-1]]
    values += [memoryview(b"abcd").cast("B", (2, 2)), released, array.array("i", [1, 2]), array.array("d", [0.5])]
    values += [(ctypes.c_ubyte * 2)(), (ctypes.c_int * 2)(), (ctypes.c_char * 2)(), io.BytesIO(b"x"), io.StringIO("x")]
    values += [[None], ["a", 1], [1, "a"], [b"a", None], [[1]], recursive, (1, 2.5), (2**80,), [10**5000], Emptying()]
    values += [LongList([1]), LongList(["a"]), {}, {"a": 1}, {1: object()}, {"bos": 2**40, "eos": -1}, {"add_bos": 7}]
    values += [{"general.name": "\ud800"}, {"tokenizer.ggml.tokens": 1}, {"general.name": None}, {"a"}, range(10**4)]
    values += [
        range(3),
        iter([1, "a"]),
        generator(),
        generator("a", b"b"),
        generator(1, 2),
        slice(None),
        slice("a", "b"),
    ]
    for name in ("__index__", "__iter__", "__len__", "__bool__", "__str__", "__repr__", "__fspath__", "read", "__eq__"):
        values += [lying(name, value) for value in (HostileError, None, -1, 2**70, "a", b"a", object())]
    values += [lying("__getitem__", HostileError), lying("__buffer__", HostileError), lying("__buffer__", 7)]
    values += [Array(items) for items in (None, [1], ["a"], [2**70], HostileError)]
    values += [TOKEN, TOKEN._replace(id=2**70), ggtok.Token("a", 1, None, None)]  # type: ignore[arg-type]
    try:
        import numpy as np
    except ImportError:
        return values
    types = [*np.typecodes["All"].replace("O", ""), "S0", "U2", "V3", ">i4", "<u2"]
    values += [np.zeros(2, code) for code in types] + [np.zeros((2, 2), "i4"), np.zeros(4, "i4")[::-2], np.int32(1)]
    values += [
        np.array([None, "a"], object),
        np.array(["a", "b"]),
        np.array(5),
        np.zeros(0, "i4"),
        np.zeros(2, "f4, i4"),
    ]
    values += [
        np.array([1, 2**31], "u4"),
        np.array([2**63], "u8"),
        np.frombuffer(b"abc", "u1"),
        np.zeros((1,) * 30, "u1"),
    ]
    return values


def entry_points() -> set[str]:
    """What the built module has, and what is public in Python on top of it."""
    found = set()
    for name, thing in vars(_ggtok).items():
        if isinstance(thing, type):
            found |= {
                f"_ggtok.{name}.{member}" for member, value in vars(thing).items() if callable_or_getter(member, value)
            }
        elif callable(thing):
            found.add(f"_ggtok.{name}")
    for kind in (ggtok.Tokenizer, ggtok.Vocab, ggtok.Batch, ggtok.Trace):
        for member in dir(kind):
            inherited = hasattr(_ggtok.Tokenizer, member) and kind is ggtok.Tokenizer
            plain = kind in (ggtok.Vocab, ggtok.Trace) and type(getattr(kind, member)).__name__ == "member_descriptor"
            if not member.startswith("_") and not inherited and not plain:
                found.add(f"{kind.__name__}.{member}")
    return found | {*PUBLIC, *(f"Score.{name}" for name in RATES), "Batch.__getitem__", "Batch.__arrow_c_array__"}


def callable_or_getter(name: str, value: object) -> bool:
    return name != "__class_getitem__" and (callable(value) or type(value).__name__ == "getset_descriptor")


def calls(every: int) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Every entry point as it should be called, and with each hostile object, or every n-th, for each argument."""
    for number, name in enumerate(sorted(entry_points())):
        function, right = arguments(name)
        yield name, "as it should be", partial(function, **right)
        yield name, "too many arguments", partial(function, *range(9))
        for argument in right:
            for index, value in enumerate(hostile()):
                if (index + number) % every == 0:
                    yield name, f"{argument} = hostile()[{index}]", partial(function, **right | {argument: value})
    for kind in DEFAULTS:
        for setting in settings_of(kind):
            for index, value in list(enumerate(hostile()))[::every]:
                what = f"{setting} = hostile()[{index}]"
                yield f"trainer of {kind}", what, partial(trainer, kind, **{setting: value})


def call(name: str, what: str, function: Callable[[], object]) -> str:
    """The name of the exception; one that is not expected fails the test."""
    try:
        function()
    except EXPECTED as error:
        return type(error).__name__
    except BaseException as error:
        raise AssertionError(f"{name}, {what}: {type(error).__name__}: {error}") from error
    return "none"


def walk(every: int = 1) -> dict[str, int]:
    """How often each exception came. Files are written to a folder that is removed."""
    limit = _ggtok.cache_limit()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        seen = Counter(call(*each) for each in calls(every))
    _ggtok.set_cache_limit(limit)
    assert TOKENIZER.encode("What is LoRA?") == ggtok.Tokenizer.builtin("spm").encode("What is LoRA?")
    return seen


REFUSED = {
    "train",
    "Tokenizer.to_tiktoken",
    "_ggtok.Array.tobytes",
    "_ggtok.Trainer.finish",
    "_ggtok.Trainer.finish_counting",
}
"""What these objects cannot do; for `train` the vocabulary is too small, because the walk calls it often."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(entry_points() - REFUSED))
def test_the_right_arguments_are_taken(name: str, tmp_path: Path) -> None:
    """Otherwise the walk would get no further than the signature."""
    function, right = arguments(name)
    with contextlib.chdir(tmp_path):
        function(**right)


@pytest.mark.parametrize("kind", DEFAULTS)
def test_the_settings_of_a_trainer_are_taken(kind: str) -> None:
    trainer(kind)


@pytest.mark.filterwarnings("ignore")
def test_no_panic() -> None:
    """With all objects in the weekly workflow, otherwise with every second one, others for each entry point."""
    seen = walk(1 if settings.get_current_profile_name() == "thorough" else 2)
    assert seen["none"] > 500
    assert {"TypeError", "HostileError", "TokenIndexError"} <= set(seen)
    assert "DependencyError" not in seen


def test_no_panic_without_numpy() -> None:
    """Few calls know of numpy, so every fifth object is enough."""
    code = "import sys; sys.modules['numpy'] = None; import test_entry_points; print(test_entry_points.walk(5))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "DependencyError" in done.stdout


def test_a_panic_is_a_typed_error() -> None:
    """A panic that Python can provoke: the numpy crate finds a number in the place of numpy's functions."""
    code = """
import ggtok, numpy as np
core = getattr(np, "_core", None) or np.core
core.multiarray._ARRAY_API = 7
tok = ggtok.Tokenizer.builtin("bpe")
for _ in range(2):
    try:
        tok.encode_array("a")
    except ggtok.GgtokError as error:
        print(error)
print(tok.decode([9713]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second, text = done.stdout.splitlines()
    assert first == second
    assert first.startswith("this is a bug in ggtok, please report it: ")
    assert text == "What"
