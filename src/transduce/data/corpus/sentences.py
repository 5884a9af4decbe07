"""Kinds of sentences, each a function from a source of randomness to (English, German, end mark)."""

from __future__ import annotations

from collections.abc import Callable

from transduce.data.corpus.clauses import clause, inverted, statement, subordinate, time_first
from transduce.data.corpus.phrases import Draw, pick
from transduce.data.corpus.verbs import verbs

Sentence = tuple[str, str, str]


def plain(draw: Draw) -> Sentence:
    """A main clause."""
    built = clause(draw, pick(draw, verbs()))
    return (*(time_first(built) if draw() < 0.4 else statement(built)), ".")


def reported(draw: Draw) -> Sentence:
    """A clause after *that*."""
    english, german = subordinate(clause(draw, pick(draw, verbs())), "that", "dass")
    return f"he knows {english}", f"er weiß, {german}", "."


def question(draw: Draw) -> Sentence:
    """A question for yes or no."""
    return (*inverted(clause(draw, pick(draw, verbs()))), "?")


KINDS: tuple[tuple[Callable[[Draw], Sentence], int], ...] = ((plain, 50), (reported, 25), (question, 25))
