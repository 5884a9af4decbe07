"""Where the lines of a command go: standard output, or a file that appears when it is complete."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from transduce.errors import UsageError


def check_output(path: str, *sources: str) -> None:
    """Nothing; refuses before the work starts what could not be written at its end."""
    if path == "-":
        return
    if not Path(path).parent.is_dir():
        raise UsageError(f"{path}: there is no folder {Path(path).parent}; make it first")
    if Path(path).is_dir():
        raise UsageError(f"{path}: is a folder; name a file in it")
    from transduce.files import same_file

    if any(same_file(path, source) for source in sources):
        raise UsageError(f"{path}: is the input as well; name another --output")
    if Path(path).suffix == ".zst":
        raise UsageError(
            f"{path}: .zst is read but not written; name the output .gz, or pipe it through zstd"
        )


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """Where the bytes go: standard output, or a file that appears only when it is complete."""
    if path == "-":
        yield sys.stdout.buffer
        return
    from transduce.files import atomic_writer

    with atomic_writer(path) as raw:
        if Path(path).suffix != ".gz":
            yield raw
            return
        # Neither name nor time go into the file, so equal text gives equal bytes.
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
            yield file  # type: ignore[misc]


def write_figures(path: Path | None, value: dict[str, Any]) -> None:
    """Nothing; ``path``, where one is given, holds the figures as JSON, and that is said."""
    if path is not None:
        from transduce.files import write_bytes

        write_bytes(path, (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode())
        print(f"{path}: all figures", file=sys.stderr)
