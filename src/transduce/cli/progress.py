"""How far a command is that works through lines: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

# A run that is not watched on a terminal says how far it is, so often (in seconds).
REPORT_EVERY = 60.0


class Progress:
    """How far the run is: a bar where standard error is a terminal, else a line now and then.

    ``total`` is for work that is no file; of a file it is counted, where the bar shows it.
    """

    def __init__(self, path: str, verb: str, *, quiet: bool, unit: str = "lines", total: int = 0) -> None:
        self.verb, self.lines, self.total, self.quiet, self.unit = verb, 0, total, quiet, unit
        self.began = self.reported = time.monotonic()
        self.bar: Any = None
        if not quiet and sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            if path != "-" and Path(path).suffix not in (".gz", ".zst"):
                from transduce.data.lines import count_lines

                self.total = count_lines(path)
            columns = (
                progress.TextColumn(verb),
                progress.BarColumn(),
                progress.MofNCompleteColumn(),
                progress.TextColumn("{task.fields[speed]}"),
                progress.TimeRemainingColumn(),
            )
            self.bar = progress.Progress(*columns, console=Console(stderr=True), transient=True)
            self.task = self.bar.add_task("", total=self.total or None, speed="")

    def __enter__(self) -> Progress:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def say(self, text: str) -> None:
        """Nothing; the line stands on standard error, above the bar if there is one."""
        if self.bar is None:
            print(text, file=sys.stderr)
        else:
            self.bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def within_chunk(self, done: int, _: int) -> None:
        """Nothing; shows that ``done`` more lines than the finished chunks' are done."""
        now, lines = time.monotonic(), self.lines + done
        speed = self._rate(lines / max(now - self.began, 1e-9))
        if self.bar is not None:
            self.bar.update(self.task, completed=lines, speed=speed)
        elif not self.quiet and now - self.reported >= REPORT_EVERY:
            self.reported = now
            self.say(f"{lines:,} {self.unit} {self.verb}, {speed}")

    def _rate(self, speed: float) -> str:
        return f"{speed:,.0f} {self.unit}/s" if speed >= 10 else f"{speed:.2g} {self.unit}/s"

    def finished(self, lines: int) -> None:
        """Nothing; a chunk of so many lines is written."""
        self.lines += lines
        self.within_chunk(0, 0)
