"""Weights of the corpora that change as training goes on: when, and what the log says then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.counts import counted
from transduce.data.config import DataConfig
from transduce.data.mixing import Mixture, mixture

if TYPE_CHECKING:
    from transduce.training.trainer import Trainer


def mixture_of(data: DataConfig, sizes: list[int], seed: int) -> Mixture | None:
    """What an epoch holds of corpora with so many pairs; None where that is every pair once."""
    if not (data.weights or data.later_weights):
        return None
    return mixture(
        sizes,
        data.weights,
        data.corpora,
        seed=seed,
        later=[weights for _, *weights in data.later_weights],
        begins=[int(epoch) for epoch, *_ in data.weights_after_epochs],
    )


def lines_of(mixed: Mixture, data: DataConfig) -> list[str]:
    """What the log says of the shares at the start, those of later weights included."""
    unit = "epoch" if data.weights_after_epochs else "update"
    lines = [f"corpus {line}" for line in mixed.lines(data.corpora)]
    for stage, (when, *_) in enumerate(data.later_weights, 1):
        after = counted(int(when), unit)
        lines += [f"after {after}: corpus {line}" for line in mixed.lines(data.corpora, stage)]
    return lines


class ChangingWeights:
    """The later weights of a run. Those that begin at an update end the epoch that is under way."""

    def __init__(self, data: DataConfig) -> None:
        self.data = data
        self.updates = [int(update) for update, *_ in data.weights_after_updates]
        self.epochs = [int(epoch) for epoch, *_ in data.weights_after_epochs]

    def due(self, trainer: Trainer) -> bool:
        """Whether other weights begin with the next update."""
        return self._reached(trainer) > len(trainer.progress.stages)

    def begin(self, trainer: Trainer) -> None:
        """Nothing; the next updates of ``trainer`` are those of the weights that hold now."""
        p = trainer.progress
        changed = not (p.block or p.position) and p.epoch in self.epochs
        if self.updates:
            reached = self._reached(trainer)
            changed = reached > len(p.stages)
            if changed and (p.block or p.position):
                p.epoch, p.block, p.position = p.epoch + 1, 0, 0
            p.stages = (p.stages + [p.epoch] * reached)[:reached]
            trainer.batching = trainer.batching.staged(p.stages)
        if changed:
            self._tell(trainer)

    def _reached(self, trainer: Trainer) -> int:
        return sum(trainer.progress.step >= update for update in self.updates)

    def _tell(self, trainer: Trainer) -> None:
        p, mixed = trainer.progress, trainer.batching.mixture
        assert mixed is not None
        stage = mixed.stage(p.epoch)
        _, *weights = self.data.later_weights[stage - 1]
        trainer.log.write("weights", {"step": p.step + 1, "epoch": p.epoch, "weights": weights})
        for line in mixed.lines(self.data.corpora, stage):
            trainer.log.say(f"from update {p.step + 1:,}, epoch {p.epoch + 1:,}: corpus {line}")
