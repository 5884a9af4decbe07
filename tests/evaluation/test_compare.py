"""Comparisons: tests of significance, parts by hand, and real systems with published scores."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from transduce.cli.main import main
from transduce.errors import DataError, UsageError
from transduce.evaluation.compare import (
    PHENOMENA,
    by_frequency,
    by_group,
    by_phenomenon,
    compare,
    most_differing,
)
from transduce.evaluation.compare_page import describe, page
from transduce.evaluation.scores import score
from transduce.evaluation.significance import paired_tests

SOURCES = [f"Is it number {i}?" if i % 3 == 0 else f"It is not a house, Anna {'x ' * i}." for i in range(40)]
REFERENCE = [f"Das ist der Satz Nummer {i} und er geht {'so ' * (i % 5)}weiter." for i in range(40)]
WORSE = [line.replace("Satz", "Hund") if i % 2 else line for i, line in enumerate(REFERENCE)]
WORST = ["Hier steht etwas ganz anderes." for _ in REFERENCE]


def test_a_better_system_is_significantly_better_and_an_equal_one_is_not() -> None:
    for test in ("bootstrap", "randomisation"):
        found = paired_tests(
            [("base", WORSE), ("same", list(WORSE)), ("best", REFERENCE)], [REFERENCE], test=test, samples=200
        )
        by = {(t.system, t.metric): t for t in found}
        assert set(by) == {(s, m) for s in ("base", "same", "best") for m in ("bleu", "chrf")}
        assert by["base", "bleu"].p is None
        assert by["same", "bleu"].p is not None
        assert by["same", "bleu"].p > 0.9
        assert by["best", "bleu"].p == pytest.approx(1 / 201)  # no sample of 200 went against it
        assert by["best", "bleu"].score == pytest.approx(100)
        assert by["base", "chrf"].score == pytest.approx(score(WORSE, REFERENCE, ter=False).chrf)
        assert (by["best", "bleu"].interval is None) == (test == "randomisation")


def test_systems_with_one_name_stay_two() -> None:
    found = paired_tests([("a", REFERENCE), ("a", WORST)], [REFERENCE], samples=20, metrics=["ter"])
    assert round(found[0].score) == 0
    assert found[1].score > 50


def test_what_cannot_be_tested() -> None:
    both = [("a", WORSE), ("b", WORST)]
    with pytest.raises(UsageError, match="test is 't'"):
        paired_tests(both, [REFERENCE], test="t")
    with pytest.raises(UsageError, match="metric is 'm'"):
        paired_tests(both, [REFERENCE], metrics=["m"])
    with pytest.raises(UsageError, match="two systems"):
        paired_tests(both[:1], [REFERENCE])
    with pytest.raises(DataError, match=r"b has 39 lines and reference 1 has 40"):
        paired_tests([both[0], ("b", WORST[1:])], [REFERENCE])


def test_parts_are_the_scores_of_their_sentences() -> None:
    groups = [i % 2 for i in range(40)]
    even, odd = by_group([WORSE, WORST], [REFERENCE], groups, ["even", "odd", "never"])
    assert (even.size, odd.size) == (20, 20)
    assert even.scores[0] == pytest.approx(100)
    assert odd.scores[0] == pytest.approx(score(WORSE[1::2], REFERENCE[1::2], ter=False).bleu)


def test_phenomena_by_example() -> None:
    held = {
        "question": ("Who is it? ", "It is."),
        "number": ("It is 7.", "It is seven."),
        "negation": ("He doesn't go.", "He goes north."),
        "quotation": ("He said “yes”.", "He said yes."),
        "parentheses": ("It (the dog) runs.", "It runs."),
        "name or other capital inside": ("I saw Anna.", "We saw it."),
        "several clauses": ("If so, go; else stay: here.", "If so, go."),
    }
    assert set(held) == set(PHENOMENA)
    for name, (with_it, without) in held.items():
        assert PHENOMENA[name](with_it), name
        assert not PHENOMENA[name](without), name
    found = {part.name: part.size for part in by_phenomenon([WORSE], [REFERENCE], SOURCES)}
    assert found["question"] == 14
    assert found["negation"] == 26


def test_rare_words_by_hand() -> None:
    training = ["der der der Hund läuft"]
    reference = ["der Hund bellt", "der Hund"]
    parts = {p.name: p for p in by_frequency([["der Hund", "der der Hund"]], reference, training)}
    assert {name: part.size for name, part in parts.items()} == {"never": 1, "once": 2, "2 to 5 times": 2}
    assert parts["never"].scores == (0.0,)  # "bellt" is missing
    assert parts["once"].scores == (100.0,)
    assert parts["2 to 5 times"].scores[0] == pytest.approx(200 * 2 / (3 + 2))  # one "der" too many


def test_sentences_that_differ_most_come_first() -> None:
    outputs = [list(REFERENCE), list(REFERENCE)]
    outputs[1][7] = "völlig falsch"
    outputs[1][3] = REFERENCE[3].replace("Satz", "Satx")
    found = most_differing(outputs, [REFERENCE], SOURCES, 5)
    assert [sentence.line for sentence in found] == [8, 4]  # what does not differ is not shown
    assert found[0].outputs == (REFERENCE[7], "völlig falsch")
    assert found[0].scores[0] == pytest.approx(100)


@pytest.fixture(scope="module")
def comparison() -> Any:
    return compare(
        [("good <b>", WORSE), ("bad", WORST)], [REFERENCE], SOURCES, tests=["bootstrap"], samples=50, shown=2
    )


def test_the_whole_is_what_evaluate_says(comparison: Any) -> None:
    said = score(WORSE, REFERENCE)
    assert comparison.whole[0]["bleu"] == pytest.approx(said.bleu)
    assert comparison.whole[0]["ter"] == pytest.approx(said.ter)
    assert sum(part.size for part in comparison.parts["source words"]) == 40
    json.dumps(comparison.as_dict())


def test_as_text_and_as_a_page(comparison: Any) -> None:
    text, html = describe(comparison), page(comparison)
    assert "paired bootstrap against good <b>" in text
    assert re.search(r"bad +bleu +\d+\.\d\d.*p = 0\.\d{4} \*", text)
    assert "good &lt;b&gt;" in html
    assert "<b>" not in html
    assert not re.search(r"<script|src=|href=|https?://", html)
    assert html.count("<table>") == html.count("</table>") == 1 + 1 + 3 + 2


def test_tokenised_outputs_are_named() -> None:
    spaced = [line.replace(".", " .") for line in REFERENCE]
    found = compare([("a", spaced)], [REFERENCE], SOURCES)
    assert found.warnings == ("a looks tokenised (there is a space before its full stops and commas)",)
    assert found.tests == {}


def test_published_scores_and_a_real_difference(newstest: Any) -> None:
    systems = {}
    for name in ("transformer.marian", "transformer.tensor2tensor", "rnn.opennmt-py"):
        output, reference, published = newstest(f"newstest2017.en-de.{name}.de", "newstest2017.en-de.de")
        systems[name] = (output, published)
    outputs = [(name, output) for name, (output, _) in systems.items()]
    found = paired_tests(outputs, [reference], metrics=["bleu"], samples=300)
    for tested in found:
        decimals = len(systems[tested.system][1].partition(".")[2])
        assert f"{tested.score:.{decimals}f}" == systems[tested.system][1]
        assert tested.interval is None or 0.3 < tested.interval < 1.5
    assert all(tested.p is None or tested.p < 0.01 for tested in found)


def _write(name: str, lines: list[str]) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, lines in (("s", SOURCES), ("r", REFERENCE), ("a", WORSE), ("b", WORST), ("short", WORST[1:])):
        _write(name, lines)


@pytest.mark.usefixtures("_files")
def test_the_command(capsys: Any) -> None:
    call = ["compare", "a", "b", "--source", "s", "--reference", "r", "--samples", "20"]
    assert main([*call, "--json", "--output", "c.html", "--training", "r"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["systems"] == ["a", "b"]
    assert set(found["tests"]) == {"bootstrap", "randomisation"}
    assert Path("c.html").read_text().startswith("<!DOCTYPE html>")
    assert main([*call, "--test", "none", "--shown", "1"]) == 0
    assert "paired" not in capsys.readouterr().out


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["a", "short"], 1, "short has 39 lines"),
        (["a", "missing"], 1, "missing"),
        (["a", "--test", "t"], 2, "--test t: choose"),
        (["a", "--samples", "-1"], 2, "--samples is -1"),
        (["a", "--output", "c.txt"], 2, "name it .html"),
    ],
)
def test_what_is_refused(capsys: Any, words: list[str], code: int, said: str) -> None:
    assert main(["compare", "--source", "s", "--reference", "r", *words]) == code
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1
