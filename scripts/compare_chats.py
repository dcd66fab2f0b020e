"""Compares ggtok's chats with those of llama.cpp's own server, for all templates of a llama.cpp checkout.

python scripts/compare_chats.py PATH_TO_LLAMA_CPP [NAME...]

Each template runs in a separate server process, with a tiny model. Needs the packages xllamacpp, gguf and numpy.
Prints the conversations that differ, and exits with 1 if there are any.
"""

from __future__ import annotations

import difflib
import importlib
import json
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import ggtok

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
write_model: Any = importlib.import_module("tiny_model").write_model

ARGUMENTS = {"city": "Paris", "days": 3, "exact": True}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    },
}


def call(arguments: object, content: object = "") -> dict[str, Any]:
    """An assistant's message with a tool call."""
    called = {"id": "call12345", "type": "function", "function": {"name": "weather", "arguments": arguments}}
    return {"role": "assistant", "content": content, "tool_calls": [called]}


USER = {"role": "user", "content": "Hi there"}
PARTS = [{"type": "text", "text": "One part"}, {"type": "text", "text": "and another"}]
ANSWER = {"role": "tool", "tool_call_id": "call12345", "name": "weather", "content": "sunny"}
THOUGHT = {"role": "assistant", "content": "Paris", "reasoning_content": "Capital of France"}
CHATS: dict[str, dict[str, Any]] = {
    "user": {"messages": [USER]},
    "system": {"messages": [{"role": "system", "content": "Be brief"}, USER]},
    "developer": {"messages": [{"role": "developer", "content": "Be brief"}, USER]},
    "turns": {"messages": [USER, {"role": "assistant", "content": "Hello"}, USER]},
    "parts": {"messages": [{"role": "user", "content": PARTS}]},
    "system parts": {"messages": [{"role": "system", "content": PARTS}, USER]},
    "empty": {"messages": [{"role": "user", "content": ""}]},
    "tools": {"messages": [USER], "tools": [TOOL]},
    "bare tool": {"messages": [USER], "tools": [{"type": "function", "function": {"name": "now"}}]},
    "call": {"messages": [USER, call(json.dumps(ARGUMENTS)), ANSWER], "tools": [TOOL]},
    "call with an object": {"messages": [USER, call(ARGUMENTS), ANSWER], "tools": [TOOL]},
    "call without content": {"messages": [USER, call(json.dumps(ARGUMENTS), None), ANSWER], "tools": [TOOL]},
    "thinking": {"messages": [USER, THOUGHT, USER]},
}


def serve(model: str, template: str) -> None:
    """Writes llama-server's answer for each conversation, as JSON. Runs in a separate process."""
    import xllamacpp  # type: ignore[import-untyped]

    params = xllamacpp.CommonParams()
    params.model.path, params.chat_template, params.use_jinja = model, Path(template).read_text(encoding="utf-8"), True
    params.n_ctx, params.n_parallel, params.warmup, params.verbosity, params.port = 512, 1, False, -1, 0
    server = xllamacpp.Server(params)
    answers = {}
    for name, chat in CHATS.items():
        request = urllib.request.Request(
            f"{server.listening_address}/apply-template",
            json.dumps(chat).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                answers[name] = json.load(response)["prompt"]
        except urllib.error.HTTPError as error:
            answers[name] = {"error": json.loads(error.read())["error"]["message"]}
    Path(sys.argv[4]).write_text(json.dumps(answers), encoding="utf-8")


def rendered(tokenizer: ggtok.Tokenizer, chat: dict[str, Any], text: str) -> str | dict[str, str]:
    """ggtok's answer."""
    try:
        return tokenizer.apply_chat_template(chat["messages"], tools=chat.get("tools"), template_text=text)
    except ggtok.GgtokError as error:
        return {"error": str(error)}


def main() -> int:
    """Compares the named templates, or all."""
    root, names = Path(sys.argv[1]), sys.argv[2:]
    count = differing = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        model, answer = Path(folder, "tiny.gguf"), Path(folder, "answer.json")
        write_model(model, add_bos=False)
        tokenizer = ggtok.Tokenizer.from_gguf(model)
        for template in sorted(root.glob("models/templates/*.jinja")):
            if names and template.stem not in names:
                continue
            answer.unlink(missing_ok=True)
            command = [sys.executable, __file__, "--serve", str(model), str(template), str(answer)]
            run = subprocess.run(command, capture_output=True, timeout=300, check=False)
            if not answer.exists():
                print(f"{template.stem}: llama-server ended with {run.returncode}")
                continue
            for name, theirs in json.loads(answer.read_text()).items():
                ours = rendered(tokenizer, CHATS[name], template.read_text(encoding="utf-8"))
                count += 1
                if isinstance(theirs, dict) and isinstance(ours, dict):
                    refused += 1
                elif ours != theirs:
                    differing += 1
                    print(f"== {template.stem}, {name}")
                    a, b = (str(each).splitlines() for each in (theirs, ours))
                    print("\n".join(list(difflib.unified_diff(a, b, "llama-server", "ggtok", lineterm=""))[:30]))
    print(f"{count} conversations compared, {differing} differ, {refused} refused by both")
    return int(differing > 0)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2], sys.argv[3])
    else:
        raise SystemExit(main())
