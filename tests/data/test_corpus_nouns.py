"""Articles, adjectives, nouns, pronouns and prepositions of the embedded corpus, looked up by hand."""

import re

import pytest

from transduce.data.corpus import inflection
from transduce.data.corpus.adjectives import adjectives
from transduce.data.corpus.determiners import BARE, MANY, NOT_A, NOT_ANY, POSSESSIVES, THE, THIS, A, numeral
from transduce.data.corpus.inflection import ACCUSATIVE, DATIVE, GENITIVE, NOMINATIVE
from transduce.data.corpus.nouns import lexicon
from transduce.data.corpus.phrases import PRONOUNS, after_preposition, noun_phrase, pronoun
from transduce.data.corpus.relatives import _PRONOUNS as RELATIVES
from transduce.data.corpus.verbs import verbs

CASES = (NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE)
MY = POSSESSIVES[0]


def by_english(english):
    return next(noun for members in lexicon().values() for noun in members if noun.english == english)


def phrase(english, determiner, case, plural=False, adjective=None, degree=0):
    chosen = adjectives(adjective)[0] if adjective else None
    return noun_phrase(by_english(english), determiner, case, plural, chosen, degree)


@pytest.mark.parametrize(
    ("english", "determiner", "plural", "expected"),
    [
        ("man", THE, False, "der alte Mann, den alten Mann, dem alten Mann, des alten Mannes"),
        ("woman", THE, False, "die alte Frau, die alte Frau, der alten Frau, der alten Frau"),
        ("child", THE, False, "das alte Kind, das alte Kind, dem alten Kind, des alten Kindes"),
        ("child", THE, True, "die alten Kinder, die alten Kinder, den alten Kindern, der alten Kinder"),
        ("man", A, False, "ein alter Mann, einen alten Mann, einem alten Mann, eines alten Mannes"),
        ("woman", A, False, "eine alte Frau, eine alte Frau, einer alten Frau, einer alten Frau"),
        ("child", A, False, "ein altes Kind, ein altes Kind, einem alten Kind, eines alten Kindes"),
        ("child", A, True, "alte Kinder, alte Kinder, alten Kindern, alter Kinder"),
        ("dog", NOT_A, False, "kein alter Hund, keinen alten Hund, keinem alten Hund, keines alten Hundes"),
        ("dog", NOT_A, True, "keine alten Hunde, keine alten Hunde, keinen alten Hunden, keiner alten Hunde"),
        ("dog", MY, True, "meine alten Hunde, meine alten Hunde, meinen alten Hunden, meiner alten Hunde"),
        ("house", THIS, False, "dieses alte Haus, dieses alte Haus, diesem alten Haus, dieses alten Hauses"),
        ("house", MANY, True, "viele alte Häuser, viele alte Häuser, "
         "vielen alten Häusern, vieler alter Häuser"),
        ("house", numeral(3), True, "drei alte Häuser, drei alte Häuser, "
         "drei alten Häusern, drei alter Häuser"),
        ("student", THE, False, "der alte Student, den alten Studenten, "
         "dem alten Studenten, des alten Studenten"),
        ("boy", A, False, "ein alter Junge, einen alten Jungen, einem alten Jungen, eines alten Jungen"),
        ("garden chair", THE, False, "der alte Gartenstuhl, den alten Gartenstuhl, dem alten Gartenstuhl, "
         "des alten Gartenstuhls"),
    ],
)  # fmt: skip
def test_article_adjective_and_noun_agree_in_every_case(english, determiner, plural, expected):
    found = [phrase(english, determiner, case, plural, "old").german for case in CASES]
    assert ", ".join(found) == expected


@pytest.mark.parametrize(
    ("english", "determiner", "adjective", "degree", "expected"),
    [
        ("coffee", BARE, "hot", 0, ("hot coffee", "heißen Kaffee")),
        ("milk", BARE, "cold", 0, ("cold milk", "kalte Milch")),
        ("water", NOT_ANY, "fresh", 0, ("any fresh water", "kein frisches Wasser")),
        ("coat", A, "expensive", 0, ("an expensive coat", "einen teuren Mantel")),
        ("coat", A, "expensive", 1, ("a more expensive coat", "einen teureren Mantel")),
        ("tower", THE, "high", 0, ("the high tower", "den hohen Turm")),
        ("tower", THE, "high", 2, ("the highest tower", "den höchsten Turm")),
        ("room", A, "dark", 0, ("a dark room", "ein dunkles Zimmer")),
        ("girl", A, "tired", 0, ("a tired girl", "ein müdes Mädchen")),
        ("apple", THE, "good", 2, ("the best apple", "den besten Apfel")),
        ("egg", A, None, 0, ("an egg", "ein Ei")),
        ("university", A, None, 0, ("a university", "eine Universität")),
    ],
)
def test_adjectives_change_their_stem_and_english_its_article(
    english, determiner, adjective, degree, expected
):
    found = phrase(english, determiner, ACCUSATIVE, False, adjective, degree)
    assert (found.english, found.german) == expected


def test_dative_plurals_end_in_n_or_s_and_feminine_singulars_never_change():
    for members in lexicon().values():
        for one in members:
            if not one.substance:
                assert one.german[4 + DATIVE][-1] in "ns", one
            if one.gender == inflection.FEMININE:
                assert len(set(one.german[:4])) == 1, one


def test_an_english_noun_has_one_german_noun_and_nothing_is_given_twice():
    seen: dict[str, str] = {}
    for members in lexicon().values():
        for one in members:
            for english, german in ((one.english, one.german[0]), (one.plural, one.german[4])):
                assert english not in seen, f"{english} stands twice"
                seen[english] = german
            assert re.fullmatch("[A-ZÄÖÜ][a-zäöüß]+", one.german[0]), one
    kinds = [(v.english, v.particle, v.preposition, v.frame, v.subject) for v in verbs()]
    assert len(kinds) == len(set(kinds))


def test_there_are_several_hundred_words():
    count = sum(len(members) for members in lexicon().values()) + len(verbs())
    assert 280 <= count <= 500


@pytest.mark.parametrize(
    ("preposition", "german", "expected"),
    [
        ("in", "dem alten Garten", "im alten Garten"),
        ("in", "das Haus", "ins Haus"),
        ("in", "der Küche", "in der Küche"),
        ("in", "den Garten", "in den Garten"),
        ("an", "dem Bahnhof", "am Bahnhof"),
        ("zu", "dem Arzt", "zum Arzt"),
        ("zu", "der Schule", "zur Schule"),
        ("von", "dem König", "vom König"),
        ("von", "der Reise", "von der Reise"),
        ("auf", "das Sofa", "auf das Sofa"),
        ("in", "diesem Garten", "in diesem Garten"),
        ("mit", "dir", "mit dir"),
    ],
)
def test_prepositions_contract(preposition, german, expected):
    assert after_preposition(preposition, german) == expected


def test_pronouns_by_case():
    rows = {row.subject: [pronoun(row, case).german for case in CASES[:3]] for row in PRONOUNS}
    assert rows == {
        "I": ["ich", "mich", "mir"],
        "you": ["du", "dich", "dir"],
        "he": ["er", "ihn", "ihm"],
        "she": ["sie", "sie", "ihr"],
        "we": ["wir", "uns", "uns"],
        "they": ["sie", "sie", "ihnen"],
    }
    assert RELATIVES == (
        ("der", "den", "dem", "dessen"),
        ("die", "die", "der", "deren"),
        ("das", "das", "dem", "dessen"),
        ("die", "die", "denen", "deren"),
    )
