"""Where protected items stand in an output: where their words went."""

from __future__ import annotations

import pytest
import torch

from transduce.decoding.protected import restored
from transduce.decoding.protection import KINDS
from transduce.decoding.tags import without_tags

ALL = frozenset(KINDS)


def aligned(source: str, output: str, pairs: str) -> torch.Tensor:
    weights = torch.zeros(len(output.split()), len(source.split()))
    for pair in pairs.split():
        i, j = map(int, pair.split("-"))
        weights[j, i] = 1.0
    return weights


@pytest.mark.parametrize(
    ("line", "output", "pairs", "expected"),
    [
        ("the <b>red</b> car", "la voiture rouge", "0-0 1-2 2-1", "la voiture <b>rouge</b>"),
        ("a <b>b c</b>.", "x y. z.", "0-0 1-1 2-2", "x <b>y. z</b>."),
        ('say "<i>yes</i>" now', "sag „ja“ jetzt", "0-0 1-1 2-2", "sag „<i>ja</i>“ jetzt"),
        ("<p>a <b>b</b></p>", "B A", "0-1 1-0", "<p><b>B</b> A</p>"),
        # Crossing words: the second pair gives way, nothing is nested wrongly.
        ("<b>a b</b> <i>c d</i>", "A C B D", "0-0 2-1 1-2 3-3", "<b>A C B</b> <i>D</i>"),
        ("one <br/> two", "eins zwei", "0-0 1-1", "eins <br/> zwei"),
        ("one<br/>two", "eins zwei", "0-0 1-1", "eins<br/>zwei"),
        ("one <img src='x'/>", "eins", "0-0", "eins <img src='x'/>"),
        ("a </i> b <b> c", "A B C", "0-0 1-1 2-2", "A </i> B <b> C"),
        ("Hello {name}, hi", "Hallo Namen, hi", "0-0 1-1 2-2", "Hallo {name}, hi"),
        ("Hello {name}", "Hallo du da", "0-0", "{name} Hallo du da"),
        ("in 2016 two", "in 2015 zwei", "0-0 1-1 2-2", "in 2016 zwei"),
        ("in 2 cars", "in zwei Autos", "0-0 1-1 2-2", "in zwei Autos"),
        ("<b>%s</b> left", "noch 4 da", "0-1 1-0", "noch <b>%s</b> da"),
        ("<b></b>", "", "", "<b></b>"),
        ("one<br/> two", "eins zwei", "0-0 1-1", "eins <br/>zwei"),
        # A tag stands inside of punctuation where only punctuation was beyond it, without a space.
        ("« <b>oui</b> »", "„ja“", "1-0", "<b>„ja“</b>"),
        ("a.<b>c</b>", "„d“", "0-0", "<b>„d“</b>"),
        ("ab<b>cd</b>.", "„abcd“.", "0-0", "<b>„abcd</b>“."),
        ('"<i>a <b>b</b></i>', "„X“", "0-0 1-0", "„<i><b>X“</b></i>"),
        ("<i>a <b>b</b> c</i>.", "X.", "0-0 1-0 2-0", "<i><b>X.</b></i>"),
        ("a <b>c</b>", "  A C ", "0-0 1-1", "  A <b>C</b> "),
        ('"<i>yes</i>"', "„ja“!", "0-0", "„<i>ja</i>“!"),
        # A number that belongs there is not another one's place.
        ("3 4", "4 y", "0-0 1-1", "4 y"),
        ("in 5, x", "in 7, x", "0-0 1-1 2-2", "in 5, x"),
        # Words that one item replaces together are one word for the tags, too.
        ("a <b>{n}</b> d", "A B C D", "0-0 1-1 1-2 2-3", "A <b>{n}</b> D"),
        ("see ({n})", "siehe (das da)", "0-0 1-1 1-2", "siehe ({n})"),
        ("1 {n} 2", "9 8 7", "0-0 1-1 2-2", "1 {n} 2"),
        ("a 5 b", "A fünf B", "0-0 1-1 2-2", "A fünf B"),
        ("a {n} b {n}", "A {n} B C", "0-0 1-1 2-2 3-3", "A {n} B {n}"),
        ("a {m} {n}", "A {n} B", "0-0 1-2 2-1", "A {n} {m}"),
    ],
)
def test_items_go_where_their_words_went(line: str, output: str, pairs: str, expected: str) -> None:
    weights = aligned(without_tags(line)[0], output, pairs)
    assert restored(line, output, weights, ALL).text == expected


def test_a_pair_that_no_word_comes_from_gets_the_nearest_free_word_or_is_told() -> None:
    weights = aligned("a b c", "A C", "0-0 2-1")
    lost = restored("a <b>b</b> c", "A C", weights, ALL)
    assert lost.emptied == ["empty: nothing is left between <b> and its end"]
    assert lost.text.count("<b></b>") == 1
    weights[:, 1] = torch.tensor([0.1, 0.2])
    near = restored("a <b>b</b> c", "A C", weights, ALL)
    assert (near.text, near.emptied) == ("A <b>C</b>", [])
    # The word belongs to another pair, and no other is free.
    taken = restored("<i>a</i> <b>b</b> <u>c</u>", "A C", weights, ALL)
    assert (taken.text, len(taken.emptied)) == ("<i>A</i> <b></b><u>C</u>", 1)
    inside = restored("<i>a <b>b</b></i> c", "A C", weights, ALL)
    assert (inside.text, inside.emptied) == ("<i><b>A</b></i> C", [])
    # What was empty before is no loss, also within a word.
    assert restored("a <b></b> b", "A B", aligned("a b", "A B", "0-0 1-1"), ALL).emptied == []
    within = restored("a<b></b>c d", "AC D", aligned("ac d", "AC D", "0-0 1-1"), ALL)
    assert within.text.count("<b></b>") == 1
    assert within.emptied == []


def test_confidences_are_those_of_the_words_that_stand_there() -> None:
    said = (0.1, 0.2, 0.4, 0.8)
    weights = aligned("a b c d", "A B C D", "0-0 1-1 2-2 3-3")
    lines = aligned("a b c {n} d", "A B C D", "0-0 1-1 2-2 4-3")
    lines[3, 3] = 0.1
    found = restored('<a href="x">a</a> b<br/>c {n} d', "A B C D", lines, ALL)
    assert found.text.split() == ["<a", 'href="x">A</a>', "B<br/>C", "{n}", "D"]
    assert found.confidences(said) == pytest.approx((None, 0.1, (0.2 * 0.4) ** 0.5, None, 0.8))
    assert found.confidences(None) is None
    replaced = restored("a %s c d", "A B C D", weights, ALL)
    assert (replaced.text, replaced.confidences(said)) == ("A %s C D", (0.1, None, 0.4, 0.8))
    silent = restored("<b>a</b>", "", torch.zeros(0, 1), ALL)
    assert (silent.text, silent.confidences(())) == ("<b> </b>", (None, None))


def test_tags_that_are_not_protected_are_words_like_others() -> None:
    weights = aligned("<b>a</b> {n}", "<B>A</B> x", "0-0 1-1")
    assert restored("<b>a</b> {n}", "<B>A</B> x", weights, frozenset({"placeholders"})).text == "<B>A</B> {n}"
