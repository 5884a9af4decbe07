"""Accelerators: the mark before the letter that works a menu or button, as in ``&Open`` or ``_Open``."""

from __future__ import annotations

import re

# & is one anywhere but in "AT&T" and "a & b"; _ only at the start of a word, for names have it inside.
_MARKS = (
    re.compile(r"(?<!&)(?:&(?=[a-z])|(?<![A-Za-z0-9])&(?=[^\W_]))"),
    re.compile(r"(?<![\w/.-])_(?=[^\W_])"),
)
_LONGEST = 60
# An address or a query, in which & stands between values.
_ADDRESS = re.compile(r"\S*(?:://|www\.|\?\w+=|&\w+=|\w@\w)\S*|\S*\?\S*=\S*")
# What a mark must not be put into: tags, entities, addresses and the placeholders of C, Python and ICU.
_WHOLE = (
    r"<[^<>]*>|&#?\w+;|\S*(?:://|www\.|\w@\w)\S*|\{[^{}]*\}|\$\w+"
    r"|%(?:\d+\$|\(\w+\))?[-+ #0']*\d*(?:\.\d+)?(?:hh|ll|[hljztL])?[A-Za-z]"
)
_LETTER = re.compile(rf"{_WHOLE}|[^\W_]")


def without_accelerator(text: str) -> tuple[str, str, str]:
    """The text without its accelerator's mark, the mark, and the letter; both empty where there is none.

    A text with several is taken to mean something else by them.
    """
    if len(text) > _LONGEST:
        return text, "", ""
    for pattern in _MARKS:
        addresses = [match.span() for match in _ADDRESS.finditer(text)]
        found = [
            match
            for match in pattern.finditer(text)
            if not any(begin < match.start() < end for begin, end in addresses)
        ]
        at = found[0].start() if found else -1
        if len(found) == 1 and text.count(text[at]) == 1 and not re.match(r"&#?\w+;", text[at:]):
            return text[:at] + text[at + 1 :], text[at], text[at + 1]
    return text, "", ""


def with_accelerator(output: str, mark: str, letter: str) -> str:
    """The output with the mark before the same letter if it has it, best at the start of a word.

    Else before its first letter; where it has none, the letter is added in brackets, as is done in Chinese.
    """
    if not mark:
        return output
    plain = [match.start() for match in _LETTER.finditer(output) if len(match.group()) == 1]
    same = [at for at in plain if output[at].lower() == letter.lower()]
    starts = [at for at in same if not at or not output[at - 1].isalnum()]
    latin = [at for at in plain if output[at].isascii()]
    for places in (starts, same, latin if letter.isascii() else plain):
        if places:
            return output[: places[0]] + mark + output[places[0] :]
    return f"{output}({mark}{letter.upper()})"
