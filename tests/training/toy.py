"""A toy corpus for whole runs: lists of digits as words, translated and reversed."""

from __future__ import annotations

import hashlib
import io
import random
from pathlib import Path
from typing import Any

import torch
from torch import nn

from transduce.training.config import TrainingConfig
from transduce.training.optimizer import adam

ENGLISH = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
GERMAN = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]


def write_toy(
    folder: Path, pairs: int = 200, seed: int = 1, longest: int = 8, reverse: bool = True
) -> tuple[Path, Path]:
    """The paths of a source and a target file in ``folder``."""
    chance = random.Random(seed)
    lines = [[chance.randrange(9) for _ in range(chance.randint(2, longest))] for _ in range(pairs)]
    source, target = folder / "toy.en", folder / "toy.de"
    source.write_text("".join(" ".join(ENGLISH[i] for i in line) + "\n" for line in lines), encoding="utf-8")
    turned = [line[::-1] if reverse else line for line in lines]
    target.write_text("".join(" ".join(GERMAN[i] for i in line) + "\n" for line in turned), encoding="utf-8")
    return source, target


def toy_settings(**training: Any) -> dict[str, Any]:
    """A model that trains in seconds: 1 + 1 layers of width 32; everything else as in `tiny`."""
    return {
        "data": {"vocabulary": 320, "valid_pairs": 10},
        "model": {"d_model": 32, "d_ff": 64, "heads": 4, "encoder_layers": 1, "decoder_layers": 1},
        "training": {
            "batch_tokens": 300, "device": "cpu", "threads": 1, "report_every": 5, "precision": "fp32",
            **training,
        },
    }  # fmt: skip


class Said(io.StringIO):
    """What a run says, in memory: all that the type of an open text file asks for."""

    mode, name = "w", "said"


def toy_call(folder: Path, **training: Any) -> dict[str, Any]:
    """What `train` is called with for a run of a second or two that saves at every other update."""
    source, target = write_toy(folder, 200)
    how = {
        "save_every": 2, "valid_every": 1000, "report_every": 1, "max_steps": 5, "valid_lines": 1, **training,
    }  # fmt: skip
    return {"source": source, "target": target, "settings": toy_settings(**how), "stream": Said()}


def digest(folder: Path) -> dict[str, str]:
    """The sha256 of each file in ``folder``."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def trained(seed: int = 1, steps: int = 3) -> tuple[nn.Module, torch.optim.Optimizer]:
    """The smallest model that has weights and moments worth saving, and its optimizer."""
    torch.manual_seed(seed)
    model = nn.Linear(3, 2)
    optimizer = adam(model, TrainingConfig())
    for _ in range(steps):
        model(torch.randn(4, 3)).square().sum().backward()
        optimizer.param_groups[0]["lr"] = 0.1
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer
