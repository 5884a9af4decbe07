"""The one thread that owns the models: it takes what waits, in batches, and gives each request its own."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from transduce.serving.asking import LeftError, Lines, Look, Request, Stream
from transduce.serving.batching import Batch, Waiting, translate
from transduce.serving.refusals import Refused, stopping


@runtime_checkable
class Told(Protocol):
    """What is counted."""

    def batch(self, batch: Batch, seconds: float) -> None:
        """Nothing; a batch was translated in so many seconds."""
        ...

    def waited(self, seconds: float) -> None:
        """Nothing; a request waited so long before it was begun."""
        ...


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How much is done at once (``batch_tokens``), how much may wait, how long company is waited for."""

    batch_tokens: int
    queue: int
    gather: float


class Worker:
    """Translates what is submitted, in a thread of its own."""

    def __init__(self, pace: Pace, told: Told) -> None:
        self._pace, self._told = pace, told
        self._changed = threading.Condition()
        self._waiting = Waiting()
        self._streams: deque[Stream] = deque()
        self._looks: deque[Look] = deque()
        self._in_hand: list[Request] = []
        self._stopping = False
        self._company = 1
        self._speed = 0.0
        self._thread: threading.Thread | None = None
        self.busy_since: float | None = None
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Nothing; the thread runs."""
        self.failure = None
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return self._waiting.requests + len(self._streams) + len(self._looks)

    def submit(self, request: Request) -> None:
        """Nothing; the request's future will have its result. Raises `Refused` where too many wait."""
        with self._changed:
            if self._stopping:
                raise stopping()
            if self.waiting >= self._pace.queue:
                raise Refused(
                    503,
                    f"{self.waiting} requests wait already; ask again in a moment",
                    retry_after=self._patience(),
                )
            if isinstance(request, Lines):
                if not request.texts:
                    request.give([])
                    return
                self._waiting.add(request)
            elif isinstance(request, Stream):
                self._streams.append(request)
            elif isinstance(request, Look):
                self._looks.append(request)
            self._changed.notify()

    def stop(self, patience: float) -> bool:
        """Whether the thread has ended within so many seconds; what waits is refused."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._refuse_all(stopping())
        if self._thread is not None:
            self._thread.join(patience)
        return not self.is_alive

    def _patience(self) -> int:
        """Seconds in which about half of what waits should be done."""
        return max(1, round(self.waiting * self._speed / 2))

    def _run(self) -> None:
        try:
            while self._turn():
                pass
        except BaseException as error:  # the thread ends; whoever watches it starts another
            self.failure = error
            self._refuse_all(Refused(503, "the translation was interrupted; ask again", retry_after=1))
            if not isinstance(error, Exception | SystemExit):
                raise

    def _refuse_all(self, error: Refused) -> None:
        with self._changed:
            every = [*self._in_hand, *self._waiting.all(), *self._streams, *self._looks]
            self._streams.clear()
            self._looks.clear()
        for request in every:
            request.fail(error)

    def _turn(self) -> bool:
        """Whether to go on; every stream took a step, and one look and one batch were done."""
        with self._changed:
            self.busy_since = None
            self._changed.wait_for(lambda: self._stopping or self.waiting)
            if self._stopping:
                return False
            self._gather()
            look = self._looks.popleft() if self._looks else None
            batch = self._waiting.take(self._pace.batch_tokens)
            streams = list(self._streams)
            self._in_hand = [*([look] if look else []), *(batch.requests if batch else [])]
            self.busy_since = time.monotonic()
        for stream in streams:
            self._step(stream)
        if look is not None:
            self._look(look)
        if batch is not None:
            self._translate(batch)
        self._in_hand = []
        return True

    def _gather(self) -> None:
        """Nothing; where the last batch had company, a moment was waited for as much again."""
        if self._company > 1 and not self._streams and not self._looks:
            self._changed.wait_for(
                lambda: self._stopping or self.waiting >= self._company, timeout=self._pace.gather
            )

    def _begin(self, request: Request) -> None:
        if request.begun_at is None:
            request.begun_at = time.monotonic()
            self._told.waited(request.begun_at - request.asked_at)

    def _translate(self, batch: Batch) -> None:
        begin = time.monotonic()
        self._company = len(batch.shares)
        for request, _, _ in batch.shares:
            self._begin(request)
        try:
            found = translate(batch)
        except LeftError:
            return
        except Exception as error:
            if len(batch.shares) == 1:
                self._fail(batch.shares[0][0], error)
                return
            for share in batch.shares:  # one of them is to blame: the others do not suffer for it
                self._translate(Batch((share,)))
            return
        seconds = time.monotonic() - begin
        for (request, _, _), translations in zip(batch.shares, found, strict=True):
            request.found += translations
            if len(request.found) == len(request.texts):
                request.give(request.found)
        self._speed = 0.8 * self._speed + 0.2 * seconds / len(batch.shares)
        self._told.batch(batch, seconds)

    def _step(self, stream: Stream) -> None:
        """Nothing; the stream told its next piece, or its end."""
        try:
            if stream.running is None:
                self._begin(stream)
                stream.running = stream.pieces()
            if not stream.is_left:
                stream.tell(next(stream.running))
                return
            stream.running.close()
        except StopIteration as end:
            stream.give(end.value)
        except Exception as error:
            self._fail(stream, error)
        with self._changed:
            self._streams.remove(stream)

    def _look(self, look: Look) -> None:
        if look.is_left:
            return
        self._begin(look)
        try:
            look.give(look.work())
        except Exception as error:
            self._fail(look, error)

    @staticmethod
    def _fail(request: Request, error: Exception) -> None:
        if isinstance(error, MemoryError):
            error = Refused(503, "not enough memory for this request: ask for less", retry_after=10)
        request.fail(error)


Supervise = Callable[[BaseException | None], None]


class Supervisor:
    """A thread that starts the worker again when it has ended, and gives up when that happens too often."""

    def __init__(self, worker: Worker, tell: Supervise, give_up: Callable[[], None], most: int = 5) -> None:
        self._worker, self._tell, self._give_up, self._most = worker, tell, give_up, most
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self.deaths: deque[float] = deque()

    def start(self) -> None:
        """Nothing; the worker runs and is watched."""
        self._worker.start()
        self._thread.start()

    def stop(self) -> None:
        """Nothing; a worker that ends is not started again."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.2):
            if self._worker.is_alive:
                continue
            now = time.monotonic()
            self.deaths.append(now)
            while now - self.deaths[0] > 60:
                self.deaths.popleft()
            self._tell(self._worker.failure)
            if len(self.deaths) > self._most:
                self._give_up()
                return
            self._worker.start()
