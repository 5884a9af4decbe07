"""Updates that were begun, and what becomes of them once it is known what they saw.

On a GPU that is known one update later: the host then prepares the next one instead of waiting.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from transduce.data.batching import Update
from transduce.training.step import Batch, Begun, Updated


@dataclass(kw_only=True)
class Underway:
    """Update number ``step``; ``batches`` are this worker's part of ``ids``. Times are in seconds."""

    step: int
    ids: Update
    batches: list[Batch]
    begun: Begun
    seconds: float
    waited: float


class Queue:
    """The updates of a run that were begun and not yet read, oldest first."""

    def __init__(self) -> None:
        self._updates: deque[Underway] = deque()

    def add(self, update: Underway) -> None:
        """Nothing; ``update`` is the newest."""
        self._updates.append(update)

    def read(self) -> Iterator[tuple[Underway, Updated]]:
        """Each of them with what it saw; each is gone from here before it is dealt with."""
        while self._updates:
            update = self._updates.popleft()
            yield update, update.begun.read()
