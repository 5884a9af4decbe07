"""Signals that ask a process to end, told to whoever can end it well."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stop_signals(caught: Callable[[int], None]) -> Iterator[None]:
    """Nothing; until left, ``caught`` is called with the number of each SIGINT and SIGTERM.

    Outside the main thread nothing is changed: whoever runs us there handles signals.
    """
    before = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, lambda number, _: caught(number))
    except ValueError:
        pass
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
