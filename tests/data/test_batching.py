from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.data.batching import Batching, Update
from transduce.errors import ConfigError

Lengths = npt.NDArray[np.int64]


def lengths(count: int, seed: int = 0, mean: float = 14.0) -> tuple[Lengths, Lengths]:
    """Lengths like those of a real corpus: skewed, and alike on both sides."""
    random = np.random.default_rng(seed)
    source = np.clip(random.lognormal(np.log(mean), 0.4, count), 2, 60).astype(np.int64)
    target = np.clip(source * random.normal(1.05, 0.2, count) + random.normal(0, 1, count), 2, 60)
    return source, target.astype(np.int64)


def batching(source: Any, target: Any, *, batch: int, micro: int, seed: int = 1) -> Batching:
    return Batching(source, target, batch_tokens=batch, micro_batch_tokens=micro, seed=seed)


def check(updates: list[Update], source: Lengths, target: Lengths, batch: int, micro: int) -> None:
    everything = np.concatenate([ids for update in updates for ids in update])
    assert everything.dtype == np.int64
    assert np.array_equal(np.sort(everything), np.arange(len(source)))
    for update in updates:
        assert update
        for side in (source, target):
            assert sum(int(side[ids].sum()) for ids in update) <= batch
            for ids in update:
                assert len(ids)
                assert int(side[ids].max()) * len(ids) <= micro


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_every_pair_once_within_both_budgets(data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=200))
    source, target = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True))
    longest = int(max(source.max(), target.max()))
    micro = data.draw(st.integers(longest, 400))
    batch = data.draw(st.integers(longest, 1000))
    made = batching(source, target, batch=batch, micro=micro, seed=data.draw(st.integers(-9, 9)))
    for epoch in range(2):
        updates = made.epoch(epoch)
        check(updates, source, target, batch, micro)
        if micro >= batch:
            assert all(len(update) == 1 for update in updates)
        for rows, source_length, target_length in made.largest_shapes():
            assert rows * max(source_length, target_length) <= micro
        longest_shape = made.largest_shapes()[0]
        assert longest_shape[1:] == (source.max(), target.max())


def test_budget_of_a_hundred_by_hand() -> None:
    """Ten pairs of 10 source and 5 target tokens: 100 source and 50 target tokens in one update."""
    source, target = np.full(10, 10), np.full(10, 5)
    made = batching(source, target, batch=100, micro=100)
    (update,) = made.epoch(0)
    assert made.tokens([update]) == (100, 50)
    assert made.padding([update]) == (0.0, 0.0)
    assert [len(update) for update in batching(source, target, batch=99, micro=50).epoch(0)] == [2, 1]
    assert made.largest_shapes() == [(10, 10, 5)]


def test_the_same_seed_repeats_and_another_epoch_or_seed_differs() -> None:
    source, target = lengths(3000)

    def run(seed: int, epoch: int) -> list[list[list[int]]]:
        updates = batching(source, target, batch=4000, micro=1000, seed=seed).epoch(epoch)
        return [[ids.tolist() for ids in update] for update in updates]

    assert run(1, 0) == run(1, 0)
    assert run(1, 7) == run(1, 7)
    assert run(1, 0) != run(1, 1)
    assert run(1, 0) != run(2, 0)


def test_which_pairs_meet_changes_from_epoch_to_epoch() -> None:
    source, target = lengths(3000)
    made = batching(source, target, batch=1000, micro=1000)
    first, second = (
        {frozenset(ids.tolist()) for update in made.epoch(epoch) for ids in update} for epoch in (0, 1)
    )
    assert len(first & second) < 0.05 * len(first)


def test_an_epoch_is_a_function_of_its_number_alone() -> None:
    source, target = lengths(500)
    one, other = (batching(source, target, batch=900, micro=300) for _ in range(2))
    one.epoch(0)
    one.epoch(5)
    assert [[ids.tolist() for ids in u] for u in one.epoch(3)] == [
        [ids.tolist() for ids in u] for u in other.epoch(3)
    ]


def test_the_order_does_not_follow_the_length() -> None:
    source, target = lengths(20_000)
    updates = batching(source, target, batch=256, micro=256).epoch(3)
    mean_lengths = [source[update[0]].mean() for update in updates]
    assert len(updates) > 1000
    correlation = np.corrcoef(mean_lengths, np.arange(len(updates)))[0, 1]
    assert abs(correlation) < 0.1


def test_little_padding_and_full_updates() -> None:
    source, target = lengths(29_000)
    made = batching(source, target, batch=25_000, micro=4096)
    updates = made.epoch(0)
    assert max(made.padding(updates)) < 0.06
    real = max(made.tokens(updates)) / len(updates)
    assert 0.9 * 25_000 < real <= 25_000
    alone = batching(source, target, batch=4096, micro=4096)
    assert max(made.padding(alone.epoch(0))) < 0.07
    assert max(alone.tokens(alone.epoch(0))) / len(alone.epoch(0)) > 0.85 * 4096


def test_paper_budget_reaches_fifteen_thousand_real_tokens() -> None:
    source, target = lengths(29_000)
    made = batching(source, target, batch=25_000, micro=25_000)
    updates = made.epoch(0)
    assert min(made.tokens(updates)) / len(updates) > 15_000


def test_large_corpora_take_seconds() -> None:
    source, target = lengths(400_000, mean=24)
    start = time.process_time()
    updates = batching(source, target, batch=25_000, micro=4096).epoch(0)
    assert time.process_time() - start < 15  # half a second on an idle core, without type checks
    assert sum(len(ids) for update in updates for ids in update) == 400_000


def test_a_pair_longer_than_the_budget_is_refused_before_training() -> None:
    with pytest.raises(
        ConfigError, match=r"training.micro_batch_tokens is 99, .*longest pair has 100 tokens.*100"
    ):
        batching([3, 4], [100, 5], batch=1000, micro=99)
    with pytest.raises(ConfigError, match=r"training.batch_tokens is 50, .*longest pair has 60"):
        batching([60], [5], batch=50, micro=99)
    with pytest.raises(ConfigError, match="0 source and 0 target lengths"):
        batching([], [], batch=50, micro=99)
    with pytest.raises(ConfigError, match="2 source and 1 target lengths"):
        batching([1, 2], [1], batch=50, micro=99)


def test_one_pair_longer_than_its_share_of_an_update() -> None:
    """Two micro-batches of 50 real tokens fill an update of 100, but a pair of 60 may stand alone."""
    source = np.array([60, 10, 10, 10, 10, 10])
    updates = batching(source, source, batch=100, micro=80).epoch(0)
    check(updates, source, source, 100, 80)
