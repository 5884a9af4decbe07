"""What a question asks for: a clause with its gap, and the question word that opens it in both languages."""

from __future__ import annotations

from functools import cache

from transduce.data.corpus.clauses import NOTHING, Clause, clause
from transduce.data.corpus.determiners import HOW_MANY, PEOPLE, WHICH
from transduce.data.corpus.inflection import ACCUSATIVE, ER, ICH, MASCULINE, NOMINATIVE
from transduce.data.corpus.nouns import pool
from transduce.data.corpus.phrases import Draw, Phrase, pick, random_noun_phrase, somebody
from transduce.data.corpus.tenses import ANY, ASKING_WHEN, LIKES, PERFECT, WAS_ABLE
from transduce.data.corpus.verbs import Verb, prepositional_verbs, verbs, verbs_of

Asked = tuple[Clause, str, str]
WHO = Phrase("who", "wer", ER, MASCULINE, True, False, None)
_TENSES = tuple(tense for tense in ANY if tense not in (LIKES, PERFECT) and tense <= WAS_ABLE)


def yes_or_no(draw: Draw) -> Clause:
    """A clause to be asked about as a whole; nobody asks what he is doing himself."""
    while True:
        built = clause(draw, pick(draw, verbs()), negation=0.05)
        if built.subject.person != ICH or built.form.auxiliary in ("can", "must", "should"):
            return built


def asked(draw: Draw) -> Asked:
    """A clause with the question words (English, German) before it; *who* is the subject of its clause."""
    return pick(draw, _KINDS)(draw)


def _subject(draw: Draw) -> Phrase:
    found = somebody(draw, NOMINATIVE, PEOPLE, pronouns=0.45)
    return found if found.person != ICH else _subject(draw)


def _who(draw: Draw) -> Asked:
    verb = pick(draw, _ordinary())
    return clause(draw, verb, _TENSES, WHO, adverbials=0.7), "", ""


def _what(draw: Draw) -> Asked:
    verb = pick(draw, verbs_of("accusative"))
    built = clause(draw, verb, _TENSES, _subject(draw), gap=True, adverbials=0.7, negation=0.05)
    asks_person = verb.objects == "person" or (verb.objects.startswith("person") and draw() < 0.5)
    return (built, "whom", "wen") if asks_person else (built, "what", "was")


def _to_whom(draw: Draw) -> Asked:
    verb = pick(draw, tuple(verb for verb in verbs_of("dative") if verb.subject == "person"))
    return clause(draw, verb, _TENSES, _subject(draw), gap=True, adverbials=0.7, negation=0.05), "whom", "wem"


def _with_whom(draw: Draw) -> Asked:
    verb = pick(draw, prepositional_verbs())
    built = clause(draw, verb, _TENSES, _subject(draw), gap=True, adverbials=0.7, negation=0.05)
    word = "wen" if verb.case == ACCUSATIVE else "wem"
    return built, f"{verb.preposition} whom", f"{verb.governs} {word}"


def _which(draw: Draw) -> Asked:
    verb = pick(draw, tuple(verb for verb in verbs_of("accusative") if verb.objects != "person"))
    built = clause(draw, verb, _TENSES, _subject(draw), gap=True, adverbials=0.7, negation=0.05)
    counted = draw() < 0.4
    nouns = tuple(noun for noun in pool(verb.things) if not noun.substance) or pool("thing")
    if not any(not noun.substance for noun in pool(verb.things)):
        return built, "what", "was"
    found = random_noun_phrase(draw, nouns, (HOW_MANY if counted else WHICH,), ACCUSATIVE, 0.2)
    return built, found.english, found.german


def _where(draw: Draw) -> Asked:
    verb = pick(draw, _located())
    gap = verb.frame in ("place", "direction")
    built = clause(draw, verb, _TENSES, _subject(draw), gap=gap, adverbials=0.7, negation=0.0)
    built.place = NOTHING
    return built, "where", "wohin" if verb.frame == "direction" else "wo"


def _when_or_why(draw: Draw) -> Asked:
    why = draw() < 0.5
    built = clause(
        draw, pick(draw, _ordinary()), ASKING_WHEN, _subject(draw), adverbials=0.6, negation=0.1 * why
    )
    if why:
        return built, "why", "warum"
    built.time, built.middle = NOTHING, ""
    return built, "when", "wann"


_KINDS = (_who, _who, _what, _what, _to_whom, _with_whom, _which, _which, _where, _where, *[_when_or_why] * 3)


@cache
def _ordinary() -> tuple[Verb, ...]:
    return tuple(verb for verb in verbs() if verb.subject.startswith("person") and not verb.state)


@cache
def _located() -> tuple[Verb, ...]:
    found = tuple(verb for verb in verbs() if verb.subject.startswith("person") and verb.places)
    far = tuple(verb for verb in verbs_of("place") + verbs_of("direction") if verb.subject == "person")
    return found + far + far
