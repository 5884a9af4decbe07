"""Updates that are skipped: said, counted, and after three in a row the end of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from transduce.counts import counted
from transduce.errors import TrainingError
from transduce.model.transformer import Transformer
from transduce.training.checkpoint import Checkpoints
from transduce.training.finite import first_offender
from transduce.training.report import Progress
from transduce.training.sharding import whole
from transduce.training.step import Updated
from transduce.training.underway import Underway

if TYPE_CHECKING:
    from transduce.training.trainer import Trainer

LIMIT = 3


def note_skipped(trainer: Trainer, underway: Underway, updated: Updated) -> None:
    """Nothing; the update that was skipped is logged and counted. Raises TrainingError at the third."""
    p = trainer.progress
    p.skipped_in_a_row += 1
    what, remedy = (_note_full if updated.full else _note_not_finite)(trainer, underway, updated)
    if p.skipped_in_a_row >= LIMIT:
        newest = trainer.checkpoints.newest()
        raise TrainingError(
            f"{what} in {LIMIT} updates in a row, up to step {underway.step}; {remedy}, then "
            f"--resume --accept-changes (last good: {newest or 'none'})"
        )


def _note_full(trainer: Trainer, underway: Underway, updated: Updated) -> tuple[str, str]:
    p, workers, batching = trainer.progress, trainer.workers.count, trainer.batching
    p.out_of_memory += 1
    shapes = [
        [len(ids), int(batching.source_lengths[ids].max()), int(batching.target_lengths[ids].max())]
        for ids in underway.ids
    ]
    sizes = max(shapes, key=lambda shape: shape[0] * (shape[1] + shape[2]))
    event = {"step": underway.step, "count": p.out_of_memory, "shape": sizes}
    trainer.log.write("out-of-memory", {**event, **({"workers": updated.full} if workers > 1 else {})})
    trainer.log.say(
        f"step {underway.step:,}: out of memory with {counted(sizes[0], 'pair')} of {sizes[1]} and "
        f"{counted(sizes[2], 'token')}"
        f"{f' on {updated.full} of {workers} workers' if workers > 1 else ''}; this update was skipped "
        f"({p.out_of_memory:,} so far)"
    )
    return "memory ran out", "lower training.micro_batch_tokens, or free memory"


def _note_not_finite(trainer: Trainer, underway: Underway, _: Updated) -> tuple[str, str]:
    p = trainer.progress
    p.non_finite += 1
    # To find it in a model of which each worker holds a part, all would have to look at the same moment.
    sharded = trainer.workers.count > 1 and trainer.config.parallel == "sharded"
    first = (
        "somewhere in the sharded model"
        if sharded
        else first_offender(trainer.model, underway.batches, trainer.config, precision=trainer.precision)
    )
    trainer.log.write("non-finite", {"step": underway.step, "count": p.non_finite, "first": first})
    trainer.log.say(
        f"step {underway.step:,}: loss or gradient is not finite, first {first}; this update was skipped "
        f"({p.non_finite:,} so far)"
    )
    return "loss or gradient was not finite", "lower training.rate or use training.precision=fp32"


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
