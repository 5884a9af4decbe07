"""Sentences of more than one clause: reported, causal, conditional and relative ones, and infinitives."""

from __future__ import annotations

from functools import cache

from transduce.data.corpus.clauses import NOTHING, Clause, clause
from transduce.data.corpus.copula import being, feeling, weather
from transduce.data.corpus.determiners import HEADS
from transduce.data.corpus.inflection import NOMINATIVE
from transduce.data.corpus.nouns import pool
from transduce.data.corpus.phrases import PRONOUNS, Draw, pick, pronoun, random_noun_phrase
from transduce.data.corpus.questions import asked
from transduce.data.corpus.relatives import relative, with_relative
from transduce.data.corpus.tenses import (
    ANY,
    CAN,
    FUTURE,
    MUST,
    NOT_PAST,
    ONLY_PAST,
    PAST,
    PLUPERFECT,
    PROGRESSIVE,
    SIMPLE,
    TELLING,
    WANT,
)
from transduce.data.corpus.verbs import Verb, doing, verbs, verbs_of
from transduce.data.corpus.word_order import after_clause, front, infinitive, question, statement, subordinate

Sentence = tuple[str, str, str]

# English and German conjunction, tenses of the main clause, tenses of the subordinate one.
_NOW = (PROGRESSIVE,)
_CONJUNCTIONS: tuple[tuple[str, str, tuple[int, ...], tuple[int, ...]], ...] = (
    ("because", "weil", NOT_PAST, NOT_PAST),
    ("because", "weil", ONLY_PAST, ONLY_PAST),
    ("because", "weil", ONLY_PAST, ONLY_PAST),
    ("although", "obwohl", NOT_PAST, NOT_PAST),
    ("although", "obwohl", ONLY_PAST, ONLY_PAST),
    ("if", "wenn", (FUTURE, FUTURE, CAN, MUST), (PROGRESSIVE, SIMPLE)),
    ("if", "wenn", (FUTURE, FUTURE, CAN, MUST), (PROGRESSIVE, SIMPLE)),
    ("while", "während", _NOW, _NOW),
    ("before", "bevor", (PAST,), (PAST,)),
    ("after", "nachdem", (PAST,), (PLUPERFECT,)),
    ("when", "als", (PAST,), (PAST,)),
)
_POSITIVE = ("während", "bevor", "nachdem")


def _main(draw: Draw, tenses: tuple[int, ...], negation: float = 0.12) -> Clause:
    """The main clause of a longer sentence."""
    return clause(draw, pick(draw, doing()), tenses, adverbials=0.4, negation=negation)


def _inner(draw: Draw, tenses: tuple[int, ...], negation: float = 0.12) -> Clause:
    """The subordinate clause of a longer sentence, which may also tell a feeling or the weather."""
    chance = draw()
    if chance < 0.2 and negation:
        return feeling(draw, tenses) if chance < 0.13 else weather(draw, tenses)
    suitable = doing() if len(set(tenses)) < 4 else verbs()
    return clause(draw, pick(draw, suitable), tenses, adverbials=0.4, negation=negation)


def reported(draw: Draw) -> Sentence:
    """What somebody says, knows or hopes: *dass*."""
    tense = pick(draw, (SIMPLE, SIMPLE, PAST))
    verb = pick(draw, verbs_of("that"))
    past = verb.event or tense == PAST
    denied = 0.0 if verb.english in ("know", "hear") else 0.15
    main = clause(draw, verb, (PAST,) if past else (SIMPLE,), adverbials=0.0, negation=denied)
    main.time, main.middle = NOTHING, ""
    tenses = ONLY_PAST if past else ANY
    inner = being(draw, tenses) if draw() < 0.1 else _inner(draw, tenses)
    return _chain(statement(main), subordinate(inner, "that", "dass"), ".")


def wondered(draw: Draw) -> Sentence:
    """What somebody asks or wants to know: *ob* or a question word."""
    verb = pick(draw, verbs_of("whether"))
    tenses = (SIMPLE, WANT) if verb.english == "know" else (PROGRESSIVE, PROGRESSIVE, PAST)
    you = verb.english == "know" and draw() < 0.3
    subject = pronoun(PRONOUNS[1], NOMINATIVE) if you else None
    main = clause(
        draw, verb, (SIMPLE,) if you else tenses, subject, adverbials=0.0, negation=0.0 if you else 0.3
    )
    main.time, main.middle = NOTHING, ""
    inner = subordinate(*((_inner(draw, ANY), "whether", "ob") if draw() < 0.45 else asked(draw)))
    return _chain(question(main) if you else statement(main), inner, "?" if you else ".")


def _chain(first: tuple[str, str], second: tuple[str, str], end: str) -> Sentence:
    return f"{first[0]} {second[0]}", f"{first[1]}, {second[1]}", end


def adverbial(draw: Draw) -> Sentence:
    """Two clauses joined by a conjunction that sends the German verb to the end; either may come first."""
    english, german, main_tenses, inner_tenses = pick(draw, _CONJUNCTIONS)
    negation = 0.0 if german in _POSITIVE else 0.12
    main = _main(draw, main_tenses, negation)
    inner = _inner(draw, inner_tenses, negation)
    while inner.subject.english == main.subject.english and not main.subject.pronoun:
        inner = _inner(draw, inner_tenses, negation)
    if german == "wenn":
        inner.middle, inner.time = "", NOTHING
    pair = subordinate(inner, english, german)
    if german == "als" or draw() < 0.45:
        return (*after_clause(main, *pair), ".")
    return _chain(statement(main), pair, ".")


def about_subject(draw: Draw) -> Sentence:
    """A relative clause inside the main clause, about its subject."""
    if draw() < 0.5:
        head = random_noun_phrase(draw, pool("person"), HEADS, NOMINATIVE, 0.2)
        verb = pick(draw, doing())
        built = clause(draw, verb, TELLING, with_relative(draw, head), adverbials=0.6, negation=0.0)
        return (*statement(built), ".")
    head = random_noun_phrase(draw, pool(_DESCRIBED), HEADS, NOMINATIVE, 0.1)
    return (*statement(being(draw, (PROGRESSIVE, PAST), with_relative(draw, head), 0.0)), ".")


_DESCRIBED = "person animal thing clothes reading vehicle furniture building room event thought"


def about_object(draw: Draw) -> Sentence:
    """A relative clause at the end, about the object: the German verbs of the main clause come before it."""
    while True:
        main = clause(draw, pick(draw, _with_object()), TELLING, adverbials=0.6, negation=0.0)
        head = main.object
        if head is not None and head.noun is not None and not head.noun.substance and not head.pronoun:
            break
    front(main, "time")
    main.time = main.place = NOTHING
    main.middle = ""
    return _chain(statement(main), relative(draw, head), ".")


@cache
def _with_object() -> tuple[Verb, ...]:
    frames = ("accusative", "dative", "prepositional", "give")
    return tuple(
        verb
        for verb in verbs()
        if verb.frame in frames and not verb.manner and verb.subject == "person" and verb.english != "explain"
    )


def intention(draw: Draw) -> Sentence:
    """An infinitive with *zu* after a verb of trying, hoping, forgetting."""
    verb = pick(draw, verbs_of("infinitive"))
    main = clause(draw, verb, TELLING, adverbials=0.0, negation=0.0)
    main.time, main.middle = NOTHING, ""
    inner = _infinitive(draw, main, doing())
    return _chain(statement(main), infinitive(inner), ".")


def purpose(draw: Draw) -> Sentence:
    """Somebody goes somewhere to do something: *um ... zu*."""
    verb = pick(draw, verbs_of("direction"))
    main = clause(draw, verb, TELLING, adverbials=0.3, negation=0.0)
    front(main, "time")
    inner = _infinitive(draw, main, _errands())
    return _chain(statement(main), infinitive(inner, "um"), ".")


@cache
def _errands() -> tuple[Verb, ...]:
    """What somebody may go somewhere for: none of the verbs of thinking and feeling."""
    return tuple(
        verb
        for verb in doing()
        if verb.frame in ("accusative", "dative")
        or (verb.frame == "prepositional" and verb.places)
        or verb.english in ("work", "swim", "dance", "rest")
    )


def _infinitive(draw: Draw, main: Clause, suitable: tuple[Verb, ...]) -> Clause:
    inner = clause(draw, pick(draw, suitable), (FUTURE,), main.subject, adverbials=0.5, negation=0.0)
    inner.time = NOTHING
    return inner


def joined(draw: Draw) -> Sentence:
    """Two main clauses joined by *und* or *aber*."""
    tenses = pick(draw, (NOT_PAST, ONLY_PAST))
    first = statement(_inner(draw, tenses))
    second = statement(_inner(draw, tenses))
    english, german = pick(draw, ((", and ", " und "), (", but ", ", aber ")))
    return first[0] + english + second[0], first[1] + german + second[1], "."
