"""ODT (OpenDocument text): paragraph by paragraph, also in tables, headers, footers, notes and frames.

Spans whose style says only in which session they were written are no formatting, and are left out of a
translated paragraph. Comments and tracked changes stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from transduce.documents.inline import Builder, Segment
from transduce.documents.marks import Pieces
from transduce.documents.package import Package
from transduce.documents.package_parts import opened_parts
from transduce.documents.paragraph_slot import paragraph_slot
from transduce.documents.slots import Opened, Slot
from transduce.documents.translate import Reading
from transduce.documents.xml_text import Element, Text, Xml, escaped
from transduce.errors import DataError

_PARTS = ("content.xml", "styles.xml")
_AROUND = {"text:span", "text:a", "text:meta", "text:ruby-base"}
_CUTS = {"text:tab", "text:line-break", "text:s"}
_UNTOUCHED = {"office:annotation", "text:tracked-changes", "office:forms"}
_SESSION = {"officeooo:rsid", "officeooo:paragraph-rsid", "loext:rsid"}


def open_odt(content: bytes, reading: Reading) -> Opened:
    """The paragraphs of the document, its headers and footers as slots."""
    package = Package(content, reading.name)
    if "content.xml" not in package.names:
        raise DataError(f"{reading.name}: is no OpenDocument text: it has no content.xml")
    return opened_parts(package, [name for name in _PARTS if name in package.names], _slots)


def _slots(xml: Xml, name: str) -> Iterator[Slot]:
    unseen = _unseen_styles(xml.root)
    number = 0
    waiting = [xml.root]
    while waiting:
        element = waiting.pop()
        if element.name in ("text:p", "text:h"):
            number += 1
            parts = list(_parts(element, unseen))
            place = f"{name}, paragraph {number}"
            slot = paragraph_slot(parts, xml.text, element.inner_begin, element.inner_end, place)
            if slot is not None:
                yield slot
        if element.name not in _UNTOUCHED:
            waiting += list(element.elements)[::-1]


def _unseen_styles(root: Element) -> set[str]:
    """The names of the text styles that look like nothing."""
    names = set()
    for style in root.every():
        if style.name == "style:style" and style.attributes.get("style:family") == "text":
            looks = [one for one in style.every() if one is not style]
            of_session = all(set(one.attributes) <= _SESSION for one in looks)
            if of_session and "style:parent-style-name" not in style.attributes:
                names.add(style.attributes.get("style:name", ""))
    return names


def _parts(paragraph: Element, unseen: set[str]) -> Iterator[Segment | Pieces]:
    builder = Builder()
    for kind, name, text, pieces in _steps(paragraph, unseen):
        if kind == "cut":
            yield builder.segment(escaped, collapse=True)
            yield pieces
        elif kind == "text":
            builder.text(text)
        elif kind == "alone":
            builder.alone(*pieces)
        else:
            getattr(builder, kind)(name, *pieces)
    yield builder.segment(escaped, collapse=True)


def _steps(element: Element, unseen: set[str]) -> Iterator[tuple[str, str, str, Pieces]]:
    for child in element.children:
        whole = ((child.begin, child.end),)
        if isinstance(child, Text):
            yield "text", "", child.value, ()
        elif not isinstance(child, Element):
            yield "alone", "", "", whole
        elif child.name in _CUTS:
            yield "cut", "", "", whole
        elif child.name in _AROUND and not child.is_empty:
            is_seen = child.name != "text:span" or child.attributes.get("text:style-name", "") not in unseen
            if is_seen:
                yield "open", child.name, "", ((child.begin, child.inner_begin),)
            yield from _steps(child, unseen)
            if is_seen:
                yield "close", child.name, "", ((child.inner_end, child.end),)
        elif child.name.endswith(("-start", "-end")):
            kind, name = (
                ("open", child.name[:-6]) if child.name.endswith("-start") else ("close", child.name[:-4])
            )
            yield kind, f"{name} {child.attributes.get('text:name', '')}", "", whole
        elif child.name != "text:soft-page-break":
            yield "alone", "", "", whole
