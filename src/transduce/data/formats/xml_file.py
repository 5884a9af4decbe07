"""A safe way through an XML file of any size: what a reader gathers is handed on as the file is read.

The parser is expat. Entities and attributes that the file itself defines are refused, and nothing outside the
file is ever read: a document type that names a DTD is passed over. Elements may not nest without end.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Generic, NoReturn, TypeVar
from xml.parsers import expat

from transduce.data.streams import is_empty, named, open_bytes
from transduce.errors import DataError

T = TypeVar("T")
_CHUNK = 1 << 16
_DEEPEST = 200
LANGUAGE = "http://www.w3.org/XML/1998/namespace}lang"
"""The attribute xml:lang, as it is named with namespaces."""


class XmlReader(Generic[T]):
    """What expat calls. A reader of a format overrides `start`, `end` and `text`, and puts what is complete
    into ``ready``.

    Names are without the namespace of the outermost element; others are "namespace}name".
    """

    def __init__(self, path: str | Path, *, namespaces: bool = True) -> None:
        self.path = named(path)
        self.ready: list[T] = []
        self.stack: list[str] = []
        """The names of the elements that are open, the innermost last."""
        self._file = path
        self._own: str | None = None
        self.parser = expat.ParserCreate(namespace_separator="}" if namespaces else None)
        self.parser.buffer_text = True
        self.parser.StartElementHandler, self.parser.EndElementHandler = self._start, self._end
        self.parser.CharacterDataHandler = self.text
        self.parser.EntityDeclHandler, self.parser.AttlistDeclHandler = self._entity, self._attribute
        self.parser.SkippedEntityHandler = self._skipped

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Nothing; an element begins. The last of ``stack`` is the one that it is in."""

    def end(self, name: str) -> None:
        """Nothing; an element ends. The last of ``stack`` is the one that it is in."""

    def text(self, data: str) -> None:
        """Nothing; some text of the last of ``stack``."""

    @property
    def line(self) -> int:
        """Where the parser is, counted from 1."""
        return self.parser.CurrentLineNumber

    def fault(self, problem: str) -> DataError:
        """The error that names file and line."""
        return DataError(f"{self.path}:{self.line}: {problem}")

    def read(self) -> Generator[T]:
        """What the reader gathers, in constant memory; DataError with file and line where it is no XML."""
        with open_bytes(self._file) as stream:
            more = True
            while more:
                chunk = stream.read(_CHUNK)
                more = bool(chunk)
                try:
                    self.parser.Parse(chunk, not more)
                except expat.ExpatError as error:
                    problem = expat.ErrorString(error.code)
                    raise DataError(
                        f"{self.path}:{error.lineno}: is not well-formed XML: {problem}; mend the file, or "
                        "export it again"
                    ) from None
                except (LookupError, ValueError) as error:
                    raise self.fault(f"its encoding cannot be read ({error}); save it as UTF-8") from None
                yield from self.ready
                self.ready.clear()

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._own is None:
            self._own = tag.rpartition("}")[0]
        if len(self.stack) >= _DEEPEST:
            raise self.fault(f"more than {_DEEPEST} elements inside one another; this is no file of text")
        name = self._local(tag)
        self.start(name, attributes)
        self.stack.append(name)

    def _end(self, tag: str) -> None:
        self.end(self.stack.pop())

    def _local(self, tag: str) -> str:
        namespace, _, name = tag.rpartition("}")
        return name if namespace == self._own else tag

    def _entity(self, name: str, *_: object) -> NoReturn:
        raise self.fault(
            f"defines the entity {name!r}; entities are not expanded: save the file without them"
        )

    def _attribute(self, element: str, name: str, *_: object) -> NoReturn:
        raise self.fault(
            f"declares the attribute {name!r} of <{element}>; such declarations are not read: save the file "
            "without them"
        )

    def _skipped(self, name: str, is_parameter: int) -> None:
        if not is_parameter:
            raise self.fault(
                f"uses the entity &{name};, which only its DTD could tell; write the character itself"
            )


class SegmentReader(XmlReader[T]):
    """A reader of files whose text all stands in segments: white space alone is elsewhere.

    ``pieces`` gathers the text of the open segment; None outside of one. ``silent`` counts the elements that
    are open in something that is passed over.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self.silent = 0
        self.pieces: list[str | None] | None = None

    def text(self, data: str) -> None:
        """Nothing; the text is part of the segment, or passed over; DataError for text elsewhere."""
        if self.silent:
            return
        if self.pieces is not None:
            self.pieces.append(data)
        elif data.strip():
            raise self.fault(f"text outside of a segment: {data.strip()[:40]!r}")


class _Root(XmlReader[str]):
    def start(self, name: str, attributes: dict[str, str]) -> None:
        if not self.stack:
            self.ready.append(name)


def root_of(path: str | Path) -> str:
    """The name of the outermost element, "" of a file without bytes; DataError where the file is no XML."""
    if is_empty(path):
        return ""
    reader = _Root(path).read()
    try:
        return next(reader, "")
    finally:
        reader.close()
