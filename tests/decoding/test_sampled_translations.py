"""Samples of a translator: they depend on text and seed, and keep what is asked of an output."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from tiny_translator import sentences, tiny_bundle
from transduce.decoding.config import SamplingOptions, TranslationOptions
from transduce.decoding.translator import Translator
from transduce.errors import UsageError


def texts(translations: Any) -> list[list[str]]:
    return [[a.text for a in t.alternatives] for t in translations]


@pytest.mark.usefixtures("shapes_unchecked")
def test_samples_depend_on_text_and_seed_and_on_nothing_else() -> None:
    it, lines = Translator(tiny_bundle()), sentences(30, seed=1, words=(1, 4))
    options: dict[str, Any] = {"samples": 3, "max_extra": 5, "seed": 4, "temperature": 3.0}
    whole = texts(it.translate_detailed([*lines, "", lines[0]], **options))
    assert len({text for row in whole for text in row}) > 60
    assert whole[-2:] == [[""], whole[0]]  # the same line has the same samples
    assert whole[:-2] == texts(it.translate_detailed(lines, batch_tokens=1, **options))
    assert whole[:-2] == texts(it.translate_detailed(lines[::-1], batch_tokens=500, **options))[::-1]
    one = it.translate(lines, **{**options, "samples": 1})
    assert one == [row[0] for row in whole[:-2]]
    other = it.translate(lines, **{**options, "samples": 1, "seed": 5})
    assert sum(a != b for a, b in zip(one, other, strict=True)) > 25


@pytest.mark.usefixtures("shapes_unchecked")
def test_one_token_to_choose_from_is_greedy_search_and_scores_are_those_of_forced_decoding() -> None:
    it, lines = Translator(tiny_bundle()), sentences(8, seed=2, words=(1, 4))
    greedy = it.translate_detailed(lines, beam=1, max_extra=8)
    found = it.translate_detailed(lines, samples=2, top_k=1, max_extra=8)
    for one, two in zip(greedy, found, strict=True):
        assert [a.tokens for a in two.alternatives] == [one.alternatives[0].tokens] * 2
    warm = it.translate_detailed(lines, samples=3, temperature=1.5, top_p=0.9, max_extra=8)
    scores = it.score([(t.source, a.tokens) for t in warm for a in t.alternatives])
    for alternative, score in zip([a for t in warm for a in t.alternatives], scores, strict=True):
        assert alternative.log_probability == pytest.approx(score.log_probability, abs=1e-4)


def test_wrong_options_are_refused_with_a_remedy() -> None:
    for options, message in (
        ({"samples": 0}, "samples is 0; it must be at least 1"),
        ({"temperature": 0.0}, "temperature is 0; it must be at least 0.001, e.g. 0.7 .*beam of 1"),
        ({"temperature": math.inf}, "temperature is inf"),
        ({"top_k": -1}, "top_k is -1"),
        ({"top_p": 0.0}, "top_p is 0; it must be above 0 and at most 1"),
        ({"top_p": 1.5}, "top_p is 1.5"),
    ):
        with pytest.raises(UsageError, match=message):
            SamplingOptions(**options)
    for options, message in (
        ({"temperature": 0.5}, "temperature is 0.5, but nothing is sampled; set samples to 1 or more"),
        ({"seed": 3}, "seed is 3, but nothing is sampled"),
        ({"samples": 2, "beam": 4, "n_best": 2}, "n_best is 2, but samples is 2: .* leave out one"),
        ({"samples": -1}, "samples is -1"),
    ):
        with pytest.raises(UsageError, match=message):
            TranslationOptions(**options)
    assert replace(TranslationOptions(samples=2), top_k=3).sampling.top_k == 3
    with pytest.raises(UsageError, match="n_best or samples of them"):
        Translator(tiny_bundle()).translate(["ab"], samples=2)


@pytest.mark.usefixtures("shapes_unchecked")
def test_samples_keep_a_prefix_and_repeat_nothing_where_that_is_asked() -> None:
    it, lines = Translator(tiny_bundle()), sentences(4, seed=2, words=(2, 4))
    prefixes = ["ab de ", "", "gh", ""]
    options: dict[str, Any] = {"samples": 5, "temperature": 2.0, "max_extra": 8, "no_repeat_ngram": 1}
    found = it.translate_detailed(lines, prefixes=prefixes, **options)
    for prefix, translation in zip(prefixes, found, strict=True):
        assert len({a.text for a in translation.alternatives}) > 2
        for alternative in translation.alternatives:
            assert alternative.text.startswith(prefix.strip())
            assert prefix or len(set(alternative.tokens)) == len(alternative.tokens)
    alone = it.translate_detailed(lines[2:3], prefixes=prefixes[2:3], **options)
    assert texts(alone) == texts(found)[2:3]
