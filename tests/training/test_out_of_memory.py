"""Memory that runs out in an update of a run: skipped, counted, and after three in a row the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from shortage import Shortage, run_out
from toy import toy_call

from transduce.errors import TrainingError
from transduce.training.run import train
from transduce.training.trainer import Trainer


def _toy(folder: Path, **training: Any) -> dict[str, Any]:
    return toy_call(folder, **{"save_every": 4, "report_every": 2, "max_steps": 6, **training})


def test_one_update_without_memory_is_skipped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = _toy(tmp_path, micro_batch_tokens=100)
    run_out(monkeypatch, [Shortage(3, part=1)])
    assert train(tmp_path / "run", **call).steps == 6
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_bytes().splitlines()]
    (event,) = [line for line in lines if line["event"] == "out-of-memory"]
    assert (event["step"], event["count"]) == (3, 1)
    said = call["stream"].getvalue()
    assert "step 3: out of memory with" in said
    assert "this update was skipped (1 so far)" in said
    state = max((tmp_path / "run" / "checkpoints").iterdir()) / "state.json"
    assert json.loads(state.read_bytes())["progress"]["out_of_memory"] == 1


def test_an_update_without_memory_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before: list[dict[str, torch.Tensor]] = []
    run_out(monkeypatch, [Shortage(3, part=1)])
    one = Trainer._one

    def spied(self: Trainer, ids: Any) -> None:
        before.append({name: value.clone() for name, value in self.model.state_dict().items()})
        assert all(parameter.grad is None for parameter in self.model.parameters())
        one(self, ids)

    monkeypatch.setattr(Trainer, "_one", spied)
    train(tmp_path / "run", **_toy(tmp_path, micro_batch_tokens=100))
    assert all(torch.equal(before[2][name], before[3][name]) for name in before[2])
    assert not all(torch.equal(before[3][name], before[4][name]) for name in before[3])


def test_three_without_memory_in_a_row_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_out(monkeypatch, [Shortage(step, part=1) for step in (3, 4, 5)])
    with pytest.raises(TrainingError, match=r"memory ran out in 3 updates in a row.*micro_batch_tokens"):
        train(tmp_path / "run", **_toy(tmp_path, micro_batch_tokens=100))
