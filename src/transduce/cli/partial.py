"""Output files that grow under NAME.partial, so that a run that was stopped anywhere can go on where it was.

NAME.partial.json says how many lines are done, how many bytes they take in each file, and what they were
made from: it is renamed into place after the lines are on the disk. What lies beyond is cut off.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol, runtime_checkable

from transduce.cli.writing import opened
from transduce.counts import counted
from transduce.errors import DataError, UsageError

# So many more lines of what stands beside the input; None where nothing does.
Beside = Callable[[int], list[str] | None]

# How often it is written down how far a run is, in seconds.
NOTE_EVERY = 1.0


class Partial:
    """The files of a run, and how far it is. ``paths`` are the names that they get in the end.

    ``made_from`` is compared, name by name, with that of the run that is gone on with.
    """

    def __init__(self, paths: Sequence[str], made_from: Mapping[str, Any], *, resume: bool) -> None:
        self.paths = [Path(path).resolve() for path in paths]
        self.partials = [path.with_name(f"{path.name}.partial") for path in self.paths]
        self.state_file = self.partials[0].with_name(f"{self.partials[0].name}.json")
        self.state_new = self.state_file.with_name(f"{self.state_file.name}.new")
        self.made_from = json.loads(json.dumps(made_from))
        self.lines = self.noted = 0
        self.refused = False
        self._read = hashlib.sha256()
        self._noted_at = time.monotonic()
        self.earlier = self._earlier(resume)
        self.files = [self._opened(at) for at in range(len(self.paths))]
        self.sizes = [file.tell() for file in self.files]

    def _earlier(self, resume: bool) -> dict[str, Any]:
        """What an earlier run has left, checked; empty where there is none."""
        shown = self.partials[0]
        if not self.state_file.exists():
            return {}
        try:
            state: dict[str, Any] = json.loads(self.state_file.read_bytes())
            lines, before = int(state["lines"]), dict(state["made_from"])
            _ = str(state["input"]), [int(size) for size in state["bytes"]]
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{self.state_file}: is damaged; delete it and {shown} to begin anew") from None
        if not resume:
            raise UsageError(
                f"{shown}: holds {counted(lines, 'line')} of a run that was stopped; add --resume to go on, "
                f"or delete {self.state_file.name} to begin anew"
            )
        for name in sorted({*before, *self.made_from}):
            old, new = before.get(name), self.made_from.get(name)
            if old != new:
                raise UsageError(
                    f"{shown}: was written with {name} {old!r}, now it is {new!r}; "
                    f"go on with the same, or delete {self.state_file.name} to begin anew"
                )
        return state

    def _opened(self, at: int) -> IO[bytes]:
        """The file to go on with, cut after the lines that are done; no other run writes it meanwhile."""
        path = self.partials[at]
        wanted = self.earlier["bytes"][at] if self.earlier else 0
        # Not cut before it is locked: it may be another run's.
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+b")
        _lock(file, path)
        there = file.seek(0, os.SEEK_END)
        if there < wanted:
            file.close()
            raise DataError(
                f"{path}: has {counted(there, 'byte')}, but {wanted:,} were written; delete "
                f"{self.state_file.name} to begin anew"
            )
        file.truncate(wanted)
        file.seek(wanted)
        return file

    def rest(self, chunks: Iterator[list[str]], beside: Beside) -> Iterator[list[str]]:
        """The chunks that are not done. Those that are must be the same as then."""
        wanted = int(self.earlier.get("lines", 0))
        first: list[str] = []
        while self.lines < wanted and (chunk := next(chunks, None)) is not None:
            done, first = chunk[: wanted - self.lines], chunk[wanted - self.lines :]
            self._count(done, beside(len(done)))
        if self.earlier and self._read.hexdigest() != self.earlier["input"]:
            self.lines, self.refused = self.noted, True
            raise DataError(
                f"the first {counted(wanted, 'line')} of the input are not those that {self.partials[0]} was "
                f"made from; give the same input, or delete {self.state_file.name} to begin anew"
            )
        self.noted = self.lines
        return itertools.chain([first] if first else [], chunks)

    def _count(self, lines: Sequence[str], beside: Sequence[str] | None) -> None:
        for line, other in zip(lines, beside or itertools.repeat(""), strict=False):
            self._read.update(f"{line}\n{other}\n".encode())
        self.lines += len(lines)

    def done(self, lines: Sequence[str], beside: Sequence[str] | None) -> None:
        """Nothing; what became of these lines stands in the files, and now and then that is written down."""
        self._count(lines, beside)
        for file in self.files:
            file.flush()
        self.sizes = [file.tell() for file in self.files]
        if time.monotonic() - self._noted_at >= NOTE_EVERY:
            self.note()

    def note(self) -> None:
        """Nothing; the lines that are done are on the disk, and so is their number."""
        for file in self.files:
            file.flush()
            os.fsync(file.fileno())
        state = {
            "lines": self.lines,
            "bytes": self.sizes,
            "input": self._read.hexdigest(),
            "made_from": self.made_from,
        }
        # A name that is always the same, so that a kill leaves nothing that nobody clears away.
        with self.state_new.open("wb") as new:
            new.write((json.dumps(state, ensure_ascii=False, indent=2) + "\n").encode())
            new.flush()
            os.fsync(new.fileno())
        self.state_new.replace(self.state_file)
        self.noted, self._noted_at = self.lines, time.monotonic()

    def finish(self) -> None:
        """Nothing; the files have their names, and nothing else is left."""
        from transduce.files import sync_folder

        for file in self.files:
            file.flush()
            os.fsync(file.fileno())
            file.close()
        pairs = list(zip(self.paths, self.partials, strict=True))
        for path, partial in pairs:
            if path.suffix == ".gz":
                with opened(str(path)) as packed, partial.open("rb") as plain:
                    shutil.copyfileobj(plain, packed, 1 << 20)
        # From here on a kill means that the work is done once more: some of the files may be gone.
        self.state_file.unlink(missing_ok=True)
        for path, partial in pairs:
            if path.suffix != ".gz":
                partial.replace(path)
                sync_folder(path.parent)
        for left in (self.state_file, self.state_new, *self.partials):
            left.unlink(missing_ok=True)

    def stop(self) -> None:
        """Nothing; where lines are done they are kept and it is said how to go on, else nothing is left."""
        with contextlib.suppress(OSError):  # a full disk: what was noted before is still right
            if self.lines > self.noted:
                self.note()
        for file in self.files:
            with contextlib.suppress(OSError):
                file.close()
        if self.refused:
            return
        if self.noted:
            print(
                f"transduce: {counted(self.noted, 'line', 'are')} in {self.partials[0]}; the same call with "
                "--resume goes on",
                file=sys.stderr,
            )
            return
        for left in (self.state_file, self.state_new, *self.partials):
            left.unlink(missing_ok=True)


@runtime_checkable
class Sink(Protocol):
    """What bytes can be written to."""

    def write(self, data: bytes, /) -> int:
        """How many bytes are taken."""
        ...

    def flush(self) -> None:
        """Nothing; the bytes are handed on."""
        ...


class Straight:
    """Standard output, pipes and devices: what is written is gone, so there is nothing to go on with."""

    def __init__(self, files: Sequence[Sink]) -> None:
        self.files, self.lines = list(files), 0

    def rest(self, chunks: Iterator[list[str]], beside: Beside) -> Iterator[list[str]]:
        """The chunks: none are done."""
        return chunks

    def done(self, lines: Sequence[str], beside: Sequence[str] | None) -> None:
        """Nothing; the reader has what became of these lines."""
        self.lines += len(lines)
        for file in self.files:
            file.flush()


@contextlib.contextmanager
def resumable(
    paths: Sequence[str], made_from: Mapping[str, Any], *, resume: bool
) -> Iterator[Partial | Straight]:
    """The files of a run; they get their names when it ends well, and stay to be gone on with when not."""
    if any(path == "-" or (Path(path).exists() and not Path(path).is_file()) for path in paths):
        if resume:
            raise UsageError("--resume goes on with a file: name one with --output")
        with contextlib.ExitStack() as stack:
            yield Straight([stack.enter_context(opened(path)) for path in paths])
        return
    partial = Partial(paths, made_from, resume=resume)
    try:
        yield partial
    except BaseException:
        partial.stop()
        raise
    partial.finish()


def fingerprint(path: str | Path) -> str:
    """What a model folder or a file is known by: the first digits of a checksum of what it holds."""
    path = Path(path)
    # The configuration of a model holds the checksums of its other parts.
    return hashlib.sha256((path / "config.json" if path.is_dir() else path).read_bytes()).hexdigest()[:16]


def _lock(file: IO[bytes], path: Path) -> None:
    """Nothing; UsageError where another run writes the file. Where the system has no such locks: nothing."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise UsageError(f"{path}: another run is writing it; name another --output") from None
