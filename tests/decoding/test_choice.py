"""Searches among a part of the vocabulary, against searches that forbid all the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from engines import ENGINES

from tiny_translator import sentences, tiny_bundle, tokenizer
from transduce.data.tokenizer import EOS_ID
from transduce.decoding.beam_search import beam_search
from transduce.decoding.candidates import Scored, continuations
from transduce.decoding.choice import Choice
from transduce.decoding.config import SearchOptions
from transduce.decoding.shortlist import Shortlist
from transduce.decoding.translation import Translation
from transduce.decoding.translator import Translator

LINES = sentences(12, seed=1, words=(1, 4))
OPTIONS: dict[str, Any] = {"shortlist": True, "n_best": 3, "max_extra": 5}


def shortlist(*, whole: bool = False) -> Shortlist:
    """Six made-up candidates for each token; or everything."""
    size = tokenizer().vocabulary
    drawn = np.random.default_rng(2).integers(4, size, (size, 6)).astype(np.int32)
    frequent = np.arange(4, size) if whole else np.array([70, 300])
    return Shortlist(drawn, frequent.astype(np.int32), np.zeros(size, np.bool_))


def translator(
    engine: str, *, whole: bool = False, precision: str = "fp32", output_bias: bool = False
) -> Translator:
    it = Translator(tiny_bundle(output_bias=output_bias), engine=engine, precision=precision)
    it.searcher.shortlist = shortlist(whole=whole)
    return it


def tokens(translations: list[Translation]) -> list[list[tuple[int, ...]]]:
    return [[one.tokens for one in found.alternatives] for found in translations]


def scores(translations: list[Translation]) -> list[float]:
    return [one.score for found in translations for one in found.alternatives]


def allowed() -> np.ndarray[Any, Any]:
    """Three sentences with 5, 2 and 9 of 12 tokens."""
    rows = np.zeros((3, 12), np.bool_)
    for row, own in enumerate(([1, 4, 5, 8, 11], [1, 8], [1, 2, 3, 4, 6, 7, 8, 9, 11])):
        rows[row, own] = True
    return rows


def test_each_sentence_sees_its_own_columns_of_the_union() -> None:
    choice = Choice.of(allowed())
    assert choice.union.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 11]
    logits = torch.randn(6, 10)
    own = choice.own(logits)
    assert own.shape == (6, 9)
    assert torch.equal(own[0, :5], logits[0, [0, 3, 4, 7, 9]])
    assert torch.equal(own[3, :2], logits[3, [0, 7]])
    assert own[3, 2:].isneginf().all()
    kept = choice.kept(torch.tensor([2, 1]))
    assert torch.equal(kept.own(logits[[4, 2]]), own[[4, 2]])


@pytest.mark.parametrize("not_yet", [None, EOS_ID])
@pytest.mark.parametrize("beam", [1, 2, 3])
def test_the_best_continuations_are_those_of_logits_without_the_others(
    beam: int, not_yet: int | None
) -> None:
    choice, slots = Choice.of(allowed()), 2
    logits = torch.randn(6, 12, generator=torch.Generator().manual_seed(beam)).round(decimals=1)  # with ties
    closed = torch.from_numpy(~allowed()).repeat_interleave(slots, 0)
    full = logits.masked_fill(closed, float("-inf"))
    alive = np.array([[0.0, -0.3], [-0.2, -0.2], [-1.0, -np.inf]])
    own = choice.own(logits.index_select(1, choice.union))
    scored = Scored(own, own.logsumexp(1, keepdim=True), 12, choice.tokens)
    torch.testing.assert_close(scored.log_p(), full.log_softmax(1))
    never = torch.tensor([], dtype=torch.long)
    best = continuations(scored, alive, beam=beam, never=never, not_yet=not_yet)
    expected = continuations(full, alive, beam=beam, never=never, not_yet=not_yet)
    assert best is not None
    assert expected is not None
    possible = expected.log_p > -np.inf
    np.testing.assert_allclose(best.log_p[:, : possible.shape[1]][possible], expected.log_p[possible], 1e-5)
    assert np.array_equal(best.tokens[:, : possible.shape[1]][possible], expected.tokens[possible])
    assert np.array_equal(best.parents[:, : possible.shape[1]][possible], expected.parents[possible])
    assert np.isneginf(best.log_p[:, : possible.shape[1]][~possible]).all()


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("engine", ENGINES)
def test_outputs_are_those_of_a_search_that_forbids_everything_else(engine: str) -> None:
    it, plain = translator(engine), Translator(tiny_bundle())
    found = it.translate_detailed(LINES, **OPTIONS)
    config = plain.bundle.model.config
    for line, translation in zip(LINES, found, strict=True):
        ids = tokenizer().encode(line)
        others = np.flatnonzero(~it.shortlist.tokens(ids)).tolist()
        (expected,) = beam_search(
            plain.searcher.engine.step,
            plain.searcher.engine.start(plain.searcher.padded([ids])),
            max_lengths=torch.tensor([len(ids) + 5]),
            options=SearchOptions(n_best=3, min_length=1),
            start_id=config.start_id,
            eos_id=config.eos_id,
            forbidden=others,
        )
        assert [one.tokens for one in translation.alternatives] == [one.tokens for one in expected]
        assert scores([translation]) == pytest.approx([one.score for one in expected], abs=1e-4)
    assert tokens(found) != tokens(plain.translate_detailed(LINES, **{**OPTIONS, "shortlist": False}))


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("engine", ENGINES)
def test_neither_batch_size_nor_order_nor_neighbours_change_an_output(engine: str) -> None:
    it = translator(engine)
    whole = it.translate_detailed(LINES, batch_tokens=10**9, **OPTIONS)
    for budget in (1, 3 * 4 * 16):
        apart = it.translate_detailed(LINES, batch_tokens=budget, **OPTIONS)
        assert tokens(apart) == tokens(whole)
        assert scores(apart) == pytest.approx(scores(whole), abs=1e-4)
    assert tokens(it.translate_detailed(LINES[::-1], batch_tokens=10**9, **OPTIONS)[::-1]) == tokens(whole)


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("output_bias", [False, True])
def test_a_shortlist_of_the_whole_vocabulary_changes_nothing(engine: str, output_bias: bool) -> None:
    it = translator(engine, whole=True, output_bias=output_bias)
    found = it.translate_detailed(LINES, **OPTIONS)
    expected = it.translate_detailed(LINES, **{**OPTIONS, "shortlist": False})
    assert tokens(found) == tokens(expected)
    assert scores(found) == pytest.approx(scores(expected), abs=1e-4)


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("engine", ENGINES)
def test_an_ensemble_of_one_model_twice_is_the_model(engine: str) -> None:
    it, twice = translator(engine), Translator([tiny_bundle(), tiny_bundle()], engine=engine)
    twice.searcher.shortlist = shortlist()
    found, expected = (one.translate_detailed(LINES[:5], **OPTIONS) for one in (twice, it))
    assert tokens(found) == tokens(expected)
    assert scores(found) == pytest.approx(scores(expected), abs=1e-4)


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("engine", ENGINES)
def test_samples_hold_nothing_else_either(engine: str) -> None:
    it = translator(engine)
    found = it.translate_detailed(LINES, shortlist=True, samples=3, max_extra=5)
    for line, translation in zip(LINES, found, strict=True):
        own = it.shortlist.tokens(tokenizer().encode(line))
        assert all(own[list(one.tokens)].all() for one in translation.alternatives)
    again = it.translate_detailed(LINES[::-1], shortlist=True, samples=3, max_extra=5, batch_tokens=1)
    assert tokens(again[::-1]) == tokens(found)


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_asked_of_a_line_is_fulfilled_beyond_its_shortlist(engine: str) -> None:
    it = translator(engine)
    lines, prefixes = LINES[:4], ["Zürich", "", "", ""]
    terms = [[], ["Zug"], [], []]
    found = it.translate_detailed(lines, shortlist=True, prefixes=prefixes, terms=terms, max_extra=20)
    assert found[0].text.startswith("Zürich")
    assert "Zug" in found[1].text
    assert tokens(found[2:]) == tokens(it.translate_detailed(lines[2:], shortlist=True, max_extra=20))
    guarded = it.translate_detailed(lines, shortlist=True, no_repeat_ngram=1, max_extra=5)
    for line, translation in zip(lines, guarded, strict=True):
        output = translation.alternatives[0].tokens
        assert it.shortlist.tokens(tokenizer().encode(line))[list(output)].all()
        assert len(set(output)) == len(output)


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("engine", ENGINES[1:])
@pytest.mark.parametrize("precision", ["int8", "bf16"])
def test_every_precision_computes_among_the_same_tokens(engine: str, precision: str) -> None:
    it = translator(engine, precision=precision)
    found = it.translate_detailed(LINES, **OPTIONS)
    exact = translator("torch").translate_detailed(LINES, **OPTIONS)
    for line, translation in zip(LINES, found, strict=True):
        own = it.shortlist.tokens(tokenizer().encode(line))
        assert all(own[list(one.tokens)].all() for one in translation.alternatives)
    agree = [a == b for a, b in zip(tokens(found), tokens(exact), strict=True)]
    assert sum(agree) > len(LINES) // 3
