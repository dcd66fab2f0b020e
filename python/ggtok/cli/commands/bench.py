"""The command `ggtok bench`: how fast this model's tokenizer is on your texts."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from time import perf_counter
from typing import Any, TypeAlias

import click

from ... import Tokenizer
from ..inputs import Source, takes_texts
from ..options import Model, takes_encoding
from ..output import CELL, drawn, print_json, to_stderr
from ..progress import progress
from ..table import print_pairs, print_table

LEAST_ROUNDS = 3
SHORT = 4096
"""Bytes of text below which the call itself takes most of the time."""

BAR = 16
"""Columns of the bar of the fastest call."""

PASSES = ("first", "second")

Times: TypeAlias = dict[tuple[str, str], list[float]]
"""Seconds of each round by call and pass. The call "open" has one pass."""


@click.command(short_help="Measure the speed on your texts.")
@takes_texts
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=3.0,
    show_default=True,
    metavar="S",
    help=f"How long to measure; {LEAST_ROUNDS} rounds at least.",
)
@takes_encoding
def command(sources: list[Source], seconds: float, model: Model, special: dict[str, Any], as_json: bool) -> None:
    """Measure how fast texts become tokens and back with this model, on one thread. The texts are read into memory
    first.

    In each round, a newly opened tokenizer gets each text once (first pass: its caches are empty), and then again
    (second pass). A first round to warm up is not counted. The output has the median, slowest and fastest round.
    encode makes a list of ids and decode takes one; open reads the file, which the system has cached by then.
    """
    tokenizer = model.open()
    texts = [source.read() for source in sources]
    num_bytes = sum(map(len, texts))
    if num_bytes == 0:
        raise click.ClickException(f"{sources[0].name}: the text is empty: nothing to measure")
    ids = [tokenizer.encode(text, **special) for text in texts]
    num_tokens = sum(map(len, ids))
    kind = ", ".join(filter(None, (tokenizer.vocab.kind, tokenizer.vocab.pre, f"{len(tokenizer.vocab)} tokens")))
    times = _measure(model, texts, ids, special, seconds)

    opening, num_rounds = times.pop(("open", "")), len(next(iter(times.values())))
    if as_json:
        rates = {"bytes_per_second": num_bytes, "tokens_per_second": num_tokens}
        measurements = [
            {"call": call, "pass": which, "seconds": taken}
            | {name: number / statistics.median(taken) for name, number in rates.items()}
            for (call, which), taken in times.items()
        ]
        sums = {"texts": len(texts), "bytes": num_bytes, "tokens": num_tokens, "rounds": num_rounds}
        return print_json(model=model.path or model.builtin, **sums, open_seconds=opening, measurements=measurements)
    print_pairs(
        [
            ("model", f"{tokenizer.metadata.get('general.name') or model.path} ({kind})"),
            ("text", f"{num_bytes:,} bytes, {num_tokens:,} tokens" + f", {len(texts)} texts" * (len(texts) > 1)),
            ("open", f"{statistics.median(opening) * 1e3:.1f} ms"),
            ("rounds", f"{num_rounds}, on one thread, after one to warm up"),
        ]
    )
    print()
    rows, least = [], min(map(statistics.median, times.values()))
    for (call, which), taken in times.items():
        middle = statistics.median(taken)
        speeds = [f"{scaled(num_bytes / each)}B/s" for each in (middle, max(taken), min(taken))]
        bar = drawn(CELL * round(BAR * least / middle))
        rows.append([call, which, bar, *speeds, f"{scaled(num_tokens / middle)}/s"])
    print_table(("call", "pass", "", "speed", "slowest", "fastest", "tokens"), rows, right=range(3, 7))
    if num_bytes < SHORT:
        to_stderr(f"{num_bytes} bytes are few: this measures calls rather than text")
    return None


def scaled(number: float) -> str:
    """A positive number in three digits, with a letter for its thousands."""
    power = min(max(int(math.log10(number)) // 3, 0), 3)
    number /= 1000**power
    return f"{number:.{max(0, 2 - int(math.log10(number)))}f} {('', 'k', 'M', 'G')[power]}"


def _measure(model: Model, texts: list[bytes], ids: list[list[int]], special: dict[str, Any], seconds: float) -> Times:
    calls: dict[str, Callable[[Tokenizer], object]] = {
        "encode": lambda tokenizer: [tokenizer.encode(text, **special) for text in texts],
        "count": lambda tokenizer: [tokenizer.count(text, **special) for text in texts],
        "decode": lambda tokenizer: [tokenizer.decode_bytes(each) for each in ids],
    }
    times: Times = {("open", ""): []}
    times.update({(call, which): [] for call in calls for which in PASSES})
    begin, number = perf_counter(), 0
    with progress(None, "") as bar:
        while number <= LEAST_ROUNDS or perf_counter() - begin < seconds:
            for call, run in calls.items():
                opened, tokenizer = _timed(model.open)
                times["open", ""].append(opened)
                for which in PASSES:
                    times[call, which].append(_timed(run, tokenizer)[0])
                    bar.phase("measuring", int(1000 * (perf_counter() - begin)), int(1000 * seconds) or None)
                del tokenizer  # so that its caches do not share memory with those of the next
            number += 1
            if number == 1:
                for taken in times.values():
                    taken.clear()
                begin = perf_counter()
    return times


def _timed(run: Callable[..., Any], *arguments: object) -> tuple[float, Any]:
    begin = perf_counter()
    result = run(*arguments)
    return perf_counter() - begin, result
