"""What each token adds to the text, so that text can be asked of a search whatever its subwords.

Text is told in units: characters, or single bytes where the vocabulary lacks a character. A byte of 128 or
more stands as U+DC80 + (byte - 128), as Python's ``surrogateescape`` has it.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from transduce.data.tokenizer import UNK_ID, Tokenizer

# Scripts that are written without spaces: Thai, Lao, Tibetan, Myanmar, Khmer, kana, Chinese characters.
_UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x0F00, 0x109F),
    (0x1780, 0x17FF),
    (0x3040, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


def joins(unit: str) -> bool:
    """Whether a character that stands right beside it makes one word with it.

    Letters, digits, marks and _ do, except in scripts without spaces; so does a lone byte, to be careful.
    """
    code = ord(unit)
    if code < 128:
        return unit.isalnum() or unit == "_"
    if unspaced(unit):
        return False
    return unit.isalnum() or unicodedata.category(unit) in ("Mn", "Mc", "Me", "Cs")


def unspaced(unit: str) -> bool:
    """Whether a character belongs to a script that is written without spaces."""
    code = ord(unit)
    return any(first <= code <= last for first, last in _UNSPACED)


class Spelling:
    """The tokens of a vocabulary and what they spell; ``texts[id]`` is empty for a token without text."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = tuple(texts)
        self._ids: dict[str, list[int]] = {}
        for index, text in enumerate(self.texts):
            if text:
                self._ids.setdefault(text, []).append(index)
        self._sorted = sorted(self._ids)
        self.longest = max(map(len, self._sorted), default=0)

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Spelling:
        """The spelling of a tokenizer's vocabulary."""
        return cls([_units(tokenizer, index) for index in range(tokenizer.vocabulary)])

    def of_ids(self, ids: Sequence[int]) -> str:
        """What these tokens spell together."""
        return "".join(self.texts[index] for index in ids)

    def exactly(self, text: str) -> Sequence[int]:
        """The tokens that spell ``text``."""
        return self._ids.get(text, ())

    def beginning(self, text: str) -> Iterator[tuple[str, int]]:
        """The tokens that spell something that begins with ``text``, and what they spell."""
        for at in range(bisect_left(self._sorted, text), len(self._sorted)):
            found = self._sorted[at]
            if not found.startswith(text):
                return
            for index in self._ids[found]:
                yield found, index

    def steps(self, text: str, at: int, least: int = 1) -> Iterator[tuple[int, int]]:
        """The tokens that spell ``text`` from ``at`` on, or a part of that of ``least`` units or more.

        Each comes with the position after it; those that spell all that is left and more, with the length of
        ``text``.
        """
        for end in range(at + least, min(len(text), at + self.longest + 1)):
            for index in self.exactly(text[at:end]):
                yield index, end
        for _, index in self.beginning(text[at:]):
            yield index, len(text)


def _units(tokenizer: Tokenizer, index: int) -> str:
    piece = tokenizer.piece(index)
    if tokenizer.byte_pieces[index]:
        byte = int(piece[3:-1], 16)
        return chr(byte) if byte < 128 else chr(0xDC00 + byte)
    # The unknown id has no text of its own.
    silent = index == UNK_ID or index in tokenizer.silent
    return "" if silent else piece.replace("\u2581", " ")
