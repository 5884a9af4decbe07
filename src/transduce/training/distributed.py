"""Several processes as one run: who is who, and how all come to the same decision (section 5.2: 8 GPUs).

torchrun starts the processes and says in their environment who is who. Worker 0, the primary, alone reads the
corpus, writes files and looks at the clock; the others are told. What one worker does while others wait goes
through a key-value store with a sign of life, not through a collective operation: that would time out.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from transduce import machine
from transduce.counts import counted
from transduce.errors import ConfigError, TrainingError, UsageError
from transduce.training.config import TrainingConfig
from transduce.training.waiting import hear, last_words, signs_of_life

T = TypeVar("T")
LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
LEAVE = 30.0  # seconds that the primary, which may hold the store, waits for the others to finish
_runs = itertools.count()


class Workers:
    """The processes of one run as one of them sees them; without torchrun there is just this one."""

    def __init__(self, rank: int = 0, count: int = 1, store: Store | None = None) -> None:
        self.rank, self.count = rank, count
        self.local_rank = int(os.environ.get("LOCAL_RANK", 0)) if store else 0
        self.local_count = int(os.environ.get("LOCAL_WORLD_SIZE", 1)) if store else 1
        self.timeout = TrainingConfig.timeout_minutes * 60
        self._store, self._turn = store, 0

    @property
    def primary(self) -> bool:
        """Whether this is the worker that reads the corpus and writes files."""
        return self.rank == 0

    @property
    def launched(self) -> bool:
        """Whether a launcher started this process, which may start it again with the same command."""
        return self._store is not None or "TORCHELASTIC_RUN_ID" in os.environ

    def device(self, name: str) -> str:
        """The device of this worker: each takes the GPU of its number on this host, or all take the CPU."""
        if self.count == 1:
            return machine.pick_device(name)
        if name not in ("auto", "cpu", "cuda"):
            raise ConfigError(
                f"training.device is {name!r}, but {counted(self.count, 'worker', 'run')}: name auto, cpu or "
                "cuda, and each takes one"
            )
        if name != "cpu" and torch.cuda.is_available():
            if self.local_count > torch.cuda.device_count():
                raise ConfigError(
                    f"{counted(self.local_count, 'worker', 'run')} on {socket.gethostname()}, which has "
                    f"{torch.cuda.device_count()} GPUs: give torchrun --nproc-per-node "
                    f"{torch.cuda.device_count()}, or set training.device=cpu"
                )
            torch.cuda.set_device(self.local_rank)  # before anything makes a context on another's GPU
            return machine.pick_device(f"cuda:{self.local_rank}")
        return machine.pick_device("cpu" if name == "auto" else name)

    def threads(self, wanted: int) -> int:
        """The CPU threads of this worker: as wanted, or an equal share of this host's cores."""
        if wanted or self.count == 1:
            return wanted
        return max(1, machine.usable_cores() // self.local_count)

    def connect(self, device: str, timeout_minutes: float) -> None:
        """Nothing; from now on numbers and gradients can be summed, over GPUs by NCCL, else by gloo.

        A worker that is not heard of for ``timeout_minutes`` ends the others.
        """
        self.timeout = timeout_minutes * 60
        if self._store is None:
            return
        kind = device.partition(":")[0]
        if (other := self.first(lambda: kind)) != kind:
            raise ConfigError(
                f"worker {self.rank} on {socket.gethostname()} computes on {kind}, worker 0 on {other}: mend "
                "the host that differs, or set training.device=cpu"
            )
        self._gather()
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if kind == "cuda" else "gloo",
            store=PrefixStore("group", self._store),
            rank=self.rank,
            world_size=self.count,
            timeout=timedelta(seconds=self.timeout),
        )

    def _gather(self) -> None:
        """Nothing; all workers are here. Whoever failed on the way is heard of, unlike while connecting."""
        assert self._store is not None
        if self._store.add("here", 1) == self.count:
            self._store.set("all here", "")
        hear(self._store, "all here", silence=self.timeout)

    def summed(self, numbers: Tensor) -> Tensor:
        """Each number summed over all workers; on a GPU the host does not wait for it."""
        if self._store is not None:
            dist.all_reduce(numbers)
        return numbers

    def total(self, *numbers: float) -> list[float]:
        """Each number summed over all workers."""
        return list(self.summed(torch.tensor(numbers, dtype=torch.float64)).tolist())

    def agree(self, seconds: float, signal_number: int | None) -> tuple[float, int | None]:
        """The primary's clock, and the signal that any worker caught: the same on all of them."""
        if self._store is None:
            return seconds, signal_number
        caught = [float(signal_number == number) for number in (signal.SIGTERM, signal.SIGINT)]
        seconds, terminated, interrupted = self.total(seconds if self.primary else 0.0, *caught)
        if terminated:
            return seconds, signal.SIGTERM
        return seconds, signal.SIGINT if interrupted else None

    def first(self, work: Callable[[], T]) -> T:
        """What ``work`` gives, done by worker 0 alone, however long it takes; as JSON for the others.

        The others wait while worker 0 shows signs of life. Raises TrainingError where it failed or is gone.
        """
        if self._store is None:
            return work()
        self._turn += 1
        key = f"turn-{self._turn}"
        if self.primary:
            with signs_of_life(self._store):
                result = work()
            self._store.set(key, json.dumps(result))
            return result
        told: T = json.loads(hear(self._store, key, silence=self.timeout))
        return told

    def check_same(self, settings: Mapping[str, Any]) -> None:
        """Nothing; raises ConfigError where this worker was given other settings than worker 0."""
        mine, first = json.loads(json.dumps(settings)), self.first(lambda: settings)
        for section in () if self.primary else mine:
            if mine[section] != first[section]:
                raise ConfigError(
                    f"worker {self.rank} on {socket.gethostname()} was started with another {section} than "
                    f"worker 0: {_difference(first[section], mine[section])}; give all the same command"
                )

    def fail(self, error: BaseException) -> str:
        """Why the run ends: what the first worker that failed said, or this one says; the others are told."""
        assert self._store is not None
        what = machine.one_line(error) or type(error).__name__
        mine = f"worker {self.rank} on {socket.gethostname()}: {what}"
        first = last_words(self._store, mine)
        return what if first in ("", mine) else first

    def leave(self) -> None:
        """Nothing; the process group is gone. The primary, which may hold the store, goes last."""
        store = self._store
        assert store is not None
        if dist.is_initialized():
            dist.destroy_process_group()
        if not self.primary:
            store.add("left", 1)
            return
        deadline = time.monotonic() + LEAVE
        while store.add("left", 0) < self.count - 1 and time.monotonic() < deadline:
            time.sleep(0.01)


ALONE = Workers()


@contextmanager
def joined() -> Iterator[Workers]:
    """The workers that the environment tells of, until left; whoever fails says so to the others.

    That another worker is lost is a TrainingError: its connections break, or it is silent for too long.
    """
    if int(os.environ.get("WORLD_SIZE", 1)) < 2 or "RANK" not in os.environ:
        yield ALONE
        return
    if missing := [name for name in LAUNCHED if name not in os.environ]:
        raise UsageError(f"RANK is set but {missing[0]} is not: start several workers with torchrun")
    limit = timedelta(minutes=TrainingConfig.timeout_minutes)
    store, rank, count = next(rendezvous("env://", timeout=limit))
    # torchrun's store outlives the workers: what those before a restart left there must not be read again.
    start = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    workers = Workers(rank, count, PrefixStore(f"transduce/{start}/{count}/{next(_runs)}", store))
    try:
        yield workers
    except BaseException as error:
        why = workers.fail(error)
        if not (
            isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and "gloo" in str(error))
        ):
            raise
        raise TrainingError(
            f"worker {rank} lost the others ({why}); what came after the last checkpoint is lost: start "
            "again with --resume"
        ) from error
    workers.leave()


def _difference(first: Any, mine: Any) -> str:
    if not (isinstance(first, dict) and isinstance(mine, dict)):
        return f"{first} there, {mine} here"
    name = next(name for name in sorted(first | mine) if first.get(name) != mine.get(name))
    return f"{name} is {first.get(name)} there, {mine.get(name)} here"
