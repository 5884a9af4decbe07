"""The verbs with all their forms in both languages, read from the tables of ``verb_tables``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from transduce.data.corpus import verb_tables
from transduce.data.corpus.inflection import (
    ACCUSATIVE,
    DATIVE,
    english_past,
    english_progressive,
    english_third,
    german_imperative,
    german_present,
    german_preterite,
)

TENSES = (
    "progressive simple past perfect future pluperfect likes can must must_not want would_like should allowed "
    "have_to could had_to wanted was_allowed"
).split()
(
    PROGRESSIVE,
    SIMPLE,
    PAST,
    PERFECT,
    FUTURE,
    PLUPERFECT,
    LIKES,
    CAN,
    MUST,
    MUST_NOT,
    WANT,
    WOULD_LIKE,
    SHOULD,
    ALLOWED,
    HAVE_TO,
    COULD,
    HAD_TO,
    WANTED,
    WAS_ALLOWED,
) = range(len(TENSES))

_HABEN = "habe hast hat haben haben".split()
_HATTE = "hatte hattest hatte hatten hatten".split()
_SEIN = "bin bist ist sind sind".split()
_WAR = "war warst war waren waren".split()
_WERDEN = "werde wirst wird werden werden".split()
_AM = "am are is are are".split()
_HAVE = "have have has have have".split()
_WAS = "was were was were were".split()

# English before the infinitive by person (ich, du, er, wir, sie), whether its first word is an auxiliary, German.
_MODALS: tuple[tuple[tuple[str, ...], bool, str], ...] = (
    (("can",) * 5, True, "kann kannst kann können können"),
    (("must",) * 5, True, "muss musst muss müssen müssen"),
    (("must",) * 5, True, "darf darfst darf dürfen dürfen"),
    (("want to", "want to", "wants to", "want to", "want to"), False, "will willst will wollen wollen"),
    (("would like to",) * 5, True, "möchte möchtest möchte möchten möchten"),
    (("should",) * 5, True, "sollte solltest sollte sollten sollten"),
    (tuple(f"{form} allowed to" for form in _AM), True, "darf darfst darf dürfen dürfen"),
    (("have to", "have to", "has to", "have to", "have to"), False, "muss musst muss müssen müssen"),
    (("could",) * 5, True, "konnte konntest konnte konnten konnten"),
    (("had to",) * 5, False, "musste musstest musste mussten mussten"),
    (("wanted to",) * 5, False, "wollte wolltest wollte wollten wollten"),
    (tuple(f"{form} allowed to" for form in _WAS), True, "durfte durftest durfte durften durften"),
)


class Form(NamedTuple):
    """A verb in one tense and person.

    English: ``plain`` in a statement, ``auxiliary`` and ``rest`` where *do* or another auxiliary is needed.
    German: ``finite`` second in a main clause and ``right`` at its end; ``final`` at the end of a subordinate one.
    """

    plain: str
    auxiliary: str
    rest: str
    finite: str
    right: str
    final: str


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb: its forms by tense and person, and what may stand with it."""

    english: str
    particle: str
    preposition: str
    german: str
    with_zu: str
    command: tuple[str, str]
    reflexive: bool
    governs: str
    case: int
    frame: str
    objects: str
    subject: str
    options: frozenset[str]
    places: str
    forms: tuple[tuple[Form, ...], ...]


@cache
def verbs() -> tuple[Verb, ...]:
    """All verbs that stand in a clause of their own, but for *to be* and the weather."""
    frames = ("intransitive", "accusative", "dative", "give", "prepositional", "place", "direction", "put")
    return tuple(verb for frame in frames for verb in verbs_of(frame))


@cache
def verbs_of(frame: str) -> tuple[Verb, ...]:
    """The verbs of one table of ``verb_tables``."""
    return tuple(_verb(frame, line) for line in getattr(verb_tables, frame.upper()).strip().splitlines())


@cache
def be() -> tuple[tuple[Form, ...], ...]:
    """The forms of *to be*, without perfect."""
    forms = _tenses(
        _English("be", "was", "been", "being", "are"), _German("sein", tuple(_SEIN), "gewesen", "", True)
    )
    simple = tuple(Form(e, e, "", g, "", g) for e, g in zip(_AM, _SEIN, strict=True))
    past = tuple(Form(e, e, "", g, "", g) for e, g in zip(_WAS, _WAR, strict=True))
    return (simple, simple, past, *forms[3:])


@dataclass(frozen=True, slots=True)
class _English:
    base: str
    past: str
    participle: str
    progressive: str
    third: str


@dataclass(frozen=True, slots=True)
class _German:
    infinitive: str
    present: tuple[str, ...]
    participle: str
    prefix: str
    takes_sein: bool
    preterite: str = ""


def _verb(frame: str, line: str) -> Verb:
    english_side, german_side = line.split(" = ")
    german_side, _, rest = german_side.partition(" :")
    objects, _, options = rest.partition(";")
    english, particle, preposition = _read_english(english_side)
    german, reflexive, command = _read_german(german_side)
    governs, case, objects = _governed(frame, objects.strip())
    flags = options.split()
    subject = [flag[1:] for flag in flags if flag.startswith("<")]
    zu = f"{german.prefix}zu{german.infinitive}" if german.prefix else f"zu {german.infinitive}"
    return Verb(
        english.base,
        particle,
        preposition,
        german.prefix + german.infinitive,
        zu,
        command,
        reflexive,
        governs,
        case,
        frame,
        objects,
        subject[0].replace(",", " ") if subject else "person",
        frozenset(flag for flag in flags if flag[0] not in "<@"),
        "".join(flag[1:] for flag in flags if flag.startswith("@")),
        _tenses(english, german),
    )


def _governed(frame: str, objects: str) -> tuple[str, int, str]:
    """The German preposition, the case that verb or preposition asks for, and the objects."""
    if frame != "prepositional":
        return "", DATIVE if frame == "dative" else ACCUSATIVE, objects
    governs, case, objects = objects.split(" ", 2)
    return governs, DATIVE if case == "D" else ACCUSATIVE, objects


def _read_english(side: str) -> tuple[_English, str, str]:
    first, *irregular = side.split()
    first, _, preposition = first.partition("~")
    first, _, particle = first.partition("+")
    base, _, tail = first.replace("_", " ").partition(" ")
    tail = f" {tail}" if tail else ""
    past = irregular[0] if irregular else english_past(base)
    participle = irregular[1] if irregular else past
    progressive = irregular[2] if len(irregular) > 2 else english_progressive(base)
    forms = (base, past, participle, progressive, english_third(base))
    return _English(*(form + tail for form in forms)), particle, preposition


def _read_german(side: str) -> tuple[_German, bool, tuple[str, str]]:
    words = side.split()
    reflexive = words[0] == "sich"
    words = words[1:] if reflexive else words
    preterite = words.pop()[1:] if words[-1].startswith("~") else ""
    takes_sein = words[-1] == "sein"
    words = words[:-1] if takes_sein else words
    prefix, _, infinitive = words[0].rpartition("-")
    changed = words[1].partition("/") if len(words) == 3 else None
    present = german_present(infinitive, (changed[0], changed[2]) if changed else None)
    command = (german_imperative(infinitive, present[1]), prefix)
    return _German(infinitive, present, words[-1], prefix, takes_sein, preterite), reflexive, command


def _tenses(english: _English, german: _German) -> tuple[tuple[Form, ...], ...]:
    infinitive = german.prefix + german.infinitive
    helper, past_helper = (_SEIN, _WAR) if german.takes_sein else (_HABEN, _HATTE)
    present = [(finite, german.prefix, german.prefix + finite) for finite in german.present]
    perfect = [(finite, german.participle, f"{german.participle} {finite}") for finite in helper]
    past = [(f, "", f) for f in german_preterite(german.preterite)] if german.preterite else perfect
    pluperfect = [(finite, german.participle, f"{german.participle} {finite}") for finite in past_helper]
    future = [(finite, infinitive, f"{infinitive} {finite}") for finite in _WERDEN]
    simple = [english.third if person == 2 else english.base for person in range(5)]
    do = ["does" if person == 2 else "do" for person in range(5)]
    likes = [("likes to " if person == 2 else "like to ") + english.base for person in range(5)]
    tenses = [
        [Form(f"{_AM[p]} {english.progressive}", _AM[p], english.progressive, *present[p]) for p in range(5)],
        [Form(simple[p], do[p], english.base, *present[p]) for p in range(5)],
        [Form(english.past, "did", english.base, *past[p]) for p in range(5)],
        [
            Form(f"{_HAVE[p]} {english.participle}", _HAVE[p], english.participle, *perfect[p])
            for p in range(5)
        ],
        [Form(f"will {english.base}", "will", english.base, *future[p]) for p in range(5)],
        [Form(f"had {english.participle}", "had", english.participle, *pluperfect[p]) for p in range(5)],
        [Form(likes[p], do[p], f"like to {english.base}", *present[p]) for p in range(5)],
    ]
    tenses.extend(
        _modal(words, auxiliary, finite.split(), english.base, infinitive)
        for words, auxiliary, finite in _MODALS
    )
    return tuple(tuple(forms) for forms in tenses)


def _modal(
    words: tuple[str, ...], auxiliary: bool, finite: list[str], base: str, infinitive: str
) -> list[Form]:
    forms = []
    for person in range(5):
        plain = f"{words[person]} {base}"
        if auxiliary:
            first, _, rest = plain.partition(" ")
        else:
            past = words[0] in ("had to", "wanted to")
            first = "did" if past else "does" if person == 2 else "do"
            rest = f"{'have to' if words[0].startswith('ha') else 'want to'} {base}"
        forms.append(Form(plain, first, rest, finite[person], infinitive, f"{infinitive} {finite[person]}"))
    return forms
