"""Milliseconds of a search step early and late in an output: the cost must grow slowly with the position.

python benchmarks/late_steps.py [--shape tiny] [--engine auto] [--sentences 16] [--rounds 3]

An untrained model; steps around positions 10 and 200 of outputs with beam 4, rows shuffled as by a search.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time

import torch

from transduce import machine
from transduce.decoding.engines import pick_engine
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer

BEAM, SOURCE, AROUND = 4, 20, 5


def main() -> int:
    """Zero."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", default="tiny")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--sentences", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    machine.tune_allocator()
    machine.set_threads(given.threads)
    torch.manual_seed(1)
    model = Transformer(ModelConfig.named(given.shape, vocabulary=8000)).eval()
    engine = pick_engine(given.engine, model, device="cpu", precision="fp32", forbidden=(0, 2, 3))
    draw = torch.Generator().manual_seed(1)
    early: list[float] = []
    late: list[float] = []
    for _ in range(given.rounds):
        with torch.inference_mode():
            state = engine.start(torch.randint(4, 8000, (given.sentences, SOURCE), generator=draw))
            rows = torch.arange(given.sentences)
            for position in range(200 + AROUND):
                tokens = torch.randint(4, 8000, (len(rows),), generator=draw)
                begin = time.perf_counter()
                _, state = engine.step(tokens, state)
                slots = len(rows) // given.sentences
                first = torch.arange(given.sentences)[:, None] * slots
                parents = torch.randint(0, slots, (given.sentences, BEAM), generator=draw)
                rows = (first + parents).flatten()
                state = state.rows(rows)
                spent = 1000 * (time.perf_counter() - begin)
                if abs(position - 10) < AROUND:
                    early.append(spent)
                elif abs(position - 200) < AROUND:
                    late.append(spent)
    first_ms, last_ms = statistics.median(early), statistics.median(late)
    print(f"{'position':>10}{'ms a step':>11}{'ratio':>7}")
    print(f"{10:10}{first_ms:11.2f}{1:7.2f}\n{200:10}{last_ms:11.2f}{last_ms / first_ms:7.2f}")
    name = type(engine).__name__
    print(
        f"recipe: untrained {given.shape}, {name}, {given.sentences} sentences x beam {BEAM}, "
        f"{given.rounds} rounds"
    )
    figures = {"shape": given.shape, "engine": name, "ms_at_10": first_ms, "ms_at_200": last_ms}
    print(json.dumps({**figures, "ratio": last_ms / first_ms, "threads": torch.get_num_threads()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
