"""Checkpoints: folders that appear complete or not at all, and hold all that a run needs to go on.

``step-00001500/`` holds ``model.safetensors`` (float32 parameters), ``optimizer.safetensors`` (Adam's moments
by parameter name, and the random generators) and ``state.json``. Nothing in them can run code.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
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

    def save(
        self, step: int, model: nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Any]
    ) -> Path:
        """The new checkpoint's folder; on return it is on the disk.

        Everything is written and synced under a temporary name, then renamed in one operation. Raises
        TrainingError where the disk refuses; older checkpoints are not touched.
        """
        path = self.path(step)
        weights = {name: whole(p.detach()) for name, p in model.named_parameters()}
        moments = _optimizer_tensors(model, optimizer)
        self.workers.first(lambda: self._write(path, weights, moments, {"step": step, **state}))
        return path

    def _write(
        self, path: Path, weights: dict[str, Tensor], moments: dict[str, Tensor], state: dict[str, Any]
    ) -> None:
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            save_file(weights, temporary / "model.safetensors")
            save_file(moments, temporary / "optimizer.safetensors")
            for name in ("model.safetensors", "optimizer.safetensors"):
                sync_file(temporary / name)
            write_json(temporary / "state.json", {"format": FORMAT, **state})
            shutil.rmtree(path, ignore_errors=True)
            temporary.rename(path)
            sync_folder(self.folder)
        except (OSError, SafetensorError) as error:
            shutil.rmtree(temporary, ignore_errors=True)
            newest = self.newest()
            kept = f"the last good one is {newest}" if newest else "there is no older one"
            raise TrainingError(f"{path}: cannot write the checkpoint ({error}); {kept}") from error

    def prune(self, best: int | None) -> None:
        """Nothing; only the newest ``keep`` checkpoints and that of update ``best`` are left."""
        for step in self.steps()[: -self.keep]:
            if step != best and self.workers.primary:
                shutil.rmtree(self.path(step))

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
        _load_parameters(path, model, weights)
        _load_optimizer(model, optimizer, moments)
        return state


def _load_parameters(path: Path, model: nn.Module, weights: dict[str, Tensor]) -> None:
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


def _load_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    for name, parameter in model.named_parameters():
        stored = {m: tensors[f"{m}.{name}"] for m in MOMENTS if f"{m}.{name}" in tensors}
        # Adam's counter, a single number, stands beside its parameter for the fused kernel.
        state = {m: like(parameter, x) if x.dim() else x.to(parameter.device) for m, x in stored.items()}
        if state:
            optimizer.state[parameter] = state
    torch.set_rng_state(tensors["random.cpu"])
    for device in range(torch.cuda.device_count()):
        if f"random.cuda.{device}" in tensors:
            torch.cuda.set_rng_state(tensors[f"random.cuda.{device}"], device)
