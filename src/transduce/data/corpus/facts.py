"""Short sentences with numbers: prices, ages, dates, times of day, and what there is."""

from __future__ import annotations

from functools import cache

from transduce.data.corpus.determiners import DEFINITE, A, numeral
from transduce.data.corpus.inflection import ACCUSATIVE, NOMINATIVE, Determiner
from transduce.data.corpus.nouns import pool
from transduce.data.corpus.numbers import english_cardinal, german_cardinal
from transduce.data.corpus.phrases import Draw, pick, random_noun_phrase, somebody
from transduce.data.corpus.places import location
from transduce.data.corpus.tenses import PROGRESSIVE, be
from transduce.data.corpus.times import DAYS, clock_times, dates

Sentence = tuple[str, str, str]
_GOODS = "thing clothes furniture vehicle reading food"


@cache
def _prices() -> tuple[tuple[str, str], ...]:
    """Numbers before a noun; those that end in one would have to agree with it."""
    numbers = [number for number in range(2, 1000) if number % 100 != 1]
    return tuple((english_cardinal(number), german_cardinal(number)) for number in numbers)


@cache
def _counts() -> tuple[Determiner, ...]:
    return (A,) * 10 + tuple(numeral(number) for number in range(2, 100))


def price(draw: Draw) -> Sentence:
    """What something costs."""
    what = random_noun_phrase(draw, pool(_GOODS), DEFINITE, NOMINATIVE)
    several = what.person > 2
    number = pick(draw, _prices())
    return (
        f"{what.english} {'cost' if several else 'costs'} {number[0]} euros",
        f"{what.german} {'kosten' if several else 'kostet'} {number[1]} Euro",
        ".",
    )


def asked_price(draw: Draw) -> Sentence:
    """A question for a price."""
    what = random_noun_phrase(draw, pool(_GOODS), DEFINITE, NOMINATIVE)
    several = what.person > 2
    return (
        f"how much {'do' if several else 'does'} {what.english} cost",
        f"wie viel {'kosten' if several else 'kostet'} {what.german}",
        "?",
    )


def asked_age(draw: Draw) -> Sentence:
    """A question for an age."""
    who = somebody(draw, NOMINATIVE, DEFINITE)
    form = be()[PROGRESSIVE][who.person]
    return f"how old {form.plain} {who.english}", f"wie alt {form.finite} {who.german}", "?"


def there_is(draw: Draw) -> Sentence:
    """What there is in a place: German tells the place first."""
    what = random_noun_phrase(draw, pool("person animal furniture thing"), _counts(), ACCUSATIVE, 0.2, 0.0)
    where = location(draw, "room")
    verb = "are" if what.person > 2 else "is"
    german = where[1][0].upper() + where[1][1:]
    return f"there {verb} {what.english} {where[0]}", f"{german} gibt es {what.german}", "."


def time_of_day(draw: Draw) -> Sentence:
    """What time it is."""
    english, german = pick(draw, clock_times())
    return f"it is {english}", f"es ist {german}", "."


def today(draw: Draw) -> Sentence:
    """What day it is."""
    day, tag = pick(draw, DAYS)
    if draw() < 0.1:
        return f"today is {day}", f"heute ist {tag}", "."
    english, german = pick(draw, dates())
    return f"today is {day}, {english}", f"heute ist {tag}, der {german.format('e')}", "."


FACTS = (price, price, price, asked_price, asked_age, there_is, there_is, there_is, time_of_day, today)
