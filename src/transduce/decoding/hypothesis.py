"""One finished output of the search, and the score that ranks it."""

from __future__ import annotations

from dataclasses import dataclass

from transduce.counts import counted
from transduce.errors import TransduceError


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6) ^ alpha, by which log P is divided; ``length`` counts the end, not the start.

    Source: Wu et al. 2016 (GNMT), as tensor2tensor counts; the paper, section 6.1, with alpha = 0.6.
    """
    return float(((5.0 + length) / 6.0) ** alpha)


@dataclass(frozen=True)
class Hypothesis:
    """An output: its tokens without the start, the end included unless ``truncated``.

    ``log_probability`` is the natural logarithm of P(tokens | source); ``score`` is that divided by the
    length penalty. ``truncated`` outputs ran into the length limit before their end. The token's own log
    probabilities add up to ``log_probability``.
    """

    tokens: tuple[int, ...]
    score: float
    log_probability: float
    truncated: bool
    token_log_probabilities: tuple[float, ...]

    @property
    def length(self) -> int:
        """The number of tokens that the length penalty counts."""
        return len(self.tokens)


def not_finite(token: int) -> TransduceError:
    """The error for scores of the ``token``-th token of an output that are no numbers."""
    return TransduceError(
        f"the model's scores for output token {token} are not finite numbers; its weights are damaged, "
        "or its training had diverged: use an earlier checkpoint"
    )


def explain_score(log_probability: float, length: int, alpha: float) -> str:
    """The arithmetic of one score in one line."""
    penalty = length_penalty(length, alpha)
    return (
        f"score {log_probability / penalty:.6f} = log P {log_probability:.6f} / penalty {penalty:.6f}; "
        f"penalty = ((5 + {length}) / 6)^{alpha:g}, {counted(length, 'token')} with the end"
    )
