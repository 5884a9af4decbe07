"""What each part of a training step is worth: tokens per second without it, over those with it.

python benchmarks/training_ablation.py [--data ../shared/data/multi30k] [--preset tiny] [--rounds 3]

Every row undoes (or adds) one thing and is measured in a process of its own, each time right after the step
as it is, so that the ratio of a pair does not feel the machine's drift. The middle of the ratios is shown.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from training_loop import Maker, Training
from training_speed import measure, missing, prepared, run
from training_systems import transduce_training
from transduce import machine
from transduce.data.batching import Batching
from transduce.model import attention
from transduce.model.attention import MultiHeadAttention
from transduce.model.cache import KeysValues
from transduce.model.config import ModelConfig
from transduce.model.dropout import Dropout
from transduce.model.stacks import Decoder
from transduce.training import optimizer, step
from transduce.training.loss import Loss, plain_smoothed_cross_entropy


def _as_it_is() -> Maker:
    return transduce_training


def _torch_dropout() -> Maker:
    Dropout.forward = lambda self, x: nn.functional.dropout(x, self.p, self.training)  # type: ignore[method-assign]
    return transduce_training


def _fused_attention() -> Maker:
    def attend(self: MultiHeadAttention, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    MultiHeadAttention._attend = attend  # type: ignore[method-assign]
    return transduce_training


def _autograd_attention() -> Maker:
    MultiHeadAttention._attend = lambda self, q, k, v, mask: attention.attention(q, k, v, mask)  # type: ignore[method-assign]
    return transduce_training


def _whole_logits() -> Maker:
    def loss(features: Tensor, output: Tensor, targets: Tensor, **how: Any) -> Loss:
        logits, goal = (features @ output.t()).flatten(0, 1), targets.flatten()
        real = goal != how["pad_id"]
        value = plain_smoothed_cross_entropy(logits, goal, how["smoothing"])[real].sum() * how["scale"]
        return Loss(value, value.detach())

    step.smoothed_cross_entropy = loss  # type: ignore[assignment]
    return transduce_training


def _looped_adam() -> Maker:
    import training_systems

    def adam(model: nn.Module, _: object) -> torch.optim.Adam:
        return torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, foreach=False)

    optimizer.adam = training_systems.adam = adam  # type: ignore[attr-defined]
    return transduce_training


def _separate_projections() -> Maker:
    def project(self: MultiHeadAttention, x: Tensor, offset: int = 0) -> tuple[Tensor, KeysValues]:
        width = self.heads * self.d_k
        parts = self.qkv.weight.split((width, width, self.heads * self.d_v))
        q, k, v = (self._split(nn.functional.linear(x, part)) for part in parts)
        return q, KeysValues.of(k, v)

    MultiHeadAttention.project = project  # type: ignore[method-assign]
    return transduce_training


def _one_memory_product() -> Maker:
    def project_memory(self: Decoder, memory: Tensor) -> tuple[KeysValues, ...]:
        parts: list[Any] = [layer.cross_attention for layer in self.layers]
        both = nn.functional.linear(memory, torch.cat([part.kv.weight for part in parts]))
        pairs = both.split(parts[0].kv.weight.shape[0], -1)
        halves = (pair.split(pair.shape[-1] // 2, -1) for pair in pairs)
        return tuple(
            KeysValues.of(part._split(k).contiguous(), part._split(v).contiguous())
            for part, (k, v) in zip(parts, halves, strict=True)
        )

    Decoder.project_memory = project_memory  # type: ignore[method-assign]
    return transduce_training


def _random_batches() -> Maker:
    def epoch(self: Batching, number: int) -> list[tuple[np.ndarray, ...]]:
        order = np.random.default_rng(number).permutation(len(self.source_lengths))
        updates, rows, widest = [], [], 0
        for pair in order:
            widest = max(widest, int(self.source_lengths[pair]), int(self.target_lengths[pair]))
            if widest * (len(rows) + 1) > self.micro_batch_tokens:
                updates.append((np.array(rows),))
                rows, widest = [], int(max(self.source_lengths[pair], self.target_lengths[pair]))
            rows.append(pair)
        return updates

    Batching.epoch = epoch  # type: ignore[method-assign,assignment]
    return transduce_training


def _compiled() -> Maker:
    def make(config: ModelConfig, precision: str) -> Training:
        from transduce.model.transformer import Transformer

        Transformer.features = torch.compile(Transformer.features, dynamic=True)  # type: ignore[method-assign]
        Transformer.start = torch.compile(Transformer.start, dynamic=True)  # type: ignore[method-assign]
        return transduce_training(config, precision)

    return make


ROWS: dict[str, tuple[str, Callable[[], Maker]]] = {
    "base": ("as it is", _as_it_is),
    "allocator": ("glibc's allocator untuned", _as_it_is),
    "dropout": ("torch's dropout", _torch_dropout),
    "sdpa": ("torch's fused attention", _fused_attention),
    "autograd": ("attention without its written gradient", _autograd_attention),
    "logits": ("all logits at once", _whole_logits),
    "adam": ("Adam tensor by tensor", _looped_adam),
    "projections": ("Q, K and V in three products", _separate_projections),
    "memory": ("K, V of the memory for all layers in one", _one_memory_product),
    "batches": ("batches of random lengths", _random_batches),
    "thread": ("one thread", _as_it_is),
    "compile": ("torch.compile, dynamic shapes", _compiled),
}


def main() -> int:
    """Zero, or 1 where the data are not there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared/data/multi30k")
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=[name for name in ROWS if name != "base"])
    parser.add_argument("--one", choices=ROWS, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        given.threads = 1 if given.one == "thread" else given.threads
        print(json.dumps(measure(given, ROWS[given.one][1](), tuned=given.one != "allocator")))
        return 0
    if missing(given.data):
        return 1
    given.precision = machine.pick_precision(given.precision, "cpu")
    ratios: dict[str, list[float]] = {name: [] for name in given.rows}
    with tempfile.TemporaryDirectory() as folder:
        prepared(given.data, folder)
        for _ in range(given.rounds):
            for name in given.rows:
                plain, changed = (
                    run(__file__, one, folder, given, GOMP_SPINCOUNT="20000") for one in ("base", name)
                )
                ratios[name].append(changed["rate"] / plain["rate"])
                print(f"{ROWS[name][0]}: {ratios[name][-1]:.3f}", file=sys.stderr)
    print(f"{'without it, or with':44}{'ratio':>7}{'spread':>14}")
    for name, values in ratios.items():
        spread = f"{min(values):.2f}-{max(values):.2f}"
        print(f"{ROWS[name][0]:44}{statistics.median(values):7.3f}{spread:>14}")
    print(
        f"recipe: {given.preset}, {given.precision}, {given.rounds} rounds of pairs, {given.seconds:g} s each"
    )
    print(json.dumps({"preset": given.preset, "precision": given.precision, "ratios": ratios}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
