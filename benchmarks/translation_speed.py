"""Translating on a CPU: Transduce by each of its engines and CTranslate2 with the same weights, in one run.

python benchmarks/translation_speed.py MODEL [--source FILE --reference FILE] [--rounds 3] [--beams 4 1]
python benchmarks/translation_speed.py --shape paper-base

Every system runs in a process of its own, in turn, for several rounds; loading is not counted, tokenising is.
With --shape an untrained model of that name translates 512 lines of 15 tokens into 15 tokens and the end:
the same work for all. One sentence at a time is measured with beam 4.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from transduce import machine
from transduce.bundle import save_bundle
from transduce.data.lines import read_lines
from transduce.data.tokenizer import Tokenizer
from transduce.evaluation.scores import score
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from translation_systems import SYSTEMS, installed

DATA = Path(__file__).parents[2] / "shared/data/multi30k"
LENGTH, LINES, SINGLE = 15, 512, 60


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Seconds and outputs for each beam, milliseconds of single sentences, and this process's memory."""
    if not given.one.startswith("ct2"):  # the peer runs as its users run it
        machine.tune_allocator()
    lines = list(read_lines(given.source))
    length = LENGTH if given.shape else None
    translate = SYSTEMS[given.one][2](given.model, given.work, given.threads)
    translate(lines[:32], 4, length)
    result: dict[str, Any] = {"beams": {}}
    for beam in given.beams:
        begin = time.perf_counter()
        outputs = translate(lines, beam, length)
        result["beams"][str(beam)] = {"seconds": time.perf_counter() - begin, "outputs": outputs}
    singles = []
    for line in lines[:SINGLE]:
        begin = time.perf_counter()
        translate([line], 4, length)
        singles.append(1000 * (time.perf_counter() - begin))
    result["single"] = singles
    result["gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return result


def untrained(shape: str, folder: Path) -> tuple[Path, Path]:
    """A model folder of that shape with 8,000 pieces, and lines of exactly 15 tokens for it."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(3, 9))) for _ in range(9000)]
    tokenizer = Tokenizer.train((" ".join(draw.choices(words, k=10)) for _ in range(20_000)), 8000)
    torch.manual_seed(1)
    model = Transformer(ModelConfig.named(shape, vocabulary=tokenizer.vocabulary))
    save_bundle(folder / "model", model, model.config, tokenizer, {})
    whole = [word for word in words if len(tokenizer.encode(word)) == 1]
    lines = [" ".join(draw.choices(whole, k=LENGTH)) for _ in range(LINES)]
    assert all(len(tokenizer.encode(line)) == LENGTH for line in lines)
    source = folder / "lines"
    source.write_text("".join(f"{line}\n" for line in lines))
    return folder / "model", source


def main() -> int:
    """Zero, or 1 where the data are not there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--shape", choices=("tiny", "small", "paper-base", "paper-big"))
    parser.add_argument("--source", type=Path, default=DATA / "test_2016_flickr.en.gz")
    parser.add_argument("--reference", type=Path, default=DATA / "test_2016_flickr.de.gz")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beams", type=int, nargs="+", default=[4, 1])
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=installed())
    parser.add_argument("--one", choices=SYSTEMS, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given)))
        return 0
    if (given.model is None) == (given.shape is None):
        parser.error("name a model folder, or a --shape")
    given.threads = given.threads or machine.usable_cores()
    with tempfile.TemporaryDirectory() as folder:
        given.work = Path(folder)
        if given.shape:
            given.model, given.source = untrained(given.shape, given.work)
        elif not given.source.exists():
            print(f"{given.source}: is not there; name the text with --source and --reference")
            return 1
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in given.systems}
        for _ in range(given.rounds):
            for name in given.systems:
                runs[name].append(_run(name, given))
                print(f"{SYSTEMS[name][0]}: {_seconds(runs[name][-1])}", file=sys.stderr)
        _print(runs, given)
    return 0


def _run(name: str, given: argparse.Namespace) -> dict[str, Any]:
    words = [sys.executable, __file__, str(given.model), "--one", name, "--work", str(given.work)]
    words += ["--source", str(given.source), "--threads", str(given.threads)]
    words += ["--beams", *map(str, given.beams), *(["--shape", given.shape] if given.shape else [])]
    environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _seconds(result: dict[str, Any]) -> str:
    return ", ".join(f"beam {beam} {found['seconds']:.2f} s" for beam, found in result["beams"].items())


def _print(runs: dict[str, list[dict[str, Any]]], given: argparse.Namespace) -> None:
    references = [] if given.shape else list(read_lines(given.reference))
    tokenizer = Tokenizer.load(given.model / "tokenizer.model")
    rows = []
    heads = f"{'system':38}{'beam':>5}{'seconds':>9}{'spread':>16}{'lines/s':>9}{'tokens/s':>10}"
    print(f"{heads}{'BLEU':>7}{'one, ms':>9}{'p95':>7}{'GiB':>6}")
    for name, results in runs.items():
        singles = sorted(x for result in results for x in result["single"])
        middle, late = statistics.median(singles), singles[int(0.95 * (len(singles) - 1))]
        memory = max(result["gib"] for result in results)
        for beam in map(str, given.beams):
            seconds = sorted(result["beams"][beam]["seconds"] for result in results)
            outputs = results[0]["beams"][beam]["outputs"]
            tokens = (
                (LENGTH + 1) * len(outputs)
                if given.shape
                else sum(len(ids) + 1 for ids in tokenizer.encode_batch(outputs))
            )
            median = statistics.median(seconds)
            bleu = score(outputs, [references], ter=False).bleu if references else None
            row = {"system": name, "beam": int(beam), "seconds": [round(x, 2) for x in seconds],
                   "sentences_per_second": round(len(outputs) / median, 1),
                   "target_tokens_per_second": round(tokens / median),
                   "bleu": None if bleu is None else round(bleu, 2), "single_ms": round(middle, 1),
                   "single_ms_p95": round(late, 1), "peak_memory_gib": round(memory, 2)}  # fmt: skip
            rows.append(row)
            spread = f"{seconds[0]:.2f}-{seconds[-1]:.2f}"
            shown = "" if bleu is None else f"{bleu:.2f}"
            print(
                f"{SYSTEMS[name][0]:38}{beam:>5}{median:9.2f}{spread:>16}{len(outputs) / median:9,.0f}"
                f"{tokens / median:10,.0f}{shown:>7}{middle:9.1f}{late:7.1f}{memory:6.2f}"
            )
    what = f"untrained {given.shape}, {LENGTH} tokens and the end" if given.shape else given.source.name
    print(
        f"recipe: {what}, {given.rounds} rounds in turn, {given.threads} threads, torch {torch.__version__}"
    )
    print(json.dumps({"model": given.shape or given.model.name, "threads": given.threads, "runs": rows}))


if __name__ == "__main__":
    sys.exit(main())
