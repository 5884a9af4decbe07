"""The content of an XML element as messages: what XLIFF and TMX share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transduce.documents.inline import Builder, Segment
from transduce.documents.message import Message
from transduce.documents.slots import Raw
from transduce.documents.xml_text import Element, Other, Text, escaped

# What becomes of an element within text: a pair of tags ("pair"), untouched as a whole ("whole"), or one half
# of a pair whose other half is another element ("open", "close"), which the second string names.
Role = tuple[str, str]


@dataclass(frozen=True)
class Content:
    """The content of an element: ``texts`` to translate, put together by `written`."""

    segment: Segment
    message: Message | None

    @classmethod
    def of(cls, element: Element, role: Callable[[Element], Role]) -> Content:
        """The content of ``element``; ``role`` says what the elements within are."""
        builder = Builder()
        _collect(element, role, builder)
        segment = builder.segment(escaped)
        return cls(segment, Message(segment.marked) if segment.marked else None)

    @property
    def texts(self) -> tuple[str, ...]:
        """Lines to translate; none where nothing is to be translated."""
        return self.message.texts if self.message else ()

    def written(self, outputs: Sequence[str], raw: Raw) -> str:
        """The content with the translations of its texts; its own content where it has none."""
        if self.message is None:
            return self.segment.unchanged(raw)
        return self.segment.filled(self.message.joined(outputs), raw)


def _collect(element: Element, role: Callable[[Element], Role], builder: Builder) -> None:
    for child in element.children:
        if isinstance(child, Text):
            builder.text(child.value)
        elif isinstance(child, Other):
            builder.alone((child.begin, child.end))
        else:
            kind, name = role(child)
            whole = (child.begin, child.end)
            if kind == "pair" and not child.is_empty:
                builder.open(child.name, (child.begin, child.inner_begin))
                _collect(child, role, builder)
                builder.close(child.name, (child.inner_end, child.end))
            elif kind == "open":
                builder.open(name, whole)
            elif kind == "close":
                builder.close(name, whole)
            else:
                builder.alone(whole)
