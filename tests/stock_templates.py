"""Chat templates that do what those of well-known models do, written for these tests, and conversations for them."""

from __future__ import annotations

from typing import Any

from ggtok import Tokenizer
from hypothesis import strategies as st

LLAMA_3 = """{{- bos_token }}
{%- if messages[0].role == 'system' %}
    {%- set system = messages[0].content | trim %}{%- set rest = messages[1:] %}
{%- else %}
    {%- set system = '' %}{%- set rest = messages %}
{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\nToday Date: ' + date_string + '\\n\\n' }}
{%- if tools %}{%- for tool in tools %}{{- tool | tojson(indent=4) + '\\n\\n' }}{%- endfor %}{%- endif %}
{{- system + '<|eot_id|>' }}
{%- for message in rest %}
    {%- if message.role in ('tool', 'ipython') %}
        {{- '<|start_header_id|>ipython<|end_header_id|>\\n\\n' + message.content | tojson + '<|eot_id|>' }}
    {%- elif message.tool_calls %}
        {%- if message.tool_calls | length != 1 %}{{- raise_exception('one call at a time') }}{%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n{"name": "' + call.name + '", "parameters": ' }}
        {{- call.arguments | tojson + '}<|eot_id|>' }}
    {%- else %}
        {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' + message.content | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"""

_TOOLS = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
    {{- '<tools>' }}
    {%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{%- endfor %}
    {{- '\\n</tools><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
"""
_CALLS = """{%- for call in message.tool_calls %}
            {{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
            {{- call.function.arguments | tojson + '}\\n</tool_call>' }}
        {%- endfor %}"""
_RESULTS = """{%- elif message.role == 'tool' %}
        {%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- endif %}"""

QWEN_2_5 = f"""{_TOOLS}
{{%- for message in messages %}}
    {{%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}}
        {{{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}}}
    {{%- elif message.role == 'assistant' %}}
        {{{{- '<|im_start|>assistant' }}}}
        {{%- if message.content %}}{{{{- '\\n' + message.content }}}}{{%- endif %}}
        {_CALLS}
        {{{{- '<|im_end|>\\n' }}}}
    {_RESULTS}
{{%- endfor %}}
{{%- if add_generation_prompt %}}{{{{- '<|im_start|>assistant\\n' }}}}{{%- endif %}}"""

QWEN_3 = f"""{_TOOLS}
{{%- set ns = namespace(searching=true, last=messages | length - 1) %}}
{{%- for message in messages[::-1] %}}
    {{%- set index = messages | length - 1 - loop.index0 %}}
    {{%- if ns.searching and message.role == 'user' and not message.content.startswith('<tool_response>') %}}
        {{%- set ns.searching = false %}}{{%- set ns.last = index %}}
    {{%- endif %}}
{{%- endfor %}}
{{%- for message in messages %}}
    {{%- set content = message.content %}}
    {{%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}}
        {{{{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}}}
    {{%- elif message.role == 'assistant' %}}
        {{%- set thoughts = '' %}}
        {{%- if message.reasoning_content is string %}}
            {{%- set thoughts = message.reasoning_content %}}
        {{%- elif '</think>' in content %}}
            {{%- set thoughts = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}}
            {{%- set content = content.split('</think>')[-1].lstrip('\\n') %}}
        {{%- endif %}}
        {{{{- '<|im_start|>assistant\\n' }}}}
        {{%- if loop.index0 > ns.last and (loop.last or thoughts) %}}
            {{{{- '<think>\\n' + thoughts.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}}}
        {{%- else %}}
            {{{{- content }}}}
        {{%- endif %}}
        {_CALLS}
        {{{{- '<|im_end|>\\n' }}}}
    {_RESULTS}
{{%- endfor %}}
{{%- if add_generation_prompt %}}
    {{{{- '<|im_start|>assistant\\n' }}}}
    {{%- if enable_thinking is false %}}{{{{- '<think>\\n\\n</think>\\n\\n' }}}}{{%- endif %}}
{{%- endif %}}"""

GEMMA = """{{ bos_token }}
{%- if messages[0].role == 'system' %}{{ raise_exception('no system messages') }}{% endif %}
{%- for message in messages %}
    {%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}
    {%- set role = 'model' if message.role == 'assistant' else message.role %}
    {{- '<start_of_turn>' + role + '\\n' + message.content | trim + '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"""

MISTRAL = """{%- if messages[0].role == 'system' %}
    {%- set system = messages[0].content %}{%- set rest = messages[1:] %}
{%- else %}
    {%- set rest = messages %}
{%- endif %}
{{- bos_token }}
{%- for message in rest %}
    {%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}{{- raise_exception('roles alternate') }}{%- endif %}
    {%- if message.role == 'user' %}
        {%- if loop.last and system is defined %}
            {{- '[INST] ' + system + '\\n\\n' + message.content + '[/INST]' }}
        {%- else %}
            {{- '[INST] ' + message.content + '[/INST]' }}
        {%- endif %}
    {%- else %}
        {{- ' ' + message.content + eos_token }}
    {%- endif %}
{%- endfor %}"""

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

STOCK = {"llama 3": LLAMA_3, "qwen 2.5": QWEN_2_5, "qwen 3": QWEN_3, "gemma": GEMMA, "mistral": MISTRAL}
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
