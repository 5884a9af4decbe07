"""Completion: the scripts that shells load, and what they are answered."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from transduce.cli.completion import SHELLS, VARIABLE
from transduce.cli.main import main


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_has_its_script(shell: str, capsys: Any) -> None:
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert VARIABLE in out
    assert "transduce" in out


def test_another_shell(capsys: Any) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "shell 'tcsh': choose one of bash, zsh, fish, powershell" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        ("transduce trans", ["translate"]),
        ("transduce translate --be", ["--beam"]),
        ("transduce corpus ge", []),
    ],
)
def test_commands_and_flags(words: str, answers: list[str], monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv(VARIABLE, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert main([]) == 0
    out = capsys.readouterr().out.split()
    assert out == (answers or ["get", "generate"])


def test_bash_takes_the_script(tmp_path: Path, capsys: Any) -> None:
    main(["completion", "bash"])
    (tmp_path / "script").write_text(capsys.readouterr().out)
    done = subprocess.run(
        ["bash", "-c", "source ./script && complete -p transduce"],
        cwd=tmp_path,
        env={**os.environ},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "_transduce_completion transduce" in done.stdout
