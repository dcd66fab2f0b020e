"""Conversations that are trimmed: what stays, that as much stays as fits, and how often a template runs for it."""

from __future__ import annotations

import random
import warnings
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from unittest import mock

import pytest
from ggtok import ChatRequestError, ChatTemplateError, Finding, GgtokError, Tokenizer, TokenizerWarning, VocabularyError
from ggtok.chat.conversation import Conversation
from ggtok.chat.trimming import turns_of
from hypothesis import given
from hypothesis import strategies as st
from oracles.gguf_vocab import TokenType, Vocab
from stock_templates import NAMES, ODD, STOCK, conversations, with_controls

STRICT = (
    "{% set loop_messages = messages[1:] if messages[0].role == 'system' else messages %}"
    "{% for m in loop_messages %}"
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
    "<|im_start|>{{ m.role }}{{ m.content }}<|im_end|>{% endfor %}"
)
SYSTEM = {"role": "system", "content": "Be kind."}
TOK = with_controls(Tokenizer.builtin("bpe"))


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def contents(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages]


TALK = [SYSTEM, user("one"), assistant("1"), user("two"), assistant("2"), user("three")]


def trim_to(kept: list[dict[str, Any]], messages: Any = TALK, **arguments: Any) -> Any:
    """Trims a conversation to the size of another one."""
    rendering = {name: value for name, value in arguments.items() if name != "keep"}
    return TOK.trim_messages(messages, TOK.count_messages(kept, **rendering), **arguments)


# What is a turn


@pytest.mark.parametrize(
    ("roles", "turns"),
    [
        ("", []),
        ("s", []),
        ("u", ["u"]),
        ("suaua", ["ua", "ua"]),
        ("ssuatta", ["uatta"]),
        ("sauaua", ["a", "ua", "ua"]),
        ("uattauat", ["uatta", "uat"]),
        ("uassua", ["ua", "ssua"]),
        ("uasasa", ["uasasa"]),
        ("uuu", ["u", "u", "u"]),
        ("saata", ["aata"]),
        ("asu", ["a", "su"]),
    ],
)
def test_turns(roles: str, turns: list[str]) -> None:
    names = {"s": "system", "u": "user", "a": "assistant", "t": "tool"}
    found = turns_of([names[role] for role in roles])
    assert ["".join(roles[at] for at in turn) for turn in found] == turns
    places = [at for turn in found for at in turn]
    assert places == list(range(len(roles) - len(places), len(roles)))


# What stays


def test_all_of_it_stays() -> None:
    messages = trim_to(TALK)
    assert messages == TALK
    assert all(ours is theirs for ours, theirs in zip(messages, TALK, strict=True))
    assert TOK.trim_messages(iter(TALK), 1 << 60) == TALK


def test_old_turns_go() -> None:
    one_less = [SYSTEM, *TALK[3:]]
    assert TOK.trim_messages(TALK, TOK.count_messages(TALK) - 1) == one_less
    assert trim_to(one_less) == one_less
    assert TOK.trim_messages(TALK, TOK.count_messages(one_less) - 1) == [SYSTEM, TALK[-1]]


def test_what_must_stay_does_not_fit() -> None:
    least = TOK.count_messages([SYSTEM, TALK[-1]])
    with pytest.raises(GgtokError, match=rf"^the messages that must stay take {least} tokens, which is more than 5$"):
        TOK.trim_messages(TALK, 5)
    with pytest.raises(GgtokError, match="must stay"):
        TOK.trim_messages(TALK[:1] + TALK[-1:], least - 1)
    with pytest.raises(GgtokError, match="must stay"):
        TOK.trim_messages([SYSTEM], 1)


def test_arguments() -> None:
    wrong: list[tuple[type[Exception], Any, Any]] = [(GgtokError, 0, 1), (GgtokError, 9, 0)]
    wrong += [(TypeError, "9", 1), (TypeError, 9, "last")]
    for error, most, keep in wrong:
        with pytest.raises(error):
            TOK.trim_messages(TALK, most, keep=keep)
    with pytest.raises(ChatRequestError, match=r"messages\[0\]"):
        TOK.trim_messages(["Hi"], 99)  # type: ignore[type-var]


def test_keep_last_turns() -> None:
    assert trim_to([SYSTEM, *TALK[3:]], keep=2) == [SYSTEM, *TALK[3:]]
    with pytest.raises(GgtokError, match="must stay"):
        TOK.trim_messages(TALK, TOK.count_messages(TALK) - 1, keep=3)
    assert trim_to(TALK, keep=9) == TALK


def test_keep_by_message() -> None:
    """The whole turn stays, and so does the last one."""
    kept = trim_to([*TALK[:3], TALK[-1]], keep=lambda message: message["content"] == "1")
    assert kept == [*TALK[:3], TALK[-1]]
    pinned = TALK[3]
    assert trim_to([SYSTEM, *TALK[3:]], keep=lambda message: message is pinned) == [SYSTEM, *TALK[3:]]


def test_tool_calls_stay_with_their_answers() -> None:
    call = {"type": "function", "function": {"name": "look", "arguments": {}}}
    calling = [
        *(user("weather"), {"role": "assistant", "content": "", "tool_calls": [call, call]}),
        *({"role": "tool", "content": "sun"}, {"role": "tool", "content": "rain"}, assistant("Both.")),
    ]
    options: dict[str, Any] = {"template_text": STOCK["qwen 2.5"]}
    least, full = (TOK.count_messages([*turn, user("end")], **options) for turn in ([], calling))
    for most in range(least, full + 1):
        kept = TOK.trim_messages([*calling, user("end")], most, **options)
        assert kept in ([user("end")], [*calling, user("end")])
    assert trim_to(calling, [user("old"), *calling], **options) == calling


def test_a_whole_request() -> None:
    tools = [{"type": "function", "function": {"name": "look", "description": "d " * 50, "parameters": {}}}]
    body = {"messages": TALK, "tools": tools, "model": "m"}
    trimmed = trim_to({**body, "messages": [SYSTEM, *TALK[3:]]}, body, template_text=STOCK["qwen 2.5"])  # type: ignore[arg-type]
    assert trimmed == {**body, "messages": [SYSTEM, *TALK[3:]]}
    assert body["messages"] is TALK
    assert len(TALK) == 6
    most = TOK.count_messages(trimmed, template_text=STOCK["qwen 2.5"])
    same = TOK.trim_messages(TALK, most, tools=tools, template_text=STOCK["qwen 2.5"])
    assert same == trimmed["messages"]


def test_messages_that_are_no_mappings() -> None:
    @dataclass
    class Message:
        role: str
        content: str

    messages = [Message("user", "one"), Message("assistant", "1"), Message("user", "two")]
    assert TOK.trim_messages(messages, 20) == messages[2:]  # type: ignore[type-var]


# What templates do


def test_a_template_that_wants_alternation() -> None:
    """A greeting has to go, and a turn without an answer, if the template refuses them."""
    greeted = [SYSTEM, assistant("Hello! " * 30), *TALK[1:]]
    with pytest.raises(ChatTemplateError, match="alternate"):
        TOK.count_messages(greeted, template_text=STRICT)
    assert TOK.trim_messages(greeted, 10_000, template_text=STRICT) == TALK
    unanswered = [SYSTEM, user("lost"), *TALK[1:]]
    assert TOK.trim_messages(unanswered, 10_000, template_text=STRICT) == TALK
    wrong = [SYSTEM, user("x"), assistant("y"), assistant("z"), {"role": "tool", "content": ""}]
    with pytest.raises(ChatTemplateError, match="alternate"):
        TOK.trim_messages(wrong, 10_000, template_text=STRICT)


def test_a_template_that_is_wrong() -> None:
    with pytest.raises(ChatTemplateError, match="line 1"):
        TOK.trim_messages(TALK, 10_000, template_text="{{")
    for error in ("{{ 1 | no_such_filter }}", "{{ raise_exception('never') }}"):
        with pytest.raises(ChatTemplateError):
            TOK.trim_messages(TALK, 10_000, template_text=error)


def test_other_ways_of_counting() -> None:
    text = "<|im_end|>" * 5
    talk = [user(text), assistant("1"), user("end")]
    assert trim_to(talk, talk, trust=True) == talk
    assert TOK.trim_messages(talk, TOK.count_messages(talk, trust=True)) == talk[2:]
    assert TOK.trim_messages(talk, TOK.count_messages(talk, trust=True) - 1, trust=True) == talk[2:]
    pytest.importorskip("jinja2")
    options: dict[str, Any] = {"raw": True, "trust": True, "template_text": STRICT}
    assert trim_to([SYSTEM, *TALK[3:]], **options) == [SYSTEM, *TALK[3:]]
    talk = [SYSTEM, *[user("What is LoRA?"), assistant("Low-rank adaptation.")] * 9, user("end")]
    for first in range(1, len(talk), 2):
        assert trim_to([SYSTEM, *talk[first:]], talk, **options) == [SYSTEM, *talk[first:]]
    with pytest.raises(GgtokError, match="trust=True"):
        TOK.trim_messages(TALK, 99, raw=True)


def test_a_vocabulary_that_reads_control_tokens_everywhere() -> None:
    """With `trust`, a control token in a message is not an error: the sizes of turns are not known then."""
    texts = [b"<s>", *(f"\\x{byte:02x}".encode() for byte in range(256)), b"<end>"]
    types: list[int] = [TokenType.CONTROL, *[TokenType.NORMAL] * 256, TokenType.CONTROL]
    rwkv = Tokenizer.from_gguf(Vocab("rwkv", texts, types, bos=0, eos=0).gguf())
    talk = [user("<end>"), assistant("1"), user("two"), assistant("2"), user("three")]
    options: dict[str, Any] = {"template_text": "{% for m in messages %}{{ m.content }}{% endfor %}"}
    with pytest.raises(VocabularyError):
        rwkv.trim_messages(talk, 3, **options)
    most = rwkv.count_messages(talk[2:], trust=True, **options)
    assert rwkv.trim_messages(talk, most, trust=True, **options) == talk[2:]


def test_user_defined_tokens_are_refused() -> None:
    tok = Tokenizer.builtin("bpe").to_gguf(BytesIO(), add_tokens=["<|tool|>"])
    talk = [user("<|tool|>"), assistant("1"), user("two")]
    assert tok.trim_messages(talk, 999) == talk
    with pytest.raises(VocabularyError, match="reads as the token"):
        tok.trim_messages(talk, 999, refuse_user_defined=True)


def test_warnings_are_about_what_stays() -> None:
    text = "{% for m in messages %}{% if m.role != 'critic' %}{{ m.content }}{% endif %}{% endfor %}"
    talk = [user("one"), {"role": "critic", "content": "no"}, user("two " * 20), user("three")]
    with pytest.warns(TokenizerWarning, match="critic|message") as caught:
        assert TOK.trim_messages(talk, 1000, template_text=text) == talk
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert TOK.trim_messages(talk, 10, template_text=text) == talk[-1:]
    found: list[Finding] = []
    TOK.trim_messages(talk, 1000, template_text=text, warnings=found)
    assert [finding.code for finding in found] == ["chat-message-unread"]


# As much as fits


ROLES = ("system", "user", "user", "assistant", "tool")
CONTENT = st.text("ab \n", max_size=40)
MESSAGES = st.lists(st.fixed_dictionaries({"role": st.sampled_from(ROLES), "content": CONTENT}), max_size=12)


def check(messages: list[dict[str, Any]], most: int, keep: Any, options: dict[str, Any]) -> None:
    """The result fits, and with the next older turn it does not: it is too long, or the template refuses it."""
    options |= {"warnings": []}
    turns = turns_of([message["role"] for message in messages])
    loose = turns[: -keep if isinstance(keep, int) else -1]
    if not isinstance(keep, int):
        loose = [turn for turn in loose if not any(keep(messages[at]) for at in turn)]

    def without(count: int) -> list[dict[str, Any]]:
        gone = [at for turn in loose[:count] for at in turn]
        return [message for at, message in enumerate(messages) if at not in gone]

    def size(count: int) -> float:
        try:
            return TOK.count_messages(without(count), **options)
        except ChatTemplateError:
            return float("inf")

    try:
        kept = TOK.trim_messages(messages, most, keep=keep, **options)
    except GgtokError:
        assert size(len(loose)) > most
        return
    [dropped] = [count for count in range(len(loose) + 1) if len(without(count)) == len(kept)]
    assert kept == without(dropped)
    assert size(dropped) <= most
    assert dropped == 0 or size(dropped - 1) > most


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_as_much_as_fits(name: str, data: st.DataObject) -> None:
    messages = data.draw(conversations(name))
    options: dict[str, Any] = {"template_text": STOCK[name], "add_generation_prompt": data.draw(st.booleans())}
    if messages[-1].get("tool_calls"):
        options["add_generation_prompt"] = False  # such a message cannot be continued
    full = TOK.count_messages(messages, **options, warnings=[])
    check(messages, data.draw(st.integers(1, full + 1)), data.draw(st.integers(1, 3)), options)


@given(MESSAGES.filter(bool), st.integers(1, 150), st.sampled_from([STRICT, *ODD.values()]), st.data())
def test_as_much_as_fits_of_anything(messages: list[dict[str, Any]], most: int, text: str, data: st.DataObject) -> None:
    """Also with templates that write other text when others are gone, and that refuse some conversations."""
    keep = data.draw(st.sampled_from([1, 2, lambda message: message["content"].startswith("a")]))
    check(messages, most, keep, {"template_text": text, "add_generation_prompt": False})


# How long it takes


def counted(messages: list[dict[str, Any]], most: int, text: str | None) -> tuple[list[dict[str, Any]], int]:
    """The messages that stay, and how many renderings they took."""
    with mock.patch.object(Conversation, "render", autospec=True, side_effect=Conversation.render) as render:
        return TOK.trim_messages(messages, most, template_text=text, warnings=[]), render.call_count


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", [0.05, 0.5, 0.99])
def test_few_renderings(name: str, part: float) -> None:
    rng = random.Random(7)
    messages = [{"role": "system", "content": "Be brief. " * 9}] if name != "gemma" else []
    for _ in range(60):
        messages += [user("What? " * rng.randint(1, 40)), assistant("That, " * rng.randint(1, 80))]
    messages.append(user("Thanks"))
    full = TOK.count_messages(messages, template_text=STOCK[name], warnings=[])
    kept, renderings = counted(messages, int(full * part), STOCK[name])
    assert 0 < len(kept) < len(messages)
    assert renderings <= 4


def test_many_messages() -> None:
    """As many renderings as for few; and nothing else looks at each message for each other."""
    talk = [SYSTEM, *[user("What is LoRA?"), assistant("Low-rank adaptation.")] * 5000, user("Thanks")]
    half = [SYSTEM, *talk[5001:]]
    kept, renderings = counted(talk, TOK.count_messages(half, warnings=[]), None)
    assert kept == half
    assert renderings <= 4
