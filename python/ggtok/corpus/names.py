"""Names of columns and fields: in errors, the ones that were probably meant."""

from __future__ import annotations

from functools import lru_cache

from ..errors import CorpusError

MOST = 3
"""Names that are shown."""


@lru_cache(1)  # many rows of a file lack the same field
def nearest(name: str, known: tuple[str, ...]) -> str:
    """A part of a sentence with the known names that are most like `name`, or a few of all. Empty if there are none."""
    from difflib import get_close_matches

    if near := get_close_matches(name, known, MOST):
        return f": the nearest {'is' if len(near) == 1 else 'are'} {', '.join(map(repr, near))}"
    if not known:
        return ""
    more = f" and {len(known) - MOST:,} more" if len(known) > MOST else ""
    return f": there {'is' if len(known) == 1 else 'are'} {', '.join(map(repr, known[:MOST]))}{more}"


def check_column(name: str, names: list[str], source: str | None = None) -> None:
    """Raises `CorpusError` unless a table has exactly one column of this name."""
    if (count := names.count(name)) != 1:
        problem = f"{count} columns are called {name!r}" if count else f"no column is called {name!r}"
        raise CorpusError(problem + ("" if count else nearest(name, tuple(names))), source=source)
