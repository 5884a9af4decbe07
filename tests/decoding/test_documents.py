from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny_translator import Echo, tokenizer
from transduce.decoding.sentences import sentence_splitter
from transduce.errors import UsageError

pytest.importorskip("sentencex", reason="the extra `documents` is not installed")


@pytest.mark.parametrize(
    ("language", "text", "sentences"),
    [
        (
            "en",
            "Dr. Smith and Mr. J. Doe came. They left.",
            ["Dr. Smith and Mr. J. Doe came. ", "They left."],
        ),
        ("de", "Am 3. Oktober, z.B. um 10.30 Uhr. Ja.", ["Am 3. Oktober, z.B. um 10.30 Uhr. ", "Ja."]),
        (
            "fr",
            "« Bonjour ! » Il part. M. Dupont est là.",
            ["« Bonjour ! » ", "Il part. ", "M. Dupont est là."],
        ),
        ("ja", "今日は。明日は？「はい。」以上", ["今日は。", "明日は？", "「はい。」", "以上"]),
        ("", "One. Two! Three?  Four… five", ["One. ", "Two! ", "Three?  ", "Four… five"]),
        ("hi", "यह एक है। यह दो है।", ["यह एक है। ", "यह दो है।"]),
        ("es", "El Sr. Gómez y la Sra. Ruiz van. Ya.", ["El Sr. Gómez y la Sra. Ruiz van. ", "Ya."]),
        ("en", "", []),
    ],
)
def test_sentences_of_several_languages(language: str, text: str, sentences: list[str]) -> None:
    assert sentence_splitter(language)(text) == sentences


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("ab. !?。\u00a0\u2028\t\r\U0001f600é…\"'1M)»"), max_size=60))
def test_no_character_is_lost_when_sentences_are_split(text: str) -> None:
    assert "".join(sentence_splitter("en")(text)) == text


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.text(st.sampled_from("ab. !?\u00a0\t。é"), max_size=40), max_size=4),
    st.sampled_from([9, 400]),
)
def test_white_space_and_lines_stay_as_they_are(lines: list[str], longest: int) -> None:
    found = Echo(max_length=longest).translate_detailed(lines, document=True)
    assert [translation.text for translation in found] == lines


def test_the_model_sees_sentences() -> None:
    echo = Echo()
    lines = ["  Ab de. Ab!  De? ", "", "\t"]
    assert echo.translate(lines, document=True, language="en") == lines
    assert sorted(map(tokenizer().decode, echo.heard)) == ["Ab de.", "Ab!", "De?"]


def test_a_sentence_that_is_too_long_is_split_and_told() -> None:
    echo = Echo(max_length=12)
    line = "Ab. " + " ".join(["de"] * 20) + ". Ab."
    (found,) = echo.translate_detailed([line], document=True, first_line=3)
    assert found.text == line
    (told,) = found.warnings
    assert told.startswith("line 3 has a sentence of ")
    assert "translated in" in told


def test_tags_and_white_space_are_kept_together() -> None:
    line = "  <p>ab <b>de</b>. ab!</p> "
    (found,) = Echo().translate_detailed([line], document=True, protect="tags")
    assert found.text.startswith("  <p>ab")
    assert found.text.endswith("</p> ")
    assert found.source == line.strip()


def test_wrong_calls_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="language is 'en', but lines are sentences"):
        Echo().translate(["a"], language="en")
    with pytest.raises(UsageError, match="language is 'English', which is no code of a language"):
        Echo().translate(["a"], document=True, language="English")
    monkeypatch.setitem(sys.modules, "sentencex", None)
    with pytest.raises(UsageError, match=r"pip install 'transduce\[documents\]'"):
        Echo().translate(["a"], document=True)
