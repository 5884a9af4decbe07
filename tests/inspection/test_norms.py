"""Activation and gradient norms: by hand, by the definition, and with nothing left behind."""

from __future__ import annotations

import pytest
import torch

from tiny_translator import tiny_bundle
from transduce.inspection.norms import layer_norms

SOURCE = torch.tensor([[5, 9, 7, 1], [8, 6, 1, 0]])
TARGET_IN, TARGET_OUT = torch.tensor([[0, 8, 6], [0, 7, 0]]), torch.tensor([[8, 6, 1], [7, 1, 0]])


def test_a_post_norm_layer_puts_out_unit_variance() -> None:
    model = tiny_bundle(ends=0.0).model
    found = layer_norms(model, SOURCE, TARGET_IN, TARGET_OUT)
    assert [(of.stack, of.layer) for of in found] == [
        ("encoder", 1),
        ("encoder", 2),
        ("decoder", 1),
        ("decoder", 2),
    ]
    assert all(of.activation == pytest.approx(1.0, abs=1e-3) for of in found)


def test_a_pre_norm_layer_that_adds_nothing_passes_its_input_on() -> None:
    model = tiny_bundle(norm="pre").model
    with torch.no_grad():
        silent = model.encoder.layers[1]
        for linear in (silent.self_attention.o, silent.feed_forward.w_2):
            for parameter in linear.parameters():
                parameter.zero_()
    found = layer_norms(model, SOURCE, TARGET_IN, TARGET_OUT)
    assert found[1].update == 0
    assert found[1].activation == found[0].activation
    assert found[0].update > 0


def test_gradients_are_those_of_the_mean_loss() -> None:
    model = tiny_bundle().model.train()
    found = layer_norms(model, SOURCE, TARGET_IN, TARGET_OUT)
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    model.eval()
    logits = model(SOURCE, TARGET_IN)
    real = TARGET_OUT != 0
    loss = -logits.log_softmax(-1).gather(2, TARGET_OUT[..., None])[..., 0][real].mean()
    loss.backward()
    layer = model.decoder.layers[1]
    whole = sum(float(p.grad.square().sum()) for p in layer.parameters() if p.grad is not None) ** 0.5
    assert found[-1].gradient == pytest.approx(whole, rel=1e-4)
