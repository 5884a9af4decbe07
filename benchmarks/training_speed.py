"""Real target tokens per second in training, padding excluded, beside the ceiling that matrix products set.

python benchmarks/training_speed.py [--data ../shared/data/multi30k] [--preset tiny] [--seconds 60]

Multi30k EN-DE, joint vocabulary 8,000, batches of at most 4,096 padded tokens a side. The ceiling is what
this machine's matrix products alone would allow: measured FLOP/s of the model's shapes over FLOPs per token.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

from transduce import machine
from transduce.data.batching import Batching, Update
from transduce.data.config import DataConfig
from transduce.data.prepare import prepare
from transduce.data.shards import TokenShards
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.config import TrainingConfig
from transduce.training.optimizer import adam
from transduce.training.step import update
from transduce.training.validation import to_batch

WARM_UP, REPORT = 5, 5.0


def ceiling(config: ModelConfig, precision: str, rows: int = 4096) -> float:
    """FLOP/s of this machine's matrix products in the shapes that most of the model's work has."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    shapes = [
        (config.d_model, config.d_ff),
        (config.d_ff, config.d_model),
        (config.d_model, 3 * config.d_model),
    ]
    done, spent = 0.0, 0.0
    for inner, outer in shapes:
        a, b = torch.randn(rows, inner, dtype=dtype), torch.randn(outer, inner, dtype=dtype)
        torch.nn.functional.linear(a, b)
        begin = time.perf_counter()
        while time.perf_counter() - begin < 1.0:
            torch.nn.functional.linear(a, b)
            done += 2 * rows * inner * outer
        spent += time.perf_counter() - begin
    return done / spent


def flops_per_target_token(model: Transformer, source_share: float) -> float:
    """6 x (weights in matrix products) per source and target token, per target token; no attention."""
    encoder = sum(p.numel() for p in model.encoder.parameters() if p.dim() == 2)
    kv = sum(layer.cross_attention.kv.weight.numel() for layer in model.decoder.layers)
    decoder = sum(p.numel() for p in model.decoder.parameters() if p.dim() == 2) - kv
    return 6 * ((encoder + kv) * source_share + decoder + model.embeddings.output.numel())


def measure(
    model: Transformer,
    updates: list[Update],
    shards: TokenShards,
    config: TrainingConfig,
    *,
    precision: str,
    seconds: float,
) -> tuple[float, list[float]]:
    """Real target tokens per second over ``seconds`` after the warm-up, and the same for each 5 s of it."""
    optimizer = adam(model, config)
    model.train()
    tokens, begin, rates = 0, 0.0, []
    mark, mark_tokens = 0.0, 0
    for number, ids in enumerate(updates * 100):
        if number == WARM_UP:
            begin = mark = time.perf_counter()
            tokens = mark_tokens = 0
        batches = [to_batch(shards, i, model, "cpu") for i in ids]
        tokens += update(model, optimizer, batches, config, rate=1e-4, precision=precision).target_tokens
        now = time.perf_counter()
        if number > WARM_UP and now - mark >= REPORT:
            rates.append((tokens - mark_tokens) / (now - mark))
            mark, mark_tokens = now, tokens
        if number > WARM_UP and now - begin >= seconds:
            break
    return tokens / (now - begin), rates


def main() -> int:
    """Zero, or 1 where the data are not there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared/data/multi30k")
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    if not (given.data / "train.en.gz").exists():
        print(f"{given.data}: Multi30k is not there (train.en.gz, train.de.gz); name its folder with --data")
        return 1
    allocator = machine.tune_allocator()
    machine.set_threads(given.threads)
    precision = machine.pick_precision(given.precision, "cpu")
    with tempfile.TemporaryDirectory() as folder:
        files = {side: (str(given.data / f"train.{side}.gz"),) for side in ("en", "de")}
        data = prepare(
            DataConfig(source=files["en"], target=files["de"], vocabulary=8000),
            folder,
            max_length=256,
            seed=1,
        )
        torch.manual_seed(1)
        model = Transformer(ModelConfig.named(given.preset, vocabulary=data.tokenizer.vocabulary))
        config = TrainingConfig(batch_tokens=4096, micro_batch_tokens=4096)
        lengths = data.train.source_lengths, data.train.target_lengths
        batching = Batching(*lengths, batch_tokens=4096, micro_batch_tokens=4096, seed=1)
        updates = batching.epoch(0)
        rate, rates = measure(model, updates, data.train, config, precision=precision, seconds=given.seconds)
        share = float(lengths[0].sum() / lengths[1].sum())
    flops = flops_per_target_token(model, share)
    peak = ceiling(model.config, precision)
    figures = {
        "preset": given.preset,
        "precision": precision,
        "threads": torch.get_num_threads(),
        "target_tokens_per_second": round(rate),
        "spread": [round(min(rates)), round(statistics.median(rates)), round(max(rates))] if rates else [],
        "ceiling_gflops": round(peak / 1e9),
        "share_of_ceiling": round(rate * flops / peak, 3),
        "peak_memory_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "allocator": allocator,
        "torch": torch.__version__,
    }
    print(f"{'preset':12}{'precision':11}{'tokens/s':>10}{'of ceiling':>12}{'GiB':>7}")
    print(
        f"{given.preset:12}{precision:11}{rate:10,.0f}{figures['share_of_ceiling']:12.0%}"
        f"{figures['peak_memory_gib']:7.2f}"
    )
    print(f"recipe: Multi30k EN-DE, joint BPE 8,000, at most 4,096 padded tokens, {given.seconds:g} s")
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
