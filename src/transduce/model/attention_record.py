"""Attention weights (equation 1) read while the model runs: it is not touched and gives the same bits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from transduce.model.attention import MultiHeadAttention


@contextmanager
def recorded_weights(modules: Iterable[nn.Module]) -> Iterator[dict[nn.Module, Tensor]]:
    """What each of the attention ``modules`` weighed its values by when it was last called meanwhile.

    The values are [batch, heads, queries, keys]; their rows sum to 1.
    """
    weights: dict[nn.Module, Tensor] = {}

    def record(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        assert isinstance(module, MultiHeadAttention)
        weights[module] = module.weights(*arguments)

    handles = [module.register_forward_pre_hook(record) for module in modules]
    try:
        yield weights
    finally:
        for handle in handles:
            handle.remove()
