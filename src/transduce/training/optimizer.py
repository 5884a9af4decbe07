"""Section 5.3: Adam, and the learning rate of each update; updates are counted from 1."""

from __future__ import annotations

import torch
from torch import nn

from transduce.training.config import TrainingConfig


def paper_rate(step: int, d_model: int, warmup: int) -> float:
    """d_model^-0.5 * min(step^-0.5, step * warmup^-1.5), for the update number ``step`` >= 1."""
    return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


def learning_rate(config: TrainingConfig, d_model: int, step: int, done: float = 0.0) -> float:
    """The learning rate of the update number ``step`` >= 1; ``done`` is the share of the run that is over.

    "paper" is `paper_rate`, or the same shape with its peak moved to ``config.rate``. "constant" stays at the
    peak after the warm-up. "linear" falls from it to 0 at the run's end; where minutes are the limit that
    comes first, ``done`` is measured by the clock and the rates differ from run to run.
    """
    warmup = max(config.warmup, 1)
    peak = config.rate or paper_rate(warmup, d_model, warmup)
    if config.schedule == "paper":
        return paper_rate(step, d_model, warmup) * peak / paper_rate(warmup, d_model, warmup)
    climbing = peak * min(1.0, step / warmup)
    return climbing if config.schedule == "constant" else climbing * max(0.0, 1.0 - done)


def adam(model: nn.Module, config: TrainingConfig) -> torch.optim.Adam:
    """Adam over all parameters in one group; the rate is set before every update."""
    return torch.optim.Adam(
        model.parameters(), lr=0.0, betas=(config.beta_1, config.beta_2), eps=config.epsilon, fused=True
    )
