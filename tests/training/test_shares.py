"""An update is divided among workers so that nothing is lost, doubled or waited for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transduce.training.distributed import Workers
from transduce.training.shares import busiest_share, own_batches, parts
from transduce.training.step import Batch

SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=9)


def _update(sizes: list[int]) -> tuple[np.ndarray, ...]:
    ends = np.cumsum(sizes)
    return tuple(np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True))


@given(SIZES, st.integers(1, 12))
def test_each_pair_is_counted_once_and_all_workers_have_as_many_parts(sizes: list[int], workers: int) -> None:
    update = _update(sizes)
    dealt = [parts(update, rank, workers) for rank in range(workers)]
    counted = [i for mine in dealt for part in mine if part.counted for i in part.ids]
    assert sorted(counted) == list(range(sum(sizes)))
    assert len({len(mine) for mine in dealt}) == 1
    assert all(len(part.ids) for mine in dealt for part in mine)


def _seeds(sizes: list[int], workers: int, step: int = 5) -> dict[tuple[int, ...], int | None]:
    found = {}
    for rank in range(workers):
        made = []

        def make(ids: np.ndarray, made: list[tuple[int, ...]] = made) -> Batch:
            made.append(tuple(ids.tolist()))
            row = torch.zeros(len(ids), 1, dtype=torch.long)
            return Batch(row, row, row, len(ids), len(ids))

        batches = own_batches(_update(sizes), Workers(rank, workers), (1, step), make)
        found |= {ids: b.seed for ids, b in zip(made, batches, strict=True) if b.target_tokens}
    return found


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_the_masks_of_a_micro_batch_do_not_depend_on_who_draws_them(workers: int) -> None:
    alone = _seeds([3, 4, 2, 5, 1], workers=1)
    assert _seeds([3, 4, 2, 5, 1], workers) == alone
    assert len(set(alone.values())) == 5


def test_masks_differ_between_updates_and_between_the_shares_of_one_micro_batch() -> None:
    assert set(_seeds([8], 4).values()).isdisjoint(_seeds([8], 4, step=6).values())
    assert len(set(_seeds([8], 4).values())) == 4


def test_the_share_of_the_busiest() -> None:
    lengths = np.full(100, 7, dtype=np.int32)
    assert busiest_share([_update([4, 4, 4, 4])], lengths, 4) == 1.0
    assert busiest_share([_update([4, 4, 4, 4, 4])], lengths, 4) == pytest.approx(8 / 5)
    assert busiest_share([_update([5])], lengths, 4) == pytest.approx(8 / 5)
    assert busiest_share([_update([1])], lengths, 4) == pytest.approx(4)
