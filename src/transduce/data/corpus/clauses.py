"""A clause in both languages, kept in parts so that each kind of sentence can order them as it needs."""

from __future__ import annotations

from transduce.data.corpus.determiners import DEFINITE, NEGATED, OBJECTS, PEOPLE, SUBJECTS
from transduce.data.corpus.inflection import DATIVE, NOMINATIVE
from transduce.data.corpus.nouns import pool
from transduce.data.corpus.phrases import (
    REFLEXIVE,
    Draw,
    Phrase,
    after_preposition,
    pick,
    possession,
    random_noun_phrase,
    somebody,
)
from transduce.data.corpus.places import destination, location, vehicles
from transduce.data.corpus.tenses import ANY, HAVE_TO, LIKES, MUST, MUST_NOT, PERFECT, SIMPLE, Form, times_for
from transduce.data.corpus.times import FREQUENCY
from transduce.data.corpus.verbs import Verb, tenses_of

_MANNERS = {
    "move": (("quickly", "schnell"), ("slowly", "langsam")),
    "care": (("carefully", "vorsichtig"), ("slowly", "langsam"), ("quickly", "schnell")),
    "voice": (("loudly", "laut"), ("quietly", "leise")),
    "busy": (("diligently", "fleißig"), ("alone", "allein")),
    "calm": (("quietly", "leise"), ("alone", "allein")),
    "glad": (("happily", "fröhlich"), ("alone", "allein")),
}
NOTHING = ("", "")


class Clause:
    """The parts of a clause, as pairs (English, German) where both languages have them.

    German order within a clause: ``reflexive``, ``before`` (pronouns, definite objects), time, ``after`` (a
    definite object beside a receiver, *nicht*, manner), place, ``last`` (indefinite objects, what belongs to
    the verb).
    English order: ``complement``, manner, place, time. ``front`` takes the time or the place out of its slot.
    """

    __slots__ = (
        *("subject", "verb", "form", "negated", "kein", "object"),
        *("complement", "manner", "middle"),
        *("reflexive", "before", "after", "last"),
        *("time", "place", "front"),
    )

    def __init__(self, subject: Phrase, form: Form, negated: bool, verb: Verb | None = None) -> None:
        self.subject = subject
        self.form = form
        self.negated = negated
        self.kein = False  # the object says it: no *nicht*
        self.verb = verb
        self.object: Phrase | None = None
        self.middle = self.complement = self.manner = ""
        self.before = self.after = self.last = self.reflexive = ""
        self.time = self.place = self.front = NOTHING


def clause(
    draw: Draw,
    verb: Verb,
    tenses: tuple[int, ...] = ANY,
    subject: Phrase | None = None,
    *,
    gap: bool = False,
    adverbials: float = 1.0,
    negation: float = 0.12,
) -> Clause:
    """A clause with ``verb`` in one of ``tenses``.

    With ``gap`` its object is left out, for it stands in front already. ``adverbials`` scales how often time,
    place and manner are told; ``negation`` is the share of negated clauses.
    """
    tense = pick(draw, tenses_of(verb, tenses))
    negated = draw() < negation and tense != LIKES
    if negated and tense == MUST:
        tense = MUST_NOT if draw() < 0.5 else HAVE_TO
    if subject is None:
        subject = subject_of(draw, verb, negated)
    built = Clause(subject, verb.forms[tense][subject.person], negated, verb)
    if verb.reflexive:
        built.reflexive = REFLEXIVE[subject.person]
    german_manner = "gern" if tense == LIKES else ""
    if not negated and adverbials:
        if verb.places and draw() < 0.3 * adverbials:
            built.place = location(draw, verb.places)
        if verb.manner and not german_manner and draw() < 0.25 * adverbials:
            built.manner, german_manner = pick(draw, _MANNERS[verb.manner])
    built.after = german_manner
    _add_time(draw, built, verb, tense, adverbials)
    _ADD[verb.frame](draw, built, verb, gap)
    if negated and not built.kein:
        built.after = "nicht"
    return built


def subject_of(draw: Draw, verb: Verb, negated: bool) -> Phrase:
    """A subject that the verb can have."""
    if verb.subject == "person" or (verb.subject.startswith("person") and draw() < 0.6):
        return somebody(draw, NOMINATIVE, DEFINITE if negated else PEOPLE)
    if verb.subject == "it":
        return IT
    if verb.subject == "sun":
        return SUN
    nouns = pool(verb.subject.removeprefix("person "))
    if draw() < 0.1:
        return possession(draw, nouns, NOMINATIVE)
    return random_noun_phrase(draw, nouns, DEFINITE if negated else SUBJECTS, NOMINATIVE)


IT = Phrase("it", "es", 2, 2, True, True, None)
SUN = Phrase("the sun", "die Sonne", 2, 1, True, False, None)


def _add_time(draw: Draw, built: Clause, verb: Verb, tense: int, share: float) -> None:
    chance = draw()
    if tense == PERFECT:
        if built.negated:
            built.middle, built.time = "yet", ("", "noch")
        elif chance < 0.6:
            built.middle, built.time = "already", ("", "schon")
    elif verb.state and tense == SIMPLE:
        return
    elif tense == SIMPLE and chance < 0.5:
        if not built.negated:
            built.middle, german = pick(draw, FREQUENCY)
            built.time = "", german
    elif chance < 0.5 * share:
        built.time = pick(draw, pick(draw, times_for(tense, verb.span)))


def _object(draw: Draw, built: Clause, verb: Verb) -> Phrase:
    """An object that the verb can have and that is not its own subject."""
    determiners = OBJECTS
    if built.negated:
        determiners = NEGATED if verb.frame in ("accusative", "give", "put") else DEFINITE
    subject = built.subject
    while True:
        chance = draw()
        if verb.objects.startswith("person") and chance < (1.0 if verb.objects == "person" else 0.5):
            found = somebody(draw, verb.case, DEFINITE if built.negated else PEOPLE, subject, 0.25)
        elif chance > 0.92:
            found = possession(draw, pool(verb.things), verb.case)
        else:
            found = random_noun_phrase(draw, pool(verb.things), determiners, verb.case)
            built.object = found
        if found.english != subject.english and (found.noun is None or found.noun is not subject.noun):
            return found


def _add_nothing(draw: Draw, built: Clause, verb: Verb, gap: bool) -> None:
    built.complement = verb.particle


def _add_object(draw: Draw, built: Clause, verb: Verb, gap: bool) -> None:
    if gap:
        built.complement = verb.particle or verb.preposition
        return
    found = _object(draw, built, verb)
    if verb.particle:
        order = (found.english, verb.particle) if found.pronoun else (verb.particle, found.english)
        built.complement = f"{order[0]} {order[1]}"
    else:
        built.complement = f"{verb.preposition} {found.english}" if verb.preposition else found.english
    _place_object(built, found)


def _place_object(built: Clause, found: Phrase) -> None:
    if found.definite:
        built.before = found.german
    else:
        built.last = found.german
        if built.manner:  # "slowly open a window" would be read otherwise in German
            built.manner = built.after = ""
        built.kein = found.german.startswith("kein")


def _add_gift(draw: Draw, built: Clause, verb: Verb, gap: bool) -> None:
    receiver = somebody(draw, DATIVE, DEFINITE, built.subject)
    while receiver.english == built.subject.english:
        receiver = somebody(draw, DATIVE, DEFINITE, built.subject)
    built.before = receiver.german
    if gap:
        built.complement = f"to {receiver.english}"
        return
    found = _object(draw, built, verb)
    while receiver.german == "ihr" and found.german.startswith("ihr"):
        found = _object(draw, built, verb)
    explains = verb.english == "explain"
    built.complement = (
        f"{found.english} to {receiver.english}" if explains else f"{receiver.english} {found.english}"
    )
    if not found.definite:
        _place_object(built, found)
    elif built.negated:
        built.before = f"{receiver.german} {found.german}"
    else:
        built.after = f"{found.german} {built.after}" if built.after else found.german


def _add_prepositional(draw: Draw, built: Clause, verb: Verb, gap: bool) -> None:
    particle = f"{verb.particle} {verb.preposition}" if verb.particle else verb.preposition
    if gap:
        return
    found = _object(draw, built, verb)
    built.complement = f"{particle} {found.english}" if particle else found.english
    built.last = after_preposition(verb.governs, found.german)


def _add_location(draw: Draw, built: Clause, verb: Verb, gap: bool) -> None:
    if not gap:
        built.complement, built.last = location(draw, verb.objects)


def _add_destination(draw: Draw, built: Clause, verb: Verb, gap: bool) -> None:
    if not gap:
        built.complement, built.last = destination(draw, verb.kinds)
    if "by" in verb.objects and draw() < 0.4:
        by, mit = pick(draw, vehicles())
        built.complement = f"{built.complement} {by}" if built.complement else by
        built.last = f"{mit} {built.last}" if built.last else mit


def _add_put(draw: Draw, built: Clause, verb: Verb, gap: bool) -> None:
    _add_object(draw, built, verb, gap)
    english, german = location(draw, "onto")
    built.complement = f"{built.complement} {english}" if built.complement else english
    built.last = f"{built.last} {german}" if built.last else german


_ADD = {
    "intransitive": _add_nothing,
    "weather": _add_nothing,
    "that": _add_nothing,
    "whether": _add_nothing,
    "infinitive": _add_nothing,
    "accusative": _add_object,
    "dative": _add_object,
    "give": _add_gift,
    "prepositional": _add_prepositional,
    "place": _add_location,
    "direction": _add_destination,
    "put": _add_put,
}
