"""How large activations and gradients are, layer by layer: what post-norm and pre-norm change (3.1)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor, nn

from transduce.model.transformer import Transformer


class LayerNorms(NamedTuple):
    """One layer of one stack, counted from 1.

    ``activation`` is the root mean square of its output, ``update`` that of what its sub-layers add to its
    input over that of the input, ``gradient`` the length of the loss's gradient by its parameters.
    """

    stack: str
    layer: int
    activation: float
    update: float
    gradient: float


def layer_norms(
    model: Transformer, source: Int[Tensor, "batch source"], target_in: Tensor, target_out: Tensor
) -> list[LayerNorms]:
    """The norms of every layer for one batch, by the mean loss of its target tokens, without dropout.

    Parameters and their gradients stay as they are.
    """
    stacks: dict[str, Iterable[Any]] = {"encoder": model.encoder.layers, "decoder": model.decoder.layers}
    layers = [(name, i + 1, layer) for name, of in stacks.items() for i, layer in enumerate(of)]
    seen: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def note(layer: nn.Module, arguments: tuple[Any, ...], output: Any) -> None:
        seen[layer] = arguments[0].detach(), (output[0] if isinstance(output, tuple) else output).detach()

    training = model.training
    model.eval()
    try:
        with ExitStack() as stack, torch.enable_grad():
            for _, _, layer in layers:
                stack.callback(layer.register_forward_hook(note).remove)
            logits = model(source, target_in)
            loss = nn.functional.cross_entropy(
                logits.transpose(1, 2), target_out, ignore_index=model.config.pad_id
            )
            parameters = {layer: list(layer.parameters()) for _, _, layer in layers}
            flat = [parameter for own in parameters.values() for parameter in own]
            gradients = iter(torch.autograd.grad(loss, flat))
    finally:
        model.train(training)
    lengths = {
        layer: float(torch.stack([next(gradients).norm() for _ in own]).norm())
        for layer, own in parameters.items()
    }
    return [
        LayerNorms(
            name,
            number,
            _rms(seen[layer][1]),
            _rms(seen[layer][1] - seen[layer][0]) / _rms(seen[layer][0]),
            lengths[layer],
        )
        for name, number, layer in layers
    ]


def _rms(x: Tensor) -> float:
    return float(x.square().mean().sqrt())
