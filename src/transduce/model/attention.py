"""Section 3.2, equation 1: Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V, and its multi-head form.

`attention` is the equation written plainly, and the oracle of the fast ways. In every mask True means that
the key may be seen; a query that may see nothing gets zeros.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from transduce.model.cache import KeysValues
from transduce.model.config import ModelConfig
from transduce.model.dropout import Dropout
from transduce.model.positional_encoding import Rotary

Mask = Bool[Tensor, "..."] | None
# Up to this many keys two plain matrix products beat the CPU's fused kernel, whose backward pass is slow.
PLAIN_UP_TO = 256


def attention_weights(
    q: Float[Tensor, "batch heads queries d_k"], k: Float[Tensor, "batch heads keys d_k"], mask: Mask = None
) -> Float[Tensor, "batch heads queries keys"]:
    """softmax(Q K^T / sqrt(d_k)): rows sum to 1, or to 0 where nothing may be seen."""
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
    if mask is None:
        return scores.softmax(-1)
    # The lowest finite number instead of -inf: the same weights, but no NaN where a whole row is hidden.
    hidden = ~mask
    return scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(-1).masked_fill(hidden, 0.0)


def attention(
    q: Float[Tensor, "batch heads queries d_k"],
    k: Float[Tensor, "batch heads keys d_k"],
    v: Float[Tensor, "batch heads keys d_v"],
    mask: Mask = None,
) -> Float[Tensor, "batch heads queries d_v"]:
    """Equation 1, written plainly."""
    return torch.matmul(attention_weights(q, k, mask), v)


class _ProductAttention(torch.autograd.Function):
    """Equation 1 as two products with the gradient written out: nothing but the weights is kept."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        batch, heads, queries, d_k = q.shape
        keys = k.shape[2]
        q, k, v = (x.reshape(batch * heads, *x.shape[2:]) for x in (q, k, v))
        scores = torch.bmm(q, k.transpose(1, 2)).mul_(d_k**-0.5).view(batch, heads, queries, keys)
        if mask is None:
            weights = scores.softmax(-1)
        else:
            hidden = ~mask
            scores.masked_fill_(hidden, torch.finfo(scores.dtype).min)
            weights = scores.softmax(-1).masked_fill_(hidden, 0.0)
        weights = weights.view(batch * heads, queries, keys)
        ctx.save_for_backward(q, k, v, weights)
        ctx.sizes = batch, heads
        return torch.bmm(weights, v).view(batch, heads, queries, -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights = ctx.saved_tensors
        batch, heads = ctx.sizes
        out = gradients[0].reshape(batch * heads, *gradients[0].shape[2:])
        d_v = torch.bmm(weights.transpose(1, 2), out)
        d_weights = torch.bmm(out, v.transpose(1, 2))
        d_scores = torch._softmax_backward_data(d_weights, weights, -1, weights.dtype)
        d_scores.mul_(q.shape[-1] ** -0.5)
        d_q, d_k = torch.bmm(d_scores, k), torch.bmm(d_scores.transpose(1, 2), q)
        return (*(x.view(batch, heads, *x.shape[1:]) for x in (d_q, d_k, d_v)), None)


class MultiHeadAttention(nn.Module):
    """Concat(head_1, ..., head_h) W^O with head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).

    W^Q, W^K and W^V of all heads are one matrix in self-attention, and W^K and W^V are one where the keys
    come from elsewhere (``cross``), as in the code of 2017; its columns are [queries, keys, values], each
    head by head. Projecting is apart from attending, so that a memory is projected once.
    """

    def __init__(self, config: ModelConfig, *, cross: bool) -> None:
        super().__init__()
        self.heads, self.d_k, self.d_v, self.cross = config.heads, config.d_k, config.d_v, cross
        wide_k, wide_v = config.heads * config.d_k, config.heads * config.d_v
        bias = config.attention_bias
        if cross:
            self.q = nn.Linear(config.d_model, wide_k, bias)
            self.kv = nn.Linear(config.d_model, wide_k + wide_v, bias)
        else:
            self.qkv = nn.Linear(config.d_model, 2 * wide_k + wide_v, bias)
        self.o = nn.Linear(wide_v, config.d_model, bias)
        self.dropout = Dropout(config.attention_dropout)
        self.rotary = Rotary() if config.positions == "rotary" and not cross else None

    def project(
        self, x: Float[Tensor, "batch length d_model"], offset: int = 0
    ) -> tuple[Float[Tensor, "batch heads length d_k"], KeysValues]:
        """Queries, and keys and values, of one sequence that attends to itself from position ``offset``."""
        wide_k, wide_v = self.heads * self.d_k, self.heads * self.d_v
        q, k, v = self.qkv(x).split((wide_k, wide_k, wide_v), dim=-1)
        q, k, v = self._split(q), self._split(k), self._split(v)
        if self.rotary is not None:
            q, k = self.rotary(q, offset), self.rotary(k, offset)
        return q, KeysValues.of(k, v)

    def project_queries(
        self, x: Float[Tensor, "batch queries d_model"]
    ) -> Float[Tensor, "batch heads queries d_k"]:
        """Queries of a sequence that attends to a memory."""
        return self._split(self.q(x))

    def project_memory(self, memory: Float[Tensor, "batch keys d_model"]) -> KeysValues:
        """Keys and values of a memory that is attended to."""
        k, v = self.kv(memory).split((self.heads * self.d_k, self.heads * self.d_v), dim=-1)
        # Laid out head by head once, instead of before each of the many products that follow.
        return KeysValues.of(self._split(k).contiguous(), self._split(v).contiguous())

    def forward(
        self, q: Float[Tensor, "batch heads queries d_k"], past: KeysValues, mask: Mask = None
    ) -> Float[Tensor, "batch queries d_model"]:
        """The heads' outputs side by side, times W^O."""
        heads = self._attend(q, past.keys, past.values, mask)
        y: Tensor = self.o(heads.transpose(1, 2).flatten(2))
        return y

    def weights(
        self, q: Float[Tensor, "batch heads queries d_k"], past: KeysValues, mask: Mask = None
    ) -> Float[Tensor, "batch heads queries keys"]:
        """What `forward` multiplies the values by, before dropout; for inspection."""
        return attention_weights(q, past.keys, mask)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
        rate = self.dropout.p if self.training else 0.0
        if q.device.type != "cpu" or (k.shape[2] > PLAIN_UP_TO and mask is None):
            return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=rate)
        if rate > 0:
            return torch.matmul(self.dropout(attention_weights(q, k, mask)), v)
        if torch.is_grad_enabled() and q.requires_grad:
            return _ProductAttention.apply(q, k, v, mask)  # type: ignore[no-any-return,no-untyped-call]
        return attention(q, k, v, mask)

    def _split(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        return x.view(batch, length, self.heads, -1).transpose(1, 2)
