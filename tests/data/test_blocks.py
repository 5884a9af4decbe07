"""Corpora that are too large to be batched at once: what holds for small ones holds for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.data import batching as module
from transduce.data.batching import Batching, Update
from transduce.data.mixing import Mixture


def ids(updates: list[Update]) -> list[int]:
    return [int(i) for update in updates for micro in update for i in micro]


def made(
    count: int, block: int, mixed: Mixture | None = None, seed: int = 5, batch: int = 100, micro: int = 30
) -> Batching:
    random = np.random.default_rng(1)
    source, target = random.integers(2, 12, count), random.integers(2, 12, count)
    return Batching(
        source,
        target,
        batch_tokens=batch,
        micro_batch_tokens=micro,
        seed=seed,
        mixture=mixed,
        block=block,
    )


@settings(max_examples=60, deadline=None)
@given(count=st.integers(1, 300), blocks=st.integers(1, 7), seed=st.integers(-3, 2**63 - 1))
def test_every_pair_once_within_both_budgets(count: int, blocks: int, seed: int) -> None:
    block = -(-count // blocks)
    batching = made(count, block, seed=seed)
    assert batching.blocks == -(-count // block)
    for epoch in range(2):
        updates = batching.epoch(epoch)
        assert sorted(ids(updates)) == list(range(count))
        for update in updates:
            for side in (batching.source_lengths, batching.target_lengths):
                assert sum(int(side[micro].sum()) for micro in update) <= 100
                assert all(int(side[micro].max()) * len(micro) <= 30 for micro in update)


def test_a_block_follows_from_seed_epoch_and_its_number_alone() -> None:
    one, other = made(1000, 300), made(1000, 300)
    one.epoch(0)
    for epoch, block in ((3, 2), (0, 0), (1, 3)):
        assert ids(one.block(epoch, block)) == ids(other.block(epoch, block))
    assert ids(one.block(0, 0)) != ids(one.block(1, 0))
    assert ids(one.block(0, 0)) != ids(made(1000, 300, seed=6).block(0, 0))


def test_which_block_a_pair_is_in_is_drawn_anew_for_each_epoch() -> None:
    batching = made(4000, 1000)
    first = [set(ids(batching.block(0, block))) for block in range(4)]
    again = set(ids(batching.block(1, 0)))
    assert all(200 < len(again & block) < 300 for block in first)  # 250, give or take 14
    assert abs(np.mean(list(again)) - 2000) < 150  # neither the front nor the back of the files


def test_one_block_has_the_batches_of_a_corpus_that_was_never_divided() -> None:
    whole, exactly = made(500, 10**9), made(500, 500)
    for epoch in range(2):
        assert ids(whole.epoch(epoch)) == ids(exactly.epoch(epoch)) == ids(whole.block(epoch, 0))
    assert made(500, 499).blocks == 2


def test_little_more_padding_than_in_one_piece() -> None:
    random = np.random.default_rng(0)
    source = np.clip(random.lognormal(np.log(14), 0.4, 60_000), 2, 60).astype(np.int64)
    target = np.clip(source * random.normal(1.05, 0.2, 60_000), 2, 60).astype(np.int64)
    sizes = {"batch_tokens": 4096, "micro_batch_tokens": 4096, "seed": 1}
    one, many = Batching(source, target, **sizes), Batching(source, target, **sizes, block=20_000)
    assert max(many.padding(many.epoch(0))) < max(one.padding(one.epoch(0))) + 0.03  # 70 batches a block
    assert len(many.epoch(0)) < 1.03 * len(one.epoch(0))
    assert many.updates_an_epoch() == pytest.approx(len(many.epoch(0)), rel=0.02)
    assert one.updates_an_epoch() == len(one.epoch(0))
    assert one.largest_shapes() == many.largest_shapes()
    assert one.target_tokens(2) == many.target_tokens(2) == 2 * int(target.sum())


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_shapes_for_the_memory_trial_are_those_of_the_lengths(data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=50))
    source, target = (np.array(side) for side in zip(*pairs, strict=True))
    batching = Batching(source, target, batch_tokens=90, micro_batch_tokens=90, seed=1)
    widest = np.maximum(source, target)
    expected = dict.fromkeys(int(length) for length in (widest.max(), np.median(widest), widest.min()))
    assert batching.largest_shapes() == [
        (min(len(pairs), 90 // n), min(n, source.max()), min(n, target.max())) for n in expected
    ]


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_mixtures_are_exact_in_blocks_too(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 60), min_size=1, max_size=4))
    weights = data.draw(st.lists(st.sampled_from([1.0, 2.0, 7.0]), min_size=len(sizes), max_size=len(sizes)))
    later = [data.draw(st.lists(st.sampled_from([1.0, 3.0]), min_size=len(sizes), max_size=len(sizes)))]
    mixed = Mixture(sizes, weights, seed=5, later=later, begins=[2])
    batching = made(sum(sizes), -(-sum(sizes) // data.draw(st.integers(1, 5))), mixed)
    total = np.zeros(sum(sizes), dtype=np.int64)
    for number in range(4):
        counts = np.bincount(ids(batching.epoch(number)), minlength=sum(sizes))
        total += counts
        ends = np.cumsum(sizes)
        quotas = mixed.quotas_of(int(number >= 2))
        for end, size, quota in zip(ends, sizes, quotas, strict=True):
            assert counts[end - size : end].sum() == quota
            for used in (counts[end - size : end], total[end - size : end]):
                assert used.max() - used.min() <= 1


def test_the_tokens_of_a_mixture_are_about_those_that_come() -> None:
    mixed = Mixture([3000, 1000], [1.0, 2.0], seed=5)
    batching = made(4000, 700, mixed)
    real = sum(batching.tokens(batching.epoch(number))[1] for number in range(3))
    assert batching.target_tokens(3) == pytest.approx(real, rel=0.02)


def test_lengths_are_counted_part_by_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = made(700, 100)
    monkeypatch.setattr(module, "BLOCK", 64)
    assert made(700, 100).largest_shapes() == whole.largest_shapes()
    mapped = np.memmap(tmp_path / "lengths", dtype="<i4", mode="w+", shape=700)
    mapped[:] = whole.source_lengths
    again = Batching(mapped, whole.target_lengths, batch_tokens=100, micro_batch_tokens=30, seed=5, block=100)
    assert np.shares_memory(again.source_lengths, mapped)  # no copy of them is made
    assert ids(again.epoch(1)) == ids(whole.epoch(1))
