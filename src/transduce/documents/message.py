"""A message of a catalog: its lines and columns as texts to translate, and put together again.

Line feeds, indentation and columns are kept. Lines that were filled up and broken within a sentence are
joined before and broken again after. Accelerators and entities are taken out and put back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transduce.decoding.protection import find_items
from transduce.documents.accelerators import with_accelerator, without_accelerator
from transduce.documents.entities import decoded_message, encoded
from transduce.documents.inline import says_something

# Columns are two spaces or a tab apart; what looks like an option of a command is a column by itself.
_COLUMN = re.compile(r"( {2,}|[\t\v\f\r]+)")
_OPTION = re.compile(r"--?[\w?]")
# A line that is at least so long and ends within a sentence was filled up.
_FILLED = 40
_SENTENCE_END = re.compile(r"[.!?:;…。！？][\"'”’»)\]]*$")


@dataclass(frozen=True)
class _Stretch:
    """Text to translate, broken at ``width`` where that is not 0; or (``translated`` is False) as it is."""

    text: str
    translated: bool = False
    width: int = 0


class Message:
    """One message: ``texts`` are to be translated."""

    def __init__(self, text: str, *, accelerators: bool = True) -> None:
        text, self._written = decoded_message(text)
        self._mark = self._letter = self._own = ""
        whole = text
        if accelerators:
            text, self._mark, self._letter = without_accelerator(text)
        self._stretches = list(_stretches(text))
        self.texts = tuple(stretch.text for stretch in self._stretches if stretch.translated)
        if not self.texts and text.strip():
            # Nothing but placeholders and the like: it is its own translation.
            self._own = whole
            self.texts = (" ".join(whole.split()),)

    def joined(self, outputs: Sequence[str]) -> str:
        """The message with the translation of each of its texts."""
        if self._own:
            own = self._own if tuple(outputs) == self.texts else outputs[0]
            return encoded(own, self._written)
        following = iter(outputs)
        pieces = []
        mark = self._mark
        for stretch in self._stretches:
            if not stretch.translated:
                pieces.append(stretch.text)
                continue
            output = with_accelerator(next(following), mark, self._letter)
            mark = ""
            pieces.append(broken(output, stretch.width) if stretch.width else output)
        return encoded("".join(pieces), self._written)


def broken(text: str, width: int) -> str:
    """The text in lines of at most ``width`` characters, broken at spaces outside of tags and the like."""
    lines: list[str] = []
    line = ""
    for word in _words(text):
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return "\n".join([*lines, line])


def _words(text: str) -> Iterator[str]:
    """What single spaces separate; a tag or placeholder is never divided."""
    begin = 0
    taken = iter(
        [*((item.begin, item.end) for item in find_items(text, ["tags", "placeholders"])), (len(text), 0)]
    )
    first, last = next(taken)
    for at, character in enumerate(text):
        while last and at >= last:
            first, last = next(taken)
        if character == " " and at < first:
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]


def _stretches(text: str) -> Iterator[_Stretch]:
    """The lines of a message, as stretches with what stands between them."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        if at:
            yield _Stretch("\n")
        last = at
        while last + 1 < len(lines) and _goes_on(lines[last], lines[last + 1], first=last == at):
            last += 1
        if last == at:
            yield from _columns(lines[at])
        else:
            body = " ".join(line.strip() for line in lines[at : last + 1])
            yield _Stretch(lines[at][: len(lines[at]) - len(lines[at].lstrip())])
            yield _Stretch(body, translated=says_something(body), width=max(map(len, lines[at : last + 1])))
        at = last + 1


def _goes_on(line: str, following: str, *, first: bool) -> bool:
    """Whether a sentence was broken between two lines because the first was full."""
    plain = line.strip() if first else line.rstrip()
    return (
        len(line) >= _FILLED
        and not _COLUMN.search(plain)
        and not _COLUMN.search(following.rstrip())
        and (not line[:1].isspace())
        and not _SENTENCE_END.search(plain)
        and following[:1].islower()
    )


def _columns(line: str) -> Iterator[_Stretch]:
    pieces = _COLUMN.split(line)
    for at, piece in enumerate(pieces):
        if at % 2 or not says_something(piece):
            yield _Stretch(piece)
            continue
        body = piece.strip()
        begin = piece.find(body)
        is_option = len(pieces) > 1 and _OPTION.match(body) is not None
        yield _Stretch(piece[:begin])
        yield _Stretch(body, translated=not is_option)
        yield _Stretch(piece[begin + len(body) :])
