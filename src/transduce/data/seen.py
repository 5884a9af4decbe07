"""What is known of files that were read before, as long as they have not been touched since.

Corpora of gigabytes need not be read to find that nothing has changed: a file is the one that was read where
name, size, inode and both times (of the last write, and of the last change of anything) are what they were,
and they were old enough when it was read that a later write must show in them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from transduce.files import write_json

FILE = "files.json"
# A file written in the same tick of its file system's clock as it was read could have changed unnoticed.
_TICK = 2 * 10**9


class Seen:
    """Values of files, each worked out once; kept in ``files.json`` of a folder with `save`."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self._files: dict[str, dict[str, Any]] = {}
        self._asked: set[str] = set()
        self.changed = False
        if folder is not None:
            with suppress(OSError, ValueError):
                found = json.loads((Path(folder) / FILE).read_bytes())
                if isinstance(found, dict):
                    self._files = found

    def get(self, path: str | Path, name: str, work_out: Callable[[], Any]) -> Any:
        """The value ``name`` of the file: known, or worked out now. Whatever that raises is raised."""
        key, stamp = os.path.abspath(path), _stamp(path)
        self._asked.add(key)
        entry = self._files.get(key)
        if stamp is None or not isinstance(entry, dict) or entry.get("stamp") != stamp:
            entry = {"stamp": stamp}
        if name in entry:
            return entry[name]
        began = time.time_ns()
        value = work_out()
        if stamp is not None and stamp == _stamp(path) and began - max(stamp[2:]) > _TICK:
            self._files[key] = entry | {name: value}
            self.changed = True
        return value

    def save(self, folder: str | Path) -> None:
        """Nothing; ``folder`` holds what is known of the files that were asked for."""
        known = {key: self._files[key] for key in sorted(self._asked & self._files.keys())}
        write_json(Path(folder) / FILE, known)


def _stamp(path: str | Path) -> list[int] | None:
    """Size, inode and times of a regular file; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns]
