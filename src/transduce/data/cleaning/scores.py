"""A filter on scores that something else gives to whole pairs: a limit, or the best share of all."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from transduce.data.cleaning.verdict import Verdict
from transduce.data.formats.pair import Pair
from transduce.errors import DataError, UsageError

Scorer = Callable[[Sequence[Pair]], Sequence[float]]
"""How bad pairs are, one number each, the lower the better."""


@dataclass(frozen=True)
class ByScore:
    """Which pairs are kept by their scores: those of at most ``most``, or the best ``share`` of all."""

    score: Scorer
    most: float | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        if (self.most is None) == (self.share is None):
            raise UsageError("scores need one limit: the largest that is kept, or the share of the best ones")
        if self.share is not None and not 0 < self.share <= 1:
            raise UsageError(
                f"the share of the best pairs is {self.share:g}; it must be above 0 and at most 1"
            )
        if self.most is not None and math.isnan(self.most):
            raise UsageError("the largest score that is kept is nan; it must be a number")

    def judged(self, judge: Callable[[], Iterable[list[Verdict]]]) -> Iterator[list[Verdict]]:
        """The verdicts, where pairs with too bad a score are now dropped as well.

        ``judge`` gives the verdicts of the other filters. It is called twice for a share, which is known only
        when all pairs are scored: the scores are kept, 8 bytes for each pair, and the pairs are not.
        """
        if self.most is not None:
            for chunk in judge():
                yield _by_score(chunk, self.score(_kept(chunk)), self.most)
            return
        scores = array("d")
        for chunk in judge():
            scores.extend(self.score(_kept(chunk)))
        most = _limit(scores, self.share or 1.0)
        rest = iter(scores)
        for chunk in judge():
            found = list(islice(rest, len(_kept(chunk))))
            yield _by_score(chunk, found, most)


def _kept(chunk: Iterable[Verdict]) -> list[Pair]:
    return [verdict.mended for verdict in chunk if verdict.kept]


def _by_score(chunk: Sequence[Verdict], scores: Sequence[float], most: float) -> list[Verdict]:
    if len(_kept(chunk)) != len(scores):
        raise DataError(
            "the pairs have changed while they were scored; leave the files alone and start again"
        )
    rest = iter(scores)
    return [
        verdict
        if not verdict.kept or (score := next(rest)) <= most
        else verdict.dropped("score", f"score {score:.4f}, at most {most:.4f}")
        for verdict in chunk
    ]


def _limit(scores: Sequence[float], share: float) -> float:
    """The score that the best ``share`` of all do not exceed; equal ones are kept or dropped together."""
    if not scores:
        return math.inf
    best = math.ceil(share * len(scores) - 1e-9)  # 0.07 x 100 is 7.000000000000001
    return sorted(scores)[max(best, 1) - 1]
