from __future__ import annotations

import math
from typing import Any

import pytest

from tiny_translator import sentences, tiny_bundle, tiny_model
from transduce.bundle import Bundle
from transduce.data.tokenizer import Tokenizer
from transduce.decoding.hypothesis import length_penalty
from transduce.decoding.reranking import Weights, rerank, rescored
from transduce.decoding.translation import Alternative, Translation
from transduce.decoding.translator import Translator
from transduce.errors import DataError, UsageError

LINES = [*sentences(5, seed=1, words=(1, 4)), ""]
OPTIONS: dict[str, Any] = {"n_best": 4, "max_extra": 6}


def translation(source: str, *outputs: tuple[str, float]) -> Translation:
    return Translation(
        source, tuple(Alternative(text, score, score, 1, False, ()) for text, score in outputs)
    )


@pytest.fixture(scope="module")
def first() -> Translator:
    return Translator(tiny_bundle())


@pytest.fixture(scope="module")
def second() -> Translator:
    """A model of another vocabulary."""
    other = Tokenizer.train(sentences(300, seed=5), 320)
    return Translator(Bundle(model=tiny_model(seed=4), tokenizer=other, training={}))


@pytest.mark.usefixtures("shapes_unchecked")
def test_totals_are_the_weighted_sums_of_scores_by_hand(first: Translator, second: Translator) -> None:
    given = first.translate_detailed(LINES, **OPTIONS)
    weights = Weights(models=(0.5, 2.0), own=0.25, alpha=1.0)
    found = rerank(given, [second, first], weights=weights)
    for before, after in zip(given, found, strict=True):
        assert after.source == before.source
        assert sorted(a.text for a in after.alternatives) == sorted(a.text for a in before.alternatives)
        totals = [a.total for a in after.alternatives]
        assert totals == sorted(totals, reverse=True)
        for one in after.alternatives:
            own = next(a for a in before.alternatives if a.tokens == one.tokens)
            assert (one.text, one.score) == (own.text, own.score)
            scores = [model.score([(before.source, one.text)])[0] for model in (second, first)]
            expected = [s.log_probability / length_penalty(s.length, 1.0) for s in scores]
            assert one.model_scores == pytest.approx(expected, abs=1e-4)
            assert one.total == pytest.approx(
                0.25 * own.score + 0.5 * expected[0] + 2 * expected[1], abs=1e-4
            )
    assert [t.text for t in found] != [t.text for t in given]


@pytest.mark.usefixtures("shapes_unchecked")
def test_weights_decide_and_equals_keep_their_order(first: Translator) -> None:
    given = [translation("ab", ("gh", -1.0), ("il", -2.0), ("gh", -1.0))]
    (own,) = rerank(given, [first], weights=Weights(models=(0.0,)))
    assert [a.text for a in own.alternatives] == ["gh", "gh", "il"]
    (reverse,) = rerank(given, [first], weights=Weights(models=(0.0,), own=-1.0))
    assert [a.text for a in reverse.alternatives] == ["il", "gh", "gh"]
    orders = [one.place for one in rescored([("ab", [("gh", 0.0)] * 3)], [first])[0][0]]
    assert orders == [0, 1, 2]
    assert rerank([], [first]) == []


@pytest.mark.usefixtures("shapes_unchecked")
def test_lines_with_fewer_outputs_keep_their_numbers_and_what_is_impossible_is_last(
    first: Translator,
) -> None:
    long = "ab de " * 400
    nbest = [("ab", [("gh", 0.0)]), ("", [("il", 5.0), ("", 0.0)]), ("de", [("gh", 0.0), (long, 0.0)])]
    it = Translator(tiny_bundle(max_length=30))
    found = rescored(nbest, [it], first_line=4)
    assert [len(order) for order, _ in found] == [1, 2, 2]
    assert [one.place for one in found[1][0]] == [1, 0]
    assert found[1][0][1].total == -math.inf
    assert found[0][1] == ()
    assert found[1][1] == ("line 5: an empty source has no translation: this pair has probability 0",)
    (told,) = found[2][1]
    assert told.startswith("line 6: its sides have ")
    with pytest.raises(DataError, match="line 6: its sides have"):
        rescored(nbest, [it], first_line=4, long_lines="error")
    # What counts nothing may be impossible.
    assert rescored([nbest[1]], [it], weights=Weights(models=(0.0,)))[0][0][0].total == 5.0


def test_wrong_weights_are_refused(first: Translator) -> None:
    with pytest.raises(UsageError, match="1 weight for 2 models; give one for each"):
        rerank([], [first, first], weights=Weights(models=(1.0,)))
    with pytest.raises(UsageError, match="the model weight is nan; it must be a finite number"):
        Weights(models=(1.0, math.nan))
    with pytest.raises(UsageError, match="alpha is inf"):
        Weights(models=(), alpha=math.inf)


def test_progress_counts_up_to_the_last_line(first: Translator) -> None:
    calls: list[tuple[int, int]] = []
    nbest = [("ab", [("gh", 0.0), ("il", 0.0)])] * 3
    rescored(nbest, [first, first], progress=lambda done, total: calls.append((done, total)))
    assert calls == [(0, 3), (1, 3), (2, 3), (3, 3)]
