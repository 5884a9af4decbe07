"""A model that is asked for a language or a domain: what it is given, and what it refuses."""

from __future__ import annotations

import functools

import pytest
import torch

from tiny_translator import sentences, tiny_bundle, tiny_model
from transduce.bundle import Bundle
from transduce.data.tokenizer import Tokenizer
from transduce.decoding.config import TranslationOptions
from transduce.decoding.languages import tags_asked
from transduce.decoding.translator import Translator
from transduce.errors import UsageError

TAGS = ("<2de>", "<2en>", "<2pt-BR>", "<bt>", "<news>")
TEXTS = ["", *sentences(6, seed=5), "<2en> bet"]


@functools.cache
def tokenizer(tags: tuple[str, ...] = TAGS) -> Tokenizer:
    return Tokenizer.train(sentences(300), 330, tags=tags)


def translator(tags: tuple[str, ...] = TAGS, **settings: object) -> Translator:
    model = tiny_model(vocabulary=tokenizer(tags).vocabulary, **settings)
    return Translator(Bundle(model=model, tokenizer=tokenizer(tags), training={}))


@pytest.mark.parametrize(("to", "domain", "tags"), [("de", "", ["<2de>"]), ("en", "bt", ["<2en>", "<bt>"])])
def test_the_model_sees_the_tags_in_front_of_the_text(to: str, domain: str, tags: list[str]) -> None:
    one = translator()
    found = one.translate_detailed(TEXTS, to=to, domain=domain)
    ids = [(*tokenizer().tag_ids(tags), *tokenizer().encode(text)) for text in TEXTS[1:]]
    expected = one.searcher.search(ids, TranslationOptions())
    assert [t.alternatives[0].tokens for t in found[1:]] == [outputs[0].tokens for outputs in expected]
    assert found[0].text == ""


def test_languages_are_told_apart_whatever_the_neighbours() -> None:
    one = translator()
    into_de, into_en = (one.translate(TEXTS, to=to) for to in ("de", "en"))
    assert into_de != into_en
    assert [one.translate([text], to="de")[0] for text in TEXTS] == into_de


def test_no_output_holds_a_tag() -> None:
    one = translator()
    with torch.no_grad():  # a model that would say nothing but tags
        output = one.bundle.model.embeddings.output
        for tag in tokenizer().tags.values():
            output[tag] = one.bundle.model.decoder.layers[-1].add_norm_3.norm.bias * 100
    for options in ({}, {"beam": 1}, {"samples": 3}, {"prefixes": ["bet"] * len(TEXTS)}):
        for found in one.translate_detailed(TEXTS, to="de", **options):
            for alternative in found.alternatives:
                assert not set(alternative.tokens) & set(tokenizer().tags.values())


def test_what_was_not_asked_for_or_is_not_known_is_refused_with_a_list() -> None:
    one = translator()
    assert (one.languages, one.domains) == (("de", "en", "pt-BR"), ("bt", "news"))
    with pytest.raises(
        UsageError, match=r"translates into de, en, pt-BR; say into which with to \(--to de\)"
    ):
        one.translate(TEXTS)
    with pytest.raises(UsageError, match="to is 'fr', but this model translates into de, en, pt-BR"):
        one.translate(TEXTS, to="fr")
    with pytest.raises(
        UsageError, match="domain is 'law', but the domains that this model knows are: bt, news"
    ):
        one.translate(TEXTS, to="de", domain="law")
    with pytest.raises(UsageError, match="to is 'de', but this model was trained without languages"):
        Translator(tiny_bundle()).translate(TEXTS, to="de")
    with pytest.raises(UsageError, match="this model knows are: none"):
        Translator(tiny_bundle()).translate(TEXTS, domain="news")
    with pytest.raises(UsageError, match="say into which"):
        one.score([("bet", "tor")])
    with pytest.raises(UsageError, match="say into which"):
        one.alternatives("bet")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("de", "de"), ("DE", "de"), ("de-AT", "de"), ("de_AT", "de"), ("pt", "pt-BR"), ("pt_br", "pt-BR")],
)
def test_codes_are_matched_sensibly(wanted: str, found: str) -> None:
    assert tags_asked(tokenizer(), wanted, "") == tuple(tokenizer().tag_ids([f"<2{found}>"]))


def test_another_region_is_another_language() -> None:
    with pytest.raises(UsageError, match="to is 'pt-PT'"):
        tags_asked(tokenizer(), "pt-PT", "")


def test_a_model_of_one_language_need_not_be_asked_for_it() -> None:
    one = translator(("<2de>", "<bt>"))
    assert one.translate(TEXTS) == one.translate(TEXTS, to="de")
    assert one.translate(TEXTS) != one.translate(TEXTS, domain="bt")


def test_scores_are_those_of_the_tagged_source() -> None:
    one = translator()
    (found,) = one.translate_detailed(TEXTS[1:2], to="en", domain="news")
    (score,) = one.score([(TEXTS[1], found.alternatives[0].tokens)], to="en", domain="news")
    assert score.log_probability == pytest.approx(found.alternatives[0].log_probability, abs=1e-4)
    (other,) = one.score([(TEXTS[1], found.alternatives[0].tokens)], to="de")
    assert other.log_probability < score.log_probability - 1e-3
    (by_text,) = one.score([(TEXTS[1], TEXTS[2])], to="en")
    ids = [*tokenizer().tag_ids(["<2en>"]), *tokenizer().encode(TEXTS[1])]
    target = [*tokenizer().encode(TEXTS[2]), one.bundle.model.config.eos_id]
    assert by_text.token_log_probabilities == pytest.approx(
        one.searcher.force_decode([tuple(ids)], [tuple(target)])[0], abs=1e-4
    )


@pytest.mark.parametrize("policy", ["split", "truncate"])
def test_every_part_of_a_long_line_is_tagged_and_fits(policy: str) -> None:
    one = translator(max_length=12)
    seen: list[list[int]] = []
    plain = one.searcher.search
    one.searcher.search = lambda ids, *rest: seen.extend(map(list, ids)) or plain(ids, *rest)  # type: ignore
    long = " ".join(sentences(5, seed=9))
    with pytest.warns(UserWarning, match="the model takes 10 and the end"):
        one.translate([long], to="de", long_lines=policy)
    assert (len(seen) > 1) == (policy == "split")
    assert all(len(ids) <= 11 and ids[0] == tokenizer().tags["<2de>"] for ids in seen)


def test_tags_have_no_part_in_alignments_and_alternatives_follow_them() -> None:
    one = translator()
    (found,) = one.translate_detailed(TEXTS[1:2], to="de", alignments=True)
    words, outputs = len(TEXTS[1].split()), len(found.text.split())
    assert all(0 <= i < words and 0 <= j < outputs for i, j in found.alignment or ())
    (weights,) = one.aligner().weights([(TEXTS[1], found.alternatives[0])])
    part = found.alternatives[0].parts[0]
    (attention,) = one.aligner()._attention([part])
    bare = Translator(tiny_bundle()).aligner()
    assert weights.sum() <= attention[:, 1:].sum() + 1e-5, "a tag's share belongs to no word"
    assert bare is not None
    assert [a.word for a in one.alternatives(TEXTS[1], to="de")] != [
        a.word for a in one.alternatives(TEXTS[1], to="en")
    ]
