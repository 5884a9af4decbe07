"""Table 3: the printed rows, the ladder's ratios, statistics by hand, and runs that are gone on with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from transduce.cli.main import main
from transduce.errors import UsageError
from transduce.inspection.cost import shape_of
from transduce.model.config import NAMED, ModelConfig
from transduce.paper.table3 import (
    PRINTED,
    Scale,
    describe,
    student_tail,
    summary,
    table_3,
    verdict,
    welch_p,
)


def test_every_row_of_the_paper_is_here() -> None:
    rows = {name for name in NAMED if name[0] in "ABCDE"} | {"base", "big"}
    assert set(PRINTED) == rows
    # what is printed of sizes agrees with what the rows hold, as differences to base (see docs/departures.md)
    base = shape_of(ModelConfig.named("paper-base", vocabulary=37_000)).parameter_count()
    for row, printed in PRINTED.items():
        if printed.parameters is not None and row not in ("base", "big"):
            here = shape_of(ModelConfig.named(row, vocabulary=37_000)).parameter_count()
            assert (here - base) / 1e6 == pytest.approx(printed.parameters - 65, abs=4.1), row


@pytest.mark.parametrize("row", list(PRINTED))
def test_the_ladder_keeps_the_ratios(row: str) -> None:
    small, base = Scale(width=8, depth=2).settings(row), Scale(width=8, depth=2).settings("base")
    full, whole = Scale(width=1, depth=1).settings(row), Scale(width=1, depth=1).settings("base")
    named = ModelConfig.named("paper-base" if row == "base" else row, vocabulary=100)
    for name in full:
        assert full[name] == getattr(named, name)
        if isinstance(full[name], int):
            assert small[name] * whole[name] == full[name] * base[name]
        else:
            assert small[name] == full[name]
    ModelConfig(vocabulary=100, **small)


def test_sizes_that_do_not_divide() -> None:
    with pytest.raises(UsageError, match="row base: encoder_layers is 6, which 4 does not divide"):
        Scale(width=8, depth=4).settings("base")


def test_students_t_by_known_values() -> None:
    assert student_tail(12.706, 1.0) == pytest.approx(0.05, abs=1e-4)
    assert student_tail(2.776, 4.0) == pytest.approx(0.05, abs=1e-4)
    assert student_tail(2.228, 10.0) == pytest.approx(0.05, abs=1e-4)
    assert student_tail(0.0, 3.0) == pytest.approx(1.0, abs=1e-6)
    assert student_tail(1.96, 1e5) == pytest.approx(0.05, abs=1e-3)


def test_welchs_test_by_hand() -> None:
    # means 2 and 6, variances 1 and 1 of three values each: t = 4 / sqrt(2/3), 4 degrees of freedom
    assert welch_p([1.0, 2.0, 3.0], [5.0, 6.0, 7.0]) == pytest.approx(student_tail(4 / (2 / 3) ** 0.5, 4.0))
    assert welch_p([1.0], [2.0, 3.0]) is None
    assert welch_p([1.0, 1.0], [2.0, 2.0]) is None


def test_verdicts() -> None:
    assert verdict(-1.0, -0.5, 0.01) == "as printed"
    assert verdict(1.0, -0.5, 0.01) == "against the paper"
    assert verdict(-1.0, -0.5, 0.2) == "as printed, not significant"
    assert verdict(1.0, -0.5, None) == "other sign, not significant"
    assert verdict(1.0, 0.0, 0.01) == "the paper has no difference"


def test_the_summary_by_hand() -> None:
    def run(bleu: float, seed: int) -> dict[str, Any]:
        return {"seed": seed, "bleu": bleu, "perplexity": 50 - bleu, "parameters": 1000}

    rows = summary({"base": [run(30.0, 1), run(31.0, 2)], "A1": [run(20.0, 1), run(21.0, 2)], "C1": []})
    assert [row["row"] for row in rows] == ["base", "A1"]
    assert rows[1]["bleu"] == 20.5
    assert rows[1]["bleu_spread"] == 1
    assert rows[1]["bleu_difference"] == -10
    assert rows[1]["printed_bleu_difference"] == pytest.approx(-0.9)
    assert rows[1]["bleu_verdict"] == "as printed"
    text = describe(rows)
    assert "A1" in text
    assert "-10.00, -0.9: as printed, p = 0.0" in text


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    words = ["ab", "cd", "ef", "gh", "ij", "kl", "mn", "op", "qr", "st"]
    lines = [" ".join(words[i // 10**k % 10] for k in range(3)) for i in range(200)]
    (tmp_path / "s").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "t").write_text("".join(f"{' '.join(reversed(line.split()))}\n" for line in lines))
    return {"source": str(tmp_path / "s"), "target": str(tmp_path / "t")}


SMALL = {
    "data.vocabulary": 300,
    "data.valid_pairs": 10,
    "training.batch_tokens": 300,
    "training.max_steps": 3,
    "training.warmup": 2,
    "training.save_every": 2,
    "training.valid_every": 3,
}


def test_runs_are_made_once_and_gone_on_with(files: dict[str, str], tmp_path: Path) -> None:
    said: list[str] = []
    call = {
        "settings": SMALL,
        "rows": ["base", "D3"],
        "scale": Scale(width=32, depth=6),
        "say": said.append,
        **files,
    }
    first = table_3(tmp_path / "ladder", seeds=[1], **call)
    assert said == ["run 1 of 2: base, seed 1", "run 2 of 2: D3, seed 1"]
    smoothing = [
        json.loads((tmp_path / "ladder" / f"{row}-seed1" / "settings.json").read_bytes())["training"][
            "label_smoothing"
        ]
        for row in ("base", "D3")
    ]
    assert smoothing == [0.1, 0.0]
    said.clear()
    again = table_3(tmp_path / "ladder", seeds=[1, 2], **call)
    assert said == ["run 3 of 4: base, seed 2", "run 4 of 4: D3, seed 2"]
    assert again[0]["runs"][0] == first[0]["runs"][0]
    assert json.loads((tmp_path / "ladder" / "table3.json").read_bytes()) == again
    # one that was stopped before it was scored goes on
    folder = tmp_path / "ladder" / "D3-seed2"
    weights = (folder / "model.safetensors").read_bytes()
    training = json.loads((folder / "training.json").read_bytes())
    (folder / "training.json").write_text(json.dumps({**training, "scores": {}}))
    said.clear()
    rows = table_3(tmp_path / "ladder", seeds=[1, 2], **call)
    assert [row["bleu"] for row in rows] == [row["bleu"] for row in again]
    assert [row["perplexity"] for row in rows] == [row["perplexity"] for row in again]
    assert said == ["run 4 of 4: D3, seed 2"]
    assert (folder / "model.safetensors").read_bytes() == weights


def test_the_command(
    files: dict[str, str], tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transduce.machine.tune_allocator", lambda: "")
    call = ["paper", "table3", "--source", files["source"], "--target", files["target"], "--rows", "base"]
    call += [
        "--output",
        str(tmp_path / "l"),
        "--seeds",
        "1",
        "--width-by",
        "32",
        "--depth-by",
        "6",
        "--steps",
        "2",
    ]
    call += [
        word
        for name, value in SMALL.items()
        if "max_steps" not in name
        for word in ("--set", f"{name}={value}")
    ]
    assert main(call) == 0
    assert "means over 1 seeds" in capsys.readouterr().out
    for wrong, said in (
        (["--rows", "F"], "row 'F'; the rows of Table 3 are base, A1"),
        (["--seeds", "one"], "--seeds: 'one' is no seed"),
        (["--depth-by", "5"], "which 5 does not divide"),
    ):
        assert main([*call, *wrong]) == 2
        assert said in capsys.readouterr().err
