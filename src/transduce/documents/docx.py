"""DOCX (Office Open XML): paragraph by paragraph, also in tables, headers, footers, notes and text boxes.

A paragraph's text lies in runs, each with its formatting. The formatting that most of the text has is that of
the translation; what is formatted otherwise is placed by the alignment. What Word added for itself (marks of
spelling, where a page broke) is left out of a translated paragraph. Deleted text stays deleted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from transduce.documents.docx_paragraph import Paragraph
from transduce.documents.package import Package
from transduce.documents.package_parts import opened_parts
from transduce.documents.slots import Opened, Slot
from transduce.documents.translate import Reading
from transduce.documents.xml_text import Xml, read_xml
from transduce.errors import DataError

_KINDS = ("document.main", "template.main", "header", "footer", "footnotes", "endnotes")
_CONTENT_TYPE = re.compile(rf"\.(?:{'|'.join(_KINDS)})\+xml$|macroEnabled(?:Template)?\.main\+xml$")


def open_docx(content: bytes, reading: Reading) -> Opened:
    """The paragraphs of all parts that have text as slots."""
    package = Package(content, reading.name)
    return opened_parts(package, _names(package), _slots)


def _names(package: Package) -> list[str]:
    """The parts that have text for readers."""
    types = read_xml(package.part("[Content_Types].xml"), f"{package.name}, [Content_Types].xml")
    names = [
        element.attributes.get("PartName", "").lstrip("/")
        for element in types.root.elements
        if _CONTENT_TYPE.search(element.attributes.get("ContentType", ""))
    ]
    found = [name for name in dict.fromkeys(names) if name in package.names]
    if not found:
        raise DataError(f"{package.name}: is no Word document: no part of it holds one")
    return found


def _slots(xml: Xml, name: str) -> Iterator[Slot]:
    root = xml.root.name
    prefix = root[: root.rfind(":") + 1]
    number = 0
    for element in xml.root.every():
        if element.name == f"{prefix}p":
            number += 1
            slot = Paragraph(xml.text, prefix, element).slot(f"{name}, paragraph {number}")
            if slot is not None:
                yield slot
