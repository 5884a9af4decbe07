"""Whatever fails or is killed, and wherever: a complete state is left, and what the disk refused is said."""

from __future__ import annotations

import ast
import builtins
import hashlib
import io
import json
import os
import pickletools
import random
import resource
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
from torch import nn
from toy import Said, toy_settings, write_toy

from transduce.errors import DataError, TrainingError, TransduceError
from transduce.training import checkpoint as checkpoint_module
from transduce.training.checkpoint import Checkpoints
from transduce.training.config import TrainingConfig
from transduce.training.folder import check_space, clear_leftovers
from transduce.training.optimizer import adam
from transduce.training.run import train

NO_FORK_WARNING = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
FULL = OSError(28, "No space left on device")


def _trained(steps: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(1)
    model = nn.Linear(3, 2)
    optimizer = adam(model, TrainingConfig())
    for _ in range(steps):
        model(torch.randn(4, 3)).square().sum().backward()
        optimizer.param_groups[0]["lr"] = 0.1
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def _digest(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


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
        model, optimizer = _trained(step)
        path = Checkpoints(folder / "model", keep=9).save(step, model, optimizer, {"passing": False})
        complete[step] = _digest(path)
    shutil.copytree(folder / "model", folder / "before")
    if not again:
        shutil.rmtree(folder / "before" / "step-00000003")
    return complete


def _save_and_prune(folder: Path) -> None:
    model, optimizer = _trained(3)
    store = Checkpoints(folder, keep=1)
    store.save(3, model, optimizer, {"passing": False})
    store.prune(best=2)


def _check(folder: Path, complete: dict[int, dict[str, str]]) -> int:
    """The step of the checkpoint that the next start finds; it is whole, and so is all that looks so."""
    store = Checkpoints(folder, keep=1)
    store.recover()
    for step in store.steps():
        assert _digest(store.path(step)) == complete[step], step
    assert not list(folder.glob(".*"))
    newest = store.newest()
    assert newest is not None
    model, optimizer = _trained(0)
    store.restore(newest, model, optimizer)
    step = store.steps()[-1]
    wanted, _ = _trained(step)
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


# --- what the disk refuses


def _toy(folder: Path, **training: Any) -> dict[str, Any]:
    source, target = write_toy(folder, 200)
    how = {
        "save_every": 2,
        "valid_every": 1000,
        "report_every": 1,
        "max_steps": 5,
        "valid_lines": 1,
        **training,
    }
    return {"source": source, "target": target, "settings": toy_settings(**how), "stream": Said()}


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
    call = _toy(tmp_path)
    with _limited(1000), pytest.raises(DataError, match=r"data.*cannot be written: File too large"):
        train(tmp_path / "run", **call)
    assert train(tmp_path / "run", **call).steps == 5  # nothing of the failure is in the way


@pytest.mark.parametrize("what", ["checkpoint", "log", "model", "settings"])
def test_no_room_in_the_middle_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    call = _toy(tmp_path)
    train(tmp_path / "run", **{**call, "settings": toy_settings(save_every=2, max_steps=4)})
    newest = Checkpoints(tmp_path / "run" / "checkpoints", keep=3).newest()
    assert newest is not None
    before = _digest(newest)
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
                else "transduce.training.composition.write_json"
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
    assert _digest(newest) == before
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
    call = _toy(tmp_path, save_every=1, average=2, max_steps=30)
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
        train(tmp_path / "run", **_toy(tmp_path))
    assert not (tmp_path / "run" / "data" / "train").exists()


def test_leftovers_are_cleared_at_the_next_start(tmp_path: Path) -> None:
    call = _toy(tmp_path)
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


# --- nothing that can run code


def _is_pickle(content: bytes) -> bool:
    if content[:4] == b"PK\x03\x04":  # what torch.save writes
        return True
    try:
        return bool(list(pickletools.genops(content)))
    except Exception:
        return False


def test_no_file_of_a_run_is_a_pickle(tmp_path: Path) -> None:
    run = train(tmp_path / "run", **_toy(tmp_path)).folder
    files = [path for path in run.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert [path.name for path in files if _is_pickle(path.read_bytes())] == []
    torch.save({"a": 1}, tmp_path / "pickled")
    assert _is_pickle((tmp_path / "pickled").read_bytes())


def _calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def test_no_source_line_reads_or_writes_pickles() -> None:
    forbidden = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}
    source = Path(checkpoint_module.__file__).parents[1]
    files = sorted(source.rglob("*.py"))
    assert len(files) > 90
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not forbidden & {name.split(".")[0] for name in names}, file
        for name, call in _calls(tree):
            keywords = {k.arg: ast.unparse(k.value) for k in call.keywords}
            assert name != "torch.load" or keywords.get("weights_only") == "True", file
            assert name not in ("torch.save", "eval", "exec"), file
            assert keywords.get("allow_pickle", "False") == "False", file
