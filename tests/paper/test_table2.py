"""Table 2: what is printed, what outputs and models score, and what a model's training cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tiny_translator import sentences, tiny_bundle
from transduce.bundle import save_bundle
from transduce.cli.main import main
from transduce.evaluation.scores import score
from transduce.inspection.cost import SUSTAINED
from transduce.paper.table2 import PRINTED


def test_the_printed_costs_follow_from_the_papers_rule() -> None:
    flops = {row.system: row.flops_de for row in PRINTED}
    assert flops["Transformer (base model)"] == pytest.approx(12 * 3600 * 8 * SUSTAINED["p100"], rel=0.01)
    assert flops["Transformer (big)"] == pytest.approx(3.5 * 86400 * 8 * SUSTAINED["p100"], rel=0.01)


def test_outputs_and_models(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sacremoses", reason="the paper's BLEU needs the extra paper-bleu")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("transduce.machine.tune_allocator", lambda: "")
    bundle = tiny_bundle(max_length=40)
    training = {"seconds": 10.0, "source_tokens": 500, "target_tokens": 600}
    save_bundle("model", bundle.model, bundle.model.config, bundle.tokenizer, training)
    reference = sentences(8, seed=2, words=(5, 9))
    for name, lines in (
        ("s", sentences(8, seed=1, words=(2, 4))),
        ("r", reference),
        ("o", [*reference[:4], *reference[:4]]),
    ):
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    assert (
        main(
            [
                "paper",
                "table2",
                "o",
                "model",
                "--source",
                "s",
                "--reference",
                "r",
                "--rate",
                "p100",
                "--json",
                "f",
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "GNMT + RL" in out
    assert "28.40" in out
    first, second = json.loads(Path("f").read_bytes())["rows"]
    assert first["bleu"] == pytest.approx(score([*reference[:4], *reference[:4]], reference, ter=False).bleu)
    assert first["flops"] is None
    assert second["flops"]["paper_unit"] == pytest.approx(10 * 9.5e12)
    assert main(["paper", "table2", "o", "--source", "s", "--reference", "r", "--language", "es"]) == 2
    assert "Table 2 has de and fr" in capsys.readouterr().err
