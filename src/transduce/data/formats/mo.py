"""MO, the compiled form of gettext catalogs.

The file is numbers and offsets, without a checksum. So every byte must belong to something: a table or text
that nothing points at means that an entry was lost, and is an error.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from transduce.counts import counted
from transduce.data.formats.gettext_units import Catalog, Entry, charset
from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally
from transduce.data.streams import named, open_bytes
from transduce.errors import DataError

_MAGIC = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}
_HEADER = 28
_LARGE_HEADER = 48
_NO_MORE = 0xFFFFFFFF
_ALIGNMENT = 64
"""More unused zero bytes than any compiler leaves between two parts."""


def read_mo(path: str | Path, wanted: Wanted, tally: Tally, corpus: int = 0) -> Iterator[Pair]:
    """The translated messages; ``line`` is the number of the entry in the file, counted from 1.

    DataError where the file is damaged, cut short or no MO.
    """
    file = named(path)
    with open_bytes(path) as stream:
        content = stream.read()
    catalog = Catalog(file, wanted, tally, corpus)
    raw = list(_entries(content, file))
    encoding = charset(next((translation for source, translation in raw if not source), b""), file)
    for number, (source, translation) in enumerate(raw, 1):
        try:
            yield from catalog.pairs(_entry(source.decode(encoding), translation.decode(encoding), number))
        except UnicodeError:
            raise DataError(f"{file}: entry {number} is not in {encoding}, which the header names") from None
    catalog.sides.finish()


def _entry(source: str, translation: str, number: int) -> Entry:
    context, separator, rest = source.partition("\x04")
    if not separator:
        context, rest = "", source
    singular, several, plural = rest.partition("\0")
    return Entry(
        singular,
        number,
        translation.split("\0") if several else [translation],
        plural if several else None,
        context if separator else None,
    )


def _system_dependent(content: bytes, order: str) -> Iterator[tuple[bytes, bytes]]:
    """The entries of minor revision 1 of which each system makes its own text, as PO has them: %<PRIu64>."""
    segments, names, count, sources, translations = struct.unpack(
        f"{order}5I", content[_HEADER:_LARGE_HEADER]
    )

    def number(at: int) -> int:
        return int(struct.unpack_from(f"{order}I", content, at)[0])

    def text(at: int) -> bytes:
        """The pieces at ``at``: each so many bytes, then the name of what the system puts there."""
        place, at, found = number(at), at + 4, b""
        while True:
            size, name, at = number(at), number(at + 4), at + 8
            found, place = found + content[place : place + size], place + size
            if name == _NO_MORE:
                return found.removesuffix(b"\0")
            if name >= segments:
                raise IndexError
            length, begin = number(names + 8 * name), number(names + 8 * name + 4)
            found += b"<" + content[begin : begin + length].rstrip(b"\0") + b">"

    for place in range(min(count, len(content))):
        yield text(number(sources + 4 * place)), text(number(translations + 4 * place))


def _entries(content: bytes, file: str) -> Iterator[tuple[bytes, bytes]]:
    """Sources and translations as bytes, after all of the file was accounted for."""
    order, minor = _kind(content, file)
    count, sources, translations, hashes, table = struct.unpack(f"{order}5I", content[8:_HEADER])
    if sources + 8 * count > len(content) or translations + 8 * count > len(content):
        raise _damaged(file, f"it has no room for the {counted(count, 'entry')} that it names")
    used = [(0, _HEADER), (sources, sources + 8 * count), (translations, translations + 8 * count)]
    if hashes:
        used.append((table, table + 4 * hashes))
    texts: list[list[bytes]] = []
    for offset in (sources, translations):
        places = struct.unpack(f"{order}{2 * count}I", content[offset : offset + 8 * count])
        found = []
        for number, (size, start) in enumerate(zip(places[::2], places[1::2], strict=True), 1):
            end = start + size
            if end >= len(content) or content[end]:
                raise _damaged(file, f"the text of entry {number} has no end")
            used.append((start, end + 1))
            found.append(content[start:end])
        texts.append(found)
    yield from zip(*texts, strict=True)
    if minor == 0:
        _account(content, sorted(used), file)
        return
    try:
        yield from _system_dependent(content, order)
    except (struct.error, IndexError):
        raise _damaged(file, "its entries that depend on the system lead nowhere") from None


def _kind(content: bytes, file: str) -> tuple[str, int]:
    """The order of bytes, and the minor revision."""
    order = _MAGIC.get(content[:4])
    if order is None:
        raise DataError(f"{file}: is no MO file: it does not begin as one")
    if len(content) < _HEADER:
        raise _damaged(file, "it ends in its header")
    revision = struct.unpack(f"{order}I", content[4:8])[0]
    major, minor = revision >> 16, revision & 0xFFFF
    if major > 1 or minor > 1:
        raise DataError(
            f"{file}: has the revision {major}.{minor}; up to 1.1 is known: make it anew with msgfmt, or "
            "give the PO file"
        )
    return order, minor


def _account(content: bytes, used: list[tuple[int, int]], file: str) -> None:
    """Nothing; DataError where bytes belong to nothing, or to two things."""
    at = 0
    for start, end in [*used, (len(content), len(content))]:
        if start < at:
            raise _damaged(file, f"two parts lie over one another at byte {start:,}")
        gap = content[at:start]
        if len(gap) > _ALIGNMENT or any(gap):
            raise _damaged(file, f"bytes {at:,} to {start:,} belong to no entry")
        at = max(at, end)


def _damaged(file: str, what: str) -> DataError:
    return DataError(f"{file}: is a damaged MO file: {what}; make it anew with msgfmt, or give the PO file")
