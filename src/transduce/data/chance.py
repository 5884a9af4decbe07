"""Random numbers that are a pure function of what they are for, so that nothing has to be drawn in order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def keys(first: int, *parts: int | npt.NDArray[np.integer]) -> Keys:
    """One key of 64 bits for each element of the parts, which are numbers or arrays of one length.

    Parts are mixed in one after another by the step of SplitMix64 (Steele et al., 2014).
    """
    mixed = _mix(np.array([first % 2**64], dtype=np.uint64))
    for part in parts:
        values = np.atleast_1d(np.asarray(part)).astype(np.uint64)
        mixed = _mix(mixed ^ values)
    return mixed


def further(keys: Keys, part: npt.NDArray[np.integer] | int) -> Keys:
    """The keys with one more part mixed in."""
    return _mix(keys ^ np.atleast_1d(np.asarray(part)).astype(np.uint64))


def uniform(keys: Keys) -> npt.NDArray[np.float64]:
    """For each key a number in [0, 1)."""
    return (keys >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(values: Keys) -> Keys:
    values = values + _GOLDEN
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    mixed: Keys = values ^ (values >> np.uint64(31))
    return mixed
