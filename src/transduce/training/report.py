"""Where a run stands, and what its log says of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from transduce.training.log import duration
from transduce.training.step import Updated
from transduce.training.validation import Validation, lines_by_languages

SHOWN = 200  # characters of a sample translation


@dataclass
class Progress:
    """Where a run stands; all of it is in every checkpoint.

    ``position`` counts updates of this block of this epoch. ``stages`` holds the epochs with which other
    weights of the corpora began, where these begin at an update. ``earlier`` counts the updates of the run
    whose optimizer this one goes on with, for the learning rate. ``validation_owed``: a signal came when one
    was due, so that it is done when the run goes on.
    """

    step: int = 0
    epoch: int = 0
    position: int = 0
    seconds: float = 0.0
    source_tokens: int = 0
    target_tokens: int = 0
    best: dict[str, Any] = field(default_factory=dict)
    without_better: int = 0
    validated_at: int = -1
    validation_owed: bool = False
    non_finite: int = 0
    out_of_memory: int = 0
    skipped_in_a_row: int = 0
    earlier: int = 0
    block: int = 0
    stages: list[int] = field(default_factory=list)


@dataclass
class Window:
    """Sums over the updates since the last report."""

    updates: int = 0
    smoothed: float = 0.0
    nll: float = 0.0
    source_tokens: int = 0
    target_tokens: int = 0
    gradient_norm: float = 0.0
    seconds: float = 0.0
    waited: float = 0.0

    def add(self, updated: Updated, seconds: float, waited: float) -> None:
        """Nothing; one more update is counted, which took ``seconds`` and ``waited`` for its data."""
        self.updates += 1
        self.smoothed += updated.smoothed
        self.nll += updated.nll
        self.source_tokens += updated.source_tokens
        self.target_tokens += updated.target_tokens
        self.gradient_norm += updated.gradient_norm
        self.seconds += seconds
        self.waited += waited

    @property
    def loss(self) -> float:
        """The un-smoothed loss per target token."""
        return self.nll / max(self.target_tokens, 1)

    @property
    def perplexity(self) -> float:
        """Of the un-smoothed loss (section 6: per subword)."""
        return math.exp(min(self.loss, 700.0))


def train_values(p: Progress, w: Window, rate: float) -> dict[str, Any]:
    """One report as JSON holds it; a number that is not finite is null."""
    values = {
        "step": p.step,
        "epoch": p.epoch,
        "loss": w.smoothed / max(w.target_tokens, 1),
        "nll": w.loss,
        "perplexity": w.perplexity,
        "rate": rate,
        "gradient_norm": w.gradient_norm / max(w.updates, 1),
        "source_tokens_per_second": w.source_tokens / w.seconds,
        "target_tokens_per_second": w.target_tokens / w.seconds,
        "wait_data": w.waited / w.seconds,
        "source_tokens": p.source_tokens,
        "target_tokens": p.target_tokens,
        "seconds": p.seconds,
    }
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def train_line(p: Progress, w: Window, rate: float, done: float) -> str:
    """The same for people; ``done`` is the share of the run that is over."""
    left = p.seconds * (1 - done) / done if done > 0 else math.inf
    speed = w.target_tokens / max(w.seconds, 1e-9)
    return (
        f"step {p.step:,} epoch {p.epoch + 1} loss {w.loss:.3f} perplexity {w.perplexity:.2f} "
        f"rate {rate:.2e} {speed:,.0f} target tokens/s ETA {duration(left)}"
    )


def validation_values(p: Progress, scores: Validation) -> dict[str, Any]:
    """One validation as JSON holds it."""
    return {
        "step": p.step,
        "loss": scores.loss,
        "perplexity": scores.perplexity,
        "bleu": scores.bleu,
        "chrf": scores.chrf,
        "signature": scores.signature,
        "beam": 1,
        "source_tokens": p.source_tokens,
        "target_tokens": p.target_tokens,
        "seconds": p.seconds,
        **({"languages": scores.languages} if scores.languages else {}),
        "samples": [{"source": s, "reference": r, "translation": t} for s, r, t in scores.samples],
    }


def validation_lines(p: Progress, scores: Validation, *, better: bool) -> Iterator[str]:
    """The same for people, with the samples."""
    bleu = "no BLEU above perplexity 100" if scores.bleu is None else f"BLEU {scores.bleu:.2f} (greedy)"
    yield (
        f"step {p.step:,} validation: loss {scores.loss:.3f}, perplexity {scores.perplexity:.2f}, {bleu}"
        + (", best so far" if better else "")
    )
    yield from lines_by_languages(scores.languages)
    for source, reference, translation in scores.samples:
        yield f"    source      {_shown(source)}"
        yield f"    reference   {_shown(reference)}"
        yield f"    translation {_shown(translation)}"


def _shown(text: str) -> str:
    """The text, or its beginning: a young model's output may fill a page. log.jsonl has all of it."""
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
