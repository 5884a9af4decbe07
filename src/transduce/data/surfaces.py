"""What each token of a sequence adds to the text: the link from tokens to characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import SupportsIndex

from transduce.data.tokenizer import Tokenizer, unescaped

_ESCAPE = "\ue000"
_REPLACEMENT = "\ufffd"
# A character is at most 4 bytes, so what a byte becomes is known once 3 more stand after it.
_UNDECIDED = 3


def surfaces(tokenizer: Tokenizer, ids: Iterable[SupportsIndex]) -> list[str]:
    """What each of ``ids`` adds to the text: joined, they are ``tokenizer.decode(ids)``.

    A character that several tokens spell as bytes belongs to the last of them; the others add nothing.
    """
    pieces = [tokenizer.spelling(index) for index in ids]
    texts = [""] * len(pieces)
    run: list[tuple[int, int]] = []  # bytes that may form characters together, each with its token
    first = True
    for at, piece in enumerate([*pieces, " "]):
        if isinstance(piece, bytes):
            run += [(at, byte) for byte in piece]
            first = first and not piece
            continue
        for owner, character in _characters(run):
            texts[owner] += character
        run = []
        if at < len(pieces):  # the space that every text is given in front is no part of it
            texts[at] += piece[1:] if first and piece.startswith(" ") else piece
            first = False
    return [text.replace("\n", " ") for text in _unescaped_each(texts)]


def stable_surfaces(tokenizer: Tokenizer, ids: Sequence[SupportsIndex]) -> list[str]:
    """The beginning of ``surfaces(ids)`` that stays, whatever tokens follow."""
    known = surfaces(tokenizer, ids)
    count = len(known)
    while count > len(known) - _UNDECIDED and count and isinstance(tokenizer.spelling(ids[count - 1]), bytes):
        count -= 1
    known = known[:count]
    while known and (not known[-1] or known[-1].endswith(_ESCAPE)):  # half of an escaped character
        known.pop()
    return known


def _characters(run: Sequence[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """The characters that the bytes spell, each with the token of its last byte; U+FFFD for a stray byte."""
    content = bytes(byte for _, byte in run)
    at = 0
    while at < len(content):
        for size in range(1, min(4, len(content) - at) + 1):
            try:
                character = content[at : at + size].decode()
            except UnicodeDecodeError:
                continue
            break
        else:
            size, character = 1, _REPLACEMENT
        at += size
        yield run[at - 1][0], character


def _unescaped_each(texts: Sequence[str]) -> list[str]:
    """The texts with the escapes undone, also those that begin in one text and end in the next."""
    if not any(_ESCAPE in text for text in texts):
        return list(texts)
    done, pending = [], ""
    for text in texts:
        text, pending = pending + text, ""
        if text.endswith(_ESCAPE):
            text, pending = text[:-1], _ESCAPE
        done.append(unescaped(text))
    if pending:
        done[-1] += pending
    return done
