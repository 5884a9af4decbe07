"""What a run says: one JSON line per report in a file, plain lines in a log, a progress bar on a terminal."""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn


class RunLog:
    """The log of one run: ``log.jsonl`` in its folder, and what a person sees on ``stream``."""

    def __init__(self, path: str | Path, stream: IO[str] | None = None, *, quiet: bool = False) -> None:
        self.path = Path(path)
        self.console = Console(
            file=stream or sys.stderr, highlight=False, markup=False, soft_wrap=True, quiet=quiet
        )
        self._progress: Progress | None = None

    def say(self, line: str) -> None:
        """Nothing; a line for people, above the progress bar where there is one."""
        self.console.print(line)

    def write(self, kind: str, values: dict[str, Any]) -> None:
        """Nothing; one JSON line with a time stamp in ``log.jsonl``."""
        entry = {"event": kind, "time": round(time.time(), 3), **values}
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(entry, ensure_ascii=False, allow_nan=False, default=str) + "\n")

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
