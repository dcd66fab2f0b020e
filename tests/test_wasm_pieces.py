"""The JavaScript package in node: spans of conversations, and files that arrive in pieces."""

from __future__ import annotations

from test_wasm import Engine, engine, head, pytestmark

__all__ = ["engine", "pytestmark"]


def test_spans_of_a_conversation(engine: Engine) -> None:
    """Without control tokens in messages, they are those of the text that the template writes."""
    number = engine.open(head("bpe"))
    messages = [{"role": "user", "content": "h\u00e9llo \U0001f600 w\u00f6rld"}, {"role": "assistant", "content": "b"}]
    for unit in ("utf16", "char", "byte"):
        chat = engine.ask([[number, "encodeChat", messages, {"template": "chatml", "unit": unit}]])[0]
        options = {"parseSpecial": True, "unit": unit}
        text = engine.ask([[number, "encodeWithOffsets", chat["text"], options]])[0]
        assert (chat["ids"], chat["spans"]) == (text["ids"], text["spans"])
    assert engine.ask([[number, "encodeChat", messages, {"unit": "word"}]])[0]["error"] == "GgtokError"


def test_how_much_of_a_file_is_needed(engine: Engine) -> None:
    data = head("spm")
    end = 1000
    while needed := engine.call("bytesNeeded", data[:end], 10**9):
        assert needed > end
        end = max(needed, 2 * end)
    assert engine.open(data[:end]) >= 0
    assert engine.call("bytesNeeded", b"not a file", 10**9)["error"] == "GGUFError"
    assert engine.call("bytesNeeded", data[:1000], 1000)["error"] == "GGUFError"
