"""Which target ids translate which source ids, learned from parallel text: model 1 of Brown et al. 1993.

t(target | source) by expectation maximisation: each target token of a pair is shared out among the pair's
source tokens as their t says, and a source id's t is what it was given, normalised. The first round begins
from equal shares. Memory is bounded by the text and the vocabulary: the table is worked on in blocks of
source ids, and of each id only the most probable targets are kept from round to round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# Targets that a source id keeps between rounds; what is less probable than these counts as impossible.
KEPT = 500
# Numbers of the table that are worked on at once, and pairs of a source and a target token.
_BLOCK, _CELLS = 1 << 24, 1 << 21
_Cells = Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]


@dataclass(frozen=True)
class Sentences:
    """The ids of many sentences one after the other; sentence i is ``ids[starts[i]:starts[i + 1]]``."""

    ids: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, sentences: Iterable[Sequence[int] | npt.NDArray[np.int32]]) -> Sentences:
        """The same sentences, packed."""
        arrays = [np.asarray(sentence, np.int32) for sentence in sentences]
        starts = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
        return cls(np.concatenate([np.zeros(0, np.int32), *arrays]), starts)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of tokens of each."""
        return np.diff(self.starts)


@dataclass(frozen=True)
class Lexicon:
    """The most probable targets of each source id, best first, and t of each; of equals the lower id leads.

    Rows are as long as the longest has need of; after a row's last target stand zeros.
    """

    targets: npt.NDArray[np.int32]
    probabilities: npt.NDArray[np.float32]

    def block(self, first: int, last: int, vocabulary: int) -> npt.NDArray[np.float32]:
        """t of every target id given each of the source ids from ``first`` to before ``last``."""
        table = np.zeros((last - first, vocabulary), np.float32)
        targets, probabilities = self.targets[first:last], self.probabilities[first:last]
        rows, columns = np.nonzero(probabilities)
        table[rows, targets[rows, columns]] = probabilities[rows, columns]
        return table


def learn_lexicon(
    source: Sentences,
    target: Sentences,
    vocabulary: int,
    *,
    rounds: int = 5,
    kept: int = KEPT,
    told: Callable[[int], None] | None = None,
) -> Lexicon:
    """t of the ``kept`` best targets of each source id, from sentences that translate each other in order.

    A word that stands for nothing in the source is not added here: put an id of its own into each source.
    ``told`` is called with the number of each round that is done.
    """
    assert len(source.starts) == len(target.starts)
    blocks = _Blocks(source, target, vocabulary)
    lexicon: Lexicon | None = None
    for number in range(1, rounds + 1):
        # What each target token is shared out among: the sum of t over its sentence's source tokens.
        whole = np.zeros(len(target.ids))
        for _, table, cells in blocks.each(lexicon):
            for rows, places in cells:
                first, last = int(places.min()), int(places.max()) + 1
                given = table[rows, target.ids[places]]
                whole[first:last] += np.bincount(places - first, given, last - first)
        parts = []
        for size, table, cells in blocks.each(lexicon):
            counts = np.zeros(size * vocabulary)
            for rows, places in cells:
                ids = target.ids[places]
                given = table[rows, ids].astype(np.float64)
                of = whole[places]
                shares = np.divide(given, of, out=np.zeros_like(given), where=of > 0)
                np.add.at(counts, rows * vocabulary + ids, shares)
            parts.append(_best(counts.reshape(size, vocabulary), min(kept, vocabulary)))
        lexicon = _joined(parts)
        if told is not None:
            told(number)
    assert lexicon is not None, "there must be at least one round"
    return lexicon


class _Blocks:
    """The pairs of source and target tokens that stand in one pair of sentences, block by block of ids."""

    def __init__(self, source: Sentences, target: Sentences, vocabulary: int) -> None:
        self._source, self._target, self._vocabulary = source, target, vocabulary
        self._sentence = np.repeat(np.arange(len(source.starts) - 1), source.lengths)
        self._by_id = np.argsort(source.ids, kind="stable")
        self._bounds = np.searchsorted(source.ids[self._by_id], np.arange(vocabulary + 1))

    def each(self, lexicon: Lexicon | None) -> Iterator[tuple[int, npt.NDArray[np.float32], _Cells]]:
        """For each block its number of source ids, their t (equal ones without a lexicon), and its cells."""
        step = max(1, _BLOCK // self._vocabulary)
        for first in range(0, self._vocabulary, step):
            last = min(first + step, self._vocabulary)
            if lexicon is None:
                table = np.ones((last - first, self._vocabulary), np.float32)
            else:
                table = lexicon.block(first, last, self._vocabulary)
            yield last - first, table, self._cells(first, last)

    def _cells(self, first: int, last: int) -> _Cells:
        """Rows of the block (source id - ``first``) with places in the target's ids, in bounded pieces."""
        tokens = np.sort(self._by_id[self._bounds[first] : self._bounds[last]])
        lengths = self._target.lengths[self._sentence[tokens]]
        ends = np.cumsum(lengths)
        begin = 0
        while begin < len(tokens):
            before = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + _CELLS, "right")))
            some, counts = tokens[begin:end], lengths[begin:end]
            if total := int(counts.sum()):
                within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
                rows = np.repeat(self._source.ids[some].astype(np.int64) - first, counts)
                yield rows, np.repeat(self._target.starts[self._sentence[some]], counts) + within
            begin = end


def _best(counts: npt.NDArray[np.float64], kept: int) -> Lexicon:
    """Each row's ``kept`` highest counts, normalised among themselves."""
    if kept < counts.shape[1]:
        ids = np.argpartition(-counts, kept - 1, axis=1)[:, :kept]
    else:
        ids = np.broadcast_to(np.arange(counts.shape[1]), counts.shape)
    values = np.take_along_axis(counts, ids, 1)
    order = np.lexsort((ids, -values), axis=1)
    ids, values = np.take_along_axis(ids, order, 1), np.take_along_axis(values, order, 1)
    total = values.sum(1, keepdims=True)
    probabilities = np.divide(values, total, out=np.zeros_like(values), where=total > 0).astype(np.float32)
    return Lexicon(np.where(probabilities > 0, ids, 0).astype(np.int32), probabilities)


def _joined(parts: Sequence[Lexicon]) -> Lexicon:
    """The blocks one after the other, without columns in which no row has a target."""
    targets = np.concatenate([part.targets for part in parts])
    probabilities = np.concatenate([part.probabilities for part in parts])
    width = max(1, int((probabilities > 0).sum(1).max()))
    return Lexicon(targets[:, :width], probabilities[:, :width])
