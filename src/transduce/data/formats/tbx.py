"""TBX (TermBase eXchange, ISO 30042; versions 2 and 3): concepts with their terms in several languages.

The parser is expat. Entities that the file defines are refused, and nothing outside the file is ever read:
a document type that names a DTD is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

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
class _Reader:
    """What expat calls; ``languages`` collects the terms of the concept that is being read."""

    path: str
    source: str
    target: str
    parser: expat.XMLParserType = field(default_factory=lambda: expat.ParserCreate())
    pairs: list[TermPair] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    languages: dict[str, list[_Word]] = field(default_factory=dict)
    language: str = ""
    line: int = 0
    inside: str = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        if name in _CONCEPT:
            self.languages, self.line = {}, self.parser.CurrentLineNumber
        elif name in _LANGUAGE:
            self.language = attributes.get("xml:lang", attributes.get("lang", ""))
            self.seen.add(self.language)
        elif name == "term":
            self.languages.setdefault(self.language, []).append(_Word())
            self.inside = "term"
        elif name == "termNote" and attributes.get("type") == "administrativeStatus":
            self.inside = "status"

    def text(self, data: str) -> None:
        words = self.languages.get(self.language)
        if words and self.inside == "term":
            words[-1].text += data
        elif words and self.inside == "status":
            words[-1].status += data

    def end(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        if name in ("term", "termNote"):
            self.inside = ""
        elif name in _CONCEPT:
            targets = [word for word in self._words(self.target) if word.status.strip() not in _UNWANTED]
            if targets:
                best = " ".join(targets[0].text.split())
                for word in self._words(self.source):
                    self.pairs.append(TermPair(" ".join(word.text.split()), best, self.line))

    def _words(self, language: str) -> list[_Word]:
        return [
            word
            for name, words in self.languages.items()
            if _same_language(name, language)
            for word in words
            if word.text.strip()
        ]

    def entity(self, name: str, *_: object) -> NoReturn:
        raise DataError(
            f"{self.path}:{self.parser.CurrentLineNumber}: defines the entity {name!r}; entities are not "
            "expanded: save the file without them"
        )

    def skipped(self, name: str, is_parameter: int) -> None:
        if not is_parameter:
            raise DataError(
                f"{self.path}:{self.parser.CurrentLineNumber}: uses the entity &{name};, which only its DTD "
                "could tell; write the character itself"
            )


def read_tbx(path: str | Path, source: str, target: str) -> Iterator[TermPair]:
    """The terms of language ``source``, each with the first term of ``target`` that is not deprecated.

    ``en`` stands for ``en-GB`` and the like too; concepts without one of the languages are passed over.
    DataError names file and line where the file is no TBX, and the languages where it has no such terms.
    """
    reader = _Reader(str(path), source, target)
    parser = reader.parser
    parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
    parser.CharacterDataHandler, parser.EntityDeclHandler = reader.text, reader.entity
    parser.SkippedEntityHandler = reader.skipped
    try:
        with open(path, "rb") as file:
            parser.ParseFile(file)
    except expat.ExpatError as error:
        problem = expat.ErrorString(error.code)
        raise DataError(f"{path}:{error.lineno}: is not well-formed XML: {problem}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    for language in (source, target):
        if not any(_same_language(name, language) for name in reader.seen):
            there = ", ".join(sorted(filter(None, reader.seen))) or "none"
            raise DataError(f"{path}: has no terms in the language {language!r}; its languages are: {there}")
    yield from reader.pairs


def _same_language(name: str, wanted: str) -> bool:
    name, wanted = name.lower().replace("_", "-"), wanted.lower().replace("_", "-")
    return name == wanted or name.startswith(wanted + "-")
