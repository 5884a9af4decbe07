"""`transduce translate` where it does not give whole lines: --stream, --alternatives, --paragraphs."""

from __future__ import annotations

import io
import itertools
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
from few_lines import LINES

from transduce.bundle import load_bundle
from transduce.cli import translate as command
from transduce.cli.main import main
from transduce.decoding.paragraphs import translate_paragraphs
from transduce.decoding.translator import Translator

FAST = ["--beam", "2", "--max-extra", "3", "--engine", "torch", "--precision", "fp32"]


@pytest.fixture(autouse=True)
def _unchecked() -> Iterator[None]:
    """No shape is checked meanwhile, which takes most of the time: the tests of the library do it."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True)
def _files(in_a_folder: None) -> None:
    Path("in").write_text("".join(f"{line}\n" for line in LINES))


class Watched(io.BytesIO):
    """Standard output that notes what there is whenever it is flushed."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[bytes] = []

    def flush(self) -> None:
        if not self.seen or self.seen[-1] != self.getvalue():
            self.seen.append(self.getvalue())


def test_a_stream_is_flushed_piece_by_piece_and_is_the_translation(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    long = " ".join(["ab de!"] * 16)
    Path("in").write_text("".join(f"{line}\n" for line in [*LINES, long]))
    assert main(["translate", model, "--input", "in", *FAST]) == 0
    plain = capsys.readouterr()
    watched = Watched()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(watched, encoding="ascii", write_through=True))
    assert main(["translate", model, "--input", "in", "--stream", *FAST, "--beam", "1"]) == 0
    greedy = watched.seen
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(wide := Watched(), encoding="ascii"))
    assert main(["translate", model, "--input", "in", "--stream", *FAST, "--alignments", "links"]) == 0
    sys.stdout.flush()
    assert wide.getvalue().decode() == plain.out
    assert len(greedy) > 4 * len(LINES)
    assert all(after.startswith(before) for before, after in itertools.pairwise(greedy))
    told = capsys.readouterr().err.split("\n")
    assert told[0] == told[1] == plain.err.strip()
    assert told[0].startswith("transduce: warning: line 7 has ")
    assert Path("links").read_text().count("\n") == 7


def test_a_stream_takes_prefixes_and_glossaries_and_may_go_into_a_file(model: str, capsys: Any) -> None:
    Path("prefixes").write_text("de\n\nab \n\nGil\n\n")
    Path("terms.tsv").write_text(f"{LINES[0].split()[0].strip('.')}\tzutab\n")
    asked = ["--prefix-file", "prefixes", "--glossary", "terms.tsv"]
    for flags in (["--output", "whole"], ["--output", "streamed", "--stream"]):
        assert main(["translate", model, "--input", "in", *FAST, *asked, *flags]) == 0
    assert Path("streamed").read_bytes() == Path("whole").read_bytes()
    assert sorted(os.listdir()) == ["in", "prefixes", "streamed", "terms.tsv", "whole"]


def test_next_words_are_those_of_the_library(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(command, "CHUNK", 4)
    prefixes = ["de", "", "ab ", "", "Gil", ""]
    Path("prefixes").write_text("".join(f"{prefix}\n" for prefix in prefixes))
    call = ["translate", model, "--input", "in", "--json", "--alternatives", "2", *FAST]
    assert main([*call, "--prefix-file", "prefixes"]) == 0
    values = [json.loads(line) for line in capsys.readouterr().out.split("\n")[:-1]]
    it = Translator(load_bundle(model))
    assert [value["line"] for value in values] == [1, 2, 3, 4, 5, 6]
    for value, line, prefix in zip(values, LINES, prefixes, strict=True):
        assert (value["source"], value["prefix"]) == (line, prefix)
        found = it.alternatives(line, prefix, count=2, beam=2, max_extra=3)
        assert len(found) == (2 if line else 0)
        for said, one in zip(value["alternatives"], found, strict=True):
            assert (said["word"], said["text"]) == (one.word, one.completion.text)
            assert said["probability"] == pytest.approx(one.probability)
            assert said["score"] == pytest.approx(one.completion.score)
    Path("in").write_text("\n" * 4 + "ab de " * 40)
    assert main([*call, "--output", "out"]) == 1
    assert "line 5 has " in capsys.readouterr().err


def test_paragraphs_are_those_of_the_library(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    pytest.importorskip("sentencex", reason="the extra `documents` is not installed")
    monkeypatch.setattr(command, "CHUNK", 2)
    lines = ["  ab de. Gh", "il mn", "", "ab", "", "", *[" ".join(["de gh"] * 10)] * 4, "gil!"]
    Path("in").write_text("".join(f"{line}\n" for line in lines))
    call = ["translate", model, "--input", "in", "--document", "--paragraphs", *FAST]
    assert main(call) == 0
    captured = capsys.readouterr()
    with pytest.warns(UserWarning, match="line 7 has a sentence of"):
        expected = translate_paragraphs(Translator(load_bundle(model)), lines, beam=2, max_extra=3)
    assert captured.out == "".join(f"{line}\n" for line in expected)
    assert captured.err.startswith("transduce: warning: line 7 has a sentence of")
    assert captured.out.startswith("  ")
    assert main([*call, "--json"]) == 0
    values = [json.loads(line) for line in capsys.readouterr().out.split("\n")[:-1]]
    assert [value["line"] for value in values] == [1, 3, 4, 5, 6, 7]
    assert values[0]["source"] == "  ab de. Gh il mn"
    assert values[1]["translations"][0]["text"] == ""


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--stream", "--json"], "--stream gives text as it comes; leave out --json"),
        (["--stream", "--scores"], "--stream gives text as it comes; leave out --scores"),
        (["--stream", "--samples", "4", "--mbr", "chrf"], "a stream is one output"),
        (["--alternatives", "3"], "--alternatives gives several words a line: add --json"),
        (["--alternatives", "-3"], "--alternatives is -3; it must be 1 or more, or 0"),
        (["--alternatives", "3", "--json", "--scores"], "--alternatives lists words instead of translating"),
        (["--alternatives", "3", "--json", "--samples", "2"], "samples is 2, which has no say in altern"),
        (["--alternatives", "3", "--json", "--protect", "all"], "protect is 'all', which has no say in"),
        (["--paragraphs"], "--paragraphs joins the lines of a document: add --document"),
        (["--paragraphs", "--document", "--stream"], "--stream gives text as it comes; leave out --paragr"),
        (["--paragraphs", "--document", "--alignments", "x"], "--paragraphs gives no line for a line; leave"),
        (["--paragraphs", "--document", "--prefix-file", "in"], "leave out --prefix-file"),
        (
            ["--prefix-factor", "5"],
            "prefix_factor is 5, but no output is told how to begin; give prefixes (--",
        ),
        (["--glossary-inflect"], "--glossary-inflect is about the terms of a glossary: add --glossary FILE"),
        (["--glossary-languages", "en:de"], "--glossary-languages is about the terms of a glossary: add"),
        (
            ["--glossary", "terms.tsv", "--glossary-languages", "en:de"],
            "terms.tsv: languages is 'en:de', but",
        ),
        (["--document", "--language", "xx"], "language is 'xx', which is no code of a language; write one"),
        (["--document", "--language", "english"], "language is 'english', which is no code of a language"),
        (["--language", "en"], "language is 'en', but lines are sentences; set document too"),
    ],
)
def test_what_does_not_go_together_is_refused_before_the_model_is_loaded(
    flags: list[str], message: str, capsys: Any
) -> None:
    Path("model").mkdir()
    assert main(["translate", "model", "--input", "in", "--output", "out", *flags]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert sorted(os.listdir()) == ["in", "model"]
