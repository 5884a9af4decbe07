"""Several corpora in one stream, each with the share that its weight asks for.

An epoch has as many pairs as all corpora together, and of each corpus its quota: weight / sum of the weights
of it, rounded so that the quotas add up (largest remainders first). The pairs of a corpus stand on a ring in
an order drawn once by the seed; epoch k takes the ``quota`` places from k x quota on. So a small corpus with
a large weight is repeated, a large one with a small weight is walked through over several epochs, and at the
end of any epoch the pairs of a corpus have all been used equally often, up to one. What an epoch holds
follows from seed and number alone; batching then draws the order. Weights in proportion to the sizes give
every pair once, in the order of the corpora: the batches are then those without weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from transduce.errors import ConfigError, DataError

PairIds = npt.NDArray[np.int64]

_RING = 0x52494E47  # keeps these draws apart from those of the batches, which seed and epoch begin


def quotas(sizes: Sequence[int], weights: Sequence[float]) -> list[int]:
    """How many pairs of each corpus an epoch holds; as many in all as there are pairs.

    Each is its exact share rounded down or up: exact arithmetic, equal remainders in the order given.
    """
    whole = [Fraction(weight) for weight in weights]
    shares = [weight * sum(sizes) / sum(whole) for weight in whole]
    counts = [int(share) for share in shares]
    by_remainder = sorted(range(len(shares)), key=lambda i: counts[i] - shares[i])
    for corpus in by_remainder[: sum(sizes) - sum(counts)]:
        counts[corpus] += 1
    return counts


class Mixture:
    """Which pairs an epoch holds, for corpora of these sizes that lie one after another."""

    def __init__(self, sizes: Sequence[int], weights: Sequence[float], *, seed: int) -> None:
        self.sizes, self.weights, self.seed = list(sizes), list(weights), seed
        self.quotas = quotas(self.sizes, self.weights)
        self._firsts = np.cumsum([0, *self.sizes])[:-1].tolist()

    def epoch(self, number: int) -> PairIds:
        """The ids of the pairs in this epoch, corpus by corpus; one that comes twice is there twice."""
        parts = []
        for corpus, (size, quota) in enumerate(zip(self.sizes, self.quotas, strict=True)):
            rounds, rest = divmod(quota, size)
            parts += [self._firsts[corpus] + np.arange(size, dtype=np.int64)] * rounds
            if rest:
                places = (number * quota % size + np.arange(rest, dtype=np.int64)) % size
                parts.append(self._firsts[corpus] + self._ring(corpus)[places])
        return np.concatenate(parts)

    def used(self, epochs: int) -> PairIds:
        """How often the first ``epochs`` epochs use each pair."""
        counts = []
        for corpus, (size, quota) in enumerate(zip(self.sizes, self.quotas, strict=True)):
            rounds, rest = divmod(epochs * quota, size)
            count = np.full(size, rounds, dtype=np.int64)
            count[self._ring(corpus)[:rest]] += 1
            counts.append(count)
        return np.concatenate(counts)

    def lines(self, names: Sequence[str]) -> list[str]:
        """What the log says of each corpus: its share, and how often it is seen."""
        return [
            f"{name}: {quota / sum(self.quotas):.1%} of every epoch, {quota:,} of {sum(self.quotas):,} "
            f"pairs; {_often(quota, size)}"
            for name, size, quota in zip(names, self.sizes, self.quotas, strict=True)
        ]

    def _ring(self, corpus: int) -> PairIds:
        random = np.random.default_rng((self.seed % 2**64, corpus, _RING))
        return random.permutation(self.sizes[corpus])


def _often(quota: int, size: int) -> str:
    if quota >= size:
        return f"each of its {size:,} pairs is seen {quota / size:.4g} times an epoch"
    return f"each of its {size:,} pairs is seen once in {size / quota:.4g} epochs"


def mixture(sizes: Sequence[int], weights: Sequence[float], names: Sequence[str], *, seed: int) -> Mixture:
    """The mixture of corpora with these names; ``sizes`` counts the pairs that can be used of each.

    Raises DataError where a corpus has none (sizes may end before it), ConfigError where its weight is too
    small for even one pair an epoch.
    """
    sizes = [*sizes, *[0] * (len(names) - len(sizes))]
    for name, size in zip(names, sizes, strict=True):
        if not size:
            raise DataError(f"{name}: none of its pairs can be used; leave the corpus and its weight out")
    mixed = Mixture(sizes, weights, seed=seed)
    for name, quota, weight in zip(names, mixed.quotas, weights, strict=True):
        if not quota:
            raise ConfigError(
                f"data.weights gives {name} {weight:g} of {sum(weights):g}, less than one of {sum(sizes):,} "
                "pairs; raise it, or leave the corpus out"
            )
    return mixed
