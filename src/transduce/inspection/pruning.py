"""A smaller model with the heads that matter most: every attention keeps as many, a plain shape."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transduce.bundle import Bundle
from transduce.errors import UsageError
from transduce.inspection.attention_maps import attentions
from transduce.inspection.cost import shape_of
from transduce.model.attention import MultiHeadAttention

Table = Float[Tensor, "layers heads"]


def kept_heads(importance: Mapping[str, Table], heads: int) -> dict[str, list[list[int]]]:
    """For each kind and layer the ``heads`` most important ones, ascending; among equals the first."""
    return {
        kind: [sorted(row.argsort(descending=True, stable=True)[:heads].tolist()) for row in table]
        for kind, table in importance.items()
    }


def pruned(bundle: Bundle, importance: Mapping[str, Table], heads: int) -> Bundle:
    """A model whose every attention has only its ``heads`` most important heads; d_k and d_v stay.

    It computes what the given model computes with the outputs of the other heads set to zero. Raises
    UsageError where ``heads`` is not between 1 and the model's.
    """
    model = bundle.model
    if not 1 <= heads <= model.config.heads:
        raise UsageError(f"heads is {heads}; every attention has {model.config.heads}: keep 1 to as many")
    config = dataclasses.replace(model.config, heads=heads)
    smaller = shape_of(config).to_empty(device="cpu").eval()
    kept = kept_heads(importance, heads)
    state = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    names = {module: name for name, module in model.named_modules()}
    for kind, modules in attentions(model).items():
        for module, chosen in zip(modules, kept[kind], strict=True):
            for name, tensor in _slices(module, chosen).items():
                state[f"{names[module]}.{name}"] = tensor
    with torch.no_grad():
        for name, tensor in smaller.state_dict().items():
            tensor.copy_(state[name])
    training = {**bundle.training, "pruned": {"heads": heads, "of": model.config.heads, "kept": kept}}
    return Bundle(model=smaller, tokenizer=bundle.tokenizer, training=training)


def _slices(module: MultiHeadAttention, chosen: list[int]) -> dict[str, Tensor]:
    """The module's weights with only the rows (W^O: columns) of the chosen heads."""

    def of(width: int, begin: int = 0) -> list[int]:
        return [begin + head * width + at for head in chosen for at in range(width)]

    wide_k = module.heads * module.d_k
    keys, values = of(module.d_k), of(module.d_v)
    projections: dict[str, tuple[nn.Linear, list[int]]]
    if module.cross:
        projections = {"q": (module.q, keys), "kv": (module.kv, [*keys, *of(module.d_v, wide_k)])}
    else:
        parts = [*keys, *of(module.d_k, wide_k), *of(module.d_v, 2 * wide_k)]
        projections = {"qkv": (module.qkv, parts)}
    found = {"o.weight": module.o.weight.detach()[:, values]}
    for name, (linear, rows) in projections.items():
        found[f"{name}.weight"] = linear.weight.detach()[rows]
        if linear.bias is not None:
            found[f"{name}.bias"] = linear.bias.detach()[rows]
    return found
