"""Our template engine against llama.cpp's, with made-up templates and llama.cpp's own.

    python -m tests.differential.jinja --seconds 60 --seed 7 --ours target/release/examples/render
    python -m tests.differential.jinja --seed 7 --first 1234 --count 1 --ours ...       # one case again
    python -m tests.differential.jinja --ours original      # or mutant: llama.cpp's engine with known faults

1. `jinja_templates` makes cases, and both programs answer them.
2. Texts must be the same byte by byte, and so must the parts that say what came from the values. Errors must be errors
   on both sides; their messages are only counted.
3. What differs and is not one of `DEVIATIONS` is shrunk, and grouped by what its smallest template uses.

Exit code 1 if anything differs that no deviation explains. `GGTOK_LLAMA_CPP` names llama.cpp's tree.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from .jinja_grammar import FUNCTIONS, METHODS, MODES, RECEIVERS, TESTS, TOKEN
from .jinja_original import Answer, Case, Program, build, parts, rendered
from .jinja_templates import Made, made

BATCH = 256
"""Cases in one question to each side."""


class Deviation(NamedTuple):
    """An expected difference."""

    number: int
    reason: str
    explains: Callable[[Case, Answer, Answer], bool]
    """Of the case, llama.cpp's answer and ours."""


def error(answer: Answer) -> str:
    """What an error says, or nothing."""
    return str(answer.get("error", ""))


BOUNDS = re.compile("too much memory|too many steps|levels deep|inside each")
"""What our errors say about limits."""
DEVIATIONS = [
    Deviation(
        1,
        "llama.cpp dies of a division by zero or of an overflow, and ours returns an error",
        lambda case, theirs, ours: theirs.get("crash") == "signal 8" and "error" in ours,
    ),
    Deviation(
        2,
        "llama.cpp's stack overflows, and ours returns an error or goes on",
        lambda case, theirs, ours: theirs.get("crash") == "signal 11" and "crash" not in ours,
    ),
    Deviation(
        3,
        "llama.cpp needs too much time or memory, and ours returns an error or the text",
        lambda case, theirs, ours: theirs.get("crash") in ("timeout", "memory") and "crash" not in ours,
    ),
    Deviation(
        4,
        "a template takes more steps, memory or nesting than ours allows",
        lambda case, theirs, ours: bool(
            re.search("too much memory|too many steps|levels deep|inside each", error(ours))
        ),
    ),
    Deviation(
        5,
        "an empty string made of an undefined value has no parts in llama.cpp, which shows in `[x.upper]|string`",
        lambda case, theirs, ours: (
            rendered(ours) != rendered(theirs) == (rendered(ours) or b"").replace(b"(TMPL:  \n)", b"()")
        ),
    ),
]
"""The intended differences, in one place."""


def message(answer: Answer) -> str:
    """The error's own words, without the source that llama.cpp puts around them."""
    text = str(answer.get("error", "")).rpartition("\nError: ")[2]
    return text.partition("\n...")[0].strip()


def kind(theirs: Answer, ours: Answer) -> str | None:
    """In what way two answers differ, or None."""
    if "crash" in ours:
        return f"ours dies: {ours['crash']}"
    if "crash" in theirs:
        return f"llama.cpp dies: {theirs['crash']}"
    if "error" in theirs or "error" in ours:
        if "error" in theirs and "error" in ours:
            return None
        return f"only {'ours' if 'error' in ours else 'llama.cpp'} fails: {general(message(ours) or message(theirs))}"
    if rendered(theirs) != rendered(ours):
        return "text"
    return "parts" if "parts" in ours and parts(theirs) != parts(ours) else None


def general(text: str) -> str:
    """The text without what varies from case to case."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "_", text)[:120]


class Finding(NamedTuple):
    """A difference: the case that showed it, and the smallest one that shows the same."""

    kind: str
    replay: str
    """The command that makes the case again."""
    small: Case
    theirs: Answer
    ours: Answer

    def group(self) -> str:
        """The same for findings of one cause, mostly."""
        return f"{self.kind}: {features(self.small['template'])}" if self.kind in ("text", "parts") else self.kind

    def lines(self) -> Iterator[str]:
        """The finding for a reader."""
        yield f"DIFFERENCE: {self.kind}"
        yield f"  template   {self.small['template']!r}"
        yield f"  values     {json.dumps(self.small['values'], ensure_ascii=False)}"
        yield f"  llama.cpp  {shown(self.theirs)}"
        yield f"  ours       {shown(self.ours)}"
        yield f"  line       {json.dumps(self.small)}"
        yield f"  replay     {self.replay} --count 1 --ours ..."


def features(template: str) -> str:
    """The statements, operators and built-in functions of a template."""
    words = {
        *chain(*METHODS.values()),
        *TESTS,
        *FUNCTIONS,
        *OPENERS,
        "loop",
        "else",
        "elif",
        "break",
        "continue",
        "not",
        "and",
        "or",
    }
    tags = [
        token for segment in SEGMENT.findall(template) if segment[0] == "{" for token in TOKEN.findall(segment[2:-2])
    ]
    used = {token for token in tags if token in words or not (token[0].isalnum() or token[0] in " _'\"()")}
    return " ".join(sorted(used)) or "text"


def shown(answer: Answer) -> str:
    """An answer in one line."""
    if "error" in answer:
        return f"error: {message(answer)}"
    if "crash" in answer:
        return f"crash: {answer['crash']}"
    return f"{rendered(answer)!r} of {parts(answer)}"


class Pair:
    """Both sides."""

    def __init__(self, theirs: Program, ours: Program) -> None:
        self.theirs, self.ours = theirs, ours

    def ask(self, cases: Sequence[Case]) -> list[tuple[Answer, Answer]]:
        """Both answers to each case."""
        return list(zip(self.theirs.ask(cases), self.ours.ask(cases), strict=True))

    def unexplained(self, case: Case, theirs: Answer, ours: Answer) -> tuple[str | None, int | None]:
        """The kind of difference, if any, and the number of the deviation that explains it, if any."""
        difference = kind(theirs, ours)
        if difference is None:
            return None, None
        number = next((deviation.number for deviation in DEVIATIONS if deviation.explains(case, theirs, ours)), None)
        return difference, number

    def shrunk(self, case: Case, difference: str, seconds: float) -> Case:
        """The smallest case found that differs in the same way."""
        end = time.monotonic() + seconds
        before = None
        while case != before and time.monotonic() < end:
            before = case
            for family in (without_tags, without_values, without_tokens):
                better: Case | None = case
                while better and time.monotonic() < end:
                    case = better
                    better = self._first_of(family(case), difference, end)
        return case

    def _first_of(self, candidates: Iterator[Case], difference: str, end: float) -> Case | None:
        while (some := list(islice(candidates, 48))) and time.monotonic() < end:
            if better := self._first(some, difference):
                return better
        return None

    def _first(self, cases: Sequence[Case], difference: str) -> Case | None:
        for case, (theirs, ours) in zip(cases, self.ask(cases), strict=True):
            if self.unexplained(case, theirs, ours) == (difference, None):
                return case
        return None


OPENERS = {
    "if": "endif",
    "for": "endfor",
    "macro": "endmacro",
    "call": "endcall",
    "filter": "endfilter",
    "set": "endset",
}
SEGMENT = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|(?:(?!\{[{%#]).)+|.", re.DOTALL)


def without_tags(case: Case) -> Iterator[Case]:
    """The template without some of its tags and text, the boldest first."""
    template = case["template"]
    segments = SEGMENT.findall(template)
    words = [match[1] if (match := re.match(r"\{%-?\s*(\w+)", segment)) else "" for segment in segments]
    opened: list[int] = []
    pairs: list[tuple[int, int]] = []
    for i, word in enumerate(words):
        if word in OPENERS and not (word == "set" and "=" in segments[i]):
            opened.append(i)
        elif opened and word == OPENERS[words[opened[-1]]]:
            pairs.append((opened.pop(), i))
    texts = [*_without_runs(segments, len(segments) // 2)]
    for start, end in sorted(pairs, key=lambda pair: pair[0] - pair[1]):
        texts.append("".join(segments[:start] + segments[end + 1 :]))
        texts.append("".join(segments[:start] + segments[start + 1 : end] + segments[end + 1 :]))
    yield from ({**case, "template": text} for text in texts)


def without_tokens(case: Case) -> Iterator[Case]:
    """The template without a bracket, its content or a few tokens, or with a simpler token."""
    tokens = TOKEN.findall(case["template"])
    texts: list[str] = []
    brackets: list[int] = []
    for i, token in enumerate(tokens):
        if token in ("(", "[", "{"):
            brackets.append(i)
        elif token in (")", "]", "}") and brackets:
            start = brackets.pop()
            texts.append("".join(tokens[:start] + tokens[start + 1 : i] + tokens[i + 1 :]))
            texts.append("".join([*tokens[:start], "n", *tokens[i + 1 :]]))
    texts += _without_runs(tokens, min(len(tokens), 12))
    for i, token in enumerate(tokens):
        simpler = ["''", "'a'", "0", "1", "x", " "] if token[0] not in "{%-#}" else [token.replace("-", "")]
        texts += ("".join([*tokens[:i], other, *tokens[i + 1 :]]) for other in simpler if len(other) < len(token))
    yield from ({**case, "template": text} for text in texts if len(text) < len(case["template"]))


def without_values(case: Case) -> Iterator[Case]:
    """Fewer and simpler values."""
    values = case["values"]
    used = {key: value for key, value in values.items() if re.search(rf"\b{re.escape(key)}\b", case["template"])}
    size = len(json.dumps(values))
    for simpler in chain([used], smaller_values(values)):
        if len(json.dumps(simpler)) < size:
            yield {**case, "values": simpler}


def _without_runs(pieces: list[str], longest: int) -> Iterator[str]:
    """Without each run of pieces: the longest runs first, and few lengths."""
    length = longest
    while length > 0:
        for start in range(0, len(pieces) - length + 1, max(1, length // 4)):
            yield "".join(pieces[:start] + pieces[start + length :])
        length = length // 2 if length > 8 else length - 1


def smaller_values(value: Any) -> Iterator[Any]:
    """Simpler JSON of the same type, or a replacement."""
    if isinstance(value, dict):
        for key in value:
            yield {k: v for k, v in value.items() if k != key}
        for key in value:
            yield from ({**value, key: simpler} for simpler in smaller_values(value[key]))
    elif isinstance(value, list):
        yield from ([], value[: len(value) // 2], value[len(value) // 2 :])
        for i, item in enumerate(value):
            yield value[:i] + value[i + 1 :]
            yield from ([*value[:i], simpler, *value[i + 1 :]] for simpler in smaller_values(item))
    elif isinstance(value, str) and value:
        yield from ("", "a", value[: len(value) // 2], value[len(value) // 2 :], value[1:], value[:-1])
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from (0, 1, 0.5)


class Tally:
    """Counts of what was compared."""

    def __init__(self) -> None:
        self.cases: Counter[tuple[str, str]] = Counter()
        """By mode and by what llama.cpp answered."""
        self.explained: Counter[int] = Counter()
        self.differences = 0
        self.messages: Counter[str] = Counter()
        self.unlike: dict[str, tuple[str, str, str]] = {}
        """Error messages that differ, with ours and a template, by theirs without what varies."""
        self.nodes: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def add(self, one: Made, theirs: Answer, ours: Answer) -> None:
        """Counts a case."""
        answered = (
            "rendered" if rendered(theirs) is not None else "crash" if "crash" in theirs else f"{theirs['stage']} error"
        )
        self.cases[one.mode, answered] += 1
        if "error" in theirs and "error" in ours:
            if theirs["error"] == ours["error"]:
                self.messages["the same with the source"] += 1
            elif message(theirs) == message(ours):
                self.messages["the same words"] += 1
            else:
                self.messages["other words"] += 1
                self.unlike.setdefault(general(message(theirs)), (message(theirs), message(ours), one.case["template"]))

    def lines(self, num_messages: int) -> Iterator[str]:
        """The report."""
        kinds = sorted({answered for _, answered in self.cases})
        yield "".join(["mode".ljust(12), *(name.rjust(16) for name in kinds)])
        for mode in MODES:
            yield "".join([mode.ljust(12), *(str(self.cases[mode, name]).rjust(16) for name in kinds)])
        yield "messages of errors on both sides: " + (told(self.messages) or "none")
        for theirs, ours, template in [*self.unlike.values()][:num_messages]:
            yield f"  {theirs!r}\n    ours {ours!r}\n    in {template[:100]!r}"
        yield f"nodes in templates that rendered: {told(self.nodes)}"
        for name, receiver in RECEIVERS.items():
            reached = {method: self.calls[f"{method} {receiver}"] for method in METHODS[name]}
            missing = [method for method, count in reached.items() if not count]
            yield f"{receiver}: {told(Counter(reached))}" + (f"; never {', '.join(missing)}" if missing else "")
        yield f"tests: {told(Counter({test: self.calls[f'test_is_{test}'] for test in TESTS}))}"
        yield f"functions: {told(Counter({name: self.calls[name] for name in FUNCTIONS}))}"
        for deviation in DEVIATIONS:
            if self.explained[deviation.number]:
                yield f"deviation {deviation.number}, {self.explained[deviation.number]} times: {deviation.reason}"


def told(counts: Counter[str]) -> str:
    """Counts in one line."""
    return ", ".join(f"{name} {count}" for name, count in counts.most_common() if count)


class Original(Program):
    """llama.cpp's engine as ours, to test this tool: nothing may differ."""

    def ask(self, cases: Sequence[Case]) -> list[Answer]:
        """Returns errors for crashes, as ours does."""
        return [{"error": answer["crash"]} if "crash" in answer else answer for answer in super().ask(cases)]


class Mutant(Original):
    """The same with faults: the tool must find and shrink each."""

    def ask(self, cases: Sequence[Case]) -> list[Answer]:
        """Changes what some filters do, then what some answers say."""
        changed = [{**case, "template": re.sub(r"\|\s*title\b", "|upper", case["template"])} for case in cases]
        return [self._changed(answer) for answer in super().ask(changed)]

    def _changed(self, answer: Answer) -> Answer:
        text = answer.get("text", "")
        if "48.85661" in text:
            return {**answer, "text": text.replace("48.85661", "48.8566")}
        if "between Array and" in answer.get("error", ""):
            return {"text": "", "parts": []}
        return {
            **answer,
            "parts": [[piece, is_input and "日" not in piece] for piece, is_input in answer.get("parts", [])],
        }


def arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential.jinja", description="our templates beside llama.cpp's"
    )
    parser.add_argument("--ours", required=True, help="our program; or original, or mutant")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to run (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="default: the clock")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--count", type=int, default=None, help="how many cases (default: no limit)")
    parser.add_argument("--mode", choices=[*MODES], default=None, help="cases of one kind only")
    parser.add_argument("--findings", type=int, default=25, help="end after so many groups (default: %(default)s)")
    parser.add_argument("--shrink-seconds", type=float, default=5.0, help="the most for one finding")
    parser.add_argument("--messages", type=int, default=0, metavar="N", help="show N error messages that differ")
    return parser.parse_args()


def run(pair: Pair, options: argparse.Namespace, tally: Tally) -> dict[str, list[Finding]]:
    """Compares until the time, the cases or the groups are used up."""
    groups: dict[str, list[Finding]] = {}
    command = f"python -m tests.differential.jinja --seed {options.seed}"
    command += f" --mode {options.mode}" if options.mode else ""
    end = time.monotonic() + options.seconds
    index, last = options.first, options.first + options.count if options.count is not None else sys.maxsize
    while index < last and time.monotonic() < end and len(groups) < options.findings:
        numbers = range(index, min(index + BATCH, last))
        cases = [made(options.seed, number, options.mode) for number in numbers]
        answers = pair.ask([one.case for one in cases])
        for number, one, (theirs, ours) in zip(numbers, cases, answers, strict=True):
            tally.add(one, theirs, ours)
            difference, deviation = pair.unexplained(one.case, theirs, ours)
            if deviation is not None:
                tally.explained[deviation] += 1
            elif difference is not None:
                tally.differences += 1
                if len(groups) >= options.findings or time.monotonic() > end + 60:
                    continue
                small = pair.shrunk(one.case, difference, options.shrink_seconds)
                finding = Finding(difference, f"{command} --first {number}", small, *pair.ask([small])[0])
                if finding.group() not in groups:
                    print("\n".join(finding.lines()), flush=True)
                groups.setdefault(finding.group(), []).append(finding)
        traced = [
            {**one.case, "trace": True} for one, (theirs, _) in zip(cases, answers, strict=True) if "parts" in theirs
        ]
        for answer in pair.theirs.ask(traced[:: 3 if options.count is None else 1]):
            tally.nodes.update(answer.get("nodes", {}))
            tally.calls.update(answer.get("calls", {}))
        index = numbers.stop
    return groups


def main() -> int:
    """Compares and reports."""
    options = arguments()
    if options.seed is None:
        options.seed = time.time_ns() % 1_000_000_000
    start = time.monotonic()
    try:
        path = build()
        if options.ours in ("original", "mutant"):
            ours: Program = (Original if options.ours == "original" else Mutant)([path])
        elif os.access(options.ours, os.X_OK):
            ours = Program([options.ours])
        else:
            raise FileNotFoundError(f"{options.ours} is not a program")
        pair = Pair(Program([path]), ours)
    except FileNotFoundError as error:
        sys.exit(str(error))
    print(f"seed {options.seed}", flush=True)
    tally = Tally()
    try:
        groups = run(pair, options, tally)
    finally:
        pair.theirs.close()
        pair.ours.close()
    print("\n".join(tally.lines(options.messages)))
    for group, findings in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"{len(findings):5} x {group!r}")
    print(
        f"{tally.cases.total()} cases in {time.monotonic() - start:.0f} s: {tally.differences} differences in "
        f"{len(groups)} groups, {tally.explained.total()} explained"
    )
    return 1 if tally.differences else 0


if __name__ == "__main__":
    sys.exit(main())
