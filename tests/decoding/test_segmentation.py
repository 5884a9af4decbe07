from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.decoding.segmentation import Part, join_parts, split_sentences, split_to_fit


def words(limit: int):  # type: ignore[no-untyped-def]
    return lambda text: len(text.split()) <= limit


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?  Four… five", ["One. ", "Two! ", "Three?  ", "Four… ", "five"]),
        ('He said "Stop." Then (he left.) Gone.', ['He said "Stop." ', "Then (he left.) ", "Gone."]),
        ("Dr. Smith and Mr. J. Doe came. They left.", ["Dr. Smith and Mr. J. Doe came. ", "They left."]),
        ("Am 3. Oktober, z.B. um 10.30 Uhr. Ja.", ["Am 3. Oktober, z.B. um 10.30 Uhr. ", "Ja."]),
        ("It was 1990. Then it ended.", ["It was 1990. ", "Then it ended."]),
        ("Pi is 3.14159. See example.com now.", ["Pi is 3.14159. ", "See example.com now."]),
        ("今日は。明日は？「はい。」以上", ["今日は。", "明日は？", "「はい。」", "以上"]),
        ("« Bonjour !\u00a0» Il part.", ["« Bonjour !\u00a0» ", "Il part."]),
        ("Wait... what? Fine", ["Wait... ", "what? ", "Fine"]),
        ("no end at all", ["no end at all"]),
        ("", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


def test_short_sentences_stay_apart_and_long_ones_are_cut_at_commas() -> None:
    parts = split_to_fit("A b. One two, three four, five six seven. End.", words(4))
    assert [part.text for part in parts] == ["A b.", "One two, three four,", "five six seven.", "End."]
    assert {part.separator for part in parts[:-1]} == {" "}


def test_a_clause_without_commas_is_cut_between_words_and_a_word_anywhere() -> None:
    assert [p.text for p in split_to_fit("a b c d e f g", words(3))] == ["a b c", "d e f", "g"]
    parts = split_to_fit("abcdefg\u0301hij  kl", lambda text: len(text) <= 4)
    assert [p.text for p in parts] == ["abcd", "efg\u0301", "hij", "kl"]
    assert [p.separator for p in parts] == ["", "", "  ", ""]


@settings(max_examples=60, deadline=None)
@given(
    text=st.text(st.sampled_from('ab .,!?。、\u00a0\u0301\u2028é\t"'), max_size=80), limit=st.integers(2, 9)
)
def test_parts_fit_and_joined_are_the_line(text: str, limit: int) -> None:
    text = text.strip()
    parts = split_to_fit(text, lambda part: len(part) <= limit)
    whole, begins = join_parts(parts, [part.text for part in parts])
    assert whole == text
    assert [text[at : at + len(part.text)] for at, part in zip(begins, parts, strict=True)] == [
        part.text for part in parts
    ]
    assert "".join(part.text + part.separator for part in parts) == text
    for part in parts:
        assert len(part.text) <= limit or part.text.count("\u0301") >= limit


def test_a_long_line_needs_few_measurements() -> None:
    calls = []

    def fits(text: str) -> bool:
        calls.append(len(text))
        return len(text) <= 100

    text = "x" * 20_000
    assert len(split_to_fit(text, fits)) == 200
    assert len(calls) < 5_000
    assert sum(calls) < 2_000_000


def test_outputs_are_joined_with_what_stood_between_the_parts() -> None:
    parts = [Part("A.", " "), Part("B,", "\u00a0"), Part("C", "")]
    assert join_parts(parts, ["x", "yy", "z"]) == ("x yy\u00a0z", [0, 2, 5])
    wide = [Part("今日は。", ""), Part("明日。", "")]
    assert join_parts(wide, ["Today.", "Tomorrow."]) == ("Today. Tomorrow.", [0, 7])
    assert join_parts(wide, ["今天。", "明天。"]) == ("今天。明天。", [0, 3])
