"""What a terminal obeys is shown and not sent, wherever a stranger wrote it: names, keys, tokens, templates, texts."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest
from ggtok.cli import output
from oracles import gguf_vocab
from oracles.gguf_vocab import TokenType, Vocab
from oracles.spelling import BYTES
from terminals import on_terminal
from test_cli import call

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")

MARK = "\u202e\u2066\u200f\x1b]0;evil\x07\u2028\x9b31m\U000e0041"
KEPT = {"\n", "\r", "\t", "\u200c", "\u200d"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Files whose names and contents have the mark."""
    folder = tmp_path_factory.mktemp("hostile")
    texts = [*BYTES, b"he", f"<|{MARK}|>".encode(), MARK.encode(), f"</{MARK}>".encode()]
    types = [TokenType.NORMAL] * 257 + [TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.CONTROL]
    vocab = Vocab("gpt2", texts, [int(kind) for kind in types], merges=[b"h e"], pre="gpt-2", eos=259, bos=259)
    template = "{% for m in messages %}<|" + MARK + "|>{{ m.content }}{{ m." + MARK[:1] + " }}{% endfor %}"
    metadata = {**vocab.metadata(), "general.name": f"name{MARK}", f"general.{MARK}": MARK}
    made = {}
    for name, text in {"model": "{{ messages[0].content }}" + MARK, "other": template}.items():
        path = folder / f"{name}{MARK[:4]}.gguf"
        path.write_bytes(gguf_vocab.write(metadata | {"tokenizer.chat_template": text}))
        made[name] = str(path)
    for name, content in {
        "text": f"he {MARK} he\n",
        "chat": json.dumps([{"role": "user", "content": MARK, MARK: 1}]),
        "jsonl": json.dumps({"text": MARK, MARK: 1}) + "\n",
        "bad": f"GGUF{MARK}",
    }.items():
        path = folder / f"{name}{MARK[:4]}.{name}"
        path.write_text(content, encoding="utf-8")
        made[name] = str(path)
    made |= {"mark": MARK, "folder": str(folder), "out": str(folder / f"out{MARK[:4]}")}
    (folder / "chat").write_text('[{"role": "user", "content": "he"}]')
    return made


COMMANDS = (
    "encode -m {model} {text}",
    "encode -m {model} {text} --json",
    "encode -m {model} -p {mark} --view",
    "decode -m {model} -p 257,258,259",
    "decode -m {model} -p 257,258,259 --json",
    "count -m {model} {text} {chat}",
    "count -m {bad} {text}",
    "count -m {mark} {text}",
    "split -m {model} {text} -n 4",
    "chat -m {model} {chat}",
    "chat -m {model} {folder}/chat",
    "chat -m {other} {folder}/chat",
    "chat -m {model} {chat} --view",
    "chat -m {model} {chat} --template {mark}",
    "explain -m {model} {text}",
    "explain -m {model} -p {mark} --all",
    "explain -p {mark} --compare {model} {other}",
    "evaluate -m {model} {text}",
    "evaluate -m {model} {mark}={text}",
    "inspect {model}",
    "inspect {model} --json",
    "inspect {model} {other}",
    "check {model} {other} {bad}",
    "check {model}",
    "diff {model} {other}",
    "diff {model} {other} -p {mark}",
    "search -m {model} evil",
    "search -m {model} {mark}",
    "edit {model} --set general.name={mark} --dry-run",
    "edit {model} --set {mark}=1 --dry-run",
    "edit {model} --set general.name={mark} -o {out}.gguf",
    "train {text} -o {out}2.gguf --vocab-size 258 --kind bpe",
    "train {text} -o {out}2.gguf --vocab-size 258 --set {mark}=1",
    "train {text} -o {out}3.gguf --vocab-size 1",
    "corpus build {jsonl} -o {out}4 -m {model} --format parquet",
    "corpus build {jsonl} -o {out}4 -m {model} --format parquet --field {mark}",
    "corpus info {out}4",
    "corpus verify {out}4 -m {model}",
    "models {mark}",
    "bench -m {model} {text}",
    "{mark}",
    "encode --{mark}",
    "encode {mark}",
    "encode -m {model} --override-kv {mark}",
    "encode -m {model} --override-kv {mark}=int:{mark} -p he",
    "encode -m {model} --override-kv tokenizer.ggml.pre=str:{mark} -p he",
    "encode -m https://{mark}/ -p he",
    "encode -m ollama:{mark} -p he",
)


def obeyed(char: str) -> bool:
    return char not in KEPT and unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_sends_it(command: str, files: dict[str, str]) -> None:
    arguments = [part.format(**files) for part in command.split(" ")]
    shown = on_terminal(*arguments, HOME=files["folder"], GGTOK_OFFLINE="1")
    assert "Traceback" not in shown.raw
    assert shown.text.strip()
    assert not [hex(ord(char)) for char in shown.text if obeyed(char)], shown.raw


def test_every_character() -> None:
    """What is obeyed is escaped; the rest stays as it is."""
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        shown = output.UNUSUAL.sub(output._unless_obeyed, char)
        if obeyed(char) or char == "\r":
            assert shown.startswith("\\"), hex(code)
            assert shown.isascii()
        else:
            assert shown == char, hex(code)


def test_a_file_gets_what_was_decoded(files: dict[str, str]) -> None:
    """Only a terminal gets escapes."""
    assert call("decode", "-m", files["model"], "-p", "258").out.rstrip(b"\n") == MARK.encode()
