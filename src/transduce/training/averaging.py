"""Section 6.1: the final model is the average of the last checkpoints."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from transduce.bundle import load_bundle, save_bundle
from transduce.counts import counted
from transduce.data.tokenizer import Tokenizer
from transduce.errors import BundleError, UsageError
from transduce.model.config import ModelConfig
from transduce.training.checkpoint import Checkpoints
from transduce.training.settings import stored_settings

LAST = 5  # the checkpoints that the paper averages for its base model


def average(paths: Sequence[str | Path]) -> dict[str, Tensor]:
    """The element-wise mean of the parameters in several folders' ``model.safetensors``.

    Sums are in float64 and are rounded once, to the type of the first; a tied matrix is one tensor in the
    files and stays one. Raises BundleError where the files are not of one model.
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


def average_folders(folders: Sequence[str | Path], output: str | Path, *, last: int = LAST) -> list[Path]:
    """The folders whose average is now the model folder ``output``.

    A run's folder stands for its ``last`` newest checkpoints; else each must be a checkpoint of a run or a
    model folder. Raises BundleError where they do not belong to one model and tokenizer.
    """
    if last < 1:
        raise UsageError(f"--last is {last}; it must be at least 1")
    paths: list[Path] = []
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise BundleError(f"{folder}: is not a folder; name checkpoints, model folders or a run's folder")
        newest = Checkpoints(folder / "checkpoints", keep=last).last(last)
        if newest and len(newest) < last and last != LAST:
            warnings.warn(
                f"{folder}: only {counted(len(newest), 'checkpoint', 'are')} there, not {last}", stacklevel=2
            )
        paths += newest or [folder]
    if any((Path(output) / name).exists() for name in ("config.json", "model.safetensors", "settings.json")):
        raise UsageError(f"{output}: already holds a model; choose another --output")
    real = [path.resolve() for path in paths]
    if repeated := [path for path in real if real.count(path) > 1]:
        raise UsageError(f"{repeated[0]}: is named twice and would count twice; name it once")
    weights = average(paths)
    parts = [config_and_tokenizer(path) for path in paths]
    config, tokenizer, training = parts[0]
    for path, (other, other_tokenizer, _) in zip(paths, parts, strict=True):
        if other_tokenizer.sha256 != tokenizer.sha256:
            raise BundleError(
                f"{path}: has another tokenizer than {paths[0]}; only models of one vocabulary average"
            )
        if other != config:
            raise BundleError(f"{path}: has another model configuration than {paths[0]}")
    save_bundle(
        output,
        weights,
        config,
        tokenizer,
        {**training, "averaged": [str(path) for path in paths], "scores": {}},
    )
    return paths


def config_and_tokenizer(path: Path) -> tuple[ModelConfig, Tokenizer, dict[str, Any]]:
    """What belongs to the weights in a checkpoint (its run says it) or in a model folder."""
    if (path / "config.json").exists():
        bundle = load_bundle(path)
        return bundle.model.config, bundle.tokenizer, bundle.training
    run = path.resolve().parent.parent
    settings = stored_settings(run)
    tokenizer = Tokenizer.load(run / "data" / "tokenizer.model")
    config = ModelConfig.from_mapping({**settings["model"], "vocabulary": tokenizer.vocabulary})
    return config, tokenizer, {"recipe": settings}
