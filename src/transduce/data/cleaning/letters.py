"""What remains of a text without case, punctuation, white space and digits: to tell near copies."""

from __future__ import annotations

import functools
import re
import unicodedata

_ASCII = {code: chr(code).lower() if chr(code).isalpha() else None for code in range(128)}


def letters(text: str) -> str:
    """The letters and marks of a text, in lower case.

    Characters beyond the Basic Multilingual Plane all count as letters: a rare script's letters, and emoji.
    """
    if text.isascii():
        return text.translate(_ASCII)
    return _others().sub("", text.casefold())


@functools.cache
def _others() -> re.Pattern[str]:
    """Runs of characters of the Basic Multilingual Plane that are neither letters nor marks."""
    ranges: list[str] = []
    first = -1
    for code in range(0x10000 + 1):
        other = code < 0x10000 and unicodedata.category(chr(code))[0] not in "LM"
        if other and first < 0:
            first = code
        elif not other and first >= 0:
            ranges.append(f"\\u{first:04x}-\\u{code - 1:04x}")
            first = -1
    return re.compile(f"[{''.join(ranges)}]+")
