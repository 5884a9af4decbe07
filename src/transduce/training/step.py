"""One update: gradients of the loss per target token, then Adam. Straight-line code."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transduce.model.transformer import Transformer
from transduce.training.config import TrainingConfig
from transduce.training.loss import smoothed_cross_entropy


@dataclass(frozen=True)
class Batch:
    """Source and shifted target ids on the model's device, padded at the end."""

    source: Int[Tensor, "batch source"]
    target_in: Int[Tensor, "batch target"]
    target_out: Int[Tensor, "batch target"]
    source_tokens: int
    target_tokens: int


@dataclass(frozen=True)
class Updated:
    """What one update saw: sums over its target tokens, and the length of the whole gradient."""

    smoothed: float
    nll: float
    source_tokens: int
    target_tokens: int
    gradient_norm: float
    finite: bool


def precision_context(device: str, precision: str) -> AbstractContextManager[Any]:
    """Autocast to bfloat16 where ``precision`` is "bf16"; the parameters stay in float32."""
    if precision == "bf16":
        return torch.autocast(torch.device(device).type, dtype=torch.bfloat16)
    return nullcontext()


def batch_loss(
    model: Transformer, batch: Batch, *, smoothing: float, scale: float
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """The smoothed loss, summed over the batch's target tokens and times ``scale``, and the plain NLL."""
    features, _ = model.features(batch.target_in, model.start(batch.source))
    loss = smoothed_cross_entropy(
        features,
        model.embeddings.output,
        batch.target_out,
        smoothing=smoothing,
        pad_id=model.config.pad_id,
        scale=scale,
    )
    return loss.smoothed, loss.nll


def update(
    model: Transformer,
    optimizer: torch.optim.Optimizer,
    micro_batches: Sequence[Batch],
    config: TrainingConfig,
    *,
    rate: float,
    precision: str,
) -> Updated:
    """What the update saw; the parameters have moved unless a loss or gradient was not finite.

    The loss is divided by the target tokens of all micro-batches before any backward pass, so that neither
    splitting a batch nor the padding in it changes the gradient.
    """
    tokens = sum(batch.target_tokens for batch in micro_batches)
    smoothed, nll = 0.0, 0.0
    for batch in micro_batches:
        with precision_context(str(batch.source.device), precision):
            loss, plain = batch_loss(model, batch, smoothing=config.label_smoothing, scale=1.0 / tokens)
        loss.backward()  # type: ignore[no-untyped-call]
        smoothed += float(loss.detach()) * tokens
        nll += float(plain)
        del loss, plain  # what hangs on them would lie beside the next micro-batch
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    finite = bool(torch.isfinite(norm)) and smoothed == smoothed and abs(smoothed) != float("inf")
    if finite:
        if config.clip_norm:
            torch.nn.utils.clip_grads_with_norm_(model.parameters(), config.clip_norm, norm)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
    optimizer.zero_grad()
    return Updated(smoothed, nll, sum(b.source_tokens for b in micro_batches), tokens, float(norm), finite)
