"""Work shared out among the actors of a Ray cluster, its results in the order of the work.

Ray does the scheduling: it places the actors, restarts one that is lost, and does again what that one was at.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from transduce import machine
from transduce.errors import TransduceError, UsageError

Item = TypeVar("Item")
Result = TypeVar("Result")

LOCAL = "local"
_STORE = 1 << 28  # bytes for what is on its way in a local cluster; what is more goes to the disk
_AHEAD = 2  # pieces of work that are sent out for each actor


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int, address: str, *, gpus: float = 0.0
) -> Generator[Result, None, None]:
    """``work`` of each item, in the order of the items, done by so many actors; 0: one for each core.

    ``address`` names the cluster; ``local`` is one of this machine, which ends with the work. Raises
    UsageError where Ray is not installed or the cluster does not answer.
    """
    with connected(address, workers) as ray:
        from ray.util import ActorPool

        workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        options = {"num_cpus": 1, "num_gpus": gpus, "max_restarts": -1, "max_task_retries": -1}
        actor = ray.remote(**options)(Actor)
        shared = ray.put(work)
        pool = ActorPool([actor.remote(shared) for _ in range(workers)])
        waiting = 0
        for item in items:
            pool.submit(lambda one, piece: one.do.remote(piece), item)
            waiting += 1
            if waiting == workers * _AHEAD:
                yield _result(pool)
                waiting -= 1
        for _ in range(waiting):
            yield _result(pool)


class Actor:
    """What stands on a machine of the cluster and does pieces of work, one after another."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self.work = work

    def do(self, item: Any) -> Any:
        """What ``work`` makes of the item; a mistake of the user's is given back and not raised."""
        try:
            return self.work(item)
        except TransduceError as error:
            return error


def _result(pool: Any) -> Any:
    result = pool.get_next()
    if isinstance(result, TransduceError):
        raise result
    return result


@contextmanager
def connected(address: str, workers: int = 0) -> Iterator[Any]:
    """The ray module, connected to the cluster; one that was connected before stays so."""
    try:
        import ray
    except ImportError:
        raise UsageError(
            f"--ray {address} needs Ray; install it with `pip install 'transduce[ray]'`, or leave --ray out"
        ) from None
    if ray.is_initialized():
        yield ray
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.WARNING}
    try:
        if address == LOCAL:
            ray.init(
                address=LOCAL,
                num_cpus=workers or machine.usable_cores(),
                object_store_memory=_STORE,
                include_dashboard=False,
                **quiet,
            )
        else:
            ray.init(address=address, **quiet)
    except Exception as error:  # Ray raises all kinds, Exception itself among them
        ray.shutdown()
        raise _not_connected(address, machine.one_line(error)) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _not_connected(address: str, said: str) -> TransduceError:
    if address == LOCAL:
        return TransduceError(
            f"--ray local: the local Ray cluster did not start ({said}); free memory and try again, see "
            "Ray's logs in /tmp/ray/session_latest/logs, or leave --ray out: --workers needs no Ray"
        )
    return UsageError(
        f"--ray {address}: no cluster answers there ({said}); start one with `ray start --head`, or use "
        "--ray local"
    )
