"""Numbers, times of day and dates of the embedded corpus."""

import re

import pytest

from transduce.data.corpus.numbers import english_cardinal, english_ordinal, german_cardinal, german_ordinal
from transduce.data.corpus.times import clock_time, date, time_choices

NUMBERS = {
    0: ("zero", "null"),
    1: ("one", "eins"),
    11: ("eleven", "elf"),
    12: ("twelve", "zwölf"),
    16: ("sixteen", "sechzehn"),
    17: ("seventeen", "siebzehn"),
    20: ("twenty", "zwanzig"),
    21: ("twenty-one", "einundzwanzig"),
    30: ("thirty", "dreißig"),
    66: ("sixty-six", "sechsundsechzig"),
    77: ("seventy-seven", "siebenundsiebzig"),
    100: ("one hundred", "einhundert"),
    101: ("one hundred and one", "einhunderteins"),
    212: ("two hundred and twelve", "zweihundertzwölf"),
    321: ("three hundred and twenty-one", "dreihunderteinundzwanzig"),
    999: ("nine hundred and ninety-nine", "neunhundertneunundneunzig"),
}


@pytest.mark.parametrize(("number", "expected"), NUMBERS.items())
def test_numbers_written_out(number, expected):
    assert (english_cardinal(number), german_cardinal(number)) == expected


def test_all_numbers_below_a_thousand_read_back():
    for number in range(1000):
        assert _read_english(english_cardinal(number)) == number
        assert _read_german(german_cardinal(number)) == number


SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"]
SMALL += ["twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
ENGLISH = {word: value for value, word in enumerate(SMALL)}
ENGLISH |= {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80}
DIGITS = {"ein": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8, "neun": 9}
GERMAN = {"": 0, "null": 0, "eins": 1, "zehn": 10, "elf": 11, "zwölf": 12, "sechzehn": 16, "siebzehn": 17}
GERMAN |= {"zwanzig": 20, "dreißig": 30, "vierzig": 40, "fünfzig": 50, "sechzig": 60, "siebzig": 70}
GERMAN |= {"achtzig": 80, "neunzig": 90} | {word: value for word, value in DIGITS.items() if word != "ein"}
GERMAN |= {f"{word}zehn": 10 + DIGITS[word] for word in ("drei", "vier", "fünf", "acht", "neun")}


def _read_english(text):
    value = 0
    for word in text.replace(" and ", " ").replace("-", " ").split():
        value = 100 * value if word == "hundred" else value + (ENGLISH | {"ninety": 90})[word]
    return value


def _read_german(text):
    match = re.fullmatch(r"(?:(?P<hundreds>\w+?)hundert)?(?:(?P<ones>\w+?)und)?(?P<rest>\w*)", text)
    ones = {"": 0, None: 0} | DIGITS
    return 100 * ones[match["hundreds"]] + ones[match["ones"]] + GERMAN[match["rest"]]


@pytest.mark.parametrize(
    ("number", "english", "german"),
    [
        (1, "first", "erst"),
        (3, "third", "dritt"),
        (7, "seventh", "siebt"),
        (8, "eighth", "acht"),
        (12, "twelfth", "zwölft"),
        (17, "seventeenth", "siebzehnt"),
        (20, "twentieth", "zwanzigst"),
        (21, "twenty-first", "einundzwanzigst"),
        (30, "thirtieth", "dreißigst"),
        (31, "thirty-first", "einunddreißigst"),
    ],
)
def test_ordinals(number, english, german):
    assert (english_ordinal(number), german_ordinal(number)) == (english, german)


@pytest.mark.parametrize(
    ("hour", "minute", "english", "german"),
    [
        (1, 0, "one o'clock", "ein Uhr"),
        (3, 0, "three o'clock", "drei Uhr"),
        (4, 15, "a quarter past four", "Viertel nach vier"),
        (2, 30, "half past two", "halb drei"),
        (12, 30, "half past twelve", "halb eins"),
        (3, 45, "a quarter to four", "Viertel vor vier"),
        (5, 10, "ten past five", "zehn nach fünf"),
        (12, 50, "ten to one", "zehn vor eins"),
        (8, 25, "twenty-five past eight", "fünf vor halb neun"),
        (8, 35, "twenty-five to nine", "fünf nach halb neun"),
    ],
)
def test_times_of_day(hour, minute, english, german):
    assert clock_time(hour, minute) == (english, german)


def test_dates():
    assert date(3, 5) == ("the third of May", "dritt{} Mai")
    past = {pair for group in time_choices()["past"] for pair in group}
    assert ("on the third of May", "am dritten Mai") in past
    assert ("on the twenty-first of March", "am einundzwanzigsten März") in past
    assert ("on Monday morning", "am Montagmorgen") in past
    assert ("on Friday at half past two", "am Freitag um halb drei") in past


def test_a_time_phrase_has_one_german_one():
    seen: dict[str, str] = {}
    for groups in time_choices().values():
        for english, german in (pair for group in groups for pair in group):
            assert seen.setdefault(english, german) == german
