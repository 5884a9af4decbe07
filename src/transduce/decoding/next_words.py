"""Alternatives at a place of an output: the words that may come there, and how it goes on after each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transduce.decoding.asked import Asked
from transduce.decoding.config import SearchOptions, TranslationOptions
from transduce.decoding.guide import NEVER
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.prefix import Prefix, PrefixGuide
from transduce.decoding.searcher import Searcher
from transduce.decoding.sources import Source
from transduce.decoding.spelling import Spelling, joins
from transduce.decoding.translation import Alternative, assemble
from transduce.errors import UsageError

# The longest word that is looked for, in tokens.
LONGEST = 32
# The options that say how an output goes on after a word.
_KNOWN = ("alpha", "batch_tokens", "beam", "domain", "max_extra", "min_length", "stop", "to")


@dataclass(frozen=True)
class NextWord:
    """A word, its probability given what stands before it, and the best output that goes on with it.

    The word is empty where the output ends instead.
    """

    word: str
    probability: float
    completion: Alternative


def check_next_words(count: int, options: TranslationOptions) -> None:
    """Nothing; UsageError for a wrong ``count``, and for options that have no say in alternatives."""
    if count < 1:
        raise UsageError(f"count is {count}; it must be at least 1")
    usual = TranslationOptions()
    for name in (field.name for field in fields(options)):
        value = getattr(options, name)
        if name not in _KNOWN and value != getattr(usual, name):
            raise UsageError(
                f"{name} is {value!r}, which has no say in alternatives; leave it out (they go by "
                f"{', '.join(_KNOWN)})"
            )


def next_words(
    searcher: Searcher,
    source: Source,
    asked: Asked,
    spelling: Spelling,
    options: TranslationOptions,
    count: int,
) -> list[NextWord]:
    """At most ``count`` words that may follow what is ``asked`` for as a prefix, the likeliest first.

    ``source`` is one part.
    """
    eos_id = searcher.config.eos_id
    wide = SearchOptions(beam=2 * count + 4, n_best=2 * count + 4, alpha=0.0)
    guide = WordGuide.start(asked.prefix, spelling, eos_id)
    with searcher.ready():
        (outputs,) = searcher.find(source.ids, [asked.least_tokens + LONGEST], wide, guide)
        words = words_found(outputs, asked.prefix, spelling, count)
        if not words:  # whatever may follow is longer than a word is looked for
            return []
        forced = tuple(output.tokens[:-1] for output, _, _ in words)
        limits = [max(len(source.ids[0]), len(tokens) + 1) + options.max_extra for tokens in forced]
        completions = searcher.find(
            list(source.ids) * len(words),
            limits,
            replace(options.search, n_best=1),
            ForcedGuide(forced, 0, spelling),
        )
    return [
        NextWord(
            word,
            math.exp(log_p),
            assemble(source, [found], searcher.tokenizer, alpha=options.alpha).alternatives[0],
        )
        for (_, word, log_p), found in zip(words, completions, strict=True)
    ]


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
