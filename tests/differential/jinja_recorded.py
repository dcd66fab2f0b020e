"""Records llama.cpp's answers to made-up templates, for tests without llama.cpp.

    GGTOK_LLAMA_CPP=path/to/llama.cpp python -m tests.differential.jinja_recorded rust/chat/tests/data/jinja.jsonl

`rust/chat/tests/recorded.rs` compares our engine with them. A line is a case of `jinja_templates` with the answer:
`{"template", "values", "text"}`, or "hex" in place of "text" for bytes that are not UTF-8, or "error" with llama.cpp's
message, or "crash" if the engine does not survive it. The clock stands at 2024-02-29 23:59:59 UTC.

1. Cases are made in order of their numbers. Those that use llama.cpp's own templates are left out, and those that are
   long. Of the values only those stay that the template names.
2. A case is kept if it reaches something that few of those before it reach: a kind of node, a built-in function on a
   type, an error, or two kinds of nodes in the same template. Most cases that are kept render.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain, combinations, count, islice
from pathlib import Path

from .jinja import BATCH, general, message
from .jinja_original import Answer, Case, original, rendered
from .jinja_templates import Made, made

LONGEST = 900
"""Bytes in a line."""
TIMES = {"node": 300, "call": 20, "error": 3, "pair": 30, "crash": 3}
"""How often each thing is reached on purpose, by its kind."""
ERRORS = 0.3
"""The most of the cases that may be errors."""


def cases(seed: int) -> Iterator[Made]:
    """Made-up cases, with the values that they need."""
    for one in (made(seed, number) for number in count()):
        if one.mode != "real":
            template, values = one.case["template"], one.case["values"]
            named = {name: values[name] for name in values if re.search(rf"\b{name}\b", template)}
            yield Made(one.mode, {"template": template, "values": named})


def reached(answer: Answer) -> Iterator[tuple[str, str]]:
    """What a case shows: kind and name."""
    if "error" in answer:
        yield "error", f"{answer['stage']}: {general(message(answer) or answer['error'])}"
    elif "crash" in answer:
        yield "crash", answer["crash"]
    yield from (("call", name) for name in answer.get("calls", ()))
    nodes = sorted(answer.get("nodes", ()))
    yield from (("node", name) for name in nodes)
    yield from (("pair", " ".join(pair)) for pair in combinations(nodes, 2))


def line(case: Case, answer: Answer) -> str:
    """The case with what is kept of the answer."""
    if "error" in answer:
        told = {"error": message(answer) or answer["error"]}
    elif "crash" in answer:
        told = {"crash": answer["crash"]}
    else:
        text = rendered(answer)
        assert text is not None
        told = {"hex": text.hex()} if "b64" in answer else {"text": answer["text"]}
    return json.dumps(case | told, ensure_ascii=False, separators=(",", ":"))


def recorded(seed: int, most: int) -> Iterator[str]:
    """The lines."""
    program = original()
    seen: Counter[tuple[str, str]] = Counter()
    room = {True: int(ERRORS * most), False: most - int(ERRORS * most)}
    waiting = cases(seed)
    while any(room.values()):
        some = [one.case for one in islice(waiting, BATCH)]
        for case, answer in zip(some, program.ask([case | {"trace": True} for case in some]), strict=True):
            fails, shown, found = "error" in answer, line(case, answer), set(reached(answer))
            is_new = any(seen[each] < TIMES[each[0]] for each in found)
            if room[fails] and is_new and len(shown.encode()) <= LONGEST:
                seen.update(found)
                room[fails] -= 1
                yield shown
    program.close()


def main() -> int:
    """Writes the file."""
    parser = argparse.ArgumentParser(description="Records llama.cpp's answers to made-up templates.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--cases", type=int, default=5000, metavar="N", help="default: %(default)s")
    options = parser.parse_args()
    lines = list(recorded(options.seed, options.cases))
    options.file.parent.mkdir(parents=True, exist_ok=True)
    options.file.write_text("".join(chain.from_iterable((each, "\n") for each in lines)), encoding="utf-8")
    print(f"{len(lines)} cases, {options.file.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
