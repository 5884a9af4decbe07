"""Changes of a sentence that readers hardly mind and models do: case, and typing errors.

Nothing here knows a language: letters are what Unicode calls letters, and a wrong letter is one that the
sentence has elsewhere.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_WORD = re.compile(r"[^\W\d_]{3,}")
# One typing error for about so many letters, and at least one.
LETTERS_PER_TYPO = 40

CASES: dict[str, tuple[Callable[[str], str], bool]] = {
    # The function, and whether the target is changed too: a headline is translated as a headline, but a
    # sentence that was typed without capitals is to come out right.
    "lower_case": (str.lower, False),
    "upper_case": (str.upper, True),
    "title_case": (lambda text: title_case(text), True),
}


def title_case(text: str) -> str:
    """The text with a capital letter at the beginning of each word; other letters stay."""
    return re.sub(r"(?<!\S)\S", lambda match: match.group().upper(), text)


def with_typos(text: str, chance: random.Random) -> str:
    """The text with a few typing errors in words of three letters or more.

    Each is one of: two neighbours change places, a letter is missing, is doubled, or is another one.
    """
    words = [match.span() for match in _WORD.finditer(text)]
    if not words:
        return text
    letters = [text[i] for begin, end in words for i in range(begin, end)]
    wanted = max(1, round(len(letters) / LETTERS_PER_TYPO))
    chosen = sorted(chance.sample(words, min(wanted, len(words))), reverse=True)
    for begin, end in chosen:
        at = chance.randrange(begin, end - 1)
        kind = chance.randrange(4)
        if kind == 0:
            new = text[at + 1] + text[at]
        elif kind == 1:
            new = text[at + 1]
        elif kind == 2:
            new = text[at] + text[at] + text[at + 1]
        else:
            new = chance.choice(letters) + text[at + 1]
        text = text[:at] + new + text[at + 2 :]
    return text
