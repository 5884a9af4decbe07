"""What all systems of `training_systems.py` share: the loop that a user writes around a model."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from transduce.model.config import ModelConfig
from transduce.training.precision import precision_context
from transduce.training.step import Batch

SMOOTHING, RATE = 0.1, 1e-4


@dataclass(frozen=True)
class Training:
    """A model in training: ``step`` gives the loss per real target token of a batch, one update later."""

    parameters: int
    step: Callable[[Batch], Tensor]


Maker = Callable[[ModelConfig, str], Training]


def looped(
    model: nn.Module,
    loss: Callable[[Batch], Tensor],
    precision: str,
    context: Callable[[], AbstractContextManager[Any]] | None = None,
) -> Training:
    """``model`` in the loop of its users: its own ``loss`` per target token, backward, fused Adam.

    Not all of the peers' trainers ask for PyTorch's fused Adam; all of them get it here. None clips.
    ``context``: what the loss is computed in, where plain autocast at that precision will not do.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-9, fused=True)
    model.train()

    def step(batch: Batch) -> Tensor:
        with context() if context else precision_context("cpu", precision):
            value = loss(batch)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        return value.detach()

    return Training(sum(p.numel() for p in model.parameters() if p.requires_grad), step)


def opened(batch: Batch, config: ModelConfig) -> Tensor:
    """``target_in`` that begins with an id of its own: who masks padding would mask ours, which is 0."""
    target_in = batch.target_in.clone()
    target_in[:, 0] = config.bos_id
    return target_in
