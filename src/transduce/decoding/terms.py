"""Terms that an output must contain, and how much of them it has so far, unit by unit.

A term is looked for in what the tokens spell, whatever subwords spell it; `Spelling` says what a unit is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from transduce.decoding.spelling import Spelling, joins

DONE = -1
# Nothing is there yet, and the output has not begun either.
BEGIN = -2
# A word of so many letters is short: it is never looked for by its beginning alone.
_SHORT = 4


@dataclass(frozen=True)
class Term:
    """A text that an output must contain: a word, or several.

    ``exact``: as written, in whole words, with no letter or digit right before or after it; where an output
    begins with it, its first letter may be a capital one. Otherwise the model inflects: the output must have
    the beginning of each of its words, one word after the other, and may end each as it likes. The beginning
    of a word of n letters is the word without its last n / 4 letters, rounded down; up to four letters, it is
    the whole word.
    """

    text: str
    exact: bool = True

    def found_in(self, output: str) -> bool:
        """Whether the output contains the term."""
        sought = Sought(self, lambda word: [word])
        at, joined = BEGIN, False
        for unit in output:
            at, joined = sought.after(at, joined, unit), joins(unit)
        return sought.ends(at)

    def words(self) -> list[str]:
        """What must be there of each word."""
        words = self.text.strip().split(" ")
        return words if self.exact else [_beginning(word) for word in words]


def _beginning(word: str) -> str:
    if len(word) <= _SHORT or not word.isalpha() or not joins(word[-1]):
        return word
    return word[: len(word) - len(word) // 4]


class Sought:
    """A term as a sequence of units, in which bit i of a number says: it may be there up to unit i.

    All ways in which the term may just be beginning are followed at once (the shift-and algorithm of
    Baeza-Yates and Gonnet, 1992).
    """

    def __init__(self, term: Term, pieces: Callable[[str], list[str]]) -> None:
        """``pieces`` gives the units of a word, as the tokenizer's subwords have them."""
        words = [pieces(word) for word in term.words()]
        self.term, self.units = term, " ".join("".join(word) for word in words)
        text = term.text.strip()
        self._left, self._right = joins(text[0]), term.exact and joins(text[-1])
        self._last = 1 << (len(self.units) - 1)
        self._at: dict[str, int] = {}
        for position, unit in enumerate(self.units):
            self._at[unit] = self._at.get(unit, 0) | 1 << position
        # Where each subword begins in " " + units, and its length; where a word may end in other letters.
        self.least = {1: len(words[0][0])} if words[0] and words[0][0] else {}
        self._endings, position = 0, 0
        for word in words:
            for number, piece in enumerate(word):
                space = number == 0
                self.least[position if space else position + 1] = len(piece) + space
                position += len(piece)
            if not term.exact and "".join(word).isalpha() and position < len(self.units):
                self._endings |= 1 << (position - 1)
            position += 1

    def after(self, at: int, joined: bool, unit: str) -> int:
        """What is there after one more unit; ``joined``: the unit before makes one word with a letter."""
        if self.ends(at) and (at == DONE or not joins(unit)):
            return DONE
        if at == BEGIN:
            if unit == " ":
                return BEGIN
            at, unit = 0, self.units[0] if unit.lower() == self.units[0] else unit
        begins = 0 if self._left and joined else 1
        after = (at << 1 | begins) & self._at.get(unit, 0)
        if self._endings and joins(unit):
            after |= at & self._endings
        return DONE if after & self._last and not self._right else after

    def ends(self, at: int) -> bool:
        """Whether the term is there if the output ends now."""
        return at == DONE or bool(self._right and at > 0 and at & self._last)

    def open_ended(self, text: str, at: int) -> bool:
        """Whether ``text``, which begins with the units from ``at`` on and has more, still has the term."""
        return not self._right or not joins(text[len(self.units) - at])


class Way:
    """How many tokens it takes to spell the rest of a term, and which tokens go on with it."""

    def __init__(self, sought: Sought, spelling: Spelling) -> None:
        self.sought, self.spelling = sought, spelling
        self._text = " " + sought.units
        size = len(self._text)
        fewest: list[float] = [0.0] * (size + 1)
        for at in range(size - 1, -1, -1):
            reached = (end for _, end in self._tokens(at, 1))
            fewest[at] = 1 + min((fewest[end] for end in reached), default=float("inf"))
        self._fewest = fewest
        # A lone byte might make one word with a term right before it, so that it needs a space to be safe.
        safe = not _needs_space(sought) and not joins(sought.units[0])
        self.from_nothing = min(fewest[:2]) if safe else fewest[0]

    def fewest(self, at: int, joined: bool) -> float:
        """The fewest tokens until the term is there; 0 if it is."""
        best = self.from_nothing if joined else min(self.from_nothing, self._fewest[1])
        for position in _bits(at):
            best = min(best, self._fewest[position + 2])
        return best

    def onward(self, at: int, joined: bool) -> set[int]:
        """The tokens that begin the term or go on with it, none shorter than the tokenizer's own."""
        begin = [0] if joined and _needs_space(self.sought) else [0, 1]
        places = [*begin, *(position + 2 for position in _bits(at))]
        return {
            index
            for place in places
            if place < len(self._text)
            for index, _ in self._tokens(place, self.sought.least.get(place, 1))
        }

    def _tokens(self, at: int, least: int) -> list[tuple[int, int]]:
        size, texts = len(self._text), self.spelling.texts
        return [
            (index, end)
            for index, end in self.spelling.steps(self._text, at, least)
            if end < size or len(texts[index]) == size - at or self.sought.open_ended(texts[index], at - 1)
        ]


def _needs_space(sought: Sought) -> bool:
    return joins(sought.term.text.strip()[0])


def _bits(number: int) -> list[int]:
    return [i for i in range(number.bit_length()) if number >> i & 1] if number > 0 else []
