from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from table_models import EOS, START, enumerated, markov, search, step_of, table

from transduce.decoding.beam_search import beam_search
from transduce.decoding.config import SearchOptions
from transduce.decoding.hypothesis import length_penalty
from transduce.errors import TransduceError, UsageError


@pytest.mark.parametrize("alpha", [0.6, 0.0, 1.0, -0.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_beam_wide_enough_equals_enumeration_of_all_outputs(alpha: float, seed: int) -> None:
    model = table(seed)
    wide = 5**6 if seed == 0 else 4**5
    (found,) = search(markov(model), limits=[6], beam=wide, n_best=40, alpha=alpha)
    every = {tokens: score for score, tokens in enumerated(model, 6, alpha)}
    assert [h.score for h in found] == pytest.approx(list(every.values())[:40], abs=1e-5)
    assert [every[h.tokens] for h in found] == pytest.approx([h.score for h in found], abs=1e-5)
    assert len({h.tokens for h in found}) == 40


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), alpha=st.sampled_from([0.6, 0.0, 2.0, -1.0]), limit=st.integers(1, 5))
def test_the_best_output_is_exact_for_any_model_when_nothing_is_pruned(
    seed: int, alpha: float, limit: int
) -> None:
    model = table(seed, symbols=4, scale=2.0)
    (found,) = search(markov(model), limits=[limit], beam=3**limit, alpha=alpha)
    score, tokens = next(enumerated(model, limit, alpha))
    assert found[0].tokens == tokens
    assert found[0].score == pytest.approx(score, abs=1e-5)


def test_a_beam_of_4_gives_4_distinct_outputs_in_falling_order() -> None:
    for seed in range(20):
        (found,) = search(markov(table(seed)), limits=[20], beam=4, n_best=4)
        assert len({h.tokens for h in found}) == 4
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)


def test_log_probabilities_add_up_and_give_the_score() -> None:
    model = table(3)
    log_p = model.double().log_softmax(1)
    (found,) = search(markov(model), limits=[12], beam=4, n_best=4)
    for h in found:
        pairs = list(zip((START, *h.tokens), h.tokens, strict=False))
        assert h.token_log_probabilities == pytest.approx([log_p[a, b].item() for a, b in pairs], abs=1e-5)
        assert h.log_probability == pytest.approx(sum(h.token_log_probabilities))
        assert h.score == pytest.approx(h.log_probability / length_penalty(h.length, 0.6))
        assert h.tokens[-1] == EOS
        assert not h.truncated


def test_a_beam_of_1_is_greedy() -> None:
    for seed in range(20):
        model = table(seed)
        (found,) = search(markov(model), limits=[30], beam=1)
        expected = [int(model[START].argmax())]
        while expected[-1] != EOS and len(expected) < 30:
            expected.append(int(model[expected[-1]].argmax()))
        assert found[0].tokens == tuple(expected)
        assert found[0].truncated == (expected[-1] != EOS)


def test_neighbours_change_nothing() -> None:
    def logits(prefix: tuple[int, ...], sentence: int) -> torch.Tensor:
        seed = hash((sentence, prefix)) % 2**31
        return torch.randn(7, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2

    limits = [3, 20, 1, 9, 14, 2, 30, 5]
    together = search(step_of(logits), limits=limits, beam=4, n_best=3)
    for sentence, limit in enumerate(limits):
        alone = search(
            step_of(lambda prefix, _, s=sentence: logits(prefix, s)), limits=[limit], beam=4, n_best=3
        )
        assert alone[0] == together[sentence]


def test_equals_go_to_the_lower_token_in_any_position() -> None:
    same = step_of(lambda prefix, _: [0.0] * 9)
    (found,) = search(same, limits=[2], beam=3, n_best=3, alpha=0.0)
    assert [h.tokens for h in found] == [(EOS,), (0, EOS), (2, EOS)]
    (found,) = search(same, limits=[4], beam=1, forbidden=(0,))
    assert found[0].tokens == (EOS,)
    (found,) = search(same, limits=[4], beam=1, forbidden=(0,), min_length=2)
    assert found[0].tokens == (2, 2, EOS)
    nearly = step_of(
        lambda prefix, _: [0.0, -9.0, 1.0, 1.0 + 1e-7, 1.0 + 5e-7, 1.0 + 1e-4 if prefix else 0.0]
    )
    (found,) = search(nearly, limits=[2], beam=1)
    assert found[0].tokens == (2, 5)


def test_equals_across_the_cut_of_a_large_vocabulary_go_to_the_lower_token() -> None:
    row = torch.full((50,), 1.0, dtype=torch.float64)
    row[EOS] = -30.0
    row[37] = 2.0
    (found,) = search(step_of(lambda prefix, _: row.clone()), limits=[1], beam=4, n_best=4, alpha=0.0)
    assert [h.tokens for h in found] == [(37,), (0,), (2,), (3,)]


def test_forbidden_ids_have_no_probability() -> None:
    (found,) = search(step_of(lambda prefix, _: [9.0, 0.0, 9.0, 0.0]), limits=[1], beam=2, forbidden=(0, 2))
    assert found[0].tokens == (EOS,)
    assert found[0].log_probability == pytest.approx(math.log(0.5))


def test_logits_that_are_not_numbers_stop_the_search() -> None:
    for bad in (math.nan, math.inf):
        broken = step_of(lambda prefix, s, x=bad: [0.0, 0.0, x if s == 1 and len(prefix) == 2 else -1.0, 0.0])
        with pytest.raises(TransduceError, match="output token 3 are not finite"):
            search(broken, limits=[5, 9], beam=2, min_length=4)


def test_reduced_precision_logits_are_searched_in_full_precision() -> None:
    model = table(5).bfloat16()
    (found,) = search(markov(model), limits=[5], beam=500, n_best=5)
    expected = list(itertools.islice(enumerated(model.float(), 5, 0.6), 5))
    assert [h.score for h in found] == pytest.approx([score for score, _ in expected], abs=1e-5)


def test_the_first_step_has_one_row_a_sentence_and_later_ones_the_beam() -> None:
    rows: list[int] = []
    never = step_of(lambda prefix, sentence: [0.0, -math.inf, 1.0, 2.0, 0.5])

    def counted(tokens: torch.Tensor, state: Any) -> Any:
        rows.append(len(tokens))
        return never(tokens, state)

    search(counted, limits=[2, 4, 4], beam=3)
    assert rows == [3, 9, 6, 6]


def test_the_state_is_not_touched_while_no_row_moves() -> None:
    class Fixed:
        def rows(self, hypotheses: torch.Tensor, sentences: torch.Tensor | None = None) -> Fixed:
            raise AssertionError("greedy search never reorders a batch that stays whole")

    row = torch.tensor([0.0, -5.0, 1.0, 2.0])
    found = beam_search(
        lambda tokens, state: (row.expand(len(tokens), -1).clone(), state),
        Fixed(),
        max_lengths=torch.tensor([4, 4]),
        options=SearchOptions(beam=1),
        start_id=START,
        eos_id=EOS,
    )
    assert [outputs[0].tokens for outputs in found] == [(3,) * 4] * 2


def test_no_sentences_no_outputs() -> None:
    assert search(step_of(lambda prefix, _: [0.0]), limits=[]) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 0}, "beam is 0; it must be at least 1"),
        ({"beam": 4, "n_best": 5}, "n_best is 5; it must lie between 1 and the beam, 4"),
        ({"alpha": math.nan}, "alpha is nan"),
        ({"min_length": -1}, "min_length is -1"),
    ],
)
def test_nonsense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        SearchOptions(**options)
