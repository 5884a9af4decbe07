"""Batches by a budget of tokens, as a pure function of seed and epoch (section 5.1).

Two budgets, both kept on each side by itself: a micro-batch, which the machine works on at once, has at most
``micro_batch_tokens`` positions with its padding; an update, which may gather several micro-batches, has at
most ``batch_tokens`` real tokens, padding not counted. Pairs of about equal length on both sides share a
micro-batch; the order of the micro-batches is random. Nothing here knows how many machines work on an update:
they share out its micro-batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from transduce.data.mixing import Mixture
from transduce.data.packing import Group, Packer
from transduce.data.shards import TokenShards
from transduce.errors import ConfigError

Ids = npt.NDArray[np.int64]
Update = tuple[Ids, ...]


class Batching:
    """The batches of a corpus, given the lengths of its pairs (EOS included).

    ``mixture`` says which pairs an epoch holds; without one it holds each once.
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
    ) -> None:
        self.source_lengths = np.asarray(source_lengths, dtype=np.int32)
        self.target_lengths = np.asarray(target_lengths, dtype=np.int32)
        self.batch_tokens = batch_tokens
        self.micro_batch_tokens = min(micro_batch_tokens, batch_tokens)
        self.seed = seed
        self.mixture = mixture
        if len(self.source_lengths) != len(self.target_lengths) or not len(self.source_lengths):
            raise ConfigError(
                f"{len(self.source_lengths)} source and {len(self.target_lengths)} target lengths cannot be "
                "batched; expected equal counts above 0"
            )
        longest = int(max(self.source_lengths.max(), self.target_lengths.max()))
        if longest > self.micro_batch_tokens:
            name = "batch_tokens" if batch_tokens < micro_batch_tokens else "micro_batch_tokens"
            raise ConfigError(
                f"training.{name} is {self.micro_batch_tokens}, but the longest pair has {longest} tokens on "
                f"one side; use at least {longest}, or drop long pairs with a smaller data.max_length"
            )
        width = int(self.target_lengths.max()) + 1
        self._kinds = self.source_lengths.astype(np.int64) * width + self.target_lengths
        found, self._counts = np.unique(self._kinds, return_counts=True)
        self._found = found
        # Micro-batches of an equal share of the update each fill it better than full ones and a gap.
        parts = -(-batch_tokens // self.micro_batch_tokens)
        self._packer = Packer(
            found // width, found % width, positions=self.micro_batch_tokens, tokens=batch_tokens // parts
        )

    def epoch(self, number: int) -> list[Update]:
        """The updates of one epoch: every pair exactly once, the same for the same seed and number.

        With a mixture: every pair as often as the mixture has it in this epoch.
        """
        random = np.random.default_rng((self.seed % 2**64, number))
        if self.mixture is None:
            micro = self._dealt(self._packer.pack(self._counts, random), self._kinds, random)
        else:
            chosen = self.mixture.epoch(number)
            kinds = self._kinds[chosen]
            groups = self._packer.pack(self._counted(kinds), random)
            micro = [chosen[places] for places in self._dealt(groups, kinds, random)]
        order = random.permutation(len(micro))
        shuffled = [micro[i] for i in order]
        if self.micro_batch_tokens == self.batch_tokens:
            return [(ids,) for ids in shuffled]
        return self._grouped(shuffled)

    def target_tokens(self, epochs: int) -> int:
        """Real target tokens in the first ``epochs`` epochs."""
        if self.mixture is None:
            return int(self.target_lengths.sum()) * epochs
        return int(self.target_lengths @ self.mixture.used(epochs))

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
        widest = np.maximum(self.source_lengths, self.target_lengths)
        source, target = int(self.source_lengths.max()), int(self.target_lengths.max())
        lengths = dict.fromkeys(int(length) for length in (widest.max(), np.median(widest), widest.min()))
        return [
            (min(len(widest), self.micro_batch_tokens // length), min(length, source), min(length, target))
            for length in lengths
        ]

    def _counted(self, kinds: Ids) -> Ids:
        """How many there are of each kind that the corpus has, in their order."""
        met, times = np.unique(kinds, return_counts=True)
        counts: Ids = np.zeros(len(self._counts), dtype=np.int64)
        counts[np.searchsorted(self._found, met)] = times
        return counts

    def _dealt(self, groups: Sequence[Group], kinds_of: Ids, random: np.random.Generator) -> list[Ids]:
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
