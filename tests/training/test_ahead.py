"""Updates that are decided upon on the device, as on a GPU: the same run, only read one update later."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from shortage import Shortage, decide_on_the_device, run_out
from toy import toy_call

from transduce.errors import TrainingError
from transduce.model.transformer import Transformer
from transduce.training import step as step_module
from transduce.training.config import TrainingConfig
from transduce.training.optimizer import adam
from transduce.training.run import train
from transduce.training.step import Batch, Begun, Learner, begin_update
from transduce.training.trainer import Trainer

pytestmark = pytest.mark.usefixtures("unscored")


def _entries(run: Path) -> list[dict[str, Any]]:
    """What the log says, but for what a clock says."""
    lines = [json.loads(line) for line in (run / "log.jsonl").read_bytes().splitlines()]
    timed = ("time", "seconds", "wait_data", "source_tokens_per_second", "target_tokens_per_second")
    return [{n: v for n, v in line.items() if n not in timed} for line in lines]


def _checkpoint(run: Path, file: str) -> dict[str, torch.Tensor]:
    return load_file(max((run / "checkpoints").iterdir()) / file)


def _break_losses(patch: pytest.MonkeyPatch, steps: set[int]) -> None:
    """In these updates the loss is not a number."""
    now = 0
    work, loss = Trainer._update, step_module.batch_loss

    def counted(self: Trainer, *arguments: Any) -> Any:
        nonlocal now
        now = self.progress.step + 1
        return work(self, *arguments)

    def broken(*arguments: Any, **named: Any) -> Any:
        smoothed, plain = loss(*arguments, **named)
        return smoothed * (math.nan if now in steps else 1.0), plain

    patch.setattr(Trainer, "_update", counted)
    patch.setattr(step_module, "batch_loss", broken)


HOW: dict[str, Any] = {
    "max_steps": 9, "save_every": 4, "report_every": 3, "micro_batch_tokens": 100, "clip_norm": 1.0,
}  # fmt: skip


@pytest.mark.parametrize("skips", [False, True], ids=["all move", "three are skipped"])
def test_the_run_is_the_same(tmp_path: Path, skips: bool) -> None:
    for name in ("waits", "ahead"):
        with pytest.MonkeyPatch.context() as patch:
            if name == "ahead":
                decide_on_the_device(patch)
            if skips:
                _break_losses(patch, {1, 5})
                run_out(patch, [Shortage(7, part=1, backward=True)])
            train(tmp_path / name, **toy_call(tmp_path, **HOW, ema=0.9))
    waits, ahead = tmp_path / "waits", tmp_path / "ahead"
    for file in ("model.safetensors", "optimizer.safetensors"):
        one, other = _checkpoint(waits, file), _checkpoint(ahead, file)
        assert one.keys() == other.keys()
        assert all(torch.equal(one[key], other[key]) for key in one)
    one, other = (_checkpoint(run, "ema.safetensors") for run in (waits, ahead))
    assert all(torch.allclose(one[key], other[key], rtol=1e-6, atol=1e-8) for key in one)
    assert _entries(waits) == _entries(ahead)
    kinds = [entry["event"] for entry in _entries(ahead)]
    assert (kinds.count("non-finite"), kinds.count("out-of-memory")) == ((2, 1) if skips else (0, 0))


def test_an_update_is_read_after_the_next_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decide_on_the_device(monkeypatch)
    happened: list[str] = []
    work, read = Trainer._update, Begun.read
    updates: list[Begun] = []

    def begun(self: Trainer, *arguments: Any) -> Begun:
        result = work(self, *arguments)
        updates.append(result)
        happened.append(f"begun {len(updates)}")
        return result

    def noted(self: Begun) -> Any:
        if self in updates:  # and not that of the trial before the first
            happened.append(f"read {updates.index(self) + 1}")
        return read(self)

    monkeypatch.setattr(Trainer, "_update", begun)
    monkeypatch.setattr(Begun, "read", noted)
    train(tmp_path / "run", **toy_call(tmp_path, max_steps=4, save_every=100, report_every=100, ema=0.9))
    assert happened == [
        "begun 1", "begun 2", "read 1", "begun 3", "read 2", "begun 4", "read 3", "read 4",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["non-finite", "out-of-memory"])
def test_three_in_a_row_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    decide_on_the_device(monkeypatch)
    if kind == "non-finite":
        _break_losses(monkeypatch, {5, 6, 7})
    else:
        run_out(monkeypatch, [Shortage(step) for step in (5, 6, 7)])
    with pytest.raises(TrainingError, match=r"in 3 updates in a row, up to step 7.*step-00000004"):
        train(tmp_path / "run", **toy_call(tmp_path, **{**HOW, "average": 1}))
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["step-00000004"]
    assert [entry["step"] for entry in _entries(tmp_path / "run") if entry["event"] == kind] == [5, 6, 7]


# --- on a GPU


@pytest.mark.cuda
@pytest.mark.parametrize("poison", [False, True])
def test_a_gpu_is_never_waited_for(small_model: Callable[..., Transformer], poison: bool) -> None:
    model = small_model(dropout=0.1).cuda().train()
    if poison:
        with torch.no_grad():
            model.encoder.layers[0].feed_forward.w_1.weight[0, 0] = math.inf
    before = [parameter.detach().clone() for parameter in model.parameters()]
    config = TrainingConfig(clip_norm=1.0)
    optimizer, learner = adam(model, config), Learner(model)
    ids = torch.full((3, 4), 5, device="cuda")
    batches = [Batch(ids, ids, ids, 12, 12, seed=number) for number in range(2)]

    def begin() -> Begun:
        return begin_update(learner, optimizer, batches, config, rate=1e-3, precision="bf16")

    begin()  # libraries may be loaded, and memory reserved
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        begun = [begin() for _ in range(3)]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert all(each.read().moved != poison for each in begun)
    moved = [not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True)]
    assert any(moved) != poison


@pytest.mark.cuda
def test_a_run_on_a_gpu_is_the_one_that_waits(tmp_path: Path) -> None:
    how = {**HOW, "device": "cuda", "deterministic": True}
    train(tmp_path / "ahead", **toy_call(tmp_path, **how))
    with pytest.MonkeyPatch.context() as patch:
        decide_on_the_device(patch, wanted=False)
        train(tmp_path / "waits", **toy_call(tmp_path, **how))
    one, other = (_checkpoint(tmp_path / name, "optimizer.safetensors") for name in ("ahead", "waits"))
    assert all(torch.equal(one[key], other[key]) for key in one)
