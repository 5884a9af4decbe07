import importlib.metadata
import json
import os
import subprocess
import sys

import pytest
import torch

import transduce
from transduce import machine
from transduce.cli import doctor
from transduce.cli.main import main


@pytest.fixture(autouse=True)
def untouched_allocator(monkeypatch):
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.mmap_max=0")


def test_a_few_lines_say_what_there_is(capsys):
    assert main(["doctor"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = dict(line.split(maxsplit=1) for line in captured.out.splitlines())
    assert lines["transduce"].startswith(transduce.__version__)
    assert lines["torch"] == str(torch.__version__)
    assert {"device", "precision", "cores", "memory", "disk", "allocator", "extras"} <= set(lines)
    assert len(captured.out.splitlines()) < 20


def test_json_is_one_object(capsys):
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["transduce"] == transduce.__version__
    assert report["cores"] == machine.usable_cores()
    assert report["precision"] in ("bf16", "fp32")
    assert report["missing"] == [] or all(isinstance(line, str) for line in report["missing"])


def test_bf16_that_is_emulated_is_called_slow(monkeypatch, capsys):
    monkeypatch.setattr(machine, "cuda_problem", lambda *_: "no driver")
    monkeypatch.setattr(machine, "mps_problem", lambda: "no Apple silicon")
    for fast, text in (
        (False, "fp32: this CPU only emulates bf16, about ten times slower"),
        (True, "bf16, fast here"),
    ):
        monkeypatch.setattr(machine, "fast_bf16", lambda fast=fast: fast)
        main(["doctor"])
        assert text in capsys.readouterr().out


def test_a_broken_driver_is_named_in_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(machine, "NVIDIA_TRACES", (tmp_path,))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(machine, "cuda_problem", lambda *_: "RuntimeError: libcublas.so.13 is missing")
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "missing    CUDA: an NVIDIA GPU is here, but RuntimeError: libcublas.so.13 is missing\n" in text


def test_a_torch_that_breaks_while_asked_is_a_gap_and_no_traceback(monkeypatch, capsys):
    def fail(*_):
        raise OSError("driver\nbroke")

    monkeypatch.setattr(machine, "mps_problem", fail)
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "torch      cannot be used\n" in text
    assert "missing    torch: OSError: driver broke; pip install --force-reinstall torch" in text


def test_without_torch_it_still_says_the_rest():
    program = "import sys; sys.modules['torch'] = None; from transduce.cli.main import main; main(['doctor'])"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=os.environ
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert "torch      cannot be used" in run.stdout
    assert "missing    torch: " in run.stdout
    assert "cores " in run.stdout


def test_gpus_are_named_with_their_memory():
    report = doctor.examine() | {"device": "cuda", "gpus": [{"name": "H200", "memory": 140 * 2**30}] * 2}
    assert "cuda: H200 with 140.0 GiB, H200 with 140.0 GiB" in doctor.describe(report)


def test_missing_packages_come_with_the_remedy(monkeypatch):
    requirements = [
        "torch>=2.4",
        "zstandard>=0.22; extra == 'zstd'",
        'nonesuch>=1; extra == "odd"',
        "absent>=3",
    ]
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: requirements)
    report = doctor.examine()
    assert report["extras"].keys() == {"zstandard", "nonesuch"}
    assert "nonesuch (optional): pip install 'transduce[odd]'" in report["missing"]
    assert "absent: pip install absent" in report["missing"]
    assert not any("torch" in line for line in report["missing"])


def test_a_full_disk_is_a_gap(monkeypatch):
    usage = type("Usage", (), {"free": 2**20})
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: usage)
    assert any(line.startswith("disk: 0.0 GiB is free") for line in doctor.examine()["missing"])


def test_what_cannot_be_found_out_is_said_so(monkeypatch, capsys):
    def fail(*_):
        raise importlib.metadata.PackageNotFoundError("transduce")

    def no_disk(_):
        raise OSError("gone")

    monkeypatch.setattr(importlib.metadata, "requires", fail)
    monkeypatch.setattr(doctor.shutil, "disk_usage", no_disk)
    monkeypatch.setattr(machine, "usable_memory", lambda: None)
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "an unknown size usable" in text
    assert "transduce is on the path but not installed" in text
