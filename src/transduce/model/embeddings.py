"""Section 3.4: one matrix serves both embeddings and the projection before the softmax.

The embeddings are multiplied by sqrt(d_model); the projection is not, and has no bias. Imported models may
differ in both (`scale_embeddings`, `output_bias`).
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transduce.model.config import ModelConfig


class Embeddings(nn.Module):
    """The vocabulary's matrices: ``source``, ``target`` and ``output`` are one, two or three tensors.

    Tied matrices are one parameter under one name, so no save, load, cast or wrapper can part them.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        shape = config.vocabulary, config.d_model
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        # The start symbol of the paper's code is a zero vector; elsewhere padding is never seen.
        self.zero_id = config.pad_id if config.decoder_start == "zero" else None
        self.target = nn.Parameter(torch.empty(shape))
        self.own_source = None if config.tying == "three-way" else nn.Parameter(torch.empty(shape))
        self.own_output = nn.Parameter(torch.empty(shape)) if config.tying == "none" else None
        self.output_bias = nn.Parameter(torch.empty(config.vocabulary)) if config.output_bias else None

    @property
    def source(self) -> Float[Tensor, "vocabulary d_model"]:
        """The matrix that embeds the source."""
        return self.target if self.own_source is None else self.own_source

    @property
    def output(self) -> Float[Tensor, "vocabulary d_model"]:
        """The matrix before the softmax."""
        return self.target if self.own_output is None else self.own_output

    def embed_source(self, ids: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length d_model"]:
        """The source's embeddings times sqrt(d_model)."""
        return nn.functional.embedding(ids, self.source) * self.scale

    def embed_target(self, ids: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length d_model"]:
        """The shifted target's embeddings times sqrt(d_model); zero at a zero start symbol."""
        x = nn.functional.embedding(ids, self.target) * self.scale
        if self.zero_id is not None:
            x = x.masked_fill((ids == self.zero_id).unsqueeze(-1), 0.0)
        return x

    def logits(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocabulary"]:
        """The scores before the softmax."""
        return nn.functional.linear(x, self.output, self.output_bias)

    def factors(
        self, x: Float[Tensor, "*batch d_model"]
    ) -> tuple[Float[Tensor, "*batch width"], Float[Tensor, "vocabulary width"]]:
        """Features, and the matrix that they are multiplied by for the logits; a bias is one more column."""
        if self.output_bias is None:
            return x, self.output
        return torch.cat([x, x.new_ones((*x.shape[:-1], 1))], -1), self.output_with_bias

    @property
    def output_with_bias(self) -> Float[Tensor, "vocabulary width"]:
        """The matrix before the softmax, its bias as a last column where it has one."""
        return (
            self.output
            if self.output_bias is None
            else torch.cat([self.output, self.output_bias[:, None]], 1)
        )
