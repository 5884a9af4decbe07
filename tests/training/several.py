"""Calls and runs that tests of several workers share, and how two runs are compared."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fleet import Call, note_pairs
from safetensors.torch import load_file
from toy import toy_settings, write_toy

from transduce.training.run import train

# At least five micro-batches an update, dropout and clipping on; the rate depends on the update's number.
HOW: dict[str, Any] = {
    "batch_tokens": 300,
    "micro_batch_tokens": 50,
    "schedule": "paper",
    "warmup": 9,
    "rate": 2e-3,
    "clip_norm": 1.0,
    "save_every": 1000,
    "max_steps": 0,
    "max_epochs": 1,
    "timeout_minutes": 2.0,
    "valid_lines": 1,
}
SHARDED = {"parallel": "sharded"}
ROWS = {**HOW, "micro_batch_tokens": 300}  # one micro-batch an update, whose rows are divided


def call_of(folder: Path, name: str, how: dict[str, Any], *, pairs: int = 200, **more: Any) -> Call:
    source, target = folder / f"{pairs}.en", folder / f"{pairs}.de"
    if not source.exists():
        for path, final in zip(write_toy(folder, pairs), (source, target), strict=True):
            path.rename(final)
    settings = toy_settings(**how)
    if how["micro_batch_tokens"] == ROWS["micro_batch_tokens"]:
        settings["model"]["dropout"] = 0.0  # the masks of rows depend on how they are divided
    where = {"output": str(folder / name), "source": str(source), "target": str(target)}
    return {**where, "settings": settings, **more}


def alone(call: Call, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(call["output"])
    monkeypatch.setattr("transduce.training.trainer.own_batches", note_pairs(folder, 0))
    named = {name: value for name, value in call.items() if name != "output"}
    with (folder.parent / "said.txt").open("a", encoding="utf-8") as stream:
        train(folder, stream=stream, **named)
    return folder


def state(run: Path) -> dict[str, torch.Tensor]:
    newest = max((run / "checkpoints").iterdir())
    optimizer = load_file(newest / "optimizer.safetensors")
    moments = {name: x for name, x in optimizer.items() if name.startswith(("exp_avg", "step"))}
    return {"model." + name: x for name, x in load_file(newest / "model.safetensors").items()} | moments


def assert_same_weights(run: Path, reference: Path) -> None:
    one, other = state(run), state(reference)
    assert one.keys() == other.keys()
    assert max((run / "checkpoints").iterdir()).name == max((reference / "checkpoints").iterdir()).name
    for name, tensor in one.items():
        torch.testing.assert_close(
            tensor, other[name], atol=2e-6, rtol=1e-4, msg=lambda m, n=name: f"{n}: {m}"
        )


def events(folder: Path, event: str) -> list[dict[str, Any]]:
    file = folder / "log.jsonl"
    lines = [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]] if file.exists() else []
    return [line for line in lines if line["event"] == event]


ENDLESS = {**HOW, "max_epochs": 0, "max_minutes": 5.0, "save_every": 3, "report_every": 1, "average": 1}


def wait(condition: Callable[[], Any], limit: float = 90) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "nothing happened in time"
        time.sleep(0.05)
