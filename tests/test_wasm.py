"""The JavaScript package in node against the wheel: the same ids, spans, texts, traces, errors and messages.

`python scripts/build_wasm.py` builds the package, and `.ci/playground` runs these tests. `GGTOK_WASM` names its folder
(default: `target/wasm/ggtok`). Without the package or without node they are skipped.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import ggtok
import pytest
from conftest import SHARED, TOKENIZERS, VOCABULARIES, shared_files
from ggtok import Tokenizer, _ggtok
from hypothesis import given
from hypothesis import strategies as st
from oracles import conformance

ROOT = Path(__file__).parents[1]
PACKAGE = Path(os.environ.get("GGTOK_WASM") or ROOT / "target/wasm/ggtok").resolve()
NODE, TSC = shutil.which("node"), shutil.which("tsc")
pytestmark = [
    pytest.mark.skipif(not (PACKAGE / "package.json").exists(), reason=f"no {PACKAGE}: scripts/build_wasm.py makes it"),
    pytest.mark.skipif(NODE is None, reason="node is not installed"),
    pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning"),
]

TEXTS = (
    *("", " ", "Hello world", "  two  spaces\n\n\tand lines\r\n", "h\u00e9llo w\u00f6rld \ufb01 \u2167", "\ufeffBOM"),
    *(
        "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c\u3002",
        "\U0001f600\U0001f469\u200d\U0001f467 e\u0301",
        "\ud800a\udc00",
    ),
    *("<s>a</s> <|im_end|> [CLS]", "x = 3.14159 + 1000000", "'S I'll\u00a0DON'T", "a" * 50),
)
MEMORY = 1 << 32
"""The most that WebAssembly can address."""


class Engine:
    """A node process that makes calls."""

    def __init__(self) -> None:
        command = [str(NODE), str(ROOT / "tests/wasm/driver.mjs"), str(PACKAGE)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, encoding="utf-8")
        self.call("init")

    def ask(self, steps: list[list[Any]]) -> list[Any]:
        """The answers to some steps."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(steps, default=as_json) + "\n")
        self.process.stdin.flush()
        answers: list[Any] = json.loads(self.process.stdout.readline(), object_hook=from_json)
        return answers

    def call(self, *step: Any) -> Any:
        """The answer to one step, whose target is the package."""
        return self.ask([["package", *step]])[0]

    def open(self, data: bytes) -> int:
        """The number of a new tokenizer."""
        number: int = self.call("fromBytes", data)
        return number

    def close(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(10) == 0


def as_json(data: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(data).decode()}


def from_json(value: dict[str, Any]) -> Any:
    return base64.b64decode(value["base64"]) if value.keys() == {"base64"} else value


def failure(error: Exception) -> dict[str, Any]:
    """What an error of the wheel is in JavaScript."""
    names = {"key", "offset", "expected", "found", "nearest", "template", "line", "column", "field"}
    details = {name: value for name, value in vars(error).items() if name in names and value not in (None, ())}
    if isinstance(error, ggtok.UnsupportedError):
        details["unknown"] = error.name
    return {"error": type(error).__name__, "message": str(error), "details": details}


def head(name: str) -> bytes:
    return (VOCABULARIES / f"{name}.gguf").read_bytes()


def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    """What a call of the wheel returns, or its error."""
    try:
        return call(*arguments)
    except ggtok.GgtokError as error:
        return failure(error)


def opened(data: bytes) -> Any:
    """A tokenizer of the wheel, or its error."""
    return outcome(Tokenizer.from_gguf, data)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


@pytest.fixture
def fresh_engine() -> Iterator[Engine]:
    """One that a test may stop."""
    engine = Engine()
    yield engine
    engine.close()


def renamed(flags: dict[str, bool]) -> dict[str, bool]:
    return {camel(name): value for name, value in flags.items()}


def camel(name: str) -> str:
    return re.sub(r"_(.)", lambda match: match[1].upper(), name)


def utf16(text: str, at: int) -> int:
    return len(text[:at].encode("utf-16-le", "surrogatepass")) // 2


def check_text(engine: Engine, number: int, tokenizer: Tokenizer, text: str | bytes, **flags: bool) -> None:
    """Every call that takes a text."""
    options = renamed(flags)
    units = ("byte",) if isinstance(text, bytes) else ("utf16", "char", "byte")
    asked = [[number, "encode", text, options], [number, "count", text, options], [number, "explain", text, options]]
    asked += [[number, "encodeWithOffsets", text, options | {"unit": unit}] for unit in units]
    ids, count, trace, *encodings = engine.ask(asked)
    assert ids == tokenizer.encode(text, **flags)
    assert count == len(ids)
    for unit, found in zip(units, encodings, strict=True):
        expected_ids, spans = tokenizer.encode_with_offsets(
            text, unit="byte" if unit == "byte" else "char", **flags
        ).tolist()
        if unit == "utf16" and isinstance(text, str):
            spans = [(utf16(text, start), utf16(text, end)) for start, end in spans]
        assert found == {"ids": expected_ids, "spans": [place for span in spans for place in span]}, unit
    expected = tokenizer.explain(text, **flags)
    length = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    ranges = [(0, length), (0, length // 2), (length // 3, length + 1)]
    questions = [[trace, "why", *row] for row in ranges]
    found_json, *found_whys, _ = engine.ask([[trace, "toJSON"], *questions, [trace, "free"]])
    assert found_json == expected.to_json()
    raw = _ggtok.explain(tokenizer, text, flags["add_special"], flags["parse_special"], False)
    assert found_whys == [outcome(raw.why, *row) for row in ranges]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_texts(engine: Engine, name: str) -> None:
    number = engine.open(head(name))
    for text in (*TEXTS, b"\xff\xfe a\x80", "n\u00e9\U0001f600".encode() * 3):
        for add_special in (False, True):
            check_text(engine, number, TOKENIZERS[name], text, add_special=add_special, parse_special=add_special)
        ids = TOKENIZERS[name].encode(text)
        assert engine.ask([[number, "decode", ids]]) == [TOKENIZERS[name].decode(ids)]


@given(text=st.text(st.characters(), max_size=40), name=st.sampled_from(sorted(TOKENIZERS)))
def test_random_texts(engine: Engine, text: str, name: str) -> None:
    number = engine.open(head(name))
    check_text(engine, number, TOKENIZERS[name], text, add_special=True, parse_special=False)
    ids = TOKENIZERS[name].encode(text)
    decoded, data, _ = engine.ask([[number, "decode", ids], [number, "decodeBytes", ids], [number, "free"]])
    assert (decoded, data) == (TOKENIZERS[name].decode(ids), TOKENIZERS[name].decode_bytes(ids))


CALL = {"type": "function", "id": "call_1", "function": {"name": "sum", "arguments": '{"of": [1, 2.5, null]}'}}
CONVERSATIONS: dict[str, list[dict[str, Any]]] = {
    "one": [{"role": "user", "content": "Hi"}],
    "turns": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "h\u00e9llo \U0001f600 \u3053"},
        {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."},
        {"role": "user", "content": "And now? <|im_end|></s>"},
    ],
    "prefill": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Sure"}],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": " b\n"}]}],
    "calls": [
        {"role": "user", "content": "Sum"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "3.5"},
        {"role": "assistant", "content": "3.5 \u20ac"},
        {"role": "user", "content": ""},
    ],
    "empty": [],
    "wrong role": [{"content": "Hi"}],
    "wrong content": [{"role": "user", "content": 5}],
    "image": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}],
    "unread": [{"role": "user", "content": "Hi", "color": "red"}],
}
TOOLS = [{"type": "function", "function": {"name": "sum", "parameters": {"type": "object", "minimum": 0.25}}}]
TEMPLATES = {
    "calls": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls %}"
    "<call>{{ c.function|tojson }}</call>{% endfor %}<|im_end|>\n{% endfor %}{{ tools|tojson if tools else '' }}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    "generation": "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' %}{% generation %}"
    "{{ m.content }}{{ eos_token }}{% endgeneration %}{% else %}{{ m.content[0:2] }}{% endif %}{% endfor %}",
    "bytes": "{% for m in messages %}{{ m.content|string|length }}{{ (m.content|string)[1:2] }}{% endfor %}",
    "fails": "{% for m in messages %}\n{{ m.content|urlize }}{% endfor %}",
    "refuses": "{{ raise_exception('no ' ~ messages|length) }}",
    "unsound": "{% for m in messages %}\n  {{ m.content",
    "deep": "{% macro m() %}{% if x %}{% else %}{% set b %}{{ [m()]|first|upper }}{% endset %}{% endif %}{% endmacro %}"
    "{{ m() }}",
    "endless": "{% for i in range(100000000) %}{% endfor %}",
    "too large": "{{ 'a' * 1000000000 }}",
}
CHAT_OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"tools": TOOLS},
    {"add_generation_prompt": False, "media_marker": "<__media__>"},
    {"add_generation_prompt": False, "continue_final_message": True, "add_special": False},
)
SCALARS = {"tools", "documents", "add_generation_prompt", "continue_final_message", "media_marker", "template_text"}


def check_chat(engine: Engine, number: int, tokenizer: Tokenizer, messages: Any, **options: Any) -> None:
    """The text, ids, spans, mask and warnings of a conversation, or its error."""
    known = {name: options[name] for name in options if name in {*SCALARS, "template", "add_special"}}
    variables = {name: options[name] for name in options if name not in known}
    asked = renamed(known) | ({"variables": variables} if variables else {})
    expected = outcome(partial(tokenizer.encode_chat, messages, return_spans=True, **options))
    found = engine.ask([[number, "encodeChat", messages, asked | {"mask": "turn"}]])[0]
    if isinstance(expected, dict):
        assert found == expected
        return
    assert isinstance(expected, ggtok.ChatEncoding)
    text = expected.text.encode("utf-8", "surrogatepass").decode(errors="replace")
    assert (found["text"], found["ids"], found["assistantMask"]) == (text, expected.ids, expected.assistant_mask)
    assert found["messageSpans"] == [span and list(span) for span in expected.message_spans]
    assert found["media"] == [row._asdict() for row in expected.media]
    warnings = [re.sub(r"^the template '\S+'", "the template", warning.message) for warning in expected.warnings]
    assert [warning["message"] for warning in found["warnings"]] == warnings

    units = text.encode("utf-16-le", "surrogatepass")
    ends = [part["end"] for part in found["parts"]]
    assert [part["start"] for part in found["parts"]] == [0, *ends[:-1]][: len(ends)]
    assert (ends or [0])[-1] == len(units) // 2
    asked.pop("addSpecial", None)
    assert engine.ask([[number, "applyChatTemplate", messages, asked]])[0] == {
        name: found[name] for name in ("text", "parts", "warnings")
    }


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("template", ["chatml", *TEMPLATES])
def test_conversations(engine: Engine, name: str, template: str) -> None:
    number, tokenizer = engine.open(head(name)), TOKENIZERS[name]
    chosen = {"template_text": TEMPLATES[template]} if template in TEMPLATES else {"template": template}
    for messages in CONVERSATIONS.values():
        for options in CHAT_OPTIONS:
            check_chat(engine, number, tokenizer, messages, **chosen, **options)
    engine.ask([[number, "free"]])


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"), ids=lambda path: path.stem)
def test_conversations_with_the_templates_of_files(engine: Engine, path: Path) -> None:
    number, tokenizer = engine.open(path.read_bytes()), Tokenizer.from_gguf(path)
    template = tokenizer.metadata.get("tokenizer.chat_template")
    if not isinstance(template, str) or "strftime_now" in template or "date_string" in template:
        check_chat(engine, number, tokenizer, CONVERSATIONS["one"], template="nope")
        messages = CONVERSATIONS["one"]
        if template is None:
            check_chat(engine, number, tokenizer, messages)
        return
    for messages in CONVERSATIONS.values():
        for options in (*CHAT_OPTIONS, {"enable_thinking": False}):
            check_chat(engine, number, tokenizer, messages, **options)


def test_requests(engine: Engine) -> None:
    number, tokenizer = engine.open(head("bpe")), TOKENIZERS["bpe"]
    body = {
        "messages": CONVERSATIONS["turns"],
        "tools": TOOLS,
        "chat_template_kwargs": {"x": 1.5, "y": [None, True]},
        "reasoning_effort": "low",
    }
    template = (
        "{{ x }}{{ y|tojson }}{{ z }}{{ reasoning_effort }}{{ tools|tojson }}"
        "{% for m in messages %}{{ m.content }}{% endfor %}"
    )
    several: list[dict[str, Any]] = [{}, {"z": 3}, {"tools": []}, {"x": "other"}]
    for options in several:
        check_chat(engine, number, tokenizer, body, template_text=template, **options)
    written = json.dumps(body)
    answers = engine.ask(
        [[number, "applyChatTemplate", form, {"templateText": template}] for form in (body, written, written.encode())]
    )
    assert answers[0] == answers[1] == answers[2]
    # JavaScript does not tell 1.0 from 1, but a request in JSON does.
    asked = '{"messages": [], "chat_template_kwargs": {"x": 1.0}}'
    assert engine.ask([[number, "applyChatTemplate", asked, {"templateText": "{{ x }}"}]])[0]["text"] == "1.0"


def test_dates(engine: Engine) -> None:
    number = engine.open(head("bpe"))
    template = "{{ strftime_now('%Y-%m-%d %H:%M:%S %z %Z') }}"
    options = {"templateText": template, "now": {"seconds": 951_782_400, "offset": -5400, "zone": "XYZ"}}
    answer, plain, now = engine.ask(
        [
            [number, "applyChatTemplate", CONVERSATIONS["one"], options],
            [number, "applyChatTemplate", CONVERSATIONS["one"], options | {"now": {"seconds": 0}}],
            [number, "applyChatTemplate", CONVERSATIONS["one"], {"templateText": "{{ strftime_now('%Y') }}"}],
        ]
    )
    assert (answer["text"], plain["text"]) == ("2000-02-28 22:30:00 -0130 XYZ", "1970-01-01 00:00:00 +0000 UTC")
    assert abs(int(now["text"]) - time.localtime().tm_year) <= 1


def test_who_wrote_what(engine: Engine) -> None:
    number = engine.open(head("bpe"))
    messages = [{"role": "user", "content": "\U0001f600 <|im_end|>"}, {"role": "user", "content": "b"}]
    chat = engine.ask([[number, "encodeChat", messages, {"template": "chatml"}]])[0]
    said = [
        (chat["text"][part["start"] - 1 : part["end"] - 1], part["message"])
        for part in chat["parts"]
        if part["isCaller"]
    ]
    assert ("assistantMask" in chat, said[-1]) == (False, ("b", 1))
    control = TOKENIZERS["bpe"].vocab.id("<|im_end|>")
    assert chat["ids"].count(control) == 2


def test_wrong_options_of_conversations(engine: Engine) -> None:
    number, messages = engine.open(head("bpe")), CONVERSATIONS["one"]
    for options, error in (
        ({"mask": "all"}, "GgtokError"),
        ({"template": 5}, "TypeError"),
        ({"template": "chatml", "templateText": ""}, "TypeError"),
        ({"continueFinalMessage": "no", "template": "chatml"}, "ChatRequestError"),
    ):
        assert engine.ask([[number, "encodeChat", messages, options]])[0]["error"] == error
    for wrong in (None, 5, "{", b"\xff"):
        assert (
            engine.ask([[number, "applyChatTemplate", wrong, {"template": "chatml"}]])[0]["error"] == "ChatRequestError"
        )
    # A lone surrogate is replaced, and text that looks like the escape of one is not.
    lone = [{"role": "user", "content": "\ud800 \\ud800 \\\\udc00"}]
    found = engine.ask([[number, "applyChatTemplate", lone, {"templateText": "{{ messages[0].content }}"}]])[0]
    assert found["text"] == "\ufffd \\ud800 \\\\udc00"


def opened_case(header: dict[str, Any], folder: Path) -> tuple[Tokenizer, bytes]:
    """The tokenizer of recorded cases, and a file of it."""
    path = SHARED / "vocabs" / header["file"]
    tokenizer = Tokenizer.from_gguf(path, overrides=header["overrides"])
    if not header["overrides"]:
        return tokenizer, path.read_bytes()
    tokenizer.to_gguf(folder / "overridden.gguf")
    return tokenizer, (folder / "overridden.gguf").read_bytes()


@pytest.mark.parametrize("path", shared_files("conformance/*.jsonl.gz") + shared_files("conformance/pre/*.jsonl.gz"))
def test_recorded_answers(engine: Engine, path: Path, tmp_path: Path) -> None:
    records = conformance.records(path)
    tokenizer, data = opened_case(next(records), tmp_path)
    number = engine.open(data)
    cases = list(records)
    asked, expected = [], []
    for case in cases:
        options = renamed(conformance.flags(case))
        if case["kind"] == "decode":
            asked.append([number, "decodeBytes", case["ids"], options | {"cleanSpaces": True}])
            expected.append(case["out"])
        else:
            asked.append([number, "encode", case["text"], options])
            expected.append(case["ids"])
    found = engine.ask(asked)
    wrong = [(case, answer) for case, answer, want in zip(cases, found, expected, strict=True) if answer != want]
    assert not wrong, f"{len(wrong)} of {len(cases)} differ, the first: {wrong[0]}"
    for case in [case for case in cases if case["kind"] == "encode" and len(case["text"]) < 200][::15]:
        text: str | bytes = case["text"]
        with suppress(UnicodeDecodeError):
            text = case["text"].decode()
        check_text(engine, number, tokenizer, text, **conformance.flags(case))
    assert engine.ask([[number, "free"]]) == [None]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_vocabulary(engine: Engine, name: str) -> None:
    vocab, number = TOKENIZERS[name].vocab, engine.open(head(name))
    names = ("kind", "pre", "model", "name", "size", "settings", "specialIds", "eogIds")
    found = dict(zip(names, engine.ask([[number, name] for name in names]), strict=True))
    metadata = TOKENIZERS[name].metadata
    assert (found["kind"], found["pre"], found["size"]) == (vocab.kind, vocab.pre, len(vocab))
    assert (found["model"], found["name"]) == (metadata["tokenizer.ggml.model"], metadata.get("general.name"))
    assert found["settings"] == {camel(key): value for key, value in _ggtok.settings(TOKENIZERS[name]).items()}
    assert found["specialIds"] == {camel(key): value for key, value in _ggtok.special_ids(TOKENIZERS[name]).items()}
    assert found["eogIds"] == sorted(vocab.eog_ids)
    ids = range(0, len(vocab), 97)
    tokens = engine.ask([[number, "token", id] for id in ids])
    pieces = engine.ask([[number, "piece", id] for id in ids])
    for id, token, piece in zip(ids, tokens, pieces, strict=True):
        expected = vocab[id]
        text = expected.text.encode("utf-8", "surrogateescape").decode(errors="replace")
        assert token["score"] == pytest.approx(expected.score)
        assert (token["id"], token["text"], token["attributes"]) == (id, text, int(expected.attributes))
        assert piece == TOKENIZERS[name].piece(id)


def test_arguments_that_are_wrong(engine: Engine) -> None:
    number, tokenizer = engine.open(head("bpe")), TOKENIZERS["bpe"]
    for id in (len(tokenizer.vocab), -1, 1 << 40):
        answers = engine.ask([[number, "decode", [0, id]], [number, "piece", id], [number, "token", id]])
        assert answers == [outcome(tokenizer.piece, id)] * 3
    for wrong in (1.5, "1", None):
        answers = engine.ask([[number, "decode", [wrong]], [number, "piece", wrong]])
        assert [answer["error"] for answer in answers] == ["TypeError"] * 2
    for other in (5, None, [1]):
        assert engine.ask([[number, "encode", other]])[0]["error"] == "TypeError"
    assert engine.ask([[number, "encodeWithOffsets", "a", {"unit": "word"}]])[0]["error"] == "GgtokError"
    long = "a" * (1 << 21)
    assert engine.ask([[number, "encodeWithOffsets", b"a\xff"], [number, "explain", long]]) == [
        outcome(tokenizer.encode_with_offsets, b"a\xff"),
        outcome(tokenizer.explain, long),
    ]
    assert engine.ask([[number, "free"], [number, "free"], [number, "encode", "a"]]) == [
        *(None, None),
        {"error": "GgtokError", "message": "the tokenizer was freed", "details": {}},
    ]


def test_classes_of_errors(engine: Engine) -> None:
    chat = ("ChatTemplateError", "ChatRequestError")
    for name in ("GGUFError", "VocabularyError", "UnsupportedError", "TokenIndexError", "MemoryError", *chat):
        assert engine.call("isError", name, "GgtokError")


@pytest.mark.parametrize("name", TOKENIZERS)
def test_files_that_end_early(engine: Engine, name: str) -> None:
    """At every byte of the first keys, and then at places further and further apart."""
    data = head(name)
    lengths = sorted({*range(300), *(int(300 * 1.05**power) for power in range(400))})
    for length in [length for length in lengths if length < len(data)]:
        expected = opened(data[:length])
        found = engine.ask([["package", "fromBytes", data[:length]], ["package", "fromBlob", data[:length]]])
        if isinstance(expected, Tokenizer):
            assert all(isinstance(number, int) for number in found)
        else:
            assert found == [expected] * 2, length


@pytest.mark.parametrize("name", TOKENIZERS)
@given(data=st.data())
def test_damaged_files(engine: Engine, name: str, data: st.DataObject) -> None:
    damaged = bytearray(head(name))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(damaged) - 1) | st.integers(0, 600))
        damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    expected, number = opened(bytes(damaged)), engine.call("fromBytes", bytes(damaged))
    if isinstance(expected, Tokenizer):
        ids = engine.ask([[number, "encode", "Hello world, é 1"], [number, "free"]])[0]
        assert ids == expected.encode("Hello world, é 1")
    else:
        assert number == expected


@pytest.mark.parametrize(("name", "key"), [("bpe", "pre"), ("spm", "model"), ("unigram", "model")])
def test_unknown_names(engine: Engine, name: str, key: str) -> None:
    start, *rest = head(name).partition(f"tokenizer.ggml.{key}".encode())
    value = bytearray(b"".join(rest))
    # After the type and the length of the value.
    value[len(rest[0]) + 4 + 8 + 1] = 0xFF
    error = opened(start + value)
    assert error["error"] == "UnsupportedError"
    assert engine.call("fromBytes", start + value) == error


@pytest.mark.parametrize("size", [10**6, 40 * 10**9])
def test_only_the_head_of_a_large_file_is_read(engine: Engine, size: int) -> None:
    data = head("bpe")
    number, reads = engine.call("fromLazyFile", data, size)
    assert engine.ask([[number, "encode", "Hello"]]) == [TOKENIZERS["bpe"].encode("Hello")]
    assert reads[0][0] == 0
    assert all(before[1] == after[0] for before, after in pairwise(reads))
    assert reads[-1][1] <= max(1 << 20, 2 * len(data))


def test_the_head_grows(engine: Engine, shared: Path) -> None:
    path = shared / "vocabs/llama-bpe.gguf"
    data = path.read_bytes()
    number, reads = engine.call("fromLazyFile", data, 40 * 10**9)
    assert engine.ask([[number, "encode", "Hello"], [number, "free"]])[0] == Tokenizer.from_gguf(path).encode("Hello")
    assert len(reads) > 2
    assert reads[-1][1] <= 2 * len(data)


def test_memory_is_freed(engine: Engine) -> None:
    data, text = head("unigram"), "Hello world. " * 2000

    def use() -> int:
        number = engine.open(data)
        trace = engine.ask([[number, "encode", text], [number, "explain", text[:500]]])[1]
        engine.ask([[trace, "free"], [number, "free"]])
        used: int = engine.call("memory")
        return used

    first = [use() for _ in range(3)][-1]
    assert [use() for _ in range(20)][-1] == first


def test_without_memory_there_is_an_error_and_a_new_engine(fresh_engine: Engine) -> None:
    engine, data = fresh_engine, head("spm")
    number = engine.open(data)
    trace = engine.ask([[number, "explain", "Hello"]])[0]
    engine.call("exhaust", 1 << 20)
    answer = engine.ask([[number, "encode", "Hello world. " * 10**6]])[0]
    assert answer["error"] == "MemoryError"
    gone = {"error": "GgtokError", "message": "the engine was restarted, and the {} is gone", "details": {}}
    assert engine.ask([[number, "encode", "a"], [trace, "toJSON"], [number, "free"]]) == [
        gone | {"message": "the engine was restarted, and the tokenizer is gone"},
        gone | {"message": "the engine was restarted, and the trace is gone"},
        None,
    ]
    assert engine.call("memory") < MEMORY / 100
    assert engine.ask([[engine.open(data), "encode", "Hello"]]) == [TOKENIZERS["spm"].encode("Hello")]


def test_after_a_bug_there_is_an_error_and_a_new_engine(fresh_engine: Engine) -> None:
    engine, data = fresh_engine, head("spm")
    number = engine.open(data)
    engine.call("breakCount")
    answer, after = engine.ask([[number, "count", "a"], [number, "count", "a"]])
    assert answer["message"].startswith("this is a bug in ggtok, please report it: ")
    assert after["message"] == "the engine was restarted, and the tokenizer is gone"
    assert engine.ask([[engine.open(data), "count", "Hello"]]) == [TOKENIZERS["spm"].count("Hello")]


def test_the_example_of_the_readme(engine: Engine, shared: Path) -> None:
    readme = (PACKAGE / "README.md").read_text(encoding="utf-8")
    calls = re.findall(r"^tok\.(\w+)\((.*)\); // (?:Int32Array: )?(.*)$", readme, re.MULTILINE)
    number = engine.open((shared / "vocabs/llama-bpe.gguf").read_bytes())
    answers = engine.ask([[number, name, json.loads(argument)] for name, argument, _ in calls])
    assert answers == [json.loads(answer) for *_, answer in calls]


def test_the_types_name_what_there_is(engine: Engine) -> None:
    types = (PACKAGE / "ggtok.d.ts").read_text(encoding="utf-8")
    names = set(re.findall(r"^export (?:class|const|function) (\w+)", types, re.MULTILINE))
    assert {*engine.call("names"), "default"} == names | {"default"}
    module = (PACKAGE / "ggtok.js").read_text(encoding="utf-8")
    members = r"^  (?:static )?(?:async )?(?:get )?(?:readonly )?([a-z]\w*)(?:\(|: )"
    properties = {"Tokenizer": {*engine.call("properties", engine.open(head("spm")))}, "Trace": set()}
    for name in properties:
        of = [re.search(rf"^export class {name} .*?^}}", text, re.MULTILINE | re.DOTALL) for text in (types, module)]
        declared, defined = ({*re.findall(members, text[0] if text else "", re.MULTILINE)} for text in of)
        assert declared - {"constructor"} == (defined | properties[name]) - {"constructor"}


@pytest.mark.skipif(TSC is None, reason="tsc, the compiler of TypeScript, is not installed")
def test_the_types_of_every_call(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "node_modules/ggtok")
    shutil.copy(ROOT / "tests/wasm/types.mts", tmp_path)
    options = ["--strict", "--noEmit", "--target", "es2022", "--lib", "es2022,dom", "--module", "node16"]
    command = [str(TSC), *options, "--moduleResolution", "node16", "types.mts"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_package() -> None:
    manifest = json.loads((PACKAGE / "package.json").read_text(encoding="utf-8"))
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    assert manifest["version"] == cargo["workspace"]["package"]["version"]
    for entry in (manifest["types"], *manifest["exports"]["."].values(), manifest["exports"]["./ggtok_bg.wasm"]):
        assert (PACKAGE / entry).is_file()
    for name in TOKENIZERS:
        assert (PACKAGE / f"vocabularies/{name}.gguf").read_bytes() == head(name)
    module = (PACKAGE / "ggtok_bg.wasm").read_bytes()
    folders = re.compile(rb"/root/|/home/[a-z]|/Users/[a-z]|\.cargo/registry")
    assert not folders.search(module)
