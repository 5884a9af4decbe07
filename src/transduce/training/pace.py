"""How far the preparation of the data is: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from transduce.counts import counted
from transduce.training.log import RunLog, duration

_SECONDS_BETWEEN_LINES = 10.0


class Pace:
    """Told how many pairs are done, it says so on ``log`` with their rate and the time that is left."""

    def __init__(self, log: RunLog) -> None:
        self.log = log
        self._what = ""
        self._began = self._told = 0.0
        self._first = 0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Nothing; ``done`` of ``total`` pairs are now ``what`` says: "turned into tokens"."""
        now = time.monotonic()
        if what != self._what:
            self._what, self._began, self._told, self._first = what, now, now, done
            return
        rate = (done - self._first) / max(now - self._began, 1e-9)
        left = duration((total - done) / rate) if rate else "?"
        line = f"{what}: {done:,} of {counted(total, 'pair')}, {rate:,.0f} pairs/s, {left} left"
        if self.log.live:
            self.log.show(done / max(total, 1), line)
        elif now - self._told >= _SECONDS_BETWEEN_LINES:
            self._told = now
            self.log.say(line)


@contextmanager
def pace(log: RunLog) -> Iterator[Pace]:
    """What to tell while the data are prepared; the bar is gone afterwards."""
    log.start_progress()
    try:
        yield Pace(log)
    finally:
        log.stop_progress()
