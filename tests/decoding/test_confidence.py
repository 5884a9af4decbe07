from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest

from tiny_translator import sentences, tiny_bundle, tokenizer
from transduce.data.tokenizer import EOS_ID
from transduce.decoding.confidence import word_confidences
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.segmentation import Part
from transduce.decoding.sources import Source
from transduce.decoding.translation import Alternative, assemble
from transduce.decoding.translator import Translator


def said(*parts: tuple[str, str], gains: Sequence[float]) -> Alternative:
    """An output in parts (text and the separator after it), whose tokens have these log probabilities."""
    ids = [tuple(tokenizer().encode(text)) for text, _ in parts]
    source = Source("x", tuple(Part(text, separator) for text, separator in parts), tuple(ids))
    left = iter(gains)
    found = []
    for some in ids:
        own = tuple(next(left) for _ in (*some, EOS_ID))
        found.append([Hypothesis((*some, EOS_ID), -1.0, sum(own), False, own)])
    assert next(left, None) is None
    (alternative,) = assemble(source, found, tokenizer(), alpha=0.6).alternatives
    return alternative


def count(text: str) -> int:
    return len(tokenizer().encode(text))


def test_two_words_by_hand() -> None:
    one, two = count("ab"), count("ab de") - count("ab")
    gains = [math.log(0.9)] * (one - 1) + [math.log(0.4)] + [math.log(0.5)] * two + [math.log(0.01)]
    output = said(("ab de", ""), gains=gains)
    first = (0.9 ** (one - 1) * 0.4) ** (1 / one)
    assert word_confidences(output, tokenizer()) == pytest.approx((first, 0.5))
    product = 0.9 ** (one - 1) * 0.4 * 0.5**two * 0.01
    assert output.confidence == pytest.approx(product ** (1 / (one + two + 1)))


def test_each_word_has_the_tokens_that_spell_it() -> None:
    draw = random.Random(3)
    for text in sentences(40, seed=7):
        ids = tokenizer().encode(text)
        gains = [-draw.random() for _ in (*ids, EOS_ID)]
        # A token that is not white space belongs to the last word of the text up to it.
        of_words: dict[int, list[float]] = {}
        for at, gain in enumerate(gains[:-1], 1):
            before, until = (tokenizer().decode(ids[:end]).split() for end in (at - 1, at))
            if before != until or not until:  # the space in front counts with the first word
                of_words.setdefault(max(len(until), 1), []).append(gain)
        expected = [math.exp(sum(some) / len(some)) for _, some in sorted(of_words.items())]
        assert len(expected) == len(text.split())
        assert word_confidences(said((text, ""), gains=gains), tokenizer()) == pytest.approx(expected)


def test_a_character_of_several_bytes_is_one_words() -> None:
    text = "ab \U0001f680"
    ids = tokenizer().encode(text)
    # The last four tokens are its bytes; what stands between them and the first word is a space.
    gains = (
        [math.log(0.5)] * count("ab") + [-9.0] * (len(ids) - count("ab") - 4) + [-1.0, -2.0, -3.0, -6.0, 0.0]
    )
    found = word_confidences(said((text, ""), gains=gains), tokenizer())
    assert found == pytest.approx((0.5, math.exp(-3)))


def test_words_run_on_over_parts_without_a_space_between_them() -> None:
    one, two, three = count("ab"), count("de gh"), count("il")
    gains = [-1.0] * one + [0.0] + [-2.0] * two + [0.0] + [-3.0] * three + [0.0]
    output = said(("ab", ""), ("de gh", "  "), ("il", ""), gains=gains)
    assert output.text == "abde gh  il"
    found = word_confidences(output, tokenizer())
    inside = count("de")
    mean = (-1.0 * one - 2.0 * inside) / (one + inside)
    assert found == pytest.approx((math.exp(mean), math.exp(-2), math.exp(-3)))


@pytest.mark.usefixtures("shapes_unchecked")
def test_confidence_is_that_of_forced_decoding_and_given_on_request() -> None:
    it, lines = Translator(tiny_bundle()), [*sentences(6, seed=1, words=(1, 4)), ""]
    options: dict[str, Any] = {"n_best": 3, "max_extra": 6}
    usual = it.translate_detailed(lines, **options)
    assert all(a.word_confidences is None for t in usual for a in t.alternatives)
    found = it.translate_detailed(lines, confidence=True, **options)
    assert [t.text for t in found] == [t.text for t in usual]
    for translation in found[:-1]:
        scores = it.score([(translation.source, a.tokens) for a in translation.alternatives])
        for alternative, score in zip(translation.alternatives, scores, strict=True):
            assert alternative.confidence == pytest.approx(1 / score.perplexity, rel=1e-4)
            assert len(alternative.word_confidences) == len(alternative.text.split())
            assert all(0 < value <= 1 for value in alternative.word_confidences)
    (empty,) = found[-1].alternatives
    assert (empty.confidence, empty.word_confidences) == (1.0, ())
