"""The exponential moving average of the weights, beside the average of the last checkpoints (section 6.1)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from transduce.errors import TrainingError
from transduce.training.sharding import like

FILE = "ema.safetensors"


def decay_at(decay: float, step: int) -> float:
    """min(decay, (1 + t) / (10 + t)) for the update number t = ``step``: so a young average follows soon."""
    return min(decay, (1 + step) / (10 + step))


class MovingAverage:
    """average <- d average + (1 - d) weights after every update, d = `decay_at`; in float32.

    It begins as the weights that ``model`` has when this is made. A tied matrix is one parameter and has one
    average.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        named = dict(model.named_parameters())
        self._parameters = [parameter.detach() for parameter in named.values()]
        self._averages = [parameter.to(torch.float32, copy=True) for parameter in self._parameters]
        self.tensors: dict[str, Tensor] = dict(zip(named, self._averages, strict=True))

    def update(self, step: int, moves: Tensor | None = None) -> None:
        """Nothing; the average has moved towards the weights as they are after update ``step``.

        Not where ``moves`` turns out to be 0; the host does not wait for it.
        """
        weight = 1.0 - decay_at(self.decay, step)
        if moves is None:
            torch._foreach_lerp_(self._averages, self._parameters, weight)
            return
        for average, parameter in zip(self._averages, self._parameters, strict=True):
            average.lerp_(parameter, weight * moves)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Nothing; until left, the model has the average as its weights. They come back bit for bit."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        # Contents, not storage: whoever holds a parameter's address keeps a valid one.
        for parameter, average in zip(self._parameters, self._averages, strict=True):
            kept = parameter.clone()
            parameter.copy_(average)
            average.copy_(kept)

    def restore(self, checkpoint: Path) -> None:
        """Nothing; the average is that of ``checkpoint``. TrainingError where the file is no good."""
        stored = read_average(checkpoint)
        try:
            for name, average in self.tensors.items():
                average.copy_(like(average, stored[name]))
        except (KeyError, RuntimeError) as error:
            raise _damaged(checkpoint, error) from error


def read_average(checkpoint: Path) -> dict[str, Tensor]:
    """The moving average that ``checkpoint`` holds; TrainingError where the file is no good."""
    try:
        return load_file(checkpoint / FILE)
    except (OSError, SafetensorError) as error:
        raise _damaged(checkpoint, error) from error


def _damaged(checkpoint: Path, error: Exception) -> TrainingError:
    return TrainingError(
        f"{checkpoint / FILE}: cannot be used ({error}); remove the checkpoint to use the one before"
    )
