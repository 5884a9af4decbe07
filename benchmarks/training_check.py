"""Whether every system of `training_speed.py` trains the same thing: one line for each, and what is wrong.

python benchmarks/training_check.py [--systems joeynmt eole] [--python sockeye=/path/to/python] ...

A small model of each, without dropout, must lower its own loss on a batch, must have our number of parameters
but for biases and norms, and must give the same losses where the batch has more padding.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import torch

from training_loop import Maker
from training_processes import add_arguments, alone, settle, version
from training_systems import SYSTEMS
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.step import Batch

UPDATES = 20
CONFIG = ModelConfig(
    vocabulary=500, d_model=32, d_ff=64, heads=4, encoder_layers=2, decoder_layers=3, dropout=0.0, norm="pre"
)


def batch(padding: int = 0) -> Batch:
    """16 random pairs of 3 to 8 tokens, ends included, and as many columns of ``padding`` beside them."""
    chance, sides = torch.Generator().manual_seed(1), []
    lengths = torch.randint(3, 9, (2, 16, 1), generator=chance)
    for side in lengths:
        places = torch.arange(int(side.max()) + padding)
        ids = torch.randint(4, CONFIG.vocabulary, (16, 8), generator=chance)
        ids = torch.nn.functional.pad(ids, (0, padding))[:, : len(places)]
        ids[places == side - 1], ids[places >= side] = CONFIG.eos_id, CONFIG.pad_id
        sides.append(ids)
    source, target = sides
    shifted = torch.nn.functional.pad(target[:, :-1], (1, 0), value=CONFIG.start_id)
    return Batch(source, shifted, target, *(int(side.sum()) for side in lengths))


def check(make: Maker) -> dict[str, Any]:
    """Parameters beyond ours, the first and last loss, what more padding changes, and the ``wrong`` of it."""
    ours = sum(p.numel() for p in Transformer(CONFIG).parameters())
    torch.manual_seed(1)
    training = make(CONFIG, "fp32")
    losses = [float(training.step(batch())) for _ in range(UPDATES)]
    torch.manual_seed(1)
    padded = make(CONFIG, "fp32")
    change = max(abs(float(padded.step(batch(padding=5))) - loss) for loss in losses[:3])
    attentions = CONFIG.encoder_layers + 2 * CONFIG.decoder_layers
    allowed = 4 * CONFIG.d_model * attentions + CONFIG.vocabulary + 4 * CONFIG.d_model
    more, wrong = training.parameters - ours, []
    if abs(more) > allowed:
        wrong.append(f"{more:+,} parameters, where biases and norms explain {allowed:,}")
    if not losses[-1] < losses[0] - 0.05:
        wrong.append(f"a loss that does not fall: {losses[0]:.3f} to {losses[-1]:.3f} in {UPDATES} updates")
    if not change < 1e-4:
        wrong.append(f"padding that counts: it changes the loss by {change:.2g}")
    return {"more": more, "losses": [losses[0], losses[-1]], "change": change, "wrong": wrong}


def main() -> int:
    """Zero, or 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    given = parser.parse_args()
    if given.one:
        print(json.dumps({**check(SYSTEMS[given.one][1]), "version": version(given.one)}))
        return 0
    settle(parser, given)
    failed = False
    print(f"{'system':34}{'version':>20}{'parameters':>12}{'loss':>15}{'padding':>9}  wrong")
    for name in given.systems:
        found = alone(given.python.get(name, sys.executable), [__file__, "--one", name])
        loss = " > ".join(f"{value:.2f}" for value in found["losses"])
        wrong = "; ".join(found["wrong"]) or "nothing"
        print(
            f"{SYSTEMS[name][0]:34}{found['version']:>20}{found['more']:+12,}{loss:>15}"
            f"{found['change']:9.0e}  {wrong}"
        )
        failed |= bool(found["wrong"])
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
