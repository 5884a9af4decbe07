"""One update: gradients of the loss per target token, then Adam. Straight-line code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transduce.model.attention_record import recorded_weights
from transduce.model.transformer import Transformer
from transduce.training.compiled import CompiledLayers
from transduce.training.config import TrainingConfig
from transduce.training.distributed import ALONE, Workers
from transduce.training.guided import Guide
from transduce.training.loss import smoothed_cross_entropy
from transduce.training.memory import out_of_memory, release
from transduce.training.precision import precision_context
from transduce.training.sharding import whole


@dataclass(frozen=True)
class Batch:
    """Source and shifted target ids on the model's device, padded at the end.

    ``seed`` is what its dropout masks are drawn from; None goes on with torch's default generator. ``guide``
    says where a layer's attention is to look, if anywhere.
    """

    source: Int[Tensor, "batch source"]
    target_in: Int[Tensor, "batch target"]
    target_out: Int[Tensor, "batch target"]
    source_tokens: int
    target_tokens: int
    seed: int | None = None
    guide: Guide | None = None


@dataclass(frozen=True)
class Updated:
    """What one update saw: sums over its target tokens, and the length of the whole gradient.

    ``full`` counts the workers that ran out of memory; then the other numbers mean nothing.
    """

    smoothed: float
    nll: float
    source_tokens: int
    target_tokens: int
    gradient_norm: float
    finite: bool
    full: int = 0

    @property
    def moved(self) -> bool:
        """Whether the parameters have moved."""
        return self.finite and not self.full


class Begun:
    """An update that a GPU may still be working on; ``moves`` is 1 where the parameters move, else 0.

    ``numbers`` are the smoothed loss, the plain one, the workers that ran out of memory, and the norm.
    """

    def __init__(self, numbers: Float[Tensor, " 4"], source_tokens: int, target_tokens: int) -> None:
        self.tokens = source_tokens, target_tokens
        smoothed, _, full, norm = numbers.unbind()
        self.moves = (torch.isfinite(smoothed) & torch.isfinite(norm) & (full == 0)).float()
        self._arrived: torch.cuda.Event | None = None
        self._numbers = numbers
        if numbers.is_cuda:
            # Sent for at once: a later copy would wait for all that is begun in between.
            self._numbers = torch.empty(4, dtype=numbers.dtype, pin_memory=True)
            self._numbers.copy_(numbers, non_blocking=True)
            self._arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._arrived.record()

    def read(self) -> Updated:
        """What the update saw; waits until the device has it."""
        if self._arrived is not None:
            self._arrived.synchronize()
        smoothed, nll, full, norm = self._numbers.tolist()
        finite = math.isfinite(norm) and math.isfinite(smoothed)
        return Updated(smoothed, nll, *self.tokens, norm, finite, int(full))


def batch_loss(
    model: Transformer, batch: Batch, *, smoothing: float, scale: float
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """The smoothed loss, summed over the batch's target tokens and times ``scale``, and the plain NLL.

    Where the batch has a guide, its term is part of the first.
    """
    attention = [batch.guide.attention(model)] if batch.guide is not None else []
    with recorded_weights(attention) as recorded:  # of no module, where nothing guides
        features, _ = model.features(batch.target_in, model.start(batch.source))
    loss = smoothed_cross_entropy(
        *model.embeddings.factors(features),
        batch.target_out,
        smoothing=smoothing,
        pad_id=model.config.pad_id,
        scale=scale,
    )
    if batch.guide is None:
        return loss.smoothed, loss.nll
    return loss.smoothed + batch.guide.loss(recorded[attention[0]]) * scale, loss.nll


class Learner:
    """A model that learns in this process alone; `parallel.py` has those that learn together.

    ``ahead``: whether an update moves the parameters is decided on the device, so that the host can begin the
    next one before it knows.
    """

    def __init__(self, model: Transformer, workers: Workers = ALONE) -> None:
        self.model, self.workers = model, workers
        self.ahead = next(model.parameters()).is_cuda
        self.compiled: CompiledLayers | None = None

    def losses(
        self, batch: Batch, *, smoothing: float, scale: float
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """What `batch_loss` gives for this worker's ``batch``; backward averages over the workers."""
        return batch_loss(self.model, batch, smoothing=smoothing, scale=scale)

    def accumulating(self, *, last: bool) -> AbstractContextManager[None]:
        """The context of one part's forward and backward pass."""
        return nullcontext()

    def in_place(self) -> AbstractContextManager[None]:
        """The context in which the layers are those that training uses: compiled, if any are."""
        return nullcontext() if self.compiled is None else self.compiled.in_place()

    def make_up(self) -> None:
        """Nothing; after a pass that memory was too short for, the other workers have what they wait for."""

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
    """What the update saw: `begin_update`, and waiting for the result."""
    learner = learner or Learner(model)
    return begin_update(
        learner, optimizer, micro_batches, config, rate=rate, precision=precision, totals=totals
    ).read()


def begin_update(
    learner: Learner,
    optimizer: torch.optim.Optimizer,
    micro_batches: Sequence[Batch],
    config: TrainingConfig,
    *,
    rate: float,
    precision: str,
    totals: tuple[int, int] | None = None,
) -> Begun:
    """The update; the parameters move unless a loss or gradient is not finite or memory runs out on a worker.

    The loss is divided by the target tokens of all micro-batches, those of other workers included, before any
    backward pass, so that neither splitting a batch nor the padding in it changes the gradient. ``totals``
    are the update's source and target tokens, where ``micro_batches`` are only this worker's.
    """
    source_tokens, tokens = totals or (
        sum(batch.source_tokens for batch in micro_batches),
        sum(batch.target_tokens for batch in micro_batches),
    )
    device = micro_batches[0].source.device
    losses: Tensor | None = None
    try:
        losses = _passes(learner, micro_batches, config, tokens=tokens, precision=precision)
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
    if losses is None:  # not in the handler: the error would keep the tensors of the failed pass alive
        release(str(device))
        learner.make_up()
        losses = torch.tensor([0.0, 0.0, 1.0], dtype=_wide(device), device=device)
    losses = learner.workers.summed(losses)
    parameters = list(learner.model.parameters())
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = whole(torch.nn.utils.get_total_norm(gradients)).to(device)
    begun = Begun(torch.cat([losses, norm.to(losses.dtype)[None]]), source_tokens, tokens)
    if learner.ahead or begun.read().moved:
        if config.clip_norm:
            torch.nn.utils.clip_grads_with_norm_(parameters, config.clip_norm, norm)
        for group in optimizer.param_groups:
            group["lr"] = rate
        _step(optimizer, begun.moves if learner.ahead else None)
    optimizer.zero_grad()
    return begun


def _passes(
    learner: Learner, micro_batches: Sequence[Batch], config: TrainingConfig, *, tokens: int, precision: str
) -> Float[Tensor, " 3"]:
    """The smoothed loss, the plain one and 0 on the device; the gradients are there."""
    workers, wide = learner.workers.count, _wide(micro_batches[0].source.device)
    smoothed = nll = torch.zeros((), dtype=wide, device=micro_batches[0].source.device)
    for number, batch in enumerate(micro_batches, 1):
        if batch.seed is not None:
            torch.manual_seed(batch.seed)
        # The workers' gradients will be averaged, so each is their number times too large until then.
        scale = workers / tokens if batch.target_tokens else 0.0
        with learner.accumulating(last=number == len(micro_batches)), learner.in_place():
            with precision_context(str(batch.source.device), precision):
                loss, plain = learner.losses(batch, smoothing=config.label_smoothing, scale=scale)
            loss.backward()  # type: ignore[no-untyped-call]
        smoothed = smoothed + loss.detach().to(wide) * tokens / workers
        if batch.target_tokens:
            nll = nll + plain.to(wide)
        del loss, plain  # what hangs on them would lie beside the next micro-batch
    return torch.stack([smoothed, nll, torch.zeros_like(nll)])


def _wide(device: torch.device) -> torch.dtype:
    """In which losses are summed: Apple's GPUs have no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def _step(optimizer: torch.optim.Optimizer, moves: Tensor | None) -> None:
    """Nothing; the parameters have moved, or will have where ``moves`` turns out to be 1.

    PyTorch's fused Adam leaves parameters, moments and counters alone where ``found_inf`` is 1; that is how
    its own GradScaler tells it.
    """
    if moves is None:
        optimizer.step()
        return
    optimizer.found_inf = 1.0 - moves  # type: ignore[attr-defined]
    try:
        optimizer.step()
    finally:
        del optimizer.found_inf  # type: ignore[attr-defined]
