"""What parallel text looks like: counts, lengths, scripts, repeats, tokens; one pass, bounded memory."""

from __future__ import annotations

import hashlib
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally
from transduce.data.tokenizer import Tokenizer

_BATCH = 1024
_MOST = 1000
"""Lengths above are counted as this one in the histogram; their maximum is exact."""


@dataclass
class Lengths:
    """Lengths of one side, by how many there are of each."""

    counts: Counter[int] = field(default_factory=Counter)
    total: int = 0
    longest: int = 0
    longest_at: str = ""

    def add(self, length: int, pair: Pair) -> None:
        """Nothing; one more text."""
        self.counts[min(length, _MOST)] += 1
        self.total += length
        if length > self.longest:
            self.longest, self.longest_at = length, f"{pair.file}:{pair.line}"

    def quantile(self, share: float) -> int:
        """The length that so many of the texts do not exceed."""
        wanted, seen = share * self.counts.total(), 0
        for length in sorted(self.counts):
            seen += self.counts[length]
            if seen >= wanted:
                return length
        return 0

    def to_dict(self) -> dict[str, Any]:
        """Mean, quantiles and maximum."""
        number = self.counts.total()
        return {
            "total": self.total,
            "mean": round(self.total / number, 2) if number else 0.0,
            "median": self.quantile(0.5),
            "p99": self.quantile(0.99),
            "longest": self.longest,
            "longest_at": self.longest_at,
        }


@dataclass
class Side:
    """One side of the text."""

    characters: Lengths = field(default_factory=Lengths)
    words: Lengths = field(default_factory=Lengths)
    tokens: Lengths = field(default_factory=Lengths)
    empty: int = 0
    byte_tokens: int = 0
    """Tokens that are single bytes: characters that the tokenizer lacks."""
    letters: Counter[str] = field(default_factory=Counter)
    """How often each character occurs."""

    def scripts(self) -> dict[str, float]:
        """The share of each script among the letters, the largest first."""
        found: Counter[str] = Counter()
        for character, count in self.letters.items():
            if character.isalpha():
                found[script(character)] += count
        return {name: count / found.total() for name, count in found.most_common()}


@dataclass
class Information:
    """What `describe` found; lengths in words are those between white space."""

    pairs: int = 0
    source: Side = field(default_factory=Side)
    target: Side = field(default_factory=Side)
    identical: int = 0
    """Pairs whose sides are the same text."""
    repeated_pairs: int = 0
    """Pairs that came before, source and target alike."""
    repeated_sources: int = 0
    """Pairs whose source came before, perhaps with another target."""
    ratios: Counter[float] = field(default_factory=Counter)
    """Of words, target to source, to one decimal."""
    languages: tuple[str, str] = ("", "")
    tally: Tally = field(default_factory=Tally)

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "pairs": self.pairs,
            "languages": list(self.languages),
            "identical": self.identical,
            "repeated_pairs": self.repeated_pairs,
            "repeated_sources": self.repeated_sources,
            "left_out": self.tally.to_dict(),
            **{name: _side(side) for name, side in (("source", self.source), ("target", self.target))},
        }


def _side(side: Side) -> dict[str, Any]:
    tokens = {"tokens": side.tokens.to_dict(), "byte_tokens": side.byte_tokens} if side.tokens.total else {}
    return {
        "empty": side.empty,
        "characters": side.characters.to_dict(),
        "words": side.words.to_dict(),
        **tokens,
        "distinct_characters": len(side.letters),
        "control_characters": sum(n for c, n in side.letters.items() if unicodedata.category(c) == "Cc"),
        "scripts": {name: round(share, 4) for name, share in side.scripts().items()},
    }


def describe(
    pairs: Iterable[Pair], tally: Tally, wanted: Wanted, tokenizer: Tokenizer | None = None
) -> Information:
    """What the pairs are like; ``tally`` is that of their readers, ``wanted`` what these look for.

    Memory grows by 16 bytes a pair, by which repeats are found (texts with one 64-bit hash count as one).
    """
    found = Information(tally=tally)
    sources, both = array("Q"), array("Q")
    waiting: list[Pair] = []
    for pair in pairs:
        found.pairs += 1
        found.identical += pair.source == pair.target and bool(pair.source.strip())
        _count(found.source, pair.source, pair)
        _count(found.target, pair.target, pair)
        words = [len(text.split()) for text in (pair.source, pair.target)]
        if all(words):
            found.ratios[round(words[1] / words[0], 1)] += 1
        sources.append(_hash(pair.source))
        both.append(_hash(f"{pair.source}\n\0\n{pair.target}"))
        if tokenizer is not None:
            waiting.append(pair)
            if len(waiting) == _BATCH:
                _tokens(found, waiting, tokenizer)
                waiting.clear()
    if tokenizer is not None and waiting:
        _tokens(found, waiting, tokenizer)
    found.repeated_sources, found.repeated_pairs = _repeats(sources), _repeats(both)
    found.languages = (wanted.source or tally.languages[0], wanted.target or tally.languages[1])
    return found


def _count(side: Side, text: str, pair: Pair) -> None:
    side.empty += not text.strip()
    side.characters.add(len(text), pair)
    side.words.add(len(text.split()), pair)
    side.letters.update(text)


def _tokens(found: Information, pairs: list[Pair], tokenizer: Tokenizer) -> None:
    sides = (
        (found.source, tokenizer.encode_batch([pair.source for pair in pairs])),
        (found.target, tokenizer.encode_target_batch([pair.target for pair in pairs])),
    )
    for side, encoded in sides:
        for ids, pair in zip(encoded, pairs, strict=True):
            side.tokens.add(len(ids), pair)
            side.byte_tokens += int(tokenizer.byte_pieces[ids].sum()) if ids else 0


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def _repeats(hashes: array[int]) -> int:
    return len(hashes) - len(np.unique(np.frombuffer(hashes, np.uint64))) if hashes else 0


@lru_cache(maxsize=1 << 16)
def script(character: str) -> str:
    """The script of a letter, as the first word of its name says: Latin, Cyrillic, Cjk; else Common."""
    if unicodedata.category(character) == "Lm" or character in "ªµº":
        return "Common"
    return unicodedata.name(character, "unknown").split(" ")[0].split("-")[0].capitalize()
