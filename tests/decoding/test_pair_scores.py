from __future__ import annotations

import math

import pytest

from tiny_translator import sentences, tiny_bundle
from transduce.data.formats.pair import Pair
from transduce.decoding.pair_scores import PairScorer, dual
from transduce.decoding.translator import Translator


@pytest.fixture(scope="module")
def models() -> tuple[Translator, Translator]:
    return Translator(tiny_bundle(seed=1, max_length=40)), Translator(tiny_bundle(seed=2, max_length=40))


PAIRS = [
    Pair(source, target, "f", line)
    for line, (source, target) in enumerate(zip(sentences(6, seed=1), sentences(6, seed=2), strict=True), 1)
]


def test_the_formula_by_hand() -> None:
    assert dual(2.0, 2.0) == 2.0
    assert dual(1.0, 4.0) == dual(4.0, 1.0) == 2.5 + 3.0
    assert dual(math.inf, math.inf) == dual(1.0, math.inf) == math.inf


def test_one_model_gives_its_cross_entropy(models: tuple[Translator, Translator]) -> None:
    expected = [
        -math.fsum(score.token_log_probabilities) / score.length
        for score in models[0].score([(pair.source, pair.target) for pair in PAIRS])
    ]
    assert PairScorer(models[0])(PAIRS) == pytest.approx(expected, rel=1e-6)


def test_two_models_give_both_directions(models: tuple[Translator, Translator]) -> None:
    forward, back = models
    turned = [pair._replace(source=pair.target, target=pair.source) for pair in PAIRS]
    both = [dual(a, b) for a, b in zip(PairScorer(forward)(PAIRS), PairScorer(back)(turned), strict=True)]
    assert PairScorer(forward, back)(PAIRS) == pytest.approx(both, rel=1e-6)
    assert PairScorer(forward, back)(PAIRS) != pytest.approx(PairScorer(back, forward)(PAIRS), rel=1e-3)


def test_scores_do_not_depend_on_neighbours(models: tuple[Translator, Translator]) -> None:
    scorer = PairScorer(*models)
    alone = [scorer([pair])[0] for pair in PAIRS]
    assert scorer(PAIRS) == pytest.approx(alone, rel=1e-4)
    assert scorer(PAIRS[::-1]) == pytest.approx(alone[::-1], rel=1e-4)
    assert scorer([]) == []


def test_what_is_impossible_is_worst_and_nothing_is_best(models: tuple[Translator, Translator]) -> None:
    nothing, impossible = Pair("", "", "f", 1), Pair("", "ab.", "f", 2)
    assert PairScorer(models[0])([nothing, impossible]) == [0.0, math.inf]
    assert PairScorer(*models)([nothing, impossible]) == [0.0, math.inf]
