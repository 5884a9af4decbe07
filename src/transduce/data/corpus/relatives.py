"""Relative clauses: *who*, *whom*, *that*, *whose*, and a preposition with *whom*."""

from __future__ import annotations

from functools import cache

from transduce.data.corpus.clauses import clause
from transduce.data.corpus.copula import being
from transduce.data.corpus.determiners import PEOPLE
from transduce.data.corpus.inflection import DATIVE, GENITIVE, NOMINATIVE, Noun
from transduce.data.corpus.nouns import pool
from transduce.data.corpus.phrases import Draw, Phrase, pick, somebody
from transduce.data.corpus.tenses import PAST, PROGRESSIVE, RELATING
from transduce.data.corpus.verbs import Verb, prepositional_verbs, verbs, verbs_of
from transduce.data.corpus.word_order import subordinate

Pair = tuple[str, str]
# By gender (masculine, feminine, neuter, plural), then by case.
_PRONOUNS = (
    ("der", "den", "dem", "dessen"),
    ("die", "die", "der", "deren"),
    ("das", "das", "dem", "dessen"),
    ("die", "die", "denen", "deren"),
)
_HOMES = "city village house flat hotel castle"


def relative(draw: Draw, head: Phrase) -> Pair:
    """A clause about ``head``, which has a noun: (*who is feeding the dog*, *der den Hund füttert*)."""
    noun = head.noun
    assert noun is not None
    chance = draw()
    if noun.kind == "person":
        if chance < 0.45:
            return _as_subject(draw, head, "who")
        if chance < 0.68:
            return _as_object(draw, head, "whom", _verbs_with_object(noun))
        if chance < 0.78:
            return _as_object(draw, head, "whom", _dative_verbs())
        if chance < 0.92:
            return _after_preposition(draw, head)
        return _owner(draw, head)
    if noun in pool(_HOMES) and chance < 0.4:
        return _home(draw, head)
    if noun.kind == "animal" and chance < 0.35:
        return _as_subject(draw, head, "that")
    objects = _verbs_with_object(noun)
    if objects and (chance < 0.7 or len(head.english.split()) > 2):
        return _as_object(draw, head, "that", objects)
    built = being(draw, (PROGRESSIVE, PAST), _subject(head, "that"))
    return subordinate(built, "", "")


def _subject(head: Phrase, english: str) -> Phrase:
    return head._replace(english=english, german=_PRONOUNS[head.gender][NOMINATIVE])


def _as_subject(draw: Draw, head: Phrase, english: str) -> Pair:
    subject = _subject(head, english)
    if draw() < 0.12 and len(head.english.split()) == 2:
        return subordinate(being(draw, (PROGRESSIVE, PAST), subject), "", "")
    verb = pick(draw, _verbs_with_subject("animal" if english == "that" else "person"))
    return subordinate(clause(draw, verb, RELATING, subject, adverbials=0.6), "", "")


def _somebody(draw: Draw, head: Phrase) -> Phrase:
    """A subject for the clause other than what it is about."""
    found = somebody(draw, NOMINATIVE, PEOPLE, pronouns=0.5)
    while found.noun is not None and found.noun is head.noun:
        found = somebody(draw, NOMINATIVE, PEOPLE, pronouns=0.5)
    return found


def _as_object(draw: Draw, head: Phrase, english: str, verbs: tuple[Verb, ...]) -> Pair:
    verb = pick(draw, verbs)
    built = clause(draw, verb, RELATING, _somebody(draw, head), gap=True, adverbials=0.5, negation=0.06)
    return subordinate(built, english, _PRONOUNS[head.gender][verb.case])


def _after_preposition(draw: Draw, head: Phrase) -> Pair:
    verb = pick(draw, prepositional_verbs())
    built = clause(draw, verb, RELATING, _somebody(draw, head), gap=True, adverbials=0.5, negation=0.06)
    german = f"{verb.governs} {_PRONOUNS[head.gender][verb.case]}"
    return subordinate(built, f"{verb.preposition} whom", german)


def _owner(draw: Draw, head: Phrase) -> Pair:
    noun = pick(draw, pool("parent sibling dog cat"))
    german = f"{_PRONOUNS[head.gender][GENITIVE]} {noun.german[NOMINATIVE]}"
    subject = Phrase(f"whose {noun.english}", german, 2, noun.gender, True, False, noun)
    if noun.kind == "animal":
        verb = pick(draw, _verbs_with_subject("animal"))
        return subordinate(clause(draw, verb, RELATING, subject, adverbials=0.5), "", "")
    verb = pick(draw, _verbs_with_subject("person"))
    return subordinate(clause(draw, verb, RELATING, subject, adverbials=0.5), "", "")


def _home(draw: Draw, head: Phrase) -> Pair:
    live = next(verb for verb in verbs_of("place") if verb.english == "live")
    built = clause(draw, live, RELATING, _somebody(draw, head), gap=True, adverbials=0.5, negation=0.0)
    return subordinate(built, "in which", f"in {_PRONOUNS[head.gender][DATIVE]}")


@cache
def _verbs_with_object(noun: Noun) -> tuple[Verb, ...]:
    return tuple(
        verb
        for verb in verbs()
        if verb.frame in ("accusative", "give", "put")
        and (noun.kind in verb.objects.split() or noun in pool(verb.objects))
        and verb.subject == "person"
    )


@cache
def _verbs_with_subject(kind: str) -> tuple[Verb, ...]:
    return tuple(verb for verb in verbs() if kind in verb.subject.split())


@cache
def _dative_verbs() -> tuple[Verb, ...]:
    return tuple(verb for verb in verbs_of("dative") if verb.subject == "person" and not verb.preposition)


def with_relative(draw: Draw, head: Phrase) -> Phrase:
    """``head`` with a clause about it, closed by a comma in German."""
    english, german = relative(draw, head)
    return head._replace(english=f"{head.english} {english}", german=f"{head.german}, {german},")
