"""Several workers make one run: the same updates, weights and files as one worker, and no hanging.

Real processes on this machine, joined by gloo. Each fleet makes several runs, for starting one takes seconds.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fleet import Call, ended, environment, fleet, note_pairs, run_fleet, seen, written
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
ROWS = {**HOW, "micro_batch_tokens": 300}  # one micro-batch an update, whose rows are divided


def _call(folder: Path, name: str, how: dict[str, Any], *, pairs: int = 200, **more: Any) -> Call:
    source, target = folder / f"{pairs}.en", folder / f"{pairs}.de"
    if not source.exists():
        for path, final in zip(write_toy(folder, pairs), (source, target), strict=True):
            path.rename(final)
    settings = toy_settings(**how)
    if how["micro_batch_tokens"] == ROWS["micro_batch_tokens"]:
        settings["model"]["dropout"] = 0.0  # the masks of rows depend on how they are divided
    where = {"output": str(folder / name), "source": str(source), "target": str(target)}
    return {**where, "settings": settings, **more}


def _alone(call: Call, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(call["output"])
    monkeypatch.setattr("transduce.training.trainer.own_batches", note_pairs(folder, 0))
    named = {name: value for name, value in call.items() if name != "output"}
    with (folder.parent / "said.txt").open("a", encoding="utf-8") as stream:
        train(folder, stream=stream, **named)
    return folder


def _state(run: Path) -> dict[str, torch.Tensor]:
    newest = max((run / "checkpoints").iterdir())
    optimizer = load_file(newest / "optimizer.safetensors")
    moments = {name: x for name, x in optimizer.items() if name.startswith(("exp_avg", "step"))}
    return {"model." + name: x for name, x in load_file(newest / "model.safetensors").items()} | moments


def _assert_same_weights(run: Path, reference: Path) -> None:
    one, other = _state(run), _state(reference)
    assert one.keys() == other.keys()
    assert max((run / "checkpoints").iterdir()).name == max((reference / "checkpoints").iterdir()).name
    for name, tensor in one.items():
        torch.testing.assert_close(
            tensor, other[name], atol=2e-6, rtol=1e-4, msg=lambda m, n=name: f"{n}: {m}"
        )


SHARDED = {"parallel": "sharded"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs of one worker and of two."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        _alone(_call(folder, "one", HOW), patch)
        _alone(_call(folder, "one-rows", ROWS), patch)
    two = [
        _call(folder, "two", HOW),
        _call(folder, "two-sharded", {**HOW, **SHARDED}),
        _call(folder, "two-rows", ROWS),
        _call(folder, "cut", {**HOW, "max_steps": 4}),
    ]
    run_fleet(folder, two, 2)
    for name in ("to-one", "to-four"):
        shutil.copytree(folder / "cut", folder / name)
    return folder


@pytest.fixture(scope="module")
def four(runs: Path) -> Path:
    """The same folder with the runs of four workers."""
    calls = [
        _call(runs, "four", HOW),
        _call(runs, "four-rows", {**ROWS, **SHARDED}),
        _call(runs, "to-four", {**HOW, **SHARDED}, resume=True),
        # about three sentences an update for four workers
        _call(runs, "few", {**HOW, "batch_tokens": 30, "micro_batch_tokens": 30}, pairs=24),
    ]
    run_fleet(runs, calls, 4)
    return runs


@pytest.mark.parametrize("name", ["two", "two-sharded"])
def test_two_workers_reach_the_same_weights_as_one(runs: Path, name: str) -> None:
    assert seen(runs / name) == seen(runs / "one")
    _assert_same_weights(runs / name, runs / "one")
    assert len(seen(runs / name)) == 8


def test_where_micro_batches_are_few_their_rows_are_divided(runs: Path) -> None:
    assert seen(runs / "two-rows") == seen(runs / "one-rows")
    _assert_same_weights(runs / "two-rows", runs / "one-rows")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "reference"), [("four", "one"), ("four-rows", "one-rows")])
def test_four_workers_reach_the_same_weights_as_one(four: Path, name: str, reference: str) -> None:
    assert seen(four / name) == seen(four / reference)
    _assert_same_weights(four / name, four / reference)


def _each_pair_once(run: Path) -> None:
    updates, start = seen(run), _log(run, "start")[0]
    assert len(updates) == start["updates_per_epoch"]
    assert sorted(i for ids in updates.values() for i in ids) == list(range(start["data"]["kept"]))


def test_every_pair_is_used_once_an_epoch(runs: Path) -> None:
    for name in ("one", "two", "two-sharded", "two-rows"):
        _each_pair_once(runs / name)


@pytest.mark.slow
def test_updates_with_fewer_sentences_than_workers_end(four: Path) -> None:
    _each_pair_once(four / "few")
    assert min(len(ids) for ids in seen(four / "few").values()) < 4
    assert json.loads((four / "few" / "training.json").read_bytes())["ended"] == "1 epochs are done"


def test_a_run_of_two_workers_goes_on_with_one(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _alone(_call(runs, "to-one", HOW, resume=True), monkeypatch)
    _assert_same_run_from(4, runs / "to-one", runs / "one")


@pytest.mark.slow
def test_a_run_of_two_workers_goes_on_with_four_that_share_the_model(four: Path) -> None:
    _assert_same_run_from(4, four / "to-four", four / "one")


def _assert_same_run_from(step: int, run: Path, reference: Path) -> None:
    assert seen(run) == {number: ids for number, ids in seen(reference).items() if number >= step}
    _assert_same_weights(run, reference)


def test_worker_0_alone_writes(runs: Path) -> None:
    for name in ("two", "two-sharded", "cut"):
        assert any("checkpoints" in line for line in written(runs / name, 0))
        assert written(runs / name, 1) == []


def test_the_log_counts_what_all_workers_saw(runs: Path) -> None:
    one, two = (_log(runs / name, "train") for name in ("one", "two-sharded"))
    for mine, other in zip(one, two, strict=True):
        assert mine["step"] == other["step"]
        for name in ("loss", "nll", "gradient_norm", "rate"):
            assert mine[name] == pytest.approx(other[name], rel=1e-4)
    assert len(one) == 1
    tokens = [
        json.loads((runs / name / "training.json").read_bytes())["target_tokens"] for name in ("one", "two")
    ]
    assert tokens[0] == tokens[1] == _log(runs / "one", "start")[0]["data"]["target_tokens"]


def _log(folder: Path, event: str) -> list[dict[str, Any]]:
    file = folder / "log.jsonl"
    lines = [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]] if file.exists() else []
    return [line for line in lines if line["event"] == event]


ENDLESS = {**HOW, "max_epochs": 0, "max_minutes": 5.0, "save_every": 3, "report_every": 1, "average": 1}


def _wait(condition: Callable[[], Any], limit: float = 90) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "nothing happened in time"
        time.sleep(0.05)


def test_a_lost_worker_ends_the_others(tmp_path: Path) -> None:
    call = _call(tmp_path, "run", {**ENDLESS, "timeout_minutes": 0.1})
    with fleet(tmp_path, [call], 2) as processes:
        _wait(lambda: len(_log(tmp_path / "run", "train")) > 4)
        processes[1].send_signal(signal.SIGKILL)
        code, said = ended(processes, limit=15)[0]  # its connections break: much sooner than the time-out
        assert code == 1
        assert "TrainingError: worker 0 lost the others (" in said
        assert "start again with --resume" in said


@pytest.mark.slow
def test_a_silent_worker_ends_the_others(tmp_path: Path) -> None:
    call = _call(tmp_path, "run", {**ENDLESS, "timeout_minutes": 0.1})
    with fleet(tmp_path, [call], 2) as processes:
        _wait(lambda: len(_log(tmp_path / "run", "train")) > 4)
        processes[1].send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        code, said = ended(processes[:1], limit=30)[0]
        assert code == 1
        assert "lost the others" in said
        assert 4 < time.monotonic() - begin < 25


@pytest.mark.slow
def test_a_signal_to_one_worker_ends_the_run_well_and_waiting_never_times_out(tmp_path: Path) -> None:
    # validation takes longer than a worker may be silent
    how = {**ENDLESS, "timeout_minutes": 0.05, "valid_every": 2}
    with fleet(tmp_path, [_call(tmp_path, "run", how, validation_seconds=5)], 2) as processes:
        _wait(lambda: len(_log(tmp_path / "run", "validation")) > 0)
        processes[1].send_signal(signal.SIGTERM)
        assert [code for code, _ in ended(processes, limit=60)] == [0, 0]
    assert json.loads((tmp_path / "run" / "training.json").read_bytes())["ended"] == "stopped by SIGTERM"


def test_workers_that_were_told_different_things_do_not_start(tmp_path: Path) -> None:
    call = _call(tmp_path, "run", HOW)
    other = _call(tmp_path, "run", {**HOW, "seed": 2})["settings"]
    with fleet(tmp_path, [{**call, "settings_of": {"1": other}}], 2) as processes:
        (first, told), (second, said) = ended(processes)
    assert "worker 1 on" in said
    assert "another training than worker 0: seed is 1 there, 2 here" in said
    assert second == 2
    assert first == 1
    assert "seed is 1 there" in told  # the first says why it stopped


def _torchrun(*arguments: str, workers: int = 2, restarts: int = 0) -> list[str]:
    return [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={workers}"),
        *(f"--max-restarts={restarts}", "-m", "transduce", "train", *arguments),
    ]


def _workers_of(torchrun: int) -> list[int]:
    children = Path(f"/proc/{torchrun}/task/{torchrun}/children").read_text(encoding="utf-8").split()
    return sorted(int(child) for child in children)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to find the workers")
def test_torchrun_restarts_a_run_where_it_was(tmp_path: Path) -> None:
    call = _call(tmp_path, "run", HOW)
    settings = tmp_path / "run.toml"
    settings.write_text(
        "[data]\nvocabulary = 320\nvalid_pairs = 10\n"
        "[model]\nd_model = 32\nd_ff = 64\nheads = 4\nencoder_layers = 1\ndecoder_layers = 1\n"
        "[training]\nbatch_tokens = 300\nmicro_batch_tokens = 75\nsave_every = 5\nvalid_every = 1000\n"
        'max_steps = 400\nreport_every = 1\ndevice = "cpu"\nthreads = 1\n',
        encoding="utf-8",
    )
    names = ["--source", call["source"], "--target", call["target"], "--output", call["output"]]
    command = _torchrun(str(settings), *names, "--resume", restarts=1)
    run = tmp_path / "run"
    with subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        try:
            _wait(lambda: len(_log(run, "train")) > 8)
            os.kill(_workers_of(process.pid)[1], signal.SIGKILL)
            _, said = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 0, said
    assert "resuming after update" in said
    assert json.loads((run / "training.json").read_bytes())["steps"] == 400
    assert len(_log(run, "start")) == 2
    steps = [line["step"] for line in _log(run, "train")]
    again = next(i for i in range(1, len(steps)) if steps[i] <= steps[i - 1])
    assert steps[again] > 1  # not from the beginning
    assert steps[again] % 5 == 1


@pytest.mark.slow
def test_the_command_of_the_documentation(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("torchrun --nproc-per-node"))
    source, target = write_toy(tmp_path, 200)
    (tmp_path / "corpus").mkdir()
    source.rename(tmp_path / "corpus" / "train.en")
    target.rename(tmp_path / "corpus" / "train.de")
    arguments = line.split()
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", *arguments[1:]]
    shorter = ["--set", "training.max_steps=3", "--set", "model.d_model=32", "--set", "data.vocabulary=320"]
    done = subprocess.run(
        [*command, *shorter], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "2 workers, replicated" in done.stderr
    assert (tmp_path / arguments[arguments.index("--output") + 1] / "model.safetensors").exists()


def test_as_many_workers_as_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    from transduce.errors import ConfigError
    from transduce.training.distributed import Workers

    workers = Workers(0, 4)
    workers.local_count = 4
    with pytest.raises(ConfigError, match="name auto, cpu or cuda, and each takes one"):
        workers.device("cuda:3")
    assert workers.device("cpu") == "cpu"
    monkeypatch.setattr("transduce.training.distributed.torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("transduce.training.distributed.torch.cuda.device_count", lambda: 2)
    with pytest.raises(
        ConfigError, match=r"4 workers run on .*, which has 2 GPUs: give torchrun --nproc-per-node 2"
    ):
        workers.device("auto")


def test_threads_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from transduce.training.distributed import Workers

    monkeypatch.setattr("transduce.training.distributed.machine.usable_cores", lambda: 9)
    workers = Workers(0, 8)
    for local, wanted, given in [(4, 0, 2), (4, 3, 3), (16, 0, 1)]:
        workers.local_count = local
        assert workers.threads(wanted) == given
    assert Workers().threads(0) == 0
