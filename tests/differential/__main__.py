"""The fuzzer's command line. Exit code 1 where ggtok and llama.cpp differ."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from ggtok.errors import GgtokError
from ggtok.lab.verify.child import Child
from ggtok.lab.verify.library import find_library
from ggtok.lab.verify.report import call
from ggtok.lab.verify.verify import REFERENCE

from .campaign import Campaign, Tally
from .report import lines, read_replay_token
from .vocabularies import Target, targets

OURS = "tests.differential.own:Checked"


def arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description="ggtok beside the live llama.cpp")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to run (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=None, help="end after this many rounds (default: no limit)")
    parser.add_argument("--seed", type=int, default=None, help="default: the clock")
    parser.add_argument("--vocab", default="*", help="name or pattern: llama-bpe, builtin:spm, 'small:unigram:*'")
    parser.add_argument("--pre", default=None, help="gpt-2 under this pre-tokenizer, or a pattern")
    parser.add_argument("--override", action="append", default=[], metavar="KEY=JSON", help="with --vocab NAME")
    parser.add_argument("--texts", type=int, default=48, help="texts per round (default: %(default)s)")
    parser.add_argument("--shrink-seconds", type=float, default=20.0, help="the most for one finding")
    parser.add_argument("--timeout", type=float, default=20.0, help="seconds after which a child counts as hung")
    parser.add_argument("--verbose", action="store_true", help="a line per round")
    parser.add_argument("--replay", metavar="TOKEN", help="repeat the query of one finding")
    parser.add_argument("--libllama", metavar="PATH", help="llama.cpp's shared library (default: of xllamacpp)")
    parser.add_argument("--ours", default=OURS, metavar="MODULE:CLASS", help="what to compare with llama.cpp")
    return parser.parse_args()


def summary(tally: Tally, seconds: float) -> str:
    """Comparisons per vocabulary (generated ones per kind), then the totals."""
    rows: dict[str, list[int]] = {}
    for name, count in tally.comparisons.items():
        row = rows.setdefault(name.rpartition(":")[0] if name.startswith("small:") else name, [0, 0])
        row[0] += count
        row[1] += tally.differences[name]
    told = [f"{'vocabulary':36}{'comparisons':>12}{'differences':>12}"]
    told += [f"{name:36}{row[0]:12}{row[1]:12}" for name, row in sorted(rows.items())]
    told += [f"known: {count:5} by {code}" for code, count in tally.known.most_common()]
    told += [f"llama.cpp died {count:5} times: {abort}" for abort, count in tally.aborts.most_common()]
    told.append(
        f"{tally.comparisons.total()} comparisons in {tally.rounds} rounds and {seconds:.0f} s: "
        f"{tally.differences.total()} differences, {tally.aborts.total()} deaths of the reference, "
        f"{tally.refusals.total()} vocabularies that both refuse"
    )
    return "\n".join(told)


def main() -> int:
    """Runs or replays."""
    options = arguments()
    library = find_library(options.libllama)
    reference = Child(REFERENCE, (library.path,), timeout=options.timeout)
    # Anything but ggtok is llama.cpp with a fault.
    ours = Child(options.ours, () if options.ours == OURS else (library.path,), timeout=options.timeout)
    start = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="differential-") as directory:
            campaign = Campaign(
                (reference, ours),
                Path(directory),
                _tell,
                library,
                num_texts=options.texts,
                shrink_seconds=options.shrink_seconds,
                verbose=options.verbose,
            )
            if options.replay:
                target, query = read_replay_token(options.replay)
                difference = campaign.replay(target, query)
                _tell(
                    "\n".join(lines(target, difference))
                    if difference
                    else f"{target.name}: {call(query)}: no difference"
                )
                return 1 if difference else 0
            seed = options.seed if options.seed is not None else time.time_ns() % 1_000_000_000
            _tell(f"seed {seed}")
            chosen = targets(seed, f"pre:{options.pre}" if options.pre else options.vocab)
            if options.override:
                overrides = {key: json.loads(value) for key, _, value in (o.partition("=") for o in options.override)}
                chosen = (Target(target.name, overrides) for target in chosen)
            tally = campaign.run(chosen, seed, options.seconds, options.rounds)
            _tell(summary(tally, time.monotonic() - start))
            return 1 if tally.differences.total() else 0
    except (FileNotFoundError, GgtokError) as error:
        sys.exit(str(error))
    finally:
        reference.close()
        ours.close()


def _tell(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
