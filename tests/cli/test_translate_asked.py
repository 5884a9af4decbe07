from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from few_lines import FAST, LINES

from transduce.bundle import load_bundle
from transduce.cli import translate as command
from transduce.cli.main import main
from transduce.decoding.glossary import Glossary
from transduce.decoding.translator import Translator

PREFIXES = ["de", "", "ab \U0001f680", "zz", "Gil ", "  "]


@pytest.fixture(autouse=True)
def _files(in_a_folder: None) -> None:
    Path("in").write_text("".join(f"{line}\n" for line in LINES))


def test_prefixes_from_a_file_are_those_of_the_library(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(command, "CHUNK", 4)
    Path("prefixes").write_text("\n".join(PREFIXES))
    for flags, options in (
        ([], {}),
        (["--prefix-factor", "5"], {"prefix_factor": 5.0}),
        (["--no-repeat-ngram", "2"], {"no_repeat_ngram": 2}),
        (["--repetition-penalty", "1.5"], {"repetition_penalty": 1.5}),
    ):
        call = ["translate", model, "--input", "in", "--prefix-file", "prefixes", *FAST, *flags]
        assert main(call) == 0
        expected = Translator(load_bundle(model)).translate(
            LINES, prefixes=PREFIXES, beam=2, max_extra=3, **options
        )
        assert capsys.readouterr().out == "".join(f"{line}\n" for line in expected)
        if not options:
            assert [out.startswith(p.strip()) for out, p in zip(expected, PREFIXES, strict=True)] == [
                True, True, True, False, True, True
            ]  # fmt: skip
            assert expected[3] == ""


@pytest.mark.parametrize("count", [0, 5, 7])
@pytest.mark.parametrize("piped", [False, True])
def test_another_number_of_prefixes_is_refused_with_both_numbers(
    model: str, count: int, piped: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(command, "CHUNK", 4)
    Path("prefixes").write_text("de\n" * count)
    source = "in"
    if piped:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("in").read_bytes())))
        source = "-"
    call = ["translate", model, "--input", source, "--prefix-file", "prefixes", "--output", "out", *FAST]
    assert main(call) == 1
    name = "standard input" if piped else "in"
    message = f"transduce: error: prefixes has {count} lines but {name} has 6; give one line for each"
    assert message in capsys.readouterr().err
    # Where it is seen only after lines were translated, these are kept to go on from.
    kept = ["out.partial", "out.partial.json"] if piped and count > 4 else []
    assert sorted(os.listdir()) == ["in", *kept, "prefixes"]


def test_mistakes_with_prefixes_cost_one_line(model: str, capsys: Any) -> None:
    Path("prefixes").write_text("de\n" * 6)
    for flags, code, message in (
        (["--prefix-file", "-", "--input", "-"], 2, "--prefix-file - and the input are both standard input"),
        (["--prefix-file", "missing", "--input", "in"], 1, "missing: no such file"),
        (["--prefix-file", "prefixes", "--input", "in", "--output", "prefixes"], 2, "prefixes: is the input"),
        (["--prefix-factor", "0"], 2, "prefix_factor is 0.0; it must be 1 or more"),
        (["--no-repeat-ngram", "-2"], 2, "no_repeat_ngram is -2"),
        (["--repetition-penalty", "0"], 2, "repetition_penalty is 0.0; it must be 1"),
    ):
        assert main(["translate", model, *flags]) == code
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.err.count("\n") == 1
        assert captured.out == ""


def test_a_glossary_from_a_file_is_that_of_the_library(model: str, capsys: Any) -> None:
    word = LINES[0].split()[0].strip(".")
    Path("terms.tsv").write_text(f"{word}\tzutab\n")
    call = ["translate", model, "--input", "in", "--glossary", "terms.tsv", *FAST]
    assert main(call) == 0
    captured = capsys.readouterr()
    expected = Translator(load_bundle(model)).translate_detailed(
        LINES, glossary=Glossary.read("terms.tsv"), beam=2, max_extra=3
    )
    assert captured.out == "".join(f"{one.text}\n" for one in expected)
    assert captured.err == "".join(
        f"transduce: warning: {warning}\n" for one in expected for warning in one.warnings
    )
    assert "zutab" in expected[0].text or expected[0].warnings
    assert main([*call, "--glossary-inflect"]) == 0
    assert "zutab"[:4] in capsys.readouterr().out
    for name, content, code, message in (
        ("bad.tsv", "a\tb\nc\n", 1, "bad.tsv:2: has 1 column"),
        ("bad.tbx", "<a>", 2, "name source and target, e.g. en:de"),
        ("no.tsv", "", 1, "no.tsv: holds no terms; write source TAB target on each line, or leave it out"),
        ("blank.tsv", " \n\n", 1, "blank.tsv: holds no terms"),
    ):
        Path(name).write_text(content)
        assert main(["translate", model, "--input", "in", "--glossary", name]) == code
        assert message in capsys.readouterr().err
