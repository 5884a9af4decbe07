from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from transduce.data.cleaning.scores import ByScore
from transduce.data.cleaning.verdict import Verdict
from transduce.data.formats.pair import Pair
from transduce.errors import DataError, UsageError

SCORES = [3.0, 1.0, 2.0, math.inf, 1.0, 5.0, 4.0, 0.5, 2.0, 9.0]


def chunks() -> list[list[Verdict]]:
    """Ten pairs that are kept so far, and an eleventh that is not, in two chunks."""
    pairs = [Pair(f"{score}", "x", "f", line) for line, score in enumerate(SCORES, 1)]
    verdicts = [Verdict(pair, pair) for pair in pairs]
    verdicts.insert(4, Verdict(pairs[0], pairs[0], "empty", "no source"))
    return [verdicts[:6], verdicts[6:]]


def score(pairs: Sequence[Pair]) -> list[float]:
    return [float(pair.source) for pair in pairs]


def outcome(by: ByScore) -> list[str]:
    return [verdict.filter for chunk in by.judged(chunks) for verdict in chunk]


def test_a_limit_keeps_what_does_not_exceed_it() -> None:
    found = outcome(ByScore(score, most=2.0))
    expected = ["" if value <= 2.0 else "score" for value in SCORES]
    expected.insert(4, "empty")
    assert found == expected
    reasons = [v.reason for chunk in ByScore(score, most=2.0).judged(chunks) for v in chunk]
    assert reasons[0] == "score 3.0000, at most 2.0000"
    assert reasons[3] == "score inf, at most 2.0000"
    assert reasons[4] == "no source"


@pytest.mark.parametrize(
    ("share", "kept"), [(0.01, 1), (0.1, 1), (0.3, 3), (0.5, 5), (0.7, 7), (0.9, 9), (1.0, 10)]
)
def test_the_best_share_is_kept(share: float, kept: int) -> None:
    found = [name for name in outcome(ByScore(score, share=share)) if name != "empty"]
    best = sorted(range(10), key=SCORES.__getitem__)[:kept]
    assert [at for at, name in enumerate(found) if not name] == sorted(best)


def test_a_share_that_no_float_holds_is_not_rounded_up() -> None:
    pairs = [Pair(f"{number}", "x", "f", number) for number in range(100)]
    verdicts = [[Verdict(pair, pair) for pair in pairs]]
    assert 0.07 * 100 > 7
    kept = [v for chunk in ByScore(score, share=0.07).judged(lambda: verdicts) for v in chunk if v.kept]
    assert len(kept) == 7


def test_equal_scores_stay_together() -> None:
    assert outcome(ByScore(score, share=0.2)).count("") == 3
    assert outcome(ByScore(score, share=0.4)).count("") == 5


def test_pairs_that_change_between_the_two_readings_are_noticed() -> None:
    readings = iter([chunks(), chunks()[:1] + chunks()])
    with pytest.raises(DataError, match="have changed while they were scored"):
        list(ByScore(score, share=0.5).judged(lambda: next(readings)))


@pytest.mark.parametrize(
    "limits", [{}, {"most": 1.0, "share": 0.5}, {"share": 0.0}, {"share": 1.1}, {"most": math.nan}]
)
def test_limits_that_make_no_sense_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        ByScore(score, **limits)
