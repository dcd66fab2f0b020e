"""The columns that trainers read, by their own names.

A token that is not learned, because the assistant did not write it or because it is padding, has the label -100. Labels
are not shifted: these trainers do that. What each reads:

- TRL 1.16, `trl/trainer/sft_trainer.py`, `DataCollatorForLanguageModeling`. With `padding_free`, the lengths of a row
  make its positions, so they include the padding.
- Axolotl 067b021, `_is_dataset_already_tokenized` in `src/axolotl/utils/data/wrappers.py`: without these three columns
  it tokenizes again. Its collator pads every column that a row has, so there must be no others. It packs rows itself.
- torchtune bd2a0fc, `torchtune/data/_collate.py`, `padded_collate_sft` and `padded_collate_packed`.

nanotron, Megatron and OLMo-core read files of their own formats.
"""

from __future__ import annotations

from typing import NamedTuple

from .blocks import BOUNDARIES, IDS, MASK
from .lists import rows
from .packages import np, npt, pa

LABELS, NOT_LEARNED = "labels", -100


class Trainer(NamedTuple):
    """What a trainer calls things. `None` is what it does not read."""

    ids: str = IDS
    lengths: str | None = None
    """Of the documents in a packed sequence, padding included. Without it, the trainer takes none."""
    positions: str | None = None
    """Of each token in its document, in a packed sequence."""
    attention_mask: bool = False


TRAINERS = {
    "trl": Trainer(lengths="seq_lengths"),
    "axolotl": Trainer(attention_mask=True),
    "torchtune": Trainer(ids="tokens", lengths="seq_lens", positions="input_pos"),
}


def is_token(group: pa.Table, length: int | None) -> npt.NDArray[np.bool_]:
    """Which values of a group of documents are tokens; of packed sequences of a length, the others are padding."""
    if length is None:
        return np.ones(len(group[IDS].chunk(0).values), bool)
    bounds = group[BOUNDARIES].chunk(0)
    ends = bounds.values.to_numpy()[bounds.offsets.to_numpy()[1:] - 1]
    return np.asarray(np.arange(length) < ends[:, None]).ravel()


def renamed(group: pa.Table, trainer: Trainer, length: int | None) -> pa.Table:
    """A group of documents, or of packed sequences of a length, with the columns of a trainer.

    Each column of the group is one chunk.
    """
    (ids,) = group[IDS].chunks
    flat = ids.values.to_numpy()
    is_learned, added = is_token(group, length), {}
    if length is not None:
        sizes = [[size for size in np.diff(row, append=length).tolist() if size] for row in rows(group[BOUNDARIES])]
        if trainer.lengths is not None:
            added[trainer.lengths] = pa.array(sizes, pa.list_(pa.int32()))
        if trainer.positions is not None:
            positions = [place for row in sizes for size in row for place in range(size)]
            added[trainer.positions] = pa.ListArray.from_arrays(ids.offsets, pa.array(positions, pa.int32()))
    if MASK in group.column_names:
        is_learned = group[MASK].chunk(0).values.to_numpy() == 1
        group = group.drop_columns(MASK)
    labels = np.where(is_learned, flat, NOT_LEARNED).astype(np.int32)
    added = {LABELS: pa.ListArray.from_arrays(ids.offsets, labels), **added}
    group = group.rename_columns([trainer.ids if name == IDS else name for name in group.column_names])
    for name, column in added.items():
        group = group.append_column(name, column)
    return group
