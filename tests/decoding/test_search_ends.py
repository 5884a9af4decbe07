"""When a search ends, and which of its outputs wins by the length penalty."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from table_models import EOS, of_probabilities, search, step_of

from transduce.decoding.hypothesis import explain_score, length_penalty

A, B = 2, 3


def test_penalty_values() -> None:
    values = {
        1: 1,
        2: 1.096903,
        3: 1.188402,
        4: 1.275425,
        5: 1.358655,
        10: 1.732862,
        20: 2.354362,
        50: 3.778565,
    }
    for length, value in {**values, 100: 5.569585}.items():
        assert length_penalty(length, 0.6) == pytest.approx(value, abs=1e-6)
    assert length_penalty(17, 0.0) == 1.0
    assert "log P -2.000000 / penalty 1.188402" in explain_score(-2.0, 3, 0.6)
    assert "score -1.682933" in explain_score(-2.0, 3, 0.6)


@pytest.mark.parametrize(("log_p_of_b", "winner"), [(-2.52, "A"), (-2.47, "B")])
def test_the_end_is_counted_by_the_length_penalty(log_p_of_b: float, winner: str) -> None:
    # A has 3 tokens and its end, log P -2.00; B has 7. Only the penalty that counts the end says A, then B.
    a, b = (A, A, A, EOS), (B, B, B, B, B, B, B, EOS)
    choices: dict[tuple[int, ...], dict[int, float]] = {(): {A: math.exp(-2.0), B: math.exp(log_p_of_b)}}
    for output in (a, b):
        for at in range(1, len(output)):
            choices[output[:at]] = {output[at]: 1.0}
    (found,) = search(of_probabilities(choices), limits=[9], beam=4, n_best=2)
    scores = {h.tokens: h.score for h in found}
    assert scores[a] == pytest.approx(-1.568105, abs=1e-6)
    assert found[0].tokens == (a if winner == "A" else b)
    assert scores[b] == pytest.approx({-2.52: -1.584621, -2.47: -1.553180}[log_p_of_b], abs=1e-6)


def test_search_goes_on_while_something_alive_can_still_win() -> None:
    # F ends after 3 tokens with log P -2.0. The other is at -2.1 after 3 tokens: behind by today's penalty,
    # but it ends after 8 with -2.3 and wins; only the penalty at the limit of 55 tokens shows that it may.
    f, late = (A, A, EOS), (B, B, B, B, B, B, B, EOS)
    choices: dict[tuple[int, ...], dict[int, float]] = {
        (): {A: math.exp(-2.0), B: math.exp(-2.1)},
        f[:1]: {A: 1.0},
        f[:2]: {EOS: 1.0},
        **{late[:at]: {late[at]: 1.0} for at in (1, 2, 4, 5, 6, 7)},
        late[:3]: {B: math.exp(-0.2)},
    }
    (found,) = search(of_probabilities(choices), limits=[55], beam=4, n_best=2)
    assert [h.tokens for h in found] == [late, f]
    assert [h.score for h in found] == pytest.approx([-1.446281, -1.682933], abs=1e-6)


def test_search_stops_once_nothing_alive_can_win() -> None:
    steps = []
    choices: dict[tuple[int, ...], dict[int, float]] = {(): {A: 0.99}, (A,): {EOS: 0.99}}
    model = of_probabilities(choices)

    def counted(tokens: torch.Tensor, state: Any) -> Any:
        steps.append(len(tokens))
        return model(tokens, state)

    (found,) = search(counted, limits=[55], beam=4)
    assert found[0].tokens == (A, EOS)
    assert steps == [1, 4]


def test_with_a_negative_alpha_the_next_length_bounds_what_can_win() -> None:
    # log P * (5 + n) / 6: shorter is better, so the bound is taken at the next length, not at the limit.
    choices: dict[tuple[int, ...], dict[int, float]] = {(): {EOS: 0.3, A: 0.7}, (A,): {EOS: 1.0}}
    (found,) = search(of_probabilities(choices), limits=[50], beam=2, n_best=2, alpha=-1.0)
    assert [h.tokens for h in found] == [(A, EOS), (EOS,)]
    assert found[0].score == pytest.approx(math.log(0.7) * 7 / 6)


def test_a_model_that_never_ends_gives_exactly_the_limit_next_to_a_longer_neighbour() -> None:
    never = step_of(lambda prefix, sentence: [0.0, -math.inf, 1.0, 2.0, 0.5])
    for limits in ([55], [55, 110], [110, 55, 3]):
        for limit, found in zip(limits, search(never, limits=limits, beam=4, n_best=4), strict=True):
            assert len(found) == 4
            for h in found:
                assert len(h.tokens) == h.length == limit
                assert h.truncated
                assert h.score == pytest.approx(h.log_probability / length_penalty(limit, 0.6))
            assert found[0].tokens == (B,) * limit


def test_truncated_outputs_are_given_only_if_nothing_ended() -> None:
    unlikely = step_of(lambda prefix, _: [0.0, -6.0, 1.0, 2.0])
    (found,) = search(unlikely, limits=[3], beam=2, n_best=1, alpha=0.6, min_length=2)
    assert found[0].truncated
    (found,) = search(unlikely, limits=[3], beam=16, n_best=1, alpha=0.6)
    assert found[0].tokens[-1] == EOS
    assert not found[0].truncated


def test_min_length_holds_back_the_end_without_changing_probabilities() -> None:
    logits = step_of(lambda prefix, _: [-9.0, 2.1, 2.0, 1.0])
    (short,) = search(logits, limits=[10], beam=4)
    (longer,) = search(logits, limits=[10], beam=4, min_length=1)
    assert short[0].tokens == (EOS,)
    assert longer[0].tokens == (A, EOS)
    row = torch.tensor([-9.0, 2.1, 2.0, 1.0], dtype=torch.float64).log_softmax(0)
    assert longer[0].log_probability == pytest.approx((row[A] + row[EOS]).item())
