"""A line that is too long for the model, cut into parts that fit: at sentence ends if possible.

Language-neutral on purpose: it knows sentence marks, brackets and quotes, and a short list of abbreviations.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

Fits = Callable[[str], bool]

_CLOSING = "\"'”’»›)\\]}」』】）"
# . ! ? … end a sentence before a space or the end of the line (a quote or bracket may close first, in French
# after a narrow space); 。 ！ ？ do so anywhere.
_SENTENCE_END = re.compile(rf"(?:[.!?…]+(?:[\u00a0\u202f]?[{_CLOSING}])*(?=\s|$)|[。！？]+[{_CLOSING}]*)")
_CLAUSE_END = re.compile(rf"(?:[,;:–—]+[{_CLOSING}]*(?=\s|$)|[，；：、]+)")
_WORD_END = re.compile(r"(?<=\S)(?=\s)")
_WIDE_END = re.compile(rf"[。！？][{_CLOSING}]*$")
_SPACE = re.compile(r"\s*")
_LAST_WORD = re.compile(r"[^\s(\[{\"'“„«‚‘]*$")
_ABBREVIATIONS = """
mr mrs ms mx dr prof st sr jr hr fr mme mlle m nr no art abs bd vol fig tab kap ch pp vs bzw ca cf
e.g i.e z.b d.h u.a z.t o.ä evtl ggf inkl usf vgl approx dept est gen gov hon inc ltd co corp rev
sen rep col capt lt sgt tel tél env p.ex c.-à-d ing dipl ph.d p.s u.s a.m p.m
"""
_NO_END = frozenset(_ABBREVIATIONS.split())


@dataclass(frozen=True)
class Part:
    """A piece of a line and the white space between it and the next piece."""

    text: str
    separator: str


def split_sentences(text: str) -> list[str]:
    """The sentences of ``text``, each with the white space after it: joined, they are ``text`` again."""
    return _cut(text, [m.end() for m in _SENTENCE_END.finditer(text) if _ends_sentence(text, m)])


def split_to_fit(text: str, fits: Fits) -> list[Part]:
    """The parts of ``text``, each of which ``fits``: its sentences, or pieces of those that do not fit.

    A sentence is cut after commas and their like, else between words, else anywhere but before a combining
    mark; such pieces are as long as possible. Texts and separators joined in order are ``text`` again, which
    must not begin with white space. No part is empty.
    """
    return parts_of(piece for sentence in split_sentences(text) for piece in _fitting(sentence, fits, 0))


def parts_of(pieces: Iterable[str]) -> list[Part]:
    """The pieces of a line as parts: the white space at their ends stands between them. None is empty."""
    parts: list[Part] = []
    for piece in pieces:
        body = piece.strip()
        begin = piece.find(body) if body else len(piece)
        if parts and begin:
            parts[-1] = Part(parts[-1].text, parts[-1].separator + piece[:begin])
        if body:
            parts.append(Part(body, piece[begin + len(body) :]))
    return parts


def join_parts(parts: Sequence[Part], outputs: Sequence[str]) -> tuple[str, list[int]]:
    """One line: the outputs of the parts, with what stood between the parts; and where each output begins.

    Scripts without spaces put none after a sentence; where the output's sentence ends in another mark than
    theirs, a space is added.
    """
    line, begins = "", []
    for position, (part, output) in enumerate(zip(parts, outputs, strict=True)):
        begins.append(len(line))
        line += output
        if position + 1 < len(parts):
            line += separator_after(part, output)
    return line, begins


def separator_after(part: Part, output: str) -> str:
    """What stands between the output of a part and the next part's (see `join_parts`)."""
    missing = not part.separator and _WIDE_END.search(part.text) and not _WIDE_END.search(output)
    return " " if missing else part.separator


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    """False for the full stop of an abbreviation, initial or ordinal, or before a small letter."""
    after = text[match.end() :].lstrip()
    if not match.group().startswith(".") or match.group().startswith(".."):
        return True
    if after[:1].islower():
        return False
    found = _LAST_WORD.search(text, 0, match.start())
    word = found.group() if found else ""
    is_initial = len(word) == 1 and word.isalpha() and word.isupper() and word != "I"
    is_ordinal = word.isdecimal() and len(word) <= 2
    return not (word.lower() in _NO_END or is_initial or is_ordinal)


def _cut(text: str, ends: Sequence[int]) -> list[str]:
    """The text cut at each end, the white space after it included in the piece before."""
    pieces, begin = [], 0
    for end in ends:
        space = _SPACE.match(text, end)
        stop = space.end() if space else end
        if stop > begin:
            pieces.append(text[begin:stop])
            begin = stop
    if begin < len(text):
        pieces.append(text[begin:])
    return pieces


def _fitting(text: str, fits: Fits, level: int) -> list[str]:
    """The text in pieces that fit, cut at the coarsest level that does it: clauses, words, characters."""
    if fits(text.rstrip()):
        return [text]
    levels = (_CLAUSE_END, _WORD_END)
    if level < len(levels):
        atoms = _cut(text, [match.end() for match in levels[level].finditer(text)])
    else:
        atoms = _characters(text)
        if len(atoms) == 1:
            return atoms  # nothing is left to cut
    pieces: list[str] = []
    begin = 0
    while begin < len(atoms):
        count = _longest(atoms, begin, fits)
        piece = "".join(atoms[begin : begin + count])
        pieces += [piece] if fits(piece.rstrip()) else _fitting(piece, fits, level + 1)
        begin += count
    return pieces


def _longest(atoms: Sequence[str], begin: int, fits: Fits) -> int:
    """How many atoms from ``begin`` on fit together, at least 1; found by doubling and halving."""

    def together(count: int) -> bool:
        return fits("".join(atoms[begin : begin + count]).rstrip())

    good, step, most = 1, 1, len(atoms) - begin
    while good + step <= most and together(good + step):
        good, step = good + step, step * 2
    while step > 1:
        step //= 2
        if good + step <= most and together(good + step):
            good += step
    return good


def _characters(text: str) -> list[str]:
    """The text in single characters, each with the combining marks and joiners that belong to it."""
    atoms: list[str] = []
    for character in text:
        joined = unicodedata.combining(character) or character in "\u200d\ufe0f\ufe0e"
        if atoms and (joined or atoms[-1].endswith("\u200d")):
            atoms[-1] += character
        else:
            atoms.append(character)
    return atoms
