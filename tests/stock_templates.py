"""Chat templates that do what those of well-known models do, written for these tests, and conversations for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ggtok import Tokenizer
from hypothesis import strategies as st

TEMPLATES = Path(__file__).parent / "templates"
"""Templates in files, written for these tests. Its README says which ones there are."""

ODD = {
    "counting": "{{ messages | length }}{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}",
    "backwards": "{% for m in messages | reverse %}<|im_start|>{{ m.role }} {{ m.content }}<|im_end|>{% endfor %}",
    "bare": "{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}",
    "last first": "{{ messages[-1].content }}<|im_end|>{% for m in messages %}{{ m.content ~ eos_token }}{% endfor %}",
    "other endings": "{% for m in messages %}{{ bos_token ~ m.content }}{% endfor %}{{ eos_token ~ eos_token }}",
    "generation": "{% for m in messages %}<|im_start|>{{ m.role }}\n{% generation %}{{ m.content }}<|im_end|>"
    "{% endgeneration %}\n{% endfor %}",
}
"""Templates that rewrite what came before, or have no control tokens."""

NAMES = ("llama 3", "qwen 2.5", "qwen 3", "gemma", "mistral")
STOCK = {name: (TEMPLATES / f"stock-{name.replace(' ', '-')}.jinja").read_text("utf-8") for name in NAMES}
"""Templates that do what those of well-known models do."""
CONTROL = (
    *("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<start_of_turn>"),
    *("<end_of_turn>", "[INST]", "[/INST]", "<s>", "</s>", "<|im_start|>", "<|im_end|>"),
)

TOOL = {"type": "function", "function": {"name": "look", "description": "d", "parameters": {"type": "object"}}}


def with_controls(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer with the control tokens of these templates."""
    import io

    missing = [text for text in CONTROL if tokenizer.vocab.id(text) is None]
    file = io.BytesIO()
    return tokenizer.to_gguf(file, add_control_tokens=missing, special={"bos": "<s>", "eos": "</s>"})


WORDS = ["Hi", " there", "\n", "\n\n", "  ", "a" * 9, "\u00e9\u4e00", "LoRA?", "1234567", "", "'s", "\t"]
ODD_TEXTS = ["<|im_end|>", "<|eot_id|>", "</s>", "<think>\nhm\n</think>\n\nyes", "[INST]", "<s>", "<end_of_turn>"]
CONTENTS = st.lists(st.sampled_from([*WORDS, *ODD_TEXTS]), max_size=5).map("".join)


@st.composite
def conversations(draw: st.DrawFn, name: str) -> list[dict[str, Any]]:
    """Messages that a template takes."""
    messages: list[dict[str, Any]] = []
    if name != "gemma" and draw(st.booleans()):
        messages.append({"role": "system", "content": draw(CONTENTS)})
    for _ in range(draw(st.integers(1, 4))):
        messages.append({"role": "user", "content": draw(CONTENTS)})
        if name in ("llama 3", "qwen 2.5", "qwen 3") and draw(st.booleans()):
            arguments = {"x": draw(CONTENTS)}
            calls = [{"type": "function", "function": {"name": "look", "arguments": arguments}}]
            messages.append({"role": "assistant", "content": "", "tool_calls": calls})
            messages += [{"role": "tool", "content": draw(CONTENTS)}] * draw(st.integers(1, 3))
        messages.append({"role": "assistant", "content": draw(CONTENTS)})
        if name == "qwen 3" and draw(st.booleans()):
            messages[-1]["reasoning_content"] = draw(CONTENTS)
    return messages[: draw(st.integers(1, len(messages)))]
