"""Conversations against llama-server: its `/apply-template` and ours get the same made-up requests for many templates.

    python -m tests.differential.chats --templates FOLDER --per-template 50 --seed 1 --ours PROGRAM
    python -m tests.differential.chats --templates FOLDER --record FILE.jsonl.gz
    python -m tests.differential.chats --replay FILE.jsonl.gz --ours PROGRAM

The server is xllamacpp's with a tiny model, in one child process per template. Ours is the installed package with
`--ours ggtok`, or a program that reads JSON lines,
`{"template", "bos", "eos", "add_bos", "add_eos", "body", "now"}` with `now` in seconds since 1970 (UTC), and answers
each with `{"prompt"}` or `{"error"}`. `--replay` needs neither the server nor a model.

1. Both answer. What a row of `DEVIATIONS` explains is counted by its number.
2. Each other difference is shrunk: fields, messages, parts and characters go as long as the two still differ in the
   same way (not with `--replay`, for want of a server).
3. What is left is grouped by kind, with one example each.

Exit code 1 where more than `--allow` percent of the requests differ without an explanation.
"""

from __future__ import annotations

import argparse
import difflib
import fnmatch
import gzip
import importlib
import json
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from .chat_sides import Case, OurProgram, Ours, Program, Template, serve
from .conversations import Json, bodies
from .paths import ROOT

# What a difference is, and what explains one.

TEXT, WE_REFUSE, THEY_REFUSE, WE_DIED, THEY_DIED = (
    *("the text differs", "ours refuses", "the server refuses", "ours died or hung", "the server died or hung"),
)


def cause(case: Case) -> str:
    """How the answers differ. Empty if they are the same, or if both are errors."""
    theirs, ours = case.theirs, case.ours
    if "died" in ours or "hung" in ours:
        return WE_DIED
    if "died" in theirs or "hung" in theirs:
        return "" if "error" in ours else THEY_DIED
    if "prompt" in theirs and "prompt" in ours:
        return "" if theirs["prompt"] == ours["prompt"] else TEXT
    if "prompt" not in theirs and "prompt" not in ours:
        return ""
    return WE_REFUSE if "prompt" in theirs else THEY_REFUSE


def answer(ours: Ours, case: Case) -> None:
    """Answers a case. A clock may have gone on while the server answered."""
    case.ours = ours.ask(case.template, case.body, case.now)
    if cause(case) and "strftime_now" in case.template.text:
        later = ours.ask(case.template, case.body, case.now + 1)
        case.ours = later if later == case.theirs else case.ours


@dataclass(frozen=True)
class Deviation:
    """A difference on purpose."""

    number: int
    title: str
    explains: Callable[[Case, Ours], bool]


def without_documents(case: Case, ours: Ours) -> bool:
    """Whether the answers are the same without the documents."""
    if not isinstance(case.body, dict) or "documents" not in case.body:
        return False
    body = {name: value for name, value in case.body.items() if name != "documents"}
    return not cause(
        Case(case.template, case.index, body, case.now, case.theirs, ours.ask(case.template, body, case.now))
    )


GRAMMAR = re.compile(
    r"JSON schema error|Unsatisfiable schema|At least one of min_value or max_value|does not match the expected peg-"
    r"|Unable to generate parser"
)


def without_grammar(case: Case, ours: Ours) -> bool:
    """Whether the server fails to make a grammar of the tools or of the schema for the answer, or a parser for it."""
    return cause(case) == THEY_REFUSE and bool(GRAMMAR.search(case.theirs["error"]))


def lone_surrogate(case: Case, ours: Ours) -> bool:
    """Whether the server refuses half a pair of surrogates. Python has strings with one, JSON has not."""
    return cause(case) == THEY_REFUSE and "invalid string: surrogate U+" in case.theirs["error"]


MINUS_ZERO = re.compile(r"(?<![\w.])-0(?![\w.])")


def minus_zero(case: Case, ours: Ours) -> bool:
    """Whether the answers are the same with zeros in place of `-0`, or differ by the documents only."""
    body = json.loads(MINUS_ZERO.sub("0", json.dumps(case.body)))
    other = Case(case.template, case.index, body, case.now, case.theirs, ours.ask(case.template, body, case.now))
    return not cause(other) or without_documents(other, ours)


DEVIATIONS = (
    Deviation(2, "the server drops `documents` of a request, ours gives them to the template", without_documents),
    Deviation(3, "the server refuses what it cannot make a grammar or a parser of, ours makes none", without_grammar),
    Deviation(4, "the server's process ends or hangs", lambda case, ours: cause(case) == THEY_DIED),
    Deviation(7, "half a pair of surrogates is not JSON; in Python it is a text of three bytes", lone_surrogate),
    Deviation(11, "`-0` in JSON is a floating-point number, and 0 to the server", minus_zero),
)
"""Every intended difference, as docs/chat.md numbers them. `explains` sees a case whose answers differ."""


# Shrinking.

KEPT = {"role", "type"}
"""Fields whose texts are not shortened: another role or type is another case."""


def smaller(value: Any, key: str = "") -> Iterator[Any]:
    """Values that are a step smaller, the biggest steps first."""
    if isinstance(value, dict):
        for name in value:
            yield {other: each for other, each in value.items() if other != name}
        for name, each in value.items():
            yield from ({**value, name: less} for less in smaller(each, name))
    elif isinstance(value, list):
        half = len(value) // 2
        yield from (value[half:], value[:half]) if half > 1 else ()
        yield from (value[:at] + value[at + 1 :] for at in range(len(value)))
        yield from (
            [*value[:at], less, *value[at + 1 :]] for at, each in enumerate(value) for less in smaller(each, key)
        )
    elif isinstance(value, str) and key not in KEPT and value:
        half = len(value) // 2
        yield from (
            some for some in ("", "a", value[half:], value[:half], value[1:], value[:-1]) if len(some) < len(value)
        )
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from (some for some in (0, 1, 0.5) if abs(some) < abs(value))


def shrink(body: Json, still: Callable[[Json], bool], limit: int) -> Json:
    """Returns a small request for which `still` holds, after at most so many questions."""
    asked = 0
    found = True
    while found:
        found = False
        for less in smaller(body):
            asked += 1
            if asked > limit:
                return body
            if still(less):
                body, found = less, True
                break
    return body


# Grouping.


def essence(error: str) -> str:
    """What an error says, without the position and the values."""
    told = error.rpartition("Error: ")[2] if "Error: " in error else error
    return re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\{.*\}|\d+", "_", told, flags=re.DOTALL).strip()[:160]


def outline(value: Any, key: str = "") -> Any:
    """A request without what its texts and numbers say."""
    if isinstance(value, dict):
        return {name: outline(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [outline(each, key) for each in value]
    if isinstance(value, str) and key not in KEPT:
        return "text" if value.strip() else value[:1]
    return value


def around(text: str, at: int) -> str:
    """The text before and after a position."""
    return repr(text[max(0, at - 20) : at + 20])


def first_difference(case: Case) -> int:
    """The number of characters at the beginning of both texts that are the same."""
    pairs = zip(case.theirs["prompt"], case.ours["prompt"], strict=False)
    shorter = min(len(case.theirs["prompt"]), len(case.ours["prompt"]))
    return next((at for at, (a, b) in enumerate(pairs) if a != b), shorter)


def kind(case: Case, shrunk: bool) -> str:
    """Cases with the same kind probably have the same reason."""
    told = cause(case)
    if told == TEXT:
        if shrunk:
            return f"{told}: {json.dumps(outline(case.body))}"
        at = first_difference(case)
        return f"{told}: {around(case.theirs['prompt'], at)} / {around(case.ours['prompt'], at)}"
    side = case.ours if told in (WE_REFUSE, WE_DIED) else case.theirs
    return f"{told}: {essence(str(side.get('error', side)))}"


@dataclass
class Tally:
    """The counts of a run."""

    compared: int = 0
    agreed: Counter[str] = field(default_factory=Counter)
    """`both render` and `both refuse`."""
    causes: Counter[str] = field(default_factory=Counter)
    """Differences that nothing explains, by cause."""
    explained: Counter[int] = field(default_factory=Counter)
    per_template: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    groups: dict[str, list[Case]] = field(default_factory=lambda: defaultdict(list))
    unloaded: dict[str, str] = field(default_factory=dict)
    """Templates with which the server does not start, and why."""
    unloaded_here: set[str] = field(default_factory=set)
    """Those of them that ours renders, except where the server cannot make a parser."""

    def report(self, examples: int) -> str:
        """Kinds with an example each, templates, causes, totals."""
        told: list[str] = []
        groups = sorted(self.groups.items(), key=lambda group: -len(group[1]))
        for name, cases in groups[:examples]:
            example = min(cases, key=lambda case: len(json.dumps(case.body)))
            templates = len({case.template.name for case in cases})
            told += [f"== {len(cases)} in {templates} templates: {name}", *example_lines(example), ""]
        if len(groups) > examples:
            told.append(f"... and {len(groups) - examples} kinds more\n")
        rows = sorted(self.per_template.items(), key=lambda row: -row[1].total())
        told += [f"{counts.total():5} {name}: {dict(counts)}" for name, counts in rows if counts]
        told += [f"not loaded by the server: {name}: {why[:200]!r}" for name, why in self.unloaded.items()]
        if self.unloaded:
            told.append(
                f"not loaded by the server: {len(self.unloaded)}, of which ours renders {len(self.unloaded_here)}"
            )
        told += [f"{count:6} {name}" for name, count in self.agreed.items()]
        told += [f"{self.explained[row.number]:6} explained by {row.number}: {row.title}" for row in DEVIATIONS]
        told += [f"{count:6} {name}" for name, count in self.causes.most_common()]
        unexplained, explained = self.causes.total(), self.explained.total()
        share, all_of_them = (100 * count / max(1, self.compared) for count in (unexplained, unexplained + explained))
        told.append(f"{self.compared} compared, {all_of_them:.2f} % differ, {unexplained} unexplained ({share:.2f} %)")
        return "\n".join(told).encode(errors="backslashreplace").decode()


def example_lines(case: Case) -> Iterator[str]:
    """The case, and where the texts differ."""
    yield f"  template {case.template.name}, request {case.index}"
    yield f"  body     {json.dumps(case.body, ensure_ascii=False)[:1500]}"
    if cause(case) != TEXT:
        yield f"  server   {json.dumps(case.theirs, ensure_ascii=False)[-700:]}"
        yield f"  ours     {json.dumps(case.ours, ensure_ascii=False)[-700:]}"
        return
    theirs, ours = (side["prompt"].splitlines(keepends=True) for side in (case.theirs, case.ours))
    for line in list(difflib.unified_diff([*map(repr, theirs)], [*map(repr, ours)], "server", "ours", "", "", 1, ""))[
        :24
    ]:
        yield f"  {line[:300]}"


# Runs.


class Run:
    """A comparison with its options."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.ours: Ours | None = None
        if options.ours:
            self.ours = Ours() if options.ours == "ggtok" else OurProgram(options.ours, options.timeout)
        self.tally = Tally()
        self.shrunk: Counter[tuple[str, str]] = Counter()
        self.record, self.differences = written(options.record), written(options.differences)

    def write(self, line: Json) -> None:
        """Records a line."""
        if self.record:
            print(json.dumps(line), file=self.record)

    def live(self, model: str) -> None:
        """Asks the server about every template."""
        for path in chosen(self.options):
            text = path.read_bytes().decode()
            command = [sys.executable, "-m", "tests.differential.chats", "--serve", model, str(path.resolve())]
            server = Program(command, greets=True, timeout=self.options.timeout)
            template = Template(path.stem, text, server.greeting, self.options.add_bos)
            shown = {} if self.options.no_texts else {"text": text}
            self.write({"template": template.name, "add_bos": template.add_bos, **shown, "greeting": server.greeting})
            if self.loaded(template):
                for index, body in enumerate(bodies(self.options.seed, self.options.per_template, path.stem, text)):
                    if self.options.index in (None, index):
                        now = int(time.time())
                        case = Case(template, index, body, now, server.ask(body))
                        line = {"template": template.name, "index": index, "now": now, "body": body}
                        self.write({**line, "answer": case.theirs})
                        self.compare(case, server)
            server.close()

    def replay(self) -> None:
        """Compares with what was recorded."""
        template = Template("", "")
        with gzip.open(self.options.replay, "rt", encoding="utf-8") as file:
            for line in map(json.loads, file):
                if "greeting" in line:
                    text = line.get("text")
                    if text is None:
                        (path,) = (path for path in chosen(self.options) if path.stem == line["template"])
                        text = path.read_bytes().decode()
                    template = Template(line["template"], text, line["greeting"], line["add_bos"])
                    if is_named(template.name, self.options):
                        self.loaded(template)
                elif is_named(template.name, self.options) and self.options.index in (None, line["index"]):
                    self.compare(Case(template, line["index"], line["body"], line["now"], line["answer"]), None)

    def loaded(self, template: Template) -> bool:
        """Whether the server starts with the template. If not, ours is asked once."""
        if "started" in template.greeting:
            return True
        why = str(template.greeting.get("refused", template.greeting))
        self.tally.unloaded[template.name] = why
        if GRAMMAR.search(why):
            return False
        if self.ours and "prompt" in self.ours.ask(template, {"messages": [{"role": "user", "content": "Hi"}]}, 0):
            self.tally.unloaded_here.add(template.name)
        return False

    def compare(self, case: Case, server: Program | None) -> None:
        """Compares the answers, and counts."""
        self.tally.compared += 1
        if self.ours is None:
            return
        answer(self.ours, case)
        if self.options.index is not None:
            print(
                json.dumps({"body": case.body, "theirs": case.theirs, "ours": case.ours}, indent=1, ensure_ascii=False)
            )
        told = cause(case)
        if not told:
            self.tally.agreed["both render" if "prompt" in case.theirs else "both refuse"] += 1
            return
        number = self.explanation(case)
        if number:
            self.tally.explained[number] += 1
            return
        self.tally.causes[told] += 1
        self.tally.per_template[case.template.name][told] += 1
        least = self.shrink(case, server) if server else case
        self.tally.groups[kind(least, shrunk=least is not case)].append(least)
        if self.differences:
            line = {"template": case.template.name, "index": case.index, "cause": told, "now": case.now}
            line |= {"body": least.body, "theirs": least.theirs, "ours": least.ours, "whole": case.body}
            print(json.dumps(line), file=self.differences, flush=True)

    def explanation(self, case: Case) -> int:
        """The number of the deviation that explains a difference, or 0."""
        assert self.ours is not None
        return next((row.number for row in DEVIATIONS if row.explains(case, self.ours)), 0)

    def shrink(self, case: Case, server: Program) -> Case:
        """Returns a small case of the same kind. Only the first ones of a template and a cause are worth the time."""
        ours, told = self.ours, cause(case)
        assert ours is not None
        self.shrunk[case.template.name, told] += 1
        if self.shrunk[case.template.name, told] > self.options.shrink or told in (WE_DIED, THEY_DIED):
            return case
        refusal = kind(case, shrunk=False) if told != TEXT else None

        def asked(body: Json) -> Case:
            now = int(time.time())
            found = Case(case.template, case.index, body, now, server.ask(body))
            answer(ours, found)
            return found

        def still(body: Json) -> bool:
            found = asked(body)
            same = cause(found) == told and refusal in (None, kind(found, shrunk=False))
            return same and not self.explanation(found)

        return asked(shrink(case.body, still, 600))


def written(name: str | None) -> IO[str] | None:
    """A file to write to, compressed if its name says so."""
    if name is None:
        return None
    return gzip.open(name, "wt", encoding="utf-8") if name.endswith(".gz") else open(name, "w", encoding="utf-8")


def chosen(options: argparse.Namespace) -> list[Path]:
    """The templates' files."""
    paths = [path for folder in options.templates for path in sorted(Path(folder).glob("*.jinja"))]
    return [path for path in paths if is_named(path.stem, options)]


def is_named(name: str, options: argparse.Namespace) -> bool:
    """Whether the command line names the template."""
    return not options.only or any(fnmatch.fnmatch(name, pattern) for pattern in options.only)


def arguments(words: Iterable[str] | None = None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential.chats", description="Chats beside llama-server."
    )
    parser.add_argument("--templates", action="append", default=[], metavar="FOLDER", help="a folder of *.jinja files")
    parser.add_argument("--only", action="append", metavar="NAME", help="a template, or a pattern")
    parser.add_argument("--per-template", type=int, default=50, metavar="N", help="requests (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--index", type=int, help="only this request, with both answers printed")
    parser.add_argument("--ours", metavar="PROGRAM", help="the command to compare with the server, or ggtok")
    parser.add_argument("--record", metavar="FILE", help="write requests and the server's answers, as .jsonl.gz")
    parser.add_argument("--no-texts", action="store_true", help="record no templates: --replay needs --templates then")
    parser.add_argument("--replay", metavar="FILE", help="compare with what was recorded")
    parser.add_argument("--differences", metavar="FILE", help="write what differs, as JSON lines")
    parser.add_argument("--add-bos", action="store_true", help="a vocabulary that adds BOS to every text")
    parser.add_argument("--shrink", type=int, default=4, metavar="N", help="shrink N per template and cause")
    parser.add_argument("--examples", type=int, default=40, metavar="N", help="kinds to print (default: %(default)s)")
    parser.add_argument("--allow", type=float, default=0.0, metavar="PERCENT", help="of unexplained differences")
    parser.add_argument("--timeout", type=float, default=20.0, help="seconds after which a process counts as hung")
    options = parser.parse_args(None if words is None else list(words))
    if not options.replay and not options.templates:
        parser.error("--templates or --replay is needed")
    return options


def compared(options: argparse.Namespace) -> Tally:
    """Runs the comparison."""
    run = Run(options)
    if options.replay:
        run.replay()
    else:
        sys.path.append(str(ROOT / "tests"))
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder, "tiny.gguf")
            importlib.import_module("tiny_model").write_model(model, add_bos=options.add_bos)
            run.live(str(model))
    for file in (run.record, run.differences):
        if file:
            file.close()
    return run.tally


def main(words: Iterable[str] | None = None) -> int:
    """Compares, and reports."""
    options = arguments(words)
    print(f"seed {options.seed}", flush=True)
    tally = compared(options)
    print(tally.report(options.examples))
    return int(tally.causes.total() * 100 > options.allow * tally.compared)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:4])
    else:
        raise SystemExit(main())
