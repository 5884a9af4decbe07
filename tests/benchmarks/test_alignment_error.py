"""The alignment error rate by hand, and the script on a model that cannot align."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tiny_translator import sentences, tiny_bundle
from transduce.bundle import save_bundle

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "alignment_error.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("alignment_error", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_rate_by_hand(script: ModuleType) -> None:
    forward, backward = [{(0, 0), (1, 1)}, {(0, 1)}], [{(0, 0), (2, 1)}, {(0, 1)}]
    rate = script.error_rate([{(0, 0), (2, 1), (3, 3)}, set()], forward, backward)
    # sure: (0, 0) and (0, 1); possible besides: (1, 1) and (2, 1); found: one sure, one possible, one wrong
    assert rate["aer"] == pytest.approx(1 - (1 + 2) / (3 + 2))
    assert rate["precision"] == pytest.approx(2 / 3)
    assert rate["recall"] == pytest.approx(1 / 2)
    assert script.error_rate(forward, forward, forward)["aer"] == 0


def test_the_script(script: ModuleType, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce.machine.tune_allocator", lambda: "")
    monkeypatch.setattr("transduce.machine.set_threads", lambda threads: 1)
    bundle = tiny_bundle(max_length=40)
    save_bundle(tmp_path / "model", bundle.model, bundle.model.config, bundle.tokenizer, {})
    texts = sentences(4, seed=1, words=(3, 5))
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in texts))
    diagonal = "".join(" ".join(f"{i}-{i}" for i in range(len(line.split()))) + "\n" for line in texts)
    (tmp_path / "links").write_text(diagonal)
    call = ["alignment_error.py", str(tmp_path / "model"), "--source", str(tmp_path / "text")]
    call += ["--target", str(tmp_path / "text"), "--forward", str(tmp_path / "links"), "--backward"]
    monkeypatch.setattr(sys, "argv", [*call, str(tmp_path / "links")])
    assert script.main() == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert len(figures) == bundle.model.config.decoder_layers + 1
    assert all(0 < one["aer"] <= 1 for one in figures.values())
    (tmp_path / "short").write_text("0-0\n")
    monkeypatch.setattr(sys, "argv", [*call, str(tmp_path / "short")])
    with pytest.raises(SystemExit, match=r"lines of the four files: \[4, 4, 4, 1\]"):
        script.main()
