"""A random order of any number of things, of which any part can be had without the rest.

The places 0 .. size - 1 are laid out as a rectangle, and in each of some rounds every row, then every column,
is turned by an amount that a hash of its number and a key decides: a Feistel network (Luby and Rackoff, 1988)
on two numbers. Each round can be undone, so no two places meet. Where the rectangle has more places than
there are things, a place that falls outside walks on along its cycle until it is back inside.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]

_ROUNDS = 6


class Permutation:
    """A one-to-one map of 0 .. ``size`` - 1 onto itself; which one, the numbers in ``key`` decide."""

    def __init__(self, size: int, key: tuple[int, ...]) -> None:
        self.size = size
        self._rows = np.uint64(max(1, math.isqrt(max(0, size - 1)) + 1))
        self._columns = np.uint64(max(1, -(-size // int(self._rows))))
        self._keys = np.random.SeedSequence(key).generate_state(2 * _ROUNDS, np.uint64).astype(np.uint64)

    def __call__(self, places: Places) -> Places:
        """What stands at each of the places."""
        found = self._once(places.astype(np.uint64))
        outside = np.flatnonzero(found >= np.uint64(self.size))
        while len(outside):
            found[outside] = self._once(found[outside])
            outside = outside[found[outside] >= np.uint64(self.size)]
        return found.astype(np.int64)

    def _once(self, places: _Words) -> _Words:
        row, column = places // self._columns, places % self._columns
        for first, second in self._keys.reshape(_ROUNDS, 2):
            row = (row + _mixed(column, first)) % self._rows
            column = (column + _mixed(row, second)) % self._columns
        return row * self._columns + column


def _mixed(numbers: _Words, key: np.uint64) -> _Words:
    """32 bits that depend on every bit of number and key: SplitMix64's finaliser (Steele et al., 2014)."""
    word = numbers + key
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word >> np.uint64(32)
