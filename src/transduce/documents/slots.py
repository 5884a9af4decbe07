"""Where a document takes translations, and the document with these places filled."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

# The document's own text between two characters, with what was filled in there already.
Raw = Callable[[int, int], str]
# The new content of a place, from the translations of its texts.
Fill = Callable[[Sequence[str], Raw], str]
# Text that stands as it is, or the characters of the document between which it stands.
Piece = str | tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A place of a document, from character ``begin`` up to ``end``, and what its translation is made of.

    ``texts`` are lines to translate, and ``fill`` makes the new content of the place from their translations.
    ``place`` names it in messages; ``shown`` has the real markup for markers in the texts. With ``always``
    it is filled even if every translation equals its text, as where an own copy is written. Slots are nested
    in one another, or disjoint.
    """

    begin: int
    end: int
    place: str
    texts: tuple[str, ...]
    fill: Fill
    shown: Mapping[str, str] = field(default_factory=dict)
    always: bool = False


@dataclass(frozen=True)
class Part:
    """A text with its slots: a whole file, or one of those in a package."""

    text: str
    slots: tuple[Slot, ...]


@dataclass(frozen=True)
class Opened:
    """A document that was read: its parts, and what makes the bytes of the file from their new texts."""

    parts: tuple[Part, ...]
    close: Callable[[Sequence[str]], bytes]


def filled(part: Part, translations: Mapping[str, str]) -> str:
    """The part with its slots filled; one of whose texts a translation is missing stays as it is."""
    begins: list[int] = []
    edits: list[tuple[int, int, str]] = []

    def raw(begin: int, end: int) -> str:
        first, last = bisect_left(begins, begin), bisect_right(begins, end)
        inside = [edit for edit in edits[first:last] if edit[1] <= end]
        return _applied(part.text, begin, end, inside)

    is_any = any(slot.texts and all(text in translations for text in slot.texts) for slot in part.slots)
    # What lies within another slot comes before it, so that the outer one finds it done.
    for slot in sorted(part.slots, key=lambda slot: (slot.end, -slot.begin)):
        if any(text not in translations for text in slot.texts) or not (slot.texts or is_any):
            continue
        outputs = [translations[text] for text in slot.texts]
        if not slot.always and outputs == list(slot.texts):
            continue
        new = slot.fill(outputs, raw)
        while edits and edits[-1][0] >= slot.begin:
            edits.pop()
            begins.pop()
        edits.append((slot.begin, slot.end, new))
        begins.append(slot.begin)
    return _applied(part.text, 0, len(part.text), edits)


def _applied(text: str, begin: int, end: int, edits: Iterable[tuple[int, int, str]]) -> str:
    pieces = []
    for first, last, new in edits:
        assert first >= begin
        pieces += [text[begin:first], new]
        begin = last
    return "".join([*pieces, text[begin:end]])


def resolved(pieces: Iterable[Piece], raw: Raw) -> str:
    """The pieces as one text."""
    return "".join(piece if isinstance(piece, str) else raw(*piece) for piece in pieces)


class Lines:
    """The line numbers of the characters of a text, counted from 1."""

    def __init__(self, text: str) -> None:
        self._ends = [at for at, character in enumerate(text) if character == "\n"]

    def number(self, at: int) -> int:
        """The line that character ``at`` is in."""
        return bisect_left(self._ends, at) + 1
