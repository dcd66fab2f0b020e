"""A model with random weights that llama.cpp can run."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

TOKENS = ["<unk>", "<s>", "</s>", "[PAD0]", *(f"<0x{byte:02X}>" for byte in range(256)), "▁a", "b", "▁ab", "[PAD1]"]
TYPES = [2, 3, 3, 5, *[6] * 256, 1, 1, 1, 5]
WIDTH = 32


def shapes() -> dict[str, tuple[int, ...]]:
    """The tensors of a llama with one layer."""
    square, block = (WIDTH, WIDTH), "blk.0."
    names = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    layer: dict[str, tuple[int, ...]] = {f"{block}{name}.weight": square for name in names}
    norms = dict.fromkeys(("output_norm.weight", f"{block}attn_norm.weight", f"{block}ffn_norm.weight"), (WIDTH,))
    return {"token_embd.weight": (len(TOKENS), WIDTH), "output.weight": (len(TOKENS), WIDTH)} | norms | layer


def write_model(
    path: Path,
    *,
    alignment: int | None = None,
    big_endian: bool = False,
    per_part: int = 0,
    add_bos: bool | None = None,
) -> None:
    """A llama with one layer, split after so many tensors."""
    endian = gguf.GGUFEndian.BIG if big_endian else gguf.GGUFEndian.LITTLE
    writer = gguf.GGUFWriter(path, "llama", endianess=endian, split_max_tensors=per_part)
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    writer.add_context_length(512)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(WIDTH)
    writer.add_block_count(1)
    writer.add_head_count(2)
    writer.add_rope_dimension_count(WIDTH // 2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_array("llama.more", [1.5, 2.5])
    writer.add_tokenizer_model("llama")
    writer.add_token_list(TOKENS)
    writer.add_token_scores([-float(id) for id in range(len(TOKENS))])
    writer.add_token_types(TYPES)
    writer.add_eos_token_id(2)
    if add_bos is not None:
        writer.add_add_bos_token(add_bos)
    random = np.random.default_rng(7)
    for name, shape in shapes().items():
        writer.add_tensor(name, random.standard_normal(shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
