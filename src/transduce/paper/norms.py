"""Post-norm, the paper's, against pre-norm: activations and gradients of each layer while both learn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from transduce.data.batching import Batching
from transduce.data.config import DataConfig
from transduce.data.prepare import prepare
from transduce.inspection.norms import layer_norms
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.config import TrainingConfig
from transduce.training.optimizer import adam, learning_rate
from transduce.training.step import update
from transduce.training.validation import to_batch


def norms_while_learning(
    data: DataConfig,
    folder: str | Path,
    *,
    model: Mapping[str, Any],
    training: TrainingConfig,
    at: Sequence[int],
    norms: Sequence[str] = ("post", "pre"),
    say: Callable[[str], None] = lambda line: None,
) -> list[dict[str, Any]]:
    """A row for each kind of norm, number of updates in ``at`` (0: before the first) and layer.

    Both kinds see the same batches; the rates are those of ``training``, which ends with the last of ``at``.
    """
    prepared = prepare(data, folder, max_length=256, seed=training.seed, say=say)
    lengths = prepared.train.source_lengths, prepared.train.target_lengths
    batching = Batching(
        *lengths,
        batch_tokens=training.batch_tokens,
        micro_batch_tokens=training.batch_tokens,
        seed=training.seed,
    )
    rows = []
    last = max(at)
    for norm in norms:
        config = ModelConfig.from_mapping(
            {**model, "norm": norm, "vocabulary": prepared.tokenizer.vocabulary}
        )
        torch.manual_seed(training.seed)
        network = Transformer(config).train()
        optimizer = adam(network, training)
        updates = (ids for epoch in range(last + 1) for ids in batching.epoch(epoch))
        fixed = to_batch(prepared.train, batching.epoch(0)[0][0], network, "cpu")
        perplexity = float(config.vocabulary)
        for step in range(last + 1):
            if step in at:
                found = layer_norms(network, fixed.source, fixed.target_in, fixed.target_out)
                rows += [
                    {"norm": norm, "updates": step, "perplexity": perplexity, **of._asdict()} for of in found
                ]
                say(f"{norm}-norm, {step:,} updates, perplexity {perplexity:.1f}")
            if step < last:
                batches = [to_batch(prepared.train, part, network, "cpu") for part in next(updates)]
                rate = learning_rate(training, config.d_model, step + 1, step / last)
                seen = update(network, optimizer, batches, training, rate=rate, precision="fp32")
                perplexity = math.exp(min(20.0, seen.nll / max(1, seen.target_tokens)))
    return rows


def describe(rows: Sequence[Mapping[str, Any]]) -> str:
    """One table: a line for each layer, a group of columns for each number of updates."""
    counts = sorted({row["updates"] for row in rows})
    lines = ["root mean square of the output / relative change by the layer / length of the gradient"]
    lines.append(f"{'':22}" + "".join(f"{f'{count:,} updates':>26}" for count in counts))
    keys = dict.fromkeys((row["norm"], row["stack"], row["layer"]) for row in rows)
    by = {(row["norm"], row["stack"], row["layer"], row["updates"]): row for row in rows}
    for norm, stack, layer in keys:
        cells = ""
        for count in counts:
            row = by[norm, stack, layer, count]
            cells += f"{row['activation']:10.2f}{row['update']:7.2f}{row['gradient']:9.4f}"
        lines.append(f"{norm:5}{stack:8} layer {layer:<3}{cells}")
    return "\n".join(lines)
