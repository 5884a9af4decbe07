"""How much a client may ask for: a bucket for each that fills with time."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from transduce.serving.refusals import Refused

MOST_CLIENTS = 10_000
"""Buckets that are kept: the least recently used one is forgotten first."""


@dataclass(frozen=True)
class Caller:
    """Who asks: a key's name or an address, with its limits a minute (0: none)."""

    name: str
    requests_per_minute: int
    characters_per_minute: int
    key: str | None = None


@dataclass
class _Bucket:
    left: float
    at: float


class Rates:
    """What each client has left."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, str], _Bucket] = OrderedDict()

    def take(self, caller: Caller, characters: int) -> None:
        """Nothing; one request of so many characters counts. Raises `Refused` where it is too much now.

        A text that is larger than a minute's characters is refused for good.
        """
        asked = (
            ("requests", caller.requests_per_minute, 1),
            ("characters", caller.characters_per_minute, characters),
        )
        buckets = [
            (self._bucket((caller.name, unit), limit), unit, limit, cost)
            for unit, limit, cost in asked
            if limit
        ]
        for bucket, unit, limit, cost in buckets:
            if cost > limit:
                raise Refused(
                    413, f"{cost:,} {unit} at once, but the limit is {limit:,} a minute: ask for less"
                )
            if cost > bucket.left:
                seconds = math.ceil((cost - bucket.left) * 60 / limit)
                raise Refused(
                    429,
                    f"Slowdown: {limit:,} {unit} a minute are allowed; ask again in {seconds} s",
                    retry_after=seconds,
                )
        for bucket, _, _, cost in buckets:
            bucket.left -= cost

    def _bucket(self, name: tuple[str, str], limit: int) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.setdefault(name, _Bucket(float(limit), now))
        self._buckets.move_to_end(name)
        bucket.left = min(limit, bucket.left + (now - bucket.at) * limit / 60)
        bucket.at = now
        if len(self._buckets) > MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return bucket
