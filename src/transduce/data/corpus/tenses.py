"""The tenses and modal verbs of the corpus, and the forms of any verb in each of them, in both languages."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from transduce.data.corpus.inflection import german_preterite, words
from transduce.data.corpus.times import Choice, time_choices

# How often each stands in an ordinary clause. Pluperfect and "must not" only come where they are asked for.
_WEIGHTS = {
    "progressive": 20,
    "simple": 14,
    "past": 24,
    "perfect": 7,
    "future": 8,
    "pluperfect": 0,
    "likes": 3,
    "can": 4,
    "must": 4,
    "must_not": 0,
    "want": 4,
    "would_like": 2,
    "should": 3,
    "allowed": 2,
    "have_to": 0,
    "was_able": 2,
    "had_to": 2,
    "wanted": 2,
    "was_allowed": 1,
}
TENSES = tuple(_WEIGHTS)
PROGRESSIVE, SIMPLE, PAST, PERFECT, FUTURE, PLUPERFECT, LIKES = range(7)
CAN, MUST, MUST_NOT, WANT, WOULD_LIKE, SHOULD, ALLOWED, HAVE_TO = range(7, 15)
WAS_ABLE, HAD_TO, WANTED, WAS_ALLOWED = range(15, 19)

ANY = tuple(TENSES.index(name) for name, weight in _WEIGHTS.items() for _ in range(weight))
NOT_PAST = tuple(tense for tense in ANY if tense not in (PAST, PERFECT) and tense < WAS_ABLE)
ONLY_PAST = tuple(tense for tense in ANY if tense == PAST or tense >= WAS_ABLE)
TELLING = (PROGRESSIVE, PROGRESSIVE, SIMPLE, PAST, PAST, PERFECT, FUTURE)
RELATING = (PROGRESSIVE, PROGRESSIVE, PAST, PAST, PERFECT)
ASKING_WHEN = (PROGRESSIVE, PAST, PAST, FUTURE, CAN, MUST, WANT, SHOULD)

_HABEN = words("habe hast hat haben haben")
_HATTE = words("hatte hattest hatte hatten hatten")
_SEIN = words("bin bist ist sind sind")
_WAR = words("war warst war waren waren")
_WERDEN = words("werde wirst wird werden werden")
_AM = words("am are is are are")
_HAVE = words("have have has have have")
_WAS = words("was were was were were")

# English before the infinitive by person (ich, du, er, wir, sie), how it asks and denies, German.
_MODALS: tuple[tuple[str, str, str], ...] = (
    ("can", "", "kann kannst kann können können"),
    ("must", "", "muss musst muss müssen müssen"),
    ("must", "", "darf darfst darf dürfen dürfen"),
    (
        "want to,want to,wants to,want to,want to",
        "do,do,does,do,do want to",
        "will willst will wollen wollen",
    ),
    ("would like to", "", "möchte möchtest möchte möchten möchten"),
    ("should", "", "sollte solltest sollte sollten sollten"),
    (",".join(f"{form} allowed to" for form in _AM), "", "darf darfst darf dürfen dürfen"),
    ("have to,have to,has to,have to,have to", "do,do,does,do,do have to", "muss musst muss müssen müssen"),
    (",".join(f"{form} able to" for form in _WAS), "", "konnte konntest konnte konnten konnten"),
    ("had to", "did have to", "musste musstest musste mussten mussten"),
    ("wanted to", "did want to", "wollte wolltest wollte wollten wollten"),
    (",".join(f"{form} allowed to" for form in _WAS), "", "durfte durftest durfte durften durften"),
)


class Form(NamedTuple):
    """A verb in one tense and person.

    English: ``plain`` in a statement; ``auxiliary`` and ``rest`` where it asks or denies. German: ``finite``
    is second in a main clause and ``right`` ends it; ``final`` ends a subordinate clause.
    """

    plain: str
    auxiliary: str
    rest: str
    finite: str
    right: str
    final: str


class English(NamedTuple):
    """The five forms of an English verb; each may end with words that never change (*get to know*)."""

    base: str
    past: str
    participle: str
    progressive: str
    third: str


class German(NamedTuple):
    """What the forms of a German verb are made of; ``present`` is for ich, du, er, wir, sie."""

    infinitive: str
    present: tuple[str, ...]
    participle: str
    prefix: str
    takes_sein: bool
    preterite: str


def conjugate(english: English, german: German) -> tuple[tuple[Form, ...], ...]:
    """The forms by tense and person."""
    infinitive = german.prefix + german.infinitive
    helper, past_helper = (_SEIN, _WAR) if german.takes_sein else (_HABEN, _HATTE)
    present = [(finite, german.prefix, german.prefix + finite) for finite in german.present]
    perfect = [(finite, german.participle, f"{german.participle} {finite}") for finite in helper]
    pluperfect = [(finite, german.participle, f"{german.participle} {finite}") for finite in past_helper]
    past = [(f, "", f) for f in german_preterite(german.preterite)] if german.preterite else perfect
    future = [(finite, infinitive, f"{infinitive} {finite}") for finite in _WERDEN]
    base, like = english.base, f"like to {english.base}"
    simple = [base, base, english.third, base, base]
    do = words("do do does do do")
    people = range(5)
    likes = [like, like, f"likes to {base}", like, like]
    tenses = [
        [Form(f"{_AM[p]} {english.progressive}", _AM[p], english.progressive, *present[p]) for p in people],
        [Form(simple[p], do[p], base, *present[p]) for p in people],
        [Form(english.past, "did", base, *past[p]) for p in people],
        [Form(f"{_HAVE[p]} {english.participle}", _HAVE[p], english.participle, *perfect[p]) for p in people],
        [Form(f"will {base}", "will", base, *future[p]) for p in people],
        [Form(f"had {english.participle}", "had", english.participle, *pluperfect[p]) for p in people],
        [Form(likes[p], do[p], like, *present[p]) for p in people],
        *[_modal(words, asks, finite.split(), base, infinitive) for words, asks, finite in _MODALS],
    ]
    return tuple(tuple(forms) for forms in tenses)


def _modal(words: str, asks: str, finite: list[str], base: str, infinitive: str) -> list[Form]:
    plain = words.split(",") * (1 if "," in words else 5)
    auxiliaries, _, rest = asks.partition(" ")
    helpers = auxiliaries.split(",") * (1 if "," in asks else 5)
    forms = []
    for person in range(5):
        first, _, following = f"{plain[person]} {base}".partition(" ")
        if asks:
            first, following = helpers[person], f"{rest} {base}"
        german = (finite[person], infinitive, f"{infinitive} {finite[person]}")
        forms.append(Form(f"{plain[person]} {base}", first, following, *german))
    return forms


@cache
def be() -> tuple[tuple[Form, ...], ...]:
    """The forms of *to be*; present and past have no second part, and the perfect is not used."""
    forms = conjugate(
        English("be", "was", "been", "being", "is"), German("sein", tuple(_SEIN), "gewesen", "", True, "war")
    )
    present = tuple(Form(e, e, "", g, "", g) for e, g in zip(_AM, _SEIN, strict=True))
    past = tuple(Form(e, e, "", g, "", g) for e, g in zip(_WAS, _WAR, strict=True))
    return (present, present, past, *forms[3:])


@cache
def times_for(tense: int, span: str) -> Choice:
    """The time phrases that go with a tense; ``span`` is ``hour`` for short ones, ``state`` for long ones."""
    kind = "future"
    if tense == PROGRESSIVE:
        kind = "present"
    elif tense in (SIMPLE, LIKES):
        kind = "habit" if tense == SIMPLE else "liking"
    elif tense in ONLY_PAST or tense == PLUPERFECT:
        kind = "past"
    return time_choices()[f"{kind} {span}".rstrip()]
