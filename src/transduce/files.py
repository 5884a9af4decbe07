"""Files that are either wholly there or not there at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from transduce.errors import DataError, UsageError


@contextmanager
def atomic_writer(path: str | Path) -> Iterator[IO[bytes]]:
    """A binary file that appears under ``path`` only once it is complete and on the disk.

    The bytes go to a temporary name in the same folder; on a clean exit the file is flushed, synced and
    renamed, on an exception it is removed and whatever stood under ``path`` stays as it was. A symbolic link
    is followed; a device or pipe is written to as it is.
    """
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


@contextmanager
def made_folder(path: str | Path) -> Iterator[Path]:
    """The folder, which is there; where what is done then fails, what was made of it and is empty goes again.

    UsageError where it cannot be made.
    """
    path = Path(path)
    new = [one for one in (path, *path.parents) if not one.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: cannot be made ({error.strerror}); choose another --output") from None
    try:
        yield path
    except BaseException:
        with suppress(OSError):  # one that holds something by now
            for one in new:
                one.rmdir()
        raise


def sync_folder(folder: str | Path) -> None:
    """Nothing; the folder's entries (new names, renames) are on the disk afterwards where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_free(folder: str | Path, needed: int, remedy: str) -> None:
    """Nothing; raises DataError where the disk of ``folder`` has less than ``needed`` bytes free."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise DataError(
            f"{folder}: about {needed / 2**20:,.0f} MiB are needed but {free / 2**20:,.0f} MiB are free; "
            f"{remedy}"
        )


def same_file(one: str | Path, other: str | Path) -> bool:
    """Whether two names lead to one existing regular file."""
    one, other = Path(one), Path(other)
    return one.is_file() and other.is_file() and one.samefile(other)


def write_bytes(path: str | Path, content: bytes) -> None:
    """Nothing; ``path`` holds exactly ``content`` afterwards, or what it held before."""
    with atomic_writer(path) as file:
        file.write(content)


def write_json(path: str | Path, value: Any) -> None:
    """Nothing; ``path`` holds ``value`` as indented UTF-8 JSON afterwards, or what it held before."""
    write_bytes(path, (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode())


def sync_file(path: str | Path) -> None:
    """Nothing; the file's content is on the disk afterwards."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
