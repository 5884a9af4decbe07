"""The bytes of a file, whatever it is compressed with: ``.gz``, ``.zst``, ``.bz2``, ``.xz`` by its name.

``-`` is standard input. Whatever goes wrong while the bytes are read is a DataError that names the file.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from transduce.errors import DataError, UsageError

_CHUNK = 1 << 20
COMPRESSIONS = {
    ".gz": b"\x1f\x8b",
    ".zst": b"\x28\xb5\x2f\xfd",
    ".bz2": b"BZh",
    ".xz": b"\xfd7zXZ\x00",
}
"""How compressed files are named, and how they begin."""


def named(path: str | Path) -> str:
    """The name of a file for messages."""
    return "standard input" if str(path) == "-" else str(path)


def bare_name(path: str | Path) -> str:
    """The name of a file without its folder and without the ending that says how it is compressed."""
    name = Path(path).name
    return name.removesuffix(Path(name).suffix) if Path(name).suffix in COMPRESSIONS else name


@contextmanager
def open_bytes(path: str | Path) -> Iterator[io.BufferedReader]:
    """A buffered stream of the decompressed bytes; whatever goes wrong while it is read is a DataError."""
    if str(path) == "-":
        if sys.stdin is None:
            raise DataError("standard input is closed; name a file instead")
        yield cast(io.BufferedReader, sys.stdin.buffer)
        return
    try:
        with Path(path).open("rb") as file:
            magic = COMPRESSIONS.get(Path(path).suffix)
            if magic is not None and (start := file.peek(len(magic))) and not start.startswith(magic):
                raise DataError(
                    f"{path}: is not compressed, though its name says so; "
                    f"give it a name without {Path(path).suffix}"
                )
            yield _decompressed(file, Path(path))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; check the path") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder, expected a text file; name a file in it") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: cut short or damaged ({error}); fetch the file again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def is_empty(path: str | Path) -> bool:
    """Whether a file has no bytes when it is decompressed; nothing of it is taken.

    Of standard input this can be told where it is buffered, as it is unless a caller has replaced it.
    """
    with open_bytes(path) as file:
        return isinstance(file, io.BufferedReader) and not file.peek(1)


def _decompressed(file: io.BufferedReader, path: Path) -> io.BufferedReader:
    if path.suffix == ".gz":
        return io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=file)), _CHUNK)
    if path.suffix == ".zst":
        zstandard = _zstandard(path)
        frames = _Frames(file, zstandard.ZstdDecompressor().decompressobj, zstandard.ZstdError, "zstd")
    elif path.suffix == ".bz2":
        frames = _Frames(file, bz2.BZ2Decompressor, OSError, "bzip2", limit=(_CHUNK,))
    elif path.suffix == ".xz":
        frames = _Frames(
            file, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), lzma.LZMAError, "xz", limit=(_CHUNK,)
        )
    else:
        return file
    return io.BufferedReader(frames, _CHUNK)


def _zstandard(path: Path) -> Any:
    try:
        import zstandard
    except ImportError:
        raise UsageError(
            f"{path}: reading .zst needs the zstandard package; "
            "install it with `pip install 'transduce[zstd]'`, or decompress the file first"
        ) from None
    return zstandard


class _Frames(io.RawIOBase):
    """The decompressed bytes of a file of frames; EOFError where one is damaged or the last one cut short.

    Python's own readers of .bz2 and .xz pass over a damaged frame that is not the first; nothing may be lost
    here. ``limit`` bounds what comes out at once, where the decompressor takes one.
    """

    def __init__(
        self,
        file: IO[bytes],
        new: Callable[[], Any],
        error: type[Exception],
        kind: str,
        limit: tuple[int, ...] = (),
    ) -> None:
        self._file, self._new, self._error, self._kind, self._limit = file, new, error, kind, limit
        self._frame: Any = None
        self._compressed = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            if not self._compressed and getattr(self._frame, "needs_input", True):
                self._compressed = self._file.read(_CHUNK)
                if self._frame is None and self._kind == "xz":
                    self._compressed = self._compressed.lstrip(b"\0")  # padding between streams
                if not self._compressed:
                    if self._frame is not None:
                        raise EOFError(f"the last {self._kind} frame has no end")
                    return 0
            self._advance()
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _advance(self) -> None:
        if self._frame is None:
            self._frame = self._new()
        try:
            self._ready = memoryview(self._frame.decompress(self._compressed, *self._limit))
        except self._error as error:
            raise EOFError(str(error)) from None
        self._compressed = b""
        if self._frame.eof:
            self._compressed, self._frame = self._frame.unused_data, None
            if self._kind == "xz":
                self._compressed = self._compressed.lstrip(b"\0")
