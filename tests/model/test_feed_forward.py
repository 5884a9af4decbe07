"""Section 3.3, equation 2."""

from __future__ import annotations

import pytest
import torch

from transduce.model.feed_forward import FeedForward


def printed_example() -> FeedForward:
    module = FeedForward(1, 1)
    with torch.no_grad():
        module.w_1.weight.fill_(1.0)
        module.w_1.bias.fill_(-1.0)
        module.w_2.weight.fill_(2.0)
        module.w_2.bias.fill_(0.5)
    return module


def test_printed_example() -> None:
    out = printed_example()(torch.tensor([[[0.0], [2.0]]]))
    assert out.flatten().tolist() == [0.5, 2.5]


def test_is_relu_and_not_a_smooth_or_gated_relative() -> None:
    x = torch.linspace(-3, 3, 61)[:, None]
    assert torch.allclose(printed_example()(x), 2 * (x - 1).clamp(min=0) + 0.5, atol=1e-6)


def test_each_position_is_transformed_alone() -> None:
    module = FeedForward(6, 10)
    x = torch.randn(2, 5, 6)
    together = module(x)
    for i in range(5):
        assert torch.allclose(module(x[:, i : i + 1])[:, 0], together[:, i], atol=1e-6)


def test_gradient_is_that_of_the_equation() -> None:
    module = FeedForward(6, 10).double()
    x = torch.randn(3, 6, dtype=torch.float64, requires_grad=True)
    plain = torch.maximum(x @ module.w_1.weight.T + module.w_1.bias, torch.zeros(())) @ module.w_2.weight.T
    inputs = (x, *module.parameters())
    got = torch.autograd.grad(module(x).square().sum(), inputs)
    wanted = torch.autograd.grad((plain + module.w_2.bias).square().sum(), inputs)
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(got, wanted, strict=True))


def test_relu_dropout_acts_on_the_inner_layer() -> None:
    x = torch.randn(4, 6)
    gone = FeedForward(6, 10, relu_dropout=1.0).train()
    assert torch.equal(gone(x), gone.w_2.bias.expand(4, 6))
    module = FeedForward(1, 20_000, relu_dropout=0.25).train()
    with torch.no_grad():
        module.w_1.weight.fill_(1.0)
        module.w_1.bias.zero_()
        module.w_2.weight.fill_(1 / 20_000)
        module.w_2.bias.zero_()
    dropped = module(torch.ones(1, 1)).item()
    assert dropped == pytest.approx(1.0, abs=0.03)
    assert dropped != module.eval()(torch.ones(1, 1)).item()
