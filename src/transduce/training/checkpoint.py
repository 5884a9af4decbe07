"""Checkpoints: folders that appear complete or not at all, and hold all that a run needs to go on.

``step-00001500/`` holds ``model.safetensors`` (float32 parameters), ``optimizer.safetensors`` (Adam's moments
by parameter name, and the random generators), ``state.json``, and ``ema.safetensors`` where a moving average
is kept. Nothing in them can run code.

Beside them, under hidden names, stands what a save has not finished: ``.step-00001500.tmp`` while it is
written, ``.old`` while another of the same update takes its place, ``.gone`` while it is deleted.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from transduce.errors import TrainingError
from transduce.files import sync_file, sync_folder, write_json
from transduce.training.distributed import ALONE, Workers
from transduce.training.sharding import like, whole

FORMAT = 1
_NAME = re.compile(r"step-(\d{8})")
MOMENTS = ("exp_avg", "exp_avg_sq", "step")


class Checkpoints:
    """The checkpoints of one run: the newest ``keep`` of them, and the best.

    With several workers all call, worker 0 writes; the files say nothing of how many there were.
    """

    def __init__(self, folder: str | Path, keep: int, workers: Workers = ALONE) -> None:
        self.folder, self.keep, self.workers = Path(folder), keep, workers

    def steps(self) -> list[int]:
        """The updates after which complete checkpoints exist, oldest first."""
        if not self.folder.is_dir():
            return []
        return sorted(int(m[1]) for m in (_NAME.fullmatch(path.name) for path in self.folder.iterdir()) if m)

    def path(self, step: int) -> Path:
        """The folder of the checkpoint after update ``step``."""
        return self.folder / f"step-{step:08d}"

    def newest(self) -> Path | None:
        """The newest complete checkpoint."""
        steps = self.steps()
        return self.path(steps[-1]) if steps else None

    def last(self, count: int) -> list[Path]:
        """The newest ``count`` that training has made; update 0 is where it started, and the last resort."""
        steps = self.steps()
        return [self.path(step) for step in ([step for step in steps if step] or steps)[-count:]]

    def save(
        self,
        step: int,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        state: dict[str, Any],
        *,
        more: Mapping[str, dict[str, Tensor]] = MappingProxyType({}),
    ) -> Path:
        """The new checkpoint's folder; on return it is on the disk. ``more`` holds further files of tensors.

        Everything is written and synced under a temporary name, then renamed in one operation. Raises
        TrainingError where the disk refuses; older checkpoints are not touched. With ``passing`` in ``state``
        it is one that only a signal brought about: `prune` removes it as soon as there is a newer one.
        """
        path = self.path(step)
        files = {
            "model.safetensors": {name: whole(p.detach()) for name, p in model.named_parameters()},
            "optimizer.safetensors": _optimizer_tensors(model, optimizer),
            **{name: {n: whole(t) for n, t in tensors.items()} for name, tensors in more.items()},
        }
        self.workers.first(lambda: self._write(path, files, {"step": step, **state}))
        return path

    def _write(self, path: Path, files: dict[str, dict[str, Tensor]], state: dict[str, Any]) -> None:
        temporary, old = _hidden(path, "tmp"), _hidden(path, "old")
        try:
            if not self.folder.exists():
                self.folder.mkdir(parents=True)
                sync_folder(self.folder.parent)
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            for name, tensors in files.items():
                save_file(tensors, temporary / name)
                sync_file(temporary / name)
            write_json(temporary / "state.json", {"format": FORMAT, **state})
            if path.exists():  # no single operation replaces a folder: `recover` undoes this one if need be
                shutil.rmtree(old, ignore_errors=True)
                path.rename(old)
            temporary.rename(path)
            sync_folder(self.folder)
            shutil.rmtree(old, ignore_errors=True)
        except (OSError, SafetensorError) as error:
            with suppress(OSError):  # a disk that fails may refuse this as well; the next start does it
                self.recover()
            newest = self.newest()
            kept = f"the last good one is {newest}" if newest else "there is no older one"
            raise TrainingError(
                f"{path}: cannot write the checkpoint ({error}); {kept}; make room, then --resume"
            ) from error

    def recover(self) -> None:
        """Nothing; no trace is left of a save or removal that was cut short.

        A checkpoint that was about to be replaced is back, unless the new one stands in its place.
        """
        for old in self.folder.glob(".step-*.old"):
            path = old.with_name(old.name.removeprefix(".").removesuffix(".old"))
            if not path.exists():
                old.rename(path)
        for rubbish in (
            path for end in ("tmp", "old", "gone") for path in self.folder.glob(f".step-*.{end}")
        ):
            shutil.rmtree(rubbish)

    def prune(self, best: int | None) -> None:
        """Nothing; only the newest ``keep`` checkpoints and that of update ``best`` are left.

        One that a signal brought about is not among the ``keep``, and is left while it is the newest of all:
        so a run that was stopped keeps, and averages, what it would have kept had it not been stopped.
        """
        if not self.workers.primary:
            return
        steps = self.steps()
        lasting = [step for step in steps if not self._is_passing(step)]
        for step in set(steps) - {*lasting[-self.keep :], *steps[-1:], best}:
            # A folder is emptied file by file: under its own name it would pass for complete meanwhile.
            gone = self.path(step).rename(_hidden(self.path(step), "gone"))
            shutil.rmtree(gone)

    def _is_passing(self, step: int) -> bool:
        try:
            return bool(json.loads((self.path(step) / "state.json").read_bytes()).get("passing"))
        except (OSError, ValueError, AttributeError):  # damaged: `restore` says so when it is wanted
            return False

    def restore(self, path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """The state of the checkpoint ``path``, whose tensors are now in model, optimizer and generators."""
        try:
            state: dict[str, Any] = json.loads((path / "state.json").read_bytes())
            weights = load_file(path / "model.safetensors")
            moments = load_file(path / "optimizer.safetensors")
        except (OSError, ValueError, SafetensorError) as error:
            raise TrainingError(
                f"{path}: the checkpoint is damaged ({error}); remove it to use the one before"
            ) from error
        if state.get("format") != FORMAT:
            raise TrainingError(
                f"{path}: checkpoint format {state.get('format')!r}; this version reads {FORMAT}"
            )
        load_parameters(path, model, weights)
        load_moments(model, optimizer, moments)
        _load_random_state(moments)
        return state


def _hidden(path: Path, end: str) -> Path:
    return path.with_name(f".{path.name}.{end}")


def load_parameters(path: Path, model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Nothing; the model has the weights of ``path``. TrainingError where they are another model's."""
    parameters = dict(model.named_parameters())
    if {n: p.shape for n, p in parameters.items()} != {n: w.shape for n, w in weights.items()}:
        odd = sorted(set(parameters) ^ set(weights)) or [
            n for n, p in parameters.items() if p.shape != weights[n].shape
        ]
        raise TrainingError(
            f"{path}: the checkpoint is of another model: {odd[0]} differs; restore the old settings"
        )
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(like(parameter, weights[name]))


def _optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    tensors = {"random.cpu": torch.get_rng_state()}
    for device in range(torch.cuda.device_count()):
        tensors[f"random.cuda.{device}"] = torch.cuda.get_rng_state(device)
    for name, parameter in model.named_parameters():
        for moment, value in optimizer.state[parameter].items():
            tensors[f"{moment}.{name}"] = whole(value)
    return tensors


def load_moments(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Nothing; Adam has these moments and counters, named as in ``optimizer.safetensors``."""
    for name, parameter in model.named_parameters():
        stored = {m: tensors[f"{m}.{name}"] for m in MOMENTS if f"{m}.{name}" in tensors}
        # Adam's counter, a single number, stands beside its parameter for the fused kernel.
        state = {m: like(parameter, x) if x.dim() else x.to(parameter.device) for m, x in stored.items()}
        if state:
            optimizer.state[parameter] = state


def _load_random_state(tensors: dict[str, Tensor]) -> None:
    torch.set_rng_state(tensors["random.cpu"])
    for device in range(torch.cuda.device_count()):
        if f"random.cuda.{device}" in tensors:
            torch.cuda.set_rng_state(tensors[f"random.cuda.{device}"], device)
