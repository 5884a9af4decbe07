"""Which checkpoints a run leaves, and when it stops early; loop and disk are real, updates are not."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from transduce.data.batching import Batching
from transduce.data.shards import TokenShards
from transduce.model.transformer import Transformer
from transduce.training import trainer as trainer_module
from transduce.training.checkpoint import Checkpoints
from transduce.training.config import TrainingConfig
from transduce.training.log import RunLog
from transduce.training.optimizer import adam
from transduce.training.step import Batch, Begun, Learner
from transduce.training.trainer import Trainer
from transduce.training.validation import Validation

EPOCH = 10  # updates


@pytest.fixture
def run(
    tmp_path: Path, small_model: Callable[..., Transformer], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Trainer]:
    """A function that runs the loop with the settings given, and returns the trainer afterwards."""
    ids = torch.zeros((1, 1), dtype=torch.long)
    batch = Batch(ids, ids, ids, 100, 100)
    monkeypatch.setattr(trainer_module, "to_batch", lambda *_: batch)
    seen = Begun(torch.tensor([100.0, 100.0, 0.0, 1.0]), 100, 100)
    monkeypatch.setattr(trainer_module, "begin_update", lambda *_, **__: seen)

    def run(
        scores: Sequence[Validation] = (), *, stop_at: int = 0, resume: bool = False, **training: Any
    ) -> Trainer:
        model = small_model()
        config = TrainingConfig(**{"max_steps": 0, "schedule": "constant", "rate": 1e-3, **training})
        batching = Batching(
            [10] * 10 * EPOCH, [10] * 10 * EPOCH, batch_tokens=100, micro_batch_tokens=100, seed=1
        )
        coming = iter(scores)
        trainer = Trainer(
            Learner(model),
            adam(model, config),
            TokenShards.__new__(TokenShards),
            config,
            batching=batching,
            checkpoints=Checkpoints(tmp_path / "checkpoints", keep=config.average),
            log=RunLog(tmp_path / "log.jsonl", quiet=True),
            validate=(lambda: next(coming)) if scores else None,
        )
        work = trainer._update

        def counted(*arguments: Any) -> Any:
            if trainer.progress.step + 1 == stop_at:
                trainer._caught = signal.SIGTERM
            return work(*arguments)

        trainer._update = counted  # type: ignore[method-assign]
        if resume:
            assert trainer.resume()
        trainer.reason = trainer.run()  # type: ignore[attr-defined]
        return trainer

    return run


def _bleu(*values: float) -> list[Validation]:
    return [Validation(1.0, float(value), "signature", ()) for value in values]


@pytest.mark.parametrize(
    ("settings", "bleu", "left", "best"),
    [
        # the table's own row: saved every 10, an epoch is 10 updates, 30 in all, the best at 10, keep 2
        ({"save_every": 10, "max_steps": 30, "average": 2}, (9, 8, 7), [10, 20, 30], 10),
        ({"save_every": 10, "max_steps": 30, "average": 2}, (7, 9, 8), [20, 30], 20),
        ({"save_every": 10, "max_steps": 30, "average": 2}, (7, 8, 9), [20, 30], 30),
        ({"save_every": 10, "max_steps": 30, "average": 1}, (9, 8, 7), [10, 30], 10),
        ({"save_every": 10, "max_steps": 30, "average": 9}, (9, 8, 7), [10, 20, 30], 10),
        # updates and epochs that do not meet, and ones that do
        ({"save_every": 7, "max_steps": 30, "average": 2}, (9, 8, 7, 6, 5), [7, 28, 30], 7),
        ({"save_every": 10, "max_epochs": 3, "average": 2}, (9, 8, 7), [10, 20, 30], 10),
        ({"save_every": 15, "max_epochs": 3, "average": 1}, (9, 8), [15, 30], 15),
        ({"save_every": 5, "max_epochs": 1, "average": 1}, (9, 8), [5, 10], 5),
        # the best is kept although no save was due there; the last although none ever was
        ({"save_every": 10, "valid_every": 4, "max_steps": 20, "average": 1}, (1, 9, 8, 7, 6), [8, 20], 8),
        ({"save_every": 99, "max_steps": 30, "average": 2}, (9,), [30], 30),
        # a tie: the earlier stays the best
        ({"save_every": 10, "max_steps": 30, "average": 1}, (9, 9, 9), [10, 30], 10),
        # by share of the run: saved at each fiftieth
        ({"save_every": 0, "max_steps": 100, "average": 2}, range(20, 10, -1), [10, 98, 100], 10),
        # early stopping: validated at 3, 6, 9 ... and two without a better one end it
        (
            {"save_every": 99, "valid_every": 3, "patience": 2, "warmup": 1, "average": 2},
            (5, 9, 8, 7),
            [6, 12],
            6,
        ),
    ],
)
def test_the_best_and_the_last_are_kept(
    run: Callable[..., Trainer], settings: dict[str, Any], bleu: Sequence[int], left: list[int], best: int
) -> None:
    trainer = run(_bleu(*map(float, bleu)), **settings)
    assert trainer.checkpoints.steps() == left
    assert trainer.progress.best["step"] == best


def test_a_signal_saves_the_last_update_and_costs_none_of_the_others(run: Callable[..., Trainer]) -> None:
    how = {"save_every": 10, "max_steps": 40, "average": 2}
    assert run(_bleu(9, 8, 7, 6), stop_at=25, **how).checkpoints.steps() == [10, 20, 25]
    # what only the signal brought about goes again, and the rest is as if there had been none
    assert run(_bleu(7, 6), resume=True, **how).checkpoints.steps() == [10, 30, 40]


def test_a_signal_at_the_last_update(run: Callable[..., Trainer]) -> None:
    how = {"save_every": 10, "max_steps": 25, "average": 1}
    assert run(_bleu(9, 8, 7), stop_at=25, **how).checkpoints.steps() == [10, 20, 25]
    trainer = run(_bleu(10), resume=True, **how)
    assert trainer.checkpoints.steps() == [25]
    assert trainer.progress.best["step"] == 25


# loss, BLEU and chrF of four validations that choose three different ones
MIXED = [
    Validation(2.0, 9.0, "signature", (), 20.0),
    Validation(1.0, 8.0, "signature", (), 30.0),
    Validation(3.0, 7.0, "signature", (), 40.0),
    Validation(4.0, None, "signature", (), None),
    Validation(5.0, 6.0, "signature", (), 10.0),
]


@pytest.mark.parametrize(("metric", "best", "last"), [("bleu", 10, 30), ("loss", 20, 40), ("chrf", 30, 50)])
def test_the_metric_chosen_decides(run: Callable[..., Trainer], metric: str, best: int, last: int) -> None:
    trainer = run(MIXED, metric=metric, save_every=10, patience=2, warmup=1, average=1)
    assert trainer.reason == f"no better {metric} in 2 validations"  # type: ignore[attr-defined]
    assert trainer.progress.best["step"] == best
    assert trainer.progress.step == last
    assert trainer.checkpoints.steps() == [best, last]


@pytest.mark.parametrize(("warmup", "last"), [(1, 20), (20, 30), (25, 30), (49, 50)])
def test_patience_begins_when_the_warm_up_is_over(
    run: Callable[..., Trainer], warmup: int, last: int
) -> None:
    trainer = run(_bleu(9, 8, 7, 6, 5), save_every=10, patience=1, warmup=warmup, average=1)
    assert trainer.progress.step == last


def test_another_metric_compares_with_what_the_best_had_by_it(run: Callable[..., Trainer]) -> None:
    how = {"save_every": 10, "average": 1, "warmup": 1}
    run([Validation(2.0, 9.0, "signature", (), 20.0)], max_steps=10, metric="bleu", **how)
    more = [Validation(3.0, 9.5, "s", (), 21.0), Validation(1.9, 1.0, "s", (), 2.0)]
    trainer = run(more, resume=True, max_steps=30, metric="loss", **how)
    assert trainer.progress.best["step"] == 30
