"""Filters that go by length: nothing there, too much of it, or too unequal."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.data.cleaning.config import CleaningConfig
from transduce.data.cleaning.lengths import empty, length, ratio, weighted_length


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("", "x", "no source"),
        (" \u00a0\u3000\t", "x", "no source"),
        ("x", "", "no target"),
        ("x", "\u2003 ", "no target"),
        ("x", ".", ""),
    ],
)
def test_empty(source: str, target: str, reason: str) -> None:
    assert empty(source, target, CleaningConfig()) == reason


def test_length_counts_words() -> None:
    edge = CleaningConfig(max_words=5, min_words=2, max_word=0)
    assert length("a b c d e", "a b", edge) == ""
    assert length("a b c d e f", "a b", edge) == "6 words in source, at most 5"
    assert length("a b", "aa  bb cc dd ee\u3000f", edge) == "6 words in target, at most 5"
    assert length("a b", "a", edge) == "1 word in target, at least 2"
    assert length("a " * 1000, "a", CleaningConfig(max_words=0, max_characters=0)) == ""


@given(st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=12), st.integers(1, 12))
@settings(max_examples=200)
def test_the_shortcut_of_counting_words_misses_none(words: list[str], most: int) -> None:
    dropped = bool(length(" ".join(words), "x", CleaningConfig(max_words=most)))
    assert dropped == (len(words) > most)


def test_length_counts_characters_and_looks_for_long_words() -> None:
    edge = CleaningConfig(max_characters=10, max_word=4)
    assert length("abcd efg.", "x", edge) == ""
    assert length("x", "abcd efghij", edge) == "11 characters in target, at most 10"
    assert length("abcde", "x", edge) == "a word of 5 characters in source, at most 4"
    assert length("a://b", "x", edge) == ""
    assert length("你好你好你", "x", edge) == ""


def test_ratio_lets_short_texts_differ() -> None:
    edge = CleaningConfig(max_ratio=2.0, ratio_allowance=10)
    assert ratio("a" * 5, "a" * 20, edge) == ""
    assert ratio("a" * 5, "a" * 21, edge) == "5 characters in source and 21 in target, ratio at most 2"
    assert ratio("a" * 21, "a" * 5, edge) == "21 characters in source and 5 in target, ratio at most 2"


def test_wide_characters_count_twice() -> None:
    assert weighted_length("abc äöü") == 7
    assert weighted_length("日本語。") == 8
    assert weighted_length("한국어") == 6


@given(st.text(max_size=60), st.text(max_size=60))
@settings(max_examples=200)
def test_ratio_does_not_know_which_side_is_which(one: str, other: str) -> None:
    edge = CleaningConfig(max_ratio=1.5, ratio_allowance=5)
    assert bool(ratio(one, other, edge)) == bool(ratio(other, one, edge))
