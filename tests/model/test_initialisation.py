"""The 2017 code's initialisation, which the paper does not tell."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer


def fresh(initialisation: str = "fused-2017", **settings: int | bool) -> Transformer:
    values = {"vocabulary": 2_000, "encoder_layers": 1, "decoder_layers": 1, **settings}
    return Transformer(ModelConfig.from_mapping({"initialisation": initialisation, **values}))


def first_layers(model: Transformer) -> tuple[Any, Any]:
    """The first layer of the encoder and of the decoder."""
    return model.encoder.layers[0], model.decoder.layers[0]


def deviation(weight: Tensor) -> float:
    return float(weight.detach().std())


def uniform_with(weight: Tensor, std: float) -> bool:
    """Whether the deviation is right to 2 % and nothing lies beyond what a uniform distribution has."""
    detached = weight.detach()
    bound = float(detached.abs().max()) / std
    return abs(deviation(detached) / std - 1) < 0.02 and 1.70 < bound < 1.7321


def test_matrices_of_the_paper() -> None:
    encoder, decoder = first_layers(fresh())
    for attention in (encoder.self_attention, decoder.self_attention):
        for part in attention.qkv.weight.split(512):
            assert uniform_with(part, 0.03125)
        assert uniform_with(attention.o.weight, 0.0442)
    cross = decoder.cross_attention
    assert uniform_with(cross.q.weight, 0.0442)
    for part in cross.kv.weight.split(512):
        assert uniform_with(part, 0.0361)
    assert uniform_with(cross.o.weight, 0.0442)
    for layer in (encoder, decoder):
        assert uniform_with(layer.feed_forward.w_1.weight, 0.0280)
        assert uniform_with(layer.feed_forward.w_2.weight, 0.0280)


def test_separate_matrices_of_todays_tensor2tensor() -> None:
    encoder, decoder = first_layers(fresh("separate"))
    for part in encoder.self_attention.qkv.weight.split(512):
        assert uniform_with(part, 0.0442)
    for part in decoder.cross_attention.kv.weight.split(512):
        assert uniform_with(part, 0.0442)
    assert uniform_with(encoder.feed_forward.w_1.weight, 0.0280)


def test_parts_of_unlike_width_count_as_matrices_of_their_own() -> None:
    encoder, decoder = first_layers(fresh("separate", d_k=16, d_v=64))
    narrow, wide = math.sqrt(2 / (512 + 128)), math.sqrt(2 / (512 + 512))
    q, k, v = encoder.self_attention.qkv.weight.split((128, 128, 512))
    assert uniform_with(q, narrow)
    assert uniform_with(k, narrow)
    assert uniform_with(v, wide)
    k, v = decoder.cross_attention.kv.weight.split((128, 512))
    assert uniform_with(k, narrow)
    assert uniform_with(v, wide)


def test_biases_gains_and_embeddings() -> None:
    model = fresh(attention_bias=True)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not bool(parameter.any())
        elif ".norm." in name:
            assert bool((parameter == 1).all())
    table = model.embeddings.target.detach()
    assert deviation(table) == pytest.approx(512**-0.5, rel=0.02)
    assert float(table.abs().max()) > 3.5 * 512**-0.5  # normal, not uniform


def test_every_table_is_drawn() -> None:
    config = ModelConfig(
        vocabulary=2_000, encoder_layers=1, decoder_layers=1, tying="none", positions="learned"
    )
    model = Transformer(config)
    tables = [
        model.embeddings.source,
        model.embeddings.target,
        model.embeddings.output,
        model.source_positions.learned,
        model.target_positions.learned,
    ]
    for table in tables:
        assert deviation(table) == pytest.approx(512**-0.5, rel=0.02)
    assert not torch.equal(tables[0], tables[1])


def test_the_seed_decides() -> None:
    torch.manual_seed(3)
    first = fresh()
    again = fresh()
    torch.manual_seed(3)
    third = fresh()
    for name, parameter in first.named_parameters():
        assert torch.equal(parameter, third.get_parameter(name))
    assert not torch.equal(first.embeddings.target, again.embeddings.target)


def test_initialise_draws_everything_anew() -> None:
    model = fresh(attention_bias=True)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)
    model.initialise()
    assert not [name for name, parameter in model.named_parameters() if bool((parameter == 7).any())]
    assert isinstance(model.embeddings.target, nn.Parameter)
    assert all(parameter.requires_grad for parameter in model.parameters())
