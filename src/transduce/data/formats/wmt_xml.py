"""The test sets of WMT since 2021, in XML: documents with their source, references and system outputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from transduce.data.formats.pair import Pair
from transduce.data.formats.segments import Segments, matched
from transduce.data.formats.sides import Sides, Wanted
from transduce.data.formats.tally import Tally
from transduce.data.formats.xml_file import LANGUAGE, SegmentReader

_INSIDE = {
    "": {"dataset"},
    "dataset": {"doc", "collection"},
    "collection": {"doc"},
    "doc": {"src", "ref", "hyp"},
    "src": {"p"},
    "ref": {"p"},
    "hyp": {"p"},
    "p": {"seg"},
}


class _Reader(SegmentReader[Pair]):
    def __init__(self, path: str | Path, wanted: Wanted, tally: Tally, corpus: int) -> None:
        super().__init__(path)
        self.sides, self._tally, self._corpus = Sides(self.path, wanted, tally), tally, corpus
        self._sets: list[Segments] = []
        self._document = self._number = ""
        self._line = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        parent = self.stack[-1] if self.stack else ""
        if name not in _INSIDE.get(parent, ()):
            where = f"in <{parent}>" if parent else "as the outermost element"
            raise self.fault(f"<{name}> {where}; a test set of WMT has no such element there")
        if name == "doc":
            self._document, self._sets = attributes.get("id", ""), []
        elif name in ("src", "ref", "hyp"):
            language = attributes.get("lang", attributes.get(LANGUAGE, ""))
            self._sets.append(Segments(language, name, self.line))
        elif name == "seg":
            self._number, self.pieces, self._line = attributes.get("id", ""), [], self.line

    def end(self, name: str) -> None:
        if name == "seg":
            assert self.pieces is not None
            key = (self._document, self._number)
            self._sets[-1].add(key, "".join(filter(None, self.pieces)), self._line, self.path)
            self.pieces = None
        elif name == "doc":
            for one in self._sets:
                if one.kind == "hyp":
                    self._tally.skip(self.path, "segments of systems", one.line, len(one.texts))
            self.ready.extend(matched(self._sets, self.path, self.sides, self._tally, self._corpus))


def read_wmt_xml(path: str | Path, wanted: Wanted, tally: Tally, corpus: int = 0) -> Iterator[Pair]:
    """The pairs of source and the first reference, document by document; ``line`` is that of the segment."""
    reader = _Reader(path, wanted, tally, corpus)
    yield from reader.read()
    reader.sides.finish()
