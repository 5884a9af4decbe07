from __future__ import annotations

from typing import Any

import pytest
from sacrebleu import sentence_bleu, sentence_chrf

from tiny_translator import sentences, tiny_bundle
from transduce.decoding.config import TranslationOptions
from transduce.decoding.minimum_risk import expected_scores, least_risk
from transduce.decoding.translation import Alternative, Translation
from transduce.decoding.translator import Translator
from transduce.errors import UsageError

CANDIDATES = [
    "Der Hund schläft im Garten.",
    "Ein Hund schläft im Garten.",
    "Der Hund schläft in dem Garten.",
    "Die Katze isst.",
    "Der Hund schläft im Garten.",
    "",
]


def translation(*outputs: tuple[str, float]) -> Translation:
    return Translation("x", tuple(Alternative(text, score, score, 1, False, ()) for text, score in outputs))


def test_expected_scores_by_hand() -> None:
    # Equal texts score 100, texts without a common character 0.
    assert expected_scores(["ab", "ab", "cd"], "chrf") == [50.0, 50.0, 0.0]
    assert expected_scores(["ab", "ab", "ab", "cd"], "bleu") == pytest.approx([200 / 3] * 3 + [0.0])
    assert expected_scores(["ab", "cd"], "chrf") == [0.0, 0.0]


@pytest.mark.parametrize("metric", ["chrf", "bleu"])
def test_each_is_scored_against_every_other_one(metric: str) -> None:
    score = {"chrf": sentence_chrf, "bleu": sentence_bleu}[metric]
    for i, found in enumerate(expected_scores(CANDIDATES, metric)):
        others = CANDIDATES[:i] + CANDIDATES[i + 1 :]
        scores = [score(CANDIDATES[i], [other]).score for other in others]
        assert found == pytest.approx(sum(scores) / len(others))


@pytest.mark.parametrize("metric", ["chrf", "bleu"])
def test_the_outsider_is_last_however_probable(metric: str) -> None:
    scores = [-3.0, -4.0, -5.0, -0.1, -3.0, -0.01]
    ranked = least_risk(translation(*zip(CANDIDATES, scores, strict=True)), metric).alternatives
    assert ranked[0].text == CANDIDATES[0]
    assert {ranked[-1].text, ranked[-2].text} == {"Die Katze isst.", ""}
    assert sorted(a.text for a in ranked) == sorted(CANDIDATES)
    assert [a.expected for a in ranked] == sorted((a.expected for a in ranked), reverse=True)


def test_of_equals_the_higher_score_leads_and_one_alone_stays() -> None:
    ranked = least_risk(translation(("ab", -2.0), ("cd", -1.0), ("ef", -1.5)), "chrf").alternatives
    assert [a.text for a in ranked] == ["cd", "ef", "ab"]
    alone = translation(("ab", -2.0))
    assert least_risk(alone, "chrf") is alone


@pytest.mark.usefixtures("shapes_unchecked")
def test_the_translation_of_a_line_is_the_chosen_one() -> None:
    it, lines = Translator(tiny_bundle()), [*sentences(5, seed=4, words=(1, 4)), ""]
    options: dict[str, Any] = {"samples": 7, "seed": 2, "max_extra": 6}
    drawn = it.translate_detailed(lines, **options)
    chosen = it.translate_detailed(lines, mbr="chrf", **options)
    assert it.translate(lines, mbr="chrf", **options) == [t.text for t in chosen]
    assert any(a.text != b.text for a, b in zip(drawn, chosen, strict=True))
    for one, other in zip(drawn, chosen, strict=True):
        assert sorted(a.tokens for a in one.alternatives) == sorted(a.tokens for a in other.alternatives)
        assert least_risk(one, "chrf") == other
    assert chosen[-1].alternatives[0].expected is None
    best = it.translate_detailed(lines, n_best=4, mbr="bleu", max_extra=6)
    assert all(a.expected is not None for t in best[:-1] for a in t.alternatives)


def test_wrong_options_are_refused_with_a_remedy() -> None:
    with pytest.raises(UsageError, match="mbr is 'ter'; choose one of chrf, bleu, or leave it out"):
        TranslationOptions(mbr="ter", samples=3)
    with pytest.raises(UsageError, match=r"mbr is chrf, but there is one output .* set samples, e\.g\. 32"):
        TranslationOptions(mbr="chrf", samples=1)
