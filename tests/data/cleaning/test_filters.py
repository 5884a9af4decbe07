"""Each filter on both sides of its edge."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.data.cleaning.config import CleaningConfig
from transduce.data.cleaning.filters import Filters
from transduce.data.cleaning.identical import identical
from transduce.data.cleaning.letters import letters
from transduce.data.cleaning.markup import markup
from transduce.data.cleaning.noise import noise
from transduce.data.cleaning.numbers import addresses, numbers
from transduce.data.cleaning.scripts import script, scripts_of
from transduce.data.formats.pair import Pair
from transduce.errors import ConfigError

LATIN = ("Latn",)


@pytest.mark.parametrize(
    ("source", "target", "dropped"),
    [
        ("This was never translated.", "This was never translated.", True),
        ("This was never translated.", "this was NEVER translated", True),
        ("1. This was never translated", "This was never translated!", True),
        ("This was translated.", "Das wurde übersetzt.", False),
        ("Johann Sebastian Bach", "Johann Sebastian Bach!", False),
        ("10 20 30 40 50 60", "10 20 30 40 50 60", False),
        ("Tom!", "Tom!", False),
    ],
)
def test_identical(source: str, target: str, dropped: bool) -> None:
    assert bool(identical(source, target, CleaningConfig())) is dropped


def test_letters_have_no_case_punctuation_space_or_digit() -> None:
    assert letters("Hello, World 42!") == letters("hello world") == "helloworld"
    assert letters("„Größe“ – 7 Äpfel…") == "grösseäpfel"
    assert letters("№ 12, 3½ ²") == ""
    assert letters("हिन्दी में!") == "हिन्दीमें"


@given(st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_letters_are_the_same_by_the_slow_way(text: str) -> None:
    import unicodedata

    slow = "".join(c for c in text.casefold() if ord(c) > 0xFFFF or unicodedata.category(c)[0] in "LM")
    assert letters(text) == slow


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Where to go?!", ""),
        ("(...)", "100% symbols"),
        ("?!", ""),
        ("ा?!.।", ""),
        ("#### ---- ab ====", "86% symbols"),
        ("a-b-c-d-e-f.", ""),
        ("a-b-c-d-e--", ""),
        ("a-b-c-d-e----", "62% symbols"),
        ("👍👍👍👍👍 ok", "71% symbols"),
        ("हिन्दी में लिखा है।", ""),
        ("12:30 – 14:00", ""),
        ("na\ufffdve", "U+FFFD"),
        ("\uf0b7 a bullet", "U+F0B7"),
        ("a" * 20, ""),
        ("a" * 21, "'a' more than 20 times"),
        ("ä" + "." * 9 + "Straße", ""),
    ],
)
def test_noise(text: str, found: str) -> None:
    for source, target in ((text, "x"), ("x", text)):
        reason = noise(source, target, CleaningConfig())
        assert reason.startswith(found) if found else not reason
    off = CleaningConfig(damaged=False, max_symbols=0.0, max_repeats=0)
    assert noise(text, text, off) == ""


@given(st.text("ab ", max_size=40), st.integers(0, 30), st.text("ab ", max_size=40), st.integers(1, 25))
@settings(max_examples=300)
def test_the_shortcut_of_finding_repeats_misses_none(head: str, run: int, tail: str, limit: int) -> None:
    text = head + "a" * run + tail
    longest = max((len(list(group)) for c, group in itertools.groupby(text) if c != " "), default=0)
    found = noise(text, "x", CleaningConfig(max_repeats=limit, max_symbols=0.0))
    assert bool(found) == (longest > limit)


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("a <b>c</b>", "ein <b>c</b>", ""),
        ('<a href="x">y</a>', "<a href='z'>y</a>", ""),
        ("a <b>c</b>", "ein c", "</b> once in source, never in the other"),
        ("a", "ein<br/>", "<br> once in target, never in the other"),
        ("<i>a</i>", "<i>a</i> <i>b</i>", "</i> 2 times in target, once in the other"),
        ("a<!-- b -->", "a", "<!--> once in source, never in the other"),
        ("5 < 6 and x<y", "5 < 6 und x > y", ""),
        ("<anne@example.org>", "<anne bei example>", "<anne> once in target, never in the other"),
        ("open <file>", "<Datei> öffnen", ""),
        ("open <file>", "</Datei> öffnen", "</Datei> once in target, never in the other"),
        ("a <BR> b", "a b", "<BR> once in source, never in the other"),
        ("see [[Berlin]]", "siehe Berlin", "[[ only in source"),
        ("[1] a", "[1] ein", ""),
        ("[1] a", "ein", ""),
        ("{name} a", "{name} ein", ""),
        ("a", "{{cite}} ein", "{{ only in target"),
        ("I <3 you", "Ich <3 dich", ""),
    ],
)
def test_markup(source: str, target: str, reason: str) -> None:
    assert markup(source, target, CleaningConfig()) == reason


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("in 1990", "im Jahre 1990", ""),
        ("in 1990", "im Jahre 1991", "1990 in source but 1991 in target"),
        ("in 1990", "damals", ""),
        ("1,500.75 dollars", "1.500,75 Dollar", ""),
        ("1,500 people", "1 500 Leute", ""),
        ("1,500 people", "1\u202f500 Leute", ""),
        ("12/31/1999", "31.12.1999", ""),
        ("at 5 p.m.", "um 17 Uhr", ""),
        ("99 red", "88 rot", ""),
        ("100 red", "200 rot", "100 in source but 200 in target"),
        ("100 of 200", "100 von 300", "200 in source but 300 in target"),
        ("1990", "١٩٩٠", ""),
        ("1990", "١٩٩١", "1990 in source but ١٩٩١ in target"),
        ("1.50", "1,5", ""),
    ],
)
def test_numbers(source: str, target: str, reason: str) -> None:
    assert numbers(source, target, CleaningConfig()) == reason
    assert bool(numbers(target, source, CleaningConfig())) is bool(reason)


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("see http://example.org/a.html.", "siehe http://example.org/b.html", ""),
        ("see http://en.example.org", "siehe https://www.example.de", ""),
        ("see http://example.org", "siehe dort", "'example' is an address in source only"),
        ("see there", "siehe www.beispiel.de", "'beispiel' is an address in target only"),
        ("http://one.org", "http://other.org", "'one' is an address in source only"),
        ("me@example.org", "me@example.org", ""),
        ("me@example.org", "ich", "'example' is an address in source only"),
        ("@tom: hello.", "@tom: hallo.", ""),
        ("www.dw.info", "www.dw.com", ""),
        ("Mr. A", "Herr A.", ""),
    ],
)
def test_addresses(source: str, target: str, reason: str) -> None:
    assert addresses(source, target, CleaningConfig()) == reason


def test_scripts_are_known_by_language_or_named() -> None:
    assert scripts_of("de") == scripts_of("de-DE") == scripts_of("de_AT") == LATIN
    assert scripts_of("sr") == ("Latn", "Cyrl")
    assert scripts_of("sr-Latn") == LATIN
    assert scripts_of("zh_Hant_TW") == ("Hani",)
    assert scripts_of("tlh") == scripts_of("") == ()


RUSSIAN, GERMAN = "Мы живём в Москве", "Wir leben in Москва"


@pytest.mark.parametrize(
    ("source", "target", "languages", "reason"),
    [
        (RUSSIAN, GERMAN, ("ru", "de"), ""),
        (GERMAN, RUSSIAN, ("ru", "de"), "38% of the letters in source are Cyrl, at least 50%"),
        (RUSSIAN, RUSSIAN, ("ru", "de"), "0% of the letters in target are Latn, at least 50%"),
        (RUSSIAN, RUSSIAN, ("ru", ""), ""),
        ("Windows 11", "iPhone", ("ru", "de"), ""),
        ("私は東京に住んでいます。", "我住在东京这个地方啊。", ("ja", "zh"), ""),
        ("我住在东京这个地方啊。", "私は東京に住んでいます。", ("zh", "zh"), "36%"),
    ],
)
def test_script(source: str, target: str, languages: tuple[str, str], reason: str) -> None:
    found = script(source, target, (scripts_of(languages[0]), scripts_of(languages[1])), CleaningConfig())
    assert found.startswith(reason) if reason else not found


def test_settings_that_make_no_sense_are_refused() -> None:
    for values, message in (
        ({"max_words": -1}, r"cleaning\.max_words is -1"),
        ({"max_ratio": 0.5}, r"cleaning\.max_ratio is 0\.5"),
        ({"script_share": 1.5}, r"cleaning\.script_share is 1\.5; it is a share"),
        ({"max_ratio": float("nan")}, r"cleaning\.max_ratio is nan"),
        ({"min_words": 9, "max_words": 3}, r"no pair would be left"),
    ):
        with pytest.raises(ConfigError, match=message):
            CleaningConfig(**values)


OFF = {
    **dict.fromkeys(("mojibake", "controls", "entities", "empty", "damaged", "markup", "addresses"), False),
    **dict.fromkeys(("duplicates", "near_duplicates"), False),
    **dict.fromkeys(("max_words", "max_characters", "max_word", "identical_words", "max_repeats"), 0),
    **dict.fromkeys(("max_ratio", "script_share", "max_symbols", "language"), 0.0),
    "number_digits": 0,
}


def test_everything_can_be_turned_off() -> None:
    filters = Filters(CleaningConfig(**OFF), "en", "de")
    assert filters.names() == filters.repair_names() == filters.idle() == []
    nonsense = [Pair("", "\ufffd" * 3000, "f", 1), Pair("a\rb &amp;", "http://x.de", "f", 2)]
    assert filters(nonsense).verdicts == {}


def test_the_first_filter_that_objects_is_named_and_the_pair_kept_as_read() -> None:
    pair = Pair("a\rb", "\ufffd" * 3000, "f", 7)
    (verdict,) = Filters(CleaningConfig())([pair]).verdicts.values()
    assert (verdict.filter, verdict.pair, verdict.repairs) == ("length", pair, ("controls",))
    assert verdict.reason == "3,000 characters in target, at most 2000"
    assert verdict.mended.source == "a b"


def test_a_verdict_depends_on_its_own_pair_alone() -> None:
    draw = random.Random(5)
    words = ["a", "1990", "2001", "<b>", "&amp;", "ü", "Ã¼", "....", "\t", "www.x.org", "日本", "\ufffd"]
    made = [
        Pair(" ".join(draw.choices(words, k=6)), " ".join(draw.choices(words, k=6)), "f", line)
        for line in range(300)
    ]
    filters = Filters(CleaningConfig())
    together = filters(made).all(made)
    alone = [filters([pair]).all([pair])[0] for pair in made]
    assert together == alone
    assert 0 < sum(verdict.kept for verdict in together) < 300
