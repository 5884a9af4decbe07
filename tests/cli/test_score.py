from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tiny_translator import sentences
from transduce.bundle import load_bundle
from transduce.cli import score as command
from transduce.cli.main import main
from transduce.decoding.scoring import PairScore
from transduce.decoding.translator import Translator

SOURCES = [*sentences(3, seed=1, words=(1, 4)), "", "", "ab", *sentences(2, seed=2, words=(1, 4))]
TARGETS = [*sentences(3, seed=3, words=(1, 4)), "", "ab", "", *sentences(2, seed=4, words=(1, 4))]


@pytest.fixture(scope="module")
def expected(model: str) -> list[PairScore]:
    return Translator(load_bundle(model)).score(list(zip(SOURCES, TARGETS, strict=True)))


@pytest.fixture(autouse=True)
def _files(in_a_folder: None) -> None:
    Path("in").write_text("".join(f"{line}\n" for line in SOURCES))
    Path("out").write_text("".join(f"{line}\n" for line in TARGETS))


def call(model: str, *flags: str) -> list[str]:
    return ["score", model, "--source", "in", "--target", "out", *flags]


def test_a_pair_a_row_in_order_held_in_pieces(
    model: str, expected: list[PairScore], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(command, "CHUNK", 3)
    assert main(call(model)) == 0
    captured = capsys.readouterr()
    rows = [row.split("\t") for row in captured.out.split("\n")[:-1]]
    assert len(rows) == len(expected)
    for row, score in zip(rows, expected, strict=True):
        assert float(row[0]) == pytest.approx(score.log_probability, abs=1e-3)
        assert int(row[1]) == score.length
    assert rows[3] == ["0.0000", "0", ""]
    assert rows[4] == ["-inf", "0", "inf"]
    assert float(rows[5][2]) == pytest.approx(expected[5].perplexity, rel=1e-3)
    warning, total = captured.err.split("\n")[:-1]
    assert warning.startswith("transduce: warning: line 5: an empty source has no translation")
    tokens = sum(score.length for score in expected)
    assert total.startswith(f"8 pairs, {tokens} tokens, log P -")
    assert total.endswith("; 1 of probability 0 left out")


def test_json_has_every_token_and_no_number_that_is_not_json(
    model: str, expected: list[PairScore], capsys: Any
) -> None:
    assert main(call(model, "--json", "--output", "scores.gz")) == 0
    lines = gzip.decompress(Path("scores.gz").read_bytes()).decode().split("\n")[:-1]

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    values = [json.loads(line, parse_constant=refuse) for line in lines]
    assert [value["line"] for value in values] == list(range(1, 9))
    assert [value["source"] for value in values] == SOURCES
    assert [value["target"] for value in values] == TARGETS
    assert values[4]["log_probability"] is None
    assert values[4]["perplexity"] is None
    for value, score in zip(values, expected, strict=True):
        assert len(value["tokens"]) == len(value["token_log_probabilities"]) == score.length
        if score.tokens:
            assert value["tokens"][-1] == "</s>"
            assert "".join(value["tokens"][:-1]).replace("\u2581", " ").strip() == score.target


def test_the_whole_is_one_line_on_request(model: str, expected: list[PairScore], capsys: Any) -> None:
    assert main(call(model, "--total", "--json")) == 0
    value = json.loads(capsys.readouterr().out)
    real = [score for score in expected if score.source or not score.target]
    assert value["pairs"] == 8
    assert value["impossible"] == 1
    assert value["log_probability"] == pytest.approx(sum(score.log_probability for score in real), abs=1e-3)
    assert main(call(model, "--total")) == 0
    assert f"perplexity {value['perplexity']:.4f}; 1 of" in capsys.readouterr().out


def test_models_are_asked_together(model: str, expected: list[PairScore], capsys: Any) -> None:
    assert main(call(model, "--ensemble", model)) == 0
    rows = [row.split("\t") for row in capsys.readouterr().out.split("\n")[:-1]]
    assert [int(row[1]) for row in rows] == [score.length for score in expected]
    assert float(rows[0][0]) == pytest.approx(expected[0].log_probability, abs=1e-3)
    assert main(call(model, "--ensemble-by", "log")) == 2
    assert "--ensemble-by log is for several models" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--source", "in", "--target", "short"], 1, "in has 8 lines but short has 1: they are not aligned"),
        (["--source", "-", "--target", "-"], 2, "--source and --target are both standard input"),
        (["--source", "in", "--target", "none"], 1, "none: no such file"),
        (["--source", "in", "--target", "out", "--output", "out"], 2, "out: is the input as well"),
        (["--source", "in", "--target", "out", "--long-lines", "x"], 2, "long_lines is 'x'; choose one of"),
        (["--source", "in"], 2, "missing option '--target'"),
    ],
)
def test_mistakes_cost_one_line_and_leave_no_file(
    model: str, words: list[str], code: int, message: str, capsys: Any
) -> None:
    Path("short").write_text("ab\n")
    before = sorted(os.listdir())
    if "--output" not in words:
        words = [*words, "--output", "new"]
    assert main(["score", model, *words]) == code
    captured = capsys.readouterr()
    assert captured.err.startswith(f"transduce: error: {message}")
    assert captured.err.count("\n") == 1
    assert sorted(os.listdir()) == before
