from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
import torch
from table_models import EOS, START, enumerated, markov, start
from torch import Tensor

from tiny_translator import sentences, tiny_bundle
from transduce.decoding.beam_search import beam_search
from transduce.decoding.config import SearchOptions, TranslationOptions
from transduce.decoding.guide import NEVER, Guide
from transduce.decoding.repetition import NoRepeatedNgram, RepetitionPenalty
from transduce.decoding.translator import Translator
from transduce.errors import UsageError


def table(seed: int, symbols: int = 4) -> Tensor:
    return torch.randn(symbols, symbols, generator=torch.Generator().manual_seed(seed)) * 1.5


def best(model: Tensor, guide: Guide, **options: Any) -> dict[tuple[int, ...], float]:
    (found,) = beam_search(
        markov(model),
        start(1),
        max_lengths=torch.tensor([6]),
        options=SearchOptions(beam=3**6, **options),
        start_id=START,
        eos_id=EOS,
        guide=guide,
    )
    return {h.tokens: h.score for h in found}


def most_repeats(tokens: tuple[int, ...], n: int) -> int:
    return max(Counter(tokens[i : i + n] for i in range(len(tokens) - n + 1)).values(), default=0)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_wide_beam_finds_the_best_output_without_a_repeated_ngram(seed: int, n: int) -> None:
    model = table(seed) + 3 * torch.eye(4)  # the same token again and again is likely
    least = {1: 2, 2: 4, 3: 5}[n]
    every = {tokens: score for score, tokens in enumerated(model, 6, 0.6) if len(tokens) > least}
    allowed = {tokens: score for tokens, score in every.items() if most_repeats(tokens, n) <= 1}
    assert next(iter(allowed)) != next(iter(every))
    found = best(model, NoRepeatedNgram.start(n, 1), n_best=4, min_length=least)
    assert list(found.values()) == pytest.approx(list(allowed.values())[:4], abs=1e-5)
    assert list(found.values()) == pytest.approx([allowed[tokens] for tokens in found], abs=1e-5)


def test_only_what_would_end_a_known_ngram_is_forbidden() -> None:
    guide = NoRepeatedNgram(3, torch.tensor([[5, 6, 7, 5, 6], [5, 6, 7, 6, 5], [5, 6, 5, 6, 5]]))
    row = torch.full((3, 9), -2.0)
    forbidden = (guide.guided(row) == NEVER).tolist()
    assert [[i for i, one in enumerate(r) if one] for r in forbidden] == [[7], [], [6]]
    assert (row == -2.0).all()
    # A pair that is there twice with different ends forbids both, and a free end does not free the other.
    guide = NoRepeatedNgram(2, torch.tensor([[5, 6, 5, 7, 5]]))
    assert (guide.guided(row[:1]) == NEVER).nonzero()[:, 1].tolist() == [6, 7]


def test_the_penalty_is_a_power_and_the_rest_is_shared_out() -> None:
    p = torch.tensor([[0.5, 0.3, 0.2, 0.0]])
    guide = RepetitionPenalty.start(2.0, 1, 4).extended(torch.tensor([0, 0]), torch.tensor([0, 1]))
    first, second = guide.guided(p.log().repeat(2, 1)).exp().tolist()
    assert first == pytest.approx([0.25 / 0.75, 0.3 / 0.75, 0.2 / 0.75, 0.0])
    assert second == pytest.approx([0.5 / 0.79, 0.09 / 0.79, 0.2 / 0.79, 0.0])
    # What is forbidden keeps its share: the others add up to what they did.
    half = torch.tensor([[0.25, 0.15, 0.1, 0.0]]).log()
    assert guide.guided(half.repeat(2, 1)).exp().sum(1).tolist() == pytest.approx([0.5, 0.5])


def test_a_strong_penalty_makes_repetition_rarer_and_never_impossible() -> None:
    always = torch.tensor([[0.0, -9.0, -9.0, -math.inf]]).repeat(4, 1)
    always[:, EOS] = -30.0
    assert list(best(always, RepetitionPenalty.start(1.5, 1, 4), min_length=4)) == [(0,) * 5 + (EOS,)]
    assert set(*best(always, RepetitionPenalty.start(1e5, 1, 4), min_length=2)) == {0, 2, EOS}


@pytest.mark.usefixtures("shapes_unchecked")
def test_guards_work_in_a_translator_and_depend_on_no_neighbour() -> None:
    it, lines = Translator(tiny_bundle(ends=-300.0)), sentences(6, seed=1, words=(1, 4))
    free = it.translate_detailed(lines, max_extra=20)
    assert any(most_repeats(t.alternatives[0].tokens, 2) > 1 for t in free)
    for options in ({"no_repeat_ngram": 2}, {"repetition_penalty": 1.5, "no_repeat_ngram": 3}):
        whole = it.translate_detailed(lines, max_extra=20, **options)
        alone = [it.translate_detailed([line], max_extra=20, **options)[0] for line in lines]
        assert [t.text for t in whole] == [t.text for t in alone]
        assert [t.text for t in whole] != [t.text for t in free]
        for t in whole:
            assert most_repeats(t.alternatives[0].tokens, options["no_repeat_ngram"]) == 1


def test_nonsense_is_refused() -> None:
    for options, message in (
        ({"no_repeat_ngram": -1}, r"no_repeat_ngram is -1; it must be 0 \(off\) or more"),
        ({"repetition_penalty": 0.9}, r"repetition_penalty is 0\.9; it must be 1 \(off\) or more"),
        ({"repetition_penalty": math.nan}, "repetition_penalty is nan"),
        ({"prefix_factor": 0.5}, r"prefix_factor is 0\.5; it must be 1 or more, or inf"),
    ):
        with pytest.raises(UsageError, match=message):
            TranslationOptions(**options)
