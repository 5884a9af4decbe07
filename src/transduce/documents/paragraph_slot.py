"""A paragraph in several texts, with what stands between them, as one slot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from transduce.documents.inline import Segment, says_something
from transduce.documents.marks import Pieces
from transduce.documents.slots import Raw, Slot, resolved


def paragraph_slot(
    parts: Sequence[Segment | Pieces], text: str, begin: int, end: int, place: str
) -> Slot | None:
    """The slot of a paragraph that consists of ``parts``; None where nothing in it is to be translated."""
    wanted = [isinstance(part, Segment) and says_something(part.text) for part in parts]
    texts = tuple(
        part.text
        for part, is_wanted in zip(parts, wanted, strict=True)
        if is_wanted and isinstance(part, Segment)
    )
    if not texts:
        return None

    shown: dict[str, str] = {}
    for part in parts:
        if isinstance(part, Segment):
            shown |= part.shown(lambda first, last: text[first:last])
    fill = partial(_filled, parts, wanted)
    return Slot(begin=begin, end=end, place=place, texts=texts, fill=fill, shown=shown)


def _filled(
    parts: Sequence[Segment | Pieces], wanted: Sequence[bool], outputs: Sequence[str], raw: Raw
) -> str:
    following = iter(outputs)
    return "".join(
        resolved(part, raw)
        if not isinstance(part, Segment)
        else part.filled(next(following), raw)
        if is_wanted
        else part.unchanged(raw)
        for part, is_wanted in zip(parts, wanted, strict=True)
    )
