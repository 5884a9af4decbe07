from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny_translator import Echo
from transduce.decoding import paragraphs
from transduce.decoding.paragraphs import (
    Paragraph,
    paragraphs_of,
    translate_each,
    translate_paragraphs,
    whole_paragraphs,
)

pytest.importorskip("sentencex", reason="the extra `documents` is not installed")


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["  One line. "], "  One line. "),
        (["  The dog", "sleeps.", " It is old."], "  The dog sleeps. It is old."),
        (["a well-", "known dog"], "a well-known dog"),
        (["from 3 -", "5"], "from 3 - 5"),
        (["1990-", "1995"], "1990- 1995"),
        (["Donau\u00ad", "dampfer"], "Donaudampfer"),
        (["\u4eca\u65e5\u306f", "\u96e8\u3002", "\u96ea"], "\u4eca\u65e5\u306f\u96e8\u3002\u96ea"),
        (["a\u2028b", "c"], "a\u2028b c"),
    ],
)
def test_lines_are_joined(lines: list[str], text: str) -> None:
    assert Paragraph(tuple(lines)).text == text


def test_a_paragraph_is_wrapped_at_the_width_it_had() -> None:
    paragraph = Paragraph(("  0123456789", "    x"))
    assert paragraph.wrapped("  ab cd ef gh ij kl mnopqrstuvwxyz z") == [
        "  ab cd ef",
        "    gh ij kl",
        "    mnopqrstuvwxyz",
        "    z",
    ]
    assert Paragraph(("0123456789 0123456789",)).wrapped("a " * 30 + "b") == ["a " * 30 + "b"]
    wide = "\u96ea" * 7 + "\u3002" + "\u96ea" * 3
    # No line begins with a mark.
    assert Paragraph(("\u96e8" * 7, "\u96e8")).wrapped(wide) == [
        "\u96ea" * 6,
        "\u96ea\u3002\u96ea\u96ea\u96ea",
    ]


WORDS = st.sampled_from(["ab", "de.", "Gh", "il-mn", "mn,", "opqrst", "z", "\u00e9"])
LINES = st.lists(
    st.one_of(st.just(""), st.just("  "), st.lists(WORDS, min_size=1, max_size=9).map(" ".join)), max_size=9
)


@settings(max_examples=100, deadline=None)
@given(LINES, st.integers(1, 4))
def test_chunks_hold_whole_paragraphs_and_every_line(lines: list[str], size: int) -> None:
    chunks = [lines[at : at + size] for at in range(0, len(lines), size)]
    found = list(whole_paragraphs(chunks))
    assert [line for chunk in found for line in chunk] == lines
    together = [p for chunk in found for p in paragraphs_of(chunk)]
    assert together == list(paragraphs_of(lines))
    assert [line for p in together for line in p.lines] == lines
    for paragraph in together:
        assert len(paragraph.lines) == 1 or all(line.strip() for line in paragraph.lines)


echo_of = functools.cache(Echo)


@pytest.mark.usefixtures("shapes_unchecked")
@settings(max_examples=60, deadline=None)
@given(LINES)
def test_a_text_that_is_said_again_has_the_same_words_in_lines_no_longer(lines: list[str]) -> None:
    found = translate_paragraphs(echo_of(), lines)
    assert " ".join(found).replace(" ", "") == " ".join(lines).replace(" ", "")
    before, after = ([p for p in paragraphs_of(some) if p.text.strip()] for some in (lines, found))
    assert [p.text for p in after] == [p.text for p in before]
    for one, other in zip(before, after, strict=True):
        width = max(len(line.rstrip()) for line in one.lines)
        for line in other.lines:
            assert len(line) <= width or len(line.split(" ")) == 1 or len(one.lines) == 1


def test_lines_of_one_sentence_reach_the_model_together_and_warnings_name_them() -> None:
    echo = Echo(max_length=12)
    lines = ["", "Ab de", "gh il.", "", "Ab", "de " * 30, "x."]
    pairs = translate_each(echo, lines, first_line=11)
    assert [p.text for p, _ in pairs] == ["", "Ab de gh il.", "", lines[4] + " " + lines[5].strip() + " x."]
    assert [t.warnings for _, t in pairs[:3]] == [(), (), ()]
    assert pairs[3][1].warnings[0].startswith("line 15 has a sentence of ")
    with pytest.warns(UserWarning, match="line 5 has a sentence of "):
        translate_paragraphs(echo, lines)


def test_text_without_blank_lines_is_cut_and_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paragraphs, "MOST_LINES", 3)
    lines = [f"Ab{'!' * (at + 1)}" for at in range(7)]
    for chunks in ([lines], [[line] for line in lines], [lines[:2], lines[2:]]):
        found = list(whole_paragraphs(chunks))
        assert [p.lines for chunk in found for p in paragraphs_of(chunk)] == [
            tuple(lines[:3]), tuple(lines[3:6]), tuple(lines[6:])
        ]  # fmt: skip
    warnings: list[Any] = [t.warnings for _, t in translate_each(Echo(), lines)]
    assert warnings[2] == ()
    assert warnings[1] == ("line 4: its paragraph is cut after 3 lines without a blank one",)
