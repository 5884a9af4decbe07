"""How long an output may become: no longer than its limit, no shorter than one token, one pass a token."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tiny_translator import sentences, tiny_translator, tokenizer
from transduce.data.tokenizer import EOS_ID
from transduce.decoding.hypothesis import length_penalty
from transduce.decoding.translator import Translator


def never_ending(**settings: Any) -> Translator:
    """A translator whose outputs have no end: its end symbol is as unlikely as can be."""
    return tiny_translator(ends=-300.0, **settings)


@pytest.mark.usefixtures("shapes_unchecked")
def test_the_limit_is_the_sources_own_length_plus_50() -> None:
    it = never_ending()
    five = next(line for line in sentences(300, seed=2, words=(1, 2)) if len(tokenizer().encode(line)) == 5)
    sixty = " ".join(sentences(20, seed=6))
    sixty = next(sixty[:n] for n in range(40, 300) if len(tokenizer().encode(sixty[:n].strip())) == 60)
    for lines, lengths in (([five], [55]), ([five, sixty], [55, 110])):
        for translation, length in zip(it.translate_detailed(lines), lengths, strict=True):
            (only,) = translation.alternatives
            assert len(only.tokens) == length
            assert only.truncated
            assert translation.truncated
            assert only.score == pytest.approx(only.log_probability / length_penalty(length, 0.6))
            assert EOS_ID not in only.tokens


@pytest.mark.usefixtures("shapes_unchecked")
def test_noise_never_makes_an_output_longer_than_its_limit() -> None:
    draw = random.Random(0)
    lines = [
        "".join(chr(draw.choice([draw.randint(33, 126), draw.randint(0x4E00, 0x4FFF)])) for _ in range(9))
    ]
    lines += ["\u00df%\u20ac" * 3, "\U0001f600" * 3]
    for line, translation in zip(lines, never_ending().translate_detailed(lines, beam=1), strict=True):
        assert translation.alternatives[0].length == len(tokenizer().encode(line)) + 50


@pytest.mark.usefixtures("shapes_unchecked")
def test_an_output_is_not_empty_where_the_end_is_the_best_first_step() -> None:
    it, lines = tiny_translator(ends=40.0), sentences(3, seed=1)
    assert [t.alternatives[0].tokens for t in it.translate_detailed(lines, min_length=0)] == [(EOS_ID,)] * 3
    assert all(t.alternatives[0].length == 2 for t in it.translate_detailed(lines))


@pytest.mark.usefixtures("shapes_unchecked")
def test_64_tokens_take_64_passes_over_single_positions() -> None:
    it = never_ending()
    shapes = []
    it.bundle.model.decoder.layers[0].register_forward_hook(
        lambda _, inputs, __: shapes.append(inputs[0].shape)
    )
    encoded = []
    it.bundle.model.encoder.register_forward_hook(lambda *_: encoded.append(1))
    (only,) = it.translate_detailed(["ab"], max_extra=64 - len(tokenizer().encode("ab")))
    assert only.alternatives[0].length == 64
    assert [tuple(shape[:2]) for shape in shapes] == [(1, 1)] + [(4, 1)] * 63
    assert len(encoded) == 1
