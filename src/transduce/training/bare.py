"""Updates and nothing else: for experiments that compare models, without checkpoints, log or folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from transduce.data.batching import Batching
from transduce.data.shards import TokenShards
from transduce.model.transformer import Transformer
from transduce.training.config import TrainingConfig
from transduce.training.optimizer import adam, learning_rate
from transduce.training.step import Updated, update
from transduce.training.validation import to_batch


class Step(NamedTuple):
    """One update: its number, what it saw, and the seconds of all updates so far."""

    number: int
    seen: Updated
    seconds: float


def updates(
    model: Transformer,
    shards: TokenShards,
    config: TrainingConfig,
    done: Callable[[int, float], float],
) -> Iterator[Step]:
    """Each update as soon as it is made, in fp32 on the CPU, until ``done`` says 1 or more.

    ``done`` gives the share of the run that is over after so many updates and seconds of them; the time that
    the caller takes in between does not count. The batches follow from ``config`` and the shards alone.
    """
    limit = config.micro_batch_tokens or config.batch_tokens
    batching = Batching(
        shards.source_lengths,
        shards.target_lengths,
        batch_tokens=config.batch_tokens,
        micro_batch_tokens=limit,
        seed=config.seed,
    )
    optimizer = adam(model, config)
    number, epoch, spent = 0, 0, 0.0
    model.train()
    while done(number, spent) < 1:
        for ids in batching.epoch(epoch):
            if done(number, spent) >= 1:
                return
            begin = time.perf_counter()
            rate = learning_rate(config, model.config.d_model, number + 1, done(number, spent))
            batches = [to_batch(shards, part, model, "cpu") for part in ids]
            seen = update(model, optimizer, batches, config, rate=rate, precision="fp32")
            spent += time.perf_counter() - begin
            number += 1
            yield Step(number, seen, spent)
        epoch += 1
