from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from transduce.data.encoding import Encoder
from transduce.data.formats.pair import Pair
from transduce.data.pool import in_order, usable_workers
from transduce.data.tokenizer import Tokenizer
from transduce.errors import DataError


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_come_in_the_order_of_the_work(workers: int) -> None:
    before = children()
    items = [list(range(count % 7)) * 1000 for count in range(40)]
    assert list(in_order(len, items, workers)) == [len(item) for item in items]
    assert list(in_order(len, [], workers)) == []
    assert children() == before


def test_no_more_is_read_than_there_are_workers_and_one() -> None:
    read = 0

    def items() -> Iterator[str]:
        nonlocal read
        for read in range(1, 100):
            yield "x" * read

    for done, size in enumerate(in_order(len, items(), 2), 1):
        assert size == done
        assert read <= done + 2
    assert read == 99


def test_large_items_and_results_never_wait_for_each_other() -> None:
    items = ["x" * 3_000_000, "y"] * 4
    assert [len(text) for text in in_order(str.upper, items, 2)] == [3_000_000, 1] * 4


def test_what_is_wrong_is_said_as_it_would_be_here(tokenizer: Tokenizer) -> None:
    before = children()
    chunks = [[Pair("a dog", "ein Hund", "made", 1)], [Pair("a \ud800", "ein", "made", 2)]]
    for workers in (1, 2):
        with pytest.raises(
            DataError, match=r"column 3: lone surrogate U\+D800: not valid Unicode; remove it"
        ):
            list(in_order(Encoder(tokenizer, 99), chunks, workers))
    assert children() == before


@pytest.mark.parametrize(
    ("work", "how"), [(os._exit, "with exit code 9"), (signal.raise_signal, "by signal 9")]
)
def test_a_lost_worker_is_said_and_the_others_end(work: object, how: str) -> None:
    before = children()
    with pytest.raises(DataError, match=rf"a worker process ended {how}; .*set data\.workers lower"):
        list(in_order(work, [9] * 5, 2))  # type: ignore[arg-type]
    assert children() == before


def test_work_that_is_given_up_leaves_no_process() -> None:
    before = children()
    results = in_order(len, ["a"] * 100, 2)
    assert next(results) == 1
    assert children() > before
    results.close()  # type: ignore[attr-defined]
    assert children() == before


def test_workers_end_with_the_process_that_feeds_them_and_its_program_is_not_run_again(
    tmp_path: Path,
) -> None:
    """Killed with -9, a program without an ``if __name__ == "__main__"`` leaves nothing behind."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import os, pathlib, time
        from transduce.data.pool import in_order

        print("once", flush=True)
        results = in_order(len, ["a"] * 100, 2)
        next(results)
        print(pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text(), flush=True)
        time.sleep(60)
        """)
    )
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "once\n"
        started = program.stdout.readline().split()
        assert len(started) == 2
        program.kill()
        assert program.stdout.read() == ""  # and so its standard output is closed: no worker holds it
    for _ in range(200):
        if not any(Path(f"/proc/{number}").exists() for number in started):
            return
        time.sleep(0.05)
    pytest.fail(f"still there: {started}")


def test_as_many_workers_as_wanted_or_as_there_are_cores() -> None:
    assert usable_workers(5) == 5
    assert usable_workers() == len(os.sched_getaffinity(0)) or usable_workers() >= 1
