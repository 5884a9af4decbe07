from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.data.cleaning.config import CleaningConfig
from transduce.data.cleaning.repairs import (
    compose,
    mend_controls,
    mend_entities,
    mend_mojibake,
    repairs,
)

TEXTS = [
    "Für Elise",
    "« Où êtes-vous ? » — « À l’école… »",
    "„Grüße“, sagte er – und ging.",
    "Řekl: „Příliš žluťoučký kůň“.",
    "Съешь ещё этих мягких французских булок",
    "Ελληνικά · 日本語 · 한국어 · العربية",
    "«RENÉ» et «ANDRÉ», 20 °C, 5 €, ½ l",
    "IRMÔ … SÃO PAULO”",
]


@pytest.mark.parametrize("text", TEXTS)
def test_right_text_stays_as_it_is(text: str) -> None:
    for repair in (mend_mojibake, mend_controls, mend_entities):
        assert repair(text, text) == (text, text)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
@pytest.mark.parametrize(
    "text", ["Für Elise", "Où êtes-vous ?", "naïveté, déjà vu", "Wir müssen draußen üben"]
)
def test_utf8_that_was_read_in_another_encoding_is_mended(text: str, encoding: str) -> None:
    broken = text.encode().decode(encoding)
    assert broken != text
    assert mend_mojibake(broken, text) == (text, text)
    assert mend_mojibake(text, broken) == (text, text)


def test_cyrillic_that_was_read_as_windows_1251_is_mended() -> None:
    text = "Съешь ещё этих мягких французских булок"
    assert mend_mojibake(text.encode().decode("cp1251", "replace"), "x")[0][:5] == text[:5]


def test_right_cyrillic_is_not_even_looked_at_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    import ftfy

    monkeypatch.setattr(ftfy, "fix_encoding", None)
    text = "Россия, Сербия и Румыния: «Рим»"
    assert mend_mojibake(text, "Größe, Übung, «Tee»!") == (text, "Größe, Übung, «Tee»!")


def test_breaks_become_spaces_and_what_shows_nothing_goes() -> None:
    assert mend_controls("a \rb\x0c\u2028 c", "x\x00y\u00adz\ufeff\x85!") == ("a b c", "xyz !")


def test_joiners_and_odd_spaces_stay() -> None:
    text = "a\tb\nc می\u200cخواهم 👩\u200d🔬 10\u202f000\u00a0€ ไทย\u200bไทย"
    assert mend_controls(text, text) == (text, text)


def test_entities_of_one_side_are_mended_and_those_of_both_stay() -> None:
    assert mend_entities("Tom &amp; Ann", "Tom & Ann") == ("Tom & Ann", "Tom & Ann")
    assert mend_entities("5 < 6", "5 &lt; 6 &#8211; &#x41;") == ("5 < 6", "5 < 6 – A")
    assert mend_entities("write &lt;", "schreibe &lt;") == ("write &lt;", "schreibe &lt;")


@pytest.mark.parametrize("text", ["AT&T", "R&D; B&B", "&nosuchname;", "a &#10; b", "& ;"])
def test_what_is_no_entity_or_would_break_the_line_stays(text: str) -> None:
    assert mend_entities(text, "x") == (text, "x")


def test_composing_is_off_unless_asked_for() -> None:
    assert "nfc" not in [name for name, _ in repairs(CleaningConfig())]
    assert [name for name, _ in repairs(CleaningConfig(nfc=True))][-1] == "nfc"
    assert compose("u\u0308ber", "über") == ("über", "über")


@given(st.text(max_size=40), st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_mended_texts_are_one_line_and_mending_twice_changes_nothing_more(source: str, target: str) -> None:
    for repair in (mend_controls, compose):
        once = repair(source, target)
        assert repair(*once) == once
    for text, before in zip(mend_controls(source, target), (source, target), strict=True):
        assert not any(
            (unicodedata.category(c) == "Cc" and c not in "\t\n") or c in "\u2028\u2029" for c in text
        )
        kept = [c for c in before if c.isprintable()]
        assert [c for c in text if c.isprintable() and c != " "] == [c for c in kept if c != " "]
