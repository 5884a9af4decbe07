"""Lines of text files: bytes split on LF and on nothing else, strictly UTF-8.

U+2028, U+0085, form feeds, NUL and a lone CR stand inside a line and never end one, so that two aligned
files keep their alignment in every tool. One CR right before the LF belongs to the line end. A byte order
mark at the very start of a file is removed. ``.gz`` and ``.zst`` files are read through by their names, and
``-`` is standard input.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from transduce.errors import DataError, UsageError

_CHUNK = 1 << 20
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def read_lines(path: str | Path) -> Iterator[str]:
    """The lines of ``path`` without their ends; the last one may lack its LF.

    Raises DataError, naming file and line, where the file is missing, unreadable, cut short or not UTF-8.
    """
    with _opened(path) as stream:
        for number, raw in enumerate(stream, 1):
            line = raw.removesuffix(b"\n").removesuffix(b"\r") if raw.endswith(b"\n") else raw
            if number == 1:
                line = line.removeprefix(_BOM)
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                raise DataError(_not_utf8(path, number, line, error)) from None
            yield text


def count_lines(path: str | Path) -> int:
    """How many lines ``read_lines`` would give, without decoding them."""
    count, last = 0, b"\n"
    with _opened(path) as stream:
        while chunk := stream.read(_CHUNK):
            count += chunk.count(b"\n")
            last = chunk[-1:]
    return count + (last != b"\n")


def _not_utf8(path: str | Path, number: int, line: bytes, error: UnicodeDecodeError) -> str:
    column = len(line[: error.start].decode(errors="replace")) + 1
    guess = "UTF-16" if number == 1 and line.startswith(_UTF16) else "LATIN1"
    return (
        f"{path}:{number}: not valid UTF-8 (byte 0x{line[error.start]:02x} at column {column}); "
        f"convert the file, e.g. with `iconv -f {guess} -t UTF-8`"
    )


@contextmanager
def _opened(path: str | Path) -> Iterator[IO[bytes]]:
    """A buffered stream of the decompressed bytes; whatever goes wrong while it is read is a DataError."""
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(path).open("rb") as file:
            yield _decompressed(file, Path(path))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; check the path") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder, expected a text file; name a file in it") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: cut short or damaged ({error}); fetch the file again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def _decompressed(file: IO[bytes], path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast(IO[bytes], io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=file)), _CHUNK))
    if path.suffix == ".zst":
        return cast(IO[bytes], io.BufferedReader(_ZstdFile(file, path), _CHUNK))
    return file


class _ZstdFile(io.RawIOBase):
    """The decompressed bytes of a file of zstd frames; EOFError where the last frame is cut short."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        try:
            import zstandard
        except ImportError:
            raise UsageError(
                f"{path}: reading .zst needs the zstandard package; "
                "install it with `pip install 'transduce[zstd]'`, or decompress the file first"
            ) from None
        self._file = file
        self._new: Any = zstandard.ZstdDecompressor().decompressobj
        self._error: type[Exception] = zstandard.ZstdError
        self._frame: Any = None
        self._compressed = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            if not self._compressed:
                self._compressed = self._file.read(_CHUNK)
            if not self._compressed:
                if self._frame is not None:
                    raise EOFError("the last zstd frame has no end")
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
            self._ready = memoryview(self._frame.decompress(self._compressed))
        except self._error as error:
            raise EOFError(str(error)) from None
        self._compressed = b""
        if self._frame.eof:
            self._compressed, self._frame = self._frame.unused_data, None
