from __future__ import annotations

import pytest

from transduce.data.formats.languages import agreement, is_code, is_language, normal
from transduce.data.formats.sides import Sides, Wanted
from transduce.data.formats.tally import Tally
from transduce.errors import DataError


@pytest.mark.parametrize(
    ("name", "wanted", "expected"),
    [
        ("de", "de", 3),
        ("DE", "de", 3),
        ("deu", "de", 3),
        ("ger", "deu", 3),
        ("de-DE", "de", 2),
        ("de_AT", "de", 2),
        ("deu_Latn", "de", 2),
        ("de_DE.UTF-8", "de-DE", 3),
        ("sr@latin", "sr", 2),
        ("de", "de-DE", 1),
        ("", "de", 1),
        ("de-AT", "de-DE", 0),
        ("den", "de", 0),
        ("en", "de", 0),
        ("fil", "fi", 0),
    ],
)
def test_names_of_one_language_are_known(name: str, wanted: str, expected: int) -> None:
    assert agreement(name, wanted) == expected


def test_what_is_a_language() -> None:
    names = ("de", "pt_BR", "zh-Hant-TW", "eng", "kab", "text", "gz", "x", "")
    assert [name for name in names if is_language(name)] == [
        "de", "pt_BR", "zh-Hant-TW", "eng"
    ]  # fmt: skip
    assert normal("eng_Latn") == "en-latn"


def test_what_may_be_the_code_of_a_language() -> None:
    names = ("de", "pt_BR", "zh-Hant-TW", "eng", "hsb", "de_AT.UTF-8", "xx", "english", "e", "", "de-", "d1")
    assert [name for name in names if is_code(name)] == [
        "de", "pt_BR", "zh-Hant-TW", "eng", "hsb", "de_AT.UTF-8"
    ]  # fmt: skip


def of(
    units: list[tuple[str, ...]], source: str = "", target: str = "", order: str = ""
) -> list[tuple[int, int] | None]:
    sides = Sides("f.tmx", Wanted(source, target), Tally())
    found = [sides.of(names, order) for names in units]
    sides.finish()
    return found


def test_sides_are_found_by_what_was_asked_for() -> None:
    assert of([("en", "de", "fr"), ("de-AT", "en-GB"), ("fr", "en")], "en", "de") == [(0, 1), (1, 0), None]
    assert of([("de", "de-DE", "en")], "de-DE", "en") == [(1, 2)]
    assert of([("de", "de-AT", "en")], "de-DE", "en") == [(0, 2)], (
        "a name that says less is taken, another variety not"
    )
    assert of([("en-US", "en-GB", "de")], "en", "de") == [(0, 2)], "the first of equals"
    assert of([("en-US", "en-GB")], "en-GB", "en-US") == [(1, 0)]


def test_two_languages_need_no_asking() -> None:
    assert of([("en", "de"), ("de", "en"), ("en",)]) == [(0, 1), (1, 0), None]
    assert of([("de", "en")], order="en-US") == [(1, 0)]
    assert of([("en", "de"), ("de", "en")], target="en") == [(1, 0), (0, 1)]
    assert of([("en", "de"), ("de", "en")], source="de") == [(1, 0), (0, 1)]
    tally = Tally()
    sides = Sides("f.tmx", Wanted(), tally)
    sides.of(["en", "de-CH"])
    sides.finish()
    assert tally.lines() == ["f.tmx: source en, target de-CH: it holds no others"]
    assert tally.languages == ("en", "de-CH")


def test_unnamed_languages_stand_for_any_but_not_for_two() -> None:
    assert of([("", "de")], "en", "de") == [(0, 1)]
    assert of([("", "de")], "de", "en") == [(1, 0)]
    assert of([("", "")], "en", "de") == [(0, 1)]
    assert of([("", "de")]) == [(0, 1)]
    assert of([("", "de")], target="de") == [(0, 1)]
    with pytest.raises(DataError, match=r"f.tmx: has no text in 'en' and 'fr'.*its languages are: de;"):
        of([("", "de")], "en", "fr")


@pytest.mark.parametrize(
    ("units", "source", "target"),
    [
        ([("en", "de", "fr")], "", ""),
        ([("en", "de"), ("en", "fr")], "", ""),
        ([("en", "de"), ("en-GB", "de")], "", ""),
        ([("en", "de", "fr")], "en", ""),
        ([("en", "de"), ("fr", "en")], "", "en"),
    ],
)  # fmt: skip
def test_more_than_two_languages_are_listed(units: list[tuple[str, ...]], source: str, target: str) -> None:
    there = ", ".join(dict.fromkeys(name for names in units for name in names))
    with pytest.raises(
        DataError, match=rf"f.tmx: holds more than two languages: {there}; .*--source-language"
    ):
        of(units, source, target)


def test_a_language_that_is_not_there_is_said_with_those_that_are() -> None:
    with pytest.raises(
        DataError, match=r"f.tmx: has no text in 'en' and 'es'.*its languages are: en, de-DE; say"
    ):
        of([("en", "de-DE")], "en", "es")
    with pytest.raises(DataError, match=r"has no text in 'es'"):
        of([("en", "de-DE")], target="es")
