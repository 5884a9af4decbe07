"""The whole model: against the paper written plainly, in every setting and precision."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from oracles import ReferenceTransformer
from transduce.errors import ConfigError
from transduce.model.attention import MultiHeadAttention, attention
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer

Build = Callable[..., Transformer]
SETTINGS = st.fixed_dictionaries(
    {
        "norm": st.sampled_from(["post", "pre"]),
        "attention_bias": st.booleans(),
        "output_bias": st.booleans(),
        "activation": st.sampled_from(["relu", "swish", "gelu"]),
        "scale_embeddings": st.booleans(),
        "positions": st.sampled_from(["sinusoid", "t2t", "learned", "rotary"]),
        "neighbourhood": st.sampled_from([0, 1, 2]),
        "tying": st.sampled_from(["three-way", "decoder", "none"]),
        "decoder_start": st.sampled_from(["zero", "bos", "eos", "pad"]),
        "heads": st.sampled_from([1, 2, 3]),
        "d_k": st.sampled_from([2, 6]),
        "d_v": st.sampled_from([3, 5]),
        "encoder_layers": st.sampled_from([1, 2]),
        "decoder_layers": st.sampled_from([1, 2]),
        "norm_epsilon": st.sampled_from([1e-6, 1e-2]),
        "seed": st.integers(0, 99),
    }
)


def assert_is_the_paper(model: Transformer) -> None:
    with torch.no_grad():
        if model.embeddings.output_bias is not None:
            model.embeddings.output_bias.normal_()
    parameters = {name: tensor.double().numpy() for name, tensor in model.state_dict().items()}
    reference = ReferenceTransformer(parameters, model.config)
    sources, targets = [[5, 6, 7, 8, 1], [9, 4, 1], [1]], [[11, 12, 13, 4], [5], [6, 7]]
    start = model.config.start_id
    source = torch.tensor([ids + [0] * (5 - len(ids)) for ids in sources])
    target_in = torch.tensor([[start, *ids] + [0] * (4 - len(ids)) for ids in targets])
    with torch.no_grad():
        logits = model.double()(source, target_in).numpy()
    for row, (s, t) in enumerate(zip(sources, targets, strict=True)):
        expected = reference.logits(s, [start, *t])
        assert np.abs(logits[row, : len(t) + 1] - expected).max() < 1e-5


@settings(max_examples=25, deadline=None)
@given(chosen=SETTINGS)
def test_every_setting_is_the_paper_written_plainly(small_model: Build, chosen: dict[str, Any]) -> None:
    assert_is_the_paper(small_model(**chosen))


@pytest.mark.parametrize("name", ["paper-base", "t2t-v3", "B1", "E"])
def test_named_configurations_in_small_are_the_paper(small_model: Build, name: str) -> None:
    chosen = dataclasses.asdict(ModelConfig.named(name, vocabulary=23, d_ff=24))
    small = {"d_model": 16, "heads": 2, "d_k": chosen["d_k"] // 8, "d_v": chosen["d_v"] // 8}
    assert_is_the_paper(small_model(**{**chosen, **small, "encoder_layers": 2, "decoder_layers": 2}))


def batch() -> tuple[Tensor, Tensor]:
    source, target = torch.randint(4, 23, (3, 6)), torch.randint(4, 23, (3, 5))
    source[1, 4:] = 0
    return source, target


def loss_of(logits: Tensor, target: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(logits.float().transpose(1, 2), target)


def test_gradients_equal_those_through_the_plain_equation(
    small_model: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, (source, target) = small_model().double(), batch()
    fast = torch.autograd.grad(loss_of(model(source, target), target), list(model.parameters()))
    with monkeypatch.context() as patch:
        patch.setattr(MultiHeadAttention, "_attend", lambda _, q, k, v, mask: attention(q, k, v, mask))
        plain = torch.autograd.grad(loss_of(model(source, target), target), list(model.parameters()))
    for one, other in zip(fast, plain, strict=True):
        assert torch.allclose(one, other, atol=1e-7)
        assert bool(one.any())


OTHER: dict[str, tuple[dict[str, Any], Any]] = {
    # field: (what else must be set for it to matter, another value than the default)
    "vocabulary": ({}, 24),
    "d_model": ({}, 20),
    "d_ff": ({}, 25),
    "heads": ({}, 4),
    "d_k": ({}, 6),
    "d_v": ({}, 6),
    "encoder_layers": ({}, 2),
    "decoder_layers": ({}, 2),
    "dropout": ({}, 0.2),
    "attention_dropout": ({}, 0.2),
    "relu_dropout": ({}, 0.2),
    "norm": ({}, "pre"),
    "norm_epsilon": ({}, 1e-2),
    "attention_bias": ({}, True),
    "output_bias": ({}, True),
    "activation": ({}, "swish"),
    "scale_embeddings": ({}, False),
    "positions": ({}, "t2t"),
    "neighbourhood": ({}, 1),
    "tying": ({}, "none"),
    "decoder_start": ({}, "bos"),
    "initialisation": ({}, "separate"),
    "max_length": ({"positions": "learned"}, 99),
    "pad_id": ({}, 7),
    "eos_id": ({"decoder_start": "eos"}, 7),
    "bos_id": ({"decoder_start": "bos"}, 7),
}


@functools.cache
def behaviour(config: ModelConfig) -> list[Any]:
    """All that can be seen of a model: shapes, weights, the start, and what it computes."""
    torch.manual_seed(0)
    model = Transformer(config)
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    source, target = torch.tensor([[5, 6, 7, 1, 0]]), torch.tensor([[config.start_id, 8, 9]])
    torch.manual_seed(0)
    trained = model.train()(source, target).tolist()
    return [shapes, config.start_id, model.eval()(source, target).tolist(), trained]


@pytest.mark.parametrize("field", OTHER)
def test_every_setting_has_an_effect(field: str) -> None:
    needed, other = OTHER[field]
    base = ModelConfig(vocabulary=23, d_model=16, d_ff=24, heads=2, encoder_layers=1, decoder_layers=1)
    base = dataclasses.replace(base, **needed)
    assert behaviour.__wrapped__(base) == behaviour(base)
    assert behaviour(dataclasses.replace(base, **{field: other})) != behaviour(base)


def test_no_setting_is_forgotten() -> None:
    # The unknown token means nothing to the model; its id is only kept apart from the others.
    assert {field.name for field in dataclasses.fields(ModelConfig)} - set(OTHER) == {"unk_id"}
    with pytest.raises(ConfigError, match="four different numbers"):
        ModelConfig(vocabulary=23, unk_id=2)


def test_model_without_attention_biases_is_one_whose_biases_are_zero(small_model: Build) -> None:
    plain, (source, target) = small_model(), batch()
    biased = small_model(attention_bias=True)
    zeros = {name: torch.zeros_like(x) for name, x in biased.state_dict().items() if "attention" in name}
    biased.load_state_dict({**zeros, **plain.state_dict()})
    assert torch.allclose(biased(source, target), plain(source, target), atol=1e-6)


def test_evaluation_mode_is_deterministic_and_says_so(small_model: Build) -> None:
    model, (source, target) = small_model(dropout=0.3, attention_dropout=0.3, relu_dropout=0.3), batch()
    model.train()
    assert not torch.equal(model(source, target), model(source, target))
    model.eval()
    assert not any(module.training for module in model.modules())
    assert torch.equal(model(source, target), model(source, target))


def test_dropout_is_all_that_training_mode_changes(small_model: Build) -> None:
    model, (source, target) = small_model(dropout=0.0), batch()
    with torch.no_grad():
        assert torch.equal(model.train()(source, target), model.eval()(source, target))


def test_training_step_repeats_from_a_seed(small_model: Build) -> None:
    model, (source, target) = small_model(dropout=0.3).train(), batch()
    results = []
    for _ in range(2):
        torch.manual_seed(9)
        loss = loss_of(model(source, target), target)
        results.append((loss, *torch.autograd.grad(loss, list(model.parameters()))))
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.15), (torch.float16, 0.02)]
)
def test_a_source_that_is_all_padding_harms_nobody(
    small_model: Build, dtype: torch.dtype, tolerance: float
) -> None:
    model = small_model(dropout=0.0).to(dtype).train()
    source, target = torch.tensor([[0, 0, 0, 0], [5, 6, 7, 1]]), torch.tensor([[0, 5, 6], [0, 7, 8]])
    logits = model(source, target)
    torch.autograd.backward(logits.float().logsumexp(-1).mean())
    assert bool(logits.isfinite().all())
    for parameter in model.parameters():
        assert parameter.grad is not None
        assert bool(parameter.grad.isfinite().all())
    alone = model(source[1:], target[1:])
    assert torch.allclose(logits[1].float(), alone[0].float(), atol=tolerance)
    with torch.no_grad():
        model.eval()
        assert bool(model(source, target).isfinite().all())


@pytest.mark.parametrize("backward_inside", [False, True])
@pytest.mark.parametrize("chosen", [{}, {"norm": "pre", "positions": "rotary"}, {"attention_dropout": 1e-9}])
def test_bf16_autocast_stays_near_fp32(
    small_model: Build, chosen: dict[str, Any], backward_inside: bool
) -> None:
    model, (source, target) = small_model(dropout=0.0, **chosen).train(), batch()
    exact = loss_of(model(source, target), target)
    wanted = torch.cat([g.flatten() for g in torch.autograd.grad(exact, list(model.parameters()))])
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(source, target)
        loss = loss_of(logits, target)
        if backward_inside:
            torch.autograd.backward(loss)
    if not backward_inside:
        torch.autograd.backward(loss)
    got = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    assert logits.dtype == torch.bfloat16
    assert got.dtype == torch.float32
    assert bool(got.isfinite().all())
    assert float(loss.detach()) == pytest.approx(float(exact.detach()), rel=0.02)
    assert float(torch.cosine_similarity(got, wanted, dim=0)) > 0.99


def test_under_autocast_the_residual_stream_stays_in_fp32(small_model: Build) -> None:
    model, (source, target) = small_model(dropout=0.1).train(), batch()
    streams: list[torch.dtype] = []
    for norm in (module for module in model.modules() if isinstance(module, torch.nn.LayerNorm)):
        norm.register_forward_hook(lambda _, inputs, out: streams.extend([inputs[0].dtype, out.dtype]))
    with torch.autocast("cpu", torch.bfloat16):
        model(source, target)
    assert streams == [torch.float32] * 2 * (2 * 2 + 2 * 3)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_features_times_the_output_matrix_are_the_logits(small_model: Build) -> None:
    model, (source, target) = small_model(tying="none"), batch()
    features, state = model.features(target, model.start(source))
    assert features.shape == (3, 5, 16)
    assert torch.equal(model.embeddings.logits(features), model(source, target))
    assert state.length == 5


def test_the_model_owns_no_loss_vocabulary_device_or_precision(small_model: Build) -> None:
    model, (source, target) = small_model(), batch()
    for dtype in (torch.float64, torch.bfloat16, torch.float32):
        assert model.to(dtype)(source, target).dtype == dtype
    rows = model(source, target).double().exp().sum(-1)
    assert not torch.allclose(rows, torch.ones_like(rows), atol=0.5)  # logits, no softmax
