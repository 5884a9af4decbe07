"""A filter on pairs whose sides are one text: what was never translated."""

from __future__ import annotations

from transduce.counts import counted
from transduce.data.cleaning.config import CleaningConfig
from transduce.data.cleaning.letters import letters


def identical(source: str, target: str, config: CleaningConfig) -> str:
    """Why a pair of equal sides is dropped: equal apart from case, punctuation, white space and digits.

    Few words may be a name, which is the same in both languages.
    """
    # Copies begin alike, and nearly all other pairs do not.
    if source[:1].casefold() != target[:1].casefold() and source[:1].isalpha() and target[:1].isalpha():
        return ""
    text = letters(source)
    if not text or text != letters(target):
        return ""
    words = sum(any(map(str.isalpha, word)) for word in source.split())
    if words < config.identical_words:
        return ""
    return f"both sides are the same {counted(words, 'word')}"
