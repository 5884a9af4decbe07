"""Outputs in another order: by what other models think of them, added up with weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from transduce.counts import counted
from transduce.decoding.hypothesis import length_penalty
from transduce.decoding.scoring import PairScore
from transduce.decoding.translation import Translation
from transduce.decoding.translator import Translator
from transduce.errors import UsageError

# Sums in another order differ by less.
_DECIMALS = 9


@dataclass(frozen=True)
class Rescored:
    """An output's place in the list that it came in, its total, and what each model gave it."""

    place: int
    total: float
    scores: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What each model's score counts in the sum, and what the one counts that an output came with.

    A model's score of an output is log P / ((5 + n) / 6)^``alpha`` for the n tokens, the end counted, in
    which that model spells it.
    """

    models: tuple[float, ...]
    own: float = 1.0
    alpha: float = 0.6

    def __post_init__(self) -> None:
        for name, value in (("own", self.own), ("alpha", self.alpha), *(("model", w) for w in self.models)):
            if not math.isfinite(value):
                what = "alpha" if name == "alpha" else f"the {name} weight"
                raise UsageError(f"{what} is {value}; it must be a finite number, e.g. 1")

    def total(self, own: float, scores: Sequence[float]) -> float:
        """The weighted sum; what counts nothing may be minus infinity."""
        pairs = zip((self.own, *self.models), (own, *scores), strict=True)
        return sum(weight * score for weight, score in pairs if weight)


def rerank(
    translations: Sequence[Translation],
    models: Sequence[Translator],
    *,
    weights: Weights | None = None,
    long_lines: str = "split",
    first_line: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[Translation]:
    """The translations with their outputs ordered by the weighted sum of scores, the highest first.

    Each output has the sum as ``total`` and the models' own as ``model_scores``. Without ``weights`` all
    count 1. Of equals, the one that stood first leads. The models score the texts, line by line as
    `Translator.score` does, and may have different vocabularies.
    """
    nbest = [(t.source, [(a.text, a.score) for a in t.alternatives]) for t in translations]
    found = rescored(
        nbest, models, weights=weights, long_lines=long_lines, first_line=first_line, progress=progress
    )
    return [
        replace(
            translation,
            alternatives=tuple(
                replace(translation.alternatives[one.place], total=one.total, model_scores=one.scores)
                for one in order
            ),
            warnings=(*translation.warnings, *told),
        )
        for translation, (order, told) in zip(translations, found, strict=True)
    ]


def rescored(
    nbest: Sequence[tuple[str, Sequence[tuple[str, float]]]],
    models: Sequence[Translator],
    *,
    weights: Weights | None = None,
    long_lines: str = "split",
    first_line: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[tuple[list[Rescored], tuple[str, ...]]]:
    """For each source with its outputs (text and score) their new order, and warnings that name the line."""
    weights = weights or Weights(models=(1.0,) * len(models))
    if len(weights.models) != len(models):
        raise UsageError(
            f"{counted(len(weights.models), 'weight')} for {counted(len(models), 'model')}; give one for each"
        )
    most = max((len(outputs) for _, outputs in nbest), default=0)
    every: list[list[list[PairScore]]] = []  # of each model, of each rank, of each line
    for model in models:
        ranks = []
        for rank in range(most):
            # A line that has no such output keeps its place, so that warnings name the right lines.
            pairs = [
                (source, outputs[rank][0]) if rank < len(outputs) else ("", "") for source, outputs in nbest
            ]
            ranks.append(model.score(pairs, long_lines=long_lines, first_line=first_line))
            if progress is not None:
                done = len(every) * most + rank + 1
                progress(len(nbest) * done // (most * len(models)), len(nbest))
        every.append(ranks)
    return [
        _ordered(
            [own for _, own in outputs],
            [[ranks[rank][line] for rank in range(len(outputs))] for ranks in every],
            weights,
        )
        for line, (_, outputs) in enumerate(nbest)
    ]


def _ordered(
    own: Sequence[float], scores: Sequence[Sequence[PairScore]], weights: Weights
) -> tuple[list[Rescored], tuple[str, ...]]:
    """The order of a line's outputs from each model's scores of them."""
    rows = []
    for place, before in enumerate(own):
        given = tuple(
            score[place].log_probability / length_penalty(score[place].length, weights.alpha)
            for score in scores
        )
        rows.append(Rescored(place, weights.total(before, given), given))
    told = tuple(dict.fromkeys(warning for model in scores for score in model for warning in score.warnings))
    return sorted(rows, key=lambda one: (-round(one.total, _DECIMALS), one.place)), told
