"""Clauses with *to be*: qualities, comparisons, professions and ages; and the weather."""

from __future__ import annotations

from functools import cache

from transduce.data.corpus.clauses import IT, Clause, clause
from transduce.data.corpus.determiners import DEFINITE, DESCRIBED
from transduce.data.corpus.inflection import FEMININE, NOMINATIVE, Adjective, Noun, words
from transduce.data.corpus.nouns import pool
from transduce.data.corpus.numbers import english_cardinal, german_cardinal
from transduce.data.corpus.phrases import Draw, Phrase, pick, random_noun_phrase, somebody
from transduce.data.corpus.tenses import FUTURE, ONLY_PAST, PAST, PROGRESSIVE, be, times_for
from transduce.data.corpus.times import FREQUENCY
from transduce.data.corpus.verbs import verbs_of

_THINGS = "thing clothes furniture vehicle reading building room animal food event thought place"
# Qualities that come and go: only with these does it make sense to say when or how often.
_PASSING = words("tired ill happy sad hungry")
_WEATHER = (("cold", "kalt"), ("warm", "warm"), ("hot", "heiß"), ("dark", "dunkel"))
# What somebody is by profession, for a man, a woman and several: German has no article here.
_PROFESSIONS = tuple(
    (english, tuple(german.split()))
    for english, german in (
        ("teacher", "Lehrer Lehrerin"),
        ("doctor", "Arzt Ärztin"),
        ("baker", "Bäcker Bäckerin"),
        ("cook", "Koch Köchin"),
        ("painter", "Maler Malerin"),
        ("singer", "Sänger Sängerin"),
        ("judge", "Richter Richterin"),
        ("lawyer", "Anwalt Anwältin"),
        ("gardener", "Gärtner Gärtnerin"),
        ("engineer", "Ingenieur Ingenieurin"),
        ("student", "Student Studentin"),
        ("pupil", "Schüler Schülerin"),
    )
)


@cache
def _passing() -> tuple[Adjective, ...]:
    return tuple(adjective for adjective in _person_adjectives() if adjective.english[0] in _PASSING)


@cache
def _person_adjectives() -> tuple[Adjective, ...]:
    return pool("man")[0].adjectives


def being(
    draw: Draw,
    tenses: tuple[int, ...] = (PROGRESSIVE,) * 6 + (PAST,) * 3 + (FUTURE,),
    subject: Phrase | None = None,
    negation: float = 0.12,
) -> Clause:
    """A clause that says what somebody or something is like; it is present unless past or future."""
    tense = pick(draw, tenses)
    if tense in ONLY_PAST:
        tense = PAST
    elif tense != FUTURE:
        tense = PROGRESSIVE
    negated = draw() < negation
    if subject is None:
        subject = _subject(draw, negated)
    built = Clause(subject, be()[tense][subject.person], negated)
    if negated:
        built.after = "nicht"
    _predicate(draw, built, tense)
    return built


def feeling(draw: Draw, tenses: tuple[int, ...]) -> Clause:
    """How somebody is at the moment: a reason or a condition for something else."""
    tense = PAST if pick(draw, tenses) in ONLY_PAST else PROGRESSIVE
    subject = somebody(draw, NOMINATIVE, DESCRIBED)
    adjective = pick(draw, _passing())
    while _said_already(adjective, subject):
        adjective = pick(draw, _passing())
    negated = draw() < 0.12
    built = Clause(subject, be()[tense][subject.person], negated)
    built.after = "nicht" if negated else ""
    built.complement, built.last = adjective.english[0], adjective.predicative[0]
    return built


def weather(draw: Draw, tenses: tuple[int, ...]) -> Clause:
    """It rains, it snows, it is cold."""
    if draw() < 0.6:
        return clause(draw, pick(draw, verbs_of("weather")), tenses, negation=0.08)
    tense = pick(draw, tenses)
    tense = PAST if tense in ONLY_PAST else FUTURE if tense == FUTURE else PROGRESSIVE
    built = Clause(IT, be()[tense][IT.person], False)
    built.complement, built.last = pick(draw, _WEATHER)
    if draw() < 0.4:
        built.time = pick(draw, pick(draw, times_for(tense, "hour")))
    return built


def _said_already(adjective: Adjective, subject: Phrase) -> bool:
    words = subject.english.split()
    return any(degree in words for degree in adjective.english)


def _subject(draw: Draw, negated: bool) -> Phrase:
    if draw() < 0.55:
        return somebody(draw, NOMINATIVE, DEFINITE if negated else DESCRIBED)
    return random_noun_phrase(draw, pool(_THINGS), DEFINITE if negated else DESCRIBED, NOMINATIVE, 0.2)


def _predicate(draw: Draw, built: Clause, tense: int) -> None:
    subject = built.subject
    human = subject.noun is None or subject.noun.kind == "person"
    chance = draw()
    if human and chance < 0.14 and tense != FUTURE:
        _profession(draw, built)
    elif human and chance < 0.24 and not built.negated and tense != FUTURE:
        number = 2 + int(draw() * 98)
        built.complement = f"{english_cardinal(number)} years old"
        built.last = f"{german_cardinal(number)} Jahre alt"
    else:
        adjectives = subject.noun.adjectives if subject.noun else _person_adjectives()
        if human and tense == FUTURE:
            adjectives = _passing()
        adjective = pick(draw, adjectives)
        while _said_already(adjective, subject):
            adjective = pick(draw, adjectives)
        if adjective.gradable and chance > 0.65 and tense != FUTURE:
            _comparison(draw, built, adjective, human)
        else:
            _quality(draw, built, adjective, tense)


def _quality(draw: Draw, built: Clause, adjective: Adjective, tense: int) -> None:
    built.complement, built.last = adjective.english[0], adjective.predicative[0]
    chance = draw()
    if chance < 0.2 and not built.negated:
        intensity = ("very", "sehr") if chance < 0.12 and adjective.gradable else ("too", "zu")
        if adjective.gradable:
            built.complement = f"{intensity[0]} {built.complement}"
            built.last = f"{intensity[1]} {built.last}"
    elif adjective.english[0] in _PASSING:
        if chance < 0.4 and tense == PROGRESSIVE and not built.negated:
            built.middle, frequency = pick(draw, FREQUENCY)
            built.time = "", frequency
        elif chance < 0.7:
            built.time = pick(draw, pick(draw, times_for(tense, "hour")))


def _comparison(draw: Draw, built: Clause, adjective: Adjective, human: bool) -> None:
    subject = built.subject
    other = subject
    while other.english == subject.english or (other.noun is not None and other.noun is subject.noun):
        if human:
            other = somebody(draw, NOMINATIVE, DEFINITE, pronouns=0.0)
        else:
            nouns = _rivals(subject.noun)
            other = random_noun_phrase(draw, nouns, DEFINITE, NOMINATIVE, 0.0)
    if draw() < 0.7:
        built.complement = f"{adjective.english[1]} than {other.english}"
        built.last = f"{adjective.predicative[1]} als {other.german}"
    else:
        built.complement = f"as {adjective.english[0]} as {other.english}"
        built.last = f"so {adjective.predicative[0]} wie {other.german}"


@cache
def _rivals(noun: Noun | None) -> tuple[Noun, ...]:
    assert noun is not None
    return pool(noun.kind)


def _profession(draw: Draw, built: Clause) -> None:
    english, german = pick(draw, _PROFESSIONS)
    if built.subject.person >= 3:
        noun = pool(english)[0]
        built.complement, built.last = noun.plural, noun.german[4]
    else:
        article = "an" if english[0] in "aeiou" else "a"
        built.complement = f"{article} {english}"
        built.last = german[1 if built.subject.gender == FEMININE else 0]
    if built.negated:
        built.after, built.last = "", f"{_kein(built)} {built.last}"


def _kein(built: Clause) -> str:
    if built.subject.person >= 3 or built.subject.gender == FEMININE:
        return "keine"
    return "kein"
