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
from transduce.training.distributed import ALONE, Workers
from transduce.training.loss import smoothed_cross_entropy
from transduce.training.sharding import whole


@dataclass(frozen=True)
class Batch:
    """Source and shifted target ids on the model's device, padded at the end.

    ``seed`` is what its dropout masks are drawn from; None goes on with torch's default generator.
    """

    source: Int[Tensor, "batch source"]
    target_in: Int[Tensor, "batch target"]
    target_out: Int[Tensor, "batch target"]
    source_tokens: int
    target_tokens: int
    seed: int | None = None


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


class Learner:
    """A model that learns in this process alone; `parallel.py` has those that learn together."""

    def __init__(self, model: Transformer, workers: Workers = ALONE) -> None:
        self.model, self.workers = model, workers

    def losses(
        self, batch: Batch, *, smoothing: float, scale: float
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """What `batch_loss` gives for this worker's ``batch``; backward averages over the workers."""
        return batch_loss(self.model, batch, smoothing=smoothing, scale=scale)

    def accumulating(self, *, last: bool) -> AbstractContextManager[None]:
        """The context of one part's forward and backward pass."""
        return nullcontext()

    def plain(self) -> Transformer:
        """A model with whole parameters, of whatever values, for worker 0 to fill."""
        return self.model

    def gathered(self) -> Transformer:
        """The model as it stands, whole on worker 0; all workers must ask for it at once."""
        return self.model


def update(
    model: Transformer,
    optimizer: torch.optim.Optimizer,
    micro_batches: Sequence[Batch],
    config: TrainingConfig,
    *,
    rate: float,
    precision: str,
    learner: Learner | None = None,
    totals: tuple[int, int] | None = None,
) -> Updated:
    """What the update saw; the parameters have moved unless a loss or gradient was not finite.

    The loss is divided by the target tokens of all micro-batches, those of other workers included, before any
    backward pass, so that neither splitting a batch nor the padding in it changes the gradient. ``totals``
    are the update's source and target tokens, where ``micro_batches`` are only this worker's.
    """
    learner = learner or Learner(model)
    source_tokens, tokens = totals or (
        sum(batch.source_tokens for batch in micro_batches),
        sum(batch.target_tokens for batch in micro_batches),
    )
    workers = learner.workers.count
    smoothed, nll = 0.0, 0.0
    for number, batch in enumerate(micro_batches, 1):
        if batch.seed is not None:
            torch.manual_seed(batch.seed)
        # The workers' gradients will be averaged, so each is their number times too large until then.
        scale = workers / tokens if batch.target_tokens else 0.0
        with learner.accumulating(last=number == len(micro_batches)):
            with precision_context(str(batch.source.device), precision):
                loss, plain = learner.losses(batch, smoothing=config.label_smoothing, scale=scale)
            loss.backward()  # type: ignore[no-untyped-call]
        smoothed += float(loss.detach()) * tokens / workers
        nll += float(plain) if batch.target_tokens else 0.0
        del loss, plain  # what hangs on them would lie beside the next micro-batch
    smoothed, nll = learner.workers.total(smoothed, nll)
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    norm = whole(torch.nn.utils.get_total_norm(gradients))
    finite = bool(torch.isfinite(norm)) and smoothed == smoothed and abs(smoothed) != float("inf")
    if finite:
        if config.clip_norm:
            torch.nn.utils.clip_grads_with_norm_(model.parameters(), config.clip_norm, norm)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
    optimizer.zero_grad()
    return Updated(smoothed, nll, source_tokens, tokens, float(norm), finite)
