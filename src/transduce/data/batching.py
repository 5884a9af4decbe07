"""Batches by a budget of tokens, as a pure function of seed and epoch (section 5.1).

Two budgets, both counted on each side by itself: a micro-batch, which the machine works on at once, has at
most ``micro_batch_tokens`` positions with its padding; an update, which may gather several micro-batches,
has at most ``batch_tokens`` real tokens, padding not counted. Pairs of about equal length on both sides
share a micro-batch; the order of the micro-batches is random.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from transduce.data.shards import TokenShards
from transduce.errors import ConfigError

Ids = npt.NDArray[np.int64]
Update = tuple[Ids, ...]


class Batching:
    """The batches of a corpus, given the lengths of its pairs (EOS included)."""

    def __init__(
        self,
        source_lengths: npt.ArrayLike,
        target_lengths: npt.ArrayLike,
        *,
        batch_tokens: int,
        micro_batch_tokens: int,
        seed: int,
    ) -> None:
        self.source_lengths = np.asarray(source_lengths, dtype=np.int32)
        self.target_lengths = np.asarray(target_lengths, dtype=np.int32)
        self.batch_tokens = batch_tokens
        self.micro_batch_tokens = min(micro_batch_tokens, batch_tokens)
        self.seed = seed
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

    def epoch(self, number: int) -> list[Update]:
        """The updates of one epoch: every pair exactly once, the same for the same seed and number."""
        random = np.random.default_rng((self.seed, number))
        micro = self._micro_batches(random)
        order = random.permutation(len(micro))
        shuffled = [micro[i] for i in order]
        if self.micro_batch_tokens == self.batch_tokens:
            return [(ids,) for ids in shuffled]
        return self._grouped(shuffled)

    def _micro_batches(self, random: np.random.Generator) -> list[Ids]:
        order = random.permutation(len(self.source_lengths))
        source, target = self.source_lengths[order], self.target_lengths[order]
        order = order[np.lexsort((source, target))]
        source, target = self.source_lengths[order], self.target_lengths[order]
        widest = np.maximum(source, target)
        batches: list[Ids] = []
        start = 0
        while start < len(order):
            most = self.micro_batch_tokens // int(widest[start])
            running = np.maximum.accumulate(widest[start : start + most])
            fits = running * np.arange(1, len(running) + 1) <= self.micro_batch_tokens
            count = int(fits.sum())
            batches.append(order[start : start + count])
            start += count
        return batches

    def _grouped(self, micro: Sequence[Ids]) -> list[Update]:
        updates: list[Update] = []
        group: list[Ids] = []
        source = target = 0
        for ids in micro:
            more_source, more_target = (
                int(self.source_lengths[ids].sum()),
                int(self.target_lengths[ids].sum()),
            )
            if group and max(source + more_source, target + more_target) > self.batch_tokens:
                updates.append(tuple(group))
                group, source, target = [], 0, 0
            group.append(ids)
            source, target = source + more_source, target + more_target
        updates.append(tuple(group))
        return updates

    def largest_shapes(self) -> list[tuple[int, int, int]]:
        """Shapes (rows, source length, target length) that no micro-batch exceeds, for a memory trial."""
        shapes = []
        widest = np.maximum(self.source_lengths, self.target_lengths)
        for length in sorted({int(widest.max()), int(np.median(widest)), int(widest.min())}, reverse=True):
            rows = min(len(widest), self.micro_batch_tokens // length)
            shapes.append(
                (
                    rows,
                    min(length, int(self.source_lengths.max())),
                    min(length, int(self.target_lengths.max())),
                )
            )
        return shapes


def collate(shards: TokenShards, ids: Ids, start_id: int, pad_id: int = 0) -> tuple[Ids, Ids, Ids]:
    """(source, target_in, target_out) of the pairs as int64 rectangles, padded on the right.

    Source and target_out end in EOS; target_in is target_out moved right by one behind ``start_id``.
    """
    source = shards.padded("source", ids, pad_id)
    target_out = shards.padded("target", ids, pad_id)
    target_in = np.full_like(target_out, pad_id)
    target_in[:, 0] = start_id
    lengths = shards.target_lengths[ids]
    inside = np.arange(1, target_out.shape[1]) < lengths[:, None]
    target_in[:, 1:][inside] = target_out[:, :-1][inside]
    return source, target_in, target_out
