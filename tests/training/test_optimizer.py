"""Section 5.3: Adam and the learning rate."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from transduce.training.config import TrainingConfig
from transduce.training.optimizer import adam, learning_rate, paper_rate

PAPER = TrainingConfig()


@pytest.mark.parametrize(
    ("step", "base", "big"),
    [
        (1, 1.746928e-7, 1.235265e-7),
        (2, 3.493856e-7, 2.470529e-7),
        (100, 1.746928e-5, 1.235265e-5),
        (3999, 6.985966e-4, 4.939824e-4),
        (4000, 6.987712e-4, 4.941059e-4),
        (4001, 6.986839e-4, 4.940441e-4),
        (10_000, 4.419417e-4, 3.125000e-4),
        (100_000, 1.397542e-4, 9.882118e-5),
        (300_000, 8.068715e-5, 5.705443e-5),
    ],
)
def test_the_papers_rates(step: int, base: float, big: float) -> None:
    assert paper_rate(step, 512, 4000) == pytest.approx(base, rel=1e-6)
    assert learning_rate(PAPER, 512, step) == pytest.approx(base, rel=1e-6)
    assert learning_rate(PAPER, 1024, step) == pytest.approx(big, rel=1e-6)


def test_the_first_update_is_not_wasted_and_the_second_has_twice_its_rate() -> None:
    assert learning_rate(PAPER, 512, 2) / learning_rate(PAPER, 512, 1) == pytest.approx(2)


def test_t2t_v3_peaks_where_its_code_does() -> None:
    from transduce.training.presets import recipe

    config = TrainingConfig(**recipe("t2t-v3")[1])
    rates = [learning_rate(config, 512, step) for step in (1, 7999, 8000, 8001, 100_000)]
    assert max(rates) == rates[2] == pytest.approx(9.882118e-4, rel=1e-6)
    assert rates[4] == pytest.approx(2 * 512**-0.5 * 100_000**-0.5, rel=1e-6)


def test_linear_climbs_to_the_peak_and_ends_at_zero() -> None:
    config = TrainingConfig(schedule="linear", rate=1e-3, warmup=10, max_steps=100)
    rates = [learning_rate(config, 256, step, (step - 1) / 100) for step in range(1, 101)]
    assert rates[0] == pytest.approx(1e-4)
    assert max(rates) == pytest.approx(1e-3, rel=0.12)
    assert rates[-1] == pytest.approx(1e-5)
    assert rates[10:] == sorted(rates[10:], reverse=True)


def _moves(config: TrainingConfig, gradients: list[float], rate: float = 1e-3) -> list[float]:
    model = torch.nn.Linear(1, 1, bias=False).double()
    torch.nn.init.zeros_(model.weight)
    optimizer = adam(model, config)
    seen = []
    for gradient in gradients:
        model.weight.grad = torch.full_like(model.weight, gradient)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        seen.append(model.weight.item())
    return seen


def test_adams_epsilon_is_1e_9() -> None:
    assert _moves(PAPER, [1e-9])[0] == pytest.approx(-5.0e-4, rel=1e-3)


def test_adams_betas() -> None:
    assert _moves(PAPER, [0.3, -0.1, 0.2]) == pytest.approx([-0.00100000, -0.00140177, -0.00200691], abs=1e-8)
    t2t = dataclasses.replace(PAPER, beta_2=0.997)
    assert _moves(t2t, [0.3, -0.1, 0.2])[2] == pytest.approx(-0.00200368, abs=1e-8)


def test_without_clipping_the_size_of_a_gradient_does_not_matter() -> None:
    small, large = _moves(PAPER, [0.3, -0.1, 0.2]), _moves(PAPER, [300.0, -100.0, 200.0])
    assert large == pytest.approx(small, rel=1e-4)


def test_the_papers_recipe_neither_clips_nor_decays() -> None:
    assert PAPER.clip_norm == 0
    assert adam(torch.nn.Linear(1, 1), PAPER).param_groups[0]["weight_decay"] == 0
