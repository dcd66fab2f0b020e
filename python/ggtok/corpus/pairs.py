"""Preference pairs: rows with a prompt and two answers to it, one chosen and one rejected.

Until they are written, the three lie one after the other in `IDS`, and `MASK` has the number of the part that each
token is in: 0, 1 or 2. So a pair is counted, shuffled and kept like any row.

The columns are those that `DataCollatorForPreference` of TRL 1.16 reads (`trl/trainer/dpo_trainer.py`). An answer
starts where its tokens first differ from those of the prompt alone, also as there.
"""

from __future__ import annotations

from itertools import chain, takewhile

from .blocks import IDS, MASK, num_tokens
from .lists import flat, short
from .packages import np, npt, pa

PARTS = ("prompt_ids", "chosen_ids", "rejected_ids")


def joined(prompt: list[int], chosen: list[int], rejected: list[int]) -> tuple[list[int], list[int]]:
    """The tokens and the mask of a pair, from those of the prompt, and of the prompt with each answer."""
    same = takewhile(lambda ids: len({*ids}) == 1, zip(prompt, chosen, rejected, strict=False))
    start = sum(1 for _ in same)
    parts = [prompt[:start], chosen[start:], rejected[start:]]
    return [*chain(*parts)], [number for number, part in enumerate(parts) for _ in part]


def separated(table: pa.Table, ids: str = IDS) -> pa.Table:
    """The table with a column for each part, instead of `ids` and `MASK`."""
    tokens, mask = flat(table[ids]), flat(table[MASK])
    for number, (name, sizes) in enumerate(zip(PARTS, _sizes(table), strict=True)):
        part = pa.LargeListArray.from_arrays(np.concatenate([[0], np.cumsum(sizes)]), tokens[mask == number])
        table = table.append_column(name, short([part], pa.int32()))
    return table.drop_columns([ids, MASK])


def lengths(table: pa.Table) -> npt.NDArray[np.int64]:
    """The tokens of the prompt and the longer answer of each pair."""
    prompt, *answers = _sizes(table)
    return prompt + np.maximum(*answers)


def _sizes(table: pa.Table) -> list[npt.NDArray[np.int64]]:
    """How many tokens each part of each pair has."""
    rows, mask = np.repeat(np.arange(table.num_rows), num_tokens(table[MASK])), flat(table[MASK])
    return [np.bincount(rows[mask == number], minlength=table.num_rows) for number in range(len(PARTS))]
