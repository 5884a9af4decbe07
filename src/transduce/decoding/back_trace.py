"""From the search's back-pointers to whole outputs: one walk from the ends to the start, for all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transduce.decoding.candidates import ranking
from transduce.decoding.config import SearchOptions
from transduce.decoding.hypothesis import Hypothesis, length_penalty

_NEVER = float("-inf")


@dataclass(frozen=True)
class Record:
    """What one step decided for the sentences that it worked on: token, parent's slot and log P per slot."""

    sentences: Int[Tensor, " active"]
    tokens: Int[Tensor, "active slots"]
    parents: Int[Tensor, "active slots"]
    log_p: Float[Tensor, "active slots"]


@dataclass(frozen=True)
class Ended:
    """The best outputs of each sentence that have ended, best first; ``places`` says where they hang.

    A place is (length - 1) * beam + the slot of the last token before the end; a score of minus infinity
    marks an output that does not exist.
    """

    scores: Float[Tensor, "sentences n"]
    log_p: Float[Tensor, "sentences n"]
    places: Int[Tensor, "sentences n"]

    @classmethod
    def none(cls, sentences: int, n_best: int, like: Tensor) -> Ended:
        """Room for ``n_best`` outputs of each sentence, on the device and of the type of ``like``."""
        scores = like.new_full((sentences, n_best), _NEVER)
        return cls(scores, scores.clone(), torch.zeros_like(scores, dtype=torch.long))

    def with_new(self, fresh: Ended) -> Ended:
        """The best of both, as many as before; where scores tie, the one that ended earlier."""
        count, scores = self.scores.shape[1], torch.cat([self.scores, fresh.scores], 1)
        every = torch.arange(scores.shape[1], device=scores.device)[None]
        order = ranking(scores, every, scores.shape[1])[:, :count]
        log_p, places = torch.cat([self.log_p, fresh.log_p], 1), torch.cat([self.places, fresh.places], 1)
        return Ended(scores.gather(1, order), log_p.gather(1, order), places.gather(1, order))

    def kept(self, index: Int[Tensor, " kept"]) -> Ended:
        """The outputs of these sentences only."""
        return Ended(self.scores[index], self.log_p[index], self.places[index])

    def store(self, index: Int[Tensor, " some"], outputs: Ended) -> None:
        """Nothing; the sentences at ``index`` have ``outputs`` afterwards."""
        self.scores.index_copy_(0, index, outputs.scores)
        self.log_p.index_copy_(0, index, outputs.log_p)
        self.places.index_copy_(0, index, outputs.places)


@dataclass(frozen=True)
class _Leaf:
    """Where an output hangs: after ``steps`` tokens in ``slot``; its end, if it has one, is not counted."""

    sentence: int
    steps: int
    slot: int
    log_p: float
    ended: bool


def back_trace(
    history: Sequence[Record],
    ended: Ended,
    limits: Int[Tensor, " sentences"],
    options: SearchOptions,
    eos_id: int,
) -> list[list[Hypothesis]]:
    """The outputs of each sentence, best first: what has ended, or else what is alive at the limit."""
    shape = len(history), len(limits), options.beam
    tokens, parents = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    log_p = torch.full(shape, _NEVER, dtype=torch.float64)
    for at, record in enumerate(history):
        where = record.sentences.cpu()
        tokens[at, where], parents[at, where] = record.tokens.cpu(), record.parents.cpu()
        log_p[at, where] = record.log_p.cpu().double()
    leaves = _leaves(ended, limits.tolist(), log_p, options)
    sentence, steps, slot = (
        torch.tensor([getattr(leaf, name) for leaf in leaves], dtype=torch.long)
        for name in ("sentence", "steps", "slot")
    )
    words = torch.zeros((len(leaves), len(history)), dtype=torch.long)
    sums = torch.zeros((len(leaves), len(history)), dtype=torch.float64)
    for at in range(len(history) - 1, -1, -1):
        words[:, at], sums[:, at] = tokens[at, sentence, slot], log_p[at, sentence, slot]
        slot = torch.where(steps > at, parents[at, sentence, slot], slot)
    outputs: list[list[Hypothesis]] = [[] for _ in range(len(limits))]
    for leaf, word, total in zip(leaves, words.tolist(), sums.tolist(), strict=True):
        outputs[leaf.sentence].append(
            _hypothesis(leaf, word[: leaf.steps], total[: leaf.steps], options, eos_id)
        )
    return outputs


def _leaves(ended: Ended, limits: list[int], log_p: Tensor, options: SearchOptions) -> list[_Leaf]:
    leaves = []
    rows = zip(ended.scores.tolist(), ended.log_p.tolist(), ended.places.tolist(), strict=True)
    for sentence, (scores, sums, places) in enumerate(rows):
        found = [
            _Leaf(sentence, place // options.beam, place % options.beam, total, True)
            for score, total, place in zip(scores, sums, places, strict=True)
            if score > _NEVER
        ]
        if not found:
            steps = min(limits[sentence], len(log_p))
            alive = enumerate(log_p[steps - 1, sentence, : options.n_best].tolist())
            found = [_Leaf(sentence, steps, slot, total, False) for slot, total in alive if total > _NEVER]
        leaves += found
    return leaves


def _hypothesis(
    leaf: _Leaf, tokens: list[int], sums: list[float], options: SearchOptions, eos_id: int
) -> Hypothesis:
    if leaf.ended:
        tokens, sums = [*tokens, eos_id], [*sums, leaf.log_p]
    gains = tuple(total - before for total, before in zip(sums, [0.0, *sums[:-1]], strict=True))
    score = leaf.log_p / length_penalty(len(tokens), options.alpha)
    return Hypothesis(tuple(tokens), score, leaf.log_p, not leaf.ended, gains)
