"""Lines of text files: bytes split on LF and on nothing else, strictly UTF-8.

U+2028, U+0085, form feeds, NUL and a lone CR stand inside a line and never end one, so that two aligned
files keep their alignment in every tool. One CR right before the LF belongs to the line end. A byte order
mark at the very start of a file is removed. ``.gz`` and ``.zst`` files are read through by their names, and
``-`` is standard input.
"""

from __future__ import annotations

import gzip
import io
import select
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from transduce.errors import DataError, UsageError

_CHUNK = 1 << 20
# How long a line that has come through a pipe may wait for others to be worked on with it, in seconds.
PAUSE = 0.1
HOLD = 1.0
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
# How compressed files begin, and the name by which they are read through.
_MAGIC = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd"}


def read_lines(path: str | Path) -> Iterator[str]:
    """The lines of ``path`` without their ends; the last one may lack its LF.

    Raises DataError, naming file and line, where the file is missing, unreadable, cut short or not UTF-8.
    """
    for lines in _lists(path):
        yield from lines


def read_chunks(path: str | Path, size: int) -> Iterator[list[str]]:
    """The same lines in lists of ``size``, and shorter ones from a pipe, where what has come is not held up.

    There a list ends as soon as no more comes for PAUSE seconds, or after HOLD seconds in all.
    """
    waiting: list[str] = []
    since = 0.0
    for lines in _lists(path):
        if not waiting:
            since = time.monotonic()
        waiting += lines
        while len(waiting) >= size:
            yield waiting[:size]
            waiting = waiting[size:]
        if waiting and str(path) == "-" and (time.monotonic() - since > HOLD or not _more_within(PAUSE)):
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _lists(path: str | Path) -> Iterator[list[str]]:
    """The lines as they come, block by block."""
    number = 0
    for block in _blocks(path):
        try:
            lines = _split(block)
        except UnicodeDecodeError as error:
            start = block.rfind(b"\n", 0, error.start) + 1
            if start:
                yield _split(block[:start])
            number += block.count(b"\n", 0, start) + 1
            line = block[start:].partition(b"\n")[0]
            raise DataError(_not_utf8(path, number, line, error.start - start)) from None
        number += len(lines)
        yield lines


def _more_within(seconds: float) -> bool:
    """Whether standard input has more, or its end, within so many seconds; a file has at once.

    Where the system cannot tell (pipes on Windows, which hand out what has come): no.
    """
    try:
        return bool(select.select([sys.stdin.buffer.fileno()], [], [], seconds)[0])
    except io.UnsupportedOperation:  # no real file: all of it is there
        return True
    except (OSError, ValueError):
        return False


def count_lines(path: str | Path) -> int:
    """How many lines ``read_lines`` would give, without decoding them."""
    return sum(block.count(b"\n") + (not block.endswith(b"\n")) for block in _blocks(path))


def _blocks(path: str | Path) -> Iterator[bytes]:
    """The bytes of the file in blocks of whole lines, as soon as they can be had; a BOM is removed.

    Every block ends in LF, except for the last one where the last line does not.
    """
    pending: list[bytes] = []
    first = True
    with _opened(path) as stream:
        reading = True
        while reading:
            chunk = stream.read1(_CHUNK)
            reading = bool(chunk)
            end = chunk.rfind(b"\n") + 1 if chunk else 0
            pending.append(chunk[:end] if end else chunk)
            if end or not reading:
                block = b"".join(pending)
                if first:
                    _check_kind(path, block)
                    block = block.removeprefix(_BOM)
                if block:
                    yield block
                pending, first = [chunk[end:]], False


def _split(block: bytes) -> list[str]:
    text = block.decode()
    lines = text.split("\n")
    last = lines.pop()
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    if last:
        lines.append(last)
    return lines


def _not_utf8(path: str | Path, number: int, line: bytes, start: int) -> str:
    column = len(line[:start].decode(errors="replace")) + 1
    return (
        f"{_name(path)}:{number}: not valid UTF-8 (byte 0x{line[start]:02x} at column {column}); "
        "convert the file, e.g. with `iconv -f LATIN1 -t UTF-8`"
    )


def _name(path: str | Path) -> str:
    return "standard input" if str(path) == "-" else str(path)


def _check_kind(path: str | Path, first: bytes) -> None:
    """Nothing; raises DataError where a file's first bytes say that it is no UTF-8 text."""
    if first.startswith(_UTF16):
        raise DataError(f"{_name(path)}: is UTF-16 text; convert it with `iconv -f UTF-16 -t UTF-8`")
    for suffix, magic in _MAGIC.items():
        if first.startswith(magic):
            raise DataError(
                f"{_name(path)}: is compressed, though its name does not say so; "
                f"decompress it, or give it a name that ends in {suffix}"
            )


@contextmanager
def _opened(path: str | Path) -> Iterator[io.BufferedReader]:
    """A buffered stream of the decompressed bytes; whatever goes wrong while it is read is a DataError."""
    if str(path) == "-":
        if sys.stdin is None:
            raise DataError("standard input is closed; name a file instead")
        yield cast(io.BufferedReader, sys.stdin.buffer)
        return
    try:
        with Path(path).open("rb") as file:
            magic = _MAGIC.get(Path(path).suffix)
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


def _decompressed(file: io.BufferedReader, path: Path) -> io.BufferedReader:
    if path.suffix == ".gz":
        return io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=file)), _CHUNK)
    if path.suffix == ".zst":
        return io.BufferedReader(_ZstdFile(file, path), _CHUNK)
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
