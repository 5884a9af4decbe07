"""Activation checkpointing: less is kept for the backward pass, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from transduce.model.transformer import Transformer

SmallModel = Callable[..., Transformer]


def _gradients(model: Transformer, *, recompute: bool) -> tuple[list[Tensor], int]:
    """All gradients of one loss with dropout on, and the bytes that were kept for the backward pass."""
    model.train()
    model.recompute(recompute)
    torch.manual_seed(5)
    source, target = torch.randint(4, 23, (3, 9)), torch.randint(4, 23, (3, 8))
    source[1, 6:] = 0
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = model(source, target).logsumexp(-1).sum()
    model.zero_grad()
    loss.backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None], sum(kept.values())


@pytest.mark.parametrize("settings", [{}, {"norm": "pre", "positions": "rotary", "attention_dropout": 0.2}])
def test_gradients_are_bit_identical_and_less_is_kept(
    small_model: SmallModel, settings: dict[str, Any]
) -> None:
    model = small_model(dropout=0.3, **settings)
    plain, kept = _gradients(model, recompute=False)
    again, kept_again = _gradients(model, recompute=True)
    assert len(plain) == len(list(model.parameters()))
    assert all(torch.equal(one, other) for one, other in zip(plain, again, strict=True))
    assert kept_again < 0.7 * kept


def test_translation_is_left_alone(small_model: SmallModel) -> None:
    model = small_model()
    source, target = torch.randint(4, 23, (2, 5)), torch.randint(4, 23, (2, 4))
    with torch.inference_mode():
        plain = model(source, target)
        model.recompute()
        assert torch.equal(model(source, target), plain)
