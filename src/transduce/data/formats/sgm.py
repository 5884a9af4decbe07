"""SGM (and its form in XML), the test sets of NIST, WMT until 2020 and IWSLT: segments in documents.

This is SGML: a ``&`` may stand for itself. Names of elements must be known, so that no segment can hide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from transduce.counts import counted
from transduce.data.formats.pair import Pair
from transduce.data.formats.segments import Segments, matched
from transduce.data.formats.sides import Sides, Wanted
from transduce.data.formats.tally import Tally
from transduce.data.lines import read_lines
from transduce.data.streams import is_empty, named
from transduce.errors import DataError

_TAG = re.compile(r"<(?:!--.*?--|[!?][^>]*|(/?)([A-Za-z][\w-]*)([^<>]*))>", re.DOTALL)
_ATTRIBUTE = re.compile(r"""([\w:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_ENTITY = re.compile(r"&(?:(lt|gt|amp|quot|apos)|#(\d{1,7})|#[xX]([0-9A-Fa-f]{1,6}));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_SETS = {"srcset": "src", "refset": "ref", "tstset": "tst"}
_STRUCTURE = {*_SETS, "mteval", "doc", "p", "hl", "h1", "h2", "poster", "post", "audiodoc", "text", "body"}
# What IWSLT tells of a talk, between its segments.
_TOLD = {
    "url",
    "keywords",
    "speaker",
    "talkid",
    "title",
    "description",
    "reviewer",
    "translator",
    "speech",
    "dateline",
    "date",
}


class _Reader:
    """Goes through the tags; ``sets`` are the sides that were found."""

    def __init__(self, file: str) -> None:
        self._file, self._line = file, 1
        self.sets: list[Segments] = []
        self._document = self._number = ""
        self._told = ""
        self._text: str | None = None

    def read(self, content: str) -> None:
        """Nothing; all segments are in ``sets``."""
        at = 0
        for tag in _TAG.finditer(content):
            self._between(content[at : tag.start()])
            if tag[2]:
                self._tag(tag[2].lower(), bool(tag[1]), tag[3])
            self._line += content.count("\n", tag.start(), tag.end())
            at = tag.end()
        self._between(content[at:])
        if self._text is not None or self._told:
            raise self._fault(f"<{self._told or 'seg'}> has no end; the file may be cut short")

    def _between(self, text: str) -> None:
        if self._text is not None:
            self._text += text
        elif not self._told and text.strip():
            self._line += text[: len(text) - len(text.lstrip())].count("\n")
            raise self._fault(f"text outside of a segment: {text.strip()[:40]!r}")
        self._line += text.count("\n")

    def _tag(self, name: str, end: bool, rest: str) -> None:
        attributes = {
            found[0].lower(): found[1] or found[2] or found[3] for found in _ATTRIBUTE.findall(rest)
        }
        if self._told:
            if name == self._told and end:
                self._told = ""
        elif name == "seg":
            self._segment(end, attributes)
        elif self._text is not None:
            raise self._fault(f"<{'/' * end}{name}> in a segment; write < as &lt;")
        elif name in _TOLD:
            self._told = name
        elif name not in _STRUCTURE:
            hint = "; one of WMT since 2021 holds both sides: give it with --pairs" * (name == "dataset")
            raise self._fault(f"<{name}> is no element of such a test set{hint}")
        elif name in _SETS and not end:
            side = "srclang" if name == "srcset" else "trglang"
            language = attributes.get(side, "")
            self.sets.append(Segments("" if language == "any" else language, _SETS[name], self._line))
        elif name == "doc":
            self._document = "" if end else self._identified(attributes, "docid")
            if not end and not self.sets:
                raise self._fault("<doc> outside of a srcset, refset or tstset")

    def _segment(self, end: bool, attributes: dict[str, str]) -> None:
        if end == (self._text is None) or not self.sets:
            raise self._fault("<seg> and </seg> do not take turns inside of a document")
        if not end:
            self._number, self._text, self._began = self._identified(attributes, "id"), "", self._line
            return
        assert self._text is not None
        text = _ENTITY.sub(self._character, self._text.strip(" \t\n"))
        self.sets[-1].add((self._document, self._number), text, self._began, self._file)
        self._text = None

    def _character(self, found: re.Match[str]) -> str:
        name, decimal, hexadecimal = found.groups()
        if name:
            return _NAMED[name]
        code = int(decimal or hexadecimal, 10 if decimal else 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise self._fault(f"{found[0]} is no character; give the number of one")
        return chr(code)

    def _identified(self, attributes: dict[str, str], name: str) -> str:
        if not attributes.get(name):
            raise self._fault(f"an element without its {name}; number it")
        return attributes[name]

    def _fault(self, problem: str) -> DataError:
        return DataError(f"{self._file}:{self._line}: {problem}")


def read_sets(path: str | Path) -> list[Segments]:
    """The sides in one file; DataError names file and line where it is no such test set."""
    reader = _Reader(named(path))
    reader.read("".join(f"{line}\n" for line in read_lines(path)))
    if not reader.sets:
        raise DataError(f"{named(path)}: holds no srcset, refset or tstset; it is no SGM test set")
    return reader.sets


def read_sgm(path: str | Path, wanted: Wanted, tally: Tally, corpus: int = 0) -> Iterator[Pair]:
    """The pairs of a file that holds source and reference; ``line`` is that of the segment."""
    file = named(path)
    sides = Sides(file, wanted, tally)
    yield from matched(read_sets(path), file, sides, tally, corpus)
    sides.finish()


def read_sgm_side(path: str | Path) -> tuple[list[str], list[tuple[str, str]]]:
    """The segments of a file of one side, and the document and number of each."""
    if is_empty(path):
        return [], []
    sets = read_sets(path)
    if len(sets) > 1:
        raise DataError(f"{named(path)}: holds {counted(len(sets), 'side')}; give it with --pairs")
    return [text for text, _ in sets[0].texts.values()], list(sets[0].texts)
