"""Workers that are lost, silent, stopped or told different things: nothing hangs, and the error says why."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fleet import ended, environment, fleet
from several import ENDLESS, HOW, call_of, events, wait
from toy import write_toy


def test_a_lost_worker_ends_the_others(tmp_path: Path) -> None:
    call = call_of(tmp_path, "run", {**ENDLESS, "timeout_minutes": 0.1})
    with fleet(tmp_path, [call], 2) as processes:
        wait(lambda: len(events(tmp_path / "run", "train")) > 4)
        processes[1].send_signal(signal.SIGKILL)
        code, said = ended(processes, limit=15)[0]  # its connections break: much sooner than the time-out
        assert code == 1
        assert "TrainingError: worker 0 lost the others (" in said
        assert "start again with --resume" in said


@pytest.mark.slow
def test_a_silent_worker_ends_the_others(tmp_path: Path) -> None:
    call = call_of(tmp_path, "run", {**ENDLESS, "timeout_minutes": 0.1})
    with fleet(tmp_path, [call], 2) as processes:
        wait(lambda: len(events(tmp_path / "run", "train")) > 4)
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
    with fleet(tmp_path, [call_of(tmp_path, "run", how, validation_seconds=5)], 2) as processes:
        wait(lambda: len(events(tmp_path / "run", "validation")) > 0)
        processes[1].send_signal(signal.SIGTERM)
        assert [code for code, _ in ended(processes, limit=60)] == [0, 0]
    assert json.loads((tmp_path / "run" / "training.json").read_bytes())["ended"] == "stopped by SIGTERM"


def test_workers_that_were_told_different_things_do_not_start(tmp_path: Path) -> None:
    call = call_of(tmp_path, "run", HOW)
    other = call_of(tmp_path, "run", {**HOW, "seed": 2})["settings"]
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
    call = call_of(tmp_path, "run", HOW)
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
            wait(lambda: len(events(run, "train")) > 8)
            os.kill(_workers_of(process.pid)[1], signal.SIGKILL)
            _, said = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 0, said
    assert "resuming after update" in said
    assert json.loads((run / "training.json").read_bytes())["steps"] == 400
    assert len(events(run, "start")) == 2
    steps = [line["step"] for line in events(run, "train")]
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
