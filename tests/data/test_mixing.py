from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.data.batching import Batching, Update
from transduce.data.config import DataConfig
from transduce.data.formats.pair import Pair
from transduce.data.mixing import Mixture, mixture, quotas
from transduce.data.prepare import prepare
from transduce.errors import ConfigError, DataError

Pairs = Callable[..., Iterator[Pair]]
Write = Callable[..., str]

WEIGHT = st.sampled_from([1.0, 2.0, 0.5, 7.0])
SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=5)


def ids(updates: list[Update]) -> list[int]:
    return [int(i) for update in updates for micro in update for i in micro]


def batching(count: int, mixed: Mixture | None = None, seed: int = 5) -> Batching:
    random = np.random.default_rng(1)
    source, target = random.integers(2, 12, count), random.integers(2, 12, count)
    return Batching(source, target, batch_tokens=100, micro_batch_tokens=30, seed=seed, mixture=mixed)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_shares_are_exact_to_rounding(data: st.DataObject) -> None:
    sizes = data.draw(SIZES)
    weights = data.draw(
        st.lists(st.floats(1e-3, 1e3), min_size=len(sizes), max_size=len(sizes)), label="weights"
    )
    found = quotas(sizes, weights)
    assert sum(found) == sum(sizes)
    whole = sum(map(Fraction, weights))
    for quota, weight in zip(found, weights, strict=True):
        assert abs(quota - Fraction(weight) / whole * sum(sizes)) < 1


def test_shares_by_hand() -> None:
    assert quotas([10, 10], [3.0, 1.0]) == [15, 5]
    assert quotas([1000, 10], [1.0, 1.0]) == [505, 505]
    assert quotas([1, 1, 2], [1.0, 1.0, 1.0]) == [2, 1, 1]  # 4/3 each: the one over goes to the first
    assert quotas([7], [0.3]) == [7]


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_every_pair_of_a_corpus_is_used_equally_often_up_to_one(data: st.DataObject) -> None:
    sizes = data.draw(SIZES)
    weights = data.draw(st.lists(WEIGHT, min_size=len(sizes), max_size=len(sizes)))
    mixed = Mixture(sizes, weights, seed=data.draw(st.integers(-3, 2**63 - 1)))
    total = np.zeros(sum(sizes), dtype=np.int64)
    for number in range(4):
        counts = np.bincount(mixed.epoch(number), minlength=sum(sizes))
        total += counts
        assert np.array_equal(mixed.used(number + 1), total)
        for corpus in (counts, total):
            ends = np.cumsum(sizes)
            for end, size in zip(ends, sizes, strict=True):
                part = corpus[end - size : end]
                assert part.max() - part.min() <= 1
        parts = [counts[end - size : end].sum() for end, size in zip(np.cumsum(sizes), sizes, strict=True)]
        assert parts == mixed.quotas


def test_what_an_epoch_holds_follows_from_seed_and_number_alone() -> None:
    def held(seed: int, number: int) -> list[int]:
        return Mixture([50, 30], [1.0, 9.0], seed=seed).epoch(number).tolist()

    one = Mixture([50, 30], [1.0, 9.0], seed=1)
    one.epoch(7)
    assert one.epoch(2).tolist() == held(1, 2)
    assert held(1, 2) != held(1, 3)
    assert held(1, 2) != held(2, 2)
    # 8 of 50 an epoch: no pair comes again before the others have come
    first = [i for number in range(6) for i in held(1, number) if i < 50]
    assert len(first) == len(set(first)) == 48


def test_the_batches_hold_what_the_epoch_holds() -> None:
    mixed = Mixture([60, 20], [1.0, 3.0], seed=5)
    made = batching(80, mixed)
    for number in range(3):
        updates = made.epoch(number)
        assert sorted(ids(updates)) == sorted(mixed.epoch(number).tolist())
        for update in updates:
            for side in (made.source_lengths, made.target_lengths):
                assert sum(int(side[micro].sum()) for micro in update) <= 100
                assert all(int(side[micro].max()) * len(micro) <= 30 for micro in update)
        assert ids(updates) == ids(batching(80, Mixture([60, 20], [1.0, 3.0], seed=5)).epoch(number))
    assert made.target_tokens(3) == sum(made.tokens(made.epoch(number))[1] for number in range(3))
    assert ids(made.epoch(0)) != ids(made.epoch(1))


@pytest.mark.parametrize(
    ("sizes", "weights"), [([40, 40], [1.0, 1.0]), ([60, 20], [3.0, 1.0]), ([80], [7.0])]
)
def test_weights_that_change_nothing_give_the_plain_batches_bit_for_bit(
    sizes: list[int], weights: list[float]
) -> None:
    plain, mixed = batching(80), batching(80, Mixture(sizes, weights, seed=5))
    for number in range(3):
        assert [[m.tolist() for m in u] for u in plain.epoch(number)] == [
            [m.tolist() for m in u] for u in mixed.epoch(number)
        ]
    assert plain.target_tokens(3) == mixed.target_tokens(3) == 3 * int(plain.target_lengths.sum())


def test_the_log_says_shares_and_how_often() -> None:
    lines = Mixture([1000, 10], [1.0, 1.0], seed=1).lines(["a.en", "new.en"])
    assert lines == [
        "a.en: 50.0% of every epoch, 505 of 1,010 pairs; each of its 1,000 pairs is seen once in 1.98 epochs",
        "new.en: 50.0% of every epoch, 505 of 1,010 pairs; each of its 10 pairs is seen 50.5 times an epoch",
    ]


def test_the_shards_know_which_pair_is_of_which_corpus(tmp_path: Path, pairs: Pairs, write: Write) -> None:
    text = list(islice(pairs(60), 60))
    files = [
        (
            write(f"{part}.en", [pair.source for pair in text[first:end]]),
            write(f"{part}.de", ["" if i == 3 else pair.target for i, pair in enumerate(text[first:end])]),
        )
        for part, first, end in (("a", 0, 20), ("b", 20, 50))
    ]
    tsv = write("c.tsv", ["a " * 99 + "\ta", *(f"{pair.source}\t{pair.target}" for pair in text[51:])])
    sources, targets = zip(*files, strict=True)
    valid = {"valid_source": (sources[0],), "valid_target": (targets[0],)}
    config = DataConfig(source=sources, target=targets, tsv=(tsv,), weights=(1.0, 2.0, 3.0), **valid)
    prepared = prepare(config, tmp_path / "data", max_length=99, seed=1)
    assert config.corpora == (*sources, tsv)
    assert prepared.train.corpora == [19, 29, 9]  # an empty side, another, and one that is too long
    # weights are no part of what the folder holds: they change, the data are used again
    other = DataConfig(source=sources, target=targets, tsv=(tsv,), weights=(3.0, 1.0, 1.0), **valid)
    again = prepare(other, tmp_path / "data", max_length=99, seed=1, unchanged=True)
    assert again.reused
    assert again.train.corpora == [19, 29, 9]
    assert prepared.valid.corpora == [19]


def test_one_file_named_twice_is_two_corpora(tmp_path: Path, pairs: Pairs, write: Write) -> None:
    text = list(pairs(30))
    source, target = write("a.en", [p.source for p in text]), write("a.de", [p.target for p in text])
    config = DataConfig(source=(source, source), target=(target, target), valid_pairs=3)
    train = prepare(config, tmp_path / "data", max_length=99, seed=1).train
    assert train.corpora == [len(train) // 2] * 2


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ((1.0,), r"data\.weights holds 1 number for 2 corpora; give one for each pair of data\.source"),
        ((1.0, 0.0), r"data\.weights holds 0; a weight is a finite number above 0"),
        ((1.0, -2.0), r"data\.weights holds -2"),
        ((1.0, float("inf")), r"data\.weights holds inf"),
        ((1.0, float("nan")), r"data\.weights holds nan"),
    ],
)
def test_weights_that_make_no_sense(weights: tuple[float, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DataConfig(source=("a.en",), target=("a.de",), tsv=("b.tsv",), weights=weights)


def test_a_corpus_that_would_never_be_seen_is_refused() -> None:
    with pytest.raises(DataError, match=r"b\.en: none of its pairs can be used"):
        mixture([10], [1.0, 1.0], ["a.en", "b.en"], seed=1)
    with pytest.raises(ConfigError, match=r"gives b\.en 0\.001 of 1\.001, less than one of 20 pairs; raise"):
        mixture([10, 10], [1.0, 0.001], ["a.en", "b.en"], seed=1)
