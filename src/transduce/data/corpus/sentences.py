"""The kinds of sentences, each a function from a source of randomness to (English, German, end mark)."""

from __future__ import annotations

from collections.abc import Callable

from transduce.data.corpus.clauses import NOTHING, Clause, clause
from transduce.data.corpus.compound_sentences import (
    about_object,
    about_subject,
    adverbial,
    intention,
    joined,
    purpose,
    reported,
    wondered,
)
from transduce.data.corpus.copula import being, weather
from transduce.data.corpus.determiners import PEOPLE
from transduce.data.corpus.facts import FACTS
from transduce.data.corpus.inflection import NOMINATIVE
from transduce.data.corpus.nouns import pool
from transduce.data.corpus.phrases import PRONOUNS, Draw, Phrase, pick, pronoun, random_noun_phrase
from transduce.data.corpus.places import location
from transduce.data.corpus.questions import WHO, asked, yes_or_no
from transduce.data.corpus.tenses import FUTURE, PAST, PROGRESSIVE, TELLING
from transduce.data.corpus.verbs import doing, verbs
from transduce.data.corpus.word_order import command, front, question, statement

Sentence = tuple[str, str, str]


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


def order(draw: Draw) -> Sentence:
    """A command or a request to a friend."""
    built = clause(draw, pick(draw, doing()), (FUTURE,), pronoun(PRONOUNS[1], NOMINATIVE), adverbials=0.6)
    english, german = command(built)
    if (
        draw() < 0.4 or " " not in english
    ) and not built.negated:  # a word alone is no sentence to learn from
        return f"please {english}", f"bitte {german}", "!"
    return english, german, "!"


def fact(draw: Draw) -> Sentence:
    """A price, an age, a date, a time of day, what there is."""
    return pick(draw, FACTS)(draw)


# How often each kind comes, in percent.
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
