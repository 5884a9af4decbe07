"""What worker 0 does while the others wait: the data is prepared, the model validated."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from transduce.counts import counted
from transduce.data.batching import Batching
from transduce.data.config import DataConfig
from transduce.data.prepare import Prepared, open_prepared, prepare
from transduce.errors import DataError
from transduce.model.transformer import Transformer
from transduce.training.config import TrainingConfig
from transduce.training.distributed import Workers
from transduce.training.shares import busiest_share
from transduce.training.step import Learner
from transduce.training.validation import Validation

UNEVEN = 1.2  # times its equal share: from there on it is worth a word
LOOKED_AT = 100  # updates


def prepare_together(workers: Workers, config: DataConfig, folder: Path, **how: Any) -> Prepared:
    """The data in ``folder``, prepared by worker 0 as ``how`` says and opened by the others."""
    prepared: list[Prepared] = []

    def work() -> None:
        prepared.append(prepare(config, folder, **how))

    workers.first(work)
    if prepared:
        return prepared[0]
    try:
        return open_prepared(folder)
    except DataError as error:
        raise DataError(
            f"worker {workers.rank} cannot read what worker 0 prepared ({error}); --output must be on a file "
            "system that all hosts share"
        ) from error


def validate_together(learner: Learner, validate: Callable[[Transformer], Validation]) -> Validation:
    """The scores of the model as it stands: computed by worker 0, and told to the others."""
    model = learner.gathered()
    scores = learner.workers.first(lambda: dataclasses.asdict(validate(model)))
    return Validation(**{**scores, "samples": tuple(tuple(sample) for sample in scores["samples"])})


def describe_workers(workers: Workers, config: TrainingConfig, batching: Batching) -> Iterator[str]:
    """Lines for the log; none where there is one worker."""
    if workers.count == 1:
        return
    yield f"{counted(workers.count, 'worker')}, {config.parallel}: each update is divided among them"
    share = busiest_share(batching.block(0, 0)[:LOOKED_AT], batching.target_lengths, workers.count)
    if share > UNEVEN:
        yield (
            f"warning: the busiest worker has {share:.1f} times its equal share of an update, others wait; "
            "choose training.micro_batch_tokens so that an update has a multiple of "
            f"{workers.count} micro-batches"
        )
