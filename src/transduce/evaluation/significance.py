"""Whether one system's score is really better than another's: paired tests over the sentences (sacreBLEU's).

Paired bootstrap (Koehn 2004): how often does the difference vanish on test sets drawn anew from this one?
Paired approximate randomisation (Riezler and Maxwell 2005): how often is a difference as large when the two
systems' outputs are swapped sentence by sentence at random?
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transduce.errors import UsageError
from transduce.evaluation.scores import check_lines, reference_lists

TESTS = {"bootstrap": "bs", "randomisation": "ar"}
# What each is called here and in sacreBLEU's results.
METRICS = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}


@dataclass(frozen=True)
class Tested:
    """A system's score by one metric; ``p`` is that of the difference to the first system, None for itself.

    ``mean`` and ``interval`` (half the width of the 95 % confidence interval) are those of the resampled test
    sets; randomisation gives none.
    """

    system: str
    metric: str
    score: float
    p: float | None
    mean: float | None
    interval: float | None


def paired_tests(
    systems: Sequence[tuple[str, Sequence[str]]],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    test: str = "bootstrap",
    metrics: Sequence[str] = ("bleu", "chrf"),
    samples: int = 0,
) -> list[Tested]:
    """Each system by each metric against the first one; the seed is sacreBLEU's, so results repeat.

    ``samples`` of 0 means the library's default: 1,000 for the bootstrap, 10,000 for randomisation. Raises
    UsageError for an unknown test or metric, or fewer than two systems; DataError for unequal line counts.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER
    from sacrebleu.significance import PairedTest

    if test not in TESTS:
        raise UsageError(f"test is {test!r}; choose one of {', '.join(TESTS)}")
    for metric in metrics:
        if metric not in METRICS:
            raise UsageError(f"metric is {metric!r}; choose among {', '.join(METRICS)}")
    if len(systems) < 2:
        raise UsageError("a paired test needs two systems or more")
    lists = reference_lists(references)
    for name, outputs in systems:
        check_lines(outputs, lists, [name, *(f"reference {i + 1}" for i in range(len(lists)))])
    makers: dict[str, Callable[[], Any]] = {"bleu": lambda: BLEU(force=True), "chrf": CHRF, "ter": TER}
    used = {METRICS[metric]: makers[metric]() for metric in metrics}
    # Equal names would be taken for one system, so the library sees numbers.
    numbered: list[tuple[str, Sequence[str]]] = [(str(i), list(out)) for i, (_, out) in enumerate(systems)]
    done = PairedTest(
        numbered, used, references=[list(lines) for lines in lists], test_type=TESTS[test], n_samples=samples
    )()
    found: Mapping[str, Sequence[Any]] = done[1]
    results = []
    for metric, name in zip(metrics, used, strict=True):
        for (system, _), result in zip(systems, found[name], strict=True):
            results.append(
                Tested(
                    system,
                    metric,
                    float(result.score),
                    None if result.p_value is None else _p(result, found[name][0]),
                    _number(result.mean),
                    _number(result.ci),
                )
            )
    return results


def paired_segment_tests(
    systems: Sequence[tuple[str, Sequence[float]]], metric: str, *, test: str = "bootstrap", samples: int = 0
) -> list[Tested]:
    """The same for a metric that is the mean of the scores of sentences; the seed is fixed: results repeat.

    Raises UsageError for an unknown test.
    """
    if test not in TESTS:
        raise UsageError(f"test is {test!r}; choose one of {', '.join(TESTS)}")
    draw = np.random.default_rng(12345)
    count = samples or (1_000 if test == "bootstrap" else 10_000)
    values = np.array([scores for _, scores in systems], dtype=np.float64)
    size = values.shape[1]
    means = values.mean(1)
    drawn = np.empty((count, len(systems)))
    against = np.zeros(len(systems))
    for sample in range(count):
        if test == "bootstrap":
            drawn[sample] = values[:, draw.integers(size, size=size)].mean(1)
        else:
            swapped = draw.random(size) < 0.5
            differences = np.where(swapped, -1.0, 1.0) * (values - values[0])
            against += np.abs(differences.mean(1)) >= np.abs(means - means[0]) - 1e-12
    if test == "bootstrap":  # around their mean the differences are what chance makes of equal systems
        differences = drawn - drawn[:, :1]
        chance = np.abs(differences - differences.mean(0))
        against = (chance >= np.abs(means - means[0]) - 1e-12).sum(0)
    results = []
    for i, (name, _) in enumerate(systems):
        p = None if i == 0 else float((against[i] + 1) / (count + 1))
        spread: tuple[float | None, float | None] = (None, None)
        if test == "bootstrap":
            ordered = np.sort(drawn[:, i])
            half = (ordered[int(0.975 * (count - 1))] - ordered[int(0.025 * (count - 1))]) / 2
            spread = (float(drawn[:, i].mean()), float(half))
        results.append(Tested(name, metric, float(means[i]), p, *spread))
    return results


def _p(result: Any, first: Any) -> float:
    """The library's p; for scores without any difference, which it does not lay to chance, 1."""
    return 1.0 if result.score == first.score else float(result.p_value)


def _number(value: Any) -> float | None:
    """The value as a plain number; the library gives -1 or nothing where it has none."""
    return None if value is None or not math.isfinite(value) or value < 0 else float(value)
