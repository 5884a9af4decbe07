"""PO, the text form of gettext catalogs: each message with its translation.

Read strictly, line by line: nothing that is no comment, keyword or text in quotes is passed over, so that a
damaged entry is named and never lost.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

from transduce.data.formats.gettext_units import Catalog, Entry, charset
from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally
from transduce.data.streams import named, open_bytes
from transduce.errors import DataError

_HEAD = 1 << 16
_LINE = re.compile(r'(?:(msgctxt|msgid_plural|msgid|msgstr)(?:\[(\d{1,2})\])?)?\s*"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(?:([abfnrtv\"\\])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2}))")
_CHARACTERS = dict(zip('abfnrtv"\\', '\a\b\f\n\r\t\v"\\', strict=True))
# What each keyword may follow in an entry.
_AFTER = {
    "msgctxt": ("",),
    "msgid": ("", "msgctxt"),
    "msgid_plural": ("msgid",),
    "msgstr": ("msgid", "msgid_plural", "msgstr"),
}


class _Lines:
    """Gathers an entry line by line; what is complete is handed back."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._parts: dict[str, str] = {}
        self._last = ""
        self._at = self._line = 0
        self._fuzzy = False
        self.obsolete = 0

    def take(self, text: str, at: int) -> Entry | None:
        """The entry that this line shows to be complete; None where there is none."""
        self._at = at
        text = text.strip()
        if not text or text.startswith("#"):
            done = self._done() if self._last.startswith("msgstr") else None
            if text.startswith("#,"):
                self._fuzzy = "fuzzy" in re.split(r"[,\s]+", text[2:])
            elif text.startswith("#~"):
                # Its "fuzzy" stood in front of it, and is not that of the next.
                self.obsolete, self._fuzzy = self.obsolete + bool(re.match(r"#~\s*msgid\s", text)), False
            return done
        found = _LINE.fullmatch(text)
        if not found:
            raise self._fault(
                f"{text[:60]!r} is no comment, no keyword with a text in double quotes and no such text alone"
            )
        keyword, form, quoted = found.groups()
        done = None
        if keyword in ("msgctxt", "msgid") and self._last.startswith("msgstr"):
            done = self._done()
        if keyword:
            self._begin(keyword, form)
        elif not self._last:
            raise self._fault("a text that belongs to no keyword")
        self._parts[self._last] += _ESCAPE.sub(self._character, self._checked(quoted))
        return done

    def end(self) -> Entry | None:
        """The last entry; None where there is none."""
        return self._done() if self._last else None

    def _begin(self, keyword: str, form: str | None) -> None:
        before = self._last.partition("[")[0]
        if before not in _AFTER[keyword] or (form is not None and keyword != "msgstr"):
            raise self._fault(
                f"{keyword} after {self._last or 'no msgid'}; an entry is a msgid, then its msgstr"
            )
        if keyword == "msgstr":
            # Forms are numbered from 0, and only an entry with a plural has any.
            wanted = str(sum(name.startswith("msgstr") for name in self._parts))
            plural = "msgid_plural" in self._parts
            if form != (wanted if plural else None) or (not plural and wanted != "0"):
                expected = f"msgstr[{wanted}]" if plural else "one msgstr"
                raise self._fault(
                    f"{keyword}{'' if form is None else f'[{form}]'} where {expected} is expected"
                )
        if not self._parts:
            self._line = self._at
        self._last = keyword if form is None else f"{keyword}[{form}]"
        self._parts[self._last] = ""

    def _done(self) -> Entry:
        parts, fuzzy, last = self._parts, self._fuzzy, self._last
        self._parts, self._fuzzy, self._last = {}, False, ""
        if not last.startswith("msgstr"):
            raise self._fault(f"the entry of line {self._line} has no msgstr; the file may be cut short")
        translations = [text for name, text in parts.items() if name.startswith("msgstr")]
        return Entry(
            parts["msgid"], self._line, translations, parts.get("msgid_plural"), parts.get("msgctxt"), fuzzy
        )

    def _checked(self, quoted: str) -> str:
        wrong = re.search(r"\\.", _ESCAPE.sub("", quoted)) if "\\" in quoted else None
        if wrong:
            raise self._fault(f"{wrong[0]!r} is no escape of PO; a backslash itself is written twice")
        return quoted

    def _character(self, found: re.Match[str]) -> str:
        letter, octal, hexadecimal = found.groups()
        if letter:
            return _CHARACTERS[letter]
        code = int(octal or hexadecimal, 8 if octal else 16)
        if code > 127:
            raise self._fault(f"{found[0]!r} is half a character; write the character itself")
        return chr(code)

    def _fault(self, problem: str) -> DataError:
        return DataError(f"{self._file}:{self._at}: {problem}")


def read_entries(path: str | Path, tally: Tally) -> Iterator[Entry]:
    """All entries, the header among them; obsolete ones are counted in ``tally``.

    DataError names file and line where the file is no PO or not in the encoding that it names.
    """
    file = named(path)
    lines = _Lines(file)
    with open_bytes(path) as stream:
        head = stream.read(_HEAD)
        encoding = charset(head, file)
        at = 0
        for at, raw in enumerate(_raw_lines(head.removeprefix(b"\xef\xbb\xbf"), stream), 1):
            try:
                text = raw.decode(encoding)
            except UnicodeError:
                raise DataError(f"{file}:{at}: is not in {encoding}, which its header names") from None
            if (entry := lines.take(text, at)) is not None:
                yield entry
    if (entry := lines.end()) is not None:
        yield entry
    if lines.obsolete:
        tally.skip(file, "obsolete", at, lines.obsolete)


def read_po(path: str | Path, wanted: Wanted, tally: Tally, corpus: int = 0) -> Iterator[Pair]:
    """The translated messages; ``line`` is where the entry begins. Others are counted in ``tally``."""
    catalog = Catalog(named(path), wanted, tally, corpus)
    for entry in read_entries(path, tally):
        yield from catalog.pairs(entry)
    catalog.sides.finish()


def _raw_lines(head: bytes, stream: io.BufferedReader) -> Iterator[bytes]:
    lines = head.split(b"\n")
    if len(head) >= _HEAD - 3:
        lines[-1] += stream.readline()
    yield from lines
    yield from stream
