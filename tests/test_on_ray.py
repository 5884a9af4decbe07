"""Work on a Ray cluster of this machine: the same results as here, also where a worker is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tiny_translator import sentences, tiny_bundle
from transduce.bundle import save_bundle
from transduce.data import cluster
from transduce.data.config import DataConfig
from transduce.data.crew import Crew
from transduce.data.prepare import prepare
from transduce.documents import bulk
from transduce.documents.bulk import translate_folder
from transduce.errors import DataError, TransduceError, UsageError

HOW = {"device": "cpu", "precision": "fp32", "engine": "torch", "threads": 1}


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A cluster of two workers that all tests share: starting one takes seconds."""
    pytest.importorskip("ray", reason="needs the extra `ray`")
    with cluster.connected("local", 2) as module:
        yield module


def workers() -> list[int]:
    """The processes of this cluster in which actors stand."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            title = (folder / "cmdline").read_bytes()
            if title.startswith(b"ray::Actor") and os.getpid() in _ancestors(int(folder.name)):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def _ancestors(process: int) -> Iterator[int]:
    while process > 1:
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        yield process


def tagged() -> Any:
    """Work that says which process did it; made here, so that it is sent whole and not by name."""

    def work(item: int) -> tuple[int, int]:
        time.sleep(0.02)
        return item, os.getpid()

    return work


def test_a_killed_worker_is_replaced_and_its_share_done_again(ray: Any) -> None:
    count, seen, killed, read = 60, set[int](), 0, 0
    results = []

    def items() -> Iterator[int]:
        nonlocal read
        for number in range(count):
            read = number + 1
            yield number

    for number, (item, process) in enumerate(Crew(workers=2, ray="local").in_order(tagged(), items())):
        results.append(item)
        seen.add(process)
        assert read <= number + 5  # two for each worker are on their way
        if number == count // 2:
            killed = process
            os.kill(process, signal.SIGKILL)
    assert results == list(range(count))
    assert killed
    assert len(seen) == 3
    assert os.getpid() not in seen


def test_mistakes_are_said_as_they_would_be_here(ray: Any) -> None:
    def work(item: int) -> int:
        if item == 3:
            raise DataError("line 3: bad")
        return item

    with pytest.raises(DataError, match=r"^line 3: bad$"):
        list(Crew(workers=2, ray="local").in_order(work, range(9)))


def test_shards_are_the_same(ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce.data.shard_writer._CHUNK", 50)
    for side in ("en", "de"):
        (tmp_path / side).write_text("".join(f"{line}\n" for line in sentences(700, seed=len(side))))
    files = {"source": (str(tmp_path / "en"),), "target": (str(tmp_path / "de"),), "vocabulary": 330}
    for name, how in (("here", {}), ("there", {"ray": "local", "workers": 2})):
        prepare(DataConfig(**files, **how), tmp_path / name, max_length=60, seed=1)
    for path in (tmp_path / "here").rglob("*"):
        if path.is_file() and path.name != "files.json":
            other = tmp_path / "there" / path.relative_to(tmp_path / "here")
            assert path.read_bytes() == other.read_bytes(), path
    assert np.fromfile(tmp_path / "there" / "train" / "source.tokens", "<u2").size > 1000


def test_a_folder_is_translated_once_although_a_worker_is_killed(
    ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "_PIECE", 5)
    monkeypatch.setattr("transduce.machine.set_threads", lambda threads: 1)
    bundle = tiny_bundle(max_length=40)
    save_bundle(tmp_path / "model", bundle.model, bundle.model.config, bundle.tokenizer, {})
    (tmp_path / "in").mkdir()
    for name in "abc":
        lines = sentences(30, seed=ord(name), words=(1, 4))
        (tmp_path / "in" / name).write_text("".join(f"{line}\n" for line in lines))
    call: tuple[Any, ...] = (tmp_path / "model", tmp_path / "in")
    options = {"beam": 2, "max_extra": 3, "how": HOW}
    translate_folder(*call, tmp_path / "here", **options)
    total, killed = 0, list[int]()

    def told(lines: int) -> None:
        nonlocal total
        total += lines
        if total >= 45 and not killed:
            killed.append(workers()[0])
            os.kill(killed[0], signal.SIGKILL)

    translate_folder(*call, tmp_path / "there", crew=Crew(workers=2, ray="local"), told=told, **options)
    assert total == 90
    assert killed
    for name in "abc":
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == [".bulk.json", "a", "b", "c"]


def test_a_cluster_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    module = pytest.importorskip("ray", reason="needs the extra `ray`")

    def refused(**_: Any) -> None:
        raise ConnectionError("Failed to connect\nto GCS")

    monkeypatch.setattr(module, "init", refused)
    monkeypatch.setattr(module, "is_initialized", lambda: False)
    with pytest.raises(UsageError, match=r"--ray 127\.0\.0\.1:1: no cluster answers there .*GCS.*ray start"):
        next(Crew(ray="127.0.0.1:1").in_order(len, ["a"]))


@pytest.mark.parametrize("error", [Exception, RuntimeError, TimeoutError, OSError])
def test_a_local_cluster_that_does_not_start(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    module = pytest.importorskip("ray", reason="needs the extra `ray`")
    ended: list[bool] = []

    def refused(**_: Any) -> None:
        raise error("The current node timed out\nduring startup.")

    monkeypatch.setattr(module, "init", refused)
    monkeypatch.setattr(module, "is_initialized", lambda: False)
    monkeypatch.setattr(module, "shutdown", lambda: ended.append(True))
    with pytest.raises(
        TransduceError,
        match=r"^--ray local: the local Ray cluster did not start \(.*timed out.*leave --ray out",
    ) as found:
        next(Crew(ray="local").in_order(len, ["a"]))
    assert found.value.exit_code == 1
    assert ended


def test_without_ray_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(
        UsageError, match=r"--ray local needs Ray; install it with `pip install 'transduce\[ray\]'`"
    ):
        next(Crew(ray="local").in_order(len, ["a"]))
