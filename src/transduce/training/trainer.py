"""The training loop: updates in the order that the seed gives, with reports, validations and checkpoints."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

from transduce.data.batching import Batching, Ids
from transduce.data.shards import TokenShards
from transduce.errors import TrainingError
from transduce.training.changing import ChangingWeights
from transduce.training.checkpoint import Checkpoints
from transduce.training.config import TrainingConfig
from transduce.training.ema import FILE as EMA_FILE
from transduce.training.ema import MovingAverage
from transduce.training.guided import Guided
from transduce.training.judging import check_divergence, judge
from transduce.training.limits import share_done, why_over
from transduce.training.log import RunLog
from transduce.training.memory import out_of_memory
from transduce.training.optimizer import learning_rate
from transduce.training.report import (
    Progress,
    Window,
    train_line,
    train_values,
)
from transduce.training.shares import own_batches
from transduce.training.signals import stop_signals
from transduce.training.skipping import finite_weights, note_skipped
from transduce.training.step import Batch, Begun, Learner, begin_update
from transduce.training.underway import Queue, Underway
from transduce.training.validation import Validation, to_batch
from transduce.training.varied import Varied

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
        self.ema = MovingAverage(self.model, config.ema) if config.ema else None
        self.progress = Progress()
        self.guided: Guided | None = None  # where alignments guide a layer's attention
        self.varied: Varied | None = None  # where the pairs change from update to update
        self.device = str(next(self.model.parameters()).device)
        self.precision = config.precision
        self.interrupted: int | None = None
        self._caught: int | None = None  # by this worker; `interrupted` is what all have agreed upon
        self.weights: ChangingWeights | None = None
        self.basis: dict[str, Any] = {}  # what `position` counts in: see `transduce.training.resume`
        self._window, self._underway = Window(), Queue()
        self._saved_at, self.passing = -1, False
        self._done_before = 0.0
        self._all_tokens = batching.target_tokens(config.max_epochs)  # once: `done` is asked for every update

    def resume(self) -> bool:
        """Whether a checkpoint was found, from which this run now goes on."""
        steps = self.workers.first(self.checkpoints.steps)
        if not steps:
            return False
        newest = self.checkpoints.path(steps[-1])
        state = self.checkpoints.restore(newest, self.model, self.optimizer)
        if self.ema is not None:
            self.ema.restore(newest)
        self.progress, self._window = Progress(**state["progress"]), Window(**state.get("window", {}))
        self.basis = state.get("basis", {})
        self._saved_at, self.passing = self.progress.step, state.get("passing", False)
        self._done_before = self.done()
        return True

    def begin(self) -> None:
        """Nothing; the model is judged and saved as it is before the first update."""
        begin = time.perf_counter()
        self._validate_and_save(final=True)
        self._tick(time.perf_counter() - begin)

    def run(self) -> str:
        """Why training ended, as a phrase; the last update is always validated and saved."""
        self.model.train()
        with stop_signals(self._catch):
            self.log.start_progress()
            try:
                if self.progress.validation_owed:
                    self._validate_and_save()
                reason = self._run()
                self._tick(0.0)
                self._validate_and_save(final=True)
                return reason
            finally:
                self.log.stop_progress()

    def _catch(self, number: int) -> None:
        if self._caught is not None:  # asked twice: at once, the last checkpoint stays as it is
            raise KeyboardInterrupt
        self._caught = number

    def _run(self) -> str:
        p = self.progress
        self._tick(0.0)
        reason = self.over()
        while reason is None:
            if self.weights is not None:
                self.weights.begin(self)
            for ids in self.batching.block(p.epoch, p.block)[p.position :]:
                if (reason := self.over()) is not None:
                    return reason
                if self.weights is not None and self.weights.due(self):
                    break
                self._one(ids)
            else:
                last = p.block + 1 == self.batching.blocks
                p.epoch, p.block, p.position = p.epoch + last, 0 if last else p.block + 1, 0
            reason = self.over()
        return reason

    def _one(self, micro_batches: tuple[Ids, ...]) -> None:
        p, config, begin = self.progress, self.config, time.perf_counter()
        batches, totals = self._batches(micro_batches)
        waited = time.perf_counter() - begin
        rate = learning_rate(config, self.model.config.d_model, p.earlier + p.step + 1, self.done())
        source_tokens, target_tokens = self.batching.tokens([micro_batches])
        begun = self._update(batches, rate, totals)
        p.step, p.position = p.step + 1, p.position + 1
        p.source_tokens += source_tokens
        p.target_tokens += target_tokens
        reports = p.step % config.report_every == 0
        self._settle()  # those before: while the device works on this one
        if self.ema is not None and (self.learner.ahead or begun.read().moved):
            self.ema.update(p.step, begun.moves if self.learner.ahead else None)
        if reports:
            begun.read()  # the time until now is that of all updates in the report
        seconds = time.perf_counter() - begin
        self._underway.add(
            Underway(
                step=p.step, ids=micro_batches, batches=batches, begun=begun, seconds=seconds, waited=waited
            )
        )
        if not self.learner.ahead or reports:
            self._settle()
        self._tick(time.perf_counter() - begin)
        self._show(rate)
        if reports:
            self._report(rate)
        begin = time.perf_counter()
        if self._validate_and_save():
            self._tick(time.perf_counter() - begin)

    def _batches(self, micro_batches: tuple[Ids, ...]) -> tuple[list[Batch], tuple[int, int]]:
        """This worker's batches of the next update, and the source and target tokens of all workers'."""
        seed, step = self.config.seed, self.progress.step
        if self.varied is not None:
            return self.varied.batches(micro_batches, seed, step)
        batches = own_batches(
            micro_batches,
            self.workers,
            (seed, step),
            self._batch,
        )
        return batches, self.batching.tokens([micro_batches])

    def _batch(self, ids: Ids) -> Batch:
        batch = to_batch(self.shards, ids, self.model, self.device)
        if self.guided is None:
            return batch
        return dataclasses.replace(batch, guide=self.guided.guide(ids.tolist()))

    def _tick(self, seconds: float) -> None:
        """Nothing; the clock of worker 0 is ``seconds`` on, and all know of it and of caught signals."""
        self.progress.seconds, self.interrupted = self.workers.agree(
            self.progress.seconds + seconds, self._caught
        )

    def _update(self, batches: list[Batch], rate: float, totals: tuple[int, int]) -> Begun:
        """One that is begun; where it does not fit in memory it leaves no trace, and says so when read."""
        try:
            return begin_update(
                self.learner,
                self.optimizer,
                batches,
                self.config,
                rate=rate,
                precision=self.precision,
                totals=totals,
            )
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            raise TrainingError(
                f"memory ran out when update {self.progress.step + 1:,} moved the weights; lower "
                f"training.micro_batch_tokens, then --resume --accept-changes (last good: "
                f"{self.checkpoints.newest() or 'none'})"
            ) from error

    def _settle(self) -> None:
        """Nothing; what the updates saw that were begun is counted, and those that were skipped are said."""
        for underway, updated in self._underway.read():
            if updated.moved:
                self.progress.skipped_in_a_row = 0
                self._window.add(updated, underway.seconds, underway.waited)
            else:
                note_skipped(self, underway, updated)

    def done(self) -> float:
        """The share of the run that is over, by whichever of its limits comes first; 0 where it has none."""
        return share_done(self.progress, self.config, self._all_tokens)

    def over(self) -> str | None:
        """Why the run is at its end, as a phrase; None while it is not."""
        return why_over(self.progress, self.config, self.interrupted)

    def _validate_and_save(self, *, final: bool = False) -> bool:
        """Whether there was anything to do."""
        p, c = self.progress, self.config
        save = final or self._due(c.save_every, AUTOMATIC_SAVES)
        due = self._due(c.valid_every or c.save_every, AUTOMATIC_VALIDATIONS) or p.validation_owed
        self._done_before = self.done()
        if save or due:
            self._settle()
        if p.skipped_in_a_row and not finite_weights(self.model, self.checkpoints, p, final=final):
            return True
        better, stopped = False, self.interrupted is not None
        if self.validate is not None and p.step != p.validated_at and (due or final):
            p.validation_owed = due and stopped
            if not stopped:
                p.validated_at = p.step
                with nullcontext() if self.ema is None else self.ema.in_place():
                    scores = self.validate()
                better = judge(scores, p, c, self.log)
        # A checkpoint that only a signal brought about becomes one of the run's own if it would have been.
        again = better or (self.passing and not stopped)
        if (save or better) and (p.step != self._saved_at or again):
            self.save(passing=final and stopped)
        return save or due

    def _due(self, every: int, times: int) -> bool:
        """Whether this update is one of every ``every``, or the first of another ``times``-th of the run."""
        if every:
            return self.progress.step % every == 0
        return int(self.done() * times) > int(self._done_before * times)

    def save(self, *, passing: bool = False) -> None:
        """Nothing; a checkpoint of this moment is on the disk, and those no longer wanted are gone."""
        p = self.progress
        state = {
            "progress": dataclasses.asdict(p),
            "window": dataclasses.asdict(self._window),
            "passing": passing,
            "basis": self.basis,
        }
        more = {} if self.ema is None else {EMA_FILE: self.ema.tensors}
        self.checkpoints.save(p.step, self.model, self.optimizer, state, more=more)
        self._saved_at, self.passing = p.step, passing
        self.checkpoints.prune(int(p.best["step"]) if p.best else None)

    def _report(self, rate: float) -> None:
        if not self._window.updates:  # all were skipped, and each of them was said
            return
        check_divergence(self._window, self.progress.step, self.checkpoints.newest)
        self.log.write("train", train_values(self.progress, self._window, rate))
        if not self.log.live:
            self.log.say(train_line(self.progress, self._window, rate, self.done()))
        self._window = Window()

    def _show(self, rate: float) -> None:
        if self.log.live and self._window.updates:
            self.log.show(self.done(), train_line(self.progress, self._window, rate, self.done()))
