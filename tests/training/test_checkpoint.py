"""Checkpoints appear whole or not at all, hold everything, and are kept as asked."""

from __future__ import annotations

import json
import pickletools
from pathlib import Path

import pytest
import torch
from torch import nn
from toy import trained

from transduce.errors import TrainingError
from transduce.training.checkpoint import Checkpoints
from transduce.training.config import TrainingConfig
from transduce.training.optimizer import adam


def test_everything_comes_back(tmp_path: Path) -> None:
    model, optimizer = trained()
    store = Checkpoints(tmp_path / "c", keep=2)
    path = store.save(3, model, optimizer, {"progress": {"step": 3}})
    random = torch.rand(5)
    other, other_optimizer = trained(seed=9, steps=1)
    state = store.restore(path, other, other_optimizer)
    assert state["progress"] == {"step": 3}
    assert torch.equal(torch.rand(5), random)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        for name, value in optimizer.state[one].items():
            assert torch.equal(other_optimizer.state[two][name], value), name


def test_a_failing_disk_leaves_the_older_checkpoint_and_no_rubbish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, optimizer = trained()
    store = Checkpoints(tmp_path / "c", keep=2)
    old = store.save(3, model, optimizer, {})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for target in ("save_file", "write_json", "sync_file"):
        with monkeypatch.context() as patch:
            patch.setattr(f"transduce.training.checkpoint.{target}", full)
            with pytest.raises(
                TrainingError, match=r"step-00000004: .*No space left.* last good one is .*step-00000003"
            ):
                store.save(4, model, optimizer, {})
        assert [path.name for path in (tmp_path / "c").iterdir()] == [old.name]
    store.restore(old, model, optimizer)


def test_half_written_folders_are_not_checkpoints(tmp_path: Path) -> None:
    (tmp_path / ".step-00000007.tmp").mkdir()
    (tmp_path / "step-7").mkdir()
    assert Checkpoints(tmp_path, keep=1).newest() is None


def test_the_newest_and_the_best_are_kept(tmp_path: Path) -> None:
    model, optimizer = trained()
    store = Checkpoints(tmp_path, keep=2)
    for step in (10, 20, 30, 40):
        store.save(step, model, optimizer, {})
        store.prune(best=10)
    assert store.steps() == [10, 30, 40]


def test_damage_and_strangers_are_named(tmp_path: Path) -> None:
    model, optimizer = trained()
    store = Checkpoints(tmp_path, keep=2)
    path = store.save(1, model, optimizer, {})
    stranger = nn.Linear(4, 2)
    with pytest.raises(TrainingError, match=r"of another model: weight differs"):
        store.restore(path, stranger, adam(stranger, TrainingConfig()))
    content = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(TrainingError, match="checkpoint is damaged"):
        store.restore(path, model, optimizer)


def test_no_pickle_anywhere(tmp_path: Path) -> None:
    model, optimizer = trained()
    path = Checkpoints(tmp_path, keep=2).save(1, model, optimizer, {})
    assert sorted(p.name for p in path.iterdir()) == [
        "model.safetensors",
        "optimizer.safetensors",
        "state.json",
    ]
    json.loads((path / "state.json").read_bytes())
    for file in path.glob("*.safetensors"):
        header = int.from_bytes(file.read_bytes()[:8], "little")
        json.loads(file.read_bytes()[8 : 8 + header])
        with pytest.raises(Exception, match=r".*"):
            list(pickletools.genops(file.read_bytes()))
