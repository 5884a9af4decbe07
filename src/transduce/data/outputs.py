"""Files of bytes that are written whole or not at all, compressed where their names say so."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol, runtime_checkable

from transduce.errors import UsageError
from transduce.files import atomic_writer


@runtime_checkable
class Sink(Protocol):
    """What bytes can be written to."""

    def write(self, data: bytes, /) -> object:
        """Nothing that matters; the bytes follow those before."""


@contextmanager
def open_output(path: str | Path) -> Iterator[Sink]:
    """Where the bytes of ``path`` go; it appears when all is written. ``-`` is standard output.

    Equal bytes give equal files, compressed ones too.
    """
    if str(path) == "-":
        yield sys.stdout.buffer
        return
    if not Path(path).absolute().parent.is_dir():
        raise UsageError(f"{path}: there is no folder {Path(path).parent}; make it first")
    if Path(path).is_dir():
        raise UsageError(f"{path}: is a folder; name a file in it")
    with atomic_writer(path) as raw:
        packed = _compressed(raw, Path(path))
        yield packed
        if packed is not raw:
            packed.close()


def _compressed(raw: IO[bytes], path: Path) -> Any:
    if path.suffix == ".gz":
        return gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
    if path.suffix == ".bz2":
        return bz2.BZ2File(raw, "wb")
    if path.suffix == ".xz":
        return lzma.LZMAFile(raw, "wb")
    if path.suffix == ".zst":
        try:
            import zstandard
        except ImportError:
            raise UsageError(
                f"{path}: writing .zst needs the zstandard package; install it with "
                "`pip install 'transduce[zstd]'`, or name the output .gz"
            ) from None
        return zstandard.ZstdCompressor().stream_writer(raw, closefd=False)
    return raw
