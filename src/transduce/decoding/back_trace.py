"""From the search's back-pointers to whole outputs: one walk from the ends to the start, for all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from transduce.decoding.candidates import flat, ranking
from transduce.decoding.config import SearchOptions
from transduce.decoding.hypothesis import Hypothesis, length_penalty

_NEVER = float("-inf")


@dataclass(frozen=True)
class Record:
    """What one step decided for the sentences that it worked on: token, parent's slot and log P per slot."""

    sentences: Int[np.ndarray, " active"]
    tokens: Int[np.ndarray, "active slots"]
    parents: Int[np.ndarray, "active slots"]
    log_p: Float[np.ndarray, "active slots"]


@dataclass(frozen=True)
class Ended:
    """The best outputs of each sentence that have ended, best first; ``places`` says where they hang.

    A place is (length - 1) * beam + the slot of the last token before the end; a score of minus infinity
    marks an output that does not exist.
    """

    scores: Float[np.ndarray, "sentences n"]
    log_p: Float[np.ndarray, "sentences n"]
    places: Int[np.ndarray, "sentences n"]

    @classmethod
    def none(cls, sentences: int, n_best: int) -> Ended:
        """Room for ``n_best`` outputs of each sentence."""
        scores = np.full((sentences, n_best), _NEVER)
        return cls(scores, scores.copy(), np.zeros(scores.shape, np.int64))

    def with_new(self, fresh: Ended) -> Ended:
        """The best of both, as many as before; where scores tie, the one that ended earlier."""
        count, scores = self.scores.shape[1], np.concatenate([self.scores, fresh.scores], 1)
        every = np.arange(scores.shape[1])[None]
        best = flat(ranking(scores, every, scores.shape[1])[:, :count], scores.shape[1])
        log_p = np.concatenate([self.log_p, fresh.log_p], 1)
        places = np.concatenate([self.places, fresh.places], 1)
        return Ended(scores.take(best), log_p.take(best), places.take(best))

    def kept(self, index: Int[np.ndarray, " kept"]) -> Ended:
        """The outputs of these sentences only."""
        return Ended(self.scores[index], self.log_p[index], self.places[index])

    def store(self, index: Int[np.ndarray, " some"], outputs: Ended) -> None:
        """Nothing; the sentences at ``index`` have ``outputs`` afterwards."""
        self.scores[index], self.log_p[index] = outputs.scores, outputs.log_p
        self.places[index] = outputs.places


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
    limits: Int[np.ndarray, " sentences"],
    options: SearchOptions,
    eos_id: int,
) -> list[list[Hypothesis]]:
    """The outputs of each sentence, best first: what has ended, or else what is alive at the limit."""
    shape = len(history), len(limits), options.beam
    tokens, parents = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    log_p = np.full(shape, _NEVER)
    for at, record in enumerate(history):
        tokens[at, record.sentences], parents[at, record.sentences] = record.tokens, record.parents
        log_p[at, record.sentences] = record.log_p
    leaves = _leaves(ended, limits.tolist(), log_p, options)
    sentence, steps, slot = (
        np.array([getattr(leaf, name) for leaf in leaves], np.int64) for name in ("sentence", "steps", "slot")
    )
    words, sums = np.zeros((len(history), len(leaves)), np.int64), np.zeros((len(history), len(leaves)))
    for at in range(len(history) - 1, -1, -1):
        words[at], sums[at] = tokens[at, sentence, slot], log_p[at, sentence, slot]
        slot = np.where(steps > at, parents[at, sentence, slot], slot)
    outputs: list[list[Hypothesis]] = [[] for _ in range(len(limits))]
    for leaf, word, total in zip(leaves, words.T.tolist(), sums.T.tolist(), strict=True):
        outputs[leaf.sentence].append(
            _hypothesis(leaf, word[: leaf.steps], total[: leaf.steps], options, eos_id)
        )
    return outputs


def _leaves(
    ended: Ended, limits: list[int], log_p: Float[np.ndarray, "steps sentences slots"], options: SearchOptions
) -> list[_Leaf]:
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
