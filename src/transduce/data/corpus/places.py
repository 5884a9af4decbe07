"""Where things are and where people go: prepositions that suit each place, with their case."""

from __future__ import annotations

from functools import cache

from transduce.data.corpus.determiners import PLACES, POSSESSIVES
from transduce.data.corpus.inflection import ACCUSATIVE, DATIVE, FEMININE, Determiner, Noun
from transduce.data.corpus.nouns import pool
from transduce.data.corpus.phrases import Draw, after_preposition, pick, random_noun_phrase

Pair = tuple[str, str]

_INSIDE = (
    "kitchen office room bathroom cellar house school hotel restaurant library museum hospital church theatre"
)
_INSIDE += " cinema shop castle factory garden park forest city village"
_WHERE = (
    ("in", "in", _INSIDE),
    ("in", "in", _INSIDE),
    ("at", "an", "station airport university lake river"),
    ("on", "auf", "street bridge island mountain"),
    ("at", "auf", "market"),
    ("on", "an", "beach"),
    ("behind", "hinter", "house school hotel church castle factory"),
    ("in front of", "vor", "house school hotel museum cinema theatre"),
)
_SURFACE = (
    ("on", "auf", "table chair sofa bed"),
    ("under", "unter", "table chair sofa bed"),
    ("in", "in", "bag box basket cupboard suitcase"),
    ("next to", "neben", "lamp telephone computer"),
    ("behind", "hinter", "door sofa cupboard"),
)
_TO = (("to", "zu", "building garden park market beach lake river doctor baker"),)
# English preposition, German preposition, places; all with the dative, but for "onto" and "into".
_TABLES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "where": _WHERE,
    "work": (
        ("in", "in", "garden office shop factory hotel library school kitchen"),
        ("at", "an", "university station"),
    ),
    "desk": (
        ("in", "in", "library garden kitchen office train park cellar"),
        ("at", "an", "lake river station"),
    ),
    "meal": (("in", "in", "kitchen restaurant garden hotel"), ("at", "an", "lake station")),
    "trade": (("in", "in", "shop city village"), ("at", "auf", "market"), ("at", "an", "station airport")),
    "party": (
        ("in", "in", "garden kitchen hotel theatre castle park"),
        ("on", "an", "beach"),
        ("on", "auf", "street"),
    ),
    "water": (("in", "in", "lake river"),),
    "room": (
        ("in", "in", "kitchen office room bathroom cellar house garden library"),
        ("behind", "hinter", "door house"),
    ),
    "home": (
        ("in", "in", "city village house flat hotel castle"),
        ("on", "auf", "island"),
        ("at", "an", "lake river"),
        ("next to", "neben", "school church park museum"),
    ),
    "seat": (
        ("on", "auf", "chair sofa bed"),
        ("in", "in", "garden park library restaurant cinema kitchen car bus train"),
        ("under", "unter", "bridge"),
        ("next to", "neben", "door window"),
    ),
    "ground": (
        ("on", "auf", "bridge street mountain"),
        ("in front of", "vor", "door house shop mirror"),
        ("behind", "hinter", "door house car"),
        ("next to", "neben", "window car bicycle"),
    ),
    "surface": _SURFACE,
    "onto": _SURFACE,
    "to": _TO,
    "into": (("into", "in", _INSIDE),),
}
_OWN = {"where": "garden kitchen office room house flat", "desk": "garden room", "home": "house flat"}
_FIXED: dict[str, tuple[Pair, ...]] = {
    "where": (("here", "hier"), ("there", "dort"), ("outside", "draußen"), ("at home", "zu Hause")),
    "desk": (("at home", "zu Hause"), ("outside", "draußen")),
    "meal": (("at home", "zu Hause"), ("outside", "draußen")),
    "work": (("at home", "zu Hause"), ("here", "hier")),
    "home": (("here", "hier"), ("there", "dort")),
}
TOWNS = ("Berlin", "Hamburg", "Munich/München", "Cologne/Köln", "Vienna/Wien", "Zurich/Zürich")
COUNTRIES = ("Germany/Deutschland", "Austria/Österreich", "Italy/Italien", "France/Frankreich")


@cache
def towns(countries: bool = True) -> tuple[Pair, ...]:
    """The towns and countries that have no article."""
    names = TOWNS + COUNTRIES if countries else TOWNS
    return tuple((name.partition("/")[0], name.partition("/")[2] or name) for name in names)


@cache
def vehicles() -> tuple[Pair, ...]:
    """How to travel: (*by train*, *mit dem Zug*)."""
    return tuple(
        (f"by {noun.english}", f"mit {'der' if noun.gender == FEMININE else 'dem'} {noun.german[DATIVE]}")
        for noun in pool("bus train car bicycle ship tram")
    )


@cache
def _ways(name: str) -> tuple[tuple[str, str, int, tuple[Noun, ...], tuple[Determiner, ...]], ...]:
    case = ACCUSATIVE if name in ("onto", "into") else DATIVE
    found = [(english, german, case, pool(nouns), PLACES) for english, german, nouns in _TABLES[name]]
    if name in _OWN:
        found.append(("in", "in", case, pool(_OWN[name]), POSSESSIVES))
    return tuple(found)


def location(draw: Draw, name: str) -> Pair:
    """A place phrase of one table: (*in the old garden*, *im alten Garten*)."""
    if name in _FIXED and draw() < 0.15:
        return pick(draw, _FIXED[name])
    english, german, case, nouns, determiners = pick(draw, _ways(name))
    phrase = random_noun_phrase(draw, nouns, determiners, case, adjectives=0.12, plurals=0.0)
    return f"{english} {phrase.english}", after_preposition(german, phrase.german)


def destination(draw: Draw, kinds: tuple[str, ...]) -> Pair:
    """Where to: home, a town or country (*nach Berlin*), or a place (*zum Bahnhof*, *in den Garten*)."""
    kind = pick(draw, kinds)
    if kind == "home":
        return "home", "nach Hause"
    if kind == "town":
        english, german = pick(draw, towns())
        return f"to {english}", f"nach {german}"
    return location(draw, kind)
