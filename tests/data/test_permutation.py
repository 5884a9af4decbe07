from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.data.permutation import Permutation


@settings(max_examples=200, deadline=None)
@given(size=st.integers(1, 3000), key=st.integers(0, 2**64 - 1))
def test_each_place_holds_another_thing(size: int, key: int) -> None:
    found = Permutation(size, (key, 1))(np.arange(size))
    assert found.dtype == np.int64
    assert np.array_equal(np.sort(found), np.arange(size))


@settings(max_examples=50, deadline=None)
@given(size=st.integers(2, 2000), cut=st.integers(0, 2000))
def test_a_part_is_that_part_of_the_whole(size: int, cut: int) -> None:
    order = Permutation(size, (7,))
    places = np.arange(size)
    whole = order(places)
    assert np.array_equal(np.concatenate([order(places[:cut]), order(places[cut:])]), whole)
    assert np.array_equal(order(places[::-1]), whole[::-1])


def test_the_key_decides_and_nothing_else() -> None:
    places = np.arange(1000)
    assert np.array_equal(Permutation(1000, (1, 2))(places), Permutation(1000, (1, 2))(places))
    same = (Permutation(1000, (1, 2))(places) == Permutation(1000, (1, 3))(places)).sum()
    assert same < 10  # one is expected


def test_thirty_million_places_stay_apart_and_inside() -> None:
    size, part = 30_000_000, 200_000
    found = Permutation(size, (5,))(np.arange(size - part, size))
    assert len(np.unique(found)) == part
    assert found.min() >= 0
    assert found.max() < size


def test_where_a_thing_goes_looks_drawn() -> None:
    """Over many keys, each thing is as often at each place; and neighbours do not stay together."""
    size, keys = 30, 6000
    times = np.zeros((size, size))
    for key in range(keys):
        times[np.arange(size), Permutation(size, (key,))(np.arange(size))] += 1
    expected = keys / size
    chi_square = ((times - expected) ** 2 / expected).sum()
    freedom = (size - 1) ** 2
    assert abs(chi_square - freedom) < 5 * (2 * freedom) ** 0.5
    large = Permutation(1_000_000, (3,))(np.arange(20_000)).astype(float)
    assert abs(np.corrcoef(large[:-1], large[1:])[0, 1]) < 0.03
    steps = np.diff(large)
    assert len(np.unique(steps)) > 0.9 * len(steps)
    blocks = np.bincount((large // 100_000).astype(int), minlength=10)
    assert ((blocks - 2000) ** 2 / 2000).sum() < 9 + 5 * 18**0.5
