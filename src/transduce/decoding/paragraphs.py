"""Hard-wrapped text: the lines of a paragraph joined before it is translated, and wrapped again after."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from transduce.decoding.spelling import unspaced
from transduce.decoding.translation import Translation
from transduce.decoding.translator import Translator

# Lines that a paragraph may have: a file without blank lines is not held in memory as a whole.
MOST_LINES = 1_000
_SOFT_HYPHEN = "\u00ad"


@dataclass(frozen=True)
class Paragraph:
    """The lines of a paragraph; a blank line is one by itself."""

    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """One line: the first with its indentation, and the others after it.

        Between two lines stands a space; nothing does after a hyphen within a word, which stays, or in a
        script without spaces. A soft hyphen at the end of a line is left out.
        """
        if len(self.lines) == 1:
            return self.lines[0]
        text = self.lines[0].rstrip()
        for line in map(str.strip, self.lines[1:]):
            if text.endswith(_SOFT_HYPHEN):
                text = text[:-1] + line
            elif _hyphenated(text, line) or (_wide(text[-1]) and _wide(line[0])):
                text += line
            else:
                text += " " + line
        return text

    def wrapped(self, text: str) -> list[str]:
        """``text`` in lines as long as this paragraph's longest, cut between words; in one if this has one.

        The lines after the first begin with the white space with which this paragraph's second one does. A
        word that is longer than a line stands by itself.
        """
        if len(self.lines) == 1:
            return [text]
        width = max(len(line.rstrip()) for line in self.lines)
        second = self.lines[1]
        hang = second[: len(second) - len(second.lstrip())]
        lines: list[str] = []
        line = ""
        for gap, atom in _atoms(text):
            if line.strip() and len(line + gap + atom) > width:
                lines.append(line)
                line = hang + atom
            else:
                line += gap + atom
        return [*lines, line]


def paragraphs_of(lines: Iterable[str]) -> Iterator[Paragraph]:
    """The paragraphs: what stands between blank lines, at most MOST_LINES at a time, and the blank lines."""
    held: list[str] = []
    for line in lines:
        blank = not line.strip()
        if held and (blank or len(held) == MOST_LINES):
            yield Paragraph(tuple(held))
            held = []
        if blank:
            yield Paragraph((line,))
        else:
            held.append(line)
    if held:
        yield Paragraph(tuple(held))


def whole_paragraphs(chunks: Iterable[list[str]]) -> Iterator[list[str]]:
    """The same lines in lists of whole paragraphs; each is held until it is known where its own one ends."""
    held: list[str] = []
    for chunk in chunks:
        held += chunk
        end = max((at for at, line in enumerate(held, 1) if not line.strip()), default=0)
        end += (len(held) - end) // MOST_LINES * MOST_LINES
        if end:
            yield held[:end]
            held = held[end:]
    if held:
        yield held


def translate_each(
    translator: Translator, lines: Sequence[str], *, first_line: int = 1, **options: Any
) -> list[tuple[Paragraph, Translation]]:
    """The paragraphs of some lines and what becomes of each, with warnings that name lines of the text.

    ``options`` are those of `Translator.translate_detailed`; each paragraph is translated as a document.
    """
    paragraphs = list(paragraphs_of(lines))
    # Each paragraph has as many places as lines, so that what is told of it names its first line.
    texts = [text for one in paragraphs for text in (one.text, *[""] * (len(one.lines) - 1))]
    found = translator.translate_detailed(texts, first_line=first_line, **{**options, "document": True})
    pairs, at = [], 0
    for paragraph in paragraphs:
        translation = found[at]
        if len(paragraph.lines) == MOST_LINES:
            told = (
                f"line {first_line + at}: its paragraph is cut after {MOST_LINES:,} lines without a blank one"
            )
            translation = replace(translation, warnings=(*translation.warnings, told))
        pairs.append((paragraph, translation))
        at += len(paragraph.lines)
    return pairs


def translate_paragraphs(translator: Translator, lines: Sequence[str], **options: Any) -> list[str]:
    """The translation of hard-wrapped lines, wrapped alike: blank lines separate the paragraphs.

    There may be more or fewer lines than before. ``options`` are those of `Translator.translate`, without
    what has one item per line; a warning names the line at which its paragraph begins.
    """
    wrapped: list[str] = []
    for paragraph, translation in translate_each(translator, lines, **options):
        for warning in translation.warnings:
            warnings.warn(warning, stacklevel=2)
        wrapped += paragraph.wrapped(translation.text)
    return wrapped


def _hyphenated(text: str, following: str) -> bool:
    """Whether a line ends within a word that has a hyphen there."""
    return text[-1:] in ("-", "\u2010") and text[-2:-1].isalpha() and following[:1].isalpha()


def _wide(character: str) -> bool:
    """Whether a character or mark stands in a line that has no spaces."""
    return unspaced(character) or "\u3000" <= character <= "\u303f" or "\uff00" <= character <= "\uffef"


def _atoms(text: str) -> Iterator[tuple[str, str]]:
    """The pieces of a text that no line is cut in, each after the spaces before it.

    Words are such pieces, and in scripts without spaces single characters where both neighbours are letters.
    """
    for match in re.finditer(r"( *)([^ ]+|$)", text):
        gap, word = match.groups()
        begin = 0
        for at in range(1, len(word)):
            if unspaced(word[at - 1]) and unspaced(word[at]):
                yield gap, word[begin:at]
                gap, begin = "", at
        if gap or word[begin:]:
            yield gap, word[begin:]
