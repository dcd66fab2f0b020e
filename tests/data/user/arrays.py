"""What a user writes who has numpy. It is never run."""

from __future__ import annotations

import ggtok


def arrays(tok: ggtok.Tokenizer, text: str) -> list[int]:
    batch = tok.encode_batch([text])
    rows, mask = batch.pad(side="left", multiple_of=8)
    print(rows.shape, mask.sum(), batch[0].tolist(), batch.ids.dtype, batch.offsets[0], batch.attention_mask.any())
    for row in batch:
        print(row.max())
    encoding = tok.encode_with_offsets(text)
    print(encoding.ids.size, encoding.offsets.shape)
    ids: list[int] = tok.encode_array(text).tolist()
    return ids
