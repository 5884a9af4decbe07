"""Which texts were met before, in 8 bytes each.

A text is known by 64 bits of its BLAKE2b hash. Among n different ones the expected number that are taken for
copies and are none is n^2 / 2^65: one in 370,000 corpora of 10 million pairs, or in 40,000 of 30 million.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

Fingerprints = npt.NDArray[np.uint64]


def fingerprints(pairs: Iterable[tuple[str, str]]) -> Fingerprints:
    """64 bits that tell the pairs of texts apart, the same in every process and on every machine."""
    hashes = (
        # Where the first text ends is part of what is hashed.
        blake2b(f"{len(one)} {one}{other}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for one, other in pairs
    )
    return np.frombuffer(b"".join(hashes), "<u8").astype(np.uint64, copy=False)


class Met:
    """A set of fingerprints that grows: sorted arrays, each more than twice as long as the next.

    There are never more than about log2(n) of them, and each fingerprint is merged as often.
    """

    def __init__(self) -> None:
        self._runs: list[Fingerprints] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(self, values: Fingerprints) -> npt.NDArray[np.bool_]:
        """Which of the values are new, the first of several equal ones alone; all are met afterwards."""
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        new = np.ones(len(values), np.bool_)
        new[1:] = ordered[1:] != ordered[:-1]
        for run in self._runs:
            # Looked up in their order, neighbours lie near each other in memory.
            places = np.minimum(np.searchsorted(run, ordered), len(run) - 1)
            new &= run[places] != ordered
        if new.any():
            self._append(ordered[new])
        result = np.empty(len(values), np.bool_)
        result[order] = new
        return result

    def _append(self, run: Fingerprints) -> None:
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            # Two sorted runs one after the other: what a stable sort is fast at.
            run = np.sort(np.concatenate((self._runs.pop(), run)), kind="stable")
        self._runs.append(run)
