"""Whether a run does well: its best validation, and losses that no model has that learns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from transduce.errors import TrainingError
from transduce.training.config import TrainingConfig
from transduce.training.log import RunLog
from transduce.training.report import Progress, Window, validation_lines, validation_values
from transduce.training.validation import Validation

# Guessing blindly costs ln V, about 10; no model that learns is ever this much worse.
DIVERGED = 50.0


def judge(scores: Validation, p: Progress, c: TrainingConfig, log: RunLog) -> bool:
    """Whether these scores are the run's best so far; ``p`` counts it, and ``log`` says it."""
    value = scores.value(c.metric)
    # By today's metric: that of a run may change when it goes on.
    best = Validation(signature="", samples=(), **p.best["scores"]).value(c.metric) if p.best else None
    better = value is not None and (best is None or value > best)
    if better:
        measured = {"loss": scores.loss, "bleu": scores.bleu, "chrf": scores.chrf}
        p.best, p.without_better = {"step": p.step, "scores": measured}, 0
    elif p.earlier + p.step > c.warmup:  # a young model's loss may stand still; no reason to stop
        p.without_better += 1
    log.write("validation", validation_values(p, scores))
    for line in validation_lines(p, scores, better=better):
        log.say(line)
    return better


def check_divergence(window: Window, step: int, newest: Callable[[], Path | None]) -> None:
    """Nothing; TrainingError where the loss is beyond hope. ``newest`` gives the last checkpoint."""
    if window.loss > DIVERGED:
        raise TrainingError(
            f"training diverged at step {step}: the loss is {window.loss:.3g}; "
            f"lower training.rate and start anew (last checkpoint: {newest() or 'none'})"
        )
