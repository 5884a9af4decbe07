"""The training loop: updates in the order that the seed gives, with reports, validations and checkpoints."""

from __future__ import annotations

import dataclasses
import signal
import time
from collections.abc import Callable
from typing import Any

import torch

from transduce.data.batching import Batching, Ids
from transduce.data.shards import TokenShards
from transduce.errors import TrainingError
from transduce.training.checkpoint import Checkpoints
from transduce.training.config import TrainingConfig
from transduce.training.log import RunLog
from transduce.training.optimizer import learning_rate
from transduce.training.report import (
    Progress,
    Window,
    train_line,
    train_values,
    validation_lines,
    validation_values,
)
from transduce.training.shares import own_batches
from transduce.training.step import Learner, Updated, update
from transduce.training.validation import Validation, to_batch

NON_FINITE_LIMIT = 3
# Guessing blindly costs ln V, about 10; no model that learns is ever this much worse.
DIVERGED = 50.0
# With save_every = 0 a run is saved at each fiftieth and validated at each tenth of its length.
AUTOMATIC_SAVES, AUTOMATIC_VALIDATIONS = 50, 10


class Trainer:
    """Trains ``learner``'s model on ``shards`` until a limit is reached or a signal arrives.

    ``config.precision`` is decided: bf16 or fp32. ``validate`` is called with no arguments and returns the
    scores of the model as it stands. Several workers do all of this in step: whatever decides what comes next
    is the same on all of them.
    """

    def __init__(
        self,
        learner: Learner,
        optimizer: torch.optim.Optimizer,
        shards: TokenShards,
        config: TrainingConfig,
        *,
        batching: Batching,
        checkpoints: Checkpoints,
        log: RunLog,
        validate: Callable[[], Validation] | None = None,
    ) -> None:
        self.learner, self.model, self.workers = learner, learner.model, learner.workers
        self.optimizer, self.shards, self.config = optimizer, shards, config
        self.batching, self.checkpoints, self.log, self.validate = batching, checkpoints, log, validate
        self.progress = Progress()
        self.device = str(next(self.model.parameters()).device)
        self.precision = config.precision
        self.interrupted: int | None = None
        self._caught: int | None = None  # by this worker; `interrupted` is what all have agreed upon
        self._window = Window()
        self._bad_in_a_row = 0
        self._validated_at = self._saved_at = -1
        self._done_before = 0.0
        self._epoch_tokens = int(batching.target_lengths.sum())  # once: `done` is asked for every update

    def resume(self) -> bool:
        """Whether a checkpoint was found, from which this run now goes on."""
        steps = self.workers.first(self.checkpoints.steps)
        if not steps:
            return False
        state = self.checkpoints.restore(self.checkpoints.path(steps[-1]), self.model, self.optimizer)
        self.progress = Progress(**state["progress"])
        self._saved_at = self._validated_at = self.progress.step
        self._done_before = self.done()
        return True

    def run(self) -> str:
        """Why training ended, as a phrase; the last update is always validated and saved."""
        self.model.train()
        handlers = self._catch_signals()
        self.log.start_progress()
        try:
            reason = self._run()
            self._tick(0.0)
            self._validate_and_save(final=True)
            return reason
        finally:
            self.log.stop_progress()
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _run(self) -> str:
        p = self.progress
        self._tick(0.0)
        reason = self.over()
        while reason is None:
            updates = self.batching.epoch(p.epoch)
            for ids in updates[p.position :]:
                if (reason := self.over()) is not None:
                    return reason
                self._one(ids)
            p.epoch, p.position = p.epoch + 1, 0
            reason = self.over()
        return reason

    def _one(self, micro_batches: tuple[Ids, ...]) -> None:
        p, config, begin = self.progress, self.config, time.perf_counter()
        batches = own_batches(
            micro_batches,
            self.workers,
            (config.seed, p.step),
            lambda ids: to_batch(self.shards, ids, self.model, self.device),
        )
        waited = time.perf_counter() - begin
        rate = learning_rate(config, self.model.config.d_model, p.step + 1, self.done())
        updated = update(
            self.model,
            self.optimizer,
            batches,
            config,
            rate=rate,
            precision=self.precision,
            learner=self.learner,
            totals=self.batching.tokens([micro_batches]),
        )
        p.step, p.position = p.step + 1, p.position + 1
        p.source_tokens += updated.source_tokens
        p.target_tokens += updated.target_tokens
        self._check_finite(updated)
        seconds = time.perf_counter() - begin
        self._tick(seconds)
        self._window.add(updated, seconds, waited)
        self._show(rate)
        if p.step % config.report_every == 0:
            self._report(rate)
        begin = time.perf_counter()
        if self._validate_and_save():
            self._tick(time.perf_counter() - begin)

    def _tick(self, seconds: float) -> None:
        """Nothing; the clock of worker 0 is ``seconds`` on, and all know of it and of caught signals."""
        self.progress.seconds, self.interrupted = self.workers.agree(
            self.progress.seconds + seconds, self._caught
        )

    def done(self) -> float:
        """The share of the run that is over, by whichever of its limits comes first; 0 where it has none."""
        p, c = self.progress, self.config
        shares = [
            p.step / c.max_steps if c.max_steps else 0.0,
            p.seconds / 60 / c.max_minutes if c.max_minutes else 0.0,
        ]
        if c.max_epochs:
            shares.append(p.target_tokens / (self._epoch_tokens * c.max_epochs))
        return max(shares)

    def over(self) -> str | None:
        """Why the run is at its end, as a phrase; None while it is not."""
        p, c = self.progress, self.config
        if self.interrupted is not None:
            return f"stopped by {signal.Signals(self.interrupted).name}"
        if c.max_steps and p.step >= c.max_steps:
            return f"{c.max_steps:,} updates are done"
        if c.max_epochs and p.epoch >= c.max_epochs:
            return f"{c.max_epochs:,} epochs are done"
        if c.max_minutes and p.seconds >= c.max_minutes * 60:
            return f"{c.max_minutes:g} minutes are over"
        if c.patience and p.without_better >= c.patience:
            return f"no better {c.metric} in {c.patience} validations"
        return None

    def _check_finite(self, updated: Updated) -> None:
        if updated.finite:
            self._bad_in_a_row = 0
            return
        self.progress.non_finite += 1
        self._bad_in_a_row += 1
        step = self.progress.step
        self.log.write("non-finite", {"step": step, "count": self.progress.non_finite})
        self.log.say(f"step {step:,}: loss or gradient is not finite; this update was skipped")
        if self._bad_in_a_row == NON_FINITE_LIMIT:
            newest = self.checkpoints.newest()
            raise TrainingError(
                f"loss or gradient was not finite in {NON_FINITE_LIMIT} updates in a row, up to step {step}; "
                f"lower training.rate or use training.precision=fp32, then --resume "
                f"(last good: {newest or 'none'})"
            )

    def _validate_and_save(self, *, final: bool = False) -> bool:
        """Whether there was anything to do."""
        p, c = self.progress, self.config
        save = final or self._due(c.save_every, AUTOMATIC_SAVES)
        check = final or self._due(c.valid_every or c.save_every, AUTOMATIC_VALIDATIONS)
        self._done_before = self.done()
        better = False
        if check and self.validate is not None and p.step != self._validated_at and self.interrupted is None:
            better = self._judge(self.validate())
            self._validated_at = p.step
        if p.step != self._saved_at and (save or better):
            self.save()
        return save or check

    def _due(self, every: int, times: int) -> bool:
        """Whether this update is one of every ``every``, or the first of another ``times``-th of the run."""
        if every:
            return self.progress.step % every == 0
        return int(self.done() * times) > int(self._done_before * times)

    def save(self) -> None:
        """Nothing; a checkpoint of this moment is on the disk, and those no longer wanted are gone."""
        p = self.progress
        self.checkpoints.save(p.step, self.model, self.optimizer, {"progress": dataclasses.asdict(p)})
        self._saved_at = p.step
        self.checkpoints.prune(int(p.best["step"]) if p.best else None)

    def _judge(self, scores: Validation) -> bool:
        p, c = self.progress, self.config
        value = scores.bleu if c.metric == "bleu" else -scores.loss
        better = value is not None and (not p.best or value > p.best["value"])
        if better:
            p.best, p.without_better = (
                {"step": p.step, "value": value, "bleu": scores.bleu, "loss": scores.loss},
                0,
            )
        elif p.step > c.warmup:  # the loss of a young model may stand still; that is no reason to stop
            p.without_better += 1
        self.log.write("validation", validation_values(p, scores))
        for line in validation_lines(p, scores, better=better):
            self.log.say(line)
        return better

    def _report(self, rate: float) -> None:
        if self._window.loss > DIVERGED:
            raise TrainingError(
                f"training diverged at step {self.progress.step}: the loss is {self._window.loss:.3g}; "
                f"lower training.rate and start anew (last checkpoint: {self.checkpoints.newest() or 'none'})"
            )
        self.log.write("train", train_values(self.progress, self._window, rate))
        if not self.log.live:
            self.log.say(train_line(self.progress, self._window, rate, self.done()))
        self._window = Window()

    def _show(self, rate: float) -> None:
        if self.log.live:
            self.log.show(self.done(), train_line(self.progress, self._window, rate, self.done()))

    def _catch_signals(self) -> dict[int, Any]:
        def stop(number: int, _: object) -> None:
            if self._caught is not None:  # asked twice: at once, the last checkpoint stays as it is
                raise KeyboardInterrupt
            self._caught = number

        try:
            return {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not in the main thread: whoever runs us there handles signals
            return {}
