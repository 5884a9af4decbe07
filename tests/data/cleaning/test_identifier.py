from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.data.cleaning.config import CleaningConfig
from transduce.data.cleaning.identifier import Identifier, identifier
from transduce.data.cleaning.languages import READ, known_language, wrong_languages

TEXTS = {
    "en": "The children were playing in the garden behind the house.",
    "de": "Die Kinder spielten im Garten hinter dem alten Haus.",
    "fr": "Les enfants jouaient dans le jardin derrière la maison.",
    "ru": "Дети играли в саду за большим старым домом.",
    "ja": "子供たちは大きくて古い家の裏にある広い庭で一日中楽しく遊んでいました。",
    "hi": "बच्चे बड़े पुराने घर के पीछे बगीचे में दिन भर खेल रहे थे और ज़ोर ज़ोर से गा रहे थे।",
}


@pytest.fixture(scope="module")
def found() -> Identifier:
    return identifier()


@pytest.fixture(scope="module")
def oracle() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def same(found: Identifier, oracle: Any, texts: list[str]) -> None:
    for text, (code, probability) in zip(texts, found.classify(texts), strict=True):
        expected, likely = oracle.classify(text)
        assert probability == pytest.approx(likely, abs=1e-3), text
        assert code == expected or abs(probability - likely) < 1e-5, text


def test_many_at_once_are_told_as_the_library_tells_each(found: Identifier, oracle: Any) -> None:
    texts = [
        *TEXTS.values(),
        "",
        "a",
        "THE WHOLE SENTENCE IS IN CAPITAL LETTERS",
        "12 345",
        "u\u0308ber Nacht",
        "ü" * 300,
    ]
    same(found, oracle, texts)
    same(found, oracle, texts[::-1] * 100)  # in several batches
    assert found.classify([]) == []


@given(st.lists(st.text(max_size=30) | st.sampled_from(list(TEXTS.values())), max_size=8))
@settings(max_examples=60, deadline=None)
def test_whatever_the_texts(found: Identifier, oracle: Any, texts: list[str]) -> None:
    same(found, oracle, texts)


def test_texts_in_their_language_are_kept_and_others_dropped() -> None:
    config = CleaningConfig()
    for code in TEXTS:
        wrong = wrong_languages("source", list(TEXTS.values()), code, config)
        assert sorted(wrong) == [at for at, other in enumerate(TEXTS) if other != code]
    assert wrong_languages("target", [TEXTS["de"]], "en", config)[0].startswith("target is de (0.")
    assert wrong_languages("target", [TEXTS["de"]], "", config) == {}


def test_the_edge_is_where_the_settings_say() -> None:
    text = TEXTS["de"]
    letters = sum(map(str.isalpha, text))
    ((_, probability),) = identifier().classify([text])
    for values, dropped in (
        ({"language_letters": letters}, True),
        ({"language_letters": letters + 1}, False),
        ({"language": probability}, True),
        ({"language": min(probability + 1e-4, 1.0)}, False),
    ):
        assert bool(wrong_languages("source", [text], "en", CleaningConfig(**values))) is dropped  # type: ignore[arg-type]


def test_names_of_varieties_and_languages_that_look_alike() -> None:
    assert all(known_language(name) for name in ("de-AT", "deu_Latn", "pt_BR", "nb", "zh-Hant", "cmn"))
    assert not known_language("tlh")
    texts = ["Barna lekte i hagen bak det gamle huset hele dagen.", TEXTS["en"]]
    for name in ("nb", "no", "nn-NO"):
        assert list(wrong_languages("source", texts, name, CleaningConfig())) == [1]
    assert wrong_languages("source", texts, "tlh", CleaningConfig()) == {}


def test_the_beginning_of_a_long_text_decides() -> None:
    long = (TEXTS["de"] + " ") * 2 + TEXTS["en"] * 20
    assert len(TEXTS["de"]) * 2 > READ
    assert wrong_languages("source", [long], "de", CleaningConfig()) == {}
    assert wrong_languages("source", [long], "en", CleaningConfig())
