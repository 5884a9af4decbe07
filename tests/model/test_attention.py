"""Section 3.2.1: equation 1 in all its ways, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import oracles
from transduce.model import attention as module
from transduce.model.attention import MultiHeadAttention, _ProductAttention, attention, attention_weights
from transduce.model.config import ModelConfig

BATCH, HEADS, QUERIES, KEYS, D_K, D_V = 3, 2, 4, 5, 6, 3


def qkv(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    q = torch.randn(BATCH, HEADS, QUERIES, D_K, dtype=dtype)
    k = torch.randn(BATCH, HEADS, KEYS, D_K, dtype=dtype)
    return q, k, torch.randn(BATCH, HEADS, KEYS, D_V, dtype=dtype)


def masks(queries: int = QUERIES, keys: int = KEYS) -> dict[str, Tensor | None]:
    padding = torch.ones(BATCH, 1, 1, keys, dtype=torch.bool)
    padding[1, :, :, keys - 2 :] = False
    hidden = padding.clone()
    hidden[2] = False  # a sentence with nothing to see
    one_row = torch.ones(queries, keys, dtype=torch.bool)
    one_row[1] = False  # a query with nothing to see
    causal = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
    return {"none": None, "padding": padding, "causal": causal, "hidden": hidden, "one row": one_row}


def product(*inputs: Tensor | None) -> Tensor:
    out: Tensor = _ProductAttention.apply(*inputs)  # type: ignore[no-untyped-call]
    return out


def layer(*, cross: bool = False, **settings: Any) -> MultiHeadAttention:
    config = ModelConfig(vocabulary=9, **{"d_model": 8, "heads": 2, **settings})
    return MultiHeadAttention(config, cross=cross).eval()


def test_printed_example() -> None:
    q = torch.tensor([[[[1.0, 0.0]]]])
    k, v = torch.eye(2)[None, None], torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    assert torch.allclose(attention_weights(q, k), torch.tensor([0.6698, 0.3302]), atol=5e-5)
    assert torch.allclose(attention(q, k, v), torch.tensor([1.6605, 2.6605]), atol=5e-5)


def test_why_the_scale() -> None:
    # For components of mean 0 and variance 1, q.k has variance d_k; divided by sqrt(d_k) it has variance 1.
    q, k = torch.randn(2, 1, 1, 2000, 64, dtype=torch.float64)
    scores = attention_weights(q, k).log()
    spread = (scores - scores.mean(-1, keepdim=True)).std()
    assert float(spread) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("name", masks())
def test_plain_equation_is_the_oracle(name: str) -> None:
    (q, k, v), mask = qkv(), masks()[name]
    sees = torch.ones(BATCH, 1, QUERIES, KEYS, dtype=torch.bool) if mask is None else mask
    sees = sees.expand(BATCH, 1, QUERIES, KEYS)[:, 0]
    out = attention(q, k, v, mask)
    for b in range(BATCH):
        for h in range(HEADS):
            seen = sees[b].tolist()
            q_h, k_h, v_h = q[b, h].numpy(), k[b, h].numpy(), v[b, h].numpy()
            expected = oracles.attention(q_h, k_h, v_h, lambda i, j, seen=seen: seen[i][j])  # type: ignore[misc]
            assert np.abs(out[b, h].numpy() - expected).max() < 1e-12


@pytest.mark.parametrize("name", masks())
def test_weights_are_exact_zeros_where_hidden_and_sum_to_one_elsewhere(name: str) -> None:
    (q, k, _), mask = qkv(), masks()[name]
    weights = attention_weights(q, k, mask)
    sees = torch.ones(()) if mask is None else mask
    sees = sees.bool().expand_as(weights)
    assert not bool(weights[~sees].any())
    assert torch.allclose(weights.sum(-1), sees.any(-1).double(), atol=1e-12)


@pytest.mark.parametrize("name", masks())
def test_gradients_written_out_are_those_of_the_equation(name: str) -> None:
    mask = masks()[name]
    ours = [x.requires_grad_() for x in qkv()]
    q, k, v = plain = [x.detach().clone().requires_grad_() for x in ours]
    out, expected = product(*ours, mask), attention(q, k, v, mask)
    assert torch.allclose(out, expected, atol=1e-12)
    upstream = torch.randn_like(expected)
    got = torch.autograd.grad(out, ours, upstream)
    wanted = torch.autograd.grad(expected, plain, upstream)
    for one, other in zip(got, wanted, strict=True):
        assert one.shape == other.shape
        assert torch.allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("name", masks())
def test_gradients_written_out_agree_with_finite_differences(name: str) -> None:
    mask = masks(queries=2, keys=3)[name]
    inputs = [torch.randn(BATCH, 1, n, 2, dtype=torch.float64, requires_grad=True) for n in (2, 3, 3)]
    assert torch.autograd.gradcheck(lambda *x: product(*x, mask), inputs)


def test_second_derivatives_are_refused_rather_than_wrong() -> None:
    q, k, v = (x.requires_grad_() for x in qkv())
    out = product(q, k, v, None)
    (gradient,) = torch.autograd.grad(out.square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        torch.autograd.backward(gradient.sum())


def test_non_contiguous_inputs_and_gradients() -> None:
    # As they come from the projections: (batch, length, heads, width) seen as (batch, heads, length, width).
    q, k, v = (
        torch.randn(2, 5, 3, 4, dtype=torch.float64).transpose(1, 2).requires_grad_() for _ in range(3)
    )
    out = product(q, k, v, None)
    upstream = torch.randn(2, 5, 3, 4, dtype=torch.float64).transpose(1, 2)
    got = torch.autograd.grad(out, (q, k, v), upstream)
    wanted = torch.autograd.grad(attention(q, k, v), (q, k, v), upstream)
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(got, wanted, strict=True))


@pytest.mark.parametrize("trains", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("keys", [5, module.PLAIN_UP_TO, module.PLAIN_UP_TO + 1])
@pytest.mark.parametrize("masked", [False, True])
def test_every_way_gives_the_equation(trains: bool, keys: int, masked: bool) -> None:
    q, k, v = (torch.randn(2, 2, n, 4, dtype=torch.float64, requires_grad=trains) for n in (3, keys, keys))
    mask = None
    if masked:
        mask = torch.rand(2, 1, 3, keys) < 0.7
        mask[1] = False
    way = layer()
    way.train(trains)
    out, expected = way._attend(q, k, v, mask), attention(q, k, v, mask)
    assert torch.allclose(out, expected, atol=1e-10)
    if trains:
        upstream = torch.randn_like(out)
        got = torch.autograd.grad(out, (q, k, v), upstream)
        wanted = torch.autograd.grad(expected, (q, k, v), upstream)
        assert all(torch.allclose(a, b, atol=1e-10) for a, b in zip(got, wanted, strict=True))


def test_frozen_queries_still_pass_gradients_to_the_memory() -> None:
    q, k, v = qkv()
    v.requires_grad_()
    (gradient,) = torch.autograd.grad(layer().train()._attend(q, k, v, None).sum(), v)
    assert bool(gradient.ne(0).any())


@pytest.mark.parametrize("keys", [6, module.PLAIN_UP_TO + 1])
def test_attention_dropout_drops_weights_after_the_softmax(keys: int) -> None:
    way = layer(attention_dropout=0.5).train()
    q, k = torch.randn(2, 4, 2, 50, 4), torch.randn(2, 4, 2, keys, 4)
    v = torch.eye(keys).expand(4, 2, keys, keys)  # so that the output shows the weights
    out, weights = way._attend(q[0], k[0], v, None), attention_weights(q[0], k[0])
    kept = out != 0
    assert torch.allclose(out[kept], 2 * weights[kept], rtol=1e-4)
    assert float(kept.float().mean()) == pytest.approx(0.5, abs=0.05)
    assert torch.allclose(way.eval()._attend(q[0], k[0], v, None), weights, atol=1e-6)


@pytest.mark.parametrize("keys", [6, module.PLAIN_UP_TO + 1])
def test_attention_dropout_of_one_leaves_nothing(keys: int) -> None:
    way = layer(attention_dropout=1.0).train()
    out = way._attend(torch.randn(1, 2, 3, 4), torch.randn(1, 2, keys, 4), torch.randn(1, 2, keys, 4), None)
    assert torch.equal(out, torch.zeros(1, 2, 3, 4))


def test_lowest_scores_do_not_overflow_in_half_precision() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        q, k, v = (x * 10 for x in qkv(dtype))
        mask = masks()["hidden"]
        assert bool(attention(q, k, v, mask).isfinite().all())


def check_on(device: str, way: Callable[..., Tensor], dtype: torch.dtype, tolerance: float) -> None:
    for mask in masks().values():
        q, k, v = inputs = [x.to(device, dtype).requires_grad_() for x in qkv()]
        on_device = None if mask is None else mask.to(device)
        out = way(q, k, v, on_device)
        expected = attention(q.double(), k.double(), v.double(), on_device)
        assert torch.allclose(out.double(), expected, atol=tolerance)
        got = torch.autograd.grad(out.sum(), inputs)
        wanted = torch.autograd.grad(expected.sum(), inputs)
        assert all(torch.allclose(a, b, atol=tolerance) for a, b in zip(got, wanted, strict=True))


@pytest.mark.cuda
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 0.1)])
def test_fused_kernel_of_a_gpu_gives_the_equation(dtype: torch.dtype, tolerance: float) -> None:
    check_on("cuda", layer()._attend, dtype, tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.1)])
def test_own_kernel_gives_the_equation(dtype: torch.dtype, tolerance: float) -> None:
    check_on("cpu", layer()._attend, dtype, tolerance)
