"""An update's pairs divided among the workers.

The global update is formed first, the same on every worker, and then divided; the loss is divided by the
update's target tokens on all workers. So a worker more, or a micro-batch less, changes no gradient.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transduce.data.batching import Ids, Update
from transduce.training.distributed import Workers
from transduce.training.step import Batch


@dataclass(frozen=True)
class Part:
    """Pairs for one worker at a time: all or some rows (the ``piece``-th share) of one micro-batch.

    Not ``counted`` is a stand-in of one row, where a worker has nothing to do while others work.
    """

    ids: Ids
    micro_batch: int
    piece: int = 0
    counted: bool = True


def parts(update: Update, rank: int, workers: int) -> list[Part]:
    """What worker ``rank`` of ``workers`` does for ``update``; as many parts as every other worker has.

    Whole micro-batches are dealt in turn where there are enough for all; else their rows are. Together the
    counted parts of all workers hold each pair of the update once.
    """
    stand_in = Part(update[0][:1], 0, counted=False)
    if len(update) >= workers:
        dealt = [Part(update[i], i) for i in range(rank, len(update), workers)]
        return dealt + [stand_in] * (-(-len(update) // workers) - len(dealt))
    micro_batch, piece = rank % len(update), rank // len(update)
    sharers = len(range(micro_batch, workers, len(update)))
    ids = update[micro_batch][piece::sharers]
    return [Part(ids, micro_batch, piece) if len(ids) else stand_in]


def own_batches(
    update: Update, workers: Workers, seeds: tuple[int, int], make: Callable[[Ids], Batch]
) -> list[Batch]:
    """This worker's batches of ``update``, each with the seed of its own dropout masks.

    ``seeds`` are the run's seed and the update's number. With the micro-batch's they fix its masks, whichever
    worker draws them and whatever was drawn before. A stand-in counts no tokens, so its loss weighs 0.
    """
    batches = []
    for part in parts(update, workers.rank, workers.count):
        batch = make(part.ids)
        entropy = np.random.SeedSequence((*seeds, part.micro_batch, part.piece))
        seed = int(entropy.generate_state(1, np.uint64)[0])
        if not part.counted:
            batch = dataclasses.replace(batch, source_tokens=0, target_tokens=0)
        batches.append(dataclasses.replace(batch, seed=seed))
    return batches


def busiest_share(updates: list[Update], lengths: npt.NDArray[np.int32], workers: int) -> float:
    """The tokens that the busiest worker waits for, summed over ``updates``, over those of an equal share."""
    if workers == 1:
        return 1.0
    busiest = total = 0
    for update in updates:
        loads = [
            sum(int(lengths[part.ids].sum()) for part in parts(update, rank, workers) if part.counted)
            for rank in range(workers)
        ]
        busiest, total = busiest + max(loads), total + sum(loads)
    return busiest * workers / total
