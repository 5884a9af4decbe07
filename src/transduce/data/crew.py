"""Who does work that can be shared out: this process, further ones, or the actors of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import TypeVar

from transduce.data import cluster, pool

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Crew:
    """So many ``workers`` (0: one for each core), on the Ray cluster that ``ray`` names if it does.

    ``ray`` is the address of a cluster, or ``local`` for one of this machine's that lasts as long as the
    work. There, each worker has so many ``gpus``.
    """

    workers: int = 1
    ray: str = ""
    gpus: float = 0.0

    @property
    def alone(self) -> bool:
        """Whether the work is done in this process."""
        return not self.ray and pool.usable_workers(self.workers) == 1

    def in_order(
        self, work: Callable[[Item], Result], items: Iterable[Item]
    ) -> Generator[Result, None, None]:
        """``work`` of each item, in the order of the items.

        ``work``, items and results must be of types that can be sent to another process; few of them exist at
        a time. A TransduceError is raised here as it was there.
        """
        if self.ray:
            return cluster.in_order(work, items, self.workers, self.ray, gpus=self.gpus)
        return pool.in_order(work, items, pool.usable_workers(self.workers))


ALONE = Crew()
