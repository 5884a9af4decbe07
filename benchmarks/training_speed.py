"""Real target tokens per second in training, padding excluded: Transduce and its peers in one run.

python benchmarks/training_speed.py [--data ../shared/data/multi30k] [--preset tiny] [--rounds 3]
    [--python sockeye=/path/to/python] ...

Multi30k EN-DE, joint vocabulary 8,000, the same batches of at most 4,096 padded tokens a side for all. Every
system runs in a process of its own, in turn, for several rounds; --python names the Python that runs a peer
which is installed in an environment of its own. The ceiling is what the machine's matrix products alone would
allow: measured FLOP/s of the model's shapes over FLOPs per token. The loss is each system's own, of its first
and last batch (JoeyNMT's leaves out a constant). `training_check.py` tells whether all train the same thing.
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
from typing import Any

import torch

from training_loop import Maker
from training_processes import add_arguments, alone, settle, version
from training_systems import SYSTEMS
from transduce import machine
from transduce.data.batching import Batching
from transduce.data.config import DataConfig
from transduce.data.prepare import Prepared, open_prepared, prepare
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.validation import to_batch

WARM_UP, TOKENS = 4, 4096


def ceiling(config: ModelConfig, precision: str, rows: int = TOKENS) -> float:
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


def measure(given: argparse.Namespace, make: Maker, *, tuned: bool) -> dict[str, Any]:
    """Tokens per second over ``--seconds`` after the warm-up, and the peak of this process's memory."""
    if tuned:
        machine.tune_allocator()
    machine.set_threads(given.threads)
    data = open_prepared(given.work)
    lengths = data.train.source_lengths, data.train.target_lengths
    batching = Batching(*lengths, batch_tokens=TOKENS, micro_batch_tokens=TOKENS, seed=1)
    torch.manual_seed(1)
    config = ModelConfig.named(given.preset, vocabulary=data.tokenizer.vocabulary)
    training = make(config, given.precision)
    shape = Transformer(ModelConfig(vocabulary=20, d_model=8, d_ff=8, heads=1))  # only for its special ids
    begin, tokens, number, losses = time.perf_counter(), 0, 0, []
    for number, (ids,) in enumerate(batching.epoch(0) * 100):
        if number == WARM_UP:
            begin, tokens = time.perf_counter(), 0
        batch = to_batch(data.train, ids, shape, "cpu")
        losses.append(training.step(batch))
        tokens += batch.target_tokens
        if number > WARM_UP and time.perf_counter() - begin >= given.seconds:
            break
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "rate": tokens / seconds,
        "gib": peak,
        "updates": number - WARM_UP + 1,
        "parameters": training.parameters,
        "losses": [float(losses[0]), float(losses[-1])],
        "torch": torch.__version__,
    }


def main() -> int:
    """Zero, or 1 where the data are not there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared/data/multi30k")
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    add_arguments(parser)
    given = parser.parse_args()
    if given.one:
        tuned = given.one == "transduce"  # the peers run as their users run them
        result = measure(given, SYSTEMS[given.one][1], tuned=tuned)
        print(json.dumps({**result, "version": version(given.one)}))
        return 0
    settle(parser, given)
    if missing(given.data):
        return 1
    given.precision = machine.pick_precision(given.precision, "cpu")
    machine.set_threads(given.threads)
    with tempfile.TemporaryDirectory() as folder:
        data = prepared(given.data, folder)
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in given.systems}
        for _ in range(given.rounds):
            for name in given.systems:
                # As the command line sets it for us; the peers run as their users run them.
                waiting = {"GOMP_SPINCOUNT": "20000"} if name == "transduce" else {}
                python = given.python.get(name, sys.executable)
                runs[name].append(run(__file__, name, folder, given, python=python, **waiting))
                print(f"{SYSTEMS[name][0]}: {runs[name][-1]['rate']:,.0f} tokens/s", file=sys.stderr)
        model = Transformer(ModelConfig.named(given.preset, vocabulary=data.tokenizer.vocabulary))
        share = float(data.train.source_lengths.sum() / data.train.target_lengths.sum())
    _print(runs, model, share, given)
    return 0


def missing(data: Path) -> bool:
    """Whether Multi30k is not in the folder ``data``; then that is said."""
    if (data / "train.en.gz").exists():
        return False
    print(f"{data}: Multi30k is not there (train.en.gz, train.de.gz); name its folder with --data")
    return True


def prepared(data: Path, folder: str) -> Prepared:
    """Multi30k EN-DE with 8,000 joint subwords, prepared in ``folder``."""
    files = [(str(data / f"train.{side}.gz"),) for side in ("en", "de")]
    config = DataConfig(source=files[0], target=files[1], vocabulary=8000)
    return prepare(config, folder, max_length=256, seed=1)


def run(
    script: str,
    name: str,
    folder: str,
    given: argparse.Namespace,
    python: str = sys.executable,
    **environment: str,
) -> dict[str, Any]:
    """What ``script`` measures of ``name`` in a process of its own."""
    words = [script, "--one", name, "--work", folder, "--preset", given.preset]
    words += ["--precision", given.precision, "--threads", f"{given.threads}"]
    words += ["--seconds", f"{given.seconds}"]
    return alone(python, words, **environment)


def _print(
    runs: dict[str, list[dict[str, Any]]], model: Transformer, share: float, given: argparse.Namespace
) -> None:
    flops, peak = flops_per_target_token(model, share), ceiling(model.config, given.precision)
    rows = {}
    for name, results in runs.items():
        rates = sorted(result["rate"] for result in results)
        rows[name] = {
            "target_tokens_per_second": round(statistics.median(rates)),
            "spread": [round(rates[0]), round(rates[-1])],
            "share_of_ceiling": round(statistics.median(rates) * flops / peak, 3),
            "peak_memory_gib": round(max(result["gib"] for result in results), 2),
            "parameters": results[0]["parameters"],
            "losses": [round(loss, 2) for loss in results[-1]["losses"]],
            "version": results[0].get("version"),
            "torch": results[0]["torch"],
        }
    ours = rows.get("transduce", {"target_tokens_per_second": 0})["target_tokens_per_second"]
    print(
        f"{'system':34}{'tokens/s':>10}{'spread':>16}{'ours/it':>9}{'of ceiling':>12}{'GiB':>7}"
        f"{'million':>9}{'loss':>15}"
    )
    for name, row in rows.items():
        rate, (low, high), (first, last) = row["target_tokens_per_second"], row["spread"], row["losses"]
        print(
            f"{SYSTEMS[name][0]:34}{rate:10,}{f'{low:,}-{high:,}':>16}{ours / rate:9.2f}"
            f"{row['share_of_ceiling']:12.0%}{row['peak_memory_gib']:7.2f}{row['parameters'] / 1e6:9.2f}"
            f"{f'{first:.2f} > {last:.2f}':>15}"
        )
    threads = torch.get_num_threads()
    print(
        f"recipe: {given.preset}, {given.precision}, {threads} threads, Multi30k EN-DE, joint BPE 8,000, "
        f"at most {TOKENS:,} padded tokens a side, {given.rounds} rounds of {given.seconds:g} s in turn"
    )
    figures = {
        "preset": given.preset,
        "precision": given.precision,
        "threads": threads,
        "ceiling_gflops": round(peak / 1e9),
        "mflop_per_target_token": round(flops / 1e6, 1),
        "systems": rows,
        "torch": torch.__version__,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    sys.exit(main())
