"""Section 6.1: the final model is the average of the last checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from transduce.errors import BundleError, UsageError


def average(paths: Sequence[str | Path]) -> dict[str, Tensor]:
    """The element-wise mean of the parameters in several folders' ``model.safetensors``.

    Sums are in float64 and are rounded once, to the type of the first; a tied matrix is one tensor in the files
    and stays one. Raises BundleError where the files are not of one model.
    """
    if not paths:
        raise UsageError("there is nothing to average: name at least one checkpoint or model folder")
    sums: dict[str, Tensor] = {}
    types: dict[str, torch.dtype] = {}
    for path in paths:
        tensors = _read(Path(path))
        if sums and set(tensors) != set(sums):
            odd = sorted(set(tensors) ^ set(sums))[0]
            raise BundleError(f"{path}: is of another model than {paths[0]}: only one of them has {odd}")
        for name, tensor in tensors.items():
            if name not in sums:
                sums[name], types[name] = tensor.double(), tensor.dtype
            elif sums[name].shape != tensor.shape:
                raise BundleError(
                    f"{path}: is of another model than {paths[0]}: {name} is {list(tensor.shape)}, "
                    f"not {list(sums[name].shape)}"
                )
            else:
                sums[name] += tensor.double()
    return {name: (total / len(paths)).to(types[name]) for name, total in sums.items()}


def _read(folder: Path) -> dict[str, Tensor]:
    file = folder / "model.safetensors"
    try:
        with safe_open(file, framework="pt") as tensors:
            return {name: tensors.get_tensor(name) for name in tensors.keys()}  # noqa: SIM118 (not a mapping)
    except (OSError, SafetensorError) as error:
        raise BundleError(f"{file}: cannot be read ({error}); name checkpoint or model folders") from error
