"""The commands that look inside a model: what they print and write, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tiny_translator import sentences, tiny_bundle
from transduce.bundle import load_bundle, save_bundle
from transduce.cli.main import main

SOURCES, TARGETS = (sentences(6, seed=seed, words=(2, 5)) for seed in (1, 2))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("inspect") / "model"
    bundle = tiny_bundle(max_length=40, ends=9.0)
    training = {"seconds": 100.0, "source_tokens": 5_000, "target_tokens": 6_000}
    save_bundle(folder, bundle.model, bundle.model.config, bundle.tokenizer, training)
    return str(folder)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").write_text("".join(f"{line}\n" for line in [SOURCES[0], "", *SOURCES[1:]]))
    Path("out").write_text("".join(f"{line}\n" for line in [TARGETS[0], "x", *TARGETS[1:]]))


def test_inspect_as_json_and_as_tables(model: str, capsys: Any) -> None:
    assert main(["inspect", model, "--rate", "p100", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sum(found["parameters"]["this model"].values()) == load_bundle(model).model.parameter_count()
    assert sum(found["parameters"]["paper-base"].values()) == 63_045_632
    assert found["run"]["paper_unit"] == pytest.approx(100 * 9.5e12)
    assert found["paper_runs"]["paper-base"]["paper_unit"] == pytest.approx(3.2832e18)
    assert found["paper_runs"]["paper-big"]["paper_unit"] == pytest.approx(2.29824e19)
    assert main(["inspect", model, "--rate", "2.5", "--source-tokens", "7"]) == 0
    text = capsys.readouterr().out
    assert "63,045,632" in text
    assert "100 s x 1 x 2.5 TFLOP/s (2.5) = 2.50e+14" in text
    assert "7 source and 25 target tokens" in text
    assert main(["inspect", model]) == 0
    assert "TFLOP/s (measured here)" in capsys.readouterr().out


def test_a_model_that_tells_nothing_of_its_training(model: str, tmp_path: Path, capsys: Any) -> None:
    bundle = load_bundle(model)
    save_bundle(tmp_path / "m", bundle.model, bundle.model.config, bundle.tokenizer, {})
    assert main(["inspect", str(tmp_path / "m"), "--rate", "1"]) == 0
    assert "training.json does not tell how long it took" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", ["npz", "json", "html"])
def test_attention_goes_to_a_file(model: str, capsys: Any, suffix: str) -> None:
    call = ["attention", model, "--source", SOURCES[0], "--output", f"a.{suffix}"]
    assert main(call) == 0
    assert Path(f"a.{suffix}").stat().st_size > 1000
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"a.{suffix}: attention of" in captured.err


def test_attention_in_the_terminal(model: str, capsys: Any) -> None:
    call = ["attention", model, "--source", "ab de", "--target", "gh"]
    assert main([*call, "--kind", "encoder", "--layer", "1", "--head", "2"]) == 0
    first = capsys.readouterr().out
    assert first.startswith("encoder attention, layer 1, head 2\n")
    assert main(call) == 0
    assert capsys.readouterr().out.startswith("cross attention, layer 2, the mean of all heads\n")


def test_heads(model: str, capsys: Any) -> None:
    Path("links").write_text("0-0\n\n0-1 1-0\n" + "0-0\n" * 4)
    call = ["heads", model, "--source", "in", "--target", "out"]
    assert main([*call, "--alignments", "links", "--importance", "masking", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pairs"] == 6  # the pair with an empty side is left out, and so is its line of links
    assert {len(rows) for rows in found["heads"].values()} == {2 * 4}
    assert {"entropy", "agreement", "loss"} <= set(found["heads"]["cross"][0])
    assert "agreement" not in found["heads"]["encoder"][0]
    assert main([*call, "--importance", "bleu", "--pairs", "1"]) == 0
    assert "decoder self-attention\nlayer head" in capsys.readouterr().out


def test_prune(model: str, capsys: Any) -> None:
    call = ["prune", model, "--source", "in", "--target", "out", "--pairs", "3"]
    assert main([*call, "--heads", "2", "--output", "smaller"]) == 0
    assert "smaller: 2 of 4 heads" in capsys.readouterr().err
    assert load_bundle("smaller").model.config.heads == 2
    assert main(["translate", "smaller", "--input", "in", "--output", "o"]) == 0
    assert Path("o").read_text().count("\n") == 7
    capsys.readouterr()
    assert main([*call, "--curve", "--json", "--by", "masking"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["heads"] for row in rows] == [4, 3, 2, 1]
    assert main([*call, "--masked", "12"]) == 0
    assert capsys.readouterr().out.startswith("silenced of 24    BLEU\n             0 ")
    assert main([*call, "--curve"]) == 0
    assert "sentences/s" in capsys.readouterr().out


def test_positions_neighbours_and_tree(model: str, capsys: Any) -> None:
    assert main(["positions", model]) == 0
    assert "this model's positions: sinusoid" in capsys.readouterr().out
    assert main(["positions", model, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["sinusoid"]["similarity"]) == 40
    assert main(["neighbours", model, "ab", "--count", "3"]) == 0
    assert capsys.readouterr().out.count("\n  ") >= 3
    assert main(["neighbours", model, "ab", "--json"]) == 0
    json.loads(capsys.readouterr().out)
    assert main(["tree", model, "--source", "ab de", "--beam", "2"]) == 0
    assert "The search ended after" in capsys.readouterr().out
    assert main(["tree", model, "--source", "ab de", "--output", "tree.html"]) == 0
    assert "<svg" in Path("tree.html").read_text()


@pytest.mark.parametrize("name", ["p.png", "p.svg"])
def test_pictures_of_positions(model: str, name: str) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra plots")
    assert main(["positions", model, "--output", name]) == 0
    assert Path(name).stat().st_size > 1000


@pytest.mark.parametrize(
    ("call", "code", "said"),
    [
        (["inspect", "M", "--rate", "quick"], 2, "--rate quick: expected TFLOP/s of one device"),
        (["inspect", "M", "--beam", "0"], 2, "--beam is 0; use 1 or more"),
        (["attention", "M", "--source", " "], 2, "--source is empty"),
        (["attention", "M", "--source", "a", "--kind", "self"], 2, "--kind self: choose one of encoder"),
        (["attention", "M", "--source", "a", "--layer", "9"], 2, "--layer is 9, but there are 2"),
        (["attention", "M", "--source", "a", "--output", "a.gif"], 2, "a.gif: the suffix says the format"),
        (
            ["heads", "M", "--source", "in", "--target", "out", "--importance", "x"],
            2,
            "--importance x: choose",
        ),
        (
            ["heads", "M", "--source", "in", "--target", "out", "--alignments", "in"],
            1,
            "is no link; write source-target",
        ),
        (["heads", "M", "--source", "none", "--target", "out"], 1, "none"),
        (["heads", "M", "--source", "in", "--target", "out", "--pairs", "-1"], 2, "--pairs is -1"),
        (["prune", "M", "--source", "in", "--target", "out"], 2, "nothing to do"),
        (["prune", "M", "--source", "in", "--target", "out", "--output", "o"], 2, "--heads is 0"),
        (
            ["prune", "M", "--source", "in", "--target", "out", "--heads", "9", "--output", "o"],
            2,
            "heads is 9",
        ),
        (["prune", "M", "--source", "in", "--target", "out", "--heads", "2", "--curve"], 2, "needs --output"),
        (["prune", "M", "--source", "in", "--target", "out", "--curve", "--by", "x"], 2, "--by x"),
        (["positions", "M", "--length", "5"], 2, "--length is 5; use more than 20"),
        (["positions", "M", "--output", "a.txt"], 2, "end its name in .png or .svg"),
        (["neighbours", "M", ""], 1, "no subwords"),
        (["neighbours", "M", "a", "--count", "0"], 2, "count is 0"),
        (["tree", "M", "--source", ""], 2, "--source is empty"),
        (["tree", "M", "--source", "a", "--beam", "0"], 2, "beam is 0"),
        (["tree", "M", "--source", "a", "--output", "a.txt"], 2, "name it .html"),
    ],
)
def test_what_is_refused(model: str, capsys: Any, call: list[str], code: int, said: str) -> None:
    assert main([model if word == "M" else word for word in call]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert not Path("o").exists()
