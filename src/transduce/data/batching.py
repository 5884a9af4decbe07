"""Batches by a budget of tokens, as a pure function of seed and epoch (section 5.1).

Two budgets, both kept on each side by itself: a micro-batch, which the machine works on at once, has at most
``micro_batch_tokens`` positions with its padding; an update, which may gather several micro-batches, has at
most ``batch_tokens`` real tokens, padding not counted. Pairs of about equal length on both sides share a
micro-batch; the order of the micro-batches is random. Nothing here knows how many machines work on an update:
they share out its micro-batches.

A large corpus is not batched at once: the order of its pairs in an epoch is a permutation of which any part
can be worked out (`transduce.data.permutation`), and each part of about a million pairs, a *block*, is
batched by itself. So memory does not grow with the corpus; one of one block has the batches it always had.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from transduce.counts import counted
from transduce.data.mixing import Mixture
from transduce.data.packing import Group, Packer
from transduce.data.permutation import Permutation
from transduce.data.shards import TokenShards, give_back
from transduce.errors import ConfigError

BLOCK = 1 << 20
"""The most pairs that are batched at once."""
_ORDER = 0x4F524452  # keeps the order of the blocks apart from the other draws that seed and epoch begin

Ids = npt.NDArray[np.int64]
Update = tuple[Ids, ...]


class Batching:
    """The batches of a corpus, given the lengths of its pairs (EOS included).

    ``mixture`` says which pairs an epoch holds; without one it holds each once. ``block`` is the most pairs
    that are batched at once; 0: about a million. ``grown`` is the length that a side may have where pairs
    vary (see `transduce.data.variation`), however long the longest is here.
    """

    def __init__(
        self,
        source_lengths: npt.ArrayLike,
        target_lengths: npt.ArrayLike,
        *,
        batch_tokens: int,
        micro_batch_tokens: int,
        seed: int,
        mixture: Mixture | None = None,
        block: int = 0,
        grown: int = 0,
    ) -> None:
        self.source_lengths = np.asarray(source_lengths, dtype=np.int32)
        self.target_lengths = np.asarray(target_lengths, dtype=np.int32)
        self.batch_tokens = batch_tokens
        self.micro_batch_tokens = min(micro_batch_tokens, batch_tokens)
        self.seed = seed
        self.mixture, self.grown = mixture, grown
        pairs = len(self.source_lengths)
        if pairs != len(self.target_lengths) or not pairs:
            raise ConfigError(
                f"{pairs} source and {len(self.target_lengths)} target lengths cannot be "
                "batched; expected equal counts above 0"
            )
        self._last: tuple[tuple[int, int], list[Update]] = (-1, -1), []
        self.blocks = -(-pairs // (block or BLOCK))
        self._widths = _widths(self.source_lengths, self.target_lengths)
        self._longest = len(self._widths[0]) - 1, len(self._widths[1]) - 1
        longest = max(self._longest)
        if longest > self.micro_batch_tokens:
            name = "batch_tokens" if batch_tokens < micro_batch_tokens else "micro_batch_tokens"
            raise ConfigError(
                f"training.{name} is {self.micro_batch_tokens}, but the longest pair has "
                f"{counted(longest, 'token')} on one side; use at least {longest}, or drop long pairs with a "
                "smaller data.max_length"
            )

    def epoch(self, number: int) -> list[Update]:
        """The updates of one epoch: every pair exactly once, the same for the same seed and number.

        With a mixture: every pair as often as the mixture has it in this epoch. All of them are in memory:
        for a large corpus take `block` after `block`.
        """
        return [update for block in range(self.blocks) for update in self.block(number, block)]

    def block(self, number: int, block: int) -> list[Update]:
        """The updates of one block of an epoch, which has ``blocks`` of them.

        The last that was asked for is remembered: a run begins by telling of the block that it then works on.
        """
        if (number, block) != self._last[0]:
            self._last = (number, block), self._block(number, block)
        return self._last[1]

    def _block(self, number: int, block: int) -> list[Update]:
        if self.blocks == 1:
            random = np.random.default_rng((self.seed % 2**64, number))
        else:
            random = np.random.default_rng((self.seed % 2**64, number, block, _ORDER))
        chosen = self._chosen(number, block)
        width = self._longest[1] + 1
        kinds = self.source_lengths[chosen].astype(np.int64) * width + self.target_lengths[chosen]
        for lengths in (self.source_lengths, self.target_lengths):
            give_back(lengths)
        found, counts = np.unique(kinds, return_counts=True)
        # Micro-batches of an equal share of the update each fill it better than full ones and a gap.
        parts = -(-self.batch_tokens // self.micro_batch_tokens)
        packer = Packer(
            found // width,
            found % width,
            positions=self.micro_batch_tokens,
            tokens=self.batch_tokens // parts,
        )
        micro = [chosen[places] for places in _dealt(packer.pack(counts, random), kinds, random)]
        shuffled = [micro[i] for i in random.permutation(len(micro))]
        if self.micro_batch_tokens == self.batch_tokens:
            return [(ids,) for ids in shuffled]
        return self._grouped(shuffled)

    def _chosen(self, number: int, block: int) -> Ids:
        """The pairs of a block: all there are, or a part of an order that is drawn anew for each epoch."""
        pairs = len(self.source_lengths)
        if self.blocks == 1:
            return np.arange(pairs) if self.mixture is None else self.mixture.epoch(number)
        order = Permutation(pairs, (self.seed % 2**64, number, _ORDER))
        places = order(np.arange(pairs * block // self.blocks, pairs * (block + 1) // self.blocks))
        chosen = places if self.mixture is None else self.mixture.at(number, places)
        chosen.sort()  # the lengths are then read from the front to the back
        return chosen

    def staged(self, begins: Sequence[int]) -> Batching:
        """The same batches, but the later weights of the mixture begin with these epochs."""
        assert self.mixture is not None
        other = copy.copy(self)
        other.mixture = self.mixture.staged(begins)
        other._last = (-1, -1), []
        return other

    def updates_an_epoch(self) -> int:
        """How many updates the first epoch has; with several blocks by its first block, so only about."""
        return len(self.block(0, 0)) * self.blocks

    def target_tokens(self, epochs: int) -> int:
        """Real target tokens in the first ``epochs`` epochs.

        With a mixture of several blocks: as many as the pairs of each corpus have on average.
        """
        if self.mixture is None:
            total = int(self.target_lengths.sum(dtype=np.int64)) * epochs
        elif self.blocks == 1:
            total = int(self.target_lengths @ self.mixture.used(epochs))
        else:
            total = 0
            for first, size, used in self.mixture.totals(epochs):
                tokens = int(self.target_lengths[first : first + size].sum(dtype=np.int64))
                total += tokens * used // size
        give_back(self.target_lengths)
        return total

    def tokens(self, updates: Iterable[Update]) -> tuple[int, int]:
        """Real source and target tokens in these updates."""
        ids = np.concatenate([ids for update in updates for ids in update])
        return int(self.source_lengths[ids].sum()), int(self.target_lengths[ids].sum())

    def padding(self, updates: Iterable[Update]) -> tuple[float, float]:
        """The share of the positions on the source and on the target side that hold padding."""
        shares = []
        for lengths in (self.source_lengths, self.target_lengths):
            sides = [lengths[ids] for update in updates for ids in update]
            shares.append(
                1
                - sum(int(side.sum()) for side in sides) / sum(int(side.max()) * len(side) for side in sides)
            )
        return shares[0], shares[1]

    def largest_shapes(self) -> list[tuple[int, int, int]]:
        """Shapes (rows, source length, target length) that no micro-batch exceeds, for a memory trial.

        The longest pairs come first: attention needs the most for them. The others stand for micro-batches of
        pairs of median and of least length, filled to the budget on both sides.
        """
        widest = self._widths[2]
        present = np.flatnonzero(widest)
        pairs, (source, target) = int(widest.sum()), (max(side, self.grown) for side in self._longest)
        middle = np.searchsorted(np.cumsum(widest), [(pairs + 1) // 2, pairs // 2 + 1])
        lengths = dict.fromkeys((max(int(present[-1]), self.grown), int(middle.sum()) // 2, int(present[0])))
        return [
            (min(pairs, self.micro_batch_tokens // length), min(length, source), min(length, target))
            for length in lengths
        ]

    def _grouped(self, micro: Sequence[Ids]) -> list[Update]:
        updates: list[Update] = []
        group: list[Ids] = []
        source = target = 0
        for ids in micro:
            more_source = int(self.source_lengths[ids].sum())
            more_target = int(self.target_lengths[ids].sum())
            if group and max(source + more_source, target + more_target) > self.batch_tokens:
                updates.append(tuple(group))
                group, source, target = [], 0, 0
            group.append(ids)
            source, target = source + more_source, target + more_target
        return [*updates, tuple(group)]


def _widths(source: npt.NDArray[np.int32], target: npt.NDArray[np.int32]) -> tuple[Ids, Ids, Ids]:
    """How many pairs there are of each source length, of each target length, and of the larger of both."""
    sums: list[Ids] = [np.zeros(1, dtype=np.int64)] * 3
    for start in range(0, len(source), BLOCK):
        part = slice(start, start + BLOCK)
        sides = source[part], target[part]
        for i, lengths in enumerate((*sides, np.maximum(*sides))):
            counts = np.bincount(lengths, minlength=len(sums[i]))
            counts[: len(sums[i])] += sums[i]
            sums[i] = counts
        give_back(source)
        give_back(target)
    return sums[0], sums[1], sums[2]


def _dealt(groups: Sequence[Group], kinds_of: Ids, random: np.random.Generator) -> list[Ids]:
    """Places in ``kinds_of``, each once, for the groups; which of a kind meet in one is random."""
    shuffled = random.permutation(len(kinds_of))
    by_kind = shuffled[np.argsort(kinds_of[shuffled], kind="stable")]
    # The takings of all groups, listed by kind, lie in by_kind one after another.
    kinds = np.concatenate([group.kinds for group in groups])
    counts = np.concatenate([group.counts for group in groups])
    order = np.argsort(kinds, kind="stable")
    starts = np.empty_like(counts)
    starts[order] = np.cumsum(counts[order]) - counts[order]
    places = np.arange(len(by_kind)) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
    sizes = [int(group.counts.sum()) for group in groups]
    dealt, ends = by_kind[places], np.cumsum(sizes).tolist()
    return [dealt[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def rectangle(rows: Sequence[npt.NDArray[Any]], pad_id: int) -> Ids:
    """Rows of ids as one array, filled up on the right."""
    filled = np.full((len(rows), max(map(len, rows))), pad_id, dtype=np.int64)
    for place, row in enumerate(rows):
        filled[place, : len(row)] = row
    return filled


def collate(shards: TokenShards, ids: Ids, start_id: int, pad_id: int = 0) -> tuple[Ids, Ids, Ids]:
    """(source, target_in, target_out) of the pairs as int64 rectangles, padded on the right.

    Source and target_out end in EOS; target_in is target_out moved right by one behind ``start_id``.
    """
    source = shards.padded("source", ids, pad_id)
    target_out = shards.padded("target", ids, pad_id)
    target_in = np.full_like(target_out, pad_id)
    target_in[:, 0] = start_id
    inside = np.arange(1, target_out.shape[1]) < shards.target_lengths[ids][:, None]
    target_in[:, 1:][inside] = target_out[:, :-1][inside]
    return source, target_in, target_out
