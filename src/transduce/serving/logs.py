"""What a server says on stderr: one JSON object a line, without the texts unless they are asked for."""

from __future__ import annotations

import json
import logging
import sys
import threading
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

Write = Callable[[str], object]


class Log:
    """Writes events. A reader that has gone does not stop the server."""

    def __init__(self, write: Write | None = None) -> None:
        self._write = write or _to_stderr
        self._lock = threading.Lock()

    def __call__(self, event: str, *, level: str = "info", **fields: Any) -> None:
        """Nothing; the event stands on a line of its own."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": at, "level": level, "event": event, **fields}, ensure_ascii=True)
        with self._lock:
            self._write(line + "\n")

    def failure(self, event: str, error: BaseException, **fields: Any) -> None:
        """Nothing; the event with its traceback, which names lines of code and no values of theirs."""
        frames = traceback.extract_tb(error.__traceback__)
        where = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        self(event, level="error", error=type(error).__name__, where=where[-12:], **fields)


def _to_stderr(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):  # nobody reads it any more: there is nowhere left to say so
        return


class Handler(logging.Handler):
    """Hands what the HTTP library has to say to a `Log`."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Nothing; the record is an event."""
        level = "error" if record.levelno >= logging.ERROR else "warning"
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            self._log.failure("http", error, message=record.getMessage().strip())
        else:
            self._log("http", level=level, message=record.getMessage().strip())
