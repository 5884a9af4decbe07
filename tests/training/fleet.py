"""Runs of several workers on this machine: `fleet` starts them, this file is also what each of them runs.

Each worker makes the calls of `train` that a JSON file lists, one after another, and notes which pairs it saw
in which update and which files it opened for writing.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from served import Served

Call = dict[str, Any]


def environment(**more: str) -> dict[str, str]:
    source = str(Path(__file__).parents[2] / "src")
    path = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **more}


@contextmanager
def fleet(folder: Path, calls: Sequence[Call], workers: int) -> Iterator[list[Served]]:
    """The running processes, without torchrun; those left are killed at the end."""
    from served import script

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    file = folder / f"calls-{time.monotonic_ns()}.json"
    file.write_text(json.dumps(calls), encoding="utf-8")
    processes = []
    for rank in range(workers):
        ranks = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": workers, "LOCAL_WORLD_SIZE": workers}
        variables = {name: str(value) for name, value in ranks.items()}
        where = environment(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), **variables)
        processes.append(script(__file__, str(file), environment=where))
    try:
        yield processes
    finally:
        for process in processes:
            process.__exit__()


def ended(processes: Sequence[Served], limit: float = 600) -> list[tuple[int, str]]:
    """Exit code and stderr of each process; TimeoutExpired where one still runs after ``limit`` seconds."""
    deadline = time.monotonic() + limit
    outputs = [process.communicate(timeout=max(0.1, deadline - time.monotonic()))[1] for process in processes]
    return [(process.wait(0), output) for process, output in zip(processes, outputs, strict=True)]


def run_fleet(folder: Path, calls: Sequence[Call], workers: int) -> None:
    """Nothing; all calls were made and all workers have ended well."""
    with fleet(folder, calls, workers) as processes:
        for rank, (code, said) in enumerate(ended(processes)):
            assert code == 0, f"worker {rank} of {workers}: {said}"


def seen(run: Path) -> dict[int, list[int]]:
    """The pairs of each update, of all workers together and sorted."""
    updates: dict[int, list[int]] = {}
    for file in run.parent.glob(f"{run.name}.seen-*"):
        for line in file.read_text(encoding="utf-8").splitlines():
            note = json.loads(line)
            updates.setdefault(note["step"], []).extend(note["ids"])
    return {step: sorted(ids) for step, ids in updates.items()}


def written(run: Path, rank: int) -> list[str]:
    """The files under ``run`` that worker ``rank`` opened for writing, renamed or removed."""
    file = run.with_name(f"{run.name}.written-{rank}")
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def note_pairs(run: Path, rank: int) -> Any:
    """A replacement of `own_batches` that notes what this worker is given."""
    from transduce.training.shares import own_batches

    def noting(update: Any, workers: Any, seeds: Any, make: Any) -> Any:
        made = []

        def making(ids: Any) -> Any:
            made.append([int(i) for i in ids])
            return make(ids)

        batches = own_batches(update, workers, seeds, making)
        ids = [i for ids, batch in zip(made, batches, strict=True) if batch.target_tokens for i in ids]
        with run.with_name(f"{run.name}.seen-{rank}").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": seeds[1], "ids": ids}) + "\n")
        return batches

    return noting


def _note_writes(run: Path, rank: int) -> None:
    notes = run.with_name(f"{run.name}.written-{rank}")
    changes = {"os.rename", "os.remove", "os.rmdir", "os.mkdir"}

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        writes = (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if (writes or event in changes) and str(arguments[0]).startswith(f"{run}{os.sep}"):
            with notes.open("a", encoding="utf-8") as file:
                file.write(f"{event} {arguments[0]}\n")

    sys.addaudithook(hook)


def _worker(calls: Sequence[Call]) -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    from functools import partial

    import pytest
    import torch
    from shortage import Shortage, decide_on_the_device, limit_memory, run_out

    from transduce.training import run as module
    from transduce.training import trainer

    rank = int(os.environ["RANK"])
    for call in calls:
        folder = Path(call.pop("output"))
        for name, value in call.pop("environment", {}).items():
            os.environ[name] = value[rank] if isinstance(value, list) else value
        if delay := call.pop("validation_seconds", 0):
            _slow_validation(delay)
        settings = call.pop("settings_of", {}).get(str(rank), call.pop("settings", {}))
        trainer.own_batches = note_pairs(folder, rank)
        _note_writes(folder, rank)
        with pytest.MonkeyPatch.context() as patch:
            run_out(patch, [Shortage(**short) for short in call.pop("shortages", [])], rank)
            if tokens := call.pop("memory", {}).get(str(rank)):
                limit_memory(patch, tokens)
            if call.pop("ahead", False):
                decide_on_the_device(patch)
            if size := call.pop("bucket_mb", None):
                parallel = torch.nn.parallel
                whole = parallel.DistributedDataParallel
                patch.setattr(parallel, "DistributedDataParallel", partial(whole, bucket_cap_mb=size))
            module.train(folder, settings=settings, **call)


def _slow_validation(seconds: float) -> None:
    from transduce.training import composition

    validate = composition.validate

    def slow(*arguments: Any, **named: Any) -> Any:
        time.sleep(seconds)
        return validate(*arguments, **named)

    composition.validate = slow


def _main() -> int:
    from transduce.errors import TransduceError

    try:
        _worker(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    except TransduceError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(_main())
