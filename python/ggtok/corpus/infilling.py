"""Fill in the middle: some documents become a prefix, a suffix, and a middle that is learned after both.

After "Efficient Training of Language Models to Fill in the Middle" (Bavarian et al. 2022, arXiv 2207.14255):

1. A document is cut at two places, each as likely as any other: between characters, so also within words and tokens.
2. The three sections are encoded separately. Each comes after its token of the vocabulary, in the order prefix, suffix,
   middle (PSM) or suffix, prefix, middle (SPM). The model is asked to fill in like that by `Tokenizer.encode_infill`.
3. BOS and EOS are where they are in other documents.

A hash of the text and the seed decides whether a document is cut, where, and the order. One that would be longer than
`max_length` stays as it is, since cutting it would take its middle away.

Complexity: as encoding, and 9 bytes of memory for each byte of the texts that are cut together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..chat.prompts import fim_ids
from ..tokenizer.base import BaseTokenizer
from .hashing import draws
from .lists import gathered
from .packages import np, npt, pa
from .settings import Encoding

Encode: TypeAlias = "Callable[[pa.Array], pa.LargeListArray]"

PREFIX, MIDDLE, SUFFIX, BEGIN, PRE, SUF, MID, END = range(8)
PSM = [BEGIN, PRE, PREFIX, SUF, SUFFIX, MID, MIDDLE, END]
SPM = [BEGIN, SUF, SUFFIX, PRE, PREFIX, MID, MIDDLE, END]


def infilled(texts: pa.Array, encoding: Encoding, tokenizer: BaseTokenizer, encode: Encode) -> pa.LargeListArray:
    """The tokens of texts, none of which is null. `encode` encodes a text that is not cut."""
    chance = draws(texts, f"fim {encoding.fim_seed}")
    chosen = np.flatnonzero(chance[:, 0] < encoding.fim)
    sections = encode(_sections(texts.take(chosen), chance[chosen, 2:]))
    around, begin = encode(pa.array([""]))[0].as_py(), int(encoding.add_special and tokenizer.vocab.add_bos)
    is_spm = chance[chosen, 1] < encoding.fim_spm
    rows = _joined(sections, is_spm, [around[:begin], *([id] for id in fim_ids(tokenizer)), around[begin:]])
    if encoding.max_length is not None:
        fits = np.diff(rows.offsets) <= encoding.max_length
        rows, chosen = rows.filter(pa.array(fits)), chosen[fits]
    others = np.setdiff1d(np.arange(len(texts)), chosen)
    both = pa.concat_arrays([rows, encode(texts.take(others))])
    return both.take(np.argsort(np.concatenate([chosen, others])))


def _sections(texts: pa.Array, chance: npt.NDArray[np.float64]) -> pa.Array:
    """The prefix, middle and suffix of each text, in the same memory. Bytes that are not UTF-8 may be cut anywhere."""
    _, buffer, data = texts.buffers()
    bounds = np.frombuffer(buffer, np.int64)[texts.offset :][: len(texts) + 1]
    characters = np.flatnonzero((np.frombuffer(data or b"", np.uint8) & 0xC0) != 0x80)
    firsts = np.searchsorted(characters, bounds)
    numbers = firsts[:-1, None] + np.sort(chance, 1) * (np.diff(firsts) + 1)[:, None]
    places = np.append(characters, bounds[-1]).take(numbers.astype(np.int64), mode="clip")
    cuts = np.append(np.column_stack([bounds[:-1], np.minimum(places, bounds[1:, None])]).ravel(), bounds[-1])
    return pa.Array.from_buffers(texts.type, 3 * len(texts), [None, pa.py_buffer(cuts), data])


def _joined(sections: pa.LargeListArray, is_spm: npt.NDArray[np.bool_], own: list[list[int]]) -> pa.LargeListArray:
    """The sections of each text in their order. Each of them begins and ends like a whole text.

    `own` is what a text begins with, the tokens before the sections, and what it ends with.
    """
    own_sizes = np.array([len(each) for each in own])
    offsets, flat = sections.offsets.to_numpy(), sections.values.to_numpy()
    own_starts = np.tile(len(flat) + np.cumsum(own_sizes) - own_sizes, (len(is_spm), 1))
    starts = np.column_stack([offsets[:-1].reshape(-1, 3) + len(own[0]), own_starts])
    inner_sizes = np.diff(offsets).reshape(-1, 3) - len(own[0]) - len(own[-1])
    sizes = np.column_stack([inner_sizes, np.tile(own_sizes, (len(is_spm), 1))])
    order = np.where(is_spm[:, None], SPM, PSM)
    ordered = (np.take_along_axis(each, order, 1).ravel() for each in (starts, sizes))
    values = gathered(np.concatenate([flat, *own]).astype(np.int32), *ordered)
    return pa.LargeListArray.from_arrays(np.concatenate([[0], np.cumsum(sizes.sum(1))]), values)
