"""``transduce train`` as a user meets it: signals, going on, refusals."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from served import transduce
from transduce.cli.main import main
from transduce.decoding.translator import Translator

SMALL = ["--set", "model.d_model=32", "--set", "model.d_ff=64", "--set", "data.vocabulary=320", "--set"]
SMALL += ["training.device=cpu", "--set", "training.threads=1", "--set", "training.report_every=2"]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    words = ["one", "two", "three", "four", "five", "six"]
    lines = [" ".join(words[(i * k) % 6] for k in range(1, 2 + i % 7)) for i in range(200)]
    (tmp_path / "a.en").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (tmp_path / "a.de").write_text("".join(f"{line.upper()}\n" for line in lines), encoding="utf-8")
    return ["--source", str(tmp_path / "a.en"), "--target", str(tmp_path / "a.de")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_leaves(tmp_path: Path, files: list[str], number: signal.Signals) -> None:
    output = tmp_path / "run"
    command = ["train", *files, *SMALL, "--output", str(output), "--set", "training.max_steps=100000"]
    with transduce(*command, environment={**os.environ, "OMP_NUM_THREADS": "1"}) as process:
        for line in process.stderr:
            if line.startswith("step 4 "):
                break
        process.send_signal(number)
        begin = time.monotonic()
        said = process.stderr.read()
        assert process.wait(timeout=60) == 128 + number
        assert time.monotonic() - begin < 20
    assert f"stopped by {number.name}" in said
    assert "Traceback" not in said
    steps = json.loads((output / "training.json").read_bytes())["steps"]
    assert steps >= 4
    assert (output / "checkpoints" / f"step-{steps:08d}").is_dir()
    assert len(Translator.load(output, device="cpu").translate(["one two", ""])) == 2
    # and on it goes, with the settings of before
    more = ["train", "--resume", "--output", str(output), "--set", f"training.max_steps={steps + 3}"]
    assert main(more) == 0
    assert json.loads((output / "training.json").read_bytes())["steps"] == steps + 3


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--set", "training.max_step=3"], 2, "did you mean 'training.max_steps'"),
        (["--set", "nonsense"], 2, "is not of the form section.name=value"),
        (["--preset", "papr-base"], 2, "did you mean 'paper-base'"),
        (["--source", "more.en"], 2, "data.source names 2 files but data.target names 1"),
    ],
)
def test_wrong_calls(
    tmp_path: Path,
    files: list[str],
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    assert main(["train", *files, *arguments, "--output", str(tmp_path / "run")]) == code
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["train", "--source", "no.en", "--target", "no.de", "--output", str(tmp_path / "run")]
    assert main(call) == 1
    assert "no.en" in capsys.readouterr().err


def test_no_files_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--output", str(tmp_path / "run")]) == 2
    assert "no training files are named" in capsys.readouterr().err


def test_a_toml_file_and_flags_together(tmp_path: Path, files: list[str]) -> None:
    experiment = tmp_path / "e.toml"
    experiment.write_text('preset = "tiny"\n[training]\nmax_steps = 9\nseed = 5\n', encoding="utf-8")
    call = [
        "train",
        str(experiment),
        *files,
        *SMALL,
        "--set",
        "training.max_steps=3",
        "--output",
        str(tmp_path / "run"),
    ]
    assert main(call) == 0
    recipe = json.loads((tmp_path / "run" / "training.json").read_bytes())["recipe"]
    assert (recipe["preset"], recipe["training"]["seed"], recipe["training"]["max_steps"]) == ("tiny", 5, 3)


def test_average_of_a_runs_checkpoints(
    tmp_path: Path, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run, output = tmp_path / "run", tmp_path / "averaged"
    assert main(["train", *files, *SMALL, "--set", "training.max_steps=6", "--output", str(run)]) == 0
    assert main(["average", str(run), "--last", "2", "--output", str(output)]) == 0
    assert "step-00000006" in capsys.readouterr().out
    assert len(Translator.load(output, device="cpu").translate(["one two"])) == 1
    assert main(["average", str(tmp_path / "none"), "--output", str(output)]) == 1
    assert "is not a folder" in capsys.readouterr().err


def test_a_fault_in_a_settings_file_names_the_file(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "run.toml").write_text("[training]\nsede = 1\n", encoding="utf-8")
    assert main(["train", str(tmp_path / "run.toml"), "--output", str(tmp_path / "run")]) == 2
    assert "run.toml: there is no setting 'training.sede'; did you mean" in capsys.readouterr().err


def test_a_second_source_without_its_flag(tmp_path: Path, capsys: Any) -> None:
    files = ["--source", "one.en", "two.en", "--target", "one.de"]
    assert main(["train", *files, "--output", str(tmp_path / "run")]) == 2
    assert (
        "two.en: a settings file ends in .toml; to train on several files repeat" in capsys.readouterr().err
    )
