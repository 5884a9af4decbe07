"""Numbers written out in English and German: cardinals 0 to 999 and the ordinals of the days of a month."""

from __future__ import annotations

from transduce.data.corpus.inflection import words

_ENGLISH_SMALL = words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_ENGLISH_TENS = words("_ _ twenty thirty forty fifty sixty seventy eighty ninety")
_GERMAN_SMALL = words(
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
    "siebzehn achtzehn neunzehn"
)
_GERMAN_TENS = words("_ _ zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig")

_ENGLISH_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
    "twenty": "twentieth",
    "thirty": "thirtieth",
}
_GERMAN_ORDINALS = {1: "erst", 3: "dritt", 7: "siebt", 8: "acht"}


def english_cardinal(number: int) -> str:
    """The English words for ``number`` (0 to 999), British style: ``one hundred and one``."""
    _check(number, 0, 999)
    if number < 20:
        return _ENGLISH_SMALL[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _ENGLISH_TENS[tens] + (f"-{_ENGLISH_SMALL[ones]}" if ones else "")
    hundreds, rest = divmod(number, 100)
    return f"{_ENGLISH_SMALL[hundreds]} hundred" + (f" and {english_cardinal(rest)}" if rest else "")


def german_cardinal(number: int) -> str:
    """The German word for ``number`` (0 to 999): ``einundzwanzig``, ``einhunderteins``."""
    _check(number, 0, 999)
    if number < 20:
        return _GERMAN_SMALL[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return (f"{_german_factor(ones)}und" if ones else "") + _GERMAN_TENS[tens]
    hundreds, rest = divmod(number, 100)
    return f"{_german_factor(hundreds)}hundert" + (german_cardinal(rest) if rest else "")


def english_ordinal(number: int) -> str:
    """The English ordinal of ``number`` (1 to 31): ``twenty-first``."""
    _check(number, 1, 31)
    head, dash, last = english_cardinal(number).rpartition("-")
    return head + dash + _ENGLISH_ORDINALS.get(last, f"{last}th")


def german_ordinal(number: int) -> str:
    """The German ordinal of ``number`` (1 to 31) without its ending: ``dritt``, ``einundzwanzigst``."""
    _check(number, 1, 31)
    if number in _GERMAN_ORDINALS:
        return _GERMAN_ORDINALS[number]
    return german_cardinal(number) + ("t" if number < 20 else "st")


def _german_factor(number: int) -> str:
    """The digit as it stands inside a longer word: ``ein`` for one, else the cardinal."""
    return "ein" if number == 1 else _GERMAN_SMALL[number]


def _check(number: int, low: int, high: int) -> None:
    assert low <= number <= high, f"numbers from {low} to {high} are written out, not {number}"
