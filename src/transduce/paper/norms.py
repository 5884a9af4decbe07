"""Post-norm, the paper's, against pre-norm: activations and gradients of each layer while both learn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from transduce.counts import counted
from transduce.data.config import DataConfig
from transduce.data.prepare import prepare
from transduce.inspection.norms import layer_norms
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.bare import updates
from transduce.training.config import TrainingConfig
from transduce.training.step import Batch
from transduce.training.validation import to_batch

FIXED = 32
"""So many pairs, the first ones of the corpus, are what the norms are taken of."""


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
    rows: list[dict[str, Any]] = []
    last = max(at)
    for norm in norms:
        config = ModelConfig.from_mapping(
            {**model, "norm": norm, "vocabulary": prepared.tokenizer.vocabulary}
        )
        torch.manual_seed(training.seed)
        network = Transformer(config)
        fixed = to_batch(prepared.train, np.arange(min(FIXED, len(prepared.train))), network, "cpu")
        if 0 in at:
            rows += _rows(network, fixed, norm, 0, float(config.vocabulary))
        for step in updates(network, prepared.train, training, partial(_share, last)):
            if step.number in at:
                perplexity = math.exp(min(20.0, step.seen.nll / step.seen.target_tokens))
                rows += _rows(network, fixed, norm, step.number, perplexity)
                say(f"{norm}-norm, {counted(step.number, 'update')}, perplexity {perplexity:.1f}")
    return rows


def _share(last: int, number: int, _: float) -> float:
    """The share of the run that is over after so many updates."""
    return number / last if last else 1.0


def _rows(
    network: Transformer, fixed: Batch, norm: str, count: int, perplexity: float
) -> list[dict[str, Any]]:
    told = {"norm": norm, "updates": count, "perplexity": perplexity}
    found = layer_norms(network, fixed.source, fixed.target_in, fixed.target_out)
    return [{**told, **of._asdict()} for of in found]


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
