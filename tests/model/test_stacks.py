"""Section 3.1: where the normalisation stands, what it computes, and what ends a stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import oracles
from transduce.model.config import ModelConfig
from transduce.model.stacks import AddNorm
from transduce.model.transformer import Transformer

Build = Callable[..., Transformer]


def add_norm(d_model: int = 4, norm: str = "post", dropout: float = 0.0, **settings: float) -> AddNorm:
    values = {"vocabulary": 9, "d_model": d_model, "heads": 2, "norm": norm, "dropout": dropout, **settings}
    return AddNorm(ModelConfig.from_mapping(values))


def silence(stack: nn.Module) -> None:
    """Makes every sub-layer return zeros, and every gain 1."""
    for name, parameter in stack.named_parameters():
        last = name.split(".")[-2]
        if last == "norm":
            nn.init.constant_(parameter, 1.0 if name.endswith("weight") else 0.0)
        elif last in ("o", "w_2"):
            nn.init.zeros_(parameter)


def test_printed_values_of_the_normalisation() -> None:
    norm = add_norm().norm
    high, low = 1.341640, 0.447213
    out = norm(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert torch.allclose(out, torch.tensor([-high, -low, low, high]), atol=2e-6)
    small = norm(1e-3 * torch.tensor([1.0, -1.0, 1.0, -1.0]))
    assert torch.allclose(small, 0.707107 * torch.tensor([1.0, -1.0, 1.0, -1.0]), atol=1e-5)


def test_epsilon_is_a_setting() -> None:
    small = add_norm(norm_epsilon=1e-5).norm(1e-3 * torch.tensor([1.0, -1.0, 1.0, -1.0]))
    assert torch.allclose(small.abs(), torch.full((4,), 0.301511), atol=1e-5)


def test_normalisation_is_the_oracle() -> None:
    x = torch.randn(5, 12, dtype=torch.float64) * 3 + 1
    out = add_norm(12).norm.double()(x)
    expected = torch.tensor([oracles.layer_norm(row.tolist(), 1e-6) for row in x], dtype=torch.float64)
    assert torch.allclose(out, expected, atol=1e-12)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_every_normalisation_of_a_model_has_the_epsilon(small_model: Build, norm: str) -> None:
    norms = [m for m in small_model(norm=norm, norm_epsilon=1e-3).modules() if isinstance(m, nn.LayerNorm)]
    assert len(norms) == 2 * 2 + 2 * 3 + (2 if norm == "pre" else 0)
    assert {module.eps for module in norms} == {1e-3}


def test_post_norm_normalises_the_sum_and_pre_norm_the_input() -> None:
    x, y = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    post, pre = add_norm(norm="post"), add_norm(norm="pre")
    assert post.before(x) is x
    assert torch.equal(post.after(x, y), post.norm(x + y))
    assert torch.equal(pre.before(x), pre.norm(x))
    assert torch.equal(pre.after(x, y), x + y)


def test_silent_post_norm_stacks_return_the_normalised_input(small_model: Build) -> None:
    model = small_model()
    silence(model)
    x, memory = 5 * torch.randn(2, 3, 16) + 2, torch.randn(2, 4, 16)
    expected = torch.tensor([[oracles.layer_norm(row.tolist(), 1e-6) for row in s] for s in x])
    decoded, _ = model.decoder(x, (None, None), model.decoder.project_memory(memory), None, None)
    for out in (model.encoder(x, None), decoded):
        assert torch.allclose(out, expected, atol=1e-5)
        assert torch.allclose(out.mean(-1), torch.zeros(2, 3), atol=1e-6)
        assert torch.allclose(out.var(-1, unbiased=False), torch.ones(2, 3), atol=1e-4)


def test_silent_pre_norm_stacks_return_the_input_until_the_final_norm(small_model: Build) -> None:
    model = small_model(norm="pre")
    silence(model)
    x, memory = 5 * torch.randn(2, 3, 16) + 2, torch.randn(2, 4, 16)
    memories = model.decoder.project_memory(memory)
    assert isinstance(model.encoder.norm, nn.LayerNorm)
    assert torch.allclose(model.encoder(x, None), model.encoder.norm(x), atol=1e-6)
    model.encoder.norm = model.decoder.norm = nn.Identity()
    assert torch.equal(model.encoder(x, None), x)
    assert torch.equal(model.decoder(x, (None, None), memories, None, None)[0], x)


def test_nothing_follows_the_last_layer_of_the_paper(small_model: Build) -> None:
    model = small_model()
    assert isinstance(model.encoder.norm, nn.Identity)
    assert isinstance(model.decoder.norm, nn.Identity)


def test_dropout_of_one_leaves_the_normalised_input() -> None:
    module = add_norm(dropout=1.0).train()
    x, y = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    assert torch.equal(module.after(x, y), module.norm(x))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_acts_on_the_sub_layers_output_alone(norm: str) -> None:
    module = add_norm(64, norm, dropout=0.5).train()
    module.norm = nn.Identity()  # type: ignore[assignment]
    x, y = torch.randn(8, 50, 64), torch.randn(8, 50, 64)
    change = module.after(x, y) - x
    dropped = change == 0
    assert float(dropped.float().mean()) == pytest.approx(0.5, abs=0.02)
    assert torch.allclose(change[~dropped], 2 * y[~dropped], atol=1e-5)


def test_silent_layers_under_full_dropout_are_layer_norm_exactly(small_model: Build) -> None:
    model = small_model(dropout=1.0).train()
    x = torch.randn(2, 3, 16)
    layer: Any = model.encoder.layers[0]
    assert torch.equal(layer(x, None), layer.add_norm_2.norm(layer.add_norm_1.norm(x)))


def test_the_sub_layers_of_the_decoder_stand_in_the_papers_order(small_model: Build) -> None:
    model = small_model(encoder_layers=1, decoder_layers=1)
    order: list[str] = []

    def note(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        return lambda *_: order.append(name)

    for name, module in model.named_modules():
        if name.endswith(("attention", "feed_forward")):
            module.register_forward_hook(note(name))
    model(torch.tensor([[5, 1]]), torch.tensor([[0]]))
    assert order == [
        "encoder.layers.0.self_attention",
        "encoder.layers.0.feed_forward",
        "decoder.layers.0.self_attention",
        "decoder.layers.0.cross_attention",
        "decoder.layers.0.feed_forward",
    ]


def test_depths_of_encoder_and_decoder_are_apart(small_model: Build) -> None:
    model = small_model(encoder_layers=3, decoder_layers=1)
    assert (len(model.encoder.layers), len(model.decoder.layers)) == (3, 1)
    assert model(torch.tensor([[5, 1]]), torch.tensor([[0]])).shape == (1, 1, 23)
