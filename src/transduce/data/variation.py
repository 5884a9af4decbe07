"""Pairs as training sees them when they are to vary: other subwords, other case, typing errors.

What becomes of a pair follows from the run's seed, the number of the update and the pair's own number, so
that a run that goes on, and every worker, sees the same. The shards stay as they are: their ids give back
the text exactly.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from transduce.data.chance import Keys, further, keys, uniform
from transduce.data.changed_text import CASES, with_typos
from transduce.data.resegmentation import Resegmenter
from transduce.data.shards import TokenShards
from transduce.data.tokenizer import EOS_ID, Tokenizer

Ids = npt.NDArray[Any]
Rows = list[Ids]
Encode = Callable[[Sequence[str]], list[list[int]]]

# What a draw is for.
_CASE, _TYPOS, _SOURCE, _TARGET = range(4)


@dataclass(frozen=True, kw_only=True)
class Shares:
    """What varies, all of it off at 0: BPE-dropout's share of merges that are left out (or the unigram
    model's alpha) on each side, and the share of pairs that are changed in each way.
    """

    sample_source: float = 0.0
    sample_target: float = 0.0
    lower_case: float = 0.0
    upper_case: float = 0.0
    title_case: float = 0.0
    typos: float = 0.0

    @property
    def targets_vary(self) -> bool:
        """Whether the lengths of targets are known only when they are drawn."""
        return bool(self.sample_target or self.upper_case or self.title_case)


class Variation:
    """Gives the pairs of ``shards`` as an update sees them; no side is longer than ``longest``, ends counted.

    What would be longer stays as it is in the shards.
    """

    def __init__(
        self, shards: TokenShards, tokenizer: Tokenizer, shares: Shares, *, longest: int, seed: int
    ) -> None:
        self.shards, self.tokenizer, self.shares = shards, tokenizer, shares
        self.longest, self.seed = longest, seed
        self._samplers = {
            side: Resegmenter(tokenizer, rate, seed) if rate else None
            for side, rate in ((_SOURCE, shares.sample_source), (_TARGET, shares.sample_target))
        }
        self._cases = [(name, getattr(shares, name)) for name in CASES if getattr(shares, name)]
        self._silent = np.zeros(tokenizer.vocabulary, dtype=np.bool_)
        self._silent[list(tokenizer.silent)] = True

    def pairs(self, ids: npt.NDArray[np.int64], update: int) -> tuple[Rows, Rows]:
        """The sources and targets of these pairs as they are in update number ``update``; EOS included."""
        drawn = keys(self.seed, update, ids)
        sources: Rows = [self.shards.source(index) for index in ids]
        targets: Rows = [self.shards.target(index) for index in ids]
        self._change(sources, targets, drawn)
        for rows, side in ((sources, _SOURCE), (targets, _TARGET)):
            if (sampler := self._samplers[side]) is not None:
                rows[:] = sampler.draw(rows, further(drawn, side), self.longest)
        return sources, targets

    def _change(self, sources: Rows, targets: Rows, drawn: Keys) -> None:
        """Nothing; the sentences whose turn it is have another case, or typing errors."""
        draw, begin = uniform(further(drawn, _CASE)), 0.0
        for name, share in self._cases:
            change, both = CASES[name]
            rows = np.flatnonzero((draw >= begin) & (draw < begin + share)).tolist()
            begin += share
            sides = ((sources, self.tokenizer.encode_batch), (targets, self.tokenizer.encode_target_batch))
            changed = [
                self._again(side, rows, [change(self._text(side[row])) for row in rows], encode)
                for side, encode in sides[: 1 + both]
            ]
            for place, row in enumerate(rows):
                new = [side[place] for side in changed]
                if all(one is not None for one in new):  # both sides, or neither
                    sources[row] = new[0]
                    if both:
                        targets[row] = new[1]
        if self.shares.typos:
            seeds = further(drawn, _TYPOS)
            rows = np.flatnonzero(uniform(seeds) < self.shares.typos).tolist()
            encode = self.tokenizer.encode_batch
            texts = [with_typos(self._text(sources[row]), random.Random(int(seeds[row]))) for row in rows]
            for row, new_ids in zip(rows, self._again(sources, rows, texts, encode), strict=True):
                if new_ids is not None:
                    sources[row] = new_ids

    def _text(self, row: Ids) -> str:
        return self.tokenizer.decode(row.tolist())

    def _again(self, rows: Rows, places: Sequence[int], texts: Sequence[str], encode: Encode) -> list[Any]:
        """The ids of the new texts behind the tags of the old ones; None for what is too long or empty."""
        found: list[Any] = []
        for place, ids in zip(places, encode(texts) if texts else [], strict=True):
            row = rows[place]
            tags = int(np.argmin(self._silent[row[:-1]])) if len(row) > 1 else 0
            new = np.array([*row[:tags].tolist(), *ids, EOS_ID], dtype=row.dtype)
            found.append(new if ids and len(new) <= self.longest else None)
        return found
