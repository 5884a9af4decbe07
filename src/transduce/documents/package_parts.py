"""The XML parts of a package that have text: their paragraphs as slots, and a package of what they became."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from transduce.documents.package import Package
from transduce.documents.slots import Opened, Part, Slot
from transduce.documents.xml_text import Xml, read_xml


def opened_parts(
    package: Package, names: Sequence[str], slots: Callable[[Xml, str], Iterator[Slot]]
) -> Opened:
    """The parts ``names``, whose paragraphs ``slots`` finds; all that is not changed stays as it is.

    ``slots`` gets a part and what it is called in messages.
    """
    read = [(name, read_xml(package.part(name), f"{package.name}, {name}")) for name in names]
    parts = tuple(Part(xml.text, tuple(slots(xml, f"{package.name}, {name}"))) for name, xml in read)

    def close(texts: Sequence[str]) -> bytes:
        new = {
            name: xml.encode(text) for (name, xml), text in zip(read, texts, strict=True) if text != xml.text
        }
        return package.replaced(new)

    return Opened(parts, close)
