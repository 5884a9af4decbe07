"""Whatever fails or is killed, and wherever: a complete state is left, and what the disk refused is said."""

from __future__ import annotations

import builtins
import hashlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from toy import Said, digest, toy_settings, trained, write_toy

from transduce.errors import TrainingError
from transduce.training import checkpoint as checkpoint_module
from transduce.training.checkpoint import Checkpoints
from transduce.training.run import train

NO_FORK_WARNING = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
FULL = OSError(28, "No space left on device")


# --- every operation of a save

OPERATIONS = ("open", "mkdir", "rename", "replace", "unlink", "rmdir", "fsync")


class _File:
    """An open file whose writes and closing are operations too."""

    def __init__(self, file: Any, operate: Callable[[], None]) -> None:
        self._file, self._operate = file, operate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, content: Any) -> Any:
        half = len(content) // 2
        self._file.write(content[:half])  # what is cut short may be there in part
        self._file.flush()
        self._operate()
        return half + self._file.write(content[half:])

    def flush(self) -> None:
        self._operate()
        self._file.flush()

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


@contextmanager
def _watched(operate: Callable[[], None]) -> Iterator[None]:
    """``operate`` is called before and after everything that a save does to the file system."""
    with pytest.MonkeyPatch.context() as patch:
        for name in OPERATIONS:
            real = getattr(os, name)

            def around(*arguments: Any, _real: Any = real, **named: Any) -> Any:
                operate()
                done = _real(*arguments, **named)
                operate()
                return done

            patch.setattr(os, name, around)
        opened, saved = builtins.open, checkpoint_module.save_file

        def watched_open(path: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
            operate()
            file = opened(path, mode, *arguments, **named)
            return file if mode.startswith("r") else _File(file, operate)

        def watched_save(tensors: Any, path: Path) -> None:
            operate()
            saved(tensors, path)
            whole = path.read_bytes()
            with opened(path, "wb") as file:
                file.write(whole[: len(whole) // 2])
            operate()
            with opened(path, "wb") as file:
                file.write(whole)
            operate()

        patch.setattr(io, "open", watched_open)
        patch.setattr(checkpoint_module, "save_file", watched_save)
        yield


def _prepared(folder: Path, again: bool) -> dict[int, dict[str, str]]:
    """Checkpoints of updates 1 and 2 are there; what a complete one of each step looks like, 3 included.

    With ``again`` the checkpoint that is about to be saved replaces one of the same update.
    """
    complete: dict[int, dict[str, str]] = {}
    for step in (1, 2, 3):
        model, optimizer = trained(steps=step)
        path = Checkpoints(folder / "model", keep=9).save(step, model, optimizer, {"passing": False})
        complete[step] = digest(path)
    shutil.copytree(folder / "model", folder / "before")
    if not again:
        shutil.rmtree(folder / "before" / "step-00000003")
    return complete


def _save_and_prune(folder: Path) -> None:
    model, optimizer = trained(steps=3)
    store = Checkpoints(folder, keep=1)
    store.save(3, model, optimizer, {"passing": False})
    store.prune(best=2)


def _check(folder: Path, complete: dict[int, dict[str, str]]) -> int:
    """The step of the checkpoint that the next start finds; it is whole, and so is all that looks so."""
    store = Checkpoints(folder, keep=1)
    store.recover()
    for step in store.steps():
        assert digest(store.path(step)) == complete[step], step
    assert not list(folder.glob(".*"))
    newest = store.newest()
    assert newest is not None
    model, optimizer = trained(steps=0)
    store.restore(newest, model, optimizer)
    step = store.steps()[-1]
    wanted, _ = trained(steps=step)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), wanted.parameters(), strict=True))
    return step


def _count(folder: Path) -> int:
    count = 0

    def operate() -> None:
        nonlocal count
        count += 1

    with _watched(operate):
        _save_and_prune(folder)
    return count


@NO_FORK_WARNING
@pytest.mark.parametrize("again", [False, True], ids=["new", "replacing"])
def test_a_kill_at_every_operation_of_a_save(tmp_path: Path, again: bool) -> None:
    complete = _prepared(tmp_path, again)
    shutil.copytree(tmp_path / "before", tmp_path / "counted")
    operations = _count(tmp_path / "counted")
    assert operations > 40
    found = set()
    for fatal in range(1, operations + 1):
        folder = tmp_path / f"killed-{fatal}"
        shutil.copytree(tmp_path / "before", folder)
        child = os.fork()
        if not child:
            left = fatal

            def operate() -> None:
                nonlocal left
                left -= 1
                if not left:
                    os._exit(9)

            with _watched(operate):
                _save_and_prune(folder)
            os._exit(1)  # it was not killed
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        found.add(_check(folder, complete))
    assert found == ({3} if again else {2, 3})


@pytest.mark.parametrize("again", [False, True], ids=["new", "replacing"])
@pytest.mark.parametrize("for_good", [False, True], ids=["once", "from then on"])
def test_a_failure_of_every_operation_of_a_save(tmp_path: Path, again: bool, for_good: bool) -> None:
    complete = _prepared(tmp_path, again)
    shutil.copytree(tmp_path / "before", tmp_path / "counted")
    said = 0
    for fatal in range(1, _count(tmp_path / "counted") + 1):
        folder = tmp_path / f"failed-{fatal}"
        shutil.copytree(tmp_path / "before", folder)
        left = fatal

        def operate() -> None:
            nonlocal left
            left -= 1
            if left == 0 or (for_good and left < 0):
                raise FULL

        message = ""
        try:
            with _watched(operate):
                _save_and_prune(folder)
        except TrainingError as error:
            message = str(error)
        except OSError:  # when the old ones are removed: the run says so, and the new one is there
            message = ""
        if message:
            said += 1
            assert "cannot write the checkpoint ([Errno 28] No space left" in message
            assert "the last good one is" in message
        assert _check(folder, complete) in (2, 3)
    assert said > 20


# --- kill -9 of a whole run

KILLED_RUN = """
import hashlib, json, os, sys, time
from pathlib import Path
import torch
sys.path.insert(0, {tests!r})
from toy import toy_settings
from transduce.training.run import train
torch.set_num_threads(1)
folder, run = Path({folder!r}), Path({folder!r}) / "run"

def newest():
    return max((p.name for p in run.glob("checkpoints/step-*")), default="")

for number, delay in enumerate({delays!r}):
    before = newest()
    resume = (run / "settings.json").exists()
    child = os.fork()
    if not child:
        settings = toy_settings(**{how!r}, average=2, max_steps=10**6)
        with open(os.devnull, "w") as stream:
            train(run, source=folder / "toy.en", target=folder / "toy.de", settings=settings,
                  resume=resume, stream=stream)
    # mostly while it saves; each fifth time on its way there
    while number % 5 != 4 and newest() == before and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.001)
    time.sleep(delay)
    os.kill(child, 9)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found = {{p.parent.name: hashlib.sha256(p.read_bytes()).hexdigest()
             for p in run.glob("checkpoints/step-*/optimizer.safetensors")}}
    print(json.dumps([status, resume, found]), flush=True)
"""


@pytest.mark.parametrize("kills", [6, pytest.param(100, marks=pytest.mark.slow)])
def test_kill_9_at_random_instants_of_a_run_that_saves_constantly(tmp_path: Path, kills: int) -> None:
    source, target = write_toy(tmp_path, 200)
    chance = random.Random(kills)
    how = {"save_every": 1, "valid_every": 10**6, "schedule": "constant", "rate": 1e-3}
    script = textwrap.dedent(KILLED_RUN).format(
        tests=str(Path(__file__).parent),
        folder=str(tmp_path),
        delays=[chance.uniform(0.0, 0.3) for _ in range(kills)],
        how=how,
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60 + 20 * kills,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    kinds, resumed, found = zip(*map(json.loads, done.stdout.splitlines()), strict=True)
    assert set(kinds) == {-9}, done.stderr  # none of them failed to go on
    assert sum(resumed) == kills - 1
    last = max(int(name[5:]) for names in found for name in names)
    assert last > kills
    # every checkpoint that was ever seen is that of a run that nobody stopped: Adam's moments, random state
    settings = toy_settings(**how, average=10**4, max_steps=last)
    straight = train(tmp_path / "straight", source=source, target=target, settings=settings, stream=Said())
    truth = {
        path.parent.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in straight.folder.glob("checkpoints/step-*/optimizer.safetensors")
    }
    assert len(truth) == last
    for names in found:
        assert names == {name: truth[name] for name in names}
