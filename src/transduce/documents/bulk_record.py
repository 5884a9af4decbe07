"""What a folder translated in bulk was made from, and which of its files are complete."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transduce.errors import UsageError
from transduce.files import write_json

RECORD = ".bulk.json"


def made_from(models: Sequence[str], how: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the output: the models by their checksums, and the options that are not about speed."""
    speed = ("batch_tokens", "threads", "device")
    return {
        "models": [hashlib.sha256((Path(m) / "config.json").read_bytes()).hexdigest() for m in models],
        **{name: value for name, value in {**how, **options}.items() if name not in speed},
    }


class BulkRecord:
    """Which files of the output are complete, and from what each was made."""

    def __init__(self, folder: Path, made_from: dict[str, Any]) -> None:
        self.folder, self.made_from = folder, json.loads(json.dumps(made_from))
        self.files: dict[str, list[int]] = {}
        try:
            found = json.loads((folder / RECORD).read_bytes())
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise UsageError(f"{folder}: cannot be used ({error}); choose another --output") from None
        if found["made_from"] != self.made_from:
            changed = [n for n in self.made_from if self.made_from[n] != found["made_from"].get(n)]
            raise UsageError(
                f"{folder}: holds translations with other settings ({', '.join(changed) or 'fewer'}); "
                "choose another --output, or remove them"
            )
        self.files = found["files"]

    def has(self, source: Path, output: Path) -> bool:
        """Whether the output is there and its source is the file that it was made from."""
        return output.exists() and self.files.get(self._key(output)) == _stamp(source)

    def note(self, source: Path, output: Path) -> None:
        """Nothing; the output is complete."""
        self.files[self._key(output)] = _stamp(source)
        write_json(self.folder / RECORD, {"made_from": self.made_from, "files": self.files})

    def _key(self, output: Path) -> str:
        return output.relative_to(self.folder).as_posix()


def _stamp(path: Path) -> list[int]:
    found = os.stat(path)
    return [found.st_size, found.st_mtime_ns]
