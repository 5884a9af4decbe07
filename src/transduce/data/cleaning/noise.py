"""Filters on characters: damaged ones, too many symbols, one repeated without end."""

from __future__ import annotations

import functools
import re
import unicodedata

from transduce.data.cleaning.config import CleaningConfig

_DAMAGED = re.compile("[\ufffd\ue000-\uf8ff\U000f0000-\U0010ffff]")
_ASCII_SYMBOLS = {code: None for code in range(128) if chr(code).isalnum() or chr(code).isspace()}
_THREE = re.compile(r"(\S)\1\1")
_SYMBOLS = re.compile(r"[^\w\s]|_")
FEWEST_SYMBOLS = 5
"""So many are no noise, whatever their share: "(...)" is a text."""


def noise(source: str, target: str, config: CleaningConfig) -> str:
    """Why a pair with a side of damaged, repeated or too many odd characters is dropped."""
    return _noise("source", source, config) or _noise("target", target, config)


def _noise(side: str, text: str, config: CleaningConfig) -> str:
    ascii_only = text.isascii()
    if config.damaged and not ascii_only and (found := _DAMAGED.search(text)):
        return f"U+{ord(found.group()):04X} in {side} stands for a letter that was lost"
    if config.max_symbols:
        symbols = len(text.translate(_ASCII_SYMBOLS)) if ascii_only else len(_SYMBOLS.findall(text))
        if symbols >= FEWEST_SYMBOLS and symbols > config.max_symbols * len(text) / 2:
            # Now exactly: without white space, and without the vowel signs that no \w matches.
            symbols, others = _exactly(text)
            if symbols >= FEWEST_SYMBOLS and symbols > config.max_symbols * (symbols + others):
                return (
                    f"{symbols / (symbols + others):.0%} symbols in {side}, at most {config.max_symbols:.0%}"
                )
    if config.max_repeats and (repeated := _repeated(text, config.max_repeats)):
        return f"{repeated!r} more than {config.max_repeats} times in a row in {side}"
    return ""


def _exactly(text: str) -> tuple[int, int]:
    """How many symbols a text has, and how many letters, marks and digits."""
    kinds = [unicodedata.category(character)[0] for character in text if not character.isspace()]
    others = sum(kind in "LMN" for kind in kinds)
    return len(kinds) - others, others


def _repeated(text: str, limit: int) -> str:
    """The first character that stands more than so many times in a row; empty where there is none."""
    # So long a run holds three characters that are a third of it apart from one another.
    step = (limit + 1) // 3
    if step > 1 and not _THREE.search(text[::step]):
        return ""
    found = _run(limit).search(text)
    return found.group(1) if found else ""


@functools.cache
def _run(limit: int) -> re.Pattern[str]:
    return re.compile(rf"(\S)\1{{{limit}}}")
