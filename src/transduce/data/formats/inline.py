"""The text of a segment without the codes in it: tags of the document that it was taken from."""

from __future__ import annotations

from collections.abc import Iterable

CODE = None
"""Stands among the pieces of a segment for a code that stood alone, such as an image or a line break."""


def without_codes(pieces: Iterable[str | None]) -> str:
    """The pieces joined. Where a code stood alone between two words, one space parts them.

    Codes in pairs, such as bold and its end, are no pieces: they may stand inside a word.
    """
    text, gap = "", False
    for piece in pieces:
        if piece is CODE:
            gap = True
        elif piece:
            if gap and text:
                joint = text[-1].isspace() + piece[0].isspace()
                text += " " if joint == 0 else ""
                piece = piece[1:] if joint == 2 else piece
            text, gap = text + piece, False
    return text


def one_line(text: str) -> str:
    """The text with each line break, and the white space around it, as one space; none at the ends."""
    if "\n" not in text:
        return text
    return " ".join(part for part in (line.strip() for line in text.split("\n")) if part)
