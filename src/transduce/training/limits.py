"""The limits of a run: how much of it is over, and why it ends."""

from __future__ import annotations

import signal

from transduce.counts import counted
from transduce.training.config import TrainingConfig
from transduce.training.report import Progress


def share_done(p: Progress, c: TrainingConfig, all_tokens: int) -> float:
    """The share of the run that is over, by whichever of its limits comes first; 0 where it has none.

    ``all_tokens`` counts the target tokens of ``c.max_epochs`` epochs.
    """
    shares = [
        p.step / c.max_steps if c.max_steps else 0.0,
        p.seconds / 60 / c.max_minutes if c.max_minutes else 0.0,
    ]
    if c.max_epochs:
        shares.append(p.target_tokens / all_tokens)
    return max(shares)


def why_over(p: Progress, c: TrainingConfig, interrupted: int | None) -> str | None:
    """Why the run is at its end, as a phrase; None while it is not. ``interrupted`` is a signal's number."""
    if interrupted is not None:
        return f"stopped by {signal.Signals(interrupted).name}"
    if c.max_steps and p.step >= c.max_steps:
        beyond = f", more than max_steps = {c.max_steps:,}" if p.step > c.max_steps else ""
        return f"{counted(p.step, 'update', 'are')} done{beyond}"
    if c.max_epochs and p.epoch >= c.max_epochs:
        return f"{counted(c.max_epochs, 'epoch', 'are')} done"
    if c.max_minutes and p.seconds >= c.max_minutes * 60:
        return f"{counted(c.max_minutes, 'minute', 'are')} over"
    if c.patience and p.without_better >= c.patience:
        return f"no better {c.metric} in {c.patience} validations"
    return None
