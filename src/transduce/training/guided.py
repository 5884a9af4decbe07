"""Guided alignment: one decoder layer learns to look where an aligner's links point.

Chen et al. (2016): beside the cross-entropy of the words, that of the attention. With A[t, s] the share of
source token s in target token t (those of a linked token add up to 1) and a[t, s] the attention of the step
that predicts t, averaged over the heads of the layer, the term is - sum A log a, over the update's target
tokens, times a weight. As in Garg et al. (2019) the layer is the last but one unless another is named, and
0.05 is a usual weight. The model stays as it is; target tokens without links add nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transduce.counts import counted
from transduce.data.links import Rows, TokenLinks, WordsOfTokens
from transduce.data.prepare import Prepared
from transduce.data.shards import TokenShards
from transduce.decoding.alignment import guided_layer
from transduce.errors import ConfigError
from transduce.model.transformer import Transformer
from transduce.training.config import TrainingConfig

# Below this an attention weight counts as this much, so that no logarithm is infinite.
LEAST = 1e-9


@dataclass(frozen=True)
class Guide:
    """The links of a batch on its device, for decoder layer ``layer`` (from 1); ``weight`` is the term's."""

    rows: Int[Tensor, " links"]
    targets: Int[Tensor, " links"]
    sources: Int[Tensor, " links"]
    shares: Float[Tensor, " links"]
    layer: int
    weight: float

    @classmethod
    def of(cls, links: TokenLinks, device: str, *, layer: int, weight: float) -> Guide:
        """The links as tensors."""
        rows, targets, sources, shares = (torch.from_numpy(part).to(device) for part in links)
        return cls(rows, targets, sources, shares, layer, weight)

    def attention(self, model: Transformer) -> nn.Module:
        """The attention of the layer to the source."""
        layers: Iterable[Any] = model.decoder.layers
        module: nn.Module = list(layers)[self.layer - 1].cross_attention
        return module

    def loss(self, weights: Float[Tensor, "batch heads target source"]) -> Float[Tensor, ""]:
        """The weighted term, summed over the batch, for what the layer's heads looked at."""
        mean = weights.float().mean(1)
        looked = mean[self.rows, self.targets, self.sources].clamp(min=LEAST)
        return -self.weight * (self.shares * looked.log()).sum()


@dataclass(frozen=True)
class Guided:
    """Makes the guides of a run's batches from the links in its shards."""

    shards: TokenShards
    words: WordsOfTokens
    layer: int
    weight: float
    device: str

    def guide(self, ids: Sequence[int], sources: Rows = (), targets: Rows = ()) -> Guide:
        """The guide of these pairs, whose ids are those of the shards unless they are given."""
        sources = sources or [self.shards.source(index) for index in ids]
        targets = targets or [self.shards.target(index) for index in ids]
        links = self.words.token_links(sources, targets, [self.shards.links(index) for index in ids])
        return Guide.of(links, self.device, layer=self.layer, weight=self.weight)


def guided(data: Prepared, model: Transformer, config: TrainingConfig) -> Guided | None:
    """What guides the attention in a run; None where there are no alignments."""
    if not data.train.aligned:
        return None
    for name in ("compile", "recompute_layers"):
        if getattr(config, name):
            raise ConfigError(
                f"training.{name} is on, but alignments guide a layer whose attention is read while it "
                "works; leave out one of them"
            )
    layers = model.config.decoder_layers
    if config.guided_layer > layers:
        raise ConfigError(
            f"training.guided_layer is {config.guided_layer}, but the decoder has "
            f"{counted(layers, 'layer')}; choose 1 to {layers}, or 0 for the last but one"
        )
    layer = guided_layer(config.guided_layer, layers)
    device = str(next(model.parameters()).device)
    return Guided(data.train, WordsOfTokens(data.tokenizer), layer, config.guided_weight, device)
