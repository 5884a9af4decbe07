"""The verbs with all their forms in both languages, read from the tables of ``verb_tables``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from transduce.data.corpus import verb_tables
from transduce.data.corpus.inflection import (
    ACCUSATIVE,
    DATIVE,
    english_past,
    english_progressive,
    english_third,
    german_imperative,
    german_present,
)
from transduce.data.corpus.tenses import (
    FUTURE,
    LIKES,
    PAST,
    PERFECT,
    PLUPERFECT,
    PROGRESSIVE,
    SIMPLE,
    English,
    Form,
    German,
    conjugate,
)

FRAMES = ("intransitive", "accusative", "dative", "give", "prepositional", "place", "direction", "put")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Verb:
    """A verb: its forms by tense and person, and what may stand with it.

    ``particle`` follows an English object, ``preposition`` comes before it; ``governs`` and ``case`` are the
    German counterpart. ``command`` is the imperative and what ends the sentence. ``objects`` are kinds of
    nouns or of places, ``things`` the objects without persons; ``verb_tables`` explains the rest.
    """

    frame: str
    english: str
    particle: str
    preposition: str
    german: str
    with_zu: str
    command: tuple[str, str]
    reflexive: bool
    governs: str
    case: int
    objects: str
    things: str
    kinds: tuple[str, ...]
    subject: str
    places: str
    manner: str
    habit: bool
    state: bool
    event: bool
    same: bool
    span: str
    forms: tuple[tuple[Form, ...], ...]


@cache
def verbs() -> tuple[Verb, ...]:
    """The verbs that make a clause of their own."""
    return tuple(verb for frame in FRAMES for verb in verbs_of(frame))


@cache
def verbs_of(frame: str) -> tuple[Verb, ...]:
    """The verbs of one table of ``verb_tables``."""
    return tuple(_verb(frame, line) for line in getattr(verb_tables, frame.upper()).strip().splitlines())


@cache
def doing() -> tuple[Verb, ...]:
    """What persons do: the verbs that can stand in any tense and be tried, promised or ordered."""
    return tuple(
        verb
        for verb in verbs()
        if verb.subject.startswith("person") and not (verb.state or verb.habit or verb.event)
    )


@cache
def prepositional_verbs() -> tuple[Verb, ...]:
    """Those whose preposition may stand before *whom*: *with whom is she dancing?*, but not *look after*."""
    return tuple(
        verb
        for verb in verbs_of("prepositional")
        if verb.preposition
        and not verb.particle
        and " " not in verb.english
        and verb.english != "look"
        and verb.objects.startswith("person")
    )


@cache
def tenses_of(verb: Verb, allowed: tuple[int, ...]) -> tuple[int, ...]:
    """Those of ``allowed`` that ``verb`` can stand in, as often as they are there; if none, the present."""
    found = allowed
    if verb.habit or verb.state:
        found = tuple(SIMPLE if tense == PROGRESSIVE else tense for tense in found)
    if verb.state:
        found = tuple(tense for tense in found if tense in (SIMPLE, PAST))
    if verb.habit:
        found = tuple(tense for tense in found if tense != LIKES)
    if verb.event:
        found = tuple(tense for tense in found if tense in (PAST, PERFECT, SIMPLE, FUTURE, PLUPERFECT))
    if verb.same:
        found = tuple(tense for tense in found if tense != SIMPLE)
    if "person" not in verb.subject:
        found = tuple(tense for tense in found if tense <= PLUPERFECT)
    return found or ((PROGRESSIVE,) if verb.same else (SIMPLE,))


def _verb(frame: str, line: str) -> Verb:
    english_side, german_side = line.split(" = ")
    german_side, _, rest = german_side.partition(" :")
    objects, _, options = rest.partition(";")
    english, particle, preposition = _read_english(english_side)
    german, reflexive = _read_german(german_side)
    governs, case, objects = _governed(frame, objects.strip())
    flags = options.split()
    marked = {flag[0]: flag[1:].replace(",", " ") for flag in flags if flag[0] in "<@"}
    known = ("habit", "state", "event", "same")
    return Verb(
        frame=frame,
        english=english.base,
        particle=particle,
        preposition=preposition,
        german=german.prefix + german.infinitive,
        with_zu=f"{german.prefix}zu{german.infinitive}" if german.prefix else f"zu {german.infinitive}",
        command=(_command(german), german.prefix),
        reflexive=reflexive,
        governs=governs,
        case=case,
        objects=objects,
        things=objects.removeprefix("person "),
        kinds=tuple(kind for kind in objects.split() if kind != "by"),
        subject=marked.get("<", "person"),
        places=marked.get("@", ""),
        manner="".join(flag for flag in flags if flag not in (*known, "hour") and flag[0] not in "<@"),
        span=next((flag for flag in flags if flag in ("hour", "state")), ""),
        forms=conjugate(english, german),
        **{flag: flag in flags for flag in known},
    )


def _command(german: German) -> str:
    return german_imperative(german.infinitive, german.present[1], german.participle.endswith("t"))


def _governed(frame: str, objects: str) -> tuple[str, int, str]:
    """The German preposition, the case that verb or preposition asks for, and the objects."""
    if frame != "prepositional":
        return "", DATIVE if frame == "dative" else ACCUSATIVE, objects
    governs, case, objects = objects.split(" ", 2)
    return governs, DATIVE if case == "D" else ACCUSATIVE, objects


def _read_english(side: str) -> tuple[English, str, str]:
    first, *irregular = side.split()
    first, _, preposition = first.partition("~")
    first, _, particle = first.partition("+")
    base, _, tail = first.replace("_", " ").partition(" ")
    tail = f" {tail}" if tail else ""
    past = irregular[0] if irregular else english_past(base)
    participle = irregular[1] if len(irregular) > 1 else past
    progressive = irregular[2] if len(irregular) > 2 else english_progressive(base)
    forms = (base, past, participle, progressive, english_third(base))
    return English(*(form + tail for form in forms)), particle, preposition


def _read_german(side: str) -> tuple[German, bool]:
    words = side.split()
    reflexive = words[0] == "sich"
    words = words[1:] if reflexive else words
    preterite = words.pop()[1:] if words[-1].startswith("~") else ""
    takes_sein = words[-1] == "sein"
    words = words[:-1] if takes_sein else words
    prefix, _, infinitive = words[0].rpartition("-")
    du, _, er = words[1].partition("/") if len(words) == 3 else ("", "", "")
    present = german_present(infinitive, (du, er) if du else None)
    return German(infinitive, present, words[-1], prefix, takes_sein, preterite), reflexive
