"""The nouns with all their forms, read from the tables of ``noun_tables``, and compounds made of them."""

from __future__ import annotations

from functools import cache

from transduce.data.corpus.adjectives import adjectives
from transduce.data.corpus.inflection import (
    FEMININE,
    MASCULINE,
    NEUTER,
    Noun,
    english_plural,
    german_noun_forms,
)
from transduce.data.corpus.noun_tables import TABLES

_GENDERS = {"der": MASCULINE, "die": FEMININE, "das": NEUTER}

# First part of a compound: English, and German with its link. The second part is one of the nouns above.
_COMPOUND_FIRST = {
    "kitchen": "Küchen",
    "garden": "Garten",
    "cellar": "Keller",
    "school": "Schul",
    "hotel": "Hotel",
    "office": "Büro",
}
_COMPOUND_SECOND = ("door", "window", "key", "lamp", "table", "chair")


@cache
def lexicon() -> dict[str, tuple[Noun, ...]]:
    """All nouns by kind; compounds stand with the kind of their second part."""
    nouns = {kind: [_noun(kind, line) for line in table.split(";")] for kind, (_, table) in TABLES.items()}
    for kind in nouns.values():
        heads = [noun for noun in kind if noun.english in _COMPOUND_SECOND]
        kind.extend(_compound(first, head) for first in _COMPOUND_FIRST for head in heads)
    return {kind: tuple(members) for kind, members in nouns.items()}


@cache
def pool(names: str) -> tuple[Noun, ...]:
    """The nouns of the kinds and the single nouns that ``names`` lists, apart by spaces."""
    every = lexicon()
    single = {noun.english: noun for members in every.values() for noun in members}
    found: list[Noun] = []
    for name in names.split():
        found.extend(every[name] if name in every else (single[name.replace("_", " ")],))
    return tuple(found)


def _noun(kind: str, line: str) -> Noun:
    left, german = line.strip().split(" = ")
    english, *extra = left.split(" +")
    singular, _, plural = english.partition("/")
    article, nominative, genitive, *german_plural = german.split()
    gender = _GENDERS[article]
    return Noun(
        singular,
        plural or english_plural(singular),
        gender,
        german_noun_forms(gender, nominative, genitive, german_plural[0] if german_plural else ""),
        "person" if kind in ("parent", "sibling") else kind,
        adjectives(" ".join([TABLES[kind][0], *extra])),
    )


def _compound(first: str, head: Noun) -> Noun:
    return Noun(
        f"{first} {head.english}",
        f"{first} {head.plural}",
        head.gender,
        tuple(_COMPOUND_FIRST[first] + form.lower() for form in head.german),
        head.kind,
        head.adjectives,
    )
