"""Noun phrases: an article, an adjective that agrees with it and a noun, in both languages at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from transduce.data.corpus.determiners import BARE, DEFINITE, EVERY, NOT_A, NOT_ANY, ONE, POSSESSIVES, THE, A
from transduce.data.corpus.inflection import (
    DU,
    ER,
    FEMININE,
    GENITIVE,
    ICH,
    MASCULINE,
    NOMINATIVE,
    PLURAL,
    SIE,
    WIR,
    Adjective,
    Determiner,
    Noun,
    article_before,
)
from transduce.data.corpus.nouns import pool

T = TypeVar("T")
Draw = Callable[[], float]
Determiners = tuple[Determiner, ...]


def pick(draw: Draw, choices: Sequence[T]) -> T:
    """One of ``choices``, each equally likely."""
    return choices[int(draw() * len(choices))]


class Phrase(NamedTuple):
    """A noun phrase: both strings, the person of its verb, its gender, and what word order asks about it."""

    english: str
    german: str
    person: int
    gender: int
    definite: bool
    pronoun: bool
    noun: Noun | None


class Pronoun(NamedTuple):
    """A personal pronoun: English as subject and object, German in three cases."""

    subject: str
    object: str
    german: tuple[str, str, str]
    person: int
    gender: int


NAMES = tuple((name, FEMININE) for name in ("Anna", "Maria", "Lena", "Julia", "Emma")) + tuple(
    (name, MASCULINE) for name in ("Peter", "Paul", "Martin", "David", "Tom")
)
PRONOUNS = (
    Pronoun("I", "me", ("ich", "mich", "mir"), ICH, MASCULINE),
    Pronoun("you", "you", ("du", "dich", "dir"), DU, MASCULINE),
    Pronoun("he", "him", ("er", "ihn", "ihm"), ER, MASCULINE),
    Pronoun("she", "her", ("sie", "sie", "ihr"), ER, FEMININE),
    Pronoun("we", "us", ("wir", "uns", "uns"), WIR, PLURAL),
    Pronoun("they", "them", ("sie", "sie", "ihnen"), SIE, PLURAL),
)
REFLEXIVE = ("mich", "dich", "sich", "uns", "sich")
_I, _YOU, _HE, _SHE, _WE, _THEY = PRONOUNS
# What an object pronoun may be beside each person as the subject: never the same first or second person.
_BESIDE = (
    (_YOU, _HE, _SHE, _THEY),
    (_I, _HE, _SHE, _WE, _THEY),
    PRONOUNS,
    (_YOU, _HE, _SHE, _THEY),
    PRONOUNS,
)
_FRIENDS = "sibling friend neighbour teacher doctor boss colleague guest"


def noun_phrase(
    noun: Noun,
    determiner: Determiner,
    case: int,
    plural: bool,
    adjective: Adjective | None = None,
    degree: int = 0,
) -> Phrase:
    """``determiner [adjective] noun`` in one case and number; degree 1 is comparative, 2 superlative."""
    gender = PLURAL if plural else noun.gender
    index = 4 * gender + case
    english = noun.plural if plural else noun.english
    article = determiner.plural if plural else determiner.singular
    assert article is not None, f"{determiner} has no such number"
    german = noun.german[4 + case if plural else case]
    if adjective is not None:
        english = f"{adjective.english[degree]} {english}"
        german = f"{adjective.stems[degree]}{determiner.endings[index]} {german}"
    if article == "a ":
        article = f"{article_before(english)} "
    person = SIE if plural else ER
    return Phrase(
        article + english, determiner.forms[index] + german, person, gender, determiner.definite, False, noun
    )


def random_noun_phrase(
    draw: Draw,
    nouns: Sequence[Noun],
    determiners: Determiners,
    case: int,
    adjectives: float = 0.3,
    plurals: float = 0.25,
) -> Phrase:
    """A noun phrase with one of ``nouns``; ``adjectives`` and ``plurals`` are the shares that have them."""
    noun = pick(draw, nouns)
    determiner = pick(draw, determiners)
    plural = False
    if noun.substance:
        return _substance(draw, noun, determiner, case, adjectives)
    if determiner.plural is not None:
        plural = determiner.singular is None or draw() < plurals
    if draw() >= adjectives:
        return noun_phrase(noun, determiner, case, plural)
    adjective = pick(draw, noun.adjectives)
    degree = 0
    if adjective.gradable and draw() < 0.15:
        degree = _degree(determiner, plural)
    return noun_phrase(noun, determiner, case, plural, adjective, degree)


def _degree(determiner: Determiner, plural: bool) -> int:
    """The degree that may stand after ``determiner``: *the oldest*, *an older*, else the plain one."""
    if determiner is THE:
        return 2
    return 1 if determiner in (A, ONE) and not plural else 0


def _substance(draw: Draw, noun: Noun, determiner: Determiner, case: int, adjectives: float) -> Phrase:
    """What cannot be counted has no article where other nouns have *a* or a number."""
    if determiner is NOT_A:
        determiner = NOT_ANY
    elif not determiner.definite or determiner is EVERY or determiner.singular is None:
        determiner = BARE
    adjective = pick(draw, noun.adjectives) if draw() < adjectives else None
    return noun_phrase(noun, determiner, case, False, adjective)


def somebody(
    draw: Draw, case: int, determiners: Determiners, beside: Phrase | None = None, pronouns: float = 0.35
) -> Phrase:
    """A pronoun, a name or a noun for a person; ``beside`` is the subject that an object must differ from."""
    chance = draw()
    if chance < pronouns:
        return pronoun(pick(draw, _BESIDE[beside.person] if beside else PRONOUNS), case)
    chance = (chance - pronouns) / (1 - pronouns)
    if chance < 0.18:
        name, gender = pick(draw, NAMES)
        return Phrase(name, name, ER, gender, True, False, None)
    if chance < 0.28:
        return random_noun_phrase(draw, pool("parent"), POSSESSIVES, case, 0.2, 0.0)
    if chance < 0.38:
        return random_noun_phrase(draw, pool(_FRIENDS), POSSESSIVES, case, 0.2)
    if chance < 0.42 and case == NOMINATIVE and determiners is not DEFINITE:
        return both(draw)
    return random_noun_phrase(draw, pool("person"), determiners, case)


def both(draw: Draw) -> Phrase:
    """Two persons joined by *and*, as a subject."""
    if draw() < 0.4:
        first = int(draw() * len(NAMES))
        second = (first + 1 + int(draw() * (len(NAMES) - 1))) % len(NAMES)
        names = NAMES[first][0], NAMES[second][0]
        return Phrase(
            f"{names[0]} and {names[1]}", f"{names[0]} und {names[1]}", SIE, PLURAL, True, False, None
        )
    people = pool("person")
    first = int(draw() * len(people))
    second = (first + 1 + int(draw() * (len(people) - 1))) % len(people)
    one = noun_phrase(people[first], THE, NOMINATIVE, False)
    other = noun_phrase(people[second], THE, NOMINATIVE, False)
    english, german = f"{one.english} and {other.english}", f"{one.german} und {other.german}"
    return Phrase(english, german, SIE, PLURAL, True, False, None)


def pronoun(row: Pronoun, case: int) -> Phrase:
    """A personal pronoun in one case."""
    english = row.subject if case == NOMINATIVE else row.object
    return Phrase(english, row.german[case], row.person, row.gender, True, True, None)


def possession(draw: Draw, nouns: Sequence[Noun], case: int) -> Phrase:
    """*the teacher's old car*, *Anna's car*: a German owner comes after the thing, unless it is a name."""
    noun = pick(draw, nouns)
    adjective = pick(draw, noun.adjectives) if draw() < 0.25 else None
    if draw() < 0.35:
        name, _ = pick(draw, NAMES)
        owned = noun_phrase(noun, BARE, case, False, adjective)
        return owned._replace(
            english=f"{name}'s {owned.english}", german=f"{name}s {owned.german}", definite=True
        )
    if draw() < 0.5:
        owner = noun_phrase(pick(draw, pool("parent sibling")), pick(draw, POSSESSIVES), GENITIVE, False)
    else:
        owner = noun_phrase(pick(draw, pool("person")), THE, GENITIVE, False)
    owned = noun_phrase(noun, THE, case, False, adjective)
    english = f"{owner.english}'s {owned.english.removeprefix('the ')}"
    return owned._replace(english=english, german=f"{owned.german} {owner.german}")


_CONTRACTED = {
    ("in", "dem"): "im",
    ("an", "dem"): "am",
    ("zu", "dem"): "zum",
    ("von", "dem"): "vom",
    ("in", "das"): "ins",
    ("an", "das"): "ans",
    ("zu", "der"): "zur",
}


def after_preposition(preposition: str, german: str) -> str:
    """Preposition and noun phrase, contracted where German does so: *im*, *zum*, *zur*, *vom*, *ins*."""
    if german[:1] == "d" and german[3:4] == " ":
        contracted = _CONTRACTED.get((preposition, german[:3]))
        if contracted:
            return contracted + german[3:]
    return f"{preposition} {german}"
