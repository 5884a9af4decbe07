"""Alternatives at a place of an output: the words that may come there, and how it goes on after each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transduce.decoding.guide import NEVER
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.prefix import Prefix, PrefixGuide
from transduce.decoding.spelling import Spelling, joins
from transduce.decoding.translation import Alternative

# The longest word that is looked for, in tokens.
LONGEST = 32


@dataclass(frozen=True)
class NextWord:
    """A word, its probability given what stands before it, and the best output that goes on with it.

    The word is empty where the output ends instead.
    """

    word: str
    probability: float
    completion: Alternative


@dataclass(frozen=True)
class WordGuide:
    """Outputs that end with the first word after a prefix (or with its last word, if that may still go on).

    The probability of everything that would begin another word is the probability that the word ends.
    """

    prefix: PrefixGuide
    last: tuple[str, ...]
    spelling: Spelling
    eos_id: int

    @classmethod
    def start(cls, prefix: Prefix | None, spelling: Spelling, eos_id: int) -> WordGuide:
        """The guide of one sentence."""
        return cls(PrefixGuide.start([prefix]), ("",), spelling, eos_id)

    def guided(self, log_p: Float[Tensor, "rows vocabulary"]) -> Float[Tensor, "rows vocabulary"]:
        """See `Guide.guided`."""
        log_p = self.prefix.guided(log_p).clone()
        for row, (place, last) in enumerate(zip(self.prefix.places, self.last, strict=True)):
            if place is None and last.strip():
                ends = word_ends(last, self.spelling).to(log_p.device)
                total = log_p[row].masked_fill(~ends, NEVER).logsumexp(0)
                log_p[row] = log_p[row].masked_fill(ends, NEVER)
                log_p[row, self.eos_id] = total.clamp(max=0.0)
        return log_p

    def extended(self, rows: Int[Tensor, " new"], tokens: Int[Tensor, " new"]) -> WordGuide:
        """See `Guide.extended`."""
        texts = [self.spelling.texts[token] for token in tokens.tolist()]
        last = tuple((text or self.last[row])[-1:] for row, text in zip(rows.tolist(), texts, strict=True))
        return replace(self, prefix=self.prefix.extended(rows, tokens), last=last)


@dataclass(frozen=True)
class ForcedGuide:
    """Outputs that begin with certain tokens and then with something that ends the word."""

    tokens: tuple[tuple[int, ...], ...]
    at: int
    spelling: Spelling

    def guided(self, log_p: Float[Tensor, "rows vocabulary"]) -> Float[Tensor, "rows vocabulary"]:
        """See `Guide.guided`."""
        guided = log_p.clone()
        for row, tokens in enumerate(self.tokens):
            if self.at < len(tokens):
                guided[row] = NEVER
                guided[row, tokens[self.at]] = log_p[row, tokens[self.at]]
            elif self.at == len(tokens) and (text := self.spelling.of_ids(tokens)).strip():
                guided[row].masked_fill_(~word_ends(text[-1], self.spelling).to(log_p.device), NEVER)
        return guided

    def extended(self, rows: Int[Tensor, " new"], tokens: Int[Tensor, " new"]) -> ForcedGuide:
        """See `Guide.extended`."""
        return replace(self, tokens=tuple(self.tokens[row] for row in rows.tolist()), at=self.at + 1)


def word_ends(last: str, spelling: Spelling) -> Tensor:
    """Which tokens do not go on with the word that ends in the unit ``last``; the end is one of them."""
    if not joins(last):
        return torch.ones(len(spelling.texts), dtype=torch.bool)
    return torch.tensor([not text or not joins(text[0]) for text in spelling.texts])


def words_found(
    outputs: Sequence[Hypothesis], prefix: Prefix | None, spelling: Spelling, count: int
) -> list[tuple[Hypothesis, str, float]]:
    """At most ``count`` outputs of a `WordGuide` with different words, each word, and its log P.

    Log P is that of the word after the words before it; of a word that is spelled in several ways, the
    likeliest counts.
    """
    text = "" if prefix is None else prefix.text
    before = len(text) if text.endswith(" ") else text.rfind(" ") + 1
    found: dict[str, tuple[Hypothesis, str, float]] = {}
    for output in outputs:
        if output.truncated:
            continue
        at, log_p = 0, 0.0
        for token, gain in zip(output.tokens, output.token_log_probabilities, strict=True):
            at += len(spelling.texts[token])
            if at >= before or token == output.tokens[-1]:
                log_p += gain
        word = spelling.of_ids(output.tokens)[before:].strip()
        found.setdefault(word, (output, word, log_p))
    return sorted(found.values(), key=lambda one: -one[2])[:count]
