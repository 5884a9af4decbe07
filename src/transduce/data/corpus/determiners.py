"""Articles and their like, and which of them each place in a sentence draws from."""

from __future__ import annotations

from dataclasses import replace

from transduce.data.corpus.inflection import (
    Determiner,
    bare,
    der,
    indefinite,
    like_dieser,
    like_ein,
    negated_indefinite,
    several,
    unchanging,
)
from transduce.data.corpus.numbers import english_cardinal, german_cardinal

THE = der()
A = indefinite()
ONE = replace(A, plural=None)  # persons without an article sound odd in the plural
BARE = bare()
NOT_A = negated_indefinite()
NOT_ANY = replace(NOT_A, singular="any ", plural=None)  # of a substance
THIS = like_dieser("dies", "this ", "these ")
EVERY = like_dieser("jed", "every ", None)
ALL = like_dieser("all", None, "all ")
WHICH = like_dieser("welch", "which ", "which ")
MANY = several("viel", "many ")
HOW_MANY = several("wie viel", "how many ")
POSSESSIVES = tuple(
    like_ein(german, f"{english} ")
    for english, german in (
        ("my", "mein"),
        ("your", "dein"),
        ("his", "sein"),
        ("her", "ihr"),
        ("our", "unser"),
        ("their", "ihr"),
    )
)


def numeral(number: int) -> Determiner:
    """A number from two up before a plural noun."""
    return unchanging(german_cardinal(number), english_cardinal(number))


def _weighted(*choices: tuple[tuple[Determiner, ...], int]) -> tuple[Determiner, ...]:
    """Every determiner as often as the number beside it says, to be drawn from evenly."""
    return tuple(determiner for group, weight in choices for determiner in group for _ in range(weight))


_FEW = tuple(numeral(number) for number in range(2, 6))
_SOME = tuple(numeral(number) for number in range(2, 13))

DESCRIBED = _weighted(((THE,), 12), ((THIS,), 3), ((EVERY,), 1), ((ALL,), 1))
HEADS = _weighted(((THE,), 12), ((ONE,), 2), ((EVERY,), 1), ((ALL,), 1), ((MANY,), 1))
PEOPLE = _weighted(
    ((THE,), 48), ((THIS,), 10), ((ONE,), 14), ((EVERY,), 4), ((ALL,), 4), ((MANY,), 4), (_FEW, 2)
)
SUBJECTS = _weighted(((THE,), 36), (POSSESSIVES, 4), ((THIS,), 8), ((A,), 8), ((MANY,), 3), (_FEW, 1))
OBJECTS = _weighted(((THE,), 40), (POSSESSIVES, 4), ((THIS,), 10), ((A,), 36), ((MANY,), 6), (_SOME, 1))
DEFINITE = _weighted(((THE,), 8), ((THIS,), 2))
NEGATED = _weighted(((THE,), 18), (POSSESSIVES, 1), ((THIS,), 4), ((NOT_A,), 20))
PLACES = _weighted(((THE,), 18), ((A,), 2), ((THIS,), 2))
