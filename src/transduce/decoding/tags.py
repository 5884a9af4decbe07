"""Inline tags: taken out of a line before it is translated; read as the elements that they enclose."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from transduce.decoding.protection import KINDS, Item, find_items

# Tags that separate words: without them the words on both sides must not be glued together.
_SEPARATING = re.compile("br|hr|p|div|li|[uod]l|d[td]|table|t[rdh]|option|section|h[1-6]")
PUNCTUATION = "\"'“”„’‘»«›‹.,;:!?…()¿¡"


@dataclass(frozen=True)
class Tag:
    """A tag, and the character of the text without tags before which it stands.

    ``alone``: white space or the line's end is on both sides. ``inner``: in the word that it is attached to,
    only punctuation lies beyond it. ``glued``: a space has taken its place in the text without tags.
    """

    text: str
    at: int
    alone: bool
    inner: bool
    glued: bool

    @property
    def name(self) -> str:
        """Its name in small letters; empty for a comment."""
        return _name(self.text)

    @property
    def closes(self) -> bool:
        """Whether it closes what another opened."""
        return self.text.startswith("</")

    @property
    def opens(self) -> bool:
        """Whether another may close it."""
        return bool(self.name) and not self.closes and not self.text.endswith("/>")


@dataclass
class Element:
    """A pair of tags with what stands between them, or (without ``close``) a tag by itself."""

    open: Tag
    close: Tag | None = None
    children: list[Element] = field(default_factory=list)

    def texts(self) -> list[str]:
        """Its tags in their order."""
        inside = [text for child in self.children for text in child.texts()]
        return [self.open.text, *inside, *([self.close.text] if self.close else [])]


def without_tags(line: str) -> tuple[str, list[Tag]]:
    """The line without its tags, and the tags. Of white space on both sides of a tag one side is left out."""
    text, at = "", 0
    tags: list[Tag] = []
    waiting: list[Item] = []
    for item in find_items(line, ["tags"]):
        if item.begin > at:
            text = _continued(text, waiting, line[at : item.begin], tags)
            waiting = []
        waiting.append(item)
        at = item.end
    return _continued(text, waiting, line[at:], tags), tags


def elements(tags: Sequence[Tag]) -> list[Element]:
    """The tags as elements, outermost first in their order; a tag without a partner is one by itself."""
    top: list[Element] = []
    open_ones: list[Element] = []

    def siblings() -> list[Element]:
        return open_ones[-1].children if open_ones else top

    for tag in tags:
        if tag.closes and tag.name in [element.open.name for element in open_ones]:
            while open_ones[-1].open.name != tag.name:
                _dissolve(open_ones.pop(), siblings())
            open_ones.pop().close = tag
            continue
        siblings().append(Element(tag))
        if tag.opens:
            open_ones.append(siblings()[-1])
    while open_ones:
        _dissolve(open_ones.pop(), siblings())
    return top


def _dissolve(element: Element, siblings: list[Element]) -> None:
    """Nothing; what was never closed stands alone, and what came after it beside it."""
    siblings += element.children
    element.children = []


def _continued(text: str, waiting: Sequence[Item], between: str, tags: list[Tag]) -> str:
    """The text with ``between`` after it; the tags that stood in the gap are added to ``tags``."""
    space_before = not text or text[-1].isspace()
    space_after = not between or between[0].isspace()
    separating = any(_SEPARATING.fullmatch(_name(item.text)) for item in waiting)
    attached = bool(waiting) and not space_before and not space_after
    glued = attached and (separating or _spoils(text.split()[-1], between.split()[0]))
    if waiting and space_before and space_after:
        between = between[1:]
    before = [] if space_before else text.split()[-1:]
    after = [] if space_after else between.split()[:1]
    gap = " " if glued else ""
    for item in waiting:
        closes = item.text.startswith("</")
        beyond = after if closes else before
        tags.append(
            Tag(
                item.text,
                at=len(text) if closes else len(text + gap),
                alone=space_before and space_after,
                inner=bool(beyond) and all(character in PUNCTUATION for character in beyond[0]),
                glued=glued,
            )
        )
    return text + gap + between


def _spoils(left: str, right: str) -> bool:
    """Whether something protected would no longer be seen if the two stood together."""

    def items(word: str) -> list[str]:
        return [item.text for item in find_items(word, KINDS)]

    return items(left + right) != items(left) + items(right)


def _name(tag: str) -> str:
    found = re.match(r"</?([\w:.-]+)", tag)
    return found[1].lower() if found else ""
