"""The learning rate as a table and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from transduce.cli.main import main


def test_the_peak_of_base_is_the_papers(capsys: Any) -> None:
    assert main(["paper", "schedule", "--steps", "100000"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    base = next(row for row in rows if row[:2] == ["512", "4000"])
    assert float(base[2]) == pytest.approx(6.9877e-4, rel=1e-4)
    assert float(base[4]) == pytest.approx(1.397542e-4, rel=1e-4)
    assert len(rows) == 1 + 9


def test_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra plots")
    assert main(["paper", "schedule", "--plot", str(tmp_path / "s.svg")]) == 0
    assert "<svg" in (tmp_path / "s.svg").read_text()


def test_what_is_refused(capsys: Any) -> None:
    for call, said in (
        (["--steps", "0"], "--steps is 0"),
        (["--plot", "a.txt"], "end its name in .png or .svg"),
    ):
        assert main(["paper", "schedule", *call]) == 2
        assert said in capsys.readouterr().err
