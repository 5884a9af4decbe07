"""Before step 1: does the largest micro-batch that can come fit in memory? And which one would?

A trial is one update with the learning rate 0 of the largest shape that the batcher can produce. Weights,
optimizer and random state are afterwards as before. An accelerator says that it is full; on a CPU the kernel
may kill the process instead, so that there the need is first foretold from two small forward passes.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from transduce import machine
from transduce.counts import counted
from transduce.data.batching import Batching
from transduce.errors import ConfigError
from transduce.model.transformer import Transformer
from transduce.training.config import TrainingConfig
from transduce.training.distributed import ALONE, Workers
from transduce.training.memory import out_of_memory, release
from transduce.training.precision import precision_context
from transduce.training.step import Batch, Learner, batch_loss, update

Shape = tuple[int, int, int]
# By how much what a process takes exceeds what its forward passes keep, as measured with glibc: tensors that
# are soon gone again; and from the second micro-batch on, the gaps that the first one's left.
WORKSPACE, WORKSPACE_REPEATED = 1.3, 1.9


class Trial:
    """Trial updates of ``model``, whose optimizer has no state yet.

    Several ``workers`` try at the same moment, each for itself, and then agree: what does not fit on one of
    them fits on none.
    """

    def __init__(
        self,
        model: Transformer,
        optimizer: torch.optim.Optimizer,
        batching: Batching,
        config: TrainingConfig,
        *,
        precision: str,
        workers: Workers = ALONE,
    ) -> None:
        self.workers = workers
        self.model, self.optimizer, self.config, self.precision = model, optimizer, config, precision
        self.device = next(model.parameters()).device
        self.batching = batching
        self._kept: tuple[int, int] | None = None

    def shape(self, budget: int) -> Shape:
        """Rows, source and target length that no micro-batch of ``budget`` tokens exceeds in any respect.

        The longest pairs, and a row more than the budget has room for: so it has at least as many positions
        as any micro-batch, and each of them attends to at least as many.
        """
        _, source, target = self.batching.largest_shapes()[0]
        rows = -(-budget // max(source, target))
        return min(len(self.batching.source_lengths), rows), source, target

    def fits(self, budget: int) -> bool:
        """Whether an update with micro-batches of ``budget`` tokens fits in memory."""
        free = machine.free_memory() if self.device.type == "cpu" else None
        # Those of one host share its memory; and none may take some while another still asks what is free.
        short = free is not None and self.needed(budget) * self.workers.local_count > free
        if self._anywhere(short):
            return False
        return not self._anywhere(not self.attempt(self.shape(budget), repeated=self._repeated(budget)))

    def _anywhere(self, here: bool) -> bool:
        return self.workers.total(float(here))[0] > 0

    def _repeated(self, budget: int) -> bool:
        """Whether an update gathers several micro-batches."""
        return budget < self.batching.batch_tokens

    def attempt(self, shape: Shape, *, repeated: bool) -> bool:
        """Whether an update with a micro-batch of this shape went through; it leaves no trace.

        With ``repeated`` there are two of them: the second is worked on beside the gradients of the first.
        """
        release(str(self.device))
        self.model.train()
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            try:
                size = self.model.parameter_count() if self.workers.count > 1 else 0
                buckets = torch.empty(size, device=self.device)  # DDP's, which are not here yet
                fits = self.update(Learner(self.model), self.optimizer, shape, repeated=repeated)
                del buckets
                return fits
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                return False
            finally:
                self.optimizer.zero_grad()
                self.optimizer.state.clear()

    def update(
        self, learner: Learner, optimizer: torch.optim.Optimizer, shape: Shape, *, repeated: bool
    ) -> bool:
        """Whether an update of ``learner`` fits beside Adam's moments, which all but the first find there."""
        for parameter in learner.model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step()  # of rate 0 and gradient 0: it makes the moments and moves nothing
        optimizer.zero_grad()
        batches = [self._batch(shape)] * (2 if repeated else 1)
        seen = update(
            learner.model,
            optimizer,
            batches,
            self.config,
            rate=0.0,
            precision=self.precision,
            learner=learner,
        )
        return not seen.full

    def needed(self, budget: int) -> float:
        """About the bytes that the largest shape takes: foretold from what one and two of its rows keep."""
        rows, source, target = self.shape(budget)
        if self._kept is None:
            one, two = (self._kept_by((n, source, target)) for n in (1, 2))
            self._kept = one, two - one
        fixed, more = self._kept
        factor = WORKSPACE_REPEATED if self._repeated(budget) else WORKSPACE
        return self.held() + factor * (fixed + more * (rows - 1))

    def held(self) -> float:
        """Bytes beside the model and what a forward pass keeps: gradients, Adam's moments, DDP's buckets."""
        return (12.0 if self.workers.count == 1 else 16.0) * self.model.parameter_count()

    def _kept_by(self, shape: Shape) -> int:
        """Bytes that a forward pass keeps for the backward pass, parameters apart."""
        found: dict[int, int] = {}

        def keep(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
            return tensor.detach()

        self.model.train()
        batch = self._batch(shape)
        hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
        with torch.random.fork_rng(devices=[]), hooks, precision_context(str(self.device), self.precision):
            loss, _ = batch_loss(self.model, batch, smoothing=self.config.label_smoothing, scale=1.0)
        parameters = {parameter.untyped_storage().data_ptr() for parameter in self.model.parameters()}
        total = sum(size for place, size in found.items() if place not in parameters)
        del loss  # with it go the tensors whose places were told apart
        return total

    def _batch(self, shape: Shape) -> Batch:
        rows, source, target = shape
        # Any token will do: memory depends on the shape, and padding would be left out of the loss.
        token = self.model.config.eos_id
        ids = [torch.full((rows, length), token, device=self.device) for length in (source, target)]
        return Batch(ids[0], ids[1], ids[1], rows * source, rows * target)


def try_largest(trial: Trial, budget: int) -> None:
    """Nothing; raises ConfigError where micro-batches of ``budget`` tokens do not fit, naming what would."""
    if trial.fits(budget):
        return
    rows, source, target = trial.shape(budget)
    least = max(source, target)
    fitting = largest_that_fits(trial.fits, least, budget // 2)
    remedy = (
        f"use training.micro_batch_tokens={fitting} (or --batch auto), which fits"
        if fitting
        else f"not even one pair of {counted(least, 'token')} fits: use a smaller model or data.max_length"
    )
    raise ConfigError(
        f"training.micro_batch_tokens is {budget}, but an update of {counted(rows, 'pair')} of {source} and "
        f"{counted(target, 'token')} does not fit in the memory of {trial.device}; {remedy}"
    )


def fitting_micro_batch(trial: Trial) -> int:
    """The most micro-batch tokens, up to those of an update, that fit; ConfigError where none do."""
    _, source, target = trial.shape(1)
    least = max(source, target)
    fitting = largest_that_fits(trial.fits, least, max(least, trial.batching.batch_tokens))
    if not fitting:
        try_largest(trial, least)
    return fitting


def largest_that_fits(fits: Callable[[int], bool], least: int, most: int) -> int:
    """The largest number from ``least`` to ``most`` that ``fits``, to within a sixteenth; 0 if none does.

    What fits is taken to fit for all that is smaller. The largest is tried first, then halves, then between.
    """
    high = max(least, most)
    if fits(high):
        return high
    low = high // 2
    while low > least and not fits(low):
        high, low = low, low // 2
    if low <= least:
        low = least
        if high == low or not fits(low):
            return 0
    while high - low > max(1, low // 16):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
