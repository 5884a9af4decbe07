"""Minimum-Bayes-risk choice: of several outputs, the one that agrees best with all the others.

The outputs stand for what the model holds possible; the expected score of one is its mean score with each of
the others as the reference (Kumar and Byrne, 2004). Scores are sacreBLEU's: chrF, or sentence BLEU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from transduce.decoding.translation import Translation

# Sums in another order differ by less.
_DECIMALS = 9


def expected_scores(texts: Sequence[str], metric: str) -> list[float]:
    """For each text the mean of its ``chrf`` or ``bleu`` (0 to 100) against each of the others.

    Equal texts count as often as they are there. There must be at least two.
    """
    assert len(texts) > 1, "one text has no others to be compared with"
    counts, scorer = Counter(texts), _scorer(metric)
    expected = {}
    for text in counts:
        others = counts - Counter([text])
        total = sum(
            count * float(scorer.sentence_score(text, [other]).score) for other, count in others.items()
        )
        expected[text] = total / (len(texts) - 1)
    return [expected[text] for text in texts]


def least_risk(translation: Translation, metric: str) -> Translation:
    """The same outputs, the highest expected score first; of equals the higher score, then as they stood."""
    alternatives = translation.alternatives
    if len(alternatives) < 2:
        return translation
    order = order_by_risk([(alternative.text, alternative.score) for alternative in alternatives], metric)
    ranked = tuple(replace(alternatives[i], expected=expected) for i, expected in order)
    return replace(translation, alternatives=ranked)


def order_by_risk(outputs: Sequence[tuple[str, float]], metric: str) -> list[tuple[int, float]]:
    """The places of the outputs (text and score) in the order of `least_risk`, each with what it is expected.

    There must be at least two.
    """
    expected = expected_scores([text for text, _ in outputs], metric)
    order = sorted(range(len(expected)), key=lambda i: (-round(expected[i], _DECIMALS), -outputs[i][1], i))
    return [(i, expected[i]) for i in order]


def _scorer(metric: str) -> Any:
    if metric == "chrf":
        from sacrebleu.metrics.chrf import CHRF

        return CHRF()
    from sacrebleu.metrics.bleu import BLEU

    # As sacreBLEU's own sentence scores: no zero for a sentence shorter than four tokens.
    return BLEU(effective_order=True)
