"""What a run says: one JSON line per report in a file, plain lines in a log, a progress bar on a terminal."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from pathlib import Path
from typing import IO, Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn


class Mirror(Protocol):
    """Whatever else is told each event of the log, e.g. TensorBoard."""

    def write(self, entry: dict[str, Any]) -> None:
        """Nothing; the event was taken over."""

    def close(self) -> None:
        """Nothing; no more events will come."""


class RunLog:
    """The log of one run: ``log.jsonl`` in its folder, and what a person sees on ``stream``.

    ``mirror`` is told every event as well; whoever sets it calls ``close``.
    """

    def __init__(self, path: str | Path, stream: IO[str] | None = None, *, quiet: bool = False) -> None:
        self.path = Path(path)
        self.console = Console(
            file=stream or sys.stderr, highlight=False, markup=False, soft_wrap=True, quiet=quiet
        )
        self.mirror: Mirror | None = None
        self._progress: Progress | None = None
        self._mended = False

    def say(self, line: str) -> None:
        """Nothing; a line for people, above the progress bar where there is one."""
        self.console.print(line)

    def write(self, kind: str, values: dict[str, Any]) -> None:
        """Nothing; one JSON line with a time stamp in ``log.jsonl``."""
        entry = {"event": kind, "time": round(time.time(), 3), **values}
        line = json.dumps(entry, ensure_ascii=False, allow_nan=False, default=str) + "\n"
        with self.path.open("ab+") as file:
            file.write(self._mend(file) + line.encode())
        if self.mirror is not None:
            self.mirror.write(entry)

    def _mend(self, file: IO[bytes]) -> bytes:
        """The end of the half line that a killed run may have left, so that this one stands alone."""
        if self._mended:
            return b""
        self._mended = True
        if not file.tell():  # a file opened for appending stands at its end
            return b""
        file.seek(-1, os.SEEK_END)
        return b"" if file.read(1) == b"\n" else b"\n"

    def close(self) -> None:
        """Nothing; the mirror, if there is one, has all it was told."""
        if self.mirror is not None:
            self.mirror.close()
            self.mirror = None

    def start_progress(self) -> None:
        """Nothing; a progress bar appears if the stream is a terminal."""
        if self.console.is_terminal:
            self._progress = Progress(
                BarColumn(bar_width=24),
                TextColumn("{task.description}"),
                console=self.console,
                transient=True,
            )
            self._progress.add_task("", total=1.0)
            self._progress.start()

    def show(self, done: float, line: str) -> None:
        """Nothing; the progress bar shows ``line`` and the share ``done`` of the run."""
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], completed=min(done, 1.0), description=line)

    @property
    def live(self) -> bool:
        """Whether a progress bar is on the screen."""
        return self._progress is not None

    def stop_progress(self) -> None:
        """Nothing; the progress bar is gone."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def duration(seconds: float) -> str:
    """Seconds as 42 s, 3:05 min or 2:07 h."""
    if not math.isfinite(seconds):
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02d} h"
