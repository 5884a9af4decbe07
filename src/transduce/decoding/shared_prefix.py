"""The tokens that an output is certain to begin with while it is still searched for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from transduce.decoding.beam_search import Standing
from transduce.decoding.guide import NEVER


class SharedPrefix:
    """Follows the search of one sentence for its one best output.

    That will be one that has ended, the best so far, or will go on from one that is alive: what they all
    begin with is certain.
    """

    def __init__(self) -> None:
        # What comes after the tokens that were told, by the slot of the hypothesis.
        self._alive: dict[int, list[int]] = {0: []}
        self._ended: list[int] | None = None

    def after(self, standing: Standing) -> list[int]:
        """The tokens that have become certain; to be called after each step of the search."""
        tokens, parents, log_p = (
            column[0].tolist()
            for column in (standing.last.tokens, standing.last.parents, standing.last.log_p)
        )
        score, place = standing.ended.scores[0, 0].item(), int(standing.ended.places[0, 0])
        steps, slot = divmod(place, len(tokens))
        if score > NEVER and steps == standing.length - 1:  # it has ended in this step
            self._ended = self._alive[slot]
        self._alive = {
            slot: [*self._alive[parent], token]
            for slot, (token, parent, total) in enumerate(zip(tokens, parents, log_p, strict=True))
            if total > NEVER
        }
        possible = [*self._alive.values(), *([] if self._ended is None else [self._ended])]
        count = _shared(possible)
        certain = possible[0][:count]
        self._alive = {slot: rest[count:] for slot, rest in self._alive.items()}
        self._ended = None if self._ended is None else self._ended[count:]
        return certain


def _shared(sequences: Sequence[Iterable[int]]) -> int:
    """How many tokens all of them begin with."""
    count = 0
    for column in zip(*sequences, strict=False):
        if len(set(column)) > 1:
            break
        count += 1
    return count
