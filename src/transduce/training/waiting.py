"""Waiting for another process through a key-value store, and noticing when it is gone.

A store's operations may block for as long as the network says nothing, so they run in threads of their own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from torch.distributed.distributed_c10d import Store

from transduce.counts import counted
from transduce.errors import TrainingError

BEAT = 1.0  # seconds between two signs of life
LONGEST_PAUSE = 0.5  # between two looks into the store
LAST_WORDS = 5.0  # seconds in which a failing process tries to say why
FAILED = "failed"


@contextmanager
def signs_of_life(store: Store) -> Iterator[None]:
    """Nothing; until left, those who `hear` know that this process is alive."""
    done = threading.Event()

    def beat() -> None:
        # Where the store is gone, so are the others: the next operation that needs them will say so.
        with suppress(RuntimeError):
            while not done.wait(BEAT):
                store.add("beat", 1)

    threading.Thread(target=beat, daemon=True).start()
    try:
        yield
    finally:
        done.set()


def hear(store: Store, key: str, *, silence: float) -> bytes:
    """What another process leaves under ``key``, however long it takes while it gives signs of life.

    Raises TrainingError where a process has failed, or after ``silence`` seconds without a sign.
    """
    listener = _Listener(store, key)
    listener.start()
    while not listener.done.wait(LONGEST_PAUSE):
        if time.monotonic() - listener.heard > silence:
            raise TrainingError(
                f"stopped, because worker 0 has given no sign of life for {counted(silence / 60, 'minute')} "
                "(training.timeout_minutes); start again with --resume"
            )
    if listener.error is not None:
        raise listener.error
    return listener.value


class _Listener(threading.Thread):
    """Looks into the store until ``key`` is there: then ``value`` or ``error`` is set, and ``done``."""

    def __init__(self, store: Store, key: str) -> None:
        super().__init__(daemon=True)
        self.store, self.key = store, key
        self.heard, self.done = time.monotonic(), threading.Event()
        self.value = b""
        self.error: Exception | None = None

    def run(self) -> None:
        """Nothing; `done` is set."""
        try:
            self._listen()
        except RuntimeError as error:  # the store is gone; raised where it is waited for
            self.error = error
        self.done.set()

    def _listen(self) -> None:
        pause, beat = 0.01, -1
        while not self.store.check([self.key]):
            if self.store.check([FAILED]):
                self.error = TrainingError(f"stopped, because {self.store.get(FAILED).decode()}")
                return
            if (now := self.store.add("beat", 0)) != beat:
                beat, self.heard = now, time.monotonic()
            time.sleep(pause)
            pause = min(1.2 * pause, LONGEST_PAUSE)
        self.value = self.store.get(self.key)


def last_words(store: Store, words: str) -> str:
    """Why the first process failed that could say so: ``words``, unless another came before.

    Empty where the store cannot be reached.
    """
    heard: list[str] = []

    def say() -> None:
        with suppress(RuntimeError):  # the store may have gone with its host: nobody is left to be told
            heard.append(store.compare_set(FAILED, "", words).decode())

    attempt(say, LAST_WORDS)
    return heard[0] if heard else ""


def attempt(work: Callable[[], None], seconds: float) -> None:
    """Nothing; ``work`` has ended, or goes on unattended after so many seconds."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
