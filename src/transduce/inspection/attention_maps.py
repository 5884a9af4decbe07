"""Where each head looks (Figures 3 to 5), read through hooks: the model itself is not touched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from transduce.bundle import Bundle
from transduce.model.attention import MultiHeadAttention
from transduce.model.attention_record import recorded_weights
from transduce.model.transformer import Transformer

KINDS = ("encoder", "decoder", "cross")
"""The kinds of attention: the encoder's and the decoder's to themselves, and the decoder's to the source."""


@dataclass(frozen=True)
class AttentionMaps:
    """The weights of every layer and head for one pair; each row sums to 1.

    Row t of ``decoder`` and ``cross`` belongs to the step that predicts ``target_out[t]`` from
    ``target_in[t]``; the labels are the subwords, ends included.
    """

    encoder: Float[Tensor, "encoder_layers heads source source"]
    decoder: Float[Tensor, "layers heads target target"]
    cross: Float[Tensor, "layers heads target source"]
    source: tuple[str, ...]
    target_in: tuple[str, ...]
    target_out: tuple[str, ...]


def attentions(model: Transformer) -> dict[str, list[MultiHeadAttention]]:
    """The attention modules of each of `KINDS`, layer by layer."""
    encoder: Iterable[Any] = model.encoder.layers
    decoder: Iterable[Any] = model.decoder.layers
    return {
        "encoder": [layer.self_attention for layer in encoder],
        "decoder": [layer.self_attention for layer in decoder],
        "cross": [layer.cross_attention for layer in decoder],
    }


@torch.inference_mode()
def attention_maps(bundle: Bundle, source: str, target: str, *, tags: Sequence[int] = ()) -> AttentionMaps:
    """The attention of the model while it reads ``source`` and is given ``target``.

    ``tags`` are the ids in front of the source by which a model of several languages is asked for one.
    """
    model, tokenizer = bundle.model, bundle.tokenizer
    config, device = model.config, next(model.parameters()).device
    parts = attentions(model)
    source_ids = [*tags, *tokenizer.encode(source), config.eos_id]
    target_out = [*tokenizer.encode_target(target), config.eos_id]
    target_in = [config.start_id, *target_out[:-1]]
    training = model.training
    model.eval()
    try:
        with recorded_weights(module for modules in parts.values() for module in modules) as recorded:
            model(torch.tensor([source_ids], device=device), torch.tensor([target_in], device=device))
    finally:
        model.train(training)
    maps = {
        name: torch.stack([recorded[module][0].float().cpu() for module in modules])
        for name, modules in parts.items()
    }
    return AttentionMaps(
        **maps,
        source=tuple(map(tokenizer.piece, source_ids)),
        target_in=("<start>", *map(tokenizer.piece, target_in[1:])),
        target_out=tuple(map(tokenizer.piece, target_out)),
    )
