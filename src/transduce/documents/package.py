"""Zip packages (DOCX, ODT): single parts are replaced, the bytes of all others stay as they are.

What a hostile package could do is refused before anything is unpacked: parts that grow beyond all measure,
lie over one another, are encrypted or there twice.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from transduce.counts import counted
from transduce.errors import DataError

# What one part, and all that are read, may take when unpacked; and how many parts there may be.
LARGEST_PART, LARGEST, MOST_PARTS = 1 << 27, 1 << 28, 20_000
# Text packs to a twentieth; what packs to a thousandth is made to harm.
_MOST_RATIO, _SMALL = 500, 1 << 22
_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"


@dataclass(frozen=True)
class _Member:
    """A part: where its entry in the directory, and its header and data, begin and end."""

    info: zipfile.ZipInfo
    entry: int
    entry_end: int
    begin: int
    end: int


class Package:
    """A package that was read; ``name`` is how messages call it."""

    def __init__(self, content: bytes, name: str) -> None:
        self.content, self.name = content, name
        self._read = 0
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
            self._members = self._found()
        except (zipfile.BadZipFile, struct.error, NotImplementedError, UnicodeError, ValueError, OSError):
            raise self._wrong("is no zip package, or damaged; save it anew") from None

    @property
    def names(self) -> list[str]:
        """The names of the parts, in their order."""
        return list(self._members)

    def part(self, name: str) -> bytes:
        """The bytes of a part; DataError where it is missing, damaged or too large."""
        if name not in self._members:
            raise self._wrong(f"lacks the part {name}")
        info = self._members[name].info
        self._read += info.file_size
        ratio = info.file_size / max(1, info.compress_size)
        if (
            info.file_size > LARGEST_PART
            or self._read > LARGEST
            or (ratio > _MOST_RATIO and info.file_size > _SMALL)
        ):
            raise self._wrong(f"the part {name} unpacks to {info.file_size:,} bytes; that is no document")
        try:
            content = self._zip.read(info)
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            NotImplementedError,
            RuntimeError,
            OSError,
            ValueError,
        ):
            raise self._wrong(f"the part {name} is damaged or encrypted; save the document anew") from None
        if len(content) != info.file_size:
            raise self._wrong(f"the part {name} is damaged; save the document anew")
        return content

    def replaced(self, parts: Mapping[str, bytes]) -> bytes:
        """The package with the content of these parts in place of theirs, and nothing else changed."""
        if not parts:
            return self.content
        body: list[bytes] = []
        directory: list[bytes] = []
        size = 0
        for name, member in sorted(self._members.items(), key=lambda one: one[1].begin):
            entry = bytearray(self.content[member.entry : member.entry_end])
            if name in parts:
                raw = self._packed(member, parts[name], entry)
            else:
                raw = self.content[member.begin : member.end]
            struct.pack_into("<I", entry, 42, size)
            body.append(raw)
            directory.append(bytes(entry))
            size += len(raw)
        order = {
            member.entry: at
            for at, member in enumerate(sorted(self._members.values(), key=lambda m: m.begin))
        }
        entries = b"".join(directory[order[entry]] for entry in sorted(order))
        end = bytearray(self.content[self._end :])
        struct.pack_into("<II", end, 12, len(entries), size)
        return b"".join([*body, entries, bytes(end)])

    def _packed(self, member: _Member, content: bytes, entry: bytearray) -> bytes:
        """The local header and data of a part that is new; its entry in the directory is told of it."""
        method = member.info.compress_type
        if method == zipfile.ZIP_DEFLATED:
            packer = zlib.compressobj(6, zlib.DEFLATED, -15)
            data = packer.compress(content) + packer.flush()
        else:
            data, method = content, zipfile.ZIP_STORED
        names, extra = struct.unpack_from("<HH", self.content, member.begin + 26)
        header = bytearray(self.content[member.begin : member.begin + 30 + names + extra])
        sizes = struct.pack("<III", zlib.crc32(content), len(data), len(content))
        flags = member.info.flag_bits & ~0x8
        for where, record in ((6, header), (8, entry)):
            struct.pack_into("<HH", record, where, flags, method)
        header[14:26], entry[16:28] = sizes, sizes
        return bytes(header) + data

    def _found(self) -> dict[str, _Member]:
        infos = self._zip.infolist()
        if len(infos) > MOST_PARTS:
            raise self._wrong(f"has {counted(len(infos), 'part')}; that is no document")
        self._end = self.content.rindex(_END)
        size, at, note = struct.unpack_from("<IIH", self.content, self._end + 12)
        if at + size != self._end or self._end + 22 + note != len(self.content):
            raise self._wrong("has bytes around its parts, or is of the zip64 kind; save it anew")
        members: dict[str, _Member] = {}
        begins = sorted(info.header_offset for info in infos)
        following = dict(zip(begins, [*begins[1:], at], strict=True))
        position = at
        for info in infos:
            if self.content[position : position + 4] != _CENTRAL or info.flag_bits & 0x1:
                raise self._wrong("is damaged or encrypted; save it anew, without a password")
            names, extra, comment = struct.unpack_from("<HHH", self.content, position + 28)
            entry_end = position + 46 + names + extra + comment
            begin, end = info.header_offset, following[info.header_offset]
            if self.content[begin : begin + 4] != _LOCAL or info.filename in members:
                raise self._wrong("has a part twice, or damaged; save it anew")
            local = struct.unpack_from("<HH", self.content, begin + 26)
            if begin + 30 + sum(local) + info.compress_size > end:
                raise self._wrong("has parts that lie over one another; save it anew")
            members[info.filename] = _Member(info, position, entry_end, begin, end)
            position = entry_end
        if begins and (begins[0] != 0 or len(following) != len(infos)):
            raise self._wrong("has bytes before its parts, or parts that lie over one another; save it anew")
        return members

    def _wrong(self, what: str) -> DataError:
        return DataError(f"{self.name}: {what}")
