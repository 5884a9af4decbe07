"""Two hosts, played by two network namespaces that are joined by a virtual cable."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet import environment
from toy import toy_settings, write_toy

pytestmark = pytest.mark.slow
ADDRESSES = ("10.213.77.1", "10.213.77.2")
Hosts = tuple[str, str]


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("two hosts on one machine need iproute2 and root")
    names = (f"td{os.getpid()}a", f"td{os.getpid()}b")
    try:
        try:
            for name in names:
                _ip("netns", "add", name)
            first, second = ((name, "type", "veth", "peer", "name") for name in names)
            _ip("link", "add", "cable", "netns", *first, "cable", "netns", second[0])
            for name, address in zip(names, ADDRESSES, strict=True):
                _ip("-n", name, "address", "add", f"{address}/24", "dev", "cable")
                for link in ("lo", "cable"):
                    _ip("-n", name, "link", "set", link, "up")
        except OSError as error:
            pytest.skip(f"this system makes no network namespaces: {error}")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def _start(host: str, rank: int, folder: Path, *settings: str) -> subprocess.Popen[str]:
    command = [
        *("ip", "netns", "exec", host, sys.executable, "-m", "torch.distributed.run", "--nnodes=2"),
        *(f"--node-rank={rank}", f"--master-addr={ADDRESSES[0]}", "--master-port=29511"),
        *("--nproc-per-node=1", "-m", "transduce", "train", "--output", str(folder / "run")),
        *("--source", str(folder / "toy.en"), "--target", str(folder / "toy.de")),
    ]
    base = toy_settings(micro_batch_tokens=75, save_every=5, **{"max_steps": 10, "report_every": 1})
    values = {f"{section}.{name}": v for section, part in base.items() for name, v in part.items()}
    given = [f"{name}={value}" for name, value in values.items()]
    for assignment in [*given, *settings]:
        command += ["--set", assignment]
    # Hosts of one name: gloo is told which network joins them.
    variables = environment(GLOO_SOCKET_IFNAME="cable")
    return subprocess.Popen(
        command, env=variables, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=folder
    )


def _stop(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("parallel", ["replicated", "sharded"])
def test_two_hosts_make_one_run(tmp_path: Path, hosts: Hosts, parallel: str) -> None:
    write_toy(tmp_path)
    processes = [_start(h, rank, tmp_path, f"training.parallel={parallel}") for rank, h in enumerate(hosts)]
    try:
        outputs = [process.communicate(timeout=150)[1] for process in processes]
        assert [process.returncode for process in processes] == [0, 0], outputs
    finally:
        _stop(processes)
    assert json.loads((tmp_path / "run" / "training.json").read_bytes())["steps"] == 10
    assert f"2 workers, {parallel}" in outputs[0]
    assert "validation" in outputs[0]
    assert "validation" not in outputs[1]


def test_a_cut_cable_ends_both_hosts(tmp_path: Path, hosts: Hosts) -> None:
    write_toy(tmp_path)
    endless = ["training.max_steps=1000000", "training.timeout_minutes=0.1"]
    processes = [_start(host, rank, tmp_path, *endless) for rank, host in enumerate(hosts)]
    try:
        log, deadline = tmp_path / "run" / "log.jsonl", time.monotonic() + 90
        while not log.exists() or log.read_text(encoding="utf-8").count('"train"') < 5:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        _ip("-n", hosts[1], "link", "set", "cable", "down")
        begin = time.monotonic()
        outputs = [process.communicate(timeout=100)[1] for process in processes]
        assert time.monotonic() - begin < 90
    finally:
        _stop(processes)
    for process, said in zip(processes, outputs, strict=True):
        assert process.returncode == 1
        # whatever they were at: an operation on all, or waiting for worker 0 to write
        assert "lost the others" in said or "no sign of life for 0.1 minutes" in said, said
