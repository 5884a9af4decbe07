"""Other subwords for the same text: the distributions by enumeration, and the text always the same."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny_translator import sentences
from transduce.data.chance import keys, uniform
from transduce.data.resegmentation import CUTS, Resegmenter
from transduce.data.tokenizer import EOS_ID, Tokenizer

DRAWS = 20_000
TEXT = st.text(st.sampled_from("abdegt  .ü▁\ue000語"), max_size=30)


@functools.cache
def tokenizer(how: str = "bpe") -> Tokenizer:
    return Tokenizer.train(sentences(300), 340, subwords=how, tags=["<2de>"])


def _rows(texts: list[str], how: str = "bpe") -> list[np.ndarray]:
    own = tokenizer(how)
    return [np.array([*own.tag_ids(["<2de>"]), *own.encode(text), EOS_ID], dtype=np.uint16) for text in texts]


def _drawn(texts: list[str], how: str, rate: float, longest: int = 1000, update: int = 0) -> list[list[int]]:
    sampler = Resegmenter(tokenizer(how), rate, seed=3)
    rows = sampler.draw(_rows(texts, how), keys(3, update, np.arange(len(texts))), longest)
    return [row.tolist() for row in rows]


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXT, max_size=5))
def test_bpe_without_dropout_is_the_tokenizer_itself(texts: list[str]) -> None:
    assert _drawn(texts, "bpe", 0.0) == [row.tolist() for row in _rows(texts)]


@settings(max_examples=50, deadline=None)
@given(st.lists(TEXT, max_size=5))
def test_a_unigram_model_that_is_sure_is_the_tokenizer_itself(texts: list[str]) -> None:
    own = tokenizer("unigram")
    found = _drawn(texts, "unigram", 1000.0)
    for row, usual in zip(found, _rows(texts, "unigram"), strict=True):
        # Of cuts that are equally probable either may come.
        assert sum(map(own.score, row)) == pytest.approx(sum(map(own.score, usual.tolist())), abs=1e-3)


@pytest.mark.parametrize(("how", "rate"), [("bpe", 0.1), ("bpe", 0.5), ("bpe", 1.0), ("unigram", 0.2)])
@settings(max_examples=50, deadline=None)
@given(texts=st.lists(TEXT, max_size=5))
def test_the_text_stays_and_so_do_tags_and_ends(how: str, rate: float, texts: list[str]) -> None:
    own = tokenizer(how)
    for text, row in zip(texts, _drawn(texts, how, rate), strict=True):
        assert own.decode(row) == text
        assert (row[0], row[-1]) == (own.tags["<2de>"], EOS_ID)
        assert not {EOS_ID, *own.tags.values()} & set(row[1:-1])


def test_bpe_that_drops_every_merge_spells_characters() -> None:
    (row,) = _drawn(["bet tor"], "bpe", 1.0)
    assert [tokenizer().piece(index) for index in row[1:-1]] == list("▁bet▁tor")


def _word(how: str, cuts: int) -> list[int]:
    """The ids of a word that can be cut in at least so many ways."""
    own = tokenizer(how)
    words = {word for line in sentences(300) for word in line.rstrip(".").split()}
    for word in sorted(words):
        ids = own.encode(word)
        if len(_all_cuts(how, "▁" + word)) >= cuts:
            return ids
    raise AssertionError("no such word")


def _all_cuts(how: str, text: str) -> list[tuple[str, ...]]:
    own = tokenizer(how)
    pieces = {own.piece(index) for index in range(own.vocabulary)}
    found = []
    for places in itertools.product((False, True), repeat=len(text) - 1):
        ends = [i + 1 for i, there in enumerate(places) if there]
        cut = tuple(text[a:b] for a, b in itertools.pairwise([0, *ends, len(text)]))
        if set(cut) <= pieces:
            found.append(cut)
    return found


def _check(expected: dict[tuple[str, ...], float], found: Counter[tuple[str, ...]]) -> None:
    assert sum(expected.values()) == pytest.approx(1)
    assert set(found) <= set(expected)
    for cut, probability in expected.items():
        deviation = math.sqrt(probability * (1 - probability) / DRAWS)
        assert abs(found[cut] / DRAWS - probability) <= 4.5 * deviation + 1e-9, cut


def _many(how: str, rate: float, ids: list[int]) -> Counter[tuple[str, ...]]:
    sampler, chance = Resegmenter(tokenizer(how), rate, seed=1), random.Random(7)
    return Counter(
        tuple(tokenizer(how).piece(index) for index in sampler.cut_word(ids, chance)) for _ in range(DRAWS)
    )


@pytest.mark.parametrize("rate", [0.1, 0.6])
def test_bpe_dropout_draws_what_algorithm_1_gives(rate: float) -> None:
    own, ids = tokenizer(), _word("bpe", 4)
    rank = {own.piece(index): own.score(index) for index in range(own.vocabulary)}

    def ends(split: tuple[str, ...]) -> dict[tuple[str, ...], float]:
        """The probability of each end: a merge is made if it is kept and the better ones are not."""
        possible = [i for i in range(len(split) - 1) if split[i] + split[i + 1] in rank]
        possible.sort(key=lambda i: -rank[split[i] + split[i + 1]])
        total: dict[tuple[str, ...], float] = {split: rate ** len(possible)}
        for better, i in enumerate(possible):
            merged = (*split[:i], split[i] + split[i + 1], *split[i + 2 :])
            for end, probability in ends(merged).items():
                total[end] = total.get(end, 0.0) + rate**better * (1 - rate) * probability
        return total

    _check(ends(tuple("".join(own.piece(index) for index in ids))), _many("bpe", rate, ids))


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_unigram_draws_each_cut_by_its_probability_to_the_power_alpha(alpha: float) -> None:
    own, ids = tokenizer("unigram"), _word("unigram", 4)
    score = {own.piece(index): own.score(index) for index in range(own.vocabulary)}
    piece = "".join(own.piece(index) for index in ids)
    weights = {cut: math.exp(alpha * sum(score[part] for part in cut)) for cut in _all_cuts("unigram", piece)}
    total = sum(weights.values())
    _check({cut: weight / total for cut, weight in weights.items()}, _many("unigram", alpha, ids))


@pytest.mark.parametrize("how", ["bpe", "unigram"])
def test_a_draw_depends_on_its_key_alone(how: str) -> None:
    texts = sentences(40)
    together = _drawn(texts, how, 0.3)
    sampler = Resegmenter(tokenizer(how), 0.3, seed=3)
    for at in (7, 31, 7):
        (alone,) = sampler.draw(_rows(texts[at : at + 1], how), keys(3, 0, np.array([at])), 1000)
        assert alone.tolist() == together[at]
    assert _drawn(texts, how, 0.3, update=1) != together
    assert together != [row.tolist() for row in _rows(texts, how)]


def test_occurrences_of_a_word_are_cut_apart_and_none_is_preferred() -> None:
    (row,) = _drawn([" ".join(["bet"] * 3000)], "bpe", 0.5, longest=10**6)
    pieces = [tokenizer().piece(index) for index in row[1:-1]]
    words = Counter("".join(p if not p.startswith("▁") else f" {p}" for p in pieces).split())
    assert words == {"▁bet": 3000}
    sampler = Resegmenter(tokenizer(), 0.5, seed=3)
    (ids,) = _rows(["bet"])
    sampler.draw([ids] * 3000, keys(3, 0, np.arange(3000)), 1000)
    assert len({number for _, number in sampler._kept}) == CUTS


def test_what_would_be_too_long_stays() -> None:
    texts = sentences(40)
    free, usual = _drawn(texts, "bpe", 0.5), [row.tolist() for row in _rows(texts)]
    limit = sorted(map(len, free))[20]
    bound = _drawn(texts, "bpe", 0.5, longest=limit)
    assert bound == [one if len(one) <= limit else plain for one, plain in zip(free, usual, strict=True)]
    assert bound != free


def test_numbers_are_spread_evenly() -> None:
    numbers = uniform(keys(1, 2, np.arange(100_000)))
    counts, _ = np.histogram(numbers, bins=10, range=(0, 1))
    assert abs(counts - 10_000).max() < 400
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.01
    assert not np.intersect1d(keys(1, 2, np.arange(100)), keys(2, 1, np.arange(100))).size
