"""Made-up values for templates: JSON of every type, and conversations for chat templates."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from .jinja_grammar import BEYOND, FLOATS, HUGE, INTEGERS, KEYS, STRINGS, VARIABLES


class ValueMaker:
    """Draws values."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def chance(self, percent: float) -> bool:
        """True in this many cases of a hundred."""
        return self.rng.random() * 100 < percent

    def value(self, kind: str) -> Any:
        """A JSON value of this type."""
        rng = self.rng
        match kind:
            case "int":
                return rng.choice(BEYOND if self.chance(1) else HUGE if self.chance(8) else INTEGERS)
            case "float":
                return rng.choice(FLOATS)
            case "str":
                return rng.choice(STRINGS)
            case "none":
                return None
            case "ints":
                many = 40 if self.chance(4) else 5
                return [self.value("int") for _ in range(rng.randrange(many))]
            case "strs":
                many = 40 if self.chance(4) else 5
                return [self.value("str") for _ in range(rng.randrange(many))]
            case "dicts":
                many = 40 if self.chance(4) else 4
                return [
                    {"role": rng.choice(STRINGS), "content": self.value("str"), "n": rng.randrange(4)}
                    for _ in range(rng.randrange(many))
                ]
            case "dict":
                return {
                    key: self.value(rng.choice(["int", "str", "float", "none", "ints"]))
                    for key in rng.sample(KEYS, rng.randrange(5))
                }
            case _:
                return [
                    self.value(rng.choice(["int", "str", "float", "none", "ints", "dict"]))
                    for _ in range(rng.randrange(5))
                ]

    def values(self) -> dict[str, Any]:
        """A value for each of `VARIABLES`, except the missing one."""
        values = {
            name: self.value(kind)
            for kind, names in VARIABLES.items()
            for name in names
            if kind not in ("undef", "bool")
        }
        return values | {
            "yes": True,
            "no": False,
            "nothing": [],
            "deep": {"a": {"b": self.value("dict")}, "items": [[1, [2]], {}], "n": 1},
        }

    def conversation(self) -> dict[str, Any]:
        """What a chat template sees."""
        rng = self.rng
        arguments: dict[str, Any] = {"city": "Zürich", "n": rng.choice([1, 2.5, None, True, [1, "a"], {"x": {}}])}
        call = {
            "function": {"name": "weather", "arguments": rng.choice([arguments, json.dumps(arguments)])},
            "type": "function",
            "id": "call_1",
        }
        properties = {
            "city": {"type": "string", "description": "Where\nit is", "enum": ["a", "b"]},
            "n": {"type": ["integer", "null"]},
        }
        parameters = {"type": "object", "properties": properties, "required": ["city"]}
        tool = {
            "type": "function",
            "function": {"name": "weather", "description": "It's the weather", "parameters": parameters},
        }
        messages: list[dict[str, Any]] = []
        if self.chance(50):
            messages.append({"role": rng.choice(["system", "developer"]), "content": self.value("str")})
        for _ in range(rng.randrange(1, 4)):
            content: Any = self.value("str")
            messages.append(
                {"role": "user", "content": [{"type": "text", "text": content}] if self.chance(15) else content}
            )
            answer: dict[str, Any] = {
                "role": "assistant",
                "content": rng.choice([self.value("str"), "<think>\nhm\n</think>\n\nyes", None]),
            }
            if self.chance(30):
                answer["reasoning_content"] = self.value("str")
            if self.chance(30):
                answer["tool_calls"] = [call] * rng.choice([1, 2])
                messages += [
                    answer,
                    {"role": "tool", "content": '{"t": 20}', "tool_call_id": "call_1", "name": "weather"},
                ]
            elif self.chance(85):
                messages.append(answer)
        values: dict[str, Any] = {
            "messages": messages,
            "add_generation_prompt": self.chance(60),
            "bos_token": "<s>",
            "eos_token": "</s>",
        }
        if self.chance(50):
            values["tools"] = [tool] * rng.choice([1, 2]) if self.chance(80) else None
        if self.chance(40):
            values |= {
                "enable_thinking": self.chance(50),
                "date_string": "2024-02-29",
                "strftime": None,
                "documents": [],
            }
        return values
