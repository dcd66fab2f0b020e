"""Without jinja2 everything works, except what renders as transformers does."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
sys.modules["jinja2"] = None
import ggtok

tok = ggtok.Tokenizer.builtin("bpe")
talk = [{"role": "user", "content": "Hi"}]
text = "<|im_start|>user\\nHi<|im_end|>\\n<|im_start|>assistant\\n"
assert tok.apply_chat_template(talk) == text
assert tok.encode_chat(talk) == tok.chat(talk).ids == tok.encode(text, parse_special=True)
assert tok.count_messages(talk, template_text="{{ messages[0].content }}") == tok.count("Hi")
for call in (tok.apply_chat_template, lambda *args, **options: tok.encode_chat(*args, trust=True, **options)):
    try:
        call(talk, raw=True)
    except ggtok.DependencyError as error:
        assert str(error) == "raw=True needs jinja2, which is not installed: pip install jinja2", error
    else:
        raise AssertionError
"""


def test_without_jinja2() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", CODE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_jinja2_is_imported_only_for_raw() -> None:
    code = CODE.replace('sys.modules["jinja2"] = None\n', "").partition("for call")[0]
    code += (
        "assert 'jinja2' not in sys.modules\ntok.apply_chat_template(talk, raw=True)\nassert 'jinja2' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
