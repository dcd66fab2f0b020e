"""TRL on a corpus: SFTTrainer learns exactly the tokens that the mask marks, and DPOTrainer the answers of pairs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import ggtok
import pyarrow.parquet as pq
import pytest

REASON = "it is not installed: run .ci/trainers"
trl: Any = pytest.importorskip("trl", reason=REASON)
torch: Any = pytest.importorskip("torch", reason=REASON)
datasets: Any = pytest.importorskip("datasets", reason=REASON)
transformers: Any = pytest.importorskip("transformers", reason=REASON)

TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
TEMPLATE += "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries
BPE = ggtok.Tokenizer.builtin("bpe")


def _recipe(name: str) -> Any:
    """The class of the page that derives from one of TRL."""
    page = (Path(__file__).parents[2] / "docs/corpus.md").read_text(encoding="utf-8")
    [code] = [code for code in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S) if f"import {name}" in code]
    names: dict[str, Any] = {}
    exec(code, names)
    return names["Trainer"]


class Recorded(trl.SFTTrainer):  # type: ignore[misc]
    """Remembers the labels of every batch that it trains on."""

    seen: list[dict[str, Any]]

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **others: Any) -> Any:
        self.seen.append({name: value.tolist() for name, value in inputs.items() if isinstance(value, torch.Tensor)})
        return super().compute_loss(model, inputs, *args, **others)


@pytest.mark.parametrize("pack", [None, 64])
def test_the_trained_positions_are_those_of_the_mask(tmp_path: Path, pack: int | None) -> None:
    rows = [
        [{"role": "user", "content": f"Question {n}?"}, {"role": "assistant", "content": f"An answer, {n}."}]
        for n in range(12)
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"messages": row}) + "\n" for row in rows))
    options: dict[str, Any] = {"tokenizer": BPE, "format": "parquet", "messages": "messages"}
    options |= {"template_text": TEMPLATE, "pack": pack, "pad_id": 0 if pack else None}
    ggtok.corpus.build([tmp_path / "in.jsonl"], tmp_path / "plain", **options)
    ggtok.corpus.build([tmp_path / "in.jsonl"], tmp_path / "out", trainer="trl", **options)

    settings = trl.SFTConfig(
        output_dir=str(tmp_path / "model"),
        num_train_epochs=1,
        per_device_train_batch_size=1,
        padding_free=pack is not None,
        max_length=None,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        shuffle_dataset=False,
    )
    trainer = Recorded(
        _model(),
        settings,
        train_dataset=datasets.load_dataset("parquet", data_files=str(tmp_path / "out" / "*.parquet"), split="train"),
        processing_class=_tokenizer(),
    )
    trainer.seen = []
    trainer.train()

    expected = []
    for row in pq.read_table(tmp_path / "plain" / "00000.parquet").to_pylist():
        starts = row.get("cu_seqlens", [0])[:-1] or [0]
        learned = [own and not (pack and at in starts) for at, own in enumerate(row["assistant_mask"])]
        expected.append([id if own else -100 for id, own in zip(row["input_ids"], learned, strict=True)])
    assert sorted(batch["labels"][0] for batch in trainer.seen) == sorted(expected)
    if pack:  # positions start again with each document
        bounds = [row["cu_seqlens"] for row in pq.read_table(tmp_path / "plain" / "00000.parquet").to_pylist()]
        positions = [[at for at, place in enumerate(batch["position_ids"][0]) if place == 0] for batch in trainer.seen]
        assert sorted(positions) == sorted([bound for bound in row if bound < pack] for row in bounds)


class RecordedPairs(_recipe("DPOTrainer")):  # type: ignore[misc]
    """Remembers every batch that it trains on."""

    seen: list[dict[str, Any]]

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **others: Any) -> Any:
        self.seen.append({name: value.tolist() for name, value in inputs.items()})
        return super().compute_loss(model, inputs, *args, **others)


def test_the_trained_positions_of_pairs_are_the_answers(tmp_path: Path) -> None:
    rows = [{"prompt": f"Question {n}?", "chosen": f"Answer {n}.", "rejected": "No."} for n in range(12)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options: dict[str, Any] = {"tokenizer": BPE, "format": "parquet", "shape": "preference", "trainer": "trl"}
    ggtok.corpus.build([tmp_path / "in.jsonl"], tmp_path / "out", template_text=TEMPLATE, **options)
    settings = trl.DPOConfig(
        output_dir=str(tmp_path / "model"),
        num_train_epochs=1,
        per_device_train_batch_size=1,
        max_length=None,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
    )
    trainer = RecordedPairs(
        _model(),
        args=settings,
        train_dataset=datasets.load_dataset("parquet", data_files=str(tmp_path / "out" / "*.parquet"), split="train"),
        processing_class=_tokenizer(),
        ref_model=_model(),
    )
    trainer.seen = []
    trainer.train()
    expected, found = [], []
    for row in pq.read_table(tmp_path / "out" / "00000.parquet").to_pylist():
        expected += [([*row["prompt_ids"], *row[name]], row[name]) for name in ("chosen_ids", "rejected_ids")]
    for batch in trainer.seen:
        for ids, mask, learned in zip(
            batch["input_ids"], batch["attention_mask"], batch["completion_mask"], strict=True
        ):
            kept = [id for id, is_token in zip(ids, mask, strict=True) if is_token]
            found.append((kept, [id for id, own in zip(ids, learned, strict=True) if own]))
    assert sorted(found) == sorted(expected)


def _model() -> Any:
    """A tiny one, always the same."""
    config = transformers.LlamaConfig(
        vocab_size=BPE.vocab_size, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    return transformers.LlamaForCausalLM(config)


def _tokenizer() -> Any:
    """A tokenizer that is only asked for its padding."""
    from tokenizers import Tokenizer, models

    vocabulary = Tokenizer(models.WordLevel({"<pad>": 0}, "<pad>"))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=vocabulary, pad_token="<pad>", eos_token="<pad>")
