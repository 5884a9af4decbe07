"""Memory that runs out in chosen updates of a run, and updates that are decided upon as on a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

FULL = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 5 bytes."


@dataclass(frozen=True)
class Shortage:
    """In update ``step``, in the ``part``-th of its passes (from 0; -1 is the last), on worker ``rank``.

    With ``backward`` it comes when most gradients are there already, else before the first.
    """

    step: int
    part: int = 0
    rank: int = 0
    backward: bool = False


def run_out(patch: Any, shortages: list[Shortage], rank: int = 0) -> None:
    """Nothing; ``patch`` (a MonkeyPatch) has made memory run out on this worker as ``shortages`` say."""
    from transduce.training import parallel
    from transduce.training import step as step_module
    from transduce.training.trainer import Trainer

    now: set[tuple[int, bool]] = set()
    work, loss = Trainer._update, step_module.batch_loss
    passes = 0

    def counted(self: Trainer, batches: Any, *arguments: Any) -> Any:
        nonlocal passes
        passes = 0
        now.clear()
        for short in shortages:
            if (short.rank, short.step) == (rank, self.progress.step + 1):
                now.add((short.part % len(batches), short.backward))
        return work(self, batches, *arguments)

    def full(model: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal passes
        passes += 1
        if (passes - 1, False) in now:
            raise RuntimeError(FULL)
        if (passes - 1, True) in now:
            weight = model.encoder.layers[0].feed_forward.w_1.weight

            def refuse(_: Tensor) -> None:
                handle.remove()
                raise RuntimeError(FULL)

            handle = weight.register_hook(refuse)
        return loss(model, *arguments, **named)

    patch.setattr(Trainer, "_update", counted)
    patch.setattr(step_module, "batch_loss", full)
    patch.setattr(parallel, "batch_loss", full)


def limit_memory(patch: Any, tokens: int) -> list[int]:
    """Trials with micro-batches of more than so many tokens fail as on a full GPU; the sizes that came."""
    from transduce.training import trial as trial_module

    work, sizes = trial_module.update, []

    def limited(model: Any, optimizer: Any, batches: Any, *arguments: Any, **named: Any) -> Any:
        sizes.append(max(max(batch.source.numel(), batch.target_in.numel()) for batch in batches))
        if sizes[-1] > tokens:
            raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB.")
        return work(model, optimizer, batches, *arguments, **named)

    patch.setattr(trial_module, "update", limited)
    return sizes


def decide_on_the_device(patch: Any, *, wanted: bool = True) -> None:
    """Nothing; updates are decided upon and read as on a GPU: not before the next one is begun.

    Not, even on one, unless ``wanted``.
    """
    from transduce.training.trainer import Trainer

    init = Trainer.__init__

    def ahead(self: Trainer, learner: Any, *arguments: Any, **named: Any) -> None:
        learner.ahead = wanted
        init(self, learner, *arguments, **named)

    patch.setattr(Trainer, "__init__", ahead)
