"""What the disk refuses: said in one line, and the last good state stays."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from toy import digest, toy_call, toy_settings

from transduce.errors import DataError, TrainingError, TransduceError
from transduce.training.checkpoint import Checkpoints
from transduce.training.folder import check_space, clear_leftovers
from transduce.training.run import train

FULL = OSError(28, "No space left on device")


@contextmanager
def _limited(size: int) -> Iterator[None]:
    """No file can grow beyond ``size`` bytes: the system's own refusal, as of a full disk or a quota."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_no_room_for_the_data(tmp_path: Path) -> None:
    call = toy_call(tmp_path)
    with _limited(1000), pytest.raises(DataError, match=r"data.*cannot be written: File too large"):
        train(tmp_path / "run", **call)
    assert train(tmp_path / "run", **call).steps == 5  # nothing of the failure is in the way


@pytest.mark.parametrize("what", ["checkpoint", "log", "model", "settings"])
def test_no_room_in_the_middle_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    call = toy_call(tmp_path)
    train(tmp_path / "run", **{**call, "settings": toy_settings(save_every=2, max_steps=4)})
    newest = Checkpoints(tmp_path / "run" / "checkpoints", keep=3).newest()
    assert newest is not None
    before = digest(newest)
    with monkeypatch.context() as patch:
        if what == "checkpoint":
            limit = _limited((newest / "model.safetensors").stat().st_size - 1)
        elif what == "log":
            limit = _limited((tmp_path / "run" / "log.jsonl").stat().st_size)
            patch.setattr("transduce.training.composition.Run._describe", lambda *_: None)
        else:
            limit = _limited(10**9)
            name = (
                "transduce.training.finish.save_bundle"
                if what == "model"
                else "transduce.training.folder.write_json"
            )

            def full(*_: Any, **__: Any) -> None:
                raise FULL

            patch.setattr(name, full)
        with limit, pytest.raises(TrainingError) as caught:
            train(tmp_path / "run", **call, resume=True)
    message = str(caught.value)
    assert "cannot" in message
    assert "step-0000000" in message
    assert "make room, then --resume" in message
    assert caught.value.exit_code == 1
    assert digest(newest) == before
    assert train(tmp_path / "run", **call, resume=True).steps == 5
    lines = (tmp_path / "run" / "log.jsonl").read_bytes().splitlines()
    steps = [entry["step"] for entry in map(json.loads, lines) if entry["event"] == "train"]
    assert steps[-1] == 5
    assert len(set(steps)) == len(steps)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of eight MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
    if os.geteuid() or not shutil.which("mount") or subprocess.run(command, check=False).returncode:
        pytest.skip("only root can mount a small file system")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_fills_up(tmp_path: Path, small_disk: Path) -> None:
    call = toy_call(tmp_path, save_every=1, average=2, max_steps=30)
    parameters = json.loads(
        (train(tmp_path / "other", **call).folder / "log.jsonl").read_bytes().splitlines()[0]
    )["parameters"]
    # free space is asked for at the start
    (small_disk / "filler").write_bytes(bytes(shutil.disk_usage(small_disk).free - 20 * parameters))
    with pytest.raises(TransduceError, match=r"need .* MiB are free; make room"):
        train(small_disk / "run", **call)
    (small_disk / "filler").unlink()
    shutil.rmtree(small_disk / "run", ignore_errors=True)
    # and where somebody else takes it later, the run stops with the last good state
    from transduce.training.trainer import Trainer

    saves = 0
    real = Trainer.save

    def filled(self: Trainer, **named: Any) -> None:
        nonlocal saves
        saves += 1
        if saves == 3:
            free = shutil.disk_usage(small_disk).free
            (small_disk / "filler").write_bytes(bytes(max(0, free - 2 * parameters)))
        real(self, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "save", filled)
        patch.setattr("transduce.training.composition.check_space", lambda *_, **__: "")
        with pytest.raises(
            TrainingError, match=r"step-00000003: cannot write .* last good one is .*step-00000002"
        ):
            train(small_disk / "run", **call)
    (small_disk / "filler").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transduce.training.composition.check_space", lambda *_, **__: "")
        assert train(small_disk / "run", **call, resume=True).steps == 30
    one, other = (run / "model.safetensors" for run in (small_disk / "run", tmp_path / "other"))
    assert one.read_bytes() == other.read_bytes()


def test_free_space_is_asked_for_and_what_is_there_already_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 100 * 2**20}))
    parameters = 2**20  # 12 MiB a checkpoint
    assert check_space(tmp_path, 3 * parameters, kept=5, there=0).startswith(
        "checkpoints will take up to 96 MiB"
    )
    with pytest.raises(TrainingError, match=r"need 108 MiB but 100 MiB are free; make room, lower"):
        check_space(tmp_path, 3 * parameters, kept=6, there=0)
    assert check_space(tmp_path, 3 * parameters, kept=6, there=6).startswith(
        "checkpoints will take up to 36 MiB"
    )


def test_no_room_is_noticed_before_the_data_are_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    with pytest.raises(DataError, match=r"data: about 0 MiB are needed but 0 MiB are free; make room"):
        train(tmp_path / "run", **toy_call(tmp_path))
    assert not (tmp_path / "run" / "data" / "train").exists()


def test_leftovers_are_cleared_at_the_next_start(tmp_path: Path) -> None:
    call = toy_call(tmp_path)
    train(tmp_path / "run", **{**call, "settings": toy_settings(save_every=2, max_steps=4)})
    run = tmp_path / "run"
    files = (".model.safetensors.77.tmp", ".settings.json.77.tmp", "data/.prepared.json.77.tmp")
    files += ("data/.tokenizer.model.77.tmp", "data/.valid.jsonl.77.tmp", "data/train/.meta.json.77.tmp")
    for name in files:
        (run / name).write_text("half", encoding="utf-8")
    for name in (".step-00000003.tmp", ".step-00000001.gone", ".step-00000004.old"):
        (run / "checkpoints" / name).mkdir()
    (run / ".mine").write_text("mine", encoding="utf-8")
    train(run, **call, resume=True)
    hidden = {str(path.relative_to(run)) for path in run.rglob(".*")}
    assert hidden == {".mine", ".lock"}
    clear_leftovers(tmp_path / "nowhere")  # no folder, no error
