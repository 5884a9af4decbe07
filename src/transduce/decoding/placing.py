"""Where tags go in an output: around the words that come from the words they enclosed.

Each tag stands exactly once in the result, and what was properly nested stays so, whatever the alignment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
        # How many of a word's first characters are not the output's own.
        self.put_in: dict[int, int] = {}
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

    def standing(self, word: int) -> int:
        """The word, or the one that took its place together with others'."""
        while word and not self.words[word]:
            word -= 1
        return word

    def joined(self) -> str:
        """The whole line."""
        return "".join(text for text, _ in self._pieces())

    def origins(self) -> list[list[int]]:
        """For each word of the whole line those of the output's own words that stand in it."""
        line, owners = "", []
        for text, owner in self._pieces():
            line += text
            owners += [owner] * len(text)
        return [
            sorted({owner for owner in owners[slice(*match.span())] if owner is not None})
            for match in _WORD.finditer(line)
        ]

    def _pieces(self) -> Iterator[tuple[str, int | None]]:
        """The line piece by piece, each with the number of the word that it is a part of, if it is of one."""
        rows = zip(self.gaps, self.words, self._before, self._after, strict=False)
        for at, (gap, word, before, after) in enumerate(rows):
            begin, end = _core(word)
            yield gap + "".join(before[0]), None
            for first, last, put in ((0, begin, before[1]), (begin, end, after[0]), (end, None, after[1])):
                part = word[first:last]
                own = min(max(self.put_in.get(at, 0) - first, 0), len(part))
                yield part[:own], None
                yield part[own:], at
                yield "".join(put), None
        yield self.gaps[-1], None


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
        inside = self.enclosed(begin, end)
        if not self.weights.numel():
            return []
        best, source = self.weights.max(1)
        pairs = zip(best.tolist(), source.tolist(), strict=True)
        return [output for output, (weight, word) in enumerate(pairs) if word in inside and weight > 0]

    def enclosed(self, begin: int, end: int) -> list[int]:
        """The source words, or parts of them, between two characters."""
        if begin >= end:
            return []
        return [i for i, (first, last) in enumerate(self.spans) if first < end and last > begin]

    def likeliest(self, source: Sequence[int], among: Sequence[int]) -> int | None:
        """Of some output words the one that has most to do with some source words; None where none has."""
        if not source or not among:
            return None
        total = self.weights[list(among)][:, list(source)].sum(1)
        return among[int(total.argmax())] if float(total.max()) > 0 else None

    def nearest(self, source: int) -> int:
        """The output word that has most to do with a source word."""
        return int(self.weights[:, source].argmax())

    def slot(self, at: int) -> int:
        """The output word before which something belongs that stands at character ``at`` of the source."""
        following = next((i for i, (_, end) in enumerate(self.spans) if end > at), None)
        return len(self.weights) if following is None else self.nearest(following)


def put_tags(words: Words, tags: Sequence[Tag], links: Links) -> list[Element]:
    """The pairs of tags that enclose no word any more, but did; all tags stand among the words."""
    assert words.words
    return _put(words, elements(tags), links, 0, len(words.words) - 1)


def _put(words: Words, some: Sequence[Element], links: Links, first: int, last: int) -> list[Element]:
    """Those of the elements that have lost all their words.

    They all stand between the words ``first`` and ``last``, those included, side by side.
    """
    wanted = []
    emptied: list[Element] = []
    spans = _spans(words, some, links, (first, last))
    for position, element in enumerate(some):
        slot = links.slot(element.open.at)
        slot = min(max(words.standing(slot) if slot <= last else slot, first), last + 1)
        begin, end = spans.get(position, (slot, slot - 1))
        wanted.append(((begin + end + 1) / 2, position, begin, end, element))
    free = first
    for _, _, begin, end, element in sorted(wanted, key=lambda each: each[:2]):
        begin = max(begin, free)
        if end < begin:
            _put_at(words, element, begin, last)
            if element.close is not None and links.enclosed(element.open.at, element.close.at):
                emptied.append(element)
        else:
            assert element.close is not None
            words.put_before(begin, element.open.text, inner=element.open.inner)
            emptied += _put(words, element.children, links, begin, end)
            words.put_after(end, element.close.text, inner=element.close.inner)
        free = max(free, begin, end + 1)
    return emptied


def _spans(
    words: Words, some: Sequence[Element], links: Links, within: tuple[int, int]
) -> dict[int, tuple[int, int]]:
    """From which to which word each element should reach, by its position; the others have no word.

    One that no word comes from gets the word that has most to do with it, unless that is another one's.
    """
    spans: dict[int, tuple[int, int]] = {}
    free = {at for at in range(within[0], within[1] + 1) if words.words[at]}
    pairs = [(at, one, one.close) for at, one in enumerate(some) if one.close is not None]
    for position, element, close in pairs:
        found = {words.standing(word) for word in links.within(element.open.at, close.at)}
        inside = [word for word in found if within[0] <= word <= within[1]]
        if inside:
            spans[position] = min(inside), max(inside)
            free -= set(range(min(inside), max(inside) + 1))
    for position, element, close in pairs:
        if position not in spans:
            word = links.likeliest(links.enclosed(element.open.at, close.at), sorted(free))
            if word is not None:
                spans[position] = word, word
                free.remove(word)
    return spans


def _put_at(words: Words, element: Element, slot: int, last: int) -> None:
    """Nothing; an element without words stands before the word ``slot``, or after the word ``last``.

    Where there is no such word any more, it stands before the next.
    """
    text = "".join(element.texts())
    alone, tag = element.open.alone, element.open
    while slot <= last and not words.words[slot]:  # another word has taken its place, and the space before
        slot += 1
    if slot <= last:
        words.put_before(slot, text + " " if alone else text, inner=False)
        if tag.glued and element.close is None and words.gaps[slot].isspace() and slot:
            words.gaps[slot] = ""
    else:
        words.put_after(last, " " + text if alone else text, inner=False)
