"""Verb forms and word order of the embedded corpus, looked up by hand."""

import pytest

from transduce.data.corpus import word_order
from transduce.data.corpus.clauses import Clause
from transduce.data.corpus.inflection import NOMINATIVE
from transduce.data.corpus.phrases import PRONOUNS, pronoun
from transduce.data.corpus.tenses import CAN, FUTURE, PAST, PLUPERFECT, PROGRESSIVE, SIMPLE
from transduce.data.corpus.verbs import Verb, verbs_of


def verb(english, frame) -> Verb:
    return next(verb for verb in verbs_of(frame) if verb.english == english)


@pytest.mark.parametrize(
    ("frame", "english", "present", "perfect", "zu", "command"),
    [
        ("intransitive", "get", "stehe auf, stehst auf, steht auf", "aufgestanden ist", "aufzustehen",
         "steh auf"),
        ("intransitive", "work", "arbeite, arbeitest, arbeitet", "gearbeitet hat", "zu arbeiten", "arbeite"),
        ("intransitive", "smile", "lächle, lächelst, lächelt", "gelächelt hat", "zu lächeln", "lächle"),
        ("intransitive", "sleep", "schlafe, schläfst, schläft", "geschlafen hat", "zu schlafen", "schlaf"),
        ("intransitive", "swim", "schwimme, schwimmst, schwimmt", "geschwommen ist", "zu schwimmen",
         "schwimm"),
        ("accusative", "read", "lese, liest, liest", "gelesen hat", "zu lesen", "lies"),
        ("accusative", "eat", "esse, isst, isst", "gegessen hat", "zu essen", "iss"),
        ("accusative", "open", "öffne, öffnest, öffnet", "geöffnet hat", "zu öffnen", "öffne"),
        ("accusative", "draw", "zeichne, zeichnest, zeichnet", "gezeichnet hat", "zu zeichnen", "zeichne"),
        ("accusative", "close", "schließe, schließt, schließt", "geschlossen hat", "zu schließen", "schließ"),
        ("accusative", "learn", "lerne, lernst, lernt", "gelernt hat", "zu lernen", "lerne"),
        ("accusative", "invite", "lade ein, lädst ein, lädt ein", "eingeladen hat", "einzuladen", "lade ein"),
        ("accusative", "have", "habe, hast, hat", "hatte", "zu haben", "habe"),
        ("accusative", "feed", "füttere, fütterst, füttert", "gefüttert hat", "zu füttern", "füttere"),
        ("accusative", "meet", "treffe, triffst, trifft", "getroffen hat", "zu treffen", "triff"),
        ("dative", "help", "helfe, hilfst, hilft", "geholfen hat", "zu helfen", "hilf"),
        ("dative", "listen", "höre zu, hörst zu, hört zu", "zugehört hat", "zuzuhören", "höre zu"),
        ("give", "give", "gebe, gibst, gibt", "gegeben hat", "zu geben", "gib"),
        ("prepositional", "play", "spiele, spielst, spielt", "gespielt hat", "zu spielen", "spiele"),
        ("prepositional", "wait", "warte, wartest, wartet", "gewartet hat", "zu warten", "warte"),
        ("direction", "travel", "fahre, fährst, fährt", "gefahren ist", "zu fahren", "fahr"),
        ("that", "know", "weiß, weißt, weiß", "wusste", "zu wissen", None),
    ],
)  # fmt: skip
def test_verb_forms(frame, english, present, perfect, zu, command):
    found = verb(english, frame)
    forms = found.forms[SIMPLE]
    assert ", ".join(f"{form.finite} {form.right}".strip() for form in forms[:3]) == present
    assert found.forms[PAST][2].final == perfect
    assert found.with_zu == zu
    if command:
        assert " ".join(part for part in found.command if part) == command


@pytest.mark.parametrize(
    ("frame", "english", "expected"),
    [
        ("intransitive", "get", "is getting, gets, got, has got"),
        ("intransitive", "cry", "is crying, cries, cried, has cried"),
        ("intransitive", "swim", "is swimming, swims, swam, has swum"),
        ("accusative", "use", "is using, uses, used, has used"),
        ("accusative", "wash", "is washing, washes, washed, has washed"),
        ("accusative", "hug", "is hugging, hugs, hugged, has hugged"),
        ("accusative", "get to know", "is getting to know, gets to know, got to know, has got to know"),
        ("direction", "go", "is going, goes, went, has gone"),
        ("place", "lie", "is lying, lies, lay, has lain"),
        ("prepositional", "argue", "is arguing, argues, argued, has argued"),
    ],
)
def test_english_verb_forms(frame, english, expected):
    forms = verb(english, frame).forms
    assert ", ".join(forms[tense][2].plain for tense in range(4)) == expected


def _clause(subject, found, tense, **parts):
    built = Clause(subject, found.forms[tense][subject.person], parts.pop("negated", False), found)
    for slot, value in parts.items():
        setattr(built, slot, value)
    return built


SHE = pronoun(PRONOUNS[3], NOMINATIVE)


@pytest.mark.parametrize(
    ("tense", "order", "expected"),
    [
        (PROGRESSIVE, "statement", "sie steht heute auf"),
        (PROGRESSIVE, "front", "heute steht sie auf"),
        (PROGRESSIVE, "question", "steht sie heute auf"),
        (PROGRESSIVE, "subordinate", "dass sie heute aufsteht"),
        (PAST, "statement", "sie ist heute aufgestanden"),
        (PAST, "front", "heute ist sie aufgestanden"),
        (PAST, "subordinate", "dass sie heute aufgestanden ist"),
        (PLUPERFECT, "subordinate", "dass sie heute aufgestanden war"),
        (FUTURE, "statement", "sie wird heute aufstehen"),
        (FUTURE, "subordinate", "dass sie heute aufstehen wird"),
        (CAN, "question", "kann sie heute aufstehen"),
        (CAN, "infinitive", "heute aufzustehen"),
        (CAN, "command", "steh heute auf"),
    ],
)
def test_the_german_verb_goes_where_it_must(tense, order, expected):
    built = _clause(SHE, verb("get", "intransitive"), tense, time=("today", "heute"), complement="up")
    if order == "front":
        word_order.front(built, "time")
        found = word_order.statement(built)
    elif order == "subordinate":
        found = word_order.subordinate(built, "that", "dass")
    else:
        found = getattr(word_order, order)(built)
    assert found[1] == expected


def test_english_word_order_and_do():
    built = _clause(SHE, verb("buy", "accusative"), PAST, complement="the book", before="das Buch")
    assert word_order.statement(built) == ("she bought the book", "sie hat das Buch gekauft")
    assert word_order.question(built, "when", "wann") == (
        "when did she buy the book",
        "wann hat sie das Buch gekauft",
    )
    assert word_order.after_clause(built, "if it rains", "wenn es regnet") == (
        "if it rains, she bought the book",
        "wenn es regnet, hat sie das Buch gekauft",
    )
    built.negated, built.after = True, "nicht"
    assert word_order.statement(built) == ("she did not buy the book", "sie hat das Buch nicht gekauft")
    parts = {"middle": "often", "time": ("", "oft"), "complement": "tea", "last": "Tee"}
    often = _clause(SHE, verb("buy", "accusative"), SIMPLE, **parts)
    assert word_order.statement(often) == ("she often buys tea", "sie kauft oft Tee")
    assert word_order.question(often) == ("does she often buy tea", "kauft sie oft Tee")
    cannot = _clause(SHE, verb("sleep", "intransitive"), CAN, negated=True, after="nicht")
    assert word_order.statement(cannot) == ("she cannot sleep", "sie kann nicht schlafen")


def test_a_definite_object_stands_before_the_time_and_an_indefinite_one_after_it():
    buy = verb("buy", "accusative")
    definite = _clause(SHE, buy, PAST, time=("yesterday", "gestern"), complement="the tea", before="den Tee")
    indefinite = _clause(SHE, buy, PAST, time=("yesterday", "gestern"), complement="tea", last="Tee")
    place = _clause(SHE, buy, PAST, place=("here", "hier"), complement="tea", last="Tee")
    assert word_order.statement(definite) == (
        "she bought the tea yesterday",
        "sie hat den Tee gestern gekauft",
    )
    assert word_order.statement(indefinite) == ("she bought tea yesterday", "sie hat gestern Tee gekauft")
    assert word_order.statement(place) == ("she bought tea here", "sie hat hier Tee gekauft")
