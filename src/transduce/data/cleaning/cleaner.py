"""A corpus through all filters: in chunks, by several processes, its verdicts in the order of its pairs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice

from transduce.data.cleaning.duplicates import Duplicates
from transduce.data.cleaning.filters import Filters
from transduce.data.cleaning.verdict import Verdict
from transduce.data.crew import ALONE, Crew
from transduce.data.formats.pair import Pair

CHUNK = 4096


def judged(pairs: Iterable[Pair], filters: Filters, *, crew: Crew = ALONE) -> Iterator[list[Verdict]]:
    """The verdicts on all pairs, a few thousand at a time, in order; they do not depend on the ``crew``."""
    duplicates = Duplicates(filters.config)
    waiting: deque[list[Pair]] = deque()

    def chunks() -> Iterator[list[Pair]]:
        rest = iter(pairs)
        while chunk := list(islice(rest, CHUNK)):
            waiting.append(chunk)
            yield chunk

    with closing(crew.in_order(filters, chunks())) as results:
        for found in results:
            verdicts = found.all(waiting.popleft())
            yield duplicates.judge(verdicts, found.exact, found.near)
