"""Where tags go in an output: around the words that come from the words they enclosed.

Each tag stands exactly once in the result, and what was properly nested stays so, whatever the alignment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from transduce.decoding.protection import KINDS, find_items
from transduce.decoding.tags import PUNCTUATION, Element, Tag, elements

_WORD = re.compile(r"\S+")


class Words:
    """An output as words with what is put before and after them, outside or inside of their punctuation."""

    def __init__(self, text: str) -> None:
        spans = [match.span() for match in _WORD.finditer(text)]
        begins, ends = [begin for begin, _ in spans], [end for _, end in spans]
        self.words = [text[begin:end] for begin, end in spans]
        gaps = zip([0, *ends], [*begins, len(text)], strict=True)
        self.gaps = [text[end:begin] for end, begin in gaps]
        self._before: list[tuple[list[str], list[str]]] = [([], []) for _ in self.words]
        self._after: list[tuple[list[str], list[str]]] = [([], []) for _ in self.words]

    def put_before(self, word: int, text: str, *, inner: bool) -> None:
        """Nothing; ``text`` stands before the word, to the right of all that is there already."""
        outside, inside = self._before[word]
        (inside if inner or inside else outside).append(text)

    def put_after(self, word: int, text: str, *, inner: bool) -> None:
        """Nothing; ``text`` stands after the word, to the right of all that is there already."""
        inside, outside = self._after[word]
        (inside if inner and not outside else outside).append(text)

    def joined(self) -> str:
        """The whole line."""
        line = ""
        for gap, word, before, after in zip(self.gaps, self.words, self._before, self._after, strict=False):
            begin, end = _core(word)
            line += gap + "".join(before[0]) + word[:begin] + "".join(before[1]) + word[begin:end]
            line += "".join(after[0]) + word[end:] + "".join(after[1])
        return line + self.gaps[-1]


def _core(word: str) -> tuple[int, int]:
    """Where a word begins and ends without its punctuation; nothing protected is cut."""
    begin = len(word) - len(word.lstrip(PUNCTUATION))
    end = max(begin, len(word.rstrip(PUNCTUATION)))
    for item in find_items(word, KINDS):
        begin, end = min(begin, item.begin), max(end, item.end)
    return begin, end


@dataclass(frozen=True)
class Links:
    """How source and output words belong together; ``spans`` are the source words' characters."""

    spans: tuple[tuple[int, int], ...]
    weights: Float[Tensor, "output_words source_words"]

    @classmethod
    def of(cls, source: str, weights: Float[Tensor, "output_words source_words"]) -> Links:
        """The links of a source with an output."""
        return cls(tuple(match.span() for match in _WORD.finditer(source)), weights)

    def within(self, begin: int, end: int) -> list[int]:
        """The output words that come most from a source word between two characters, in order."""
        inside = {i for i, (first, last) in enumerate(self.spans) if first < end and last > begin}
        if not self.weights.numel():
            return []
        best, source = self.weights.max(1)
        pairs = zip(best.tolist(), source.tolist(), strict=True)
        return [output for output, (weight, word) in enumerate(pairs) if word in inside and weight > 0]

    def nearest(self, source: int) -> int:
        """The output word that has most to do with a source word."""
        return int(self.weights[:, source].argmax())

    def slot(self, at: int) -> int:
        """The output word before which something belongs that stands at character ``at`` of the source."""
        following = next((i for i, (_, end) in enumerate(self.spans) if end > at), None)
        return len(self.weights) if following is None else self.nearest(following)


def put_tags(words: Words, tags: Sequence[Tag], links: Links) -> None:
    """Nothing; the tags stand among the words."""
    assert words.words
    _put(words, elements(tags), links, 0, len(words.words) - 1)


def _put(words: Words, some: Sequence[Element], links: Links, first: int, last: int) -> None:
    """Nothing; the elements stand between the words ``first`` and ``last``, those included, side by side."""
    wanted = []
    for position, element in enumerate(some):
        inside: list[int] = []
        if element.close is not None:
            found = links.within(element.open.at, element.close.at)
            inside = [word for word in found if first <= word <= last]
        slot = min(max(links.slot(element.open.at), first), last + 1)
        begin, end = (inside[0], inside[-1]) if inside else (slot, slot - 1)
        wanted.append(((begin + end + 1) / 2, position, begin, end, element))
    free = first
    for _, _, begin, end, element in sorted(wanted, key=lambda each: each[:2]):
        begin = max(begin, free)
        if end < begin:
            _put_at(words, element, begin, last)
        else:
            assert element.close is not None
            words.put_before(begin, element.open.text, inner=element.open.inner)
            _put(words, element.children, links, begin, end)
            words.put_after(end, element.close.text, inner=element.close.inner)
        free = max(free, begin, end + 1)


def _put_at(words: Words, element: Element, slot: int, last: int) -> None:
    """Nothing; an element without words stands before the word ``slot``, or after the word ``last``."""
    text = "".join(element.texts())
    alone, tag = element.open.alone, element.open
    if slot <= last:
        words.put_before(slot, text + " " if alone else text, inner=False)
        if tag.glued and element.close is None and words.gaps[slot].isspace() and slot:
            words.gaps[slot] = ""
    else:
        words.put_after(last, " " + text if alone else text, inner=False)
