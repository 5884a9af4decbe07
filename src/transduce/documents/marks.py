"""Markup within a paragraph as marks, and the order in which they may stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transduce.documents.slots import Piece

Pieces = tuple[Piece, ...]
Run = tuple[Pieces, Pieces]
NO_RUN: Run = ((), ())


@dataclass(frozen=True)
class Mark:
    """Markup that a marker stands for: a pair of tags with something inside, or (without ``close``) a thing.

    ``run`` is what each piece of text inside is wrapped in, where tags cannot simply stand around it. What is
    ``optional`` is left out where it has no words: it would not be read as markup.
    """

    open: Pieces
    close: Pieces | None = None
    run: Run | None = None
    optional: bool = False


@dataclass(frozen=True)
class Item:
    """A step through a paragraph: text, or the opening, closing or single marker of mark number ``mark``."""

    kind: str
    text: str = ""
    mark: int = -1


def nested(items: Sequence[Item]) -> set[int]:
    """The places of the markers that may stay: the first of each, and pairs only if they are nested."""
    kept: set[int] = set()
    seen: set[int] = set()
    waiting: list[tuple[int, int]] = []
    open_ones: set[int] = set()
    for at, item in enumerate(items):
        if item.kind == "alone" and item.mark not in seen:
            seen.add(item.mark)
            kept.add(at)
        elif item.kind == "open" and item.mark not in seen:
            seen.add(item.mark)
            waiting.append((item.mark, at))
            open_ones.add(item.mark)
        elif item.kind == "close" and item.mark in open_ones:
            while waiting[-1][0] != item.mark:
                open_ones.remove(waiting.pop()[0])
            open_ones.remove(item.mark)
            kept |= {waiting.pop()[1], at}
    return kept


def trimmed(items: Sequence[Item]) -> tuple[list[Item], list[Item], list[Item]]:
    """The items before the text, those of the text, and those after it."""
    lead: list[Item] = []
    trail: list[Item] = []
    inner = list(_spaced(items))
    first, last = 0, len(inner)
    while first < last:
        left, right = inner[first], inner[last - 1]
        if left.kind == "alone" or (left.kind == "text" and left.text.isspace()):
            lead.append(left)
            first += 1
        elif right.kind == "alone" or (right.kind == "text" and right.text.isspace()):
            trail.append(right)
            last -= 1
        elif left.kind == "open" and right.kind == "close" and left.mark == right.mark:
            lead.append(left)
            trail.append(right)
            first, last = first + 1, last - 1
        else:
            break
    return lead, inner[first:last], trail[::-1]


def _spaced(items: Sequence[Item]) -> Iterator[Item]:
    """The items with the white space at the ends of texts apart."""
    for item in items:
        body = item.text.strip()
        if item.kind != "text" or not body or body == item.text:
            yield item
            continue
        begin = item.text.find(body)
        for text in (item.text[:begin], body, item.text[begin + len(body) :]):
            if text:
                yield Item("text", text)


def worded(items: Sequence[Item], marks: Sequence[Mark]) -> list[Item]:
    """The items without the optional pairs that hold no word."""
    left: list[Item] = []
    for item in items:
        if item.kind == "close" and marks[item.mark].optional:
            inside = 1 if left[-1].kind == "text" and not left[-1].text.strip() else 0
            opening = left[-1 - inside]
            if opening.kind == "open" and opening.mark == item.mark:
                del left[len(left) - 1 - inside]
                continue
        left.append(item)
    return left
