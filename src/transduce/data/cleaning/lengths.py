"""Filters on how long the sides are."""

from __future__ import annotations

import re

from transduce.counts import counted
from transduce.data.cleaning.config import CleaningConfig

# Chinese and Japanese characters, kana, Hangul, and what stands between them.
_WIDE = re.compile("[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]")


def empty(source: str, target: str, config: CleaningConfig) -> str:
    """Why a pair with a side of nothing but white space is dropped."""
    if not source or source.isspace():
        return "no source"
    if not target or target.isspace():
        return "no target"
    return ""


def length(source: str, target: str, config: CleaningConfig) -> str:
    """Why a pair with a side that is too short or too long, or has too long a word, is dropped."""
    return _length("source", source, config) or _length("target", target, config)


def _length(side: str, text: str, config: CleaningConfig) -> str:
    size = len(text)
    if config.max_characters and size > config.max_characters:
        return f"{counted(size, 'character')} in {side}, at most {config.max_characters}"
    if (
        config.max_words
        and size > 2 * config.max_words - 1
        and (count := len(text.split())) > config.max_words
    ):
        return f"{counted(count, 'word')} in {side}, at most {config.max_words}"
    if config.min_words > 1 and (count := len(text.split())) < config.min_words:
        return f"{count} word{'s' * (count != 1)} in {side}, at least {config.min_words}"
    if config.max_word and size > config.max_word:
        # Nothing separates the words of some languages: a run of wide characters is no word.
        longest = max(text.split(), key=len, default="")
        if len(longest) > config.max_word and "://" not in longest and not _WIDE.search(longest):
            return f"a word of {counted(len(longest), 'character')} in {side}, at most {config.max_word}"
    return ""


def ratio(source: str, target: str, config: CleaningConfig) -> str:
    """Why a pair of which one side is far longer than the other is dropped."""
    one, other = weighted_length(source), weighted_length(target)
    if max(one, other) <= config.max_ratio * min(one, other) + config.ratio_allowance:
        return ""
    return f"{counted(one, 'character')} in source and {other} in target, ratio at most {config.max_ratio:g}"


def weighted_length(text: str) -> int:
    """The characters of a text, those of Chinese, Japanese and Korean twice."""
    return len(text) if text.isascii() else len(text) + len(_WIDE.findall(text))
