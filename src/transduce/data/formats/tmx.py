"""TMX (Translation Memory eXchange, versions 1.1 to 1.4): units with the same text in several languages.

A unit at a time is held. What an element is must be known: one that is not is an error, so that no unit can
hide behind a misspelt name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from transduce.data.formats.inline import CODE, without_codes
from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Sides, Wanted
from transduce.data.formats.tally import Tally
from transduce.data.formats.xml_file import LANGUAGE, SegmentReader

# What may stand in what. Of a header, a note and a property the content does not matter.
_INSIDE = {
    "": {"tmx"},
    "tmx": {"header", "body"},
    "body": {"tu"},
    "tu": {"note", "prop", "tuv"},
    "tuv": {"note", "prop", "seg"},
}
_PASSED_OVER = {"header", "note", "prop"}
# Codes of the document: those in pairs, and those that stand alone. <hi> only marks text.
_PAIRED = {"bpt", "ept"}
_ALONE = {"ph", "it", "ut"}
_MISSING = "without source or target"
_UNREVIEWED = "that a machine made and nobody has reviewed"


class _Reader(SegmentReader[Pair]):
    def __init__(self, path: str | Path, wanted: Wanted, tally: Tally, corpus: int) -> None:
        super().__init__(path)
        self.sides, self._tally, self._corpus = Sides(self.path, wanted, tally), tally, corpus
        self._declared = ""
        self._line = 0
        self._texts: list[tuple[str, str]] = []
        self._language, self._segments = "", 0
        self._unreviewed: set[int] = set()

    def start(self, name: str, attributes: dict[str, str]) -> None:
        parent = self.stack[-1] if self.stack else ""
        if self.silent or self.pieces is not None:
            self._start_inside(name)
            return
        if name not in _INSIDE.get(parent, ()):
            where = f"in <{parent}>" if parent else "as the outermost element"
            raise self.fault(
                f"<{name}> {where}; TMX has {' or '.join(sorted(_INSIDE.get(parent, {'text'})))} there"
            )
        if name in _PASSED_OVER:
            self._pass_over(name, parent, attributes)
        elif name == "tu":
            self._line, self._texts, self._unreviewed = self.line, [], set()
        elif name == "tuv":
            self._language, self._segments = attributes.get(LANGUAGE, attributes.get("lang", "")), 0
            if not self._language:
                raise self.fault("<tuv> without a language; give it xml:lang")
        elif name == "seg":
            self._segments += 1
            if self._segments > 1:
                raise self.fault("a second <seg> in one <tuv>; TMX has one")
            self.pieces = []

    def _pass_over(self, name: str, parent: str, attributes: dict[str, str]) -> None:
        self.silent = 1
        if name == "header":
            declared = attributes.get("srclang", "")
            self._declared = "" if declared == "*all*" else declared
        elif parent == "tuv" and attributes.get("type") == "x-transduce":
            # What `transduce translate` has filled in; it stands before the segment.
            self._unreviewed.add(len(self._texts))

    def _start_inside(self, name: str) -> None:
        if self.silent:
            self.silent += 1
        elif name in _PAIRED | _ALONE:
            self.silent = 1
            if name in _ALONE and self.pieces is not None:
                self.pieces.append(CODE)
        elif name != "hi":
            raise self.fault(f"<{name}> in a segment, which TMX does not know")

    def end(self, name: str) -> None:
        if self.silent:
            self.silent -= 1
        elif name == "seg":
            assert self.pieces is not None
            self._texts.append((self._language, without_codes(self.pieces)))
            self.pieces = None
        elif name == "tuv":
            if not self._segments:
                raise self.fault("<tuv> without a <seg>")
        elif name == "tu":
            self._unit()

    def _unit(self) -> None:
        names = [name for name, _ in self._texts]
        places = self.sides.of(names, self._declared)
        if places is None:
            self._tally.skip(self.path, _MISSING, self._line)
            return
        if self._unreviewed.intersection(places):
            self._tally.skip(self.path, _UNREVIEWED, self._line)
            return
        source, target = (self._texts[place][1] for place in places)
        self.ready.append(Pair(source, target, self.path, self._line, corpus=self._corpus))


def read_tmx(path: str | Path, wanted: Wanted, tally: Tally, corpus: int = 0) -> Iterator[Pair]:
    """The pairs of a translation memory; ``line`` is where the unit begins.

    Of several texts in one language the one whose name fits best is taken, the first of equals. DataError
    names file and line where this is no TMX, and the languages where the choice is not clear.
    """
    reader = _Reader(path, wanted, tally, corpus)
    yield from reader.read()
    reader.sides.finish()
