"""Updates that are skipped: said, counted, and after three in a row the end of the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from transduce.errors import TrainingError
from transduce.model.transformer import Transformer
from transduce.training.checkpoint import Checkpoints
from transduce.training.finite import first_offender
from transduce.training.report import Progress
from transduce.training.sharding import whole
from transduce.training.step import Batch, Updated

if TYPE_CHECKING:
    from transduce.training.trainer import Trainer

LIMIT = 3


def note_skipped(trainer: Trainer, batches: Sequence[Batch], updated: Updated | None) -> None:
    """Nothing; the update that was just skipped is logged and counted. Raises TrainingError at the third.

    ``updated`` is None where the update did not fit in memory, else its loss or gradient was not finite.
    """
    p, log = trainer.progress, trainer.log
    p.skipped_in_a_row += 1
    if updated is None:
        p.out_of_memory += 1
        largest = max(batches, key=lambda batch: batch.source.numel() + batch.target_in.numel())
        sizes = [*largest.source.shape, largest.target_in.shape[1]]
        log.write("out-of-memory", {"step": p.step, "count": p.out_of_memory, "shape": sizes})
        what, remedy = "memory ran out", "lower training.micro_batch_tokens, or free memory"
        log.say(
            f"step {p.step:,}: out of memory with {sizes[0]} pairs of {sizes[1]} and {sizes[2]} tokens; this "
            f"update was skipped ({p.out_of_memory:,} so far)"
        )
    else:
        p.non_finite += 1
        # To find it in a model of which each worker holds a part, all would have to look at the same moment.
        sharded = trainer.workers.count > 1 and trainer.config.parallel == "sharded"
        first = (
            "somewhere in the sharded model"
            if sharded
            else first_offender(trainer.model, batches, trainer.config, precision=trainer.precision)
        )
        log.write("non-finite", {"step": p.step, "count": p.non_finite, "first": first})
        what, remedy = "loss or gradient was not finite", "lower training.rate or use training.precision=fp32"
        log.say(
            f"step {p.step:,}: loss or gradient is not finite, first {first}; this update was skipped "
            f"({p.non_finite:,} so far)"
        )
    if p.skipped_in_a_row >= LIMIT:
        newest = trainer.checkpoints.newest()
        raise TrainingError(
            f"{what} in {LIMIT} updates in a row, up to step {p.step}; {remedy}, then "
            f"--resume --accept-changes (last good: {newest or 'none'})"
        )


def finite_weights(model: Transformer, checkpoints: Checkpoints, p: Progress, *, final: bool) -> bool:
    """Whether ``model`` may be saved; raises TrainingError where it may not although the run is over.

    A skipped update leaves the weights alone, so only weights that were broken before it can be at fault.
    """
    if all(bool(whole(torch.isfinite(parameter).all())) for parameter in model.parameters()):
        return True
    if final:
        raise TrainingError(
            f"weights are not finite at step {p.step}, so they are not saved; go on from the last good "
            f"checkpoint with --resume: {checkpoints.newest() or 'none'}"
        )
    return False
