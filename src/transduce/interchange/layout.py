"""Where another toolkit keeps what ours keeps under one name, and dimensions in another order.

The stream of values that layers hand on (d_model wide) may have its dimensions in any order, if all weights
that read or write it have the same: so positions whose sines and cosines are interleaved, as printed in the
paper, become positions in halves, and the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from transduce.errors import BundleError
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer

_READ = (".qkv.weight", ".q.weight", ".kv.weight", ".w_1.weight")
_WRITTEN = (".o.weight", ".o.bias", ".w_2.weight", ".w_2.bias", "norm.weight", "norm.bias")


@dataclass(frozen=True)
class Place:
    """A matrix or vector of ours and what it is made of elsewhere, one below the other."""

    ours: str
    theirs: tuple[str, ...]


def halves(d_model: int) -> Int[Tensor, " d_model"]:
    """Which interleaved dimension stands where in halves: first all sines, then all cosines."""
    return torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])


def reordered(state: Mapping[str, Tensor], order: Int[Tensor, " d_model"]) -> dict[str, Tensor]:
    """The state of the same model with its stream in another order: dimension i is the old ``order[i]``."""
    found = {}
    for name, tensor in state.items():
        if name.endswith(_READ):
            tensor = tensor[:, order]
        elif name.endswith(_WRITTEN):
            tensor = tensor[order]
        elif name.startswith(("embeddings.", "source_positions.", "target_positions.")) and tensor.ndim == 2:
            tensor = tensor[:, order]
        found[name] = tensor
    return found


def bart_places(config: ModelConfig) -> Iterator[Place]:
    """The names of layers in transformers' family of BART, to which Marian and Pegasus belong."""
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for layer in range(layers):
            ours, theirs = f"{side}.layers.{layer}", f"model.{side}.layers.{layer}"
            norms = ["self_attn_layer_norm", "final_layer_norm"]
            if side == "decoder":
                norms.insert(1, "encoder_attn_layer_norm")
                cross = f"{theirs}.encoder_attn"
                yield from _both(f"{ours}.cross_attention.q", f"{cross}.q_proj")
                yield from _both(f"{ours}.cross_attention.kv", f"{cross}.k_proj", f"{cross}.v_proj")
                yield from _both(f"{ours}.cross_attention.o", f"{cross}.out_proj")
            own = f"{theirs}.self_attn"
            yield from _both(f"{ours}.self_attention.qkv", *(f"{own}.{part}_proj" for part in "qkv"))
            yield from _both(f"{ours}.self_attention.o", f"{own}.out_proj")
            yield from _both(f"{ours}.feed_forward.w_1", f"{theirs}.fc1")
            yield from _both(f"{ours}.feed_forward.w_2", f"{theirs}.fc2")
            for number, norm in enumerate(norms, 1):
                yield from _both(f"{ours}.add_norm_{number}.norm", f"{theirs}.{norm}")
        if config.norm == "pre":
            yield from _both(f"{side}.norm", f"model.{side}.layer_norm")


def _both(ours: str, *theirs: str) -> Iterator[Place]:
    for kind in ("weight", "bias"):
        yield Place(f"{ours}.{kind}", tuple(f"{one}.{kind}" for one in theirs))


def given(state: Mapping[str, Tensor], places: Iterator[Place]) -> dict[str, Tensor]:
    """What stands in the other toolkit's places; biases that ours does not have are zeros."""
    found = {}
    for place in places:
        tensor = state.get(place.ours)
        if tensor is None:
            weight = state[place.ours.removesuffix("bias") + "weight"]
            tensor = weight.new_zeros(len(weight))
        for name, part in zip(place.theirs, tensor.chunk(len(place.theirs)), strict=True):
            found[name] = part.contiguous()
    return found


def taken(tensors: Mapping[str, Tensor], places: Iterator[Place], where: object) -> dict[str, Tensor]:
    """The state that stands in the other toolkit's places; BundleError for one that is empty."""
    found = {}
    for place in places:
        for name in place.theirs:
            if name not in tensors:
                raise BundleError(f"{where}: the tensor {name} is missing; was the file cut short?")
        found[place.ours] = torch.cat([tensors[name].float() for name in place.theirs])
    return found


def made(config: ModelConfig, state: Mapping[str, Tensor], where: object) -> Transformer:
    """The model of this configuration with this state; BundleError where a tensor has another shape."""
    with torch.device("meta"):
        model = Transformer(config)
    model = model.to_empty(device="cpu")
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if state[name].shape != tensor.shape:
                shapes = f"{list(state[name].shape)}, expected {list(tensor.shape)}"
                raise BundleError(f"{where}: what becomes {name} has the shape {shapes} by its configuration")
            tensor.copy_(state[name])
    return model.eval()
