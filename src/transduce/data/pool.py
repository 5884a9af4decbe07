"""Work shared out among processes of this machine, its results in the order of the work.

A worker is this same Python started anew. It reads pieces of work from its standard input and writes results
to its standard output, one at a time, so that neither side ever waits for the other to read. It never imports
the program that uses us, which so needs no ``if __name__ == "__main__"``; and since its input ends with the
process that feeds it, none is left behind when that process is killed.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from transduce import machine
from transduce.errors import DataError, TransduceError

Item = TypeVar("Item")
Result = TypeVar("Result")

_PATIENCE = 10.0  # seconds that a worker has to end once its input has
_WORKER = "import sys; sys.path[:] = {path!r}; from transduce.data.pool import serve; serve()"


def usable_workers(wanted: int = 0) -> int:
    """How many processes to share work out among: ``wanted``, or one for each usable core (0).

    1, which is this process itself, where pipes are none that we can speak through (Windows), or where there
    is no Python to start.
    """
    if os.name != "posix" or not sys.executable:
        return 1
    return wanted or machine.usable_cores()


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Generator[Result, None, None]:
    """``work`` of each item, in the order of the items, done by so many processes; 1 is this one alone.

    No more than ``workers`` + 1 items and ``workers`` results exist at a time. ``work``, items and results
    must be of types that can be sent to another process. A TransduceError is raised here as it was there;
    DataError where a worker is lost.
    """
    if workers <= 1:
        yield from map(work, items)
        return
    with ExitStack() as stack:
        crew = [stack.enter_context(_Worker(work)) for _ in range(workers)]
        busy: deque[_Worker] = deque()
        for item, worker in zip(items, itertools.cycle(crew), strict=False):
            if len(busy) == workers:
                yield busy.popleft().result()
            worker.send(item)
            busy.append(worker)
        while busy:
            yield busy.popleft().result()
        for worker in crew:
            worker.finish()


class _Worker:
    """One process; between ``send`` and ``result`` it is at work."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WORKER.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to = Connection(os.dup(self._process.stdin.fileno()), readable=False)
        self._from = Connection(os.dup(self._process.stdout.fileno()), writable=False)
        self._process.stdin.close()
        self._process.stdout.close()
        self.send(work)

    def send(self, item: object) -> None:
        """Nothing; the worker has the item."""
        try:
            self._to.send(item)
        except OSError:
            raise self._lost() from None

    def result(self) -> Any:
        """What the worker made of the item it has."""
        try:
            result = self._from.recv()
        except (EOFError, OSError):
            raise self._lost() from None
        if isinstance(result, TransduceError):
            raise result
        return result

    def finish(self) -> None:
        """Nothing; the worker has ended by itself."""
        self._to.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)

    def _lost(self) -> DataError:
        code = self._process.wait(_PATIENCE)
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return DataError(
            f"a worker process ended {how}; often memory has run out: free some, or set data.workers lower; "
            "the same command goes on where this one stopped"
        )

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._to.close()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._from.close()


def serve() -> None:
    """Nothing; what a worker does until its input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the process that feeds us decides
    source, results = Connection(os.dup(0), writable=False), Connection(os.dup(1), readable=False)
    os.dup2(2, 1)  # whatever prints does not get between the results
    with suppress(EOFError, OSError):
        work = source.recv()
        while True:
            item = source.recv()
            try:
                result = work(item)
            except TransduceError as error:
                result = error
            results.send(result)
