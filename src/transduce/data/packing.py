"""Which lengths go together into a micro-batch, so that little of it is padding.

The corpus is seen as a table: how many pairs there are of each (source length, target length). The table is
halved again and again along the side where this saves more, until a part holds a few batches' worth; a part
is then sorted along the side that wastes less and cut into full batches, and what is left over joins the
next part, which lies beside it. The work depends on the number of different lengths and of batches, not on
the number of pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]

# The best of 1 to 8 on Multi30k and Tatoeba, for budgets of 4,096 and 25,000 tokens.
_BATCHES_PER_PART = 3.0


class Group(NamedTuple):
    """So many pairs of each of some kinds; a kind is a place in the table of length pairs."""

    kinds: Counts
    counts: Counts


class Packer:
    """Cuts the table with the lengths ``source[kind]`` and ``target[kind]`` into groups, one a micro-batch.

    In each group, on each side, the longest length times the number of pairs is at most ``positions``, and
    the sum of the lengths at most ``tokens``, except that a group of one pair need not keep the latter.
    """

    def __init__(self, source: Counts, target: Counts, *, positions: int, tokens: int) -> None:
        self.source, self.target = source, target
        self.widest = np.maximum(source, target)
        self.positions, self.tokens = positions, tokens

    def pack(self, counts: Counts, random: np.random.Generator) -> list[Group]:
        """The groups that share out ``counts[kind]`` pairs of each kind; ``random`` varies the cuts."""
        groups: list[Group] = []
        left = Group(np.empty(0, np.int64), np.empty(0, np.int64))
        for part in self._parts(Group(np.flatnonzero(counts), counts[counts > 0]), random):
            part = Group(np.concatenate([left.kinds, part.kinds]), np.concatenate([left.counts, part.counts]))
            cuts = [self._cut(_ordered(part, major, minor)) for major, minor in self._sides(part)]
            *full, left = min(cuts, key=lambda cut: cut[0])[1]
            groups.extend(full)
        return [*groups, left]

    def _sides(self, part: Group) -> tuple[tuple[Counts, Counts], tuple[Counts, Counts]]:
        source, target = self.source[part.kinds], self.target[part.kinds]
        return (source, target), (target, source)

    def _parts(self, whole: Group, random: np.random.Generator) -> Iterator[Group]:
        """The parts of the table, neighbours after one another."""
        waiting = [whole]
        while waiting:
            part = waiting.pop()
            weight = int((self.widest[part.kinds] * part.counts).sum())
            if weight <= _BATCHES_PER_PART * self.positions or len(part.kinds) == 1:
                yield part
                continue
            share = random.uniform(0.45, 0.55)
            halves = [self._halves(_ordered(part, major, minor), share) for major, minor in self._sides(part)]
            low, high = min(halves, key=lambda pair: self._area(pair[0]) + self._area(pair[1]))
            waiting += [high, low]

    def _halves(self, part: Group, share: float) -> tuple[Group, Group]:
        """An ordered part in two: about ``share`` of its tokens, and the rest; neither is empty."""
        weights = np.cumsum(self.widest[part.kinds] * part.counts)
        at = int(np.searchsorted(weights, share * weights[-1]))
        inside = share * weights[-1] - (weights[at - 1] if at else 0)
        below = int(part.counts[:at].sum()) + round(inside / int(self.widest[part.kinds[at]]))
        below = min(max(below, 1), int(part.counts.sum()) - 1)
        return _split(part, below)

    def _area(self, part: Group) -> int:
        return int(part.counts.sum()) * int(self.source[part.kinds].max() + self.target[part.kinds].max())

    def _cut(self, part: Group) -> tuple[float, list[Group]]:
        """An ordered part in groups as large as the budgets allow, the last as large as it happens to be.

        Before them, their waste: padded positions for each real token; the last group does not count, unless
        it is the only one. Plain loops: a group has only a few kinds, and arrays of a few numbers are slow.
        """
        groups: list[Group] = []
        group = _Growing(self.positions, self.tokens)
        area = real = 0
        source, target = self.source[part.kinds].tolist(), self.target[part.kinds].tolist()
        kinds, counts = part.kinds.tolist(), part.counts.tolist()
        for s, t, kind, count in zip(source, target, kinds, counts, strict=True):
            while count:
                taken = group.take(kind, count, s, t)
                count -= taken
                if not taken:
                    groups.append(group.done())
                    area, real = area + group.area, real + group.source_tokens + group.target_tokens
                    group = _Growing(self.positions, self.tokens)
        if not groups:
            area, real = group.area, group.source_tokens + group.target_tokens
        return area / real, [*groups, group.done()]


class _Growing:
    """A group that is being filled."""

    def __init__(self, positions: int, tokens: int) -> None:
        self.positions, self.tokens = positions, tokens
        self.kinds: list[int] = []
        self.counts: list[int] = []
        self.size = self.longest_source = self.longest_target = self.source_tokens = self.target_tokens = 0

    @property
    def area(self) -> int:
        return self.size * (self.longest_source + self.longest_target)

    def take(self, kind: int, count: int, source: int, target: int) -> int:
        """How many of ``count`` pairs of a kind were taken; the first pair always is."""
        room = min(
            self.positions // max(source, target, self.longest_source, self.longest_target) - self.size,
            (self.tokens - self.source_tokens) // source,
            (self.tokens - self.target_tokens) // target,
        )
        taken = min(count, max(room, 0 if self.size else 1))
        if taken > 0:
            self.kinds.append(kind)
            self.counts.append(taken)
            self.size += taken
            self.longest_source, self.longest_target = (
                max(self.longest_source, source),
                max(self.longest_target, target),
            )
            self.source_tokens += taken * source
            self.target_tokens += taken * target
        return max(taken, 0)

    def done(self) -> Group:
        return Group(np.array(self.kinds, dtype=np.int64), np.array(self.counts, dtype=np.int64))


def _ordered(part: Group, major: Counts, minor: Counts) -> Group:
    order = np.lexsort((minor, major))
    return Group(part.kinds[order], part.counts[order])


def _split(part: Group, size: int) -> tuple[Group, Group]:
    """The first ``size`` pairs of an ordered part, and the others; a kind may be on both sides."""
    ends = np.cumsum(part.counts)
    at = int(np.searchsorted(ends, size))
    first, rest = part.counts[: at + 1].copy(), part.counts[at:].copy()
    rest[0] = ends[at] - size
    first[at] -= rest[0]
    skip = int(rest[0] == 0)
    return Group(part.kinds[: at + 1], first), Group(part.kinds[at + skip :], rest[skip:])
