"""The kinds of sentences, each a function from a source of randomness to (English, German, end mark)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from transduce.data.corpus.clauses import NOTHING, Clause, clause
from transduce.data.corpus.copula import being, weather
from transduce.data.corpus.determiners import NOT_A, PEOPLE
from transduce.data.corpus.facts import FACTS
from transduce.data.corpus.inflection import NOMINATIVE
from transduce.data.corpus.nouns import pool
from transduce.data.corpus.phrases import PRONOUNS, Draw, Phrase, pick, pronoun, random_noun_phrase
from transduce.data.corpus.places import location
from transduce.data.corpus.questions import WHO, asked, yes_or_no
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
from transduce.data.corpus.verbs import Verb, verbs, verbs_of
from transduce.data.corpus.word_order import (
    after_clause,
    command,
    front,
    infinitive,
    question,
    statement,
    subordinate,
)

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


def plain(draw: Draw) -> Sentence:
    """A main clause, sometimes with the time or the place in front."""
    chance = draw()
    if chance < 0.06:
        built = clause(draw, pick(draw, doing()), subject=_placed(draw), adverbials=0.5, negation=0.0)
        built.place = NOTHING
        return (*statement(built), ".")
    built = clause(draw, pick(draw, verbs()))
    _perhaps_front(draw, built)
    return (*statement(built), ".")


def quality(draw: Draw) -> Sentence:
    """A main clause with *to be*, or about the weather."""
    built = weather(draw, TELLING) if draw() < 0.1 else being(draw)
    _perhaps_front(draw, built)
    return (*statement(built), ".")


def _perhaps_front(draw: Draw, built: Clause) -> None:
    chance = draw()
    if chance < 0.35:
        front(built, "time")
    elif chance < 0.5:
        front(built, "place")


def _placed(draw: Draw) -> Phrase:
    """Somebody described by where they are: *the man in the garden*."""
    head = random_noun_phrase(draw, pool("person"), PEOPLE, NOMINATIVE, 0.2)
    place = location(draw, "room")
    return head._replace(english=f"{head.english} {place[0]}", german=f"{head.german} {place[1]}")


def yes_no(draw: Draw) -> Sentence:
    """A question for yes or no."""
    if draw() < 0.12:
        return (*question(being(draw, (PROGRESSIVE, PAST), negation=0.0)), "?")
    return (*question(yes_or_no(draw)), "?")


def wh_question(draw: Draw) -> Sentence:
    """A question with a question word."""
    built, english, german = asked(draw)
    if built.subject is WHO:
        return (*statement(built), "?")
    return (*question(built, english, german), "?")


@cache
def doing() -> tuple[Verb, ...]:
    """What persons do: the verbs that can stand in any tense and be tried, promised or ordered."""
    return tuple(
        verb
        for verb in verbs()
        if verb.subject.startswith("person") and not (verb.state or verb.habit or verb.event)
    )


def any_clause(draw: Draw, tenses: tuple[int, ...], adverbials: float = 0.5) -> Clause:
    """A clause of any sort for a longer sentence."""
    chance = draw()
    if chance < 0.1 and PLUPERFECT not in tenses:
        return being(draw, tenses)
    if chance < 0.16 and PLUPERFECT not in tenses:
        return weather(draw, tenses)
    return clause(draw, pick(draw, doing() if len(set(tenses)) < 4 else verbs()), tenses, adverbials=adverbials)


def reported(draw: Draw) -> Sentence:
    """What somebody says, knows or hopes: *dass*."""
    tense = pick(draw, (SIMPLE, SIMPLE, PAST))
    verb = pick(draw, verbs_of("that"))
    past = verb.event or tense == PAST
    main = clause(draw, verb, (PAST,) if past else (SIMPLE,), adverbials=0.0, negation=0.15)
    main.time, main.middle = NOTHING, ""
    inner = any_clause(draw, ONLY_PAST if past else ANY)
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
    if draw() < 0.45:
        inner = subordinate(any_clause(draw, ANY), "whether", "ob")
    else:
        inner = subordinate(*asked(draw))
    return _chain(question(main) if you else statement(main), inner, "?" if you else ".")


def _chain(first: tuple[str, str], second: tuple[str, str], end: str) -> Sentence:
    return f"{first[0]} {second[0]}", f"{first[1]}, {second[1]}", end


def adverbial(draw: Draw) -> Sentence:
    """Two clauses joined by a conjunction that sends the German verb to the end; either may come first."""
    english, german, main_tenses, inner_tenses = pick(draw, _CONJUNCTIONS)
    main = any_clause(draw, main_tenses, 0.4)
    inner = any_clause(draw, inner_tenses, 0.4)
    while inner.subject.english == main.subject.english and not main.subject.pronoun:
        inner = any_clause(draw, inner_tenses, 0.4)
    pair = subordinate(inner, english, german)
    if german == "als" or draw() < 0.45:
        return (*after_clause(main, *pair), ".")
    return _chain(statement(main), pair, ".")


def about_subject(draw: Draw) -> Sentence:
    """A relative clause inside the main clause, about its subject."""
    if draw() < 0.5:
        head = random_noun_phrase(draw, pool("person"), PEOPLE, NOMINATIVE, 0.2)
        verb = pick(draw, doing())
        return (*statement(clause(draw, verb, TELLING, with_relative(draw, head), adverbials=0.6)), ".")
    head = random_noun_phrase(draw, pool(_DESCRIBED), PEOPLE, NOMINATIVE, 0.1)
    return (*statement(being(draw, (PROGRESSIVE, PAST), with_relative(draw, head))), ".")


_DESCRIBED = "person animal thing clothes reading vehicle furniture building room event thought"


def about_object(draw: Draw) -> Sentence:
    """A relative clause at the end, about the object: in German the verbs of the main clause come before it."""
    while True:
        main = clause(draw, pick(draw, _with_object()), TELLING, adverbials=0.6, negation=0.0)
        head = main.object
        if head is not None and head.noun is not None and not head.noun.substance:
            break
    front(main, "time")
    main.time = main.place = NOTHING
    main.manner = ""
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
    inner = _infinitive(draw, main)
    return _chain(statement(main), infinitive(inner), ".")


def purpose(draw: Draw) -> Sentence:
    """Somebody goes somewhere to do something: *um ... zu*."""
    verb = pick(draw, verbs_of("direction"))
    main = clause(draw, verb, TELLING, adverbials=0.3, negation=0.0)
    front(main, "time")
    inner = _infinitive(draw, main)
    return _chain(statement(main), infinitive(inner, "um"), ".")


def _infinitive(draw: Draw, main: Clause) -> Clause:
    inner = clause(draw, pick(draw, doing()), (FUTURE,), main.subject, adverbials=0.5, negation=0.0)
    inner.time = NOTHING
    return inner


def order(draw: Draw) -> Sentence:
    """A command or a request to a friend."""
    built = clause(draw, pick(draw, doing()), (FUTURE,), pronoun(PRONOUNS[1], NOMINATIVE), adverbials=0.6)
    english, german = command(built)
    if draw() < 0.4 and not built.negated:
        return f"please {english}", f"bitte {german}", "!"
    return english, german, "!"


def joined(draw: Draw) -> Sentence:
    """Two main clauses joined by *und* or *aber*."""
    tenses = pick(draw, (NOT_PAST, ONLY_PAST))
    first = statement(any_clause(draw, tenses, 0.4))
    second = statement(any_clause(draw, tenses, 0.4))
    english, german = pick(draw, ((", and ", " und "), (", but ", ", aber ")))
    return first[0] + english + second[0], first[1] + german + second[1], "."


def fact(draw: Draw) -> Sentence:
    """A price, an age, a date, a time of day, what there is."""
    return pick(draw, FACTS)(draw)


KINDS: tuple[tuple[Callable[[Draw], Sentence], int], ...] = (
    (plain, 32),
    (quality, 9),
    (yes_no, 7),
    (wh_question, 8),
    (reported, 7),
    (wondered, 5),
    (adverbial, 9),
    (about_subject, 4),
    (about_object, 4),
    (intention, 4),
    (purpose, 2),
    (order, 3),
    (joined, 2),
    (fact, 4),
)
assert NOT_A
