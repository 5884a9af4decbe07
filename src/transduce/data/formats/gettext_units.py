"""What the entries of gettext catalogs, in text (PO) or compiled (MO), are as pairs."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Sides, Wanted
from transduce.data.formats.tally import Tally
from transduce.errors import DataError


@dataclass
class Entry:
    """One message; ``translations`` has several where it counts things."""

    source: str
    line: int
    translations: list[str] = field(default_factory=list)
    plural: str | None = None
    context: str | None = None
    fuzzy: bool = False

    @property
    def header(self) -> bool:
        """Whether this holds what a catalog says of itself."""
        return not self.source and self.plural is None and self.context is None


class Catalog:
    """Turns the entries of one catalog into pairs; its header names the language of the translations."""

    def __init__(self, file: str, wanted: Wanted, tally: Tally, corpus: int) -> None:
        self.sides = Sides(file, wanted, tally)
        self._file, self._tally, self._corpus = file, tally, corpus
        self._languages = ("", "")

    def pairs(self, entry: Entry) -> Iterator[Pair]:
        """The pairs of an entry: one, two where it has singular and plural, none where it is left out."""
        if entry.header:
            header = entry.translations[0]
            self._languages = (header_field(header, "X-Source-Language"), header_field(header, "Language"))
            return
        if why := _why_not(entry):
            self._tally.skip(self._file, why, entry.line)
            return
        places = self.sides.of(self._languages)
        if places is None:
            self._tally.skip(self._file, "in other languages", entry.line)
            return
        sources = [entry.source] if entry.plural is None else [entry.source, entry.plural]
        for both in zip(sources, entry.translations, strict=True):
            yield Pair(both[places[0]], both[places[1]], self._file, entry.line, corpus=self._corpus)


def _why_not(entry: Entry) -> str:
    """Why an entry is left out; "" where it is not."""
    if entry.fuzzy:
        return "fuzzy"
    if not any(entry.translations) and (entry.source or entry.plural):
        return "untranslated"
    # One form serves all numbers, or there are forms that English lacks: which is the plural is not clear.
    if entry.plural is not None and len(entry.translations) != 2:
        return f"with {len(entry.translations)} plural forms"
    return ""


def header_field(header: str, name: str) -> str:
    """What a catalog's header says under ``name``; "" where it says nothing."""
    for line in header.split("\n"):
        key, _, value = line.partition(":")
        if key.strip().lower() == name.lower():
            return value.strip()
    return ""


def charset(header: bytes, file: str) -> str:
    """The encoding that a header names, UTF-8 where it names none; DataError where nobody knows it."""
    found = re.search(rb"charset=([A-Za-z0-9._:-]+)", header)
    name = found[1].decode() if found else "UTF-8"
    if name == "CHARSET":  # a template that nobody filled in
        return "UTF-8"
    try:
        codecs.lookup(name)
        b"".decode(name)  # some codecs are not of text
    except LookupError:
        raise DataError(f"{file}: its header names the charset {name!r}; use UTF-8") from None
    return name
