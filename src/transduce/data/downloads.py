"""Files from the network: resumed where they were cut off, checked against their checksums, kept."""

from __future__ import annotations

import hashlib
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from transduce import __version__
from transduce.errors import DataError
from transduce.files import check_free, write_json

_CHUNK = 1 << 18
_TIMEOUT = 60.0
_TRIES = 3
_RECORD = "checksums.json"
Progress = Callable[[str, int, int], None]
"""Called with a file's name, the bytes that are there, and those that there will be (0: not known)."""


@dataclass(frozen=True)
class Download:
    """A file in the network; a checksum is "" where nobody has published one."""

    url: str
    sha256: str = ""
    md5: str = ""

    @property
    def name(self) -> str:
        """Under which it is kept; files of one name at two addresses stay apart."""
        mark = hashlib.sha256(self.url.encode()).hexdigest()[:8]
        return f"{mark}-{unquote(urlsplit(self.url).path).rpartition('/')[2]}"

    def at(self, mirror: str) -> str:
        """Its address; or the one below ``mirror``, where it lies by host and path, as from ``wget -x``."""
        parts = urlsplit(self.url)
        return f"{mirror.rstrip('/')}/{parts.netloc}{parts.path}" if mirror else self.url


def fetch(
    download: Download,
    folder: Path,
    *,
    mirror: str = "",
    say: Callable[[str], None] = lambda line: None,
    progress: Progress = lambda name, done, total: None,
) -> Path:
    """The file below ``folder``, fetched unless it is there; what an earlier call began is gone on with.

    A file without a published checksum is compared with what was first fetched from there. DataError where
    it cannot be reached, or is another file than expected: then it is removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / download.name
    record = _recorded(folder)
    if path.exists() and record.get(download.url, {}).get("size") == path.stat().st_size:
        return path
    if not path.exists():
        part = path.with_name(f"{path.name}.part")
        _complete(download, part, mirror, progress)
        part.replace(path)
    digests = {"sha256": _digest(path, "sha256"), "md5": _digest(path, "md5")}
    first = record.get(download.url, {}).get("sha256", "")
    for kind, wanted in (("sha256", download.sha256 or first), ("md5", download.md5)):
        if wanted and digests[kind] != wanted:
            path.unlink()
            raise DataError(
                f"{download.at(mirror)}: is not the file that is known ({kind} {digests[kind]}, expected "
                f"{wanted}); "
                "it was removed: try again, or another --mirror"
            )
    if not (download.sha256 or download.md5 or first):
        say(f"{path.name}: no checksum is published; sha256 {digests['sha256']} was noted")
    write_json(
        folder / _RECORD,
        {**record, download.url: {"sha256": digests["sha256"], "size": path.stat().st_size}},
    )
    return path


def _complete(download: Download, part: Path, mirror: str, progress: Progress) -> None:
    """Nothing; ``part`` holds the whole file. What is there already is not asked for again."""
    address = download.at(mirror)
    for left in reversed(range(_TRIES)):
        try:
            _read(address, part, download.name, progress)
            return
        except urllib.error.HTTPError as error:
            if error.code == 416:  # all of it is there, or it is another file now
                part.unlink(missing_ok=True)
                continue
            raise DataError(
                f"{address}: the server answers {error.code} ({error.reason}); the file may have moved: "
                f"{_by_hand(part)}"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            if left and part.exists() and part.stat().st_size:
                continue  # it went well so far
            reason = getattr(error, "reason", None) or error
            raise DataError(
                f"{address}: cannot be reached ({reason}); what has come is kept: try again with a network, "
                f"or {_by_hand(part)}"
            ) from None
    raise DataError(f"{address}: breaks off again and again; what has come is kept: try again later")


def _by_hand(part: Path) -> str:
    return f"fetch it elsewhere and put it at {part.with_name(part.name.removesuffix('.part'))}"


def _read(address: str, part: Path, name: str, progress: Progress) -> None:
    there = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(address, headers={"User-Agent": f"transduce/{__version__}"})
    if there:
        request.add_header("Range", f"bytes={there}-")
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
        if there and answer.status != 206:
            there = 0
        length = int(answer.headers.get("Content-Length") or 0)
        total = there + length if length else 0
        check_free(part.parent, length, "make room, or choose another folder")
        with part.open("ab" if there else "wb") as file:
            while chunk := answer.read(_CHUNK):
                file.write(chunk)
                there += len(chunk)
                progress(name, there, total)
    if total and there != total:
        raise http.client.IncompleteRead(b"", total - there)


def _recorded(folder: Path) -> dict[str, dict[str, str | int]]:
    try:
        found: dict[str, dict[str, str | int]] = json.loads((folder / _RECORD).read_bytes())
    except (OSError, ValueError):
        return {}
    return found


def _digest(path: Path, kind: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()
