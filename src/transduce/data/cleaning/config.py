"""The settings of cleaning: what is mended, what is dropped, and from where on."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from transduce.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class CleaningConfig:
    """What is done to each pair, in this order; 0 and false turn a step off. Defaults suit translation."""

    mojibake: bool = True
    """Text that was decoded with the wrong encoding ("fÃ¼r" for "für") is mended, by ftfy."""
    controls: bool = True
    """Control characters, soft hyphens and byte order marks vanish; those that break lines in other programs
    (U+2028, form feeds, a lone CR) become a space. Tabs and line feeds stay."""
    entities: bool = True
    """HTML entities (``&amp;``) that only one side has become the characters that they stand for."""
    nfc: bool = False
    """Unicode's composed form: an a and its two dots become ä."""
    empty: bool = True
    """Pairs with a side of nothing but white space are dropped."""
    min_words: int = 1
    """Fewest words of a side; words are what white space separates."""
    max_words: int = 200
    """Most words of a side."""
    max_characters: int = 2000
    """Most characters of a side."""
    max_word: int = 100
    """Characters of the longest word; addresses may be longer."""
    max_ratio: float = 3.0
    """A side may have so many times the other's characters, and ``ratio_allowance`` more: short texts differ
    freely. Chinese, Japanese and Korean characters count double, as they say more."""
    ratio_allowance: int = 30
    """See ``max_ratio``."""
    identical_words: int = 4
    """Sides that are equal, apart from case, punctuation and digits, and have so many words are not
    translated. Shorter ones may be names."""
    script_share: float = 0.5
    """Least share of a side's letters that is in a script of its language, where the language is named."""
    max_symbols: float = 0.6
    """Largest share of characters that are neither letters nor digits, white space not counted."""
    max_repeats: int = 20
    """How often one character may stand in a row."""
    damaged: bool = True
    """Pairs with characters that only lost letters leave are dropped: U+FFFD and private use."""
    markup: bool = True
    """Pairs in which one side has tags of HTML, or brackets of wikis, that the other lacks are dropped."""
    number_digits: int = 3
    """Pairs in which each side has a number of so many digits that the other lacks are dropped."""
    addresses: bool = True
    """Pairs of which one side has other web or mail addresses than the other are dropped."""
    language: float = 0.8
    """A side is dropped that is so probably in another language than the one that is named for it."""
    language_letters: int = 30
    """Texts with fewer letters are too short to tell their language."""
    duplicates: bool = True
    """Of equal pairs only the first is kept."""
    near_duplicates: bool = True
    """Of pairs that are equal apart from case, punctuation, white space and digits too."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool):
                continue
            if not math.isfinite(value) or value < 0:
                raise ConfigError(
                    f"cleaning.{field.name} is {value:g}; it must be 0 (off), or a finite number above 0"
                )
            if field.name in ("script_share", "max_symbols", "language") and value > 1:
                raise ConfigError(f"cleaning.{field.name} is {value:g}; it is a share: at most 1")
        if 0 < self.max_ratio < 1:
            raise ConfigError(
                f"cleaning.max_ratio is {self.max_ratio:g}; the longer side is divided by the shorter, so it "
                "must be 1 or more, or 0 (off)"
            )
        if 0 < self.max_words < self.min_words:
            raise ConfigError(
                f"cleaning.min_words is {self.min_words} and cleaning.max_words {self.max_words}: no pair "
                "would be left"
            )
