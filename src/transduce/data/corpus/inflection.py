"""German and English inflection: articles, adjective endings, nouns and verbs, as tables of finished forms.

Everything is spelled out once, when the lexicon is built, so that making a sentence is only looking up.
"""

from __future__ import annotations

from dataclasses import dataclass


def words(text: str) -> tuple[str, ...]:
    """The words of ``text``: a table in one line."""
    return tuple(text.split())


NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
MASCULINE, FEMININE, NEUTER, PLURAL = range(4)
# Persons as verbs see them. The plural "ihr" and the polite "Sie" are left out: English "you" is always "du".
ICH, DU, ER, WIR, SIE = range(5)

# Adjective endings by 4 * gender + case (nominative, accusative, dative, genitive; m, f, n, plural).
WEAK = words("e en en en e e en en e e en en en en en en")
MIXED = words("er en en en e e en en es es en en en en en en")
STRONG = words("er en em en e e er er es es em en e e en er")

_DER = words("der den dem des die die der der das das dem des die die den der")
_DIESER_ENDINGS = words("er en em es e e er er es es em es e e en er")
_EIN_ENDINGS = ["", "en", "em", "es", "e", "e", "er", "er", "", "", "em", "es", "e", "e", "en", "er"]


@dataclass(frozen=True, slots=True)
class Determiner:
    """An article or its like; every string ends with the space that follows it, or is empty.

    ``forms`` and ``endings`` (of an adjective after it) are indexed by ``4 * gender + case``. ``singular``
    and ``plural`` are the English words; ``None`` where that number is impossible.
    """

    singular: str | None
    plural: str | None
    forms: tuple[str, ...]
    endings: tuple[str, ...]
    definite: bool


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective in three degrees: English words, German stems that take an ending, predicative forms."""

    english: tuple[str, str, str]
    stems: tuple[str, str, str]
    predicative: tuple[str, str, str]
    gradable: bool


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun with all its forms; ``german`` is indexed by ``4 * (is plural) + case``."""

    english: str
    plural: str
    gender: int
    german: tuple[str, ...]
    kind: str
    adjectives: tuple[Adjective, ...]

    @property
    def substance(self) -> bool:
        """Whether it cannot be counted: no plural, no indefinite article."""
        return self.kind in ("dish", "drink")


def der(english: str = "the ") -> Determiner:
    """The definite article."""
    return Determiner(english, english, tuple(f"{form} " for form in _DER), WEAK, True)


def like_dieser(stem: str, singular: str | None, plural: str | None) -> Determiner:
    """A determiner that declines like *dieser*."""
    return Determiner(singular, plural, tuple(f"{stem}{e} " for e in _DIESER_ENDINGS), WEAK, True)


def like_ein(stem: str, english: str) -> Determiner:
    """A possessive: it declines like *ein* (in the plural like *meine*)."""
    return Determiner(english, english, tuple(f"{stem}{e} " for e in _EIN_ENDINGS), MIXED, True)


def negated_indefinite() -> Determiner:
    """*kein*, for English *not ... a* and *not ... any*."""
    return Determiner("a ", "any ", tuple(f"kein{e} " for e in _EIN_ENDINGS), MIXED, False)


def indefinite() -> Determiner:
    """*a* and *ein*; nothing before a plural or a substance, in both languages."""
    forms = tuple(f"ein{e} " for e in _EIN_ENDINGS[:12]) + ("",) * 4
    return Determiner("a ", "", forms, MIXED[:12] + STRONG[12:], False)


def unchanging(word: str, english: str) -> Determiner:
    """A numeral before a plural noun: it has no ending and the adjective after it has strong ones."""
    return Determiner(None, f"{english} ", (f"{word} ",) * 16, STRONG, False)


def bare(english: str = "") -> Determiner:
    """No article at all before a singular (*hot coffee*, *Annas altes Auto*): strong endings."""
    return Determiner(english, english, ("",) * 16, STRONG, False)


def several(stem: str, english: str) -> Determiner:
    """*many* and *viele*: plural only, strong endings on both words."""
    return Determiner(None, english, tuple(f"{stem}{e} " for e in STRONG), STRONG, False)


def article_before(word: str) -> str:
    """*a* or *an*, by the sound that ``word`` begins with."""
    vowel = word[0] in "aeiou" and not word.startswith(("uni", "eu", "one"))
    return "an" if vowel or word.startswith(("hour", "honest")) else "a"


def english_plural(word: str) -> str:
    """The regular plural of an English noun."""
    if word.endswith(("s", "sh", "ch", "x")):
        return f"{word}es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}s"


def german_noun_forms(gender: int, singular: str, genitive: str, plural: str) -> tuple[str, ...]:
    """The eight case forms. A masculine with a genitive in -n is weak: every case but the first takes it."""
    weak = gender == MASCULINE and genitive.endswith("n")
    oblique = genitive if weak else singular
    dative_plural = f"{plural}n" if plural and not plural.endswith(("n", "s")) else plural
    return (singular, oblique, oblique, genitive, plural, plural, dative_plural, plural)


def german_present(infinitive: str, changed: tuple[str, str] | None) -> tuple[str, ...]:
    """The forms for ich, du, er, wir, sie; ``changed`` gives du and er where the vowel changes."""
    stem = infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]
    first = f"{stem[:-2]}le" if infinitive.endswith("eln") else f"{stem}e"
    if changed:
        first = changed[1] if infinitive == "wissen" else first
        return (first, *changed, infinitive, infinitive)
    link = "e" if needs_link(stem) else ""
    second = "t" if stem.endswith(("s", "ß", "z", "x")) else f"{link}st"
    return (first, f"{stem}{second}", f"{stem}{link}t", infinitive, infinitive)


def german_preterite(first: str) -> tuple[str, ...]:
    """The past of a verb that tells it with one word, from its form for ich: *hatte*, *wohnte*."""
    return (first, f"{first}st", first, f"{first}n", f"{first}n")


def german_imperative(infinitive: str, du: str, weak: bool) -> str:
    """The command to one friend: *lies*, *fahr*, *kaufe*. Weak verbs take the -e that strong ones drop."""
    stem = infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]
    vowel = [letter for letter in stem if letter in "aeiouäöü"][-1]
    if vowel == "e" and not du.startswith(stem):
        return du[:-1] if stem.endswith("s") else du[:-2]
    if infinitive.endswith("eln"):
        return f"{stem[:-2]}le"
    return f"{stem}e" if weak or needs_link(stem) else stem


def needs_link(stem: str) -> bool:
    """Whether an e stands between ``stem`` and a t or st: *arbeitet*, *öffnet*, but *lernt*, *kommt*."""
    if stem.endswith(("t", "d")):
        return True
    silent_h = stem[-2] == "h" and stem[-3] != "c"
    return stem.endswith(("n", "m")) and stem[-2] not in "aeiouäöürlmn" and not silent_h


def english_third(base: str) -> str:
    """The form after *he*: *goes*, *carries*."""
    if base == "have":
        return "has"
    if base.endswith("o"):
        return f"{base}es"
    return english_plural(base)


def english_past(base: str) -> str:
    """The regular past."""
    if base.endswith("e"):
        return f"{base}d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return f"{base[:-1]}ied"
    return f"{base}ed"


def english_progressive(base: str) -> str:
    """The regular -ing form (doubled letters and *lying* are given in the lexicon)."""
    return f"{base[:-1]}ing" if base.endswith("e") and not base.endswith("ee") else f"{base}ing"
