"""What `transduce translate` writes beside text: JSON, several outputs, scores, alignments, confidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from few_lines import FAST, LINES

from transduce.bundle import load_bundle
from transduce.cli.main import main
from transduce.decoding.translator import Translator

pytestmark = pytest.mark.usefixtures("in_a_folder")


def test_json_lines_hold_all_outputs_with_their_scores(model: str, capsys: Any) -> None:
    Path("in").write_text("\n".join(LINES))
    assert main(["translate", model, "--input", "in", "--json", "--n-best", "2", *FAST]) == 0
    values = [json.loads(line) for line in capsys.readouterr().out.split("\n")[:-1]]
    assert [value["line"] for value in values] == [1, 2, 3, 4, 5, 6]
    assert [value["source"] for value in values] == LINES
    for value in values:
        assert {"text", "score", "log_probability", "length", "truncated"} == set(value["translations"][0])
        scores = [output["score"] for output in value["translations"]]
        assert scores == sorted(scores, reverse=True)
    assert values[3]["translations"][0]["text"] == ""
    assert max(len(value["translations"]) for value in values) == 2


def test_samples_of_a_line_are_those_of_the_library(model: str, capsys: Any) -> None:
    Path("in").write_text("".join(f"{line}\n" for line in [*LINES, LINES[0]]))
    flags = ["--samples", "2", "--temperature", "2", "--top-k", "50", "--top-p", "0.9", "--seed", "7"]
    assert main(["translate", model, "--input", "in", "--json", "--max-extra", "3", *flags]) == 0
    values = [json.loads(line) for line in capsys.readouterr().out.split("\n")[:-1]]
    options: dict[str, Any] = {"temperature": 2.0, "top_k": 50, "top_p": 0.9, "seed": 7, "max_extra": 3}
    found = Translator(load_bundle(model)).translate_detailed(LINES, samples=2, **options)
    given = [[output["text"] for output in value["translations"]] for value in values]
    assert given[:-1] == [[a.text for a in translation.alternatives] for translation in found]
    assert given[-1] == given[0]


def test_one_of_many_samples_is_written_and_all_are_told_in_json(model: str, capsys: Any) -> None:
    Path("in").write_text("".join(f"{line}\n" for line in LINES))
    flags = ["--samples", "6", "--mbr", "chrf", "--max-extra", "3"]
    assert main(["translate", model, "--input", "in", *flags]) == 0
    lines = capsys.readouterr().out.split("\n")[:-1]
    assert lines == Translator(load_bundle(model)).translate(LINES, samples=6, mbr="chrf", max_extra=3)
    assert main(["translate", model, "--input", "in", *flags, "--json"]) == 0
    values = [json.loads(line)["translations"] for line in capsys.readouterr().out.split("\n")[:-1]]
    assert [outputs[0]["text"] for outputs in values] == lines
    assert [len(outputs) for outputs in values] == [6, 6, 6, 1, 6, 6]
    for outputs in values[:3]:
        expected = [output["expected"] for output in outputs]
        assert expected == sorted(expected, reverse=True)


def test_alignments_are_written_a_line_each_and_into_json(model: str, capsys: Any) -> None:
    Path("in").write_text("\n".join(LINES))
    call = ["translate", model, "--input", "in", *FAST]
    assert main([*call, "--alignments", "links"]) == 0
    text = capsys.readouterr().out.split("\n")[:-1]
    links = Path("links").read_text().split("\n")
    assert len(links) == 7
    assert links[3] == links[6] == ""
    for source, output, row in zip(LINES, text, links, strict=False):
        for pair in row.split():
            i, j = map(int, pair.split("-"))
            assert i < len(source.split())
            assert j < len(output.split())
    assert main([*call, "--json", "--align"]) == 0
    values = [json.loads(line) for line in capsys.readouterr().out.split("\n")[:-1]]
    rows = [" ".join(f"{i}-{j}" for i, j in value["translations"][0]["alignment"]) for value in values]
    assert rows == links[:-1]


def test_scores_stand_before_a_tab_and_are_explained_on_stderr(
    model: str, expected: list[str], capsys: Any
) -> None:
    Path("in").write_text("".join(f"{line}\n" for line in LINES[:4]))
    assert main(["translate", model, "--input", "in", "--scores", "--explain", *FAST]) == 0
    captured = capsys.readouterr()
    rows = captured.out.split("\n")
    assert [row.partition("\t")[2] for row in rows[:3]] == expected[:3]
    assert rows[3:] == ["\t", ""]  # no score, but columns stay columns
    explained = captured.err.split("\n")
    assert len(explained) == 4
    assert explained[0].startswith("line 1, output 1, rank 1: score ")
    assert "= log P " in explained[0]
    assert f"score {float(rows[0].partition(chr(9))[0]):.3f}"[:10] in explained[0]


def test_every_output_is_explained_with_its_rank(model: str, capsys: Any) -> None:
    Path("in").write_text(f"{LINES[0]}\n\n{LINES[1]}\n")
    flags = ["--json", "--samples", "3", "--explain", "--max-extra", "3", "--alpha", "1"]
    assert main(["translate", model, "--input", "in", *flags]) == 0
    captured = capsys.readouterr()
    values = [json.loads(line)["translations"] for line in captured.out.split("\n")[:-1]]
    told = captured.err.split("\n")[:-1]
    assert len(told) == 6
    for number, at in ((1, 0), (3, 3)):
        outputs = values[number - 1]
        for i, output in enumerate(outputs):
            rank = 1 + sum(other["score"] > output["score"] for other in outputs)
            penalty = (5 + output["length"]) / 6
            assert output["score"] == pytest.approx(output["log_probability"] / penalty)
            assert told[at + i].startswith(f"line {number}, output {i + 1}, rank {rank}: score ")
            assert f"log P {output['log_probability']:.6f} / penalty {penalty:.6f};" in told[at + i]
            assert f"{output['length']} tokens with the end" in told[at + i]


def test_confidence_stands_in_json_on_request(model: str, capsys: Any) -> None:
    Path("in").write_text("\n".join(LINES))
    assert main(["translate", model, "--input", "in", "--json", "--confidence", *FAST]) == 0
    for line in capsys.readouterr().out.split("\n")[:-1]:
        (output,) = json.loads(line)["translations"]
        assert [word["text"] for word in output["words"]] == output["text"].split()
        assert all(0 < word["confidence"] <= 1 for word in output["words"])
        assert 0 < output["confidence"] <= 1


def test_confidence_and_protected_items_go_together(model: str, capsys: Any) -> None:
    Path("in").write_text("<b>ab</b> de {x}\nab <i>gh</i>\n")
    call = ["translate", model, "--input", "in", "--json", "--confidence", "--protect", "all", *FAST]
    assert main(call) == 0
    for line in capsys.readouterr().out.split("\n")[:-1]:
        (output,) = json.loads(line)["translations"]
        assert [word["text"] for word in output["words"]] == output["text"].split()
        values = [word["confidence"] for word in output["words"]]
        assert all(value is None or 0 < value <= 1 for value in values)
    assert any(values)  # the second line has nothing but tags, which stand beside its words
