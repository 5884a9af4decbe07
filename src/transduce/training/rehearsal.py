"""Trial updates of a model that will be sharded: each worker rehearses its part alone, and nobody answers.

Memory that runs out in the middle of a real update would leave the other workers waiting. So the trial's
model is sharded over a process group of PyTorch's whose operations do nothing: what would come from others
takes its room, and is arbitrary.
"""

from __future__ import annotations

import gc

import torch
import torch.distributed as dist

from transduce.data.batching import Batching
from transduce.model.transformer import Transformer
from transduce.training.config import TrainingConfig
from transduce.training.distributed import Workers
from transduce.training.memory import out_of_memory, release
from transduce.training.optimizer import adam
from transduce.training.parallel import Sharded
from transduce.training.trial import Shape, Trial


class ShardedTrial(Trial):
    """Trial updates of one part of a model like ``model``, which is whole itself and stays as it is."""

    def __init__(
        self,
        model: Transformer,
        batching: Batching,
        config: TrainingConfig,
        *,
        precision: str,
        workers: Workers,
    ) -> None:
        super().__init__(model, adam(model, config), batching, config, precision=precision, workers=workers)
        self._group = _silent_group()

    def attempt(self, shape: Shape, *, repeated: bool) -> bool:
        """As of a whole model; with a new one each time, for a pass that broke off leaves parts undone."""
        self.model.to("cpu")  # on a GPU the parts take its place
        release(str(self.device))
        devices = [self.device] if self.device.type == "cuda" else []
        try:
            with torch.random.fork_rng(devices=devices):
                return self._rehearse(shape, repeated=repeated)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            return False
        finally:
            gc.collect()  # the parts refer to each other
            release(str(self.device))
            self.model.to(self.device)

    def _rehearse(self, shape: Shape, *, repeated: bool) -> bool:
        model = Transformer(self.model.config).to(self.device).train()
        model.recompute(self.config.recompute_layers)
        silent = Workers(self.workers.rank, self.workers.count)
        learner = _Rehearsing(model, silent, str(self.device), group=self._group)
        return self.update(learner, adam(model, self.config), shape, repeated=repeated)

    def held(self) -> float:
        """This worker's part of weights, gradients and moments, and the largest that is gathered at a time.

        That is what belongs to no layer, weights and gradients, and two layers: one is used while the next is
        on its way.
        """
        model, whole = self.model, float(self.model.parameter_count())
        stacks = [*model.encoder.layers, *model.decoder.layers]
        layers = [float(sum(parameter.numel() for parameter in layer.parameters())) for layer in stacks]
        return 16 * whole / self.workers.count + 8 * (whole - sum(layers) + 2 * max(layers)) - 4 * whole


class _Rehearsing(Sharded):
    def make_up(self) -> None:
        """Raises MemoryError: nobody waits for anything, and the trial is over."""
        raise MemoryError


def _silent_group() -> dist.ProcessGroup:
    """A group of all workers, who must all ask for it; its operations succeed and do nothing."""
    import torch.testing._internal.distributed.fake_pg  # noqa: F401 - makes the name known

    group: dist.ProcessGroup = dist.new_group(backend="fake")
    return group
