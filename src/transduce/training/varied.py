"""An update's batches where the pairs vary from update to update (see `transduce.data.variation`).

The pairs of an update, and of its micro-batches, are chosen by their usual subwords. Others are usually more:
a micro-batch that no longer keeps its budget is cut into several that do.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from transduce.data.batching import Ids, Update
from transduce.data.prepare import Prepared
from transduce.data.shards import TokenShards
from transduce.data.variation import Rows, Shares, Variation
from transduce.model.transformer import Transformer
from transduce.training.config import SHARES, TrainingConfig
from transduce.training.distributed import Workers
from transduce.training.guided import Guided
from transduce.training.shares import parts
from transduce.training.step import Batch
from transduce.training.validation import rows_to_batch

Make = Callable[[Rows, Rows], Batch]


@dataclasses.dataclass(frozen=True)
class Varied:
    """Makes this worker's batches of at most ``budget`` positions a side, padding counted."""

    variation: Variation
    budget: int
    workers: Workers
    make: Make
    guided: Guided | None = None

    def batches(self, update: Update, seed: int, step: int) -> tuple[list[Batch], tuple[int, int]]:
        """This worker's batches of update ``step``, and the source and target tokens of all workers.

        Every worker has as many; a stand-in counts no tokens. Each batch has the seed of its dropout masks.
        """
        found: list[Batch] = []
        for part in parts(update, self.workers.rank, self.workers.count):
            sources, targets = self.variation.pairs(part.ids, step)
            for number, rows in enumerate(cut(sources, targets, self.budget)):
                some = [sources[row] for row in rows], [targets[row] for row in rows]
                batch = self.make(*some)
                if self.guided is not None:
                    guide = self.guided.guide(part.ids[rows].tolist(), *some)
                    batch = dataclasses.replace(batch, guide=guide)
                entropy = np.random.SeedSequence((seed, step, part.micro_batch, part.piece, number))
                masks = int(entropy.generate_state(1, np.uint64)[0])
                found.append(dataclasses.replace(batch if part.counted else _idle(batch), seed=masks))
        source, target = (
            sum(getattr(batch, f"{side}_tokens") for batch in found) for side in ("source", "target")
        )
        if self.workers.count > 1:
            counts = [float(len(found) * (rank == self.workers.rank)) for rank in range(self.workers.count)]
            source, target, *each = map(int, self.workers.total(source, target, *counts))
            found += [_idle(_first_row(found[0]))] * (max(each) - len(found))
        return found, (source, target)


def shares_of(config: TrainingConfig) -> Shares | None:
    """What varies from update to update, if anything does."""
    shares = Shares(**{name: getattr(config, name) for name in SHARES})
    return shares if shares != Shares() else None


def longest(config: TrainingConfig, shards: TokenShards) -> int:
    """How many tokens a side may have that varies: as many as any pair of the corpus, and as fit."""
    return min(int(shards.meta["max_length"]), _budget(config))


def varied(
    data: Prepared,
    model: Transformer,
    config: TrainingConfig,
    workers: Workers,
    say: Callable[[str], None],
    guided: Guided | None = None,
) -> Varied | None:
    """What makes the batches of a run whose pairs vary; None where nothing does."""
    shares = shares_of(config)
    if shares is None:
        return None
    told = ", ".join(f"{name} {getattr(shares, name):g}" for name in SHARES if getattr(shares, name))
    say(f"pairs vary from update to update: {told}; updates are formed by the usual subwords")
    most, device = longest(config, data.train), str(next(model.parameters()).device)
    return Varied(
        Variation(data.train, data.tokenizer, shares, longest=most, seed=config.seed),
        _budget(config),
        workers,
        lambda sources, targets: rows_to_batch(sources, targets, model, device),
        guided,
    )


def _budget(config: TrainingConfig) -> int:
    return min(config.micro_batch_tokens, config.batch_tokens)


def cut(sources: Rows, targets: Rows, budget: int) -> Iterator[Ids]:
    """The rows in groups that keep the budget on both sides; one group, in their order, where that does."""
    lengths = np.array([[len(s), len(t)] for s, t in zip(sources, targets, strict=True)], dtype=np.int64)
    if len(lengths) * int(lengths.max()) <= budget:
        yield np.arange(len(lengths))
        return
    order = np.argsort(lengths.max(1), kind="stable")[::-1]
    begin = 0
    while begin < len(order):
        rows = order[begin : begin + max(1, budget // int(lengths[order[begin]].max()))]
        yield rows
        begin += len(rows)


def _idle(batch: Batch) -> Batch:
    return dataclasses.replace(batch, source_tokens=0, target_tokens=0)


def _first_row(batch: Batch) -> Batch:
    return dataclasses.replace(
        batch,
        source=batch.source[:1],
        target_in=batch.target_in[:1],
        target_out=batch.target_out[:1],
        guide=None,
    )
