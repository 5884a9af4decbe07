"""TBX (TermBase eXchange, ISO 30042; versions 2 and 3): concepts with their terms in several languages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Sides, Wanted
from transduce.data.formats.tally import Tally
from transduce.data.formats.xml_file import XmlReader
from transduce.data.streams import named
from transduce.errors import DataError

_CONCEPT = {"termEntry", "conceptEntry"}
_LANGUAGE = {"langSet", "langSec"}
# Statuses of terms that are not to be used (TBX-Basic; others count as usable).
_UNWANTED = {"deprecatedTerm-admn-sts", "supersededTerm-admn-sts", "deprecated", "superseded"}


@dataclass(frozen=True)
class TermPair:
    """A term, its translation, and the line where the concept begins."""

    source: str
    target: str
    line: int


@dataclass
class _Word:
    text: str = ""
    status: str = ""


@dataclass
class _Concept:
    line: int
    languages: dict[str, list[_Word]] = field(default_factory=dict)

    def terms(self, language: str, *, usable: bool = False) -> list[str]:
        """The terms in a language as it is named in the file, each on one line."""
        return [
            " ".join(word.text.split())
            for word in self.languages.get(language, [])
            if word.text.strip() and not (usable and word.status.strip() in _UNWANTED)
        ]


class _Reader(XmlReader[_Concept]):
    def __init__(self, path: str | Path) -> None:
        super().__init__(path, namespaces=False)
        self._concept = _Concept(0)
        self._open = False
        self._language = self._inside = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if name in _CONCEPT:
            if self._open:
                raise self.fault(f"<{name}> inside of the concept of line {self._concept.line}")
            self._concept, self._open, self._language = _Concept(self.line), True, ""
        elif name in _LANGUAGE:
            if not self._open:
                raise self.fault(f"<{name}> outside of a concept (termEntry, conceptEntry)")
            self._language = attributes.get("xml:lang", attributes.get("lang", ""))
            self._concept.languages.setdefault(self._language, [])
        elif name == "term":
            self._concept.languages.setdefault(self._language, []).append(_Word())
            self._inside = "term"
        elif name == "termNote" and attributes.get("type") == "administrativeStatus":
            self._inside = "status"

    def text(self, data: str) -> None:
        words = self._concept.languages.get(self._language)
        if words and self._inside == "term":
            words[-1].text += data
        elif words and self._inside == "status":
            words[-1].status += data

    def end(self, name: str) -> None:
        name = name.rpartition(":")[2]
        if name in ("term", "termNote"):
            self._inside = ""
        elif name in _CONCEPT:
            self._open = False
            self.ready.append(self._concept)


def read_tbx(path: str | Path, source: str, target: str) -> Iterator[TermPair]:
    """The terms of language ``source``, each with the first term of ``target`` that is not deprecated.

    ``en`` stands for ``en-GB`` and the like too; concepts without one of the languages are passed over.
    DataError names file and line where the file is no TBX, and the languages where it has no such terms.
    """
    seen: set[str] = set()
    pairs = []
    for concept in _Reader(path).read():
        seen.update(concept.languages)
        one, other = (
            [name for name in concept.languages if _same_language(name, wanted)]
            for wanted in (source, target)
        )
        targets = [term for name in other for term in concept.terms(name, usable=True)]
        if targets:
            pairs += [
                TermPair(term, targets[0], concept.line) for name in one for term in concept.terms(name)
            ]
    for language in (source, target):
        if not any(_same_language(name, language) for name in seen):
            there = ", ".join(sorted(filter(None, seen))) or "none"
            raise DataError(f"{path}: has no terms in the language {language!r}; its languages are: {there}")
    yield from pairs


def read_tbx_pairs(path: str | Path, wanted: Wanted, tally: Tally, corpus: int = 0) -> Iterator[Pair]:
    """The same terms as pairs of a corpus; ``line`` is where the concept begins."""
    file = named(path)
    sides = Sides(file, wanted, tally)
    for concept in _Reader(path).read():
        names = list(concept.languages)
        places = sides.of(names)
        sources = concept.terms(names[places[0]]) if places else []
        targets = concept.terms(names[places[1]], usable=True) if places else []
        if not sources or not targets:
            tally.skip(file, "without source or target", concept.line)
            continue
        for term in sources:
            yield Pair(term, targets[0], file, concept.line, corpus=corpus)
    sides.finish()


def _same_language(name: str, wanted: str) -> bool:
    name, wanted = name.lower().replace("_", "-"), wanted.lower().replace("_", "-")
    return name == wanted or name.startswith(wanted + "-")
