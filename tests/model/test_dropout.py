"""Section 5.4: rate, scale, repeatability and places of residual dropout."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from transduce.model.config import ModelConfig
from transduce.model.dropout import Dropout, keep_mask
from transduce.model.transformer import Transformer

Build = Callable[..., Transformer]
N = 1_000_000


def trained(p: float) -> Dropout:
    return Dropout(p).train()


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_rate_in_each_of_the_four_lanes_of_a_draw(p: float) -> None:
    kept = keep_mask(torch.Size((N,)), p, torch.device("cpu")).float().view(-1, 4)
    five_sigma = 5 * (p * (1 - p) / (N / 4)) ** 0.5
    assert torch.allclose(kept.mean(0), torch.full((4,), 1 - p), atol=five_sigma)


def test_lanes_and_neighbours_are_independent() -> None:
    kept = keep_mask(torch.Size((N,)), 0.5, torch.device("cpu")).float() * 2 - 1
    for lag in (1, 2, 3, 4, 8):
        assert abs(float((kept[:-lag] * kept[lag:]).mean())) < 5 / N**0.5


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_expectation_is_kept(p: float) -> None:
    out = trained(p)(torch.ones(N))
    assert float(out.mean()) == pytest.approx(1.0, abs=5 * (p / (1 - p) / N) ** 0.5)
    values = out.unique()
    assert values[0] == 0.0
    assert len(values) == 2
    assert float(values[1]) == pytest.approx(1 / (1 - p), rel=2e-4)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_returns_its_input_outside_training(p: float) -> None:
    x = torch.randn(3, 4)
    assert Dropout(p).eval()(x) is x


def test_rate_0_and_rate_1() -> None:
    x = torch.randn(3, 4)
    assert trained(0.0)(x) is x
    assert torch.equal(trained(1.0)(x), torch.zeros(3, 4))


def test_repeatable_from_the_seed_and_from_the_generators_state() -> None:
    x, dropout = torch.randn(7, 9), trained(0.3)
    torch.manual_seed(5)
    first = dropout(x)
    state = torch.get_rng_state()
    second = dropout(x)
    assert not torch.equal(first, second)
    torch.manual_seed(5)
    assert torch.equal(dropout(x), first)
    torch.set_rng_state(state)
    assert torch.equal(dropout(x), second)


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 4), (1, 1), (0, 4)])
def test_gradient_passes_through_the_same_mask(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, dtype=torch.float64).requires_grad_()
    out = trained(0.4)(x)
    upstream = torch.randn(shape, dtype=torch.float64)
    (gradient,) = torch.autograd.grad(out, x, upstream)
    assert torch.allclose(gradient * x, upstream * out, atol=1e-12)
    assert torch.equal(gradient == 0, out == 0)


def test_leaves_its_input_alone_and_keeps_the_dtype() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x = torch.ones(100, dtype=dtype)
        assert trained(0.5)(x).dtype == dtype
        assert torch.equal(x, torch.ones(100, dtype=dtype))


def test_transposed_input() -> None:
    x = torch.randn(5, 6).t()
    out = trained(0.5)(x)
    kept = out != 0
    assert torch.allclose(out[kept], 2 * x[kept], rtol=1e-3)


def test_says_its_rate() -> None:
    assert repr(Dropout(0.25)) == "Dropout(p=0.25)"


def rates(model: nn.Module) -> list[float]:
    return [m.p for m in model.modules() if isinstance(m, Dropout | nn.Dropout) and m.p > 0]


def test_places_of_the_papers_base_model() -> None:
    with torch.device("meta"):
        model = Transformer(ModelConfig.named("paper-base", vocabulary=37_000))
    assert rates(model) == [0.1] * (6 * 2 + 6 * 3 + 2)
    inside = [m for name, m in model.named_modules() if name.endswith(("attention", "feed_forward"))]
    assert len(inside) == 6 * 2 + 6 * 3
    assert [rate for module in inside for rate in rates(module)] == []


def test_places_of_todays_tensor2tensor() -> None:
    with torch.device("meta"):
        model = Transformer(ModelConfig.named("t2t-v3", vocabulary=37_000))
    # 32 residual places, 18 attentions and 12 inner layers.
    assert rates(model) == [0.1] * (32 + 18 + 12)


def test_every_place_acts_once_in_a_step(small_model: Build) -> None:
    model = small_model(dropout=0.1).train()
    calls: dict[str, int] = {}
    for name, module in model.named_modules():
        if isinstance(module, Dropout) and module.p > 0:
            calls[name] = 0

            def count(_: nn.Module, inputs: object, output: object, name: str = name) -> None:
                calls[name] += 1

            module.register_forward_hook(count)
    model(torch.tensor([[5, 6, 1]]), torch.tensor([[0, 5]]))
    assert len(calls) == 2 * 2 + 2 * 3 + 2
    assert set(calls.values()) == {1}


def test_sums_of_embeddings_and_positions_are_dropped(small_model: Build) -> None:
    model = small_model(dropout=0.1).train()
    seen: list[Tensor] = []
    for layer in (model.encoder.layers[0], model.decoder.layers[0]):
        layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model.source_dropout.p = model.target_dropout.p = 1.0
    model(torch.tensor([[5, 6, 1]]), torch.tensor([[0, 5]]))
    assert not any(bool(x.any()) for x in seen)
