"""Lines of text files: bytes split on LF and on nothing else, strictly UTF-8.

U+2028, U+0085, form feeds, NUL and a lone CR stand inside a line and never end one, so that two aligned
files keep their alignment in every tool. One CR right before the LF belongs to the line end. A byte order
mark at the very start of a file is removed. Compressed files are read through, and ``-`` is standard input:
see ``streams``.
"""

from __future__ import annotations

import io
import re
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from transduce.data.streams import COMPRESSIONS, named, open_bytes
from transduce.errors import DataError

_CHUNK = 1 << 20
# How long a line that has come through a pipe may wait for others to be worked on with it, in seconds.
PAUSE = 0.1
HOLD = 1.0
_BOM = b"\xef\xbb\xbf"
_WITH_END = re.compile(r"[^\n]*\n|[^\n]+")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def read_lines(path: str | Path, *, ends: bool = False) -> Iterator[str]:
    """The lines of ``path`` without their ends, or with ``ends``; the last one may lack its LF.

    Raises DataError, naming file and line, where the file is missing, unreadable, cut short or not UTF-8.
    """
    for lines in _lists(path, ends):
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


def _lists(path: str | Path, ends: bool = False) -> Iterator[list[str]]:
    """The lines as they come, block by block."""
    number = 0
    for block in _blocks(path):
        try:
            lines = _split(block, ends)
        except UnicodeDecodeError as error:
            start = block.rfind(b"\n", 0, error.start) + 1
            if start:
                yield _split(block[:start], ends)
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
    with open_bytes(path) as stream:
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


def _split(block: bytes, ends: bool) -> list[str]:
    text = block.decode()
    if ends:
        return _WITH_END.findall(text)
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
        f"{named(path)}:{number}: not valid UTF-8 (byte 0x{line[start]:02x} at column {column}); "
        "convert the file, e.g. with `iconv -f LATIN1 -t UTF-8`"
    )


def _check_kind(path: str | Path, first: bytes) -> None:
    """Nothing; raises DataError where a file's first bytes say that it is no UTF-8 text."""
    if first.startswith(_UTF16):
        raise DataError(f"{named(path)}: is UTF-16 text; convert it with `iconv -f UTF-16 -t UTF-8`")
    for suffix, magic in COMPRESSIONS.items():
        if suffix != ".bz2" and first.startswith(magic):  # a text may begin with "BZh"
            raise DataError(
                f"{named(path)}: is compressed, though its name does not say so; "
                f"decompress it, or give it a name that ends in {suffix}"
            )
