"""Several corpora in one stream, each with the share that its weight asks for.

An epoch has as many pairs as all corpora together, and of each corpus its quota: weight / sum of the weights
of it, rounded so that the quotas add up (largest remainders first). The pairs of a corpus stand on a ring in
an order drawn once by the seed; epoch k takes the ``quota`` places from k x quota on. So a small corpus with
a large weight is repeated, a large one with a small weight is walked through over several epochs, and at the
end of any epoch the pairs of a corpus have all been used equally often, up to one. What an epoch holds
follows from seed and number alone; batching then draws the order. Weights in proportion to the sizes give
every pair once, in the order of the corpora: the batches are then those without weights.

Weights may change as training goes on. Each corpus then goes on along its ring from where it was.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from transduce.counts import counted
from transduce.data.permutation import Permutation
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
    """Which pairs an epoch holds, for corpora of these sizes that lie one after another.

    ``later`` are further weights, each of which holds from the epoch on that ``begins`` names for it (ever
    later ones); there may be fewer of these, where it is not known yet when the others begin.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        weights: Sequence[float],
        *,
        seed: int,
        later: Sequence[Sequence[float]] = (),
        begins: Sequence[int] = (),
    ) -> None:
        self.sizes, self.weights, self.seed = list(sizes), list(weights), seed
        self.later, self.begins = [list(weights) for weights in later], list(begins)
        self._stages = [quotas(self.sizes, weights) for weights in (self.weights, *self.later)]
        self._firsts = np.cumsum([0, *self.sizes])[:-1].tolist()

    @property
    def quotas(self) -> list[int]:
        """How many pairs of each corpus the first epoch holds."""
        return self.quotas_of(self.stage(0))

    def stage(self, number: int) -> int:
        """Which weights hold in an epoch: 0 the first, 1 the first of the later ones."""
        return bisect_right(self.begins, number)

    def quotas_of(self, stage: int) -> list[int]:
        """How many pairs of each corpus an epoch with these weights holds."""
        return self._stages[stage]

    def staged(self, begins: Sequence[int]) -> Mixture:
        """The same, but the later weights begin with these epochs."""
        return Mixture(self.sizes, self.weights, seed=self.seed, later=self.later, begins=begins)

    def epoch(self, number: int) -> PairIds:
        """The ids of the pairs in this epoch, corpus by corpus; one that comes twice is there twice."""
        parts = []
        quotas = self.quotas_of(self.stage(number))
        for corpus, (size, quota) in enumerate(zip(self.sizes, quotas, strict=True)):
            rounds, rest = divmod(quota, size)
            parts += [self._firsts[corpus] + np.arange(size, dtype=np.int64)] * rounds
            if rest:
                places = (self._before(number, corpus) + np.arange(rest, dtype=np.int64)) % size
                parts.append(self._firsts[corpus] + self._ring(corpus)[places])
        return np.concatenate(parts)

    def at(self, number: int, places: PairIds) -> PairIds:
        """The ids of the pairs at some places of this epoch, 0 to the number of pairs - 1.

        Corpus by corpus as in `epoch`; but the order of each ring is one of which any part can be had, so
        that no memory is needed for the others: that of a large corpus.
        """
        ids = np.empty_like(places)
        end = 0
        for corpus, quota in enumerate(self.quotas_of(self.stage(number))):
            begin, end = end, end + quota
            mine = np.flatnonzero((places >= begin) & (places < end))
            size = self.sizes[corpus]
            inside = places[mine] - begin
            rest = inside >= quota // size * size
            found = inside % size
            ring = Permutation(size, (self.seed % 2**64, corpus, _RING))
            found[rest] = ring((self._before(number, corpus) + found[rest]) % size)
            ids[mine] = self._firsts[corpus] + found
        return ids

    def used(self, epochs: int) -> PairIds:
        """How often the first ``epochs`` epochs use each pair."""
        counts = []
        for corpus, (_, size, total) in enumerate(self.totals(epochs)):
            rounds, rest = divmod(total, size)
            count = np.full(size, rounds, dtype=np.int64)
            count[self._ring(corpus)[:rest]] += 1
            counts.append(count)
        return np.concatenate(counts)

    def totals(self, epochs: int) -> list[tuple[int, int, int]]:
        """Of each corpus: its first pair, its size, and how many pairs of it so many epochs use."""
        return [
            (first, size, self._total(epochs, corpus))
            for corpus, (first, size) in enumerate(zip(self._firsts, self.sizes, strict=True))
        ]

    def _total(self, epochs: int, corpus: int) -> int:
        bounds = [0, *(min(begin, epochs) for begin in self.begins), epochs]
        return sum(
            self._stages[stage][corpus] * (end - begin)
            for stage, (begin, end) in enumerate(itertools.pairwise(bounds))
        )

    def _before(self, number: int, corpus: int) -> int:
        """Where on its ring the pairs of a corpus begin in this epoch."""
        return self._total(number, corpus) % self.sizes[corpus]

    def lines(self, names: Sequence[str], stage: int = 0) -> list[str]:
        """What the log says of each corpus: its share, and how often it is seen."""
        quotas = self.quotas_of(stage)
        return [
            f"{name}: {quota / sum(quotas):.1%} of every epoch, {quota:,} of "
            f"{counted(sum(quotas), 'pair')}; {_often(quota, size)}"
            for name, size, quota in zip(names, self.sizes, quotas, strict=True)
        ]

    def _ring(self, corpus: int) -> PairIds:
        random = np.random.default_rng((self.seed % 2**64, corpus, _RING))
        return random.permutation(self.sizes[corpus])


def _often(quota: int, size: int) -> str:
    if not quota:
        return f"none of its {counted(size, 'pair')} is seen"
    if quota >= size:
        return f"each of its {counted(size, 'pair')} is seen {quota / size:.4g} times an epoch"
    return f"each of its {counted(size, 'pair')} is seen once in {size / quota:.4g} epochs"


def mixture(
    sizes: Sequence[int],
    weights: Sequence[float],
    names: Sequence[str],
    *,
    seed: int,
    later: Sequence[Sequence[float]] = (),
    begins: Sequence[int] = (),
) -> Mixture:
    """The mixture of corpora with these names; ``sizes`` counts the pairs that can be used of each.

    Without ``weights`` the mixture begins with every pair once. Raises DataError where a corpus has none
    (sizes may end before it), ConfigError where its weight is too small for even one pair an epoch.
    """
    sizes = [*sizes, *[0] * (len(names) - len(sizes))]
    for name, size in zip(names, sizes, strict=True):
        if not size:
            raise DataError(f"{name}: none of its pairs can be used; leave the corpus and its weight out")
    mixed = Mixture(sizes, weights or [float(size) for size in sizes], seed=seed, later=later, begins=begins)
    for stage, given in enumerate((weights, *later)):
        for name, quota, weight in zip(names, mixed.quotas_of(stage), given, strict=False):
            if weight and not quota:
                raise ConfigError(
                    f"data.weights gives {name} {weight:g} of {sum(given):g}, less than one of "
                    f"{sum(sizes):,} pairs; raise it, or leave the corpus out"
                )
    return mixed
