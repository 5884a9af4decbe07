"""Paragraphs with markup inside: text with markers for the translator, and the markup put back.

A pair of tags becomes ``<g1>`` and ``</g1>``, anything else ``<x1/>`` (``<br id="1"/>`` where it separates
words): tags that `decoding.protected` carries through. Whatever comes back, the result has every piece of
markup exactly once and properly nested.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from transduce.decoding.protection import KINDS, find_items
from transduce.documents.marks import NO_RUN, Item, Mark, Pieces, Run, nested, trimmed, worded
from transduce.documents.slots import Piece, Raw, resolved

# No-break spaces are kept.
_MARKER = re.compile(r'(</?[gx]q*\d+/?>|<br id="q*\d+"/>)')
_SPACES = re.compile(r"[ \t\n\r\f]+")


@dataclass
class _Event:
    kind: str
    text: str = ""
    name: str = ""
    pieces: Pieces = ()
    run: Run | None = None
    separates: bool = False
    optional: bool = False


@dataclass
class Builder:
    """Collects what a paragraph consists of, in order."""

    events: list[_Event] = field(default_factory=list)

    def text(self, text: str) -> None:
        """Nothing; the text, without the escapes of the file, comes next."""
        if self.events and self.events[-1].kind == "text":
            self.events[-1].text += text
        elif text:
            self.events.append(_Event("text", text))

    def open(self, name: str, *pieces: Piece, run: Run | None = None, optional: bool = False) -> None:
        """Nothing; a tag comes next that the next `close` of this name belongs to."""
        self.events.append(_Event("open", name=name, pieces=pieces, run=run, optional=optional))

    def close(self, name: str, *pieces: Piece) -> None:
        """Nothing; a closing tag comes next."""
        self.events.append(_Event("close", name=name, pieces=pieces))

    def alone(self, *pieces: Piece, separates: bool = False, optional: bool = False) -> None:
        """Nothing; something comes next that is not translated, and is one with another right before it."""
        last = self.events[-1] if self.events else None
        if (
            last is not None
            and last.kind == "alone"
            and (last.separates, last.optional) == (separates, optional)
        ):
            last.pieces += pieces
            return
        self.events.append(_Event("alone", pieces=pieces, separates=separates, optional=optional))

    @property
    def is_empty(self) -> bool:
        """Whether there is no text."""
        return not any(event.kind == "text" and event.text.strip() for event in self.events)

    def segment(
        self,
        escape: Callable[[str], str],
        *,
        base: Run = NO_RUN,
        collapse: bool = False,
    ) -> Segment:
        """What was collected since the last call, as one text to translate.

        ``escape`` writes text as the file does; ``base`` is what text outside of any run is wrapped in. With
        ``collapse`` white space is worth one space.
        """
        events, self.events = self.events, []
        return Segment(_Paired(events), escape, base, collapse)


class _Paired:
    """Events as items and marks: a tag without its partner stands alone."""

    def __init__(self, events: Sequence[_Event]) -> None:
        self.marks: list[Mark] = []
        self.items: list[Item] = []
        self.separating: set[int] = set()
        partner = _partners(events)
        numbers: dict[int, int] = {}
        for at, event in enumerate(events):
            if event.kind == "text":
                self.items.append(Item("text", event.text))
            elif event.kind == "close" and at in partner:
                self.items.append(Item("close", mark=numbers[partner[at]]))
            else:
                numbers[at] = len(self.marks)
                other = partner.get(at)
                kind = "alone" if other is None else "open"
                self.items.append(Item(kind, mark=len(self.marks)))
                close = None if other is None else events[other].pieces
                if event.separates:
                    self.separating.add(len(self.marks))
                self.marks.append(Mark(event.pieces, close, event.run, event.optional))


def _partners(events: Sequence[_Event]) -> dict[int, int]:
    partner: dict[int, int] = {}
    waiting: list[int] = []
    counts: dict[str, int] = {}
    for at, event in enumerate(events):
        if event.kind == "open":
            waiting.append(at)
            counts[event.name] = counts.get(event.name, 0) + 1
        elif event.kind == "close" and counts.get(event.name):
            while True:
                other = waiting.pop()
                counts[events[other].name] -= 1
                if events[other].name == event.name:
                    break
            partner[at], partner[other] = other, at
    return partner


class Segment:
    """One text to translate, and what stands around it.

    ``text`` is empty where there is nothing to translate, ``marked`` is the same even then. Markup and white
    space at both ends are no part of it.
    """

    def __init__(self, paired: _Paired, escape: Callable[[str], str], base: Run, collapse: bool) -> None:
        self.marks, self._escape, self._base = paired.marks, escape, base
        self._separating = paired.separating
        self.lead, self.inner, self.trail = trimmed(paired.items)
        plain = "".join(item.text for item in self.inner if item.kind == "text")
        self._letter = ""
        while re.search(rf"</?[gx]{self._letter}\d|<br id=", plain):
            self._letter += "q"
        marked = "".join(self._marker(item) for item in self.inner)
        self.marked = _SPACES.sub(" ", marked) if collapse else marked
        self.text = self.marked if any(character.isalpha() for character in plain) else ""

    def shown(self, raw: Raw) -> dict[str, str]:
        """The real markup of each marker in the text."""
        names = {}
        for item in self.inner:
            if item.kind != "text":
                mark = self.marks[item.mark]
                pieces = mark.close if item.kind == "close" else mark.open
                names[self._marker(item)] = " ".join(resolved(pieces or (), raw).split())
        return names

    def filled(self, output: str, raw: Raw) -> str:
        """The segment with the translation ``output`` in it."""
        return self._emitted([*self.lead, *self._mended(output), *self.trail], raw)

    def unchanged(self, raw: Raw) -> str:
        """The segment with its own text."""
        return self._emitted([*self.lead, *self.inner, *self.trail], raw)

    def _marker(self, item: Item) -> str:
        name = f"{self._letter}{item.mark + 1}"
        if item.kind == "text":
            return item.text
        if item.kind == "alone":
            separates = item.mark in self._separating
            return f'<br id="{self._letter}{item.mark + 1}"/>' if separates else f"<x{name}/>"
        return f"<g{name}>" if item.kind == "open" else f"</g{name}>"

    def _mended(self, output: str) -> list[Item]:
        """The output as items, each marker of the text once and nested; what is lacking stands at the end."""
        wanted = {self._marker(item): item for item in self.inner if item.kind != "text"}
        if not wanted:
            return [Item("text", output)]
        given = [wanted.get(piece, Item("text", piece)) for piece in _MARKER.split(output) if piece]
        kept = nested(given)
        items = [item for at, item in enumerate(given) if item.kind == "text" or at in kept]
        there = {item.mark for item in items if item.kind != "text"}
        for item in self.inner:
            if (
                item.kind in ("open", "alone")
                and item.mark not in there
                and not self.marks[item.mark].optional
            ):
                items.append(item)
                if item.kind == "open":
                    items.append(Item("close", mark=item.mark))
        return worded(items, self.marks)

    def _emitted(self, items: Sequence[Item], raw: Raw) -> str:
        written: list[str] = []
        inside: list[Run] = [self._base]
        for item in items:
            if item.kind == "text":
                before, after = inside[-1]
                if item.text:
                    written += [resolved(before, raw), self._escape(item.text), resolved(after, raw)]
                continue
            mark = self.marks[item.mark]
            if item.kind == "close":
                inside.pop()
                written.append(resolved(mark.close or (), raw))
            else:
                written.append(resolved(mark.open, raw))
                if item.kind == "open":
                    inside.append(mark.run or inside[-1])
        return "".join(written)


def says_something(text: str) -> bool:
    """Whether there is a letter in ``text`` outside of tags, placeholders and addresses."""
    at, rest = 0, []
    for item in find_items(text, KINDS):
        rest.append(text[at : item.begin])
        at = item.end
    return any(character.isalpha() for character in "".join([*rest, text[at:]]))
