"""How far a preparation came: kept in ``unfinished.json`` until it is complete, for one that was killed."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from transduce.files import write_json

FILE = "unfinished.json"


class Journal:
    """What is done of the preparation in ``folder`` that is ``made_from`` these files and settings.

    It begins empty where there is none, and where the one that is there is of other files or settings.
    """

    def __init__(self, folder: Path, made_from: dict[str, Any]) -> None:
        self.path, self.folder, self.made_from = folder / FILE, folder, made_from
        self.done: dict[str, Any] = {}
        with suppress(OSError, ValueError, KeyError, TypeError):
            found = json.loads(self.path.read_bytes())
            if found["made_from"] == made_from and isinstance(found["done"], dict):
                self.done = found["done"]

    def note(self, **done: Any) -> None:
        """Nothing; these are on the disk as done, besides what was noted before."""
        self.done |= done
        write_json(self.path, {"made_from": self.made_from, "done": self.done})

    def has(self, name: str, file: str) -> bool:
        """Whether the file in the folder has the sha256 that was noted under ``name``."""
        try:
            return bool(self.done.get(name) == sha256(self.folder / file))
        except OSError:
            return False

    def close(self) -> None:
        """Nothing; the preparation is complete, and no journal is left."""
        self.path.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """The checksum of a small file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
