"""XML whose places are known to the character, so that it can be changed without being written anew.

expat checks that the text is well-formed; entities that a file defines, and document types with content of
their own, are refused, and nothing outside the file is ever read. What passes is then cut into tags and text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from transduce.documents.encodings import Encode, decode, marked_encoding
from transduce.errors import DataError

DEEPEST = 200
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})["']""")
_TOKEN = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<![^\[>\"']*(?:\"[^\"]*\"[^>\"']*|'[^']*'[^>\"']*)*>"
    r"|<[^>\"']*(?:\"[^\"]*\"[^>\"']*|'[^']*'[^>\"']*)*>|[^<]+",
    re.DOTALL,
)
_NAME = re.compile(r"[^\s/>]+")
_ATTRIBUTE = re.compile(r"""([^\s=/<>"']+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


@dataclass(slots=True)
class Text:
    """Characters between tags: as they are written, from ``begin`` to ``end``; or a CDATA section."""

    begin: int
    end: int
    value: str


@dataclass(slots=True)
class Other:
    """A comment or processing instruction."""

    begin: int
    end: int


@dataclass(slots=True)
class Element:
    """An element: from ``begin`` to ``end``, its content from ``inner_begin`` to ``inner_end``."""

    name: str
    begin: int
    inner_begin: int
    inner_end: int = 0
    end: int = 0
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element | Text | Other] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether it is one tag that closes itself."""
        return self.inner_end == self.end

    @property
    def elements(self) -> Iterator[Element]:
        """The elements directly inside."""
        return (child for child in self.children if isinstance(child, Element))

    def first(self, name: str) -> Element | None:
        """The first element of that name directly inside."""
        return next((child for child in self.elements if child.name == name), None)

    def every(self) -> Iterator[Element]:
        """The element and all elements within, in order of their beginnings."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += list(element.elements)[::-1]

    @property
    def text(self) -> str:
        """All text inside."""
        return "".join(
            child.value if isinstance(child, Text) else child.text
            for child in self.children
            if not isinstance(child, Other)
        )


@dataclass(frozen=True)
class Xml:
    """The text of a file, its outermost element, and what makes bytes of a changed text."""

    text: str
    root: Element
    encode: Encode


def read_xml(content: bytes, name: str) -> Xml:
    """The XML in ``content``; DataError, naming ``name`` and the line, where it is damaged or hostile."""
    declared = _DECLARED.match(content[:400].removeprefix(b"\xef\xbb\xbf"))
    encoding = marked_encoding(content) or (declared[1].decode() if declared else "utf-8")
    text, encode = decode(content, encoding, name, errors="xmlcharrefreplace")
    _check(text, name)
    return Xml(text, _tree(text, name), encode)


def escaped(text: str) -> str:
    """Text as it stands between tags. Characters that no XML may hold are left out."""
    text = _FORBIDDEN.sub("", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def space_before(text: str, at: int) -> str:
    """The line end and indentation before character ``at``; empty where it does not begin its line."""
    before = text[max(0, at - 1_000) : at]
    space = before[len(before.rstrip(" \t\r\n")) :]
    return space if "\n" in space else ""


_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def _check(text: str, name: str) -> None:
    """Nothing; raises DataError for what is no XML, or more than that."""
    checker = _Checker(name)
    parser = checker.parser
    parser.StartElementHandler, parser.EndElementHandler = checker.start, checker.end
    parser.EntityDeclHandler, parser.StartDoctypeDeclHandler = checker.entity, checker.doctype
    parser.SkippedEntityHandler = checker.skipped
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        problem = expat.ErrorString(error.code)
        raise DataError(f"{name}:{error.lineno}: is not well-formed XML: {problem}") from None


class _Checker:
    """What expat calls."""

    def __init__(self, name: str) -> None:
        self.name, self.depth = name, 0
        self.parser = expat.ParserCreate("utf-8")

    def start(self, *_: object) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self._wrong(
                f"elements are nested more than {DEEPEST} deep; that is no document for a reader"
            )

    def end(self, *_: object) -> None:
        self.depth -= 1

    def entity(self, name: str, *_: object) -> None:
        raise self._wrong(
            f"defines the entity {name!r}; entities are not expanded: save the file without them"
        )

    def doctype(self, _: str, __: object, ___: object, has_content: int) -> None:
        if has_content:
            raise self._wrong("has a document type with content of its own; save the file without it")

    def skipped(self, name: str, _: object) -> None:
        raise self._wrong(
            f"uses the entity &{name};, which only its DTD could tell; write the character itself"
        )

    def _wrong(self, what: str) -> DataError:
        return DataError(f"{self.name}:{self.parser.CurrentLineNumber}: {what}")


def _tree(text: str, name: str) -> Element:
    top = Element("", 0, 0)
    inside = [top]
    at = 0
    for match in _TOKEN.finditer(text):
        token, begin, end = match.group(), match.start(), match.end()
        if begin != at:
            raise DataError(f"{name}: cannot be cut into tags at character {at}; save it anew")
        at = end
        parent = inside[-1]
        if token[0] != "<":
            parent.children.append(Text(begin, end, html.unescape(token) if "&" in token else token))
        elif token.startswith("<![CDATA["):
            parent.children.append(Text(begin, end, token[9:-3]))
        elif token[1] in "!?":
            parent.children.append(Other(begin, end))
        elif token[1] == "/":
            inside.pop()
            parent.inner_end, parent.end = begin, end
        else:
            found = _NAME.match(token, 1)
            assert found is not None
            attributes = {
                key: html.unescape(double or single)
                for key, double, single in _ATTRIBUTE.findall(token[found.end() :])
            }
            element = Element(found.group(), begin, end, end, end, attributes)
            parent.children.append(element)
            if not token.endswith("/>"):
                inside.append(element)
    if at != len(text) or len(inside) != 1:
        raise DataError(f"{name}: cannot be cut into tags at character {at}; save it anew")
    return next(top.elements)
