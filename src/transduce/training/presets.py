"""Named recipes: what training changes beside the named model of the same name, one line each.

The paper writes a checkpoint every 10 minutes: 1,500 updates of 0.4 s for base, 600 of 1.0 s for big. Table
3 was measured without averaging.
"""

from __future__ import annotations

from typing import Any

from transduce.config import unknown_name
from transduce.model.config import NAMED

_BIG: dict[str, Any] = {"max_steps": 300_000, "average": 20, "save_every": 600}
# For small corpora: small batches, a high rate that falls to 0 at the run's end, checkpoints by its share.
_SMALL_DATA: dict[str, Any] = {
    "batch_tokens": 1024, "schedule": "linear", "rate": 3e-3, "warmup": 300, "max_steps": 0, "save_every": 0,
    "average": 3,
}  # fmt: skip

RECIPES: dict[str, dict[str, Any]] = {
    "paper-big": _BIG,
    "paper-big-enfr": _BIG,
    **{
        row: {"average": 1}
        for row in [
            "A1",
            "A2",
            "A3",
            "A4",
            "B1",
            "B2",
            "C1",
            "C2",
            "C3",
            "C4",
            "C5",
            "C6",
            "C7",
            "D1",
            "D2",
            "E",
        ]
    },
    "D3": {"average": 1, "label_smoothing": 0.0},
    "D4": {"average": 1, "label_smoothing": 0.2},
    "big": {**_BIG, "average": 1},
    "t2t-v3": {"beta_2": 0.997, "warmup": 8000, "rate": 2 * (512 * 8000) ** -0.5},
    "tiny": _SMALL_DATA,
    "small": {**_SMALL_DATA, "batch_tokens": 4096, "rate": 1e-3, "warmup": 2000},
}

# For a model that is trained already, whose shape is in its folder. The warm-up is as long as Adam's second
# moment looks back, 1 / (1 - beta_2): until then it rests on too few gradients for full steps.
FINE_TUNING = "fine-tuning"
_FINE_TUNING: dict[str, Any] = {
    "batch_tokens": 4096, "schedule": "linear", "warmup": 50, "max_steps": 0, "save_every": 0, "average": 3,
}  # fmt: skip


def recipe(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The model settings and training settings of the preset ``name``; ConfigError where there is none."""
    if name == FINE_TUNING:
        return {}, dict(_FINE_TUNING)
    if name not in NAMED:
        raise unknown_name(name, NAMED, "preset")
    return dict(NAMED[name]), dict(RECIPES.get(name, {}))


def automatic_preset(pairs: int, device: str) -> str:
    """A preset that suits so many pairs: the paper's base model from a million pairs on, where a GPU is."""
    if pairs >= 1_000_000 and device.startswith("cuda"):
        return "paper-base"
    return "small" if pairs >= 100_000 and device.startswith("cuda") else "tiny"


def automatic_epochs(pairs: int) -> int:
    """How often a small model should see a corpus: 60 times 1,000 pairs, 20 times 30,000."""
    for limit, epochs in ((2_000, 60), (10_000, 40), (50_000, 20), (200_000, 10), (1_000_000, 6)):
        if pairs < limit:
            return epochs
    return 4


def automatic_tuning_epochs(pairs: int) -> int:
    """How often a trained model should see a corpus: few pairs are soon learned by heart."""
    return 10 if pairs < 10_000 else 5 if pairs < 100_000 else 2


def automatic_dropout(pairs: int) -> float:
    """The fewer the pairs, the more a model that sees them often must be kept from learning them by heart."""
    return 0.3 if pairs < 10_000 else 0.2 if pairs < 100_000 else 0.1
