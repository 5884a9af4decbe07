"""Norms while learning: both kinds see the same batches, and the table has every layer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from transduce.cli.main import main


def test_the_command(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce.machine.tune_allocator", lambda: "")
    monkeypatch.setattr("transduce.machine.set_threads", lambda threads: 1)
    words = ["ab", "cd", "ef", "gh", "ij", "kl", "mn", "op", "qr", "st"]
    lines = [" ".join(words[i // 10**k % 10] for k in range(3)) for i in range(200)]
    for name in ("s", "t"):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    call = [
        "paper",
        "norms",
        "--source",
        str(tmp_path / "s"),
        "--target",
        str(tmp_path / "t"),
        "--vocabulary",
        "300",
    ]
    call += [
        "--output",
        str(tmp_path / "n"),
        "--at",
        "0,2",
        "--d-model",
        "16",
        "--layers",
        "2",
        "--batch-tokens",
        "200",
    ]
    assert main(call) == 0
    out = capsys.readouterr().out
    rows = json.loads((tmp_path / "n" / "norms.json").read_bytes())["rows"]
    assert len(rows) == 2 * 2 * 4  # kinds, numbers of updates, layers
    assert {row["updates"] for row in rows} == {0, 2}
    first = [row for row in rows if row["norm"] == "post" and row["updates"] == 0]
    assert all(row["activation"] == pytest.approx(1, abs=0.01) for row in first)
    assert "pre  decoder  layer 2" in out
    assert main([*call, "--at", "x"]) == 2
    assert "--at x: expected rising numbers of updates" in capsys.readouterr().err
