"""Section 3.2.2: the heads, their projections, and what is put together again."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from transduce.model.attention import MultiHeadAttention, attention
from transduce.model.cache import KeysValues
from transduce.model.config import ModelConfig


def layer(*, cross: bool = False, **settings: Any) -> MultiHeadAttention:
    config = ModelConfig(vocabulary=9, **{"d_model": 8, "heads": 2, **settings})
    return MultiHeadAttention(config, cross=cross).eval()


def split_heads(attention: MultiHeadAttention) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """W_i^Q, W_i^K, W_i^V and the columns of W^O that belong to head i, for each head."""
    heads, wide = attention.heads, attention.heads * attention.d_k
    q, k, v = torch.split(attention.qkv.weight.detach(), [wide, wide, heads * attention.d_v])
    parts = [x.view(heads, -1, x.shape[1]) for x in (q, k, v)]
    o = attention.o.weight.detach()
    columns = o.view(o.shape[0], heads, -1).transpose(0, 1)
    return list(zip(*parts, columns, strict=True))


@pytest.mark.parametrize("settings", [{}, {"heads": 4}, {"heads": 3, "d_k": 5, "d_v": 2}, {"heads": 1}])
def test_multi_head_is_concat_of_heads_times_w_o(settings: dict[str, Any]) -> None:
    way = layer(**settings)
    x = torch.randn(2, 5, 8)
    expected = torch.zeros(2, 5, 8)
    for w_q, w_k, w_v, w_o in split_heads(way):
        q, k, v = ((x @ w.T)[:, None] for w in (w_q, w_k, w_v))
        expected += attention(q, k, v)[:, 0] @ w_o.T
    assert torch.allclose(way(*way.project(x)), expected, atol=1e-5)


def test_permuting_heads_with_their_part_of_w_o_changes_nothing() -> None:
    way, other = layer(heads=4), layer(heads=4)
    order = [2, 0, 3, 1]
    with torch.no_grad():
        heads = split_heads(way)
        other.qkv.weight.copy_(torch.cat([torch.cat([heads[h][part] for h in order]) for part in range(3)]))
        other.o.weight.copy_(torch.cat([heads[h][3] for h in order], dim=1))
    x = torch.randn(2, 5, 8)
    assert torch.allclose(way(*way.project(x)), other(*other.project(x)), atol=1e-6)
    assert not torch.equal(way.qkv.weight, other.qkv.weight)


def test_shapes_when_d_k_and_d_v_are_their_own() -> None:
    # Table 3 needs this: W^Q and W^K are d_model x h d_k, W^V is d_model x h d_v, W^O is h d_v x d_model.
    own = layer(heads=3, d_k=5, d_v=2)
    assert own.qkv.weight.shape == (3 * 5 * 2 + 3 * 2, 8)
    assert own.o.weight.shape == (8, 6)
    cross = layer(cross=True, heads=3, d_k=5, d_v=2)
    assert (cross.q.weight.shape, cross.kv.weight.shape) == ((15, 8), (21, 8))
    q, past = own.project(torch.randn(2, 4, 8))
    assert (q.shape, past.keys.shape, past.values.shape) == ((2, 3, 4, 5), (2, 3, 4, 5), (2, 3, 4, 2))


def test_cross_attention_asks_with_the_decoder_and_answers_with_the_memory() -> None:
    cross = layer(cross=True)
    x, memory = torch.randn(2, 3, 8), torch.randn(2, 7, 8)
    q, kv = cross.project_queries(x), cross.project_memory(memory)
    assert (q.shape, kv.keys.shape, kv.length) == ((2, 2, 3, 4), (2, 2, 7, 4), 7)
    assert cross(q, kv).shape == x.shape
    w_k, w_v = torch.split(cross.kv.weight, 8)
    assert torch.allclose(kv.keys.transpose(1, 2).flatten(2), memory @ w_k.T, atol=1e-6)
    assert torch.allclose(kv.values.transpose(1, 2).flatten(2), memory @ w_v.T, atol=1e-6)
    assert torch.allclose(q.transpose(1, 2).flatten(2), x @ cross.q.weight.T, atol=1e-6)


@pytest.mark.parametrize("cross", [False, True])
def test_biases_are_a_setting_of_every_projection(cross: bool) -> None:
    names = {name for name, _ in layer(cross=cross).named_parameters()}
    with_biases = {name for name, _ in layer(cross=cross, attention_bias=True).named_parameters()}
    assert not [name for name in names if "bias" in name]
    assert with_biases == names | {name.replace("weight", "bias") for name in names}


def test_weights_for_inspection_are_what_forward_multiplies_by() -> None:
    way = layer()
    x = torch.randn(2, 5, 8)
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    q, past = way.project(x)
    weights = way.weights(q, past, mask)
    heads = torch.matmul(weights, past.values).transpose(1, 2).flatten(2)
    assert torch.allclose(heads @ way.o.weight.T, way(q, past, mask), atol=1e-6)


def test_past_of_another_length_is_no_trouble() -> None:
    past = KeysValues.of(torch.randn(1, 2, 9, 4), torch.randn(1, 2, 9, 4))
    assert layer()(torch.randn(1, 2, 1, 4), past).shape == (1, 1, 8)
