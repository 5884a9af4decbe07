"""Section 3.1: the encoder's and the decoder's stacks.

Every sub-layer is LayerNorm(x + Dropout(Sublayer(x))).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from transduce.model.attention import Mask, MultiHeadAttention
from transduce.model.cache import KeysValues
from transduce.model.config import ModelConfig
from transduce.model.dropout import Dropout
from transduce.model.feed_forward import FeedForward

Sequence = Float[Tensor, "batch length d_model"]


class AddNorm(nn.Module):
    """The residual connection and layer normalisation around one sub-layer.

    post (the paper): LayerNorm(x + Dropout(Sublayer(x))); pre: x + Dropout(Sublayer(LayerNorm(x))).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.post = config.norm == "post"
        self.norm = nn.LayerNorm(config.d_model, eps=config.norm_epsilon)
        self.dropout = Dropout(config.dropout)

    def before(self, x: Sequence) -> Sequence:
        """What goes into the sub-layer."""
        return x if self.post else self.norm(x)

    def after(self, x: Sequence, y: Sequence) -> Sequence:
        """What follows the sub-layer that made ``y``."""
        x = x + self.dropout(y)
        return self.norm(x) if self.post else x


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config, cross=False)
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.relu_dropout, config.activation)
        self.add_norm_1, self.add_norm_2 = AddNorm(config), AddNorm(config)

    def forward(self, x: Sequence, mask: Mask) -> Sequence:
        """The layer's output for one batch of sources."""
        q, kv = self.self_attention.project(self.add_norm_1.before(x))
        x = self.add_norm_1.after(x, self.self_attention(q, kv, mask))
        return self.add_norm_2.after(x, self.feed_forward(self.add_norm_2.before(x)))


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config, cross=False)
        self.cross_attention = MultiHeadAttention(config, cross=True)
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.relu_dropout, config.activation)
        self.add_norm_1, self.add_norm_2, self.add_norm_3 = AddNorm(config), AddNorm(config), AddNorm(config)

    def forward(
        self, x: Sequence, past: KeysValues | None, memory: KeysValues, mask: Mask, memory_mask: Mask
    ) -> tuple[Sequence, KeysValues]:
        """The layer's output, and ``past`` with the new positions added."""
        q, new = self.self_attention.project(self.add_norm_1.before(x), 0 if past is None else past.length)
        past = new if past is None else past.append(new.keys, new.values)
        x = self.add_norm_1.after(x, self.self_attention(q, past, mask))
        # The hypotheses of one sentence attend to its memory as if they were one longer sequence of queries.
        grouped = self.add_norm_2.before(x).reshape(memory.keys.shape[0], -1, x.shape[2])
        q = self.cross_attention.project_queries(grouped)
        x = self.add_norm_2.after(x, self.cross_attention(q, memory, memory_mask).view(x.shape))
        return self.add_norm_3.after(x, self.feed_forward(self.add_norm_3.before(x))), past


def _final_norm(config: ModelConfig) -> nn.Module:
    """What ends a stack: nothing in the paper; a pre-norm stack needs one more normalisation."""
    if config.norm == "post":
        return nn.Identity()
    return nn.LayerNorm(config.d_model, eps=config.norm_epsilon)


class _Stack(nn.Module):
    """What both stacks share: how a layer is run.

    With ``recompute`` a layer keeps nothing but its input for the backward pass and is run once more there:
    less memory for about a third more work, and the same gradients bit for bit, dropout included.
    """

    recompute = False

    def _run(self, layer: nn.Module, *inputs: Any) -> Any:
        if self.recompute and torch.is_grad_enabled():
            return checkpoint(layer, *inputs, use_reentrant=False)
        return layer(*inputs)


class Encoder(_Stack):
    """N identical layers; the output of the last one is the memory."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.norm = _final_norm(config)

    def forward(self, x: Sequence, mask: Mask) -> Sequence:
        """The memory that the decoder attends to."""
        for layer in self.layers:
            x = self._run(layer, x, mask)
        return self.norm(x)  # type: ignore[no-any-return]


class Decoder(_Stack):
    """N identical layers, each attending to its own projection of the same memory."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.norm = _final_norm(config)

    def project_memory(self, memory: Sequence) -> tuple[KeysValues, ...]:
        """Each layer's keys and values of the encoder's output."""
        layers: Iterable[Any] = self.layers
        return tuple(layer.cross_attention.project_memory(memory) for layer in layers)

    def forward(
        self,
        x: Sequence,
        pasts: tuple[KeysValues | None, ...],
        memories: tuple[KeysValues, ...],
        mask: Mask,
        memory_mask: Mask,
    ) -> tuple[Sequence, tuple[KeysValues, ...]]:
        """The features before the output projection, and each layer's keys and values so far."""
        kept = []
        for layer, past, memory in zip(self.layers, pasts, memories, strict=True):
            x, past = self._run(layer, x, past, memory, mask, memory_mask)
            kept.append(past)
        return self.norm(x), tuple(kept)
