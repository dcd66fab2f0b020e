"""Chats that grow: the ids of the whole conversation after each message, the ids that a model produced, forks."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILTIN, shared_files
from ggtok import (
    ChatRequestError,
    ChatTemplateError,
    GgtokError,
    MismatchError,
    TokenIndexError,
    Tokenizer,
    TokenizerWarning,
    Turn,
)
from ggtok.chat import keeping
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles import strategies
from stock_templates import ODD, STOCK, TOOL, conversations, with_controls
from test_chat_fuzz import TEMPLATES as TEMPLATES_OF_ANY_KIND

# Most of these templates read only what they are about.
pytestmark = pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")

TEMPLATES = STOCK | ODD
ASSISTANT = {"role": "assistant", "content": "Hello there"}
USER = {"role": "user", "content": "Hi"}


def few(examples: int) -> int:
    """How many conversations to try: each takes several renderings of each of its beginnings."""
    return examples * max(1, settings.default.max_examples // 30) if settings.default else examples


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return with_controls(Tokenizer.builtin("bpe"))


@cache
def opened(path: Path) -> Tokenizer:
    return Tokenizer.from_gguf(path)


def whole(tok: Tokenizer, messages: list[dict[str, Any]], **options: Any) -> list[int]:
    """The ids that a chat of these messages has to have."""
    prompt = options.pop("add_generation_prompt", True) and messages[-1]["role"] != "assistant"
    ids: list[int] = tok.encode_chat(messages, add_generation_prompt=prompt, **options)
    return ids


def outcome(call: Callable[[], Any]) -> tuple[Any, str | None]:
    """What a call returns, or its error."""
    try:
        return call(), None
    except GgtokError as error:
        return None, repr(error)


def check_growth(tok: Tokenizer, messages: list[dict[str, Any]], **options: Any) -> None:
    """Appends messages one by one, and compares each time."""
    chat, before = tok.chat(**options), list[int]()
    for end in range(1, len(messages) + 1):
        new = messages[len(chat.messages) : end]
        expected, problem = outcome(lambda end=end: whole(tok, messages[:end], **options))  # type: ignore[misc]
        turn, found = outcome(lambda new=new: chat.extend(new))  # type: ignore[misc]
        assert found == problem
        if problem is not None:
            assert chat.ids == before
            continue
        assert chat.ids == expected == [*before[: turn.kept], *turn.new_ids]
        assert chat.num_tokens == len(expected)
        same = [one == other for one, other in zip(before, expected, strict=False)]
        assert turn.kept == (same.index(False) if False in same else len(same))
        before = expected


@pytest.mark.parametrize("name", TEMPLATES)
@settings(max_examples=few(15))
@given(st.data())
def test_ids_are_those_of_the_whole_conversation(tok: Tokenizer, name: str, data: st.DataObject) -> None:
    messages = data.draw(conversations(name))
    options: dict[str, Any] = {"add_special": data.draw(st.booleans())}
    if name in STOCK and data.draw(st.booleans()):
        options |= {"tools": [TOOL], "enable_thinking": data.draw(st.booleans())}
    options["add_generation_prompt"] = data.draw(st.booleans())
    check_growth(tok, messages, template_text=TEMPLATES[name], date_string="1 May 2025", **options)


@pytest.mark.parametrize("vocabulary", BUILTIN)
@settings(max_examples=few(15))
@given(st.data())
def test_embedded_vocabularies(vocabulary: str, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(TEMPLATES)))
    options = {"template_text": TEMPLATES[name], "date_string": "1 May 2025"}
    check_growth(Tokenizer.builtin(vocabulary), data.draw(conversations(name)), **options)


@pytest.mark.parametrize("kind", strategies.KINDS)
@settings(max_examples=few(30))
@given(data=st.data())
def test_random_vocabularies(kind: str, data: st.DataObject) -> None:
    """The template writes special tokens of the vocabulary, which overlap and take white space away."""
    vocab, tokenizer = strategies.drawn(kind, data)
    texts = strategies.texts(vocab).map(lambda text: text.decode("utf-8", "replace"))
    special = [text for text, kind in zip(vocab.texts, vocab.types, strict=True) if kind in strategies.SPECIAL_TYPES]
    written = st.one_of(st.sampled_from([text.decode("utf-8", "replace") for text in special] or [""]), texts)
    parts = [data.draw(written).replace("{", "") for _ in range(5)]
    head, start, middle, end, tail = ("{{ " + repr(part) + " }}" for part in parts)
    loop = f"{{% for m in messages %}}{start}{{{{ m.role }}}}{middle}{{{{ m.content }}}}{end}{{% endfor %}}"
    messages = [{"role": data.draw(st.sampled_from(["user", "assistant"])), "content": data.draw(texts)} for _ in "123"]
    add_special = data.draw(st.booleans())
    check_growth(tokenizer, messages, template_text=f"{head}{loop}{tail}", add_special=add_special)


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
@settings(max_examples=few(5), suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.data())
def test_vocabularies_of_models(path: Any, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(TEMPLATES)))
    options = {"template_text": TEMPLATES[name], "date_string": "1 May 2025"}
    check_growth(opened(path), data.draw(conversations(name)), **options)


@settings(max_examples=few(40), suppress_health_check=[HealthCheck.too_slow])
@given(TEMPLATES_OF_ANY_KIND)
def test_any_template(tok: Tokenizer, template: str) -> None:
    """Templates that fail do so in a chat as in `encode_chat`."""
    check_growth(tok, [USER, ASSISTANT, USER], template_text=template)


# Ids that a model produced


def spelled(tok: Tokenizer, text: str) -> list[int]:
    """Ids of a text that `encode` would not choose: one for each character."""
    return [id for char in text for id in tok.encode(char, add_special=False)]


def contains(ids: list[int], part: list[int]) -> bool:
    return any(ids[start : start + len(part)] == part for start in range(len(ids)))


EOT = dict(zip(STOCK, ["<|eot_id|>", "<|im_end|>", "<|im_end|>", "<end_of_turn>", "</s>"], strict=True))
"""The token that ends a turn."""


@pytest.mark.parametrize("name", STOCK)
@pytest.mark.parametrize("with_end", [False, True])
def test_ids_of_a_model_stay(tok: Tokenizer, name: str, with_end: bool) -> None:
    chat = tok.chat(template_text=STOCK[name], date_string="1 May 2025", enable_thinking=False)
    end, answers = tok.vocab.id(EOT[name]), list[list[int]]()
    for text in ("Hello there", "It is LoRA.\n\nYes", "<|im_end|> is a token"):
        chat.append({"role": "user", "content": f"Say {text}"})
        prompt, ids = chat.ids, spelled(tok, text)
        assert ids != tok.encode(text)
        sampled = [*ids, end] if with_end and end in tok.vocab.eog_ids else ids
        turn = chat.append({"role": "assistant", "content": text}, ids=sampled)
        assert turn.kept == len(prompt) + len(sampled)
        assert chat.ids[: turn.kept] == [*prompt, *sampled]
        assert chat.ids[len(prompt) + len(ids)] == end
        answers.append([*sampled])
        for answer in answers:
            assert contains(chat.ids, answer)
    encoding = chat.encoding
    assert [id for id, own in zip(encoding.ids, encoding.assistant_mask, strict=True) if own] == [*chain(*answers)]


@pytest.mark.parametrize("name", STOCK)
@settings(max_examples=few(20))
@given(st.data())
def test_only_given_ids_differ(tok: Tokenizer, name: str, data: st.DataObject) -> None:
    """The ids around given ones are those of their texts, encoded alone; each turn adds to the same cache."""
    chat, cache = tok.chat(template_text=STOCK[name], date_string="1 May 2025"), list[int]()
    for message in data.draw(conversations(name).filter(lambda messages: messages[0]["role"] != "system")):
        text, ids = message["content"], None
        is_plain = message["role"] == "assistant" and not set(message) - {"role", "content"}
        if is_plain and text.strip() and data.draw(st.booleans()):
            ids = spelled(tok, text) if data.draw(st.booleans()) else tok.encode(text)
            cache += ids
        turn = chat.append(message, ids)
        assert chat.ids[: turn.kept] == cache[: turn.kept]
        assert turn.kept == len(cache) or chat.ids[turn.kept] != cache[turn.kept]
        cache = [*cache[: turn.kept], *turn.new_ids]
        assert cache == chat.ids
        written = tok.decode(cache, unparse_special=True)
        assert "".join(written.split()) == "".join(chat.encoding.text.split()) or text != text.strip()


def test_a_template_that_drops_reasoning(tok: Tokenizer) -> None:
    chat = tok.chat([USER], template_text=STOCK["qwen 3"])
    prompt, thoughts = chat.ids, "<think>\nhm\n</think>\n\n"
    ids = [*spelled(tok, thoughts), *spelled(tok, "Hello")]
    turn = chat.append({"role": "assistant", "content": f"{thoughts}Hello"}, ids=ids)
    assert turn.kept == len(prompt) + len(ids)
    before = chat.ids
    turn = chat.append(USER)
    assert turn.kept == len(prompt)  # the thoughts are gone
    assert turn.new_ids[:5] == ids[-5:] == spelled(tok, "Hello")
    # The same with reasoning in a field, and ids that are what the template writes for it.
    other = tok.chat([USER], template_text=STOCK["qwen 3"])
    other.append({"role": "assistant", "content": "Hello", "reasoning_content": "hm"}, ids=ids)
    assert other.ids == before
    other.append(USER)
    assert other.ids == chat.ids
    # With trust in the ids they stay whole.
    third = tok.chat([USER], template_text=STOCK["qwen 3"])
    third.append({"role": "assistant", "content": f"{thoughts}Hello"}, ids=ids, trust="ids")
    assert third.ids == before
    assert third.append(USER).kept == len(before)
    # If no token starts where the answer does, its text is encoded.
    fourth = tok.chat([USER], template_text=STOCK["qwen 3"])
    across = tok.encode("<think>\nhm\n</think>\n\n") + tok.encode("x Hello")
    fourth.append({"role": "assistant", "content": "<think>\nhm\n</think>\n\nx Hello"}, ids=across)
    fourth.append(USER)
    assert fourth.ids[len(prompt) :][: len(tok.encode("x Hello"))] == tok.encode("x Hello")


def test_ids_and_text_that_disagree(tok: Tokenizer) -> None:
    chat = tok.chat([USER], template_text=STOCK["qwen 2.5"])
    before, wrong = chat.ids, tok.encode("Bye")
    with pytest.raises(
        MismatchError, match=r"messages\[1\]: its content is 'Hello there', but its ids are 'Bye'"
    ) as error:
        chat.append(ASSISTANT, wrong)
    assert (error.value.expected, error.value.found) == ("Hello there", "Bye")
    assert chat.ids == before
    assert chat.messages == [USER]
    chat.append(ASSISTANT, wrong, trust="ids")
    assert chat.ids == [*before, *wrong, *tok.encode("<|im_end|>\n", parse_special=True)]
    # A call, as a model wrote it: other white space than the template's.
    call = {"type": "function", "function": {"name": "look", "arguments": {"x": 1}}}
    ids = tok.encode('<tool_call>\n{"name":"look","arguments":{"x":1}}\n</tool_call>')
    chat = tok.chat([USER], template_text=STOCK["qwen 2.5"])
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    with pytest.raises(MismatchError):
        chat.append(message, ids)
    chat.append(message, ids, trust="ids")
    assert chat.ids == [*before, *ids, *tok.encode("<|im_end|>\n", parse_special=True)]
    kept = chat.append({"role": "tool", "content": "3"}).kept
    assert chat.ids[:kept] == [*before, *ids, *tok.encode("<|im_end|>\n", parse_special=True)]
    assert sum(chat.encoding.assistant_mask) == len(ids)


def test_ids_without_a_place(tok: Tokenizer) -> None:
    chat = tok.chat([USER], template_text="{% for m in messages %}<|im_start|>{{ m.content | upper }}{% endfor %}")
    with pytest.raises(MismatchError, match=r"messages\[1\]: the template does not write it, so its ids are lost"):
        chat.append(ASSISTANT, tok.encode("Hello there"))
    with pytest.raises(TokenIndexError):
        chat.append(ASSISTANT, [10**6])
    with pytest.raises(TypeError):
        chat.append(ASSISTANT, ["Hello"])  # type: ignore[list-item]
    with pytest.raises(GgtokError, match="trust must be 'text' or 'ids', not 'no'"):
        chat.append(ASSISTANT, [5], trust="no")  # type: ignore[arg-type]
    assert len(chat.messages) == 1


def test_white_space_at_the_ends(tok: Tokenizer) -> None:
    """A template that trims: the ids stay whole."""
    chat = tok.chat([USER], template_text=STOCK["gemma"])
    before, ids = chat.ids, tok.encode(" Hello \n")
    turn = chat.append({"role": "assistant", "content": " Hello \n"}, ids)
    assert chat.ids[: turn.kept] == [*before, *ids]
    assert turn.new_ids == tok.encode("<end_of_turn>\n", parse_special=True)


@pytest.mark.parametrize("vocabulary", BUILTIN)
def test_spaces_and_added_tokens_around_ids(vocabulary: str) -> None:
    tok = Tokenizer.builtin(vocabulary)
    template = "{% for m in messages %}{{ m.role }} {{ m.content }};{% endfor %}"
    ids = tok.encode("hello", continues=True, add_special=False)
    chat = tok.chat([USER], template_text=template)
    chat.append({"role": "assistant", "content": "hello"}, ids)
    before = tok.encode("user Hi;assistant ")
    if tok.vocab.add_eos or vocabulary == "wordpiece":
        before.pop()
    assert chat.ids == [*before, *ids, *tok.encode(";", continues=True)]


# The object


def test_forks_are_independent(tok: Tokenizer) -> None:
    chat = tok.chat(template_text=STOCK["qwen 2.5"])
    chat.append(USER)
    other = chat.fork()
    other.append(ASSISTANT, spelled(tok, "Hello there"))
    chat.append(ASSISTANT)
    assert chat.ids != other.ids
    assert chat.ids == whole(tok, [USER, ASSISTANT], template_text=STOCK["qwen 2.5"])
    assert chat.count(USER) == chat.num_tokens + len(chat.fork().append(USER).new_ids)
    assert chat.count() == chat.num_tokens == len(chat.ids)
    assert len(chat.messages) == 2


def test_what_callers_change_later_has_no_effect(tok: Tokenizer) -> None:
    message: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    chat = tok.chat(template_text=STOCK["qwen 2.5"])
    ids = chat.append(message).new_ids
    message["content"][0]["text"] = "Bye"
    chat.messages.append(USER)
    chat.ids.append(3)
    assert chat.ids == ids == chat.fork().ids
    assert chat.messages == [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]


def test_messages_to_begin_with(tok: Tokenizer) -> None:
    """They are rendered when ids are needed: the template refuses a lone system message."""
    system = {"role": "system", "content": "Be kind."}
    template = "{% if messages | length < 2 %}{{ raise_exception('lonely') }}{% endif %}" + STOCK["qwen 2.5"]
    chat = tok.chat([system], template_text=template)
    with pytest.raises(ChatTemplateError, match="lonely"):
        chat.ids  # noqa: B018
    assert chat.append(USER) == Turn(0, whole(tok, [system, USER], template_text=template))
    assert tok.chat().ids == []
    assert tok.chat().encoding.ids == []
    assert tok.chat().extend([]) == Turn(0, [])


def test_messages_that_are_none(tok: Tokenizer) -> None:
    """What is wrong is said at once, or when they are rendered, and changes nothing."""
    for messages in ("Hi", 3, None, {"role": "user"}):
        with pytest.raises(ChatRequestError, match="messages: expected an array"):
            tok.chat(messages)  # type: ignore[arg-type]
    chat = tok.chat([USER])
    for message in ("Hi", {"role": "user", "content": b"x"}, {"role": "user"}):
        with pytest.raises(ChatRequestError, match=r"messages\[1\]"):
            chat.append(message)  # type: ignore[arg-type]
    assert chat.messages == [USER]
    for setting in ({"raw": True}, {"continue_final_message": True}):
        with pytest.raises(GgtokError, match="does not go with it"):
            tok.chat({"messages": [USER]} | setting if "raw" not in setting else [USER], raw="raw" in setting)


@pytest.mark.filterwarnings("error::ggtok.TokenizerWarning")
def test_warnings_are_of_new_messages(tok: Tokenizer) -> None:
    chat = tok.chat([USER], template_text=STOCK["qwen 2.5"], enable_thinkin=True)
    with pytest.warns(TokenizerWarning, match="never reads the variable 'enable_thinkin'"):
        chat.append(ASSISTANT)
    chat.append(USER)
    with pytest.warns(TokenizerWarning, match=r"drops the field 'mood', which messages\[3\] has"):
        chat.append(ASSISTANT | {"mood": "good"})
    with pytest.warns(TokenizerWarning, match=r"leaves out messages\[4\], whose role is 'narrator'"):
        chat.append({"role": "narrator", "content": "Night falls."})
    chat.append(USER)


@pytest.mark.parametrize("name", STOCK)
def test_masks_of_stock_templates(tok: Tokenizer, name: str) -> None:
    messages = [USER, ASSISTANT, USER, ASSISTANT]
    chat = tok.chat(template_text=STOCK[name])
    chat.extend(messages)
    expected = tok.encode_chat(messages, template_text=STOCK[name], add_generation_prompt=False, return_spans=True)
    assert chat.encoding == expected
    assert sum(expected.assistant_mask) >= 4


def test_a_turn_encodes_what_is_new(tok: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the conversation is, a turn encodes the same number of bytes."""
    sizes: list[int] = []
    last_cut = keeping._last_cut

    def watched(rendering: Any, *args: Any) -> Any:
        found = last_cut(rendering, *args)
        sizes.append(len(rendering.data) - found[0].start)
        return found

    monkeypatch.setattr(keeping, "_last_cut", watched)
    for template in STOCK.values():
        chat = tok.chat(template_text=template, date_string="1 May 2025")
        for _ in range(20):
            chat.append(USER)
            chat.append(ASSISTANT)
        assert max(sizes[5:]) < 200
        sizes.clear()


def test_repr(tok: Tokenizer) -> None:
    chat = tok.chat([USER])
    assert repr(chat) == "<ggtok.Chat of 1 messages>"
    chat.append(ASSISTANT)
    assert repr(chat) == f"<ggtok.Chat of 2 messages, {chat.num_tokens} tokens>"


def test_a_tokenizer_is_freed_with_its_chats() -> None:
    tok = Tokenizer.builtin("spm")
    tok.chat([USER], template_text=STOCK["gemma"]).ids  # noqa: B018
    number, reference = id(tok), weakref.ref(tok)
    assert number in keeping._KNOWN
    del tok
    gc.collect()
    assert reference() is None
    assert number not in keeping._KNOWN
