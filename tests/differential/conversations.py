"""Made-up requests for `/v1/chat/completions`: plausible conversations with a few oddities each.

The request `index` for a template depends only on the seed, the index, the template's name and its text. The text
matters because the requests use the template's own control tokens and the variables that it asks for.

Most requests render with most templates. About one in ten holds something that every server should refuse.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any

Json = dict[str, Any]

SENTENCES = (
    *(
        "Hi there",
        "What is the weather in Paris?",
        "Be brief.",
        "It's 20 °C & sunny",
        "naïve café",
        "天气怎么样\uff1f",
        "ok",
    ),
    *("```python\nprint('x')\n```", "a\n\nb", '{"a": 1}', "[1, 2]", "'quoted' \"twice\" \\ back\\n", "<b>&amp;</b>"),
    *(
        "👩‍👩‍👧 e\u0301",
        "1. one\n2. two\n",
        "tab\there",
        "{{ 1 + 1 }} {% if x %}",
        "# Tools\n",
        "Thanks!",
        "\u2028",
        "x" * 70,
    ),
)
EDGES = ("", "", "", "", "", " ", "\n", "\n\n", "  \n", "\t", "\u00a0", "\r\n")
"""White space before or after a text: mostly none."""
MARKS = (
    *(
        "<think>\nhm\n</think>\n\nyes",
        "<think></think>",
        "</think>",
        "<think>",
        "<|im_end|>",
        "<|eot_id|>",
        "</s>",
        "<s>",
    ),
    *("[INST]", "[/INST]", "<tool_call>", "</tool_call>", "<end_of_turn>", "<|channel|>final<|message|>", "/no_think"),
)
NUMBERS: tuple[int | float, ...] = (
    *(0, 1, -1, 3, 42, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**30),
    *(0.0, -0.0, 1.0, 0.5, 0.1, 2.5, 48.8566, 48.85661234, 1e-7, 1e-5, 100000.0, 123456.789, 1234567.5, 1e15, 1e16),
    *(1e21, 1e22, 1.5e300, 5e-324, 3.14159265358979, 1 / 3),
)
KEYS = (
    *("city", "days", "unit", "zeta", "alpha", "Über", "with space", "", "items", "keys", "type", "length", "name"),
    *("get", "0", "a.b", "description", "properties", 'quote"d', "content", "role"),
)
NAMES = ("weather", "get_weather", "search", "calc", "weather.now", "f", "brave-search", "naïve")
OTHER_ROLES = ("function", "ipython", "critic", "Assistant", "", "model", "tool_response", "environment", "context")
VARIABLES: dict[str, tuple[Any, ...]] = {
    "enable_thinking": (True, False),
    "thinking": (True, False),
    "reasoning_effort": ("low", "medium", "high", "max", "none", ""),
    "preserve_reasoning": (True, False),
    "preserve_thinking": (True, False),
    "clear_thinking": (True, False),
    "keep_past_thinking": (True, False),
    "date_string": ("26 Jul 2024", ""),
    "datetime": ("2024-07-26",),
    "builtin_tools": (["web_search"], ["python", "browser"], []),
    "model_identity": ("You are an oracle.",),
    "documents": ([{"title": "T", "text": "Body."}], []),
    "custom": (None, 1, 0.5, "text", [1, {"a": None}]),
    "add_generation_prompt": (True, False),
    "bos_token": ("<B>", ""),
    "tools": ([], None),
}
"""Values for `chat_template_kwargs`."""
ASKED = re.compile(r"\b([a-z_]\w*)\s+is\s+(?:not\s+)?(?:defined|none|true|false|string)\b")
CONTROL = re.compile(r"<[|\uff5c][^<>{}\n]{1,40}[|\uff5c]>|</?[a-z_]{2,24}>|\[/?[A-Z_]{3,20}\]")


def bodies(seed: int, count: int, name: str, template: str) -> Iterator[Json]:
    """Returns the first requests of a seed for a template."""
    for index in range(count):
        yield Writer(Random(f"{seed}/{index}/{name}"), template).body()


class Writer:
    """Writes one request."""

    def __init__(self, random: Random, template: str) -> None:
        self.random = random
        self.controls = sorted(set(CONTROL.findall(template))) or list(MARKS)
        self.variables = sorted(set(ASKED.findall(template)) - {"message", "messages", "ns", "content"})

    def one(self, chance: float) -> bool:
        """Whether something of this probability happens."""
        return self.random.random() < chance

    # Values.

    def text(self) -> str:
        """A text with white space around it now and then, and with control tokens now and then."""
        parts = [self.random.choice(SENTENCES) for _ in range(self.random.choice((1, 1, 1, 1, 2, 3)))]
        if self.one(0.12):
            marks = MARKS if self.one(0.5) else self.controls
            parts.insert(self.random.randrange(len(parts) + 1), self.random.choice(marks))
        joined = self.random.choice((" ", " ", "\n", "")).join(parts)
        return self.random.choice(EDGES) + joined + self.random.choice(EDGES)

    def number(self) -> int | float:
        """Mostly small."""
        return self.random.choice(NUMBERS) if self.one(0.7) else self.random.randrange(-9, 100)

    def value(self, depth: int = 3) -> Any:
        """A JSON value."""
        kind = self.random.randrange(9 if depth else 6)
        if kind < 2:
            return self.text() if self.one(0.7) else ""
        if kind < 4:
            return self.number()
        if kind < 6:
            return self.random.choice((True, False, None))
        if kind == 6:
            return [self.value(depth - 1) for _ in range(self.random.randrange(4))]
        return self.mapping(depth - 1)

    def mapping(self, depth: int = 2) -> Json:
        """A JSON object whose keys are in no order."""
        return {self.random.choice(KEYS): self.value(depth) for _ in range(self.random.choice((0, 1, 1, 2, 2, 3, 5)))}

    # Tools and calls.

    def schema(self, depth: int = 2) -> Json:
        """A JSON schema for one value."""
        kind = self.random.choice(("string", "string", "integer", "number", "boolean", "array", "object"))
        schema: Json = {"type": kind}
        if self.one(0.6):
            schema["description"] = self.text()
        if kind in ("integer", "number") and self.one(0.5):
            schema[self.random.choice(("minimum", "maximum", "default", "multipleOf"))] = self.number()
        if kind == "string" and self.one(0.3):
            schema["enum"] = [self.text() for _ in range(self.random.choice((1, 2, 2, 3)))]
            if self.one(0.04):
                schema["enum"] = []
        if kind == "array" and self.one(0.8):
            schema["items"] = self.schema(depth - 1) if depth else {"type": "string"}
        if kind == "object":
            schema |= self.parameters(depth - 1) if depth else {}
        if self.one(0.1):
            schema["default"] = self.random.choice((None, 0.0, "x", [], {}, False))
        if self.one(0.08):
            schema["type"] = self.random.choice((["string", "null"], ["integer"], None))
        if self.one(0.05):
            schema = {self.random.choice(("anyOf", "oneOf", "allOf")): [schema, {"type": "null"}]}
        if self.one(0.05):
            schema["nullable"] = True
        return dict(self.random.sample(list(schema.items()), len(schema)))

    def parameters(self, depth: int = 2) -> Json:
        """The schema of a function's arguments."""
        properties = {self.random.choice(KEYS[:8]): self.schema(depth) for _ in range(self.random.randrange(4))}
        parameters: Json = {"type": "object", "properties": properties}
        if self.one(0.6):
            parameters["required"] = [key for key in properties if self.one(0.6)]
        if self.one(0.15):
            parameters["additionalProperties"] = False
        if self.one(0.05):
            parameters["$defs"] = {"d": self.schema(0)}
        return parameters

    def tool(self) -> Json:
        """The definition of a function."""
        function: Json = {
            "name": self.random.choice(NAMES),
            "description": self.text(),
            "parameters": self.parameters(),
        }
        if self.one(0.1):
            del function["description"]
        if self.one(0.1):
            function["parameters"] = {}
        elif self.one(0.08):
            del function["parameters"]
        if self.one(0.1):
            function["strict"] = True
        if self.one(0.08):
            function["return"] = {"type": "string"}
        if self.one(0.1):
            function = dict(reversed(function.items()))
        return {"type": "function", "function": function}

    def arguments(self) -> Any:
        """Arguments of a call, mostly as the text that a server returns."""
        values = self.mapping()
        kind = self.random.randrange(20)
        if kind < 10:
            return json.dumps(values, ensure_ascii=self.one(0.5))
        if kind < 15:
            return values
        if kind < 18:
            return json.dumps(values, indent=2)
        return self.random.choice(
            ("{}", "", "null", None, "{", "[1, 2.50]", '"text"', '{"a":1.50,"b":1E5,"a":-0}', "not json", [], "5", 7)
        )

    def call(self) -> Json:
        """A tool call. Some templates take only ids of nine letters and digits."""
        called = {"name": self.random.choice(NAMES[:4]), "arguments": self.arguments()}
        if self.one(0.2):
            called = dict(reversed(called.items()))
        return {"id": self.random.choice(("call00001", "a1B2c3D4e", "call_1")), "type": "function", "function": called}

    # Messages.

    def content(self) -> Any:
        """A text, or parts of one."""
        if self.one(0.82):
            return self.text()
        return [{"type": "text", "text": self.part()} for _ in range(self.random.choice((0, 1, 1, 1, 2, 2, 3)))]

    def part(self) -> str:
        """The text of a part, which is empty or blank now and then."""
        return self.text() if self.one(0.75) else self.random.choice(("", " ", "\n"))

    def answer(self) -> Json:
        """The assistant's message without tool calls."""
        message: Json = {"role": "assistant", "content": self.content()}
        if self.one(0.3):
            message["reasoning_content"] = self.text()
        return message

    def calls(self) -> list[Json]:
        """The assistant's message with tool calls, and the tools' answers."""
        calls = [self.call() for _ in range(self.random.choice((1, 1, 1, 2, 3)))]
        message: Json = {
            "role": "assistant",
            "content": self.random.choice(("", None, self.text())),
            "tool_calls": calls,
        }
        if self.one(0.2):
            del message["content"]
        if self.one(0.3):
            message["reasoning_content"] = self.text()
        messages = [message]
        for call in calls:
            answer: Json = {"role": "tool", "tool_call_id": call["id"], "content": self.content()}
            if self.one(0.5):
                answer["name"] = call["function"]["name"]
            if self.one(0.3):
                answer["content"] = json.dumps(self.value())
            messages.append(answer)
        return messages[: None if self.one(0.9) else self.random.randrange(1, len(messages) + 1)]

    def messages(self, with_tools: bool) -> list[Json]:
        """A conversation of about one to eight messages."""
        messages: list[Json] = []
        if self.one(0.45):
            role = "developer" if self.one(0.12) else "system"
            messages.append({"role": role, "content": self.content()})
        for _ in range(self.random.choice((0, 0, 0, 1, 1, 2))):
            messages.append({"role": "user", "content": self.content()})
            if self.one(0.6 if with_tools else 0.05):
                messages += self.calls()
            if self.one(0.8):
                messages.append(self.answer())
        messages.append({"role": "user", "content": self.content()})
        if self.one(0.35 if with_tools else 0.03):
            messages += self.calls()
        if self.one(0.2):
            messages.append(self.answer())
        return messages

    def body(self) -> Json:
        """A whole request."""
        with_tools = self.one(0.4)
        body: Json = {"messages": self.messages(with_tools)}
        if with_tools:
            body["tools"] = [self.tool() for _ in range(self.random.choice((1, 1, 2, 3)))]
        if self.one(0.12):
            body["add_generation_prompt"] = self.one(0.3)
        for _ in range(self.random.choice((0, 0, 0, 1, 1, 2))):
            self.random.choice(SETTINGS)(self, body)
        for _ in range(self.random.choice((0, 0, 1, 1, 2, 3))):
            self.random.choice(ODDITIES)(self, body)
        if self.one(0.1):
            self.random.choice(FAULTS)(self, body)
        return body


# What changes a request. Each function takes the writer and the request.

Change = Callable[[Writer, Json], None]


def message_of(writer: Writer, body: Json, *roles: str) -> Json:
    """One of the messages with one of these roles, or a new one that does not count."""
    return writer.random.choice([each for each in body["messages"] if not roles or each.get("role") in roles] or [{}])


def setting(name: str, *values: Any) -> Change:
    """Sets a field of the request to one of these values."""

    def change(writer: Writer, body: Json) -> None:
        body[name] = deepcopy(writer.random.choice(values))

    return change


def variables(writer: Writer, body: Json) -> None:
    """Sets variables that the template asks for, or that some templates know."""
    some = body.setdefault("chat_template_kwargs", {})
    for _ in range(writer.random.choice((1, 1, 2))):
        known = writer.random.choice(list(VARIABLES))
        if writer.variables and writer.one(0.6):
            known = writer.random.choice(writer.variables)
        some[known] = writer.random.choice(VARIABLES.get(known, (True, False, "text", 3, None)))


SETTINGS: tuple[Change, ...] = (
    variables,
    variables,
    variables,
    setting("reasoning_effort", "low", "medium", "high", "none", "minimal", "", None),
    setting("documents", [{"title": "T", "text": "Body."}], [{"doc_id": 1, "title": "a", "text": "b"}], []),
    setting("tool_choice", "none", "auto", "required"),
    setting("parallel_tool_calls", True, False),
    setting("response_format", {"type": "json_object"}, {"type": "text"}, {"type": "json_schema", "json_schema": {}}),
    setting("json_schema", {"type": "object"}, {"type": "string", "enum": ["a"]}),
    setting("continue_final_message", True, False, "content", "reasoning_content"),
    setting("reasoning_format", "none", "auto", "deepseek", "deepseek-legacy"),
    setting("stop", ["x"], "x"),
    setting("stream", True),
)


def field(name: str, roles: tuple[str, ...], *values: Any) -> Change:
    """Sets a field of a message with one of these roles to one of these values."""

    def change(writer: Writer, body: Json) -> None:
        message_of(writer, body, *roles)[name] = deepcopy(writer.random.choice(values))

    return change


def bare_request(writer: Writer, body: Json) -> None:
    """Removes the tools and keeps the calls."""
    body.pop("tools", None)


def extra_message(writer: Writer, body: Json) -> None:
    """Inserts a message anywhere: two of a role in a row, a system message in the middle."""
    role = writer.random.choice(("system", "user", "assistant", "tool", "developer"))
    body["messages"].insert(
        writer.random.randrange(len(body["messages"]) + 1), {"role": role, "content": writer.content()}
    )


def lost_message(writer: Writer, body: Json) -> None:
    """Removes a message."""
    if len(body["messages"]) > 1:
        del body["messages"][writer.random.randrange(len(body["messages"]))]


def another_role(writer: Writer, body: Json) -> None:
    """Renames a role."""
    message_of(writer, body)["role"] = writer.random.choice(OTHER_ROLES)


def other_keys(writer: Writer, body: Json) -> None:
    """Turns the order of a message's fields around."""
    message = message_of(writer, body)
    items = list(reversed(message.items()))
    message.clear()
    message.update(items)


def lost_id(writer: Writer, body: Json) -> None:
    """Removes the id of a tool call, or of the answer."""
    message = message_of(writer, body, "assistant", "tool")
    message.pop("tool_call_id", None)
    for call in message.get("tool_calls") or []:
        call.pop("id", None)


def call_without_tools(writer: Writer, body: Json) -> None:
    """Ends with a call."""
    body["messages"] += writer.calls()[: writer.random.randrange(1, 3)]


def thought(writer: Writer, body: Json) -> None:
    """Ends with the assistant's thoughts, to be continued."""
    message = {
        "role": "assistant",
        "content": writer.random.choice(("", None, writer.text())),
        "reasoning_content": "I think",
    }
    body["messages"].append(message)


ODDITIES: tuple[Change, ...] = (
    bare_request,
    extra_message,
    extra_message,
    lost_message,
    another_role,
    other_keys,
    lost_id,
    call_without_tools,
    thought,
    field("content", (), "", " ", "\n", [], None),
    field("content", ("assistant",), "", None, [{"type": "text", "text": ""}]),
    field("content", ("system", "tool"), [{"type": "text", "text": "one"}, {"type": "text", "text": "two "}]),
    field("tool_calls", ("assistant", "user"), [], []),
    field("annotations", ("assistant",), [], [{"type": "url_citation"}]),
    field("refusal", ("assistant",), None, "No."),
    field("audio", ("assistant",), None),
    field("function_call", ("assistant",), None, {"name": "f", "arguments": "{}"}),
    field("reasoning_content", ("assistant",), "", " ", "\n", "Hm.\n", "<think>x</think>"),
    field("reasoning", ("assistant",), "Old name of the field"),
    field("thinking", ("assistant",), "Another name of the field", ""),
    field("name", (), "alice", "", "naïve"),
    field("tool_call_id", ("tool", "user"), "call00009", ""),
    field("prefix", ("assistant",), True),
    field("recipient", ("assistant",), "weather"),
    field("id", (), 7, "m1"),
    setting("tools", [], []),
    setting("tools", None),
    setting("chat_template_kwargs", {}, None),
)
"""What real clients send."""


def odd_part(writer: Writer, body: Json) -> None:
    """Adds a part that has no text here."""
    parts: list[Any] = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "input_text", "text": "x"},
        {"type": "output_text", "text": "x"},
        {"type": "refusal", "refusal": "x"},
        {"type": "file", "file": {"file_id": "f"}},
        {"type": "media_marker", "text": "<__media__>"},
        {"type": "text"},
        {"type": "text", "text": None},
        {"type": "text", "text": 5},
        {"text": "x"},
        {"type": None, "text": "x"},
        "x",
        None,
        7,
    ]
    message_of(writer, body)["content"] = [{"type": "text", "text": "a"}, writer.random.choice(parts)]


def broken_call(writer: Writer, body: Json) -> None:
    """Breaks a tool call."""
    calls: list[Any] = [
        *({"id": "a", "type": "function"}, {"function": {"name": "f", "arguments": "{}"}}, {}, None, "f", 1),
        *({"type": "function", "function": {"name": "f"}}, {"type": "function", "function": {"arguments": "{}"}}),
        *({"type": "custom", "function": {"name": "f", "arguments": "{}"}}, {"type": "function", "function": "f"}),
        {"type": "function", "id": 5, "function": {"name": "f", "arguments": "{}"}},
        {"type": "function", "id": None, "function": {"name": "f", "arguments": "{}"}},
        {"type": "function", "function": {"name": None, "arguments": "{}"}},
    ]
    message_of(writer, body, "assistant")["tool_calls"] = [writer.random.choice(calls)]


def broken_tool(writer: Writer, body: Json) -> None:
    """Breaks the definition of a tool."""
    tools: list[Any] = [
        *(
            {"name": "f", "parameters": {}},
            {"type": "function"},
            {"type": "custom", "function": {"name": "f"}},
            "f",
            None,
        ),
        *({"type": "function", "function": {}}, {"type": "function", "function": {"name": None}}, 5, []),
        {"type": "function", "function": {"name": "f", "parameters": None, "description": None}},
        {"type": "function", "function": {"name": "f", "parameters": "none", "description": 5}},
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": None}}},
        {"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {}, "b": 5, "c": None}}}},
    ]
    body["tools"] = writer.random.choice(([writer.random.choice(tools)], [writer.random.choice(tools)], {}, "f", 5))


def lost_field(writer: Writer, body: Json) -> None:
    """Removes the role or the content of a message."""
    message_of(writer, body).pop(writer.random.choice(("role", "content")), None)


def no_message(writer: Writer, body: Json) -> None:
    """Puts something else into the list of messages."""
    messages: list[Any] = body["messages"]
    messages[writer.random.randrange(len(messages))] = writer.random.choice((None, 5, "Hi", [], {}, [["role", "user"]]))


FAULTS: tuple[Change, ...] = (
    odd_part,
    odd_part,
    broken_call,
    broken_call,
    broken_tool,
    broken_tool,
    lost_field,
    no_message,
    field("content", (), 5, 0.5, True, {}, {"text": "x"}, [["text"]]),
    field("role", (), None, 5, []),
    field("name", (), 5, None),
    field("tool_call_id", (), 5, None),
    field("reasoning_content", ("assistant",), None, 5, []),
    field("tool_calls", ("assistant",), None, "", {}, 5, "f"),
    field("content", ("user",), "lone \ud800 surrogate", "nul \0 here", "\ud83d\ude00"),
    setting("messages", [], {}, None, "Hi", [[]]),
    setting(
        "chat_template_kwargs", [], "x", {"enable_thinking": "false"}, {"enable_thinking": None}, 5, {"messages": []}
    ),
    setting("tool_choice", "maybe", {"type": "function", "function": {"name": "f"}}, None, 5),
    setting("continue_final_message", 1, "thinking", None),
    setting("add_generation_prompt", None, "yes", 1),
    setting("response_format", {"type": "yaml"}, "json", None),
    setting("reasoning_format", "nothing"),
    setting("reasoning_effort", 5, []),
    setting("parallel_tool_calls", "yes", None),
    setting("grammar", 'root ::= "a"'),
    setting("top_logprobs", 5),
)
"""What a server should refuse, or ignore on purpose."""
