"""How bad pairs are as translations, by the models of one or both directions: for filtering a corpus.

With both, it is the dual conditional cross-entropy of Junczys-Dowmunt (2018, "Dual Conditional Cross-Entropy
Filtering of Noisy Parallel Corpora"): the mean of the two directions' cross-entropies, plus the difference of
the two. A pair that neither model expects is bad, and so is one that only one of them expects.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from transduce.data.formats.pair import Pair
from transduce.decoding.translator import Translator


class PairScorer:
    """A function from pairs to their scores: nats per token, 0 is best, infinite for what is impossible.

    ``forward`` translates sources into targets; ``back``, if given, targets into sources. Sides that are too
    long for a model are scored in parts, or as far as it takes them.
    """

    def __init__(self, forward: Translator, back: Translator | None = None) -> None:
        self.forward, self.back = forward, back

    def __call__(self, pairs: Sequence[Pair]) -> list[float]:
        """The score of each pair, in their order."""
        there = _entropies(self.forward, [(pair.source, pair.target) for pair in pairs])
        if self.back is None:
            return there
        back = _entropies(self.back, [(pair.target, pair.source) for pair in pairs])
        return [dual(one, other) for one, other in zip(there, back, strict=True)]


def dual(one: float, other: float) -> float:
    """The score of a pair from the cross-entropies of both directions."""
    if math.inf in (one, other):
        return math.inf
    return (one + other) / 2 + abs(one - other)


def _entropies(translator: Translator, pairs: list[tuple[str, str]]) -> list[float]:
    """Minus log P by tokens, the end counted."""
    if not pairs:
        return []
    return [
        -score.log_probability / score.length if score.length else -score.log_probability
        for score in translator.score(pairs)
    ]
