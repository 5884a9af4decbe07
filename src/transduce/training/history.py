"""Runs as their logs tell of them: whether they are at work, how far they came, and how well they did."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transduce.errors import DataError, UsageError
from transduce.training.folder import is_locked

Entry = dict[str, Any]
Points = list[tuple[float, float]]

MARKS = ("settings.json", "log.jsonl")  # what makes a folder a run
DEPTH = 3
BY = ("updates", "seconds", "tokens")
# What is drawn: the event of the log, and the value in it. Validation knows the un-smoothed loss only.
CURVES = {"training": ("train", "nll"), "validation": ("validation", "loss"), "bleu": ("validation", "bleu")}
_SIGNAL = "stopped by "
_NEVER_ENTERED = ("checkpoints", "data", "tensorboard")
_WITH_STEP = ("train", "validation", "end")


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run, without what a resumed run has trained a second time.

    ``start`` is the newest start event, ``entries`` are the events with an update's number, oldest first.
    ``locked`` says whether a living process trains in the folder, None where the system cannot tell.
    ``damaged`` counts lines of the log that are no event, such as the half line that a killed run leaves.
    """

    folder: Path
    start: Entry
    entries: tuple[Entry, ...]
    starts: int
    damaged: int
    last_time: float
    locked: bool | None

    @property
    def end(self) -> Entry | None:
        """The event that ends the log; None while the run goes on, or where it broke off."""
        last = self.entries[-1] if self.entries else {}
        return last if last.get("event") == "end" else None

    @property
    def state(self) -> str:
        """What became of the run: running, finished, stopped, failed or unfinished.

        A stopped run was asked to by a signal and is saved; a failed one broke off (killed, out of memory, an
        error), and where the system has no locks it is called unfinished, for it may be running.
        """
        if self.locked:
            return "running"
        if self.end is not None:
            return "stopped" if self.reason.startswith(_SIGNAL) else "finished"
        return "unfinished" if self.locked is None else "failed"

    @property
    def reason(self) -> str:
        """Why training ended, as the log says it; empty where it did not end."""
        return str(self.end.get("reason", "")) if self.end else ""

    @property
    def preset(self) -> str:
        """The preset of the run; empty where the log has lost its beginning."""
        settings = self.start.get("settings")
        return str(settings.get("preset", "")) if isinstance(settings, dict) else ""

    @property
    def step(self) -> int:
        """The last update that the log tells of."""
        return int(self.entries[-1]["step"]) if self.entries else 0

    def last(self, name: str) -> float | None:
        """The newest number of that ``name`` in the log."""
        found = (_number(entry.get(name)) for entry in reversed(self.entries))
        return next((value for value in found if value is not None), None)

    def best(self, curve: str) -> tuple[float, int] | tuple[None, None]:
        """The best value of a curve (highest BLEU, lowest loss) and its update, the first of equals."""
        sign = 1.0 if curve == "bleu" else -1.0
        points = self.curve(curve)
        if not points:
            return None, None
        step, value = max(points, key=lambda point: (sign * point[1], -point[0]))
        return value, int(step)

    def curve(self, name: str, by: str = "updates") -> Points:
        """The points of the curve ``name`` (training, validation or bleu) over updates, seconds or tokens.

        Tokens are those of the target. Values that the log lacks, or that were not finite, are left out.
        """
        check_by(by)
        event, value_name = CURVES[name]
        points = []
        for entry in self.entries:
            if entry["event"] == event:
                x, y = self._place(entry, by), _number(entry.get(value_name))
                if x is not None and y is not None:
                    points.append((x, y))
        return points

    def _place(self, entry: Entry, by: str) -> float | None:
        if by == "updates":
            return float(entry["step"])
        if by == "seconds":
            return _number(entry.get("seconds"))
        counted, mean = (
            _number(entry.get("target_tokens")),
            _number(self.start.get("target_tokens_per_update")),
        )
        return counted if counted is not None or mean is None else mean * entry["step"]

    def summary(self) -> dict[str, Any]:
        """What `transduce runs` shows of the run, as JSON holds it; None for what is not known."""
        bleu, bleu_step = self.best("bleu")
        loss, loss_step = self.best("validation")
        updates = _number(self.start.get("updates_per_epoch"))
        scores = self.end.get("scores") if self.end else None
        return {
            "run": str(self.folder),
            "preset": self.preset,
            "state": self.state,
            "reason": self.reason,
            "last_time": self.last_time,
            "step": self.step,
            "epochs": self.step / updates if updates else None,
            "best_bleu": bleu,
            "best_bleu_step": bleu_step,
            "best_loss": loss,
            "best_loss_step": loss_step,
            "final_bleu": _number(scores.get("bleu")) if isinstance(scores, dict) else None,
            "target_tokens_per_second": self.last("target_tokens_per_second"),
            "seconds": self.last("seconds"),
            "starts": self.starts,
            "damaged_lines": self.damaged,
        }


def check_by(by: str) -> None:
    """Nothing; raises UsageError where curves cannot be drawn over ``by``."""
    if by not in BY:
        raise UsageError(f"curves over {by!r} are not known; choose {', '.join(BY[:-1])} or {BY[-1]}")


def find_runs(folder: str | Path, depth: int = DEPTH) -> list[Path]:
    """The folders of runs: ``folder`` itself and what lies up to ``depth`` levels below, in order of name.

    Hidden folders and links below ``folder`` are not entered. Raises UsageError where it is no folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "no such folder"
        raise UsageError(f"{folder}: {what}; name the folder of a run, or one that holds runs")
    found = []
    for name, below, files in os.walk(folder):
        path = Path(name)
        is_run = all(mark in files for mark in MARKS)
        if is_run:
            found.append(path)
        if len(path.relative_to(folder).parts) >= depth:
            below.clear()
        # A run's own folders hold no runs but many files.
        below[:] = [n for n in below if not n.startswith(".") and not (is_run and n in _NEVER_ENTERED)]
    return sorted(found)


def read_run(folder: str | Path) -> Run:
    """The run in ``folder``; lines of its log that are no events are counted and left out.

    Raises DataError where there is no log to read.
    """
    path = Path(folder) / "log.jsonl"
    try:
        content, changed = path.read_bytes(), path.stat().st_mtime
    except OSError as error:
        raise DataError(f"{path}: no log of a run ({error.strerror}); name the folder of a run") from error
    events = list(_events(content))
    start: Entry = {}
    starts, anew, last_time = 0, False, changed
    kept: list[Entry] = []
    for event in filter(None, events):
        last_time = _number(event.get("time")) or last_time
        if event["event"] == "start":
            start, starts, anew = event, starts + 1, True
            kept = [entry for entry in kept if entry["event"] != "end"]  # it was not the end
        elif "step" in event:
            if anew and event["event"] != "end":  # what a run does again replaces what it did before
                kept = [entry for entry in kept if entry["step"] < event["step"]]
            anew = False
            kept.append(event)
    return Run(
        folder=Path(folder),
        start=start,
        entries=tuple(kept),
        starts=starts,
        damaged=events.count(None),
        last_time=last_time,
        locked=is_locked(Path(folder)),
    )


def printable(name: str) -> str:
    """The name as it can be shown in one line, with a question mark for whatever cannot be printed."""
    return "".join(c if c.isprintable() else "?" for c in name)


def _events(content: bytes) -> Iterator[Entry | None]:
    """The events of a log, None for a line that is none."""
    for line in content.split(b"\n"):
        if line.strip():
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                event = None
            yield event if _is_event(event) else None


def _is_event(event: Any) -> bool:
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return False
    step = event.get("step", None if event["event"] in _WITH_STEP else 0)
    return isinstance(step, int) and not isinstance(step, bool)


def _number(value: Any) -> float | None:
    """The value as a float where it is a finite number."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None
