"""A preparation that is killed anywhere goes on where it was, and ends with the same bytes."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from transduce.data import shard_writer as module
from transduce.data.config import DataConfig
from transduce.data.formats.pair import Pair
from transduce.data.journal import Journal
from transduce.data.prepare import prepare
from transduce.data.tokenizer import Tokenizer
from transduce.errors import DataError

Pairs = Callable[..., Iterator[Pair]]
Write = Callable[..., str]


class Killed(BaseException):
    """What nothing catches."""


@pytest.fixture
def corpus(tmp_path: Path, write: Write, pairs: Pairs, tokenizer: Tokenizer) -> DataConfig:
    """Two corpora, with pairs that are dropped and a tokenizer that need not be learned."""
    text = [*pairs(150), Pair("", "leer", "made", 0), Pair("x" * 90, "x", "made", 0), *pairs(50, seed=4)]
    tokenizer.save(tmp_path / "given.model")
    return DataConfig(
        source=(write("a.en", [pair.source for pair in text]),),
        target=(write("a.de", [pair.target for pair in text]),),
        tsv=(write("b.tsv", [f"{pair.source}\t{pair.target}" for pair in pairs(100, seed=9)]),),
        tokenizer=str(tmp_path / "given.model"),
        valid_pairs=8,
    )


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK", 16)
    monkeypatch.setattr(module, "_CHUNKS_BETWEEN_MARKS", 3)


def prepared(corpus: DataConfig, folder: Path, said: list[str] | None = None) -> dict[str, bytes]:
    """All that there is afterwards, but for the times of the files that were read."""
    prepare(corpus, folder, max_length=60, seed=1, say=(said if said is not None else []).append)
    return content(folder)


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "files.json" and not path.name.endswith(".tmp")
    }


class _File:
    """An open file of which writing, cutting and bringing to the disk are operations."""

    def __init__(self, file: Any, operate: Callable[[], None]) -> None:
        self._file, self._operate = file, operate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, part: bytes) -> int:
        self._file.write(part[: len(part) // 2])
        self._file.flush()
        self._operate()
        return int(self._file.write(part[len(part) // 2 :]))

    def truncate(self, size: int) -> Any:
        self._operate()
        return self._file.truncate(size)

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


@contextmanager
def watched(operate: Callable[[], None]) -> Iterator[None]:
    """``operate`` is called before whatever a preparation does to the file system, and within writes."""
    with pytest.MonkeyPatch.context() as patch:
        sync = os.fsync  # is not done: it takes its time, and nothing is lost here
        for name in ("mkdir", "replace", "unlink", "fsync"):
            real = getattr(os, name)

            def before(*arguments: Any, _real: Any = real, **named: Any) -> Any:
                operate()
                return None if _real is sync else _real(*arguments, **named)

            patch.setattr(os, name, before)
        opened = io.open

        def watched_open(path: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
            if mode in ("rb", "r"):
                return opened(path, mode, *arguments, **named)
            operate()
            return _File(opened(path, mode, *arguments, **named), operate)

        patch.setattr(io, "open", watched_open)
        yield


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # files that stay open
def test_a_kill_at_every_operation(tmp_path: Path, corpus: DataConfig) -> None:
    expected = prepared(corpus, tmp_path / "whole")
    operations = 0

    def count() -> None:
        nonlocal operations
        operations += 1

    with watched(count):
        prepared(corpus, tmp_path / "counted")
    assert operations > 100
    went_on = 0
    for last in range(0, operations, 1 + operations // 20):
        folder, said = tmp_path / "killed", list[str]()
        left = last

        def kill() -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed

        with watched(kill), pytest.raises(Killed):
            prepared(corpus, folder)
        left = random.Random(last).randrange(last + 1)  # and once more, before it is allowed to end
        with watched(kill), suppress(Killed):
            prepared(corpus, folder)
        assert prepared(corpus, folder, said) == expected, last
        went_on += any("going on after" in line for line in said)
        shutil.rmtree(folder)
    assert went_on > 5


def test_going_on_reads_what_is_left_and_encodes_nothing_twice(
    tmp_path: Path, corpus: DataConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = prepared(corpus, tmp_path / "whole")
    encode, texts = Tokenizer.encode_batch, 0

    def killing(self: Tokenizer, batch: list[str], **how: Any) -> list[list[int]]:
        nonlocal texts
        if texts > 200:
            raise Killed
        texts += len(batch)
        return encode(self, batch, **how)

    monkeypatch.setattr(Tokenizer, "encode_batch", killing)
    with pytest.raises(Killed):
        prepared(corpus, tmp_path / "data")
    journal = json.loads((tmp_path / "data" / "unfinished.json").read_bytes())
    assert journal["done"]["train"]["report"]["pairs"] == 96  # two marks of three chunks of 16
    said: list[str] = []
    texts = 0
    monkeypatch.setattr(Tokenizer, "encode_batch", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        prepared(corpus, tmp_path / "data", said)
    assert said[-1] == "turning 302 pairs into tokens, going on after 96"
    assert not [line for line in said if "choosing" in line]  # that was done
    monkeypatch.setattr(Tokenizer, "encode_batch", encode)
    assert prepared(corpus, tmp_path / "data") == whole
    assert "unfinished.json" not in whole


@pytest.mark.parametrize("workers", [2, 3])
def test_the_same_bytes_for_any_number_of_workers(tmp_path: Path, corpus: DataConfig, workers: int) -> None:
    alone = prepared(replace(corpus, workers=1), tmp_path / "alone")
    assert prepared(replace(corpus, workers=workers), tmp_path / "several") == alone


def test_other_files_or_settings_do_not_go_on(tmp_path: Path, corpus: DataConfig) -> None:
    other = replace(corpus, max_length=20)
    expected = prepared(other, tmp_path / "other")
    _cut_short(corpus, tmp_path / "data")
    said: list[str] = []
    assert prepared(other, tmp_path / "data", said) == expected
    assert not [line for line in said if "going on" in line]


@pytest.mark.parametrize("damage", ["shorter", "gone", "valid.jsonl", "tokenizer.model", "journal"])
def test_what_was_lost_is_made_again(tmp_path: Path, corpus: DataConfig, damage: str) -> None:
    expected = prepared(corpus, tmp_path / "whole")
    folder = tmp_path / "data"
    _cut_short(corpus, folder)
    tokens = folder / "train" / "target.tokens"
    if damage == "shorter":
        tokens.write_bytes(tokens.read_bytes()[:100])
    elif damage == "gone":
        tokens.unlink()
    elif damage == "journal":
        (folder / "unfinished.json").write_bytes(b'{"made_from"')
    else:
        (folder / damage).write_bytes(b"damaged")
    assert prepared(corpus, folder) == expected


def _cut_short(corpus: DataConfig, folder: Path) -> None:
    """A preparation that was killed after some marks."""
    note, notes = Journal.note, 0

    def killing(self: Journal, **done: Any) -> None:
        nonlocal notes
        note(self, **done)
        notes += 1
        if notes == 5:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "note", killing)
        with pytest.raises(Killed):
            prepared(corpus, folder)
    assert (folder / "unfinished.json").exists()


def test_too_small_a_disk_is_noticed_before_the_start(
    tmp_path: Path, corpus: DataConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 1000))
    with pytest.raises(DataError, match=r"about 0 MiB are needed but 0 MiB are free; make room"):
        prepared(corpus, tmp_path / "data")
    assert not (tmp_path / "data" / "train").exists()


SCRIPT = """
import sys
from transduce.data import shard_writer
from transduce.data.config import DataConfig
from transduce.data.prepare import prepare
shard_writer._CHUNK, shard_writer._CHUNKS_BETWEEN_MARKS = 64, 2
source, target, folder = sys.argv[1:]
config = DataConfig(source=(source,), target=(target,), valid_pairs=20, vocabulary=330, workers=2)
prepare(config, folder, max_length=60, seed=1, say=print)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_kill_9_at_random_instants(tmp_path: Path, write: Write, pairs: Pairs) -> None:
    """The whole preparation, subwords and two workers included, killed from outside again and again."""
    text = list(pairs(6000))
    files = write("p.en", [pair.source for pair in text]), write("p.de", [pair.target for pair in text])
    chance = random.Random(1)

    def start(folder: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", SCRIPT, *files, str(tmp_path / folder)],
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    began = time.monotonic()
    assert start("whole").wait(60) == 0
    whole = time.monotonic() - began
    kills = 0
    for _ in range(5):
        with start("killed") as process:
            try:
                process.wait(chance.uniform(0.2, 1.1) * whole)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                kills += 1
    assert kills
    assert start("killed").wait(60) == 0
    assert content(tmp_path / "killed") == content(tmp_path / "whole")
