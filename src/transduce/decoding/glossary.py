"""A glossary: what the translation of certain terms is to be, from a TSV or TBX file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from transduce.counts import counted
from transduce.data.formats.languages import normal
from transduce.data.formats.tbx import read_tbx
from transduce.data.lines import read_lines
from transduce.decoding.spelling import joins
from transduce.decoding.terms import Term
from transduce.errors import DataError, UsageError

_HOW = {"exact": True, "inflect": False}


@dataclass(frozen=True)
class Entry:
    """A source term and what its translation must contain; ``place`` is the file and line, for messages."""

    source: str
    target: Term
    place: str = ""


class Glossary:
    """Entries by their source terms."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries: dict[tuple[str, ...], Entry] = {}
        self._longest = 0
        for entry in entries:
            key = tuple(entry.source[begin:end] for begin, end in _words(entry.source))
            if not key or not entry.target.text.strip():
                raise DataError(f"{entry.place}: a glossary entry needs a source and a target term")
            other = self._entries.setdefault(key, entry)
            if other.target != entry.target:
                raise DataError(
                    f"{entry.place}: {entry.source!r} is to be {entry.target.text!r}, but {other.place} says "
                    f"{other.target.text!r}; keep one of them"
                )
            self._longest = max(self._longest, len(key))

    @classmethod
    def read(cls, path: str | Path, *, exact: bool = True, languages: str = "") -> Glossary:
        """The glossary in a file: TBX if its name ends in .tbx or .xml, else TSV.

        A line of TSV is source TAB target; a third column may say ``exact`` or ``inflect``, which otherwise
        ``exact`` decides (see `Term`). TBX needs ``languages``, such as ``en:de``. Raises DataError, naming
        file and line, for what cannot be used, and for a file without terms.
        """
        if Path(path).suffix.lower() in (".tbx", ".xml"):
            source, _, target = languages.partition(":")
            if not source or not target:
                raise UsageError(
                    f"{path} may hold many languages, and languages is {languages!r}; "
                    "name source and target, e.g. en:de"
                )
            if normal(source) == normal(target):
                raise UsageError(f"{path}: languages is {languages!r}; name two, e.g. en:de")
            found = cls(
                Entry(pair.source, Term(pair.target, exact), f"{path}:{pair.line}")
                for pair in read_tbx(path, source, target)
            )
        elif languages:
            raise UsageError(
                f"{path}: languages is {languages!r}, but the terms of a TSV file are of one pair of "
                "languages: leave it out"
            )
        else:
            found = cls(_tsv_entries(path, exact))
        if not len(found):
            raise DataError(f"{path}: holds no terms; write source TAB target on each line, or leave it out")
        return found

    def __len__(self) -> int:
        return len(self._entries)

    def terms(self, source: str) -> list[Term]:
        """The targets of the entries whose source terms occur in ``source``, each once, in order of place.

        A source term must be there in whole words; white space may differ. Where entries overlap, the longest
        one counts, among equally long ones the first in the line. An entry that begins with a small letter is
        found with a capital one too, as at the beginning of a sentence; else case must be the same.
        """
        words = [source[begin:end] for begin, end in _words(source)]
        found = [
            (begin - end, begin, entry)
            for begin in range(len(words))
            for end in range(begin + 1, min(len(words), begin + self._longest) + 1)
            if (entry := self._entry(words[begin:end])) is not None
        ]
        taken: set[int] = set()
        chosen: dict[int, Term] = {}
        for length, begin, entry in sorted(found, key=lambda one: one[:2]):
            places = range(begin, begin - length)
            if taken.isdisjoint(places):
                taken.update(places)
                chosen[begin] = entry.target
        return list(dict.fromkeys(chosen[begin] for begin in sorted(chosen)))

    def _entry(self, words: list[str]) -> Entry | None:
        first = words[0]
        small = first[:1].lower() + first[1:]
        return self._entries.get(tuple(words)) or self._entries.get((small, *words[1:]))


def _tsv_entries(path: str | Path, exact: bool) -> Iterator[Entry]:
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        columns = [column.strip() for column in line.split("\t")]
        place = f"{path}:{number}"
        if len(columns) not in (2, 3):
            raise DataError(
                f"{place}: has {counted(len(columns), 'column')}, {line[:60]!r}; write source TAB target"
            )
        if len(columns) == 3 and columns[2] not in _HOW:
            raise DataError(f"{place}: the third column is {columns[2]!r}; it may be exact or inflect")
        yield Entry(columns[0], Term(columns[1], _HOW[columns[2]] if len(columns) == 3 else exact), place)


def _words(text: str) -> Iterator[tuple[int, int]]:
    """Where the words are: letters and digits that belong together, and every other mark on its own."""
    begin = 0
    for end in range(1, len(text) + 1):
        if end < len(text) and joins(text[end - 1]) and joins(text[end]):
            continue
        if not text[begin:end].isspace():
            yield begin, end
        begin = end
