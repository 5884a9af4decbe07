"""XLIFF 1.2 and 2 (XML Localisation Interchange File Format): units with a source and its translation.

A unit at a time is held. What an element of XLIFF is must be known, as in TMX; elements of other namespaces
are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from transduce.data.formats.inline import CODE, without_codes
from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Sides, Wanted
from transduce.data.formats.tally import Tally
from transduce.data.formats.xml_file import SegmentReader

_INSIDE = {
    "1": {
        "": {"xliff"},
        "xliff": {"file"},
        "file": {"header", "body"},
        "body": {"group", "trans-unit", "bin-unit"},
        "group": {"group", "trans-unit", "bin-unit"},
        "trans-unit": {"source", "target"},
    },
    "2": {
        "": {"xliff"},
        "xliff": {"file"},
        "file": {"group", "unit"},
        "group": {"group", "unit"},
        "unit": {"segment"},
        "segment": {"source", "target"},
    },
}
# Of these the content does not matter: proposals and notes, and text that is not for translation.
_PASSED_OVER = {
    "1": {
        "header",
        "note",
        "context-group",
        "count-group",
        "prop-group",
        "alt-trans",
        "seg-source",
        "bin-unit",
    },
    "2": {"notes", "skeleton", "originalData", "ignorable"},
}
# Inside a segment: what marks text, codes in pairs, codes that stand alone.
_MARKS = {"1": {"g", "mrk"}, "2": {"pc", "mrk"}}
_PAIRED = {"1": {"bpt", "ept", "bx", "ex"}, "2": {"sc", "ec", "sm", "em"}}
_ALONE = {"1": {"ph", "it", "x"}, "2": {"ph"}}
_UNFINISHED = {"new", "needs-translation", "initial"}


class _Reader(SegmentReader[Pair]):
    def __init__(self, path: str | Path, wanted: Wanted, tally: Tally, corpus: int) -> None:
        super().__init__(path)
        self.sides, self._tally, self._corpus = Sides(self.path, wanted, tally), tally, corpus
        self._version = "1"
        self._languages = ("", "")
        self._line = 0
        self._texts: dict[str, str] = {}
        self._state = ""
        self._translated = True

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if not self.stack and name == "xliff":
            self._version = "2" if attributes.get("version", "").startswith("2") else "1"
            if self._version == "2":
                self._languages = (attributes.get("srcLang", ""), attributes.get("trgLang", ""))
        parent = self.stack[-1] if self.stack else ""
        known = _INSIDE[self._version].get(parent, set())
        if self.silent:
            self.silent += 1
        elif self.pieces is not None:
            self._start_inside(name, attributes)
        elif name in _PASSED_OVER[self._version] or (parent and "}" in name):
            self.silent = 1
        elif name not in known:
            where = f"in <{parent}>" if parent else "as the outermost element"
            raise self.fault(f"<{name}> {where}; XLIFF {self._version} has no such element there")
        else:
            self._start_known(name, attributes)

    def _start_known(self, name: str, attributes: dict[str, str]) -> None:
        if name == "file" and self._version == "1":
            self._languages = (attributes.get("source-language", ""), attributes.get("target-language", ""))
        elif name in ("trans-unit", "unit"):
            self._translated = attributes.get("translate") != "no"
            self._begin("")
        elif name == "segment":
            self._begin(attributes.get("state", ""))
        elif name in ("source", "target"):
            if name in self._texts:
                raise self.fault(f"a second <{name}> in <{self.stack[-1]}>; there may be one")
            if name == "target":
                self._state = attributes.get("state", self._state)
            self.pieces = []

    def _begin(self, state: str) -> None:
        self._line, self._texts, self._state = self.line, {}, state

    def _start_inside(self, name: str, attributes: dict[str, str]) -> None:
        assert self.pieces is not None
        version = self._version
        if name == "cp" and version == "2":
            self.pieces.append(self._character(attributes.get("hex", "")))
            self.silent = 1
        elif name in _ALONE[version] | _PAIRED[version] or "}" in name:
            self.silent = 1
            if name in _ALONE[version]:
                self.pieces.append(CODE)
        elif name not in _MARKS[version]:
            raise self.fault(f"<{name}> in a segment, which XLIFF {version} does not know")

    def _character(self, code: str) -> str:
        try:
            character = chr(int(code, 16))
            character.encode()
        except (ValueError, OverflowError):
            raise self.fault(f"<cp hex={code!r}> is no character; give the number of one") from None
        return character

    def end(self, name: str) -> None:
        if self.silent:
            self.silent -= 1
        elif name in ("source", "target") and self.stack[-1] in ("trans-unit", "segment"):
            assert self.pieces is not None
            self._texts[name], self.pieces = without_codes(self.pieces), None
        elif name in ("trans-unit", "segment"):
            self._unit()

    def _unit(self) -> None:
        if "source" not in self._texts:
            raise self.fault(f"the unit of line {self._line} has no <source>")
        places = self.sides.of(self._languages, self._languages[0])
        if why := self._why_not(places):
            self._tally.skip(self.path, why, self._line)
            return
        assert places is not None
        both = (self._texts["source"], self._texts["target"])
        self.ready.append(Pair(both[places[0]], both[places[1]], self.path, self._line, corpus=self._corpus))

    def _why_not(self, places: tuple[int, int] | None) -> str:
        """Why the unit is left out; "" where it is not."""
        if places is None:
            return "in other languages"
        if not self._translated:
            return "not to be translated"
        if not self._texts.get("target") and self._texts["source"]:
            return "untranslated"
        if "target" not in self._texts:
            return "empty"
        if self._state in _UNFINISHED:
            return "not yet translated"
        return "needing review" if self._state.startswith("needs-review") else ""


def read_xliff(path: str | Path, wanted: Wanted, tally: Tally, corpus: int = 0) -> Iterator[Pair]:
    """The translated units; ``line`` is where the unit begins. Others are counted in ``tally``.

    Source and target change places where the languages that are wanted say so. DataError names file and line
    where this is no XLIFF, and the languages where they are not those that are wanted.
    """
    reader = _Reader(path, wanted, tally, corpus)
    yield from reader.read()
    reader.sides.finish()
