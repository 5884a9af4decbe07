"""Lines of waiting requests as batches: those with the same options together, every request in its turn."""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from transduce.decoding.translation import Translation
from transduce.serving.asking import LeftError, Lines

_LINE = re.compile(r"^line (\d+)")


@dataclass(frozen=True)
class Batch:
    """Lines of one or several requests: of each the places from ``begin`` to ``end``."""

    shares: tuple[tuple[Lines, int, int], ...]

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return sum(end - begin for _, begin, end in self.shares)

    @property
    def requests(self) -> list[Lines]:
        """Whose lines they are."""
        return [request for request, _, _ in self.shares]

    @property
    def tokens(self) -> int:
        """Source tokens, ends counted."""
        return sum(sum(request.weigh()[begin:end]) for request, begin, end in self.shares)


class Waiting:
    """The requests that wait, by what they may share a batch with."""

    def __init__(self) -> None:
        self._groups: OrderedDict[tuple[Any, ...], deque[Lines]] = OrderedDict()
        self.requests = 0

    def add(self, request: Lines) -> None:
        """Nothing; the request waits behind those of its group."""
        self._groups.setdefault(request.group, deque()).append(request)
        self.requests += 1

    def take(self, budget: int) -> Batch | None:
        """The next batch, of the group whose turn it is; None where nothing waits.

        ``budget`` bounds hypotheses x tokens. Each request gives one line in turn, so that a short one does
        not wait for a long one to end. A line that is larger than the budget comes alone.
        """
        while self._groups:
            key, requests = self._groups.popitem(last=False)
            alive = deque(request for request in requests if not request.is_left)
            self.requests -= len(requests) - len(alive)
            shares = self._shares(alive, budget)
            rest = deque(request for request in alive if request.taken < len(request.texts))
            self.requests -= len(alive) - len(rest)
            if rest:
                self._groups[key] = rest
            if shares:
                return Batch(tuple(shares))
        return None

    @staticmethod
    def _shares(requests: deque[Lines], budget: int) -> list[tuple[Lines, int, int]]:
        begins: dict[Lines, int] = {}
        ring = deque(requests)
        while ring:
            request = ring.popleft()
            cost = request.weigh()[request.taken] * request.rows
            if begins and cost > budget:
                break
            budget -= cost
            begins.setdefault(request, request.taken)
            request.taken += 1
            if request.taken < len(request.texts):
                ring.append(request)
        return [(request, begin, request.taken) for request, begin in begins.items()]

    def all(self) -> Iterator[Lines]:
        """Every request that waits; afterwards none does."""
        while self._groups:
            yield from self._groups.popitem(last=False)[1]
        self.requests = 0


def translate(batch: Batch) -> list[list[Translation]]:
    """For each share of the batch what its lines become, its warnings with the request's own line numbers.

    Raises `LeftError` as soon as nobody waits for any of them.
    """
    shares = batch.shares
    first = shares[0][0]

    def is_anybody_there(*_: int) -> None:
        if all(request.is_left for request, _, _ in shares):
            raise LeftError

    found = first.model.translator.translate_detailed(
        [text for request, begin, end in shares for text in request.texts[begin:end]],
        progress=is_anybody_there,
        prefixes=_beside([(request.prefixes, begin, end) for request, begin, end in shares], ""),
        terms=_beside([(request.terms, begin, end) for request, begin, end in shares], ()),
        glossary=first.glossary,
        **first.options,
    )
    every, at = [], 0
    for _, begin, end in shares:
        every.append([_renumbered(one, begin - at) for one in found[at : at + end - begin]])
        at += end - begin
    return every


def _beside(items: Sequence[tuple[Sequence[Any] | None, int, int]], nothing: Any) -> list[Any] | None:
    """What is asked of each line of the batch; None where nothing is asked of any."""
    if all(own is None for own, _, _ in items):
        return None
    return [one for own, begin, end in items for one in (own or [nothing] * end)[begin:end]]


def _renumbered(translation: Translation, by: int) -> Translation:
    """The translation with ``by`` added to the number of the line that its warnings name."""
    if not translation.warnings or not by:
        return translation
    told = tuple(
        _LINE.sub(lambda found: f"line {int(found[1]) + by}", warning) for warning in translation.warnings
    )
    return replace(translation, warnings=told)
