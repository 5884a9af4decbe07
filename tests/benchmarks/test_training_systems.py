"""The systems of `benchmarks/training_speed.py` train the same thing, and the check of that can fail."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from transduce.model.config import ModelConfig
from transduce.training.step import Batch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def beside() -> Iterator[None]:
    """The scripts import each other as neighbours."""
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture
def systems() -> ModuleType:
    return importlib.import_module("training_systems")


@pytest.fixture
def check() -> ModuleType:
    return importlib.import_module("training_check")


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # torch's word on its own encoder with pre-norm
@pytest.mark.parametrize("name", ["transduce", "torch"])
def test_a_system_trains_what_we_train(name: str, systems: ModuleType, check: ModuleType) -> None:
    found = check.check(systems.SYSTEMS[name][1])
    assert found["wrong"] == []
    # torch's attention has biases: four of d_model in each of 2 + 2 x 3
    assert found["more"] == {"transduce": 0, "torch": 4 * 32 * 8}[name]


def test_the_check_notices_what_is_wrong(systems: ModuleType, check: ModuleType) -> None:
    training = importlib.import_module("training_loop").Training

    def broken(config: ModelConfig, precision: str) -> Any:
        whole = systems.transduce_training(config, precision)

        def step(batch: Batch) -> torch.Tensor:  # learns nothing and averages over padding too
            return torch.tensor(6.0 * batch.target_tokens / batch.target_out.numel())

        return training(whole.parameters + config.vocabulary * config.d_model, step)

    wrong = check.check(broken)["wrong"]
    assert len(wrong) == 3
    assert wrong[0].startswith("+16,000 parameters")
    assert "does not fall" in wrong[1]
    assert "padding that counts" in wrong[2]


def test_what_one_process_says(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["training_check.py", "--one", "transduce"])
    assert check.main() == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["more"], said["wrong"]) == (0, [])


@pytest.mark.parametrize("wrong", [[], ["padding that counts"]])
def test_a_system_runs_by_the_python_of_its_environment(
    wrong: list[str],
    check: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    said = {"more": 500, "losses": [6.5, 6.0], "change": 0.0, "wrong": wrong, "version": "9.8"}
    other = _program(
        tmp_path, f"echo $PYTHONPATH $@ > {tmp_path}/called; echo a log; echo '{json.dumps(said)}'"
    )
    monkeypatch.setattr(sys, "argv", ["training_check.py", "--systems", "eole", "--python", f"eole={other}"])
    assert check.main() == len(wrong)
    assert capsys.readouterr().out.splitlines()[1].endswith(wrong[0] if wrong else "nothing")
    path, *words = (tmp_path / "called").read_text().split()
    assert path == f"{BENCHMARKS.parent / 'src'}:/elsewhere"
    assert words == [str(BENCHMARKS / "training_check.py"), "--one", "eole"]


def test_a_system_that_fails_is_not_passed_over(
    check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = _program(tmp_path, "exit 3")
    monkeypatch.setattr(sys, "argv", ["training_check.py", "--systems", "eole", "--python", f"eole={other}"])
    with pytest.raises(SystemExit, match="--one eole ended with exit status 3: see above"):
        check.main()


def _program(folder: Path, line: str) -> Path:
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{line}\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--python", "nematus=/usr/bin/python3"], "the systems are transduce, torch, "),
        (
            ["--python", "sockeye=/nowhere/python"],
            "--python sockeye=/nowhere/python: name a python program there is",
        ),
        (["--python", "sockeye"], "--python sockeye: name a python program there is, as --python sockeye=/"),
    ],
)
def test_what_cannot_run_is_refused(
    words: list[str],
    message: str,
    check: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["training_check.py", *words])
    with pytest.raises(SystemExit) as ended:
        check.main()
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_a_peer_that_is_not_installed_is_named_with_the_remedy(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.import_module("training_processes"), "installed", lambda: ["transduce"])
    monkeypatch.setattr(sys, "argv", ["training_check.py", "--systems", "eole"])
    with pytest.raises(SystemExit):
        check.main()
    assert "eole is not installed here: install it, or name the Python that has it" in capsys.readouterr().err
