"""Which module made a loss or gradient that is not finite: found by a second pass, after the event.

An update itself only looks at the gradient's length; hooks in every module would slow down all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from transduce.model.transformer import Transformer
from transduce.training.config import TrainingConfig
from transduce.training.precision import precision_context
from transduce.training.step import Batch, batch_loss


def first_offender(
    model: Transformer, batches: Sequence[Batch], config: TrainingConfig, *, precision: str
) -> str:
    """What is not finite first when ``batches`` go through the model once more, and of which module.

    The first module in forward order with such an output; where all outputs are finite, the first with such a
    parameter, else with such a gradient (the embeddings, which have no call, come first). Parameters and
    random state are afterwards as before, and no gradients are left. Dropout is drawn anew, so that what only
    the lost masks brought about is not found.
    """
    devices = [batches[0].source.device] if batches[0].source.device.type == "cuda" else []
    order: list[str] = []
    output = None
    with torch.random.fork_rng(devices=devices):
        for batch in batches:
            order, found = _pass(model, batch, config, precision)
            output = output or found
            if output is not None:
                break
    try:
        return (
            output
            or _tensors(model, ["embeddings", *order])
            or "nothing that a second pass over the same pairs shows"
        )
    finally:
        model.zero_grad()


def _pass(
    model: Transformer, batch: Batch, config: TrainingConfig, precision: str
) -> tuple[list[str], str | None]:
    """The modules in forward order, and the first of them whose output is not finite; gradients are added."""
    order: list[str] = []
    found: list[str] = []

    def watch(name: str) -> Any:
        def after(_: nn.Module, inputs: Any, outputs: Any) -> None:
            order.append(name)
            if not found and not _finite(outputs):
                # Whatever came in broken was made by one without a call of its own: the embeddings.
                found.append(f"the output of {name}" if _finite(inputs) else _uncalled(model, name))

        return after

    names = ((name, module) for name, module in model.named_modules() if name)
    handles = [module.register_forward_hook(watch(name)) for name, module in names]
    try:
        with precision_context(str(batch.source.device), precision):
            loss, _ = batch_loss(
                model, batch, smoothing=config.label_smoothing, scale=1.0 / max(batch.target_tokens, 1)
            )
        if not found:
            loss.backward()  # type: ignore[no-untyped-call]
    finally:
        for handle in handles:
            handle.remove()
    return order, found[0] if found else None


def _uncalled(model: Transformer, called: str) -> str:
    return _tensors(model, ["embeddings"]) or f"the input of {called}"


def _tensors(model: Transformer, order: Iterable[str]) -> str | None:
    """The first parameter, or else gradient, that is not finite, in the order of the modules' names given."""
    modules = dict(model.named_modules())
    owned = [
        (f"{name}.{own}", parameter)
        for name in dict.fromkeys(order)
        for own, parameter in modules[name].named_parameters(recurse=False)
    ]
    for name, parameter in owned:
        if not _finite(parameter):
            return f"the parameter {name}"
    for name, parameter in owned:
        if not _finite(parameter.grad):
            return f"the gradient of {name}"
    return None


def _finite(value: Any) -> bool:
    """Whether all floating-point numbers of a tensor, or of tensors in lists and tuples, are."""
    if isinstance(value, Tensor):
        return not value.is_floating_point() or bool(torch.isfinite(value).all())
    if isinstance(value, list | tuple):
        return all(_finite(part) for part in value)
    return True
