"""Training speed of `paper-base` and `paper-big` on one CUDA GPU, with the share of its peak that is used.

python benchmarks/gpu_training.py [--presets paper-base paper-big] [--peak-tflops 989] [--compile]

Random sentences of 10 to 60 tokens, joint vocabulary 37,000, batches of at most 25,000 padded tokens a side,
bfloat16 autocast, the steps of `transduce train`. Model FLOPs utilisation counts 6 FLOPs for each weight in a
matrix product and token, and 12 x layers x length x d_model a token for attention, against the given peak
(default: the dense bfloat16 peak that NVIDIA states for an H100 or H200).
"""

from __future__ import annotations

import argparse
import json
import sys
import time

import numpy as np
import torch

from training_speed import flops_per_target_token
from transduce.data.batching import Batching
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.config import TrainingConfig
from transduce.training.optimizer import adam
from transduce.training.step import Batch, update

WARM_UP, TOKENS, VOCABULARY = 10, 25_000, 37_000


def batches(seed: int, count: int) -> list[Batch]:
    """Batches on the GPU, as full as `transduce train` would make them."""
    chance = np.random.default_rng(seed)
    lengths = chance.integers(10, 61, size=(2, 200_000))
    batching = Batching(*lengths, batch_tokens=TOKENS, micro_batch_tokens=TOKENS, seed=seed)
    made = []
    for (ids,) in batching.epoch(0)[:count]:
        sides = []
        for side in lengths:
            ids_of = torch.randint(4, VOCABULARY, (len(ids), int(side[ids].max())))
            places = torch.arange(ids_of.shape[1])
            ids_of[places >= torch.from_numpy(side[ids])[:, None]] = 0
            sides.append(ids_of.cuda())
        source, target = sides
        shifted = torch.nn.functional.pad(target[:, :-1], (1, 0))
        made.append(Batch(source, shifted, target, *(int(side[ids].sum()) for side in lengths)))
    return made


def measure(preset: str, given: argparse.Namespace) -> dict[str, float]:
    """Tokens per second, milliseconds per update, peak memory in GiB and model FLOPs utilisation."""
    torch.manual_seed(1)
    model = Transformer(ModelConfig.named(preset, vocabulary=VOCABULARY)).cuda().train()
    if given.compile:
        model.encoder.compile(dynamic=True)
        model.decoder.compile(dynamic=True)
    config = TrainingConfig()
    optimizer = adam(model, config)
    made = batches(1, 40)
    torch.cuda.reset_peak_memory_stats()
    begin, tokens, positions = 0.0, 0, 0.0
    for number in range(WARM_UP + given.updates):
        if number == WARM_UP:
            torch.cuda.synchronize()
            begin, tokens, positions = time.perf_counter(), 0, 0.0
        batch = made[number % len(made)]
        update(model, optimizer, [batch], config, rate=1e-4, precision="bf16")
        tokens += batch.target_tokens
        positions += batch.source.numel() * batch.source.shape[1] + 2 * (
            batch.target_in.numel() * batch.target_in.shape[1]
        )
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    attention = 12 * model.config.encoder_layers * model.config.d_model * positions
    flops = flops_per_target_token(model, 1.0) * tokens + attention
    return {
        "target_tokens_per_second": round(tokens / seconds),
        "milliseconds_per_update": round(1000 * seconds / given.updates, 1),
        "peak_memory_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2),
        "model_flops_utilisation": round(flops / seconds / given.peak_tflops / 1e12, 3),
    }


def main() -> int:
    """Zero, or 1 where there is no CUDA GPU."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--presets", nargs="+", default=["paper-base", "paper-big"])
    parser.add_argument("--peak-tflops", type=float, default=989.0)
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--compile", action="store_true")
    given = parser.parse_args()
    if not torch.cuda.is_available():
        print("this benchmark needs a CUDA GPU")
        return 1
    rows = {preset: measure(preset, given) for preset in given.presets}
    print(f"{'preset':12}{'tokens/s':>12}{'ms/update':>11}{'GiB':>8}{'MFU':>7}")
    for preset, row in rows.items():
        print(
            f"{preset:12}{row['target_tokens_per_second']:12,}{row['milliseconds_per_update']:11.1f}"
            f"{row['peak_memory_gib']:8.2f}{row['model_flops_utilisation']:7.1%}"
        )
    name = torch.cuda.get_device_name()
    print(f"recipe: {name}, bf16, {TOKENS:,} padded tokens a side, {given.updates} updates after {WARM_UP}")
    figures = {"device": name, "compile": given.compile, "presets": rows, "torch": torch.__version__}
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
