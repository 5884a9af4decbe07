"""`torch.compile` for training: the layers' forward and backward passes as code made for this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from transduce.errors import ConfigError
from transduce.machine import one_line
from transduce.model.transformer import Transformer
from transduce.training.memory import out_of_memory
from transduce.training.precision import precision_context


class CompiledLayers:
    """The layers of ``model``, compiled for tensors of any size, and only where `in_place`.

    All layers of one kind share one piece of code, so a deep model takes no longer to compile. Translating,
    and looking for what is not finite, go on with the layers as they are written.
    """

    def __init__(self, model: Transformer) -> None:
        layers = [*model.encoder.layers, *model.decoder.layers]
        self._compiled = [(layer, torch.compile(layer.forward, dynamic=True)) for layer in layers]

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Nothing; until left, forward passes of the model, and those of recomputation, are compiled ones."""
        for layer, compiled in self._compiled:
            layer.forward = compiled
        try:
            yield
        finally:
            for layer, _ in self._compiled:
                del layer.forward  # what is left is its class's


def compiled(model: Transformer, *, device: str, precision: str) -> CompiledLayers:
    """The compiled layers of ``model``, of which each kind has worked once; no gradients are left.

    Raises ConfigError where there is no compiler, or it fails.
    """
    # Three sizes that differ: of two that are the same the compiler would believe that they always are.
    rows, source, target = 5, 7, 11
    token = model.config.eos_id
    source_ids = torch.full((rows, source), token, device=device)
    source_ids[0, -1] = model.config.pad_id
    target_ids = torch.full((rows, target), token, device=device)
    devices = [torch.device(device)] if device.startswith("cuda") else []
    training = model.training
    try:
        layers = CompiledLayers(model)
        with torch.random.fork_rng(devices=devices), layers.in_place():
            with precision_context(device, precision):
                features, _ = model.train().features(target_ids, model.start(source_ids))
            features.float().sum().backward()  # type: ignore[no-untyped-call]
    except Exception as error:
        if out_of_memory(error):
            raise
        raise ConfigError(
            f"training.compile is on, but torch.compile fails here: {one_line(error)}; "
            f"{'install a C++ compiler (g++)' if device == 'cpu' else 'mend what it names'}, or set "
            "training.compile=false"
        ) from error
    finally:
        model.zero_grad()
        model.train(training)
    return layers
