"""Where each head looks (Figures 3 to 5), read through hooks: the model itself is not touched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from transduce.bundle import Bundle
from transduce.model.attention import MultiHeadAttention


@dataclass(frozen=True)
class AttentionMaps:
    """The weights of every layer and head for one pair; each row sums to 1.

    Row t of ``decoder`` and ``cross`` belongs to the step that predicts ``target_out[t]`` from
    ``target_in[t]``; the labels are the subwords, ends included.
    """

    encoder: Float[Tensor, "layers heads source source"]
    decoder: Float[Tensor, "layers heads target target"]
    cross: Float[Tensor, "layers heads target source"]
    source: tuple[str, ...]
    target_in: tuple[str, ...]
    target_out: tuple[str, ...]


@torch.inference_mode()
def attention_maps(bundle: Bundle, source: str, target: str) -> AttentionMaps:
    """The attention of the model while it reads ``source`` and is given ``target``."""
    model, tokenizer = bundle.model, bundle.tokenizer
    config, device = model.config, next(model.parameters()).device
    source_ids = [*tokenizer.encode(source), config.eos_id]
    target_out = [*tokenizer.encode(target), config.eos_id]
    target_in = [config.start_id, *target_out[:-1]]
    training = model.training
    model.eval()
    try:
        with _recorded(model) as recorded:
            model(torch.tensor([source_ids], device=device), torch.tensor([target_in], device=device))
    finally:
        model.train(training)
    layers = model.decoder.layers
    return AttentionMaps(
        encoder=torch.stack([recorded[layer.self_attention] for layer in model.encoder.layers]),
        decoder=torch.stack([recorded[layer.self_attention] for layer in layers]),
        cross=torch.stack([recorded[layer.cross_attention] for layer in layers]),
        source=tuple(map(tokenizer.piece, source_ids)),
        target_in=("<start>", *map(tokenizer.piece, target_in[1:])),
        target_out=tuple(map(tokenizer.piece, target_out)),
    )


@contextmanager
def _recorded(model: torch.nn.Module) -> Iterator[dict[Any, Tensor]]:
    weights: dict[Any, Tensor] = {}

    def record(module: MultiHeadAttention, arguments: tuple[Any, ...]) -> None:
        weights[module] = module.weights(*arguments)[0].float().cpu()

    handles = [
        m.register_forward_pre_hook(record) for m in model.modules() if isinstance(m, MultiHeadAttention)
    ]
    try:
        yield weights
    finally:
        for handle in handles:
            handle.remove()
